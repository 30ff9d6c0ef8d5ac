"""Constant folding: calls on tensors that the trace created are computed at compile time."""

from __future__ import annotations

from typing import Final

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.base.spec import spec_of
from eager.optable.table import Op
from fxir.ir.graph import FRESH, Graph
from fxir.ir.node import Node, map_nodes
from fxir.symbols.shapes import symbols_in

MAX_BYTES: Final = 1 << 20
_KINDS: Final = frozenset({"POINTWISE", "REDUCTION", "VIEW", "INDEXED", "OPAQUE", "COMPOSITE"})


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
