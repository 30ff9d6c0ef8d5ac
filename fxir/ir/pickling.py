"""A graph as plain values, for pickle and copy: nodes refer to one another by name.

Targets are pickled by reference, like functions. `fxir.ir.graph_file` writes files that other programs can read.
"""

from __future__ import annotations

from typing import Any

from eager.base.records import dataclass
from eager.optable.table import OPS, Op
from fxir.ir.graph import Graph
from fxir.ir.node import NodeInfo, map_instances, map_nodes


@dataclass(frozen=True, slots=True)
class _Reference:
    """A reference to a node by name, or to an op of the table."""

    name: str
    is_op: bool = False


@dataclass(frozen=True, slots=True)
class PackedNode:
    """The fields of a node."""

    op: str
    target: Any
    args: Any
    kwargs: Any
    name: str
    info: NodeInfo


def pack(graph: Graph) -> list[PackedNode]:
    """The nodes in order. Raises: NotImplementedError for a graph with symbols, whose environment stays in the process."""
    if graph.shapes is not None:
        raise NotImplementedError("pickle: a graph with symbolic sizes cannot be pickled")
    refer: Any = lambda n: _Reference(n.name)  # noqa: E731
    return [PackedNode(n.op, _Reference(n.target.name, True) if isinstance(n.target, Op) else n.target, map_nodes(n.args, refer),
                       map_nodes(n.kwargs, refer), n.name, n.info) for n in graph.nodes]  # fmt: skip


def unpack(nodes: list[PackedNode], root: dict[str, Any]) -> Graph:
    """The graph of `pack`, over `root`."""
    graph = Graph(root)
    made: dict[str, Any] = {}
    for n in nodes:
        target = OPS[n.target.name] if isinstance(n.target, _Reference) else n.target
        args, kwargs = map_instances((n.args, n.kwargs), _Reference, lambda r: made[r.name])
        made[n.name] = graph.create_node(n.op, target, args, kwargs, n.name, info=n.info)
    return graph
