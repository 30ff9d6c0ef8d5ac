"""The engine: runs the reverse graph, latest node first, and delivers gradients.

Every node runs once, when all gradients of its outputs have been summed. With `inputs`, only the
nodes on a path to one of them run.
"""
from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.autograd.node import AccumulateGrad, Node, edge_of

TensorBase = _native.TensorBase


def _as_list(x: Any) -> list[Any]:
    return [x] if isinstance(x, TensorBase) or x is None else list(x)


def _root_gradients(outputs: list[Any], given: list[Any], create_graph: bool) -> list[Any]:
    """The gradient to start from at each output: as given, or 1 for a scalar."""
    result = []
    for y, g in zip(outputs, given, strict=True):
        if not y._requires_grad:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        if g is None:
            if y.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = y.new_ones(tuple(y.shape))
        elif tuple(g.shape) != tuple(y.shape):
            raise RuntimeError(f"Mismatch in shape: grad_output[0] has a shape of {tuple(g.shape)} and output[0] has a "
                               f"shape of {tuple(y.shape)}.")  # fmt: skip
        result.append(g)
    return result


def _reachable(roots: Sequence[Node]) -> tuple[dict[Node, int], list[Node]]:
    """Number of edges into each reachable node, and the nodes in the order found."""
    degree: dict[Node, int] = dict.fromkeys(roots, 0)
    order = list(degree)
    for node in order:
        for edge in node.edges:
            if edge is None:
                continue
            if edge[0] not in degree:
                degree[edge[0]] = 0
                order.append(edge[0])
            degree[edge[0]] += 1
    return degree, order


def _leading_to(order: Sequence[Node], targets: set[Node]) -> set[Node]:
    """Nodes from which a target can be reached, targets included."""
    leads = set(targets)
    parents: dict[Node, list[Node]] = {}
    for node in order:
        for edge in node.edges:
            if edge is not None:
                parents.setdefault(edge[0], []).append(node)
    stack = list(targets)
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in leads:
                leads.add(parent)
                stack.append(parent)
    return leads


class _Run:
    """One backward pass."""

    def __init__(self, retain: bool, capture: dict[tuple[Node, int], int] | None, count: int) -> None:
        self.retain = retain
        self.capture = capture
        self.captured: list[Any] = [None] * count
        self.buffers: dict[Node, list[Any]] = {}

    def add(self, node: Node, index: int, g: Any) -> None:
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.output_specs)
        old = buffer[index]
        buffer[index] = g if old is None else old + g

    def execute(self, roots: Sequence[Node]) -> None:
        degree, order = _reachable(roots)
        needed = None
        if self.capture is not None:
            needed = _leading_to(order, {node for node, _ in self.capture})
        waiting = dict(degree)
        ready = [(-n.sequence, id(n), n) for n in order if degree[n] == 0]
        heapq.heapify(ready)
        while ready:
            node = heapq.heappop(ready)[2]
            grads = self._step(node, needed)
            for i, edge in enumerate(node.edges):
                if edge is None:
                    continue
                child, index = edge
                g = grads[i] if i < len(grads) else None
                if g is not None:
                    self.add(child, index, g)
                waiting[child] -= 1
                if waiting[child] == 0:
                    heapq.heappush(ready, (-child.sequence, id(child), child))

    def _step(self, node: Node, needed: set[Node] | None) -> Sequence[Any]:
        grads = self.buffers.pop(node, None)
        if grads is None or (needed is not None and node not in needed):
            return ()
        self._before(node, grads)
        if self.capture is not None:
            hit = False
            for i in range(len(grads)):
                at = self.capture.get((node, i))
                if at is not None:
                    self.captured[at] = grads[i]
                    hit = True
            if isinstance(node, AccumulateGrad) or (hit and not any(
                e is not None and needed is not None and e[0] in needed for e in node.edges)):  # fmt: skip
                return ()
        wanted = [e is not None and (needed is None or e[0] in needed) for e in node.edges]
        result = node.apply(grads, wanted)
        if node.hooks:
            for hook in list(node.hooks.values()):
                replaced = hook(tuple(result), tuple(grads))
                if replaced is not None:
                    result = replaced
        if not self.retain:
            node.release()
        return result

    def _before(self, node: Node, grads: list[Any]) -> None:
        """Hooks of the tensors that this node made, then `retain_grad`, then prehooks of the node."""
        hooks = node.tensor_hooks
        if isinstance(node, AccumulateGrad) and node.variable._autograd is not None and node.variable._autograd.hooks:
            hooks = {0: node.variable._autograd.hooks}
        for index, by_id in (hooks or {}).items():
            for hook in list(by_id.values()):
                if grads[index] is not None:
                    replaced = hook(grads[index])
                    if replaced is not None:
                        grads[index] = replaced
        for index, ref in (node.retained or {}).items():
            t = ref()
            if t is not None and grads[index] is not None:
                t._grad = grads[index] if t._grad is None else t._grad + grads[index]
        for prehook in list((node.pre_hooks or {}).values()):
            replaced = prehook(tuple(grads))
            if replaced is not None:
                grads[:] = replaced


def _run(outputs: list[Any], grads: list[Any], retain: bool, create_graph: bool,
         capture: dict[tuple[Node, int], int] | None, count: int) -> list[Any]:  # fmt: skip
    run = _Run(retain, capture, count)
    roots: dict[Node, None] = {}
    before = _native.set_grad_enabled(create_graph)
    try:
        for y, g in zip(outputs, grads, strict=True):
            edge = edge_of(y)
            assert edge is not None
            run.add(*edge, g)
            roots[edge[0]] = None
        run.execute(list(roots))
    finally:
        _native.set_grad_enabled(before)
    return run.captured


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:  # fmt: skip
    """Add the gradients of `tensors` into the `.grad` of the leaves they depend on (or of `inputs` only).

    grad_tensors: one per tensor, of its shape; None means 1 for a single-element tensor.
    Raises: RuntimeError if a tensor has no history or a gradient is missing or of another shape.
    """
    outputs = _as_list(tensors)
    given = [None] * len(outputs) if grad_tensors is None else _as_list(grad_tensors)
    roots = _root_gradients(outputs, given, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _run(outputs, roots, retain, create_graph, None, 0)
        return
    targets = _as_list(inputs)
    for t, g in zip(targets, _gradients(outputs, targets, roots, retain, create_graph), strict=True):
        if g is not None:
            AccumulateGrad(t).apply([g], ())


def _gradients(outputs: list[Any], inputs: list[Any], roots: list[Any], retain: bool, create_graph: bool) -> list[Any]:
    capture: dict[tuple[Node, int], int] = {}
    duplicates: list[tuple[int, int]] = []
    for i, x in enumerate(inputs):
        edge = edge_of(x)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        if edge in capture:
            duplicates.append((i, capture[edge]))
        else:
            capture[edge] = i
    captured = _run(outputs, roots, retain, create_graph, capture, len(inputs))
    for i, first in duplicates:
        captured[i] = captured[first]
    return captured


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone.

    Raises: RuntimeError for an input that the outputs do not depend on, unless `allow_unused`.
    """
    if not only_inputs:
        raise ValueError("grad(): only_inputs=False is deprecated; use autograd.backward")
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched is not implemented")
    ys, xs = _as_list(outputs), _as_list(inputs)
    given = [None] * len(ys) if grad_outputs is None else _as_list(grad_outputs)
    roots = _root_gradients(ys, given, create_graph)
    result = _gradients(ys, xs, roots, create_graph if retain_graph is None else retain_graph, create_graph)
    if materialize_grads:
        return tuple(x.new_zeros(tuple(x.shape)) if g is None else g for x, g in zip(xs, result, strict=True))
    if not allow_unused and any(g is None for g in result):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. "
                           "Set allow_unused=True if this is the desired behavior.")  # fmt: skip
    return tuple(result)


__all__ = ["backward", "grad"]
