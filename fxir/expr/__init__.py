"""Integer expressions over symbols: sizes, strides, shape guards and index arithmetic.

Nodes are interned: equal expressions are one object. `nodes` holds the classes, their bounds and arithmetic, `rules` the laws that
simplify and the proofs of relations (start there), `printing` writes expressions in Python, C and Triton.
"""
