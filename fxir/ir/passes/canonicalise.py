"""Canonical form: removes calls without effect, and joins views of views.

Only rewrites that keep every bit are done: `x + 0` stays (it turns -0.0 into 0.0), `x * 1` is removed. The rules are in
`RULES`, by op name; each returns the replacement of a call, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from fxir.ir.emit import emit, physical_root, same_layout, spec
from fxir.ir.graph import Graph
from fxir.ir.node import Node, walk_nodes

Rule = Callable[[Graph, Node], Node | None]


def canonicalise(graph: Graph) -> int:
    """Apply the rules to every call once, in program order; returns the number of replaced calls.

    A copy of memory that the caller can reach (an input, an output) stays a copy: the caller may write to the original while
    backward keeps the copy.
    """
    outputs = {physical_root(n) for n in walk_nodes(graph.output_node.args)}
    replaced = 0
    for node in graph.in_order():
        if node.op != "call_function" or not isinstance(node.target, Op) or not node.users:
            continue
        rule = RULES.get(node.target.name)
        is_view = node.target.kind is Kind.VIEW
        if rule is None or (node in outputs and not is_view):
            continue
        with graph.inserting_before(node):
            new = rule(graph, node)
        if new is None or new is node or new.info.spec != node.info.spec:
            continue
        root = physical_root(new)
        if not is_view and (root.op == "placeholder" or root in outputs):
            continue
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        replaced += 1
    return replaced


def _same(graph: Graph, node: Node) -> Node | None:
    x = node.args[0]
    a, b = spec(x), spec(node)
    return x if a.dtype is b.dtype and a.shape == b.shape and same_layout(a.shape, a.strides, b.strides) else None


def _copy(graph: Graph, node: Node) -> Node | None:
    src = node.args[1]
    return src if isinstance(src, Node) and src.info.spec == node.info.spec else None


def _neutral(position: int, value: int) -> Rule:
    """x op value = x, with `value` in argument `position`."""

    def rule(graph: Graph, node: Node) -> Node | None:
        x, other = node.args[1 - position], node.args[position]
        return x if isinstance(x, Node) and not isinstance(other, Node | bool) and other == value else None

    return rule


def _either(first: Rule, second: Rule) -> Rule:
    def rule(graph: Graph, node: Node) -> Node | None:
        found = first(graph, node)
        return second(graph, node) if found is None else found

    return rule


def _integer_neutral(graph: Graph, node: Node) -> Node | None:
    dtype = spec(node).dtype
    if dtype.is_floating_point or dtype.is_complex:
        return None
    return _either(_neutral(1, 0), _neutral(0, 0))(graph, node)


def _view(graph: Graph, node: Node) -> Node | None:
    inner = node.args[0]
    if _is(inner, "view") and _same(graph, node) is None:
        x = inner.args[0]
        try:
            return emit(graph, OPS["view"], x, node.args[1], origin=node.info.origin)
        except RuntimeError:  # the two steps may be possible where a single step is not
            return None
    return _same(graph, node)


def _permute(graph: Graph, node: Node) -> Node | None:
    x: Node = node.args[0]
    dims = node.args[1]
    n = len(dims)
    if [d % n for d in dims] == list(range(n)):
        return x
    if not _is(x, "permute"):
        return None
    return emit(graph, OPS["permute"], x.args[0], tuple(x.args[1][d % n] for d in dims), origin=node.info.origin)


def _expand(graph: Graph, node: Node) -> Node | None:
    x = node.args[0]
    return x if spec(node).shape == spec(x).shape else None


def _is(x: Any, name: str) -> bool:
    return isinstance(x, Node) and x.op == "call_function" and getattr(x.target, "name", None) == name


RULES: Final[dict[str, Rule]] = {
    "clone": _same,
    "to_dtype": _same,
    "copy": _copy,
    "alias": _same,
    "detach": _same,
    "view": _view,
    "permute": _permute,
    "expand": _expand,
    "mul": _either(_neutral(1, 1), _neutral(0, 1)),
    "div": _neutral(1, 1),
    "sub": _neutral(1, 0),
    "add": _integer_neutral,
}
