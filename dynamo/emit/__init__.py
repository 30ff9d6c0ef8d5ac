"""From a finished capture to a Python function.

`function` puts the generated function together, the end of the captured graph and the call of its compiled form included: start
there. `plan` holds the decisions, `writer` the expressions of values, `break_writer` the code behind a graph break,
`break_instructions` the instruction there, and `runtime` the helpers that generated code calls.
"""
