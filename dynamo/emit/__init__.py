"""From a finished capture to bytecode: `writer` generates the compiled function (start there), `break_instructions` the
instruction at a graph break, `prune` removes unused parts of the graph, `runtime` holds helpers that generated code calls.
"""
