"""Common subexpression elimination."""

from __future__ import annotations

import operator
from typing import Any, Final

from eager.optable.table import Op
from fxir.ir.emit import physical_root
from fxir.ir.graph import Graph
from fxir.ir.node import Node, walk_nodes

# Two calls of these ops give two different results.
_NEVER: Final = frozenset({"EFFECT", "INPLACE"})


def cse(graph: Graph) -> int:
    """Merge equal calls; returns the number of removed calls.

    The values that outputs are made of are not merged: the caller may write to the memory of one output, and the other must
    keep its value. A random draw is a function of its state, so equal draws from one state are equal calls.
    """
    outputs = {_maker(physical_root(n)) for n in walk_nodes(graph.output_node.args)}
    seen: dict[Any, Node] = {}
    removed = 0
    for node in graph.in_order():
        key = _key(node)
        if key is None:
            continue
        first = seen.setdefault(key, node)
        if first is node or _maker(node) in outputs or _maker(first) in outputs:
            continue
        node.replace_all_uses_with(first)
        graph.erase_node(node)
        removed += 1
    return removed


def _maker(node: Node) -> Node:
    """The call that creates the memory of `node`, which may be one of several results of that call."""
    maker: Node = node.args[0] if node.target is operator.getitem else node
    return maker


def _key(node: Node) -> Any:
    if node.op == "get_attr":
        return "get_attr", node.target
    if node.op != "call_function":
        return None
    if isinstance(node.target, Op):
        if node.target.kind.name in _NEVER:
            return None
    elif node.target is not operator.getitem:
        return None
    return node.target, _freeze(node.args), _freeze(node.kwargs)


def _freeze(x: Any) -> Any:
    """A hashable key that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    if isinstance(x, Node):
        return x
    if isinstance(x, tuple | list):
        return type(x).__name__, *map(_freeze, x)
    if isinstance(x, dict):
        return "dict", *((k, _freeze(v)) for k, v in x.items())
    if isinstance(x, slice):
        return "slice", _freeze(x.start), _freeze(x.stop), _freeze(x.step)
    if isinstance(x, bool | int | float | complex | str):
        return type(x).__name__, repr(x)
    return x
