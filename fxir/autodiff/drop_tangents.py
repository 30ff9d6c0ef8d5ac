"""A backward graph for calls in which some outputs of a region receive no gradient.

Eager does not run the parts of a backward that receive no gradient. A compiled backward that receives zeros would run
them, and 0 * inf = nan would appear where eager has no term. So nodes that depend on absent tangents alone are removed, and a
sum loses the absent term.
"""

from __future__ import annotations

from collections.abc import Collection

from eager.optable.table import OPS
from fxir.ir.graph import Graph, GraphSignature, emit, emit_layout, same_layout, spec
from fxir.ir.node import Node

_ZERO_FREE = (OPS["add"], OPS["sub"])


def drop_absent_tangents(graph: Graph, absent: Collection[int], tangents: Collection[int]) -> tuple[Graph, list[int | None]]:
    """(the graph without reads of the `absent` placeholders; for each output its new position, None if it is absent).

    absent, tangents: positions of placeholders, which all stay; every output is linear in the tangents.
    """
    graph = graph.copy()
    placeholders = graph.placeholders
    absent_nodes = {placeholders[i] for i in absent}
    _propagate_absence(graph, absent_nodes, {placeholders[i] for i in tangents})
    positions: list[int | None] = []
    left: list[Node] = []
    outputs: list[Node] = list(graph.outputs)
    for y in outputs:
        positions.append(None if y in absent_nodes else len(left))
        if y not in absent_nodes:
            left.append(y)
    graph.erase_node(graph.output_node)
    graph.output(tuple(left))
    parameters = graph.signature.parameters if graph.signature is not None else ()
    graph.signature = GraphSignature(n_user_outputs=len(left), parameters=parameters)
    graph.eliminate_dead_code()  # placeholders stay
    return graph, positions


def _propagate_absence(graph: Graph, absent_nodes: set[Node], linear: set[Node]) -> None:
    """Add to `absent_nodes` the nodes that depend on absent tangents only; in sums with other terms, remove the absent terms."""
    for n in graph.in_order():
        inputs = [i for i in n.inputs if i in linear]
        if n.op == "output" or not inputs:
            continue
        linear.add(n)
        missing = [i for i in inputs if i in absent_nodes]
        if not missing:
            continue
        if len(missing) == len(inputs):
            absent_nodes.add(n)
            continue
        with graph.inserting_before(n):
            term = _remaining_term(graph, n, absent_nodes)
            if term is not None:
                n.replace_all_uses_with(term)
                linear.add(term)
                continue
            for i in missing:
                s = spec(i)
                zero = emit(graph, OPS["full"], s.shape, 0, s.dtype, s.device)
                n.replace_input(i, emit_layout(graph, zero, s.strides))


def _remaining_term(graph: Graph, n: Node, absent_nodes: set[Node]) -> Node | None:
    """The other term of a sum of two terms; None if the node is not such a sum."""
    if n.target not in _ZERO_FREE:
        return None
    x, y = n.args[:2]
    kept = y if x in absent_nodes else x
    if not isinstance(kept, Node) or not isinstance(x, Node) or not isinstance(y, Node):
        return None
    have, want = spec(kept), spec(n)
    if have.shape != want.shape or have.dtype is not want.dtype:
        return None
    if kept is y and n.target is OPS["sub"]:
        kept = emit(graph, OPS["neg"], kept)
    return kept if same_layout(want.shape, spec(kept).strides, want.strides) else emit_layout(graph, kept, want.strides)
