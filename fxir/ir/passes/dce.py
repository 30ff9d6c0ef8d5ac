"""Dead code elimination."""

from __future__ import annotations

from fxir.ir.graph import Graph


def dce(graph: Graph) -> int:
    """Erase nodes that no output needs. Effects (`rng_state`) stay: the generator must advance as in eager."""
    return graph.eliminate_dead_code()
