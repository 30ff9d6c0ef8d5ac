"""Nodes of the reverse graph: the op that produced a tensor, its edges, and the tensors saved for backward.

This module imports no ops. It reads only the gradient rules of the ops it is given.
"""
from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.hooks import RemovableHandle, add_hook
from eager.base.locks import new_lock
from eager.base.spec import TensorSpec, contiguous_strides, is_dense, spec_of
from eager.tape.state import anomaly, per_thread

TensorBase = _native.TensorBase
_sequence = itertools.count()
_LAST = 1 << 62  # of an accumulator: it runs as soon as its gradient is whole

Edge = tuple["Node", int] | None


class AutogradMeta:
    """The autograd data that only some tensors have: hooks, the accumulator of a leaf, the base of a view."""

    __slots__ = ("hooks", "post_hooks", "accumulator", "retains_grad", "base", "replay", "seen_version", "creation", "reshaped",
                 "__weakref__")  # fmt: skip

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[[Any], Any]] | None = None
        self.post_hooks: dict[int, Callable[[Any], Any]] | None = None
        self.accumulator: Any = None  # weak reference: the graph owns it
        self.retains_grad = False
        self.base: Any = None
        self.replay: tuple[tuple[Any, tuple[Any, ...]], ...] = ()
        self.seen_version = 0
        self.creation: str | None = None  # why an in-place write to this view is forbidden, if it is
        self.reshaped = False  # took another geometry in place: steps from here to a view may start at an earlier one


def meta_of(t: Any) -> AutogradMeta:
    """The tensor's AutogradMeta, made on first use."""
    m = t._autograd
    if m is None:
        m = t._autograd = AutogradMeta()
    return m


_LEGACY_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
                 "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
                 "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip


def legacy_name(t: Any) -> str:
    """`torch.FloatTensor`, `torch.cuda.HalfTensor`: how torch's messages name a tensor's dtype and device."""
    prefix = "torch." if t.device.type == "cpu" else f"torch.{t.device.type}."
    return f"{prefix}{_LEGACY_NAMES.get(t.dtype.name, t.dtype.name)}Tensor"


RELEASED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
_HINT = ("enable anomaly detection to find the operation that failed to compute its gradient, with "
         "torch.autograd.set_detect_anomaly(True, check_nan=False).")  # fmt: skip
_ANOMALY_HINT = ("the backtrace further above shows the operation that failed to compute its gradient. The variable in "
                 "question was changed in there or anywhere later. Good luck!")  # fmt: skip
_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
    "`torch.no_grad()` instead of `torch.inference_mode()`."
)


NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is "
    "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both "
    "inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)


class SavedTensor:
    """A tensor kept for backward, with the version it had; or what a pack hook made of it.

    An output of the node itself is kept as a detached alias, for else node and tensor would hold
    each other.
    """

    __slots__ = ("tensor", "version", "own_output", "output_nr", "unpack_hook", "edge", "is_leaf")

    def __init__(self, t: Any, own_output: bool) -> None:
        if t._is_inference:
            raise RuntimeError(_INFERENCE)
        self.version = t._version
        self.own_output = own_output
        self.output_nr = t.output_nr
        self.unpack_hook: Callable[[Any], Any] | None = None
        self.edge: Edge = None
        self.is_leaf = False
        self.tensor = t._alias() if own_output else t
        if per_thread.saved_hooks:
            pack, unpack = per_thread.saved_hooks[-1]
            self.set_hooks(pack, unpack)

    def set_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Keep `pack(tensor)` instead of the tensor. Raises RuntimeError if a pack hook has run already."""
        if self.unpack_hook is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden"
                               if self.tensor is None else "Calling register_hooks on a saved tensor whose hooks have "
                               "already been set is forbidden.")  # fmt: skip
        t = self.tensor
        if not self.own_output:
            self.edge = edge_of(t)
        before = _native.set_grad_enabled(False)
        try:
            packed = pack(t)
        finally:
            _native.set_grad_enabled(before)
        self.tensor, self.unpack_hook = packed, unpack

    register_hooks = set_hooks

    def unpack(self, node: Node) -> Any:
        """The saved tensor. Raises: RuntimeError if it was written to after it was saved."""
        if self.unpack_hook is not None:
            return self._unpack_packed(node)
        t = self.tensor
        if t._version != self.version:
            source = node if self.own_output else t._grad_fn
            what = f"which is output {self.output_nr} of {source.name().removesuffix('Backward0')}," if source is not None else ""
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{legacy_name(t)} {list(t.shape)}]{', ' + what if what else ''} is at version {t._version}; expected "
                f"version {self.version} instead. Hint: {_ANOMALY_HINT if anomaly.enabled else _HINT}"
            )
        if self.own_output:
            t = t._alias()
            t._set_history(node, self.output_nr)
        return t

    def _unpack_packed(self, node: Node) -> Any:
        assert self.unpack_hook is not None
        data = self.unpack_hook(self.tensor)
        if not isinstance(data, TensorBase):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            f"{type(data).__name__}")  # fmt: skip
        edge = (node, self.output_nr) if self.own_output else self.edge
        if edge is None:
            return data
        if isinstance(edge[0], AccumulateGrad) and edge[0].variable is data:
            return data
        t = data._alias()
        t._set_history(*edge)
        return t


class Node:
    """One step of the reverse graph: `apply` maps gradients of outputs to gradients of inputs."""

    __slots__ = ("edges", "sequence", "output_specs", "pre_hooks", "tensor_hooks", "hooks", "_metadata", "retained", "__weakref__")

    def __init__(self, edges: Sequence[Edge], output_specs: Sequence[TensorSpec | None]) -> None:
        self.edges: tuple[Edge, ...] = tuple(edges)
        self.sequence = next(_sequence)
        self.output_specs = list(output_specs)
        self.pre_hooks: dict[int, Callable[..., Any]] | None = None
        self.tensor_hooks: dict[int, dict[int, Callable[..., Any]]] | None = None  # by output number
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self._metadata: dict[str, Any] | None = anomaly.note() if anomaly.enabled else None
        self.retained: dict[int, Any] | None = None  # output number -> weak reference, for retain_grad

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple(e if e is not None else (None, 0) for e in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for data that users attach. Anomaly mode keeps the forward traceback here."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def _sequence_nr(self) -> int:
        return self.sequence

    def name(self) -> str:
        return type(self).__name__

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Gradients per edge, None where not `needed` or zero."""
        raise NotImplementedError(f"{self.name()}.apply")

    def release(self) -> None:
        """Drop the values saved for backward."""

    @property
    def holds_tensors(self) -> bool:
        """Whether `release` takes something away, so that the node cannot run a second time."""
        return False

    @property
    def is_released(self) -> bool:
        """Whether that has happened."""
        return False

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_inputs, grad_outputs)`, after `apply`; may replace the grad_inputs."""
        if self.hooks is None:
            self.hooks = {}
        return add_hook(self.hooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_outputs)`, before `apply`; may replace them."""
        if self.pre_hooks is None:
            self.pre_hooks = {}
        return add_hook(self.pre_hooks, hook)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds into `.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        super().__init__((), (spec_of(variable),))
        self.variable = variable
        self.sequence = _LAST

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        g = grads[0]
        v = self.variable
        if g is None:
            return ()
        add_gradient(v, g)
        meta = v._autograd
        if meta is not None and meta.post_hooks:
            for hook in list(meta.post_hooks.values()):
                hook(v)
        return ()


_LOCKS = tuple([new_lock() for _ in range(64)])  # of leaves, by address: backward passes of several threads may share a leaf


def add_gradient(t: Any, g: Any) -> None:
    """Add `g` to `t.grad`: in place, unless gradients of gradients are recorded."""
    with _LOCKS[id(t) >> 7 & 63]:
        old = t._grad
        if old is None and not g.is_sparse:
            first = first_gradient(g, t)
            # The engine stores a first gradient without the lock. No other thread runs between a test and the store behind it.
            if t._grad is None:
                t._grad = first
                return
            old = t._grad
        if g.is_sparse or (old is not None and old.is_sparse):
            t._grad = g if old is None else g + old if old.is_sparse else old + g  # dense + sparse is dense: see `eager.sparse`
        elif _native.grad_enabled():
            t._grad = old + g
        else:
            old.add_(g)


# The engine's list and the frame of `AccumulateGrad.apply` (or two references of the engine, where it calls `add_gradient`
# itself), the frames of `add_gradient` and `first_gradient`, and the call that this makes.
_ENGINE_HOLDS = 5


def first_gradient(g: Any, t: Any) -> Any:
    """The `.grad` of `t` after its first gradient. It owns its memory, because later gradients are added to it in place.

    It is the gradient itself if only the engine holds that tensor, otherwise a copy. With `create_graph` it keeps its history.
    Its layout is the layout of `t` (row-major if `t` has gaps): users flatten gradients as they flatten parameters.
    """
    if not (g._is_contiguous() and t._is_contiguous()):
        moved = _laid_out(g, t)
        if moved is not None:
            return moved
    return g if _native.is_sole_owner(g, _ENGINE_HOLDS) else g.clone()


def _laid_out(g: Any, t: Any) -> Any:
    """A copy of `g` with the strides that a gradient of `t` has; None if it has them already."""
    strides = t.stride() if is_dense(t.shape, t.stride()) else contiguous_strides(t.shape)
    if all(n == 1 or a == b for n, a, b in zip(t.shape, g.stride(), strides, strict=True)):
        return None
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    if order == sorted(order):
        return g.contiguous()
    return g.permute(order).contiguous().permute([order.index(d) for d in range(len(order))])


class OpNode(Node):
    """The reverse step of an op with a gradient rule: applies its formulas to the saved tensors.

    `op_node_class` makes a separate class for every op (`AddBackward0`).
    """

    __slots__ = ("op", "saved", "kept_outputs", "needs", "released")

    def __init__(self, op: Any, args: tuple[Any, ...], edges: Sequence[Edge], needs: tuple[bool, ...]) -> None:
        super().__init__(edges, ())
        self.op = op
        self.needs = needs
        self.saved: tuple[Any, ...] | None = None
        self.kept_outputs: tuple[Any, ...] = ()
        self.released = False

    def keep(self, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Save what the formulas of the needed inputs name; the rest only as specs."""
        names, wanted_outputs = self.op.saved_names(self.needs)
        saved: list[Any] = []
        for param, a in zip(self.op.schema.params, args, strict=True):
            if isinstance(a, TensorBase):
                saved.append(SavedTensor(a, False) if param.name in names else spec_of(a))
            elif isinstance(a, (list, tuple)) and param.is_tensor_list:
                keep = param.name in names
                saved.append([None if t is None else SavedTensor(t, False) if keep else spec_of(t) for t in a])
            else:
                saved.append(a)
        self.saved = tuple(saved)
        self.output_specs = [spec_of(y) for y in outputs]
        self.kept_outputs = tuple(SavedTensor(y, True) if i in wanted_outputs else None for i, y in enumerate(outputs))

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        self._check_not_released()
        return tuple(s.unpack(self) for s in (self.saved or ()) if isinstance(s, SavedTensor))

    def __getattr__(self, name: str) -> Any:
        """`_saved_<parameter>` (torch's `self` is our `x`, `result` the output) and `_raw_saved_<parameter>`."""
        raw = name.startswith("_raw_saved_")
        if not raw and not name.startswith("_saved_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        wanted = name.removeprefix("_raw").removeprefix("_saved_")
        self._check_not_released()
        assert self.saved is not None
        found = dict(zip((p.name for p in self.op.schema.params), self.saved, strict=True))
        if self.kept_outputs and self.kept_outputs[0] is not None:
            found["result"] = self.kept_outputs[0]
        found["self"] = found.get("self", self.saved[0] if self.saved else None)
        if wanted not in found or isinstance(found[wanted], TensorSpec):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        s = found[wanted]
        return s if raw or not isinstance(s, SavedTensor) else s.unpack(self)

    def _check_not_released(self) -> None:
        if self.released:
            raise RuntimeError(RELEASED)

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        self._check_not_released()
        assert self.saved is not None
        args = [
            s.unpack(self) if isinstance(s, SavedTensor)
            else [x.unpack(self) if isinstance(x, SavedTensor) else x for x in s] if isinstance(s, list) else s
            for s in self.saved
        ]  # fmt: skip
        outputs = tuple(None if s is None else s.unpack(self) for s in self.kept_outputs)
        return self.op.apply_vjp(grads, args, outputs, self.output_specs, needed)

    def release(self) -> None:
        """Free the saved tensors. A node that holds none can be run again, and several graphs may share it."""
        if self.holds_tensors:
            self.saved, self.kept_outputs, self.released = None, (), True

    @property
    def holds_tensors(self) -> bool:
        return any(isinstance(s, (SavedTensor, list)) for s in (*(self.saved or ()), *self.kept_outputs))

    @property
    def is_released(self) -> bool:
        return self.released


# torch's name of a reverse step whose op, or the first op of its decomposition, has another name.
_OTHER_NAMES = {
    "linear": "AddmmBackward0", "batch_norm_train": "NativeBatchNormBackward0", "vector_norm": "LinalgVectorNormBackward0",
    "to_dtype": "ToCopyBackward0", "gelu_erf": "GeluBackward0", "gelu_tanh": "GeluBackward0",
    "attention": "ScaledDotProductFlashAttentionForCpuBackward0", "max_pool": "MaxPool2DWithIndicesBackward0",
}  # fmt: skip


@functools.cache
def op_node_class(op: Any) -> type[OpNode]:
    """The node class of `op`, named as torch names it: `AddBackward0`."""
    name = _OTHER_NAMES.get(op.name) or "".join(part.capitalize() for part in op.name.split("_")) + "Backward0"
    return type(name, (OpNode,), {"__slots__": ()})


class FunctionNode(Node):
    """A custom reverse step: a callable from output gradients to input gradients."""

    __slots__ = ("backward", "_name", "on_release", "feeding")

    def __init__(self, backward: Callable[..., Any], edges: Sequence[Edge], specs: Sequence[TensorSpec | None], name: str,
                 on_release: Callable[[], None] | None = None) -> None:  # fmt: skip
        super().__init__(edges, specs)
        self.backward = backward
        self._name = name
        self.on_release = on_release
        self.feeding = 0  # bit mask of outputs that feed other outputs (see `backward.inside`)

    def name(self) -> str:
        return self._name

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        return self.backward(tuple(grads))

    def release(self) -> None:
        if self.on_release is not None:
            self.on_release()

    @property
    def holds_tensors(self) -> bool:
        return self.on_release is not None


def _find_edge(t: Any) -> Edge:
    """The edge that the gradient of `t` flows to: (node, output number), or None if `t` requires no gradient."""
    if not isinstance(t, TensorBase) or not t._requires_grad:
        return None
    fn = history_of(t)
    if fn is not None:
        return fn, t.output_nr
    m = meta_of(t)
    node = m.accumulator() if m.accumulator is not None else None
    if node is None:
        node = AccumulateGrad(t)
        m.accumulator = weakref.ref(node)
    return node, 0


edge_of: Callable[[Any], Edge] = _native.edge_of  # by `_find_edge` where the short way does not do

_regenerate: Callable[[Any, AutogradMeta], None] | None = None


def set_view_regenerator(fn: Callable[[Any, AutogradMeta], None]) -> None:
    """Registered by `inplace`: rebuilds the history of a view whose base was written to."""
    global _regenerate
    _regenerate = fn


def history_of(t: Any) -> Node | None:
    """The tensor's grad_fn, rebuilt first if it is a view whose base has a newer history."""
    m = t._autograd
    if m is not None and m.base is not None and m.seen_version != t._version and _regenerate is not None:
        if m.base._requires_grad:
            _regenerate(t, m)
        m.seen_version = t._version
    return t._grad_fn


def attach(outputs: Sequence[Any], inputs: Sequence[Any], backward: Callable[..., Any], name: str,
           on_release: Callable[[], None] | None = None) -> Node:  # fmt: skip
    """Give several outputs one custom grad_fn.

    backward: from a tuple of output gradients (None for an unused output) to one gradient or None
    per input, in order.
    """
    node = FunctionNode(backward, [edge_of(x) for x in inputs], [spec_of(y) for y in outputs], name, on_release)
    for i, y in enumerate(outputs):
        y._set_history(node, i)
    return node


def placed(g: Any, node: Node, number: int) -> Any:
    """The 0-d gradient `g` of an output of `node`, on the CPU if the output is there: an op took it beside CUDA operands."""
    spec = node.output_specs[number]
    return g.to(spec.device) if spec is not None and spec.device.type == "cpu" else g


_native.register_node_types(OpNode, SavedTensor, TensorSpec, AutogradMeta, AccumulateGrad, _sequence, _LAST, _find_edge, NO_GRAD_VIEW)
_native.register_gradient_helpers(add_gradient, None, None, placed)
