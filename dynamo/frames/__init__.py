"""Symbolic execution: `capture` is the state of one capture, `frame` runs one code object, `opcodes` has the instruction handlers."""
