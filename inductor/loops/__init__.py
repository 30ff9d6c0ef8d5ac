"""Loops: how a kernel computes its definitions, as data that every target prints.

`tree` holds the statements (start there), `reductions` the reductions, `build` makes the plain loops of definitions, and `attention` the
tiled loops of attention. `steps` are the steps of a schedule and `apply` performs them, with `reductions`, `scans`, `cached_reads`,
`contractions` and `tiles`; `dependence` checks each. `interpret` runs loops on numpy arrays: it is the oracle that printed code is
tested against.
"""
