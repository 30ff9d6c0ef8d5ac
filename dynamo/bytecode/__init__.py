"""CPython bytecode as data: `decode` gives uniform instructions, `tracebacks` restores the user's lines."""
