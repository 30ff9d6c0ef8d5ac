"""Folding of batch norm under inference: a scale of the channels of a convolution's result becomes part of its weight.

Under inference batch norm is `conv * scale + shift` with a scale and a shift for each channel, which depend on tensors of the
module alone. `conv(x, w) * scale` is `conv(x, w * scale)`; the scaled weight is the same in every call, so that a backend can keep
it. The shift stays: it is a bias of the convolution.
"""

from __future__ import annotations

from collections.abc import Collection

from eager.optable.table import OPS, Op
from fxir.ir.graph import Graph, emit, spec
from fxir.ir.node import Node, walk_nodes


def fold_batch_norm(graph: Graph) -> int:
    """Multiply weights instead of results where the factor depends on tensors of the module; returns the number of convolutions.

    Only graphs for inference change (those with a signature): in training the weight is new in every call.
    """
    if graph.signature is None or graph.shapes is not None:
        return 0
    fixed = _fixed(graph)
    outputs = set(walk_nodes(graph.output_node.args))
    folded = 0
    for node in graph.in_order():
        conv, scale = _scaled(node, fixed)
        if conv is None or scale is None or conv in outputs or len(conv.users) != 1:
            continue
        _fold(graph, node, conv, scale)
        folded += 1
    return folded


def _fixed(graph: Graph) -> set[Node]:
    """Nodes that depend on nothing but parameters and buffers of modules, and lifted tensors."""
    signature = graph.signature
    assert signature is not None
    found = {graph.placeholders[i] for i in signature.unwritten}
    for node in graph.in_order():
        if node.op == "get_attr" or (node.op == "call_function" and node.inputs and found.issuperset(node.inputs)):
            found.add(node)
    return found


def _scaled(node: Node, fixed: Collection[Node]) -> tuple[Node | None, Node | None]:
    """(convolution, scale of its channels) if `node` is their product."""
    if not _is(node, "mul"):
        return None, None
    for conv, scale in (node.args[:2], node.args[1::-1]):
        if _is(conv, "convolution") and isinstance(scale, Node) and scale in fixed and conv.args[1] in fixed and _fits(conv, scale, node):
            return conv, scale
    return None, None


def _fits(conv: Node, scale: Node, product: Node) -> bool:
    y, s = spec(conv), spec(scale)
    if s.dtype is not y.dtype or spec(product) != y or not y.dtype.is_floating_point:
        return False
    *_, transposed, _, groups = conv.args
    per_channel = s.ndim == y.ndim and s.shape == (1, y.shape[1], *(1,) * (y.ndim - 2))
    return per_channel and not (transposed and groups != 1)


def _fold(graph: Graph, product: Node, conv: Node, scale: Node) -> None:
    x, weight, bias, *more = conv.args
    origin, ndim, channels = conv.info.origin, spec(conv).ndim, spec(conv).shape[1]
    transposed = more[3]
    shape = (1, channels, *(1,) * (ndim - 2)) if transposed else (channels, *(1,) * (ndim - 1))
    with graph.inserting_before(product):
        factor = emit(graph, OPS["view"], scale, shape, origin=origin)
        weight = emit(graph, OPS["mul"], weight, factor, origin=origin)
        if bias is not None:
            bias = emit(graph, OPS["mul"], bias, emit(graph, OPS["view"], scale, (channels,), origin=origin), origin=origin)
        folded = emit(graph, OPS["convolution"], x, weight, bias, *more, origin=origin)
    product.replace_all_uses_with(folded)
    graph.erase_node(product)
    graph.erase_node(conv)


def _is(x: object, name: str) -> bool:
    return isinstance(x, Node) and x.op == "call_function" and isinstance(x.target, Op) and x.target.name == name
