"""Composite ops that a graph holds whole until lowering: each as a graph of the ops that it consists of.

Owns the trace of these ops. Equal calls, such as the updates of equal parameters, share one graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eager.base.spec import TensorSpec, fake
from eager.optable.table import OPS, Op
from fxir.ir.graph import Graph
from fxir.ir.node import Node, map_nodes, walk_nodes
from fxir.ir.passes import run_passes
from fxir.trace.trace import trace


class Expansion(NamedTuple):
    """graph: placeholders for the tensors among the arguments, in order. results: the nodes of the results of the op."""

    graph: Graph
    results: list[Node]


def expand(op: Op, args: tuple[Any, ...], known: dict[str, Expansion | None]) -> Expansion | None:
    """The expansion of a call of an op that has an in-place form by other ops; None if its parts hold constants.

    known: the expansions of the graph, by op and arguments.
    """
    key = repr((op.name, map_nodes(args, _spec)))
    if key not in known:
        known[key] = _traced(OPS[f"{op.name}_"], args)
    return known[key]


def _spec(node: Node) -> TensorSpec:
    found = node.info.spec
    assert isinstance(found, TensorSpec)
    return found


def _traced(inplace: Op, args: tuple[Any, ...]) -> Expansion | None:
    fakes = [fake(_spec(node)) for node in walk_nodes(args)]
    rest = iter(fakes)
    given = map_nodes(args, lambda node: next(rest))

    def run(*tensors: Any) -> tuple[()]:
        inplace(*given)
        return ()

    graph = trace(run, fakes)
    run_passes(graph)
    if any(node.op == "get_attr" for node in graph.in_order()):
        return None
    values = dict(zip(map(id, fakes), graph.placeholders, strict=True))
    assert graph.signature is not None
    values |= {id(fakes[i]): new for i, new in zip(graph.signature.mutated_inputs, graph.outputs, strict=True)}
    return Expansion(graph, [values[id(t)] for t in inplace.written(given)])
