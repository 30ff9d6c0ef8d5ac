"""Ops to loop IR: `lower(graph)` returns the program of a functional graph; `in_own_symbols` translates a refusal.

`graph` walks the nodes (start there), `rules`, `indexing`, `contractions`, `convolutions`, `pooling`, `attention` and `recurrences`
hold rules by op, `window` has the dims of convolutions and pooling, `protocol` runs the scalar rules of pointwise ops, and `builder`
collects buffers and proves relations of symbols.
"""

from inductor.lowering.graph import in_own_symbols, lower

__all__ = ["in_own_symbols", "lower"]
