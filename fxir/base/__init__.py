"""Helpers that do not depend on graphs.

`options` holds the options of one compilation, `compilation` the state of the process during it, `origin` a place in the user's
program, `safe_repr` the text of a value in a log, and `maxflow` solves maximum flow.
"""
