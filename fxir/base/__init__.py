"""Helpers that do not depend on graphs.

`options` holds the options of one compilation, `origin` a place in the user's program, `safe_repr` the text of a value in a
log, `gc_pause` pauses the garbage collector, and `maxflow` solves maximum flow.
"""
