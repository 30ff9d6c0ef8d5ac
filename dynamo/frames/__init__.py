"""Symbolic execution of bytecode.

`capture` holds the parts of one capture and ends it (start there), `stack` has the frames that are running, `frame` runs one code
object by the table in `handlers`, which the modules of `opcodes` fill.
"""
