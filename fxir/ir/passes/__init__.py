"""Passes over functional graphs. Each is a function `graph -> number of changes` that edits the graph in place.

`run_passes` is the pipeline; `PIPELINE` gives its order. `run_optional` runs the passes that a backend requests, of `OPTIONAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from eager.base.logs import artifact
from eager.optable.table import Op
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.passes.channels_last import IMAGES, channels_last
from fxir.ir.passes.fold_batch_norm import fold_batch_norm
from fxir.ir.passes.simplify import canonicalise, constant_fold, cse
from fxir.ir.verifier import verify

Pass = Callable[[Graph], int]


def dce(graph: Graph) -> int:
    """Erase nodes that no output needs. Effects (`rng_state`) stay: the generator must advance as in eager."""
    return graph.eliminate_dead_code()


class Optional(NamedTuple):
    """A pass that only some backends request. ops: a graph that calls none of these ops does not change."""

    run: Pass
    ops: frozenset[str]


PIPELINE: Final[tuple[Pass, ...]] = (dce, canonicalise, cse, constant_fold, canonicalise, dce)
OPTIONAL: Final[Mapping[str, Optional]] = MappingProxyType(
    {
        "fold_batch_norm": Optional(fold_batch_norm, frozenset({"convolution"})),
        "channels_last": Optional(channels_last, frozenset(IMAGES)),
    }
)
_LOG: Final = artifact("graph_passes")


def run_passes(graph: Graph, pipeline: tuple[Pass, ...] = PIPELINE, *, check: bool = False) -> Graph:
    """Run every pass in order. check: verify the graph after each. Returns `graph`."""
    for step in pipeline:
        step(graph)
        if check:
            verify(graph)
    return graph


def run_optional(graph: Graph, names: Iterable[str], *, check: bool = False) -> None:
    """Run the passes `names` on a whole graph, after the pipeline, in this order. check: verify the graph after each change."""
    called = {n.target.name for n in graph.in_order() if isinstance(n.target, Op)}
    for name in names:
        before = _text(graph) if _LOG.enabled else ""
        step = OPTIONAL[name]
        changes = 0 if step.ops.isdisjoint(called) else step.run(graph)
        if changes and check:
            verify(graph)
        if _LOG.enabled:
            _LOG.log(f"{name}: {changes} changes" + (f"\nbefore:\n{before}\nafter:\n{_text(graph)}" if changes else ""))


def _text(graph: Graph) -> str:
    return GraphModule(graph.root, graph).readable()


__all__ = [
    "OPTIONAL",
    "PIPELINE",
    "Optional",
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
