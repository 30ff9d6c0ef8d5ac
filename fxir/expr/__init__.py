"""Integer expressions over symbols: sizes, strides, shape guards and index arithmetic.

Nodes are interned: equal expressions are one object. `nodes` holds the classes, `rules` the simplifying constructors (start
there), `bounds` interval arithmetic, `proofs` decides relations, `printing` writes expressions in Python, C and Triton.
"""
