"""Integer expressions over symbols: sizes, strides, shape guards and index arithmetic.

Nodes are interned: equal expressions are one object. `nodes` holds the classes and their bounds, `rules` the laws that simplify
(start there), `proofs` decides relations, `printing` writes expressions in Python, C and Triton.
"""
