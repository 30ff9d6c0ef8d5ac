"""Builtins and library functions whose calls a capture answers without following code.

`registry` holds the table; each other module adds the rows of one library.
"""
