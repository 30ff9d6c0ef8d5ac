"""The passes that only some backends request, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from eager.base.logs import artifact
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.passes.channels_last import channels_last
from fxir.ir.passes.fold_batch_norm import fold_batch_norm
from fxir.ir.verifier import verify

OPTIONAL: Final[Mapping[str, Callable[[Graph], int]]] = MappingProxyType(
    {"fold_batch_norm": fold_batch_norm, "channels_last": channels_last}
)
_LOG = artifact("graph_passes")


def run_optional(graph: Graph, names: Iterable[str], *, check: bool = False) -> None:
    """Run the passes `names` on a whole graph, after the pipeline, in this order. check: verify the graph after each change."""
    for name in names:
        before = _text(graph) if _LOG.enabled else ""
        changes = OPTIONAL[name](graph)
        if changes and check:
            verify(graph)
        if _LOG.enabled:
            _LOG.log(f"{name}: {changes} changes" + (f"\nbefore:\n{before}\nafter:\n{_text(graph)}" if changes else ""))


def _text(graph: Graph) -> str:
    return GraphModule(graph.root, graph).readable()
