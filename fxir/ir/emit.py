"""Adding op calls to a functional graph with inferred specs, and idioms made of several ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager.base.spec import TensorSpec, is_contiguous, is_dense
from eager.optable.table import OPS, Op
from fxir.base.origin import Origin
from fxir.ir.graph import Graph
from fxir.ir.node import Argument, Node, NodeInfo, map_nodes
from fxir.symbols.shapes import ShapeEnv, lifted, plain, simplified


def infer(op: Op, args: tuple[Argument, ...], shapes: ShapeEnv | None = None) -> Any:
    """The spec(s) of op(*args), for nodes by their specs. Raises: the error of the op's meta rule.

    shapes: the environment of the symbols in `args`, if there are any.
    """
    specs = map_nodes(args, lambda n: n.info.spec)
    return op.infer(*specs) if shapes is None else plain(op.infer(*lifted(specs, shapes)))


def emit(graph: Graph, op: Op, *args: Argument, origin: Origin | None = None, name: str | None = None) -> Node:
    """Add a call of `op` at the cursor. args: all arguments, in schema order."""
    if graph.shapes is not None:
        args = plain(args)
    return graph.call_function(op, args, name=name, info=NodeInfo(infer(op, args, graph.shapes), origin))


def spec(node: Node) -> TensorSpec:
    """The spec of a node that is one tensor."""
    found = node.info.spec
    if node.graph.shapes is not None:
        found = simplified(found, node.graph.shapes)
    assert isinstance(found, TensorSpec), f"{node.name} has no tensor spec: {found}"
    return found


def emit_reshape(graph: Graph, x: Node, shape: tuple[int, ...]) -> Node:
    """The elements of `x` in row-major order as `shape`: a view if the layout allows it, else a view of a copy."""
    have = spec(x)
    if have.shape == shape:  # symbolic sizes compare as expressions; if equality is not provable, the view's rule decides
        return x
    if not is_contiguous(have.shape, have.strides):
        try:
            return emit(graph, OPS["view"], x, shape)
        except RuntimeError:  # torch's class for "view size is not compatible with the strides"
            x = emit(graph, OPS["clone"], x, "contiguous")
    return emit(graph, OPS["view"], x, shape)


def emit_layout(graph: Graph, x: Node, strides: tuple[int, ...]) -> Node:
    """`x` with the given dense strides: itself, or a copy. Raises NotImplementedError for strides with gaps."""
    have = spec(x)
    if same_layout(have.shape, have.strides, strides):
        return x
    order = _packed_order(have.shape, strides, graph.shapes)
    if order is None:
        shape, wanted = lifted((have.shape, strides), graph.shapes)
        if not is_dense(shape, wanted):
            raise NotImplementedError(f"fxir: a copy of {x.name} with strides {strides}, which are not dense")
        order = _falling(shape, wanted)
    if order == tuple(range(have.ndim)):
        return emit(graph, OPS["clone"], x, "contiguous")
    inverse = tuple(order.index(d) for d in range(have.ndim))
    inner = emit(graph, OPS["clone"], emit(graph, OPS["permute"], x, order), "contiguous")
    return emit(graph, OPS["permute"], inner, inverse)


def _packed_order(shape: tuple[int, ...], strides: tuple[int, ...], shapes: ShapeEnv | None) -> tuple[int, ...] | None:
    """The dims from the outermost in, if the strides are a packed tensor's in this order for all values of the symbols.

    The order is guessed from the current values and then proved, so that no decision is needed. A guard on the order of two
    strides would come too late for a graph that is derived from another graph, and without that it carries no information.
    """
    if shapes is None:
        return None
    order = _falling([shapes.hint(n) for n in shape], [shapes.hint(s) for s in strides])
    step: Any = 1
    for d in reversed(order):
        if strides[d] != step:
            return None
        step = step * shape[d]
    return order


def _falling(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dims by falling stride; among equal strides the larger extent is outer."""
    return tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d], d)))


def same_layout(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two stride tuples place the elements equally (dims of extent 1, and empty tensors, do not matter)."""
    return math.prod(shape) == 0 or all(n == 1 or x == y for n, x, y in zip(shape, a, b, strict=True))


def physical_root(node: Node) -> Node:
    """The node that owns the memory of `node`: follows view ops to a node that is not a view."""
    while node.op == "call_function" and isinstance(node.target, Op) and node.target.kind.name == "VIEW":
        node = node.args[0]
    return node
