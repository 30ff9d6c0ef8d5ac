"""Calls on tensors become nodes of the graph.

`recorder` records a call and runs it on fakes, in the modes of the program (start there). `symbolic_inputs` adds symbolic sizes,
`data_dependent` numbers that depend on data, `nested_graphs` graphs inside the graph, `gathered_items` indexing by tensors,
`temporary_modules` modules that the program makes. `op_errors` decides whether the user or
the compiler caused the error of a call; `failing_calls` handles calls that may reject their data.
"""
