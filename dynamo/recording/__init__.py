"""Calls on tensors become nodes of the graph.

`recorder` records a call and runs it on fakes (start there). `symbolic_inputs` adds symbolic sizes, `data_dependent` numbers
that only data decides, `nested_graphs` graphs inside the graph, `gathered_items` indexing by tensors, `temporary_modules` modules
made by the program, `modes` the modes that calls run in; `op_errors` and `failing_calls` decide whose error a failing call is.
"""
