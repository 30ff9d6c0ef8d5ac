"""Simplification: canonical form, common subexpressions and constants, and the order in which passes run.

`canonicalise` removes calls without effect, and joins views of views. Only rewrites that keep every bit are done: `x + 0` stays (it
turns -0.0 into 0.0), `x * 1` is removed. The rules are in `RULES`, by op name; each returns the replacement of a call, or None. `cse`
joins equal calls. `constant_fold` computes calls on tensors that the trace created at compile time. `run_passes` runs these on every
graph; `run_optional` runs the passes that only some backends request.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.base.logs import artifact
from eager.base.spec import spec_of
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from fxir.ir.graph import FRESH, Graph, emit, physical_root, same_layout, spec
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node, map_nodes, walk_nodes
from fxir.ir.verifier import verify
from fxir.symbols.shapes import symbols_in

Rule = Callable[[Graph, Node], Node | None]
Pass = Callable[[Graph], int]
_LOG: Final = artifact("graph_passes")


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


# Two calls of these ops give two different results.
_NEVER: Final = frozenset({"EFFECT", "INPLACE"})


# -- common subexpressions ------------------------------------------------------------------------------------------
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
    cls = x.__class__
    if cls is Node or x is None:
        return x
    if cls is int or cls is str or cls is bool:  # the most frequent arguments
        return cls, x
    if isinstance(x, tuple | list):
        return type(x).__name__, *map(_freeze, x)
    if isinstance(x, dict):
        return "dict", *((k, _freeze(v)) for k, v in x.items())
    if isinstance(x, slice):
        return "slice", _freeze(x.start), _freeze(x.stop), _freeze(x.step)
    if isinstance(x, bool | int | float | complex | str):
        return type(x).__name__, repr(x)
    return x


MAX_BYTES: Final = 1 << 20
_KINDS: Final = frozenset({"POINTWISE", "REDUCTION", "VIEW", "INDEXED", "OPAQUE", "COMPOSITE"})


# -- constants ------------------------------------------------------------------------------------------------------
def constant_fold(graph: Graph) -> int:
    """Replace calls whose inputs are all constants from the trace; returns the number of replaced calls.

    Tensors from outside the trace (keys without the prefix FRESH) may be written between calls, so that they are not folded.
    Calls without a tensor argument (`full`, `arange`) are not folded either: a backend computes them inside a kernel.
    """
    folded = 0
    for node in graph.in_order():
        if not _foldable(node):
            continue
        assert isinstance(node.target, Op)
        with no_grad():
            value = node.target(*map_nodes(node.args, lambda n: graph.root[str(n.target)]))
        if not isinstance(value, Tensor) or value.nbytes > MAX_BYTES or spec_of(value) != node.info.spec:
            continue
        key = graph.add_constant(value, FRESH)
        with graph.inserting_before(node):
            new = graph.get_attr(key, info=node.info)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        folded += 1
    return folded


def _foldable(node: Node) -> bool:
    if node.op != "call_function" or not isinstance(node.target, Op) or node.target.kind.name not in _KINDS:
        return False
    inputs = node.inputs
    fresh = all(n.op == "get_attr" and str(n.target).startswith(FRESH) for n in inputs)
    # An output must be new memory in every call.
    return bool(inputs) and fresh and not symbols_in(node.args) and not any(u.op == "output" for u in node.users)


# -- the order of passes ---------------------------------------------------------------------------------------------


class Optional(NamedTuple):
    """A pass that only some backends request. ops: a graph that calls none of these ops does not change."""

    run: Pass
    ops: frozenset[str]


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


def run_optional(graph: Graph, steps: Iterable[Optional], *, check: bool = False) -> None:
    """Run passes on a whole graph, after the pipeline, in this order. check: verify the graph after each change."""
    called = {n.target.name for n in graph.in_order() if isinstance(n.target, Op)}
    for step in steps:
        before = _text(graph) if _LOG.enabled else ""
        changes = 0 if step.ops.isdisjoint(called) else step.run(graph)
        if changes and check:
            verify(graph)
        if _LOG.enabled:
            texts = f"\nbefore:\n{before}\nafter:\n{_text(graph)}" if changes else ""
            _LOG.log(f"{step.run.__name__}: {changes} changes{texts}")


def _text(graph: Graph) -> str:
    return GraphModule(graph.root, graph).readable()
