"""Helpers that know nothing of graphs.

`options` holds the options of one compilation, `origin` a place in the user's program, `safe_repr` the text of a value in a log,
`gc_pause` pauses the garbage collector, `maxflow` solves maximum flow, `decompose` runs an op's decomposition, and
`example_inputs` makes inputs from specs.
"""
