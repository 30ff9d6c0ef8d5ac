"""The backward engine: chooses the nodes of the reverse graph to run, and runs the nodes with hooks or targets.

The loop itself is native (`_native.run_backward`): every node runs once, when all gradients of its outputs have been summed,
latest node first. With `inputs`, only the nodes on a path to one of them run.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from eager import _native
from eager.base.spec import TensorSpec
from eager.tape import hooks
from eager.tape.node import AccumulateGrad, FunctionNode, Node, add_gradient, edge_of
from eager.tape.state import anomaly, per_thread

TensorBase = _native.TensorBase
Target = tuple[Node, int]
BEFORE: list[Callable[[], None]] = []  # called before the first node of each pass that no other pass contains


class GradientEdge(NamedTuple):
    """A place in the graph that a gradient flows to: output `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def _as_list(x: Any) -> list[Any]:
    given = [x] if isinstance(x, (TensorBase, GradientEdge)) or x is None else list(x)
    return [t._recorded() if isinstance(t, TensorBase) else t for t in given]


def _target(t: Any) -> Target | None:
    return (t.node, t.output_nr) if isinstance(t, GradientEdge) else edge_of(t)


def _known(spec: TensorSpec | None) -> TensorSpec:
    if spec is None:
        raise RuntimeError("this GradientEdge is of an output that is not a tensor")
    return spec


def _shape_text(shape: Iterable[int]) -> str:
    return f"torch.Size({list(shape)})"


def _check_gradient(i: int, y: Any, g: Any, batched: bool) -> None:
    """Raise RuntimeError where `g` cannot be the gradient of `y`, with torch's texts."""
    given = tuple(g.shape)[1:] if batched else tuple(g.shape)
    if given != tuple(y.shape):
        if batched:
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                               "dimension. The sizes of the remaining dimensions are expected to match the shape of "
                               f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                               f"{_shape_text(g.shape)} and output[{i}] has a shape of {_shape_text(y.shape)}. If you only want "
                               "some tensors in `grad_output` to be considered batched, consider using vmap.")  # fmt: skip
        raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {_shape_text(g.shape)} and output[{i}] has a "
                           f"shape of {_shape_text(y.shape)}.")  # fmt: skip
    if y.dtype.is_complex != g.dtype.is_complex:
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                           f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {y.dtype}.")  # fmt: skip


def _root_gradients(outputs: list[Any], given: list[Any], batched: bool = False) -> list[Any]:
    """The gradient to start from at each output: as given, or 1 for a scalar."""
    if len(outputs) != len(given):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    result = []
    for i, (y, g) in enumerate(zip(outputs, given, strict=True)):
        if isinstance(y, GradientEdge):
            spec = y.node.output_specs[y.output_nr]
            if g is None and (spec is None or spec.numel() != 1):
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            result.append(hooks.ones(_known(spec)) if g is None else g)
            continue
        if not isinstance(y, TensorBase):
            raise TypeError(f"expected Tensors or GradientEdges to differentiate, got {type(y).__name__}")
        if not y._requires_grad:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g is None:
            if y.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if y.dtype.is_complex:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {y.dtype}")
            g = hooks.ones(y)
        elif not isinstance(g, TensorBase):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        else:
            _check_gradient(i, y, g, batched)
        result.append(g)
    return result


def reachable(roots: Sequence[Node]) -> tuple[dict[Node, int], list[Node]]:
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
    """One backward pass. targets: where gradients are collected instead of added into leaves."""

    def __init__(self, retain: bool, targets: dict[Target, int] | None, accumulate: bool = False) -> None:
        self.retain = retain
        self.targets = targets
        self.accumulate = accumulate  # leaves among the targets get their `.grad` as well
        self.captured: list[Any] = [None] * (len(targets) if targets else 0)
        self.needed: set[Node] | None = None

    def execute(self, deliveries: list[tuple[Node, int, Any]]) -> None:
        """Run the graph from the gradients that are there to begin with."""
        special = None
        if self.targets is not None:
            special = {node for node, _ in self.targets}
            self.needed = _leading_to(reachable(list(dict.fromkeys(node for node, _, _ in deliveries)))[1], special)
        _native.run_backward(deliveries, self.retain, self.needed, special, self._step)

    def _step(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        """Run a node that has hooks or targets: collect its gradients, call its hooks, and apply it if a later node needs it."""
        needed = self.needed
        inside = isinstance(node, FunctionNode) and node.feeding and self._needs_inner_gradient(node, grads)
        if not inside:
            hooks.run_tensor_hooks(node, grads)
        if not inside and needed is not None and self._collect(node, grads) and (
                not self.accumulate if isinstance(node, AccumulateGrad) else not any(
                    e is not None and e[0] in needed for e in node.edges)):  # fmt: skip
            return ()
        if node.pre_hooks:
            hooks.run_prehooks(node, grads)
        wanted = [e is not None and (needed is None or e[0] in needed) for e in node.edges]
        before, per_thread.running = per_thread.running, node
        try:
            result = self._inside(node, grads, wanted) if inside else node.apply(grads, wanted)
            if anomaly.enabled and anomaly.check_nan:
                hooks.refuse_nan(node, result)
        except Exception:
            if anomaly.enabled:
                warnings.warn(hooks.forward_trace(node), stacklevel=2)
            raise
        finally:
            per_thread.running = before
        if node.hooks:
            result = hooks.run_posthooks(node, result, grads)
        if not self.retain:
            node.release()
        return result

    def _needs_inner_gradient(self, node: FunctionNode, grads: list[Any]) -> bool:
        """Whether a hook or target needs the gradient of an output that feeds another output with a gradient."""
        asked = {*(node.tensor_hooks or ()), *(node.retained or ()), *(k for n, k in self.targets or () if n is node)}
        return any(node.feeding >> k & 1 and any(g is not None and i != k for i, g in enumerate(grads)) for k in asked)

    def _inside(self, node: Any, grads: list[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        """`apply` of a node whose outputs are made of one another: hooks and targets are within it."""

        def passing(k: int) -> Callable[[Any], Any]:
            def hook(g: Any) -> Any:
                alone = [g if i == k else None for i in range(len(grads))]
                hooks.run_tensor_hooks(node, alone)
                return alone[k]

            return hook

        targets = {k: at for (n, k), at in (self.targets or {}).items() if n is node}
        hooked = {*(node.tensor_hooks or ()), *(node.retained or ())}
        result, found = node.backward.inside(grads, {k: passing(k) for k in hooked}, list(targets), wanted)
        for at, g in zip(targets.values(), found, strict=True):
            self.captured[at] = g
        return result  # type: ignore[no-any-return]

    def _collect(self, node: Node, grads: list[Any]) -> bool:
        """Keep the gradients of the targets at `node`. Returns: whether `node` has a target."""
        assert self.targets is not None
        hit = False
        for i, g in enumerate(grads):
            at = self.targets.get((node, i))
            if at is not None:
                self.captured[at] = g
                hit = True
        return hit


def _run(outputs: list[Any], grads: list[Any], retain: bool, create_graph: bool, targets: dict[Target, int] | None,
         accumulate: bool = False) -> list[Any]:  # fmt: skip
    run = _Run(retain, targets, accumulate)
    before = _native.set_grad_enabled(create_graph)
    outermost = per_thread.callbacks is None
    if outermost:
        per_thread.callbacks = []
    try:
        for prepare in BEFORE if outermost else ():
            prepare()
        deliveries = []
        for y, g in zip(outputs, grads, strict=True):
            edge = _target(y)
            assert edge is not None
            deliveries.append((*edge, g))
        state_before = per_thread.roots, per_thread.collecting
        per_thread.roots, per_thread.collecting = tuple(dict.fromkeys(node for node, _, _ in deliveries)), targets is not None
        try:
            run.execute(deliveries)
        finally:
            per_thread.roots, per_thread.collecting = state_before
        while outermost and per_thread.callbacks:
            per_thread.callbacks.pop(0)()
    finally:
        if outermost:
            per_thread.callbacks = None
        _native.set_grad_enabled(before)
    return run.captured


def in_backward() -> bool:
    """Whether this thread runs a backward pass."""
    return per_thread.callbacks is not None


def queue_callback(fn: Callable[[], None]) -> None:
    """Call `fn` when the running backward pass is done. Raises RuntimeError outside of one."""
    if per_thread.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    per_thread.callbacks.append(fn)


def _check_switches(**switches: Any) -> None:
    """Raise TypeError unless each switch is a bool, None, or an int in [0, 256), which torch reads as a bool."""
    for name, value in switches.items():
        if value is not None and not (isinstance(value, int) and 0 <= value < 256):
            raise TypeError(f"argument '{name}' must be bool, not {type(value).__name__}")


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:  # fmt: skip
    """Add the gradients of `tensors` into the `.grad` of the leaves they depend on (or of `inputs` only).

    grad_tensors: one per tensor, of its shape; None means 1 for a single-element tensor.
    inputs: tensors or GradientEdges; a tensor that is not a leaf gets a `.grad` too.
    Raises: RuntimeError if a tensor has no history or a gradient is missing or of another shape.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                               "only use `grad_tensors`.")  # fmt: skip
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    if type(create_graph) is not bool or retain_graph is not None:
        _check_switches(retain_graph=retain_graph, create_graph=create_graph)
    outputs = _as_list(tensors)
    given = [None] * len(outputs) if grad_tensors is None else _as_list(grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _run(outputs, _root_gradients(outputs, given), retain, create_graph, None)
        return
    wanted = _as_list(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _root_gradients(outputs, given)
    found = _gradients(outputs, wanted, roots, retain, create_graph, accumulate=True)
    before = _native.set_grad_enabled(create_graph)
    try:
        for t, g in zip(wanted, found, strict=True):
            if g is not None and isinstance(t, TensorBase) and t._grad_fn is not None:
                add_gradient(t, g)
    finally:
        _native.set_grad_enabled(before)


def _gradients(outputs: list[Any], inputs: list[Any], roots: list[Any], retain: bool, create_graph: bool,
               accumulate: bool = False) -> list[Any]:  # fmt: skip
    """The gradient at each of `inputs` (None where nothing reached it); equal inputs get the same."""
    targets: dict[Target, int] = {}
    position = []
    for x in inputs:
        edge = _target(x)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        position.append(targets.setdefault(edge, len(targets)))
    captured = _run(outputs, roots, retain, create_graph, targets, accumulate)
    return [captured[at] for at in position]


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone.

    outputs, inputs: tensors or GradientEdges. grad_outputs: one per output, of its shape; with
    `is_grads_batched` (b, *shape), and every result gets that leading dim.
    Raises: RuntimeError for no inputs, and for an input that the outputs do not depend on, unless `allow_unused` (None for it) or
    `materialize_grads` (zeros for it).
    """
    _check_switches(retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused, materialize_grads=materialize_grads)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")  # fmt: skip
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
                      "other parts of the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)  # fmt: skip
    ys, xs = _as_list(outputs), _as_list(inputs)
    if not xs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = [None] * len(ys) if grad_outputs is None else _as_list(grad_outputs)
    roots = _root_gradients(ys, given, is_grads_batched)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        result = list(hooks.batched(lambda *gs: _gradients(ys, xs, list(gs), True, create_graph), roots))
    else:
        result = _gradients(ys, xs, roots, retain, create_graph)
    for i, (x, g) in enumerate(zip(xs, result, strict=True)):
        if g is None and materialize_grads:
            result[i] = hooks.zeros(_known(x.node.output_specs[x.output_nr]) if isinstance(x, GradientEdge) else x)
        elif g is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                               "allow_unused=True if this is the desired behavior.")  # fmt: skip
    return tuple(result)


__all__ = ["GradientEdge", "backward", "grad", "in_backward", "queue_callback", "reachable"]
