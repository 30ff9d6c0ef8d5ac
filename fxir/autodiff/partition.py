"""Splits a joint graph into a forward and a backward graph with the fewest saved bytes.

The saved values are a minimum cut: every value that the backward needs is either saved, at the cost of its bytes, or recomputed
from saved values. Pointwise ops and views are recomputed; matmuls, reductions, random draws and other expensive ops are not.
Idea: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, as a flow problem.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Final

from eager.base.records import dataclass
from eager.base.spec import TensorSpec
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from fxir.autodiff.joint import Joint
from fxir.base.maxflow import INFINITE, FlowNetwork
from fxir.expr.rules import Sym
from fxir.ir.graph import Graph, GraphSignature, emit, emit_reshape, infer, physical_root, spec
from fxir.ir.node import Node, NodeInfo
from fxir.symbols.shapes import ShapeEnv

_RECOMPUTABLE: Final = frozenset({Kind.POINTWISE, Kind.VIEW, Kind.CREATION})


@dataclass(frozen=True, slots=True)
class Saved:
    """The place where the forward's wrapper finds a saved value: ("input", i), ("output", k) or ("extra", k).

    "output" counts all outputs of the forward graph; an "extra" output exists only to save a value.
    """

    place: str
    index: int


@dataclass(frozen=True, slots=True)
class Partition:
    """forward: inputs -> outputs and extra outputs. backward: saved values and tangents -> gradients.

    grads: for each gradient of the joint graph, the backward output or input that holds it: ("output", k), ("input", k), or
    None for an input without a gradient. saved: one per leading input of the backward graph; its tangents follow, then an int
    for each of `symbols`, which no tensor among its inputs gives. saved_bytes: of the extra outputs. states: per effect of the
    forward the position among `saved` of the effect's result, None if no gradient needs it.
    """

    forward: Graph
    backward: Graph
    saved: tuple[Saved, ...]
    grads: tuple[tuple[str, int] | None, ...]
    saved_bytes: int
    symbols: tuple[Sym, ...] = ()
    states: tuple[int | None, ...] = ()


def partition(joint: Joint, *, recompute: bool = True) -> Partition:
    """Split `joint`. recompute=False saves every value that backward reads, as eager does."""
    cut = _Cut(joint, recompute)
    kept = cut.choose()
    forward, saved, by_node, size = _forward(joint, cut, kept)
    backward, grads, symbols = _backward(joint, by_node)
    states = tuple(kept.index(n) if n in kept else None for n in joint.forward_effects)
    return Partition(forward, backward, saved, grads, size, symbols, states)


class _Cut:
    """The roles of the joint graph's nodes, and the choice of the saved values."""

    def __init__(self, joint: Joint, recompute: bool) -> None:
        self.joint = joint
        self.recompute = recompute
        self.backward_only = _backward_only(joint)
        self.forward = ancestors([*joint.forward_outputs, *joint.forward_effects])
        gradients = [g for g in joint.grads if g is not None]
        users = [n for n in joint.graph.in_order() if n in self.backward_only]
        wanted = [n for u in users for n in u.inputs] + gradients
        self.read_by_backward = {n for n in wanted if n not in self.backward_only}
        needed = ancestors(self.read_by_backward)
        self.needed = [n for n in joint.graph.in_order() if n in needed]
        self.primals = {n: i for i, n in enumerate(joint.primals)}
        self.mutated_inputs = {joint.primals[i] for i in joint.mutated_inputs}
        self.outputs = {n: i for i, n in enumerate(joint.forward_outputs)}
        self.output_roots = {physical_root(n) for n in joint.forward_outputs}
        self.eager_keeps = {physical_root(n) for n in self.read_by_backward}
        self.operands = {physical_root(i) for n in self.forward if _is_opaque(n) for i in n.inputs}

    def in_place_of(self, node: Node) -> Saved | None:
        """The place where `node` is held anyway and may be saved by reference, with a check of its version.

        An input: as in torch, a later write to it makes backward raise, even where eager would not have saved that tensor. An
        output that eager saves too: users write to results, as in `fn(x).add_(1)`.
        """
        if node in self.primals and node not in self.mutated_inputs:
            return Saved("input", self.primals[node])
        position = self.outputs.get(node, -1) if node in self.eager_keeps else -1
        return Saved("output", position) if position >= len(self.joint.mutated_inputs) else None

    def shares_memory(self, node: Node) -> bool:
        """Whether saving `node` needs a copy, because the caller can write to its memory."""
        root = physical_root(node)
        return root.op == "placeholder" or root in self.output_roots or root is not node

    def price(self, node: Node) -> int:
        """The cost of saving `node`, in bytes. An input, the result of a product or a reduction, and an operand of a product are in
        memory in any case. Another pointwise value, or a copy of memory that the caller can write to, is stored only to be saved,
        and costs an eighth more.
        """
        if not isinstance(node.info.spec, TensorSpec) or node.op == "get_attr":
            return INFINITE
        root = physical_root(node)
        shapes = self.joint.graph.shapes
        if root is not node and (root.op == "get_attr" or size_bytes(spec(node), shapes) >= size_bytes(spec(root), shapes)):
            return INFINITE  # recomputed from its root, at no cost
        place = self.in_place_of(node)
        if place is not None and node in self.eager_keeps:
            return 1
        size = size_bytes(spec(node), shapes)
        is_extra = place is None and (self.shares_memory(node) or not (self.fixed(node) or node in self.operands))
        return 1 + size + (size // 8 if is_extra else 0)

    def fixed(self, node: Node) -> bool:
        """Whether the forward pass must compute `node` and backward must not."""
        if node.op == "placeholder":
            return True
        if node not in self.forward or node.op == "get_attr" or node.target is operator.getitem:
            return False
        if not self.recompute and not is_view(node):
            return True
        return not (isinstance(node.target, Op) and node.target.kind in _RECOMPUTABLE)

    def choose(self) -> list[Node]:
        """The nodes to save, in program order."""
        number = {n: i for i, n in enumerate(self.needed)}
        source, sink = 2 * len(number), 2 * len(number) + 1
        network = FlowNetwork(2 * len(number) + 2)
        for n, i in number.items():
            network.add_edge(2 * i, 2 * i + 1, self.price(n))
            if self.fixed(n):
                network.add_edge(source, 2 * i, INFINITE)
            for used in n.inputs:
                network.add_edge(2 * number[used] + 1, 2 * i, INFINITE)
            if n in self.read_by_backward:
                network.add_edge(2 * i + 1, sink, INFINITE)
        network.max_flow(source, sink)
        late = network.reaching(sink)
        # A second-order gradient recomputes the forward from the random states that it drew, and repeats no assertion.
        drawn = {n for n in self.joint.forward_effects if not getattr(n.target, "fallible", False)}
        return [n for n, i in number.items() if n in drawn or (2 * i not in late and 2 * i + 1 in late)]


def size_bytes(s: TensorSpec, shapes: ShapeEnv | None = None) -> int:
    """Bytes of a dense tensor of this spec; for a symbolic spec, bytes at capture."""
    sizes = s.shape if shapes is None else [shapes.hint(n) for n in s.shape]
    return math.prod(sizes) * int(s.dtype.itemsize)


def is_view(node: Node) -> bool:
    """Whether a node is a view op's call."""
    return isinstance(node.target, Op) and node.target.kind is Kind.VIEW


def _is_opaque(node: Node) -> bool:
    return isinstance(node.target, Op) and node.target.kind is Kind.OPAQUE


def ancestors(nodes: Iterable[Node]) -> set[Node]:
    """The nodes and all nodes that they depend on."""
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack.extend(n.inputs)
    return seen


def _backward_only(joint: Joint) -> set[Node]:
    """Nodes that depend on a tangent, or on an effect that happens during backward."""
    found: set[Node] = set(joint.tangents)
    for n in joint.graph.in_order():
        if n.op == "output":
            continue
        if n in joint.backward_effects or any(i in found for i in n.inputs):
            found.add(n)
    return found


def _forward(joint: Joint, cut: _Cut, kept: list[Node]) -> tuple[Graph, tuple[Saved, ...], dict[Node, NodeInfo], int]:
    graph = _like(joint.graph)
    graph.symbols = {s: source for s, source in joint.graph.symbols.items() if source.is_number}
    env: dict[Node, Node] = {n: graph.copy_node(n, lambda a: a) for n in joint.primals}
    wanted = ancestors([*joint.forward_outputs, *joint.forward_effects, *kept])
    for n in joint.graph.in_order():
        if n in wanted and n not in env:
            env[n] = graph.copy_node(n, env.__getitem__)
    outputs = [env[n] for n in joint.forward_outputs]
    saved: list[Saved] = []
    extras: list[Node] = []
    arrives: dict[Node, NodeInfo] = {}  # a view with gaps is saved without them
    for n in kept:
        place = cut.in_place_of(n)
        if place is None:
            value = env[n]
            if cut.shares_memory(n):
                value = emit(graph, OPS["clone"], value, None, origin=n.info.origin)
            place = Saved("extra", len(extras))
            extras.append(value)
            arrives[n] = n.info.with_(spec=spec(value))
        saved.append(place)
        arrives.setdefault(n, n.info)
    graph.output((*outputs, *extras))
    n_user = len(outputs) - len(joint.mutated_inputs)
    graph.signature = GraphSignature(joint.mutated_inputs, n_user, len(extras), joint.parameters, joint.may_write)
    _drop_unused_constants(graph)
    if graph.shapes is not None:
        graph.find_symbols()
    return graph, tuple(saved), arrives, sum(size_bytes(spec(e), graph.shapes) for e in extras)


def _like(graph: Graph) -> Graph:
    """An empty graph over the same carried values and environment of symbols."""
    new = Graph(dict(graph.root))
    new.shapes = graph.shapes
    return new


def _backward(
    joint: Joint, kept: dict[Node, NodeInfo]
) -> tuple[Graph, tuple[tuple[str, int] | None, ...], tuple[Sym, ...]]:
    """The graph from saved values and tangents to gradients; a recomputed value is placed directly before its first reader."""
    graph = _like(joint.graph)
    env: dict[Node, Node] = {}
    inputs: dict[Node, int] = {}
    for n, info in (*kept.items(), *((t, t.info) for t in joint.tangents)):
        env[n] = graph.placeholder(n.name, info=info)
        inputs[env[n]] = len(inputs)

    def place(node: Node) -> None:
        stack = [node]
        while stack:
            n = stack[-1]
            missing = [i for i in n.inputs if i not in env]
            if n in env or not missing:
                stack.pop()
                if n not in env:
                    env[n] = graph.copy_node(n, env.__getitem__)
            else:
                stack.extend(reversed(missing))

    only = _backward_only(joint)
    live = ancestors([g for g in joint.grads if g is not None]) | set(joint.backward_effects)
    for n in joint.graph.in_order():
        if n in only and n in live and n.op != "placeholder":
            place(n)
    outputs: dict[Node, int] = {}
    grads: list[tuple[str, int] | None] = []
    for g in joint.grads:
        if g is None:
            grads.append(None)
            continue
        place(g)
        new = env[g]
        grads.append(("input", inputs[new]) if new in inputs else ("output", outputs.setdefault(new, len(outputs))))
    graph.output(tuple(outputs))
    unwritten = {joint.primals[i] for i in set(joint.parameters).difference(joint.mutated_inputs)}
    parameters = tuple(i for i, (n, info) in enumerate(kept.items()) if n in unwritten and info == n.info)
    graph.signature = GraphSignature(n_user_outputs=len(outputs), parameters=parameters)
    _drop_unused_constants(graph)
    if any(info != n.info for n, info in kept.items()):
        _infer_again(graph)
    return graph, tuple(grads), _add_symbols(graph)


def _add_symbols(graph: Graph) -> tuple[Sym, ...]:
    """Add int placeholders, after the others, for the symbols that no tensor placeholder gives."""
    if graph.shapes is None:
        return ()
    missing = tuple(sorted(graph.find_symbols(), key=lambda s: s.name))
    for s in missing:
        graph.add_number_input(s, "int")
    return missing


def _infer_again(graph: Graph) -> None:
    """Infer specs again from inputs with other strides. A view that the new strides do not allow becomes a reshape."""
    for n in graph.in_order():
        if n.op != "call_function":
            continue
        if n.target is operator.getitem:
            whole = n.args[0].info.spec
            n.info = n.info.with_(spec=whole[n.args[1]])
        elif isinstance(n.target, Op):
            try:
                n.info = n.info.with_(spec=infer(n.target, n.args, graph.shapes))
            except RuntimeError:
                if n.target is not OPS["view"]:
                    raise
                with graph.inserting_before(n):
                    n.replace_all_uses_with(emit_reshape(graph, n.args[0], tuple(n.args[1])))
                graph.erase_node(n)
    graph.touch()


def _drop_unused_constants(graph: Graph) -> None:
    used = {str(n.target) for n in graph.in_order() if n.op == "get_attr"}
    for key in [k for k in graph.root if k not in used]:
        del graph.root[key]
    graph.touch()
