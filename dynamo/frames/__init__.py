"""Symbolic execution of bytecode.

`capture` holds the parts of one capture and ends it (start there), `frame` runs one code object by the table in `handlers`, which
the modules of `opcodes` fill, and holds the frames that are running.
"""
