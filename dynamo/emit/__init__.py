"""From a finished capture to a Python function.

`function` puts the generated function together: start there. `plan` holds the decisions, `writer` the expressions of values,
`graph_call` the call of the compiled graph, `break_writer` the code behind a graph break, `break_instructions` the instruction
there. `prune` removes unused nodes of the graph, and `runtime` holds the helpers that generated code calls.
"""
