"""Builtins and library functions that capture answers itself: one file a library, all entered in `registry`."""
