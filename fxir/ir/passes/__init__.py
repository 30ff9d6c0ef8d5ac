"""Passes over functional graphs. Each is a function `graph -> number of changes` that edits the graph in place.

`run_passes` is the pipeline; `PIPELINE` gives its order. `run_optional` runs the passes that a backend requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fxir.ir.graph import Graph
from fxir.ir.passes.channels_last import channels_last
from fxir.ir.passes.fold_batch_norm import fold_batch_norm
from fxir.ir.passes.optional import OPTIONAL, run_optional
from fxir.ir.passes.simplify import canonicalise, constant_fold, cse
from fxir.ir.verifier import verify

Pass = Callable[[Graph], int]


def dce(graph: Graph) -> int:
    """Erase nodes that no output needs. Effects (`rng_state`) stay: the generator must advance as in eager."""
    return graph.eliminate_dead_code()


PIPELINE: Final[tuple[Pass, ...]] = (dce, canonicalise, cse, constant_fold, canonicalise, dce)

def run_passes(graph: Graph, pipeline: tuple[Pass, ...] = PIPELINE, *, check: bool = False) -> Graph:
    """Run every pass in order. check: verify the graph after each. Returns `graph`."""
    for step in pipeline:
        step(graph)
        if check:
            verify(graph)
    return graph


__all__ = [
    "OPTIONAL",
    "PIPELINE",
    "Pass",
    "canonicalise",
    "channels_last",
    "constant_fold",
    "cse",
    "dce",
    "fold_batch_norm",
    "run_optional",
    "run_passes",
]
