"""Channels-last memory for convolution networks.

A convolution reads and writes images fastest when the channels of a pixel are contiguous. The pass gives each convolution an input
in that format. The results that follow take the format over by the rules of eager's own strides, so that copies are left only
where the network begins, where an op needs the strides that it was traced with, and at the outputs of the graph, whose strides a
caller sees.
"""

from __future__ import annotations

from typing import Final

from eager.base.spec import TensorSpec, channels_last_strides, contiguous_strides, is_dense
from eager.optable.table import Op
from fxir.ir.graph import Graph, emit_layout, infer, same_layout, spec
from fxir.ir.node import Node, map_nodes, walk_nodes

IMAGES: Final = {"convolution": (0,), "conv_weight": (0, 1)}  # the arguments of an op that are read as images


def channels_last(graph: Graph) -> int:
    """Give the images of convolutions channels-last memory; returns the number of nodes whose strides changed.

    Graphs with symbolic sizes do not change: the choice between two formats would need guards on the sizes.
    """
    if graph.shapes is not None or not any(_images(n) for n in graph.in_order()):
        return 0
    if not all(is_dense(s.shape, s.strides) for n in walk_nodes(graph.output_node.args) if isinstance(s := n.info.spec, TensorSpec)):
        return 0  # a copy has no gaps
    return _Relayout(graph).run()


def _images(node: Node) -> list[Node]:
    """The arguments that `node` reads as images of two dims."""
    if node.op != "call_function" or not isinstance(node.target, Op) or node.target.name not in IMAGES:
        return []
    found = [node.args[i] for i in IMAGES[node.target.name]]
    return found if all(_is_image(x.info.spec) for x in found) else []


def _is_image(s: object) -> bool:
    return isinstance(s, TensorSpec) and s.ndim == 4 and s.dtype.is_floating_point and 0 not in s.shape


class _Relayout:
    """One run of the pass. traced: the spec of each node before it; copies: the nodes with these strides again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.traced = {n: n.info.spec for n in graph.in_order()}
        self.copies: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def run(self) -> int:
        for node in self.graph.in_order():
            if node.op == "call_function":
                self._visit(node)
        output = self.graph.output_node
        with self.graph.inserting_before(output):
            output.args = map_nodes(output.args, self._as_traced)
        return sum(traced != node.info.spec for node, traced in self.traced.items())

    def _visit(self, node: Node) -> None:
        if not isinstance(node.target, Op):  # an item of several results
            of, item = node.args
            node.info = node.info.with_(spec=of.info.spec[item])
            return
        images = _images(node)
        with self.graph.inserting_before(node):
            moved = {x: self._in_strides(x, channels_last_strides(spec(x).shape)) for x in images}
        if images:
            node.args = map_nodes(node.args, lambda n: moved.get(n, n))
        if all(self.traced.get(n) == n.info.spec for n in node.inputs):
            return
        if node.target.name == "as_strided" or self._inferred(node) is None:
            with self.graph.inserting_before(node):
                node.args = map_nodes(node.args, self._as_traced)
        found = self._inferred(node)
        node.info = node.info.with_(spec=self.traced[node] if found is None else found)

    def _inferred(self, node: Node) -> object:
        """The spec of the call, or None if its strides do not allow it."""
        op = node.target
        assert isinstance(op, Op)
        try:
            return infer(op, tuple(node.args))
        except RuntimeError:  # torch's class for "view size is not compatible with the strides"
            return None

    def _as_traced(self, x: Node) -> Node:
        had = self.traced.get(x)
        return x if not isinstance(had, TensorSpec) or had == x.info.spec else self._in_strides(x, had.strides)

    def _in_strides(self, x: Node, strides: tuple[int, ...]) -> Node:
        s = spec(x)
        if same_layout(s.shape, s.strides, strides):
            return x
        made = self.copies.get((x, strides))
        if made is None:
            wanted = strides if is_dense(s.shape, strides) else contiguous_strides(s.shape)  # which suits every view
            made = self.copies[x, strides] = emit_layout(self.graph, x, wanted)
        return made
