"""In-place ops: the checks, the write, and the histories of all tensors that share the memory.

A write through a view gives the *base* a new history: the old history outside the view, the op inside it. The other views of
that base rebuild their histories from it at their next use.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.dtypes import can_cast, scalar_name
from eager.base.overlap import check_each_element_once, check_no_overlap
from eager.base.spec import spec_of
from eager.base.warn import warn
from eager.tape.node import (
    AutogradMeta,
    Edge,
    Node,
    SavedTensor,
    edge_of,
    history_of,
    meta_of,
    op_node_class,
    set_view_regenerator,
)
from eager.tape.record import _edges

TensorBase = _native.TensorBase
_CONSTANT = frozenset({"fill"})  # one value everywhere: elements may share memory
_WARNED = frozenset({"masked_fill", "index_fill", "index_put"})  # torch writes elements that share memory, with a warning
# Ops, by their base's name, that torch refuses even if an input has the very same elements as the target.
_APART = frozenset("scatter scatter_add scatter_reduce index_add index_copy index_fill index_put put".split())
_VALUE_LAST = frozenset({"masked_fill", "index_fill"})  # their last argument is a number, read before anything is written
_ANY_OVERLAP = frozenset({"fill", "masked_scatter"})
Below = Callable[[Any, tuple[Any, ...]], Any]


_clone: Callable[[], Any]
_as_strided: Callable[[], Any]


def set_ops(clone: Callable[[], Any], as_strided: Callable[[], Any]) -> None:
    """Registered by the op table: how to find the ops that copy a tensor, and that view its memory."""
    global _clone, _as_strided
    _clone, _as_strided = clone, as_strided


def call(op: Any, args: tuple[Any, ...], below: Below) -> Any:
    """Run in-place `op` (its functional form is `op.base`) on args[0]; returns args[0]."""
    target = args[0]
    if not isinstance(target, TensorBase):
        raise TypeError(f"{op.name}: expected a Tensor to write to, got {type(target).__name__}")
    if op.decompose is not None:
        return _call_decomposed(op, args, below)
    recording = _native.grad_enabled() and target.dtype.category >= 2 and op.base.wants_grad(args)
    _check_history(target, recording)
    check_result(op, target, args)
    if not recording:
        below(op, args)
        return target
    if not op.base.vjp and not op.base.nondifferentiable:
        raise NotImplementedError(f"{op.name}: the derivative is not implemented")
    edges, needs = _edges(op.base, args)
    node = op_node_class(op.base)(op.base, args, edges, needs)
    names, _ = op.base.saved_names(needs)
    _native.set_grad_enabled(False)
    try:
        first = op.schema.params[0].name
        kept = (_copy_of(target, edges[0], below), *args[1:]) if first in names else args
        below(op, args)
    finally:
        _native.set_grad_enabled(True)
    node.keep(kept, ())
    rebase(target, node)
    node.output_specs = [spec_of(target)]
    if op.base.saved_names(needs)[1]:
        # a write through a view: the formula belongs to the op within the base's CopySlices, whose output is number 0
        node.kept_outputs = (SavedTensor(_at_output(target, node), True),)
    return target


def _call_decomposed(op: Any, args: tuple[Any, ...], below: Below) -> Any:
    """Run an in-place op whose decomposition writes its results. Raises: NotImplementedError if a gradient would be recorded."""
    if _native.grad_enabled() and op.base.wants_grad(args):
        raise NotImplementedError(f"{op.name}: the derivative is not implemented; {op.base.name} has one")
    for t, spec in zip(op.written(args), op.base.infer(*args), strict=True):
        _check_history(t, False)
        _check_layout(op, t, spec)
        check_each_element_once(t)
    below(op, args)
    return args[0]


def _copy_of(target: Any, edge: Edge, below: Below) -> Any:
    """The value before the write, with the history that it had."""
    t = below(_clone(), (target, None))
    if edge is not None:
        t._set_history(*edge)
    return t


def _at_output(target: Any, node: Node) -> Any:
    """The written tensor as output 0 of `node`, for a formula that names the result."""
    t = target._alias()
    t._set_history(node, 0)
    return t


def check_result(op: Any, target: Any, args: tuple[Any, ...]) -> None:
    """Raise RuntimeError if the result of `op` does not fit into args[0], or if other operands overlap it in memory."""
    if not (op.base._elementwise and _native.uniform_float_tensor(args) is target):  # the result is like the operands
        _check_layout(op, target, op.base.infer(*args))
    name = op.base.name
    if name in _WARNED and any(st == 0 and n > 1 for n, st in zip(target.shape, target.stride(), strict=True)):
        warn(f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also "
             "applies to advanced indexing e.g. tensor[indices] = tensor")  # fmt: skip
    elif name not in _CONSTANT:
        check_each_element_once(target)
    if len(args) > 1 and name not in _ANY_OVERLAP:
        check_no_overlap(target, args[1:-1] if name in _VALUE_LAST else args[1:], name not in _APART)


def _check_layout(op: Any, target: Any, spec: Any) -> None:
    if tuple(spec.shape) != tuple(target.shape):
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(spec.shape)}"
        )
    if not op.base.casts_result and not can_cast(spec.dtype, target.dtype):
        raise RuntimeError(f"result type {scalar_name(spec.dtype)} can't be cast to the desired output type "
                           f"{scalar_name(target.dtype)}")  # fmt: skip


def _check_history(target: Any, recording: bool) -> None:
    """Raise RuntimeError if inference mode or the history of `target` forbids a write."""
    if target._is_inference and not _native.inference_mode():
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
                           "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
                           "details.")  # fmt: skip
    if recording:
        check_may_write(target)
        return
    m = target._autograd
    if _native.grad_enabled() and m is not None and m.creation is not None and m.base._requires_grad:
        raise RuntimeError(m.creation)


def check_may_write(target: Any) -> None:
    """Raise RuntimeError, with torch's texts, if the history of `target` forbids an in-place write."""
    m = target._autograd
    is_view = m is not None and m.base is not None
    if is_view and m.creation is not None:
        raise RuntimeError(m.creation)
    if is_view and m.base._grad_fn is None and (target._requires_grad or m.base._requires_grad):
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if target._requires_grad and history_of(target) is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def rebase(target: Any, node: Node) -> None:
    """Make `node` the history of `target`; of its base too, if it is a view."""
    m = target._autograd
    root = target if m is None or m.base is None else m.base
    if not root._requires_grad:
        root._ask_base()  # earlier views rebuild their history at their next use
    if m is None or m.base is None:
        _move_retained(target, node)
        target._set_history(node, 0)
        return
    base = m.base
    copy = CopySlices(base, _steps_from_base(target, m, base.storage_offset()), node)
    _move_retained(base, copy)
    base._set_history(copy, 0)
    _replay_history(target, m)
    m.seen_version = target._version


def _move_retained(t: Any, node: Node) -> None:
    """`retain_grad` follows the tensor to its new history; hooks stay with the value they were set on."""
    m, old = t._autograd, t._grad_fn
    if m is not None and m.retains_grad and old is not None and old.retained is not None:
        ref = old.retained.pop(t.output_nr, None)
        if ref is not None:
            node.retained = {0: ref}


class CopySlices(Node):
    """History of a base that was written to through a view.

    Outside the view the gradient passes to the old history; inside it goes through `inner`.
    """

    __slots__ = ("inner", "replay", "old_edge", "layout", "order")

    def __init__(self, base: Any, replay: tuple[Any, ...], inner: Node) -> None:
        self.old_edge = edge_of(base)
        super().__init__((self.old_edge, *inner.edges[1:]), (spec_of(base),))
        self.inner = inner
        self.replay = replay
        self.layout = spec_of(base) if _names_places(replay) else None  # in which the steps are right
        # Outermost dim first. In other orders than the base's, dims that the steps join may not lie one within the other.
        self.order = None if base.is_contiguous() else sorted(range(base.ndim), key=lambda d: -base.stride(d))

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        g = grads[0]
        if g is None:
            return [None] * len(self.edges)
        inner_needed = [self.inner.edges[0] is not None, *needed[1:]]
        whole = self._laid_out(g)
        inner_grads = list(self.inner.apply([self._part(whole).clone()], inner_needed))
        first = inner_grads[0]
        if first is not None and not first._batches <= whole._batches:
            whole = whole.where((first == first).all(), whole)  # a row of the batches whose rows are written into it
        if first is None:
            self._part(whole).zero_()
        else:
            self._part(whole).copy_(first)
        return [whole, *inner_grads[1:]]

    def _laid_out(self, g: Any) -> Any:
        """A copy of a gradient of the base, in a layout where `_part` gives the view's gradient."""
        if self.layout is not None:
            return _native.empty(g.dtype.code, self.layout.shape, self.layout.strides).copy_(g)
        if self.order is None:
            return _clone()(g, "contiguous")
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return _clone()(g.permute(self.order), "contiguous").permute(back)

    def _part(self, whole: Any) -> Any:
        """The view of `whole` that was written through."""
        for op, args in self.replay:
            whole = op(whole, *args)
        return whole

    def release(self) -> None:
        self.inner.release()


def _steps_from_base(t: Any, m: AutogradMeta, origin: int = 0) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """The view ops that lead from the present base to its view `t`.

    They are one `as_strided`, from element `origin` of the memory, if the base's geometry was changed in place or a step is an
    `as_strided`.
    """
    retyped = t.dtype != m.base.dtype  # whose places count in other units
    if not _is_reshaped(m.base) and (retyped or not _names_places(m.replay)):
        return m.replay
    return ((_as_strided(), (tuple(t.shape), t.stride(), t.storage_offset() - origin)),)


def _names_places(replay: tuple[tuple[Any, tuple[Any, ...]], ...]) -> bool:
    """Whether the view ops depend on the strides of their input."""
    return any(op is _as_strided() for op, _ in replay)


def _is_reshaped(base: Any) -> bool:
    m = base._autograd
    return m is not None and m.reshaped


class BeforeWrites:
    """The memory and the histories of tensors before in-place writes. `undo` restores both; versions keep counting up."""

    def __init__(self, *tensors: Any) -> None:
        self.memory = [(t, t.untyped_storage(), t.untyped_storage().clone()) for t in tensors]
        bases = [base for t in tensors if (base := note_base(t)) is not None]
        self.histories = [(t, t._requires_grad, t._grad_fn, t.output_nr) for t in (*bases, *tensors)]
        nodes = {id(node): node for _, _, node, _ in self.histories if node is not None and node.retained}
        self.retained = [(node, dict(node.retained)) for node in nodes.values()]

    def undo(self) -> None:
        """Restore the memory and the histories."""
        for t, storage, content in self.memory:
            storage.copy_(content)
            t._bump_version()
        for t, requires_grad, node, output_nr in self.histories:
            t._set_history(node, output_nr)
            t._requires_grad = requires_grad
        for node, kept in self.retained:
            node.retained = kept


def take_geometry(t: Any, view: Any, become: Callable[[Any, Any], None], written: bool = True) -> None:
    """Give `t` the geometry and the history of its view `view`, in place.

    become: sets the geometry. written: whether this counts as a write, as in torch: a node that saved `t` then refuses to run.
    """
    become(t, view)
    m, of_view = t._autograd, view._autograd
    if m is not None and m.base is not None:
        m.replay = of_view.replay
    else:
        meta_of(t).reshaped = True
    if view._grad_fn is not None:
        t._set_history(view._grad_fn, view.output_nr)
    if written:
        t._bump_version()


def _replay_history(t: Any, m: AutogradMeta) -> None:
    """Make `t`'s grad_fn the chain of its view ops over the base's present history."""
    current = m.base
    for op, args in _steps_from_base(t, m):
        with_args = (current, *args)
        node = op_node_class(op)(op, with_args, *_edges(op, with_args))
        y = op.alias(*with_args)
        node.keep(with_args, (y,))
        y._set_history(node, 0)
        current = y
    t._set_history(current._grad_fn, 0)


def _follow_base(t: Any, m: AutogradMeta) -> None:
    """The history of a view whose base was written to. Raises RuntimeError for a view that may not be followed."""
    if m.creation is not None:
        raise RuntimeError(m.creation.replace("is being modified inplace", "its base or another view of its base has been modified "
                                              "inplace", 1))  # fmt: skip
    _replay_history(t, m)


set_view_regenerator(_follow_base)


def note_base(t: Any) -> Any:
    """The tensor whose memory `t` views, or None."""
    m = t._autograd
    return None if m is None else m.base


__all__ = ["BeforeWrites", "CopySlices", "call", "check_may_write", "check_result", "meta_of", "note_base", "rebase"]
