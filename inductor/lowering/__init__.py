"""Ops to loop IR: `lower(graph)` returns the program of a functional graph.

`graph` walks the nodes (start there), `rules`, `indexing`, `contractions`, `convolutions` and `pooling` hold rules by op, `window`
has the dims of the last two, `protocol` runs the scalar rules of pointwise ops, `builder` collects buffers, and `facts` proves relations of symbols.
"""

from inductor.lowering.graph import lower

__all__ = ["lower"]
