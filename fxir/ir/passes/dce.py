"""Dead code elimination."""

from __future__ import annotations

from fxir.ir.graph import Graph


def dce(graph: Graph) -> int:
    """Erase what no output needs. Effects (`rng_state`) stay: the generator must advance as it does in eager."""
    return graph.eliminate_dead_code()
