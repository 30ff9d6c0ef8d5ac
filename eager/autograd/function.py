"""Custom differentiable functions: subclasses of Function with static forward and backward."""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.base.spec import TensorSpec, broadcast_shapes, spec_of
from eager.dispatch import calls
from eager.optable.declaration import cast_to, sum_to
from eager.optable.table import OPS
from eager.tape import hooks
from eager.tape.inplace import check_may_write, rebase
from eager.tape.node import RELEASED, Node, SavedTensor, edge_of
from eager.tape.record import note_view

TensorBase = _native.TensorBase
ONCE = "_once_differentiable"  # marks a backward
TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class FunctionCtx:
    """The `ctx` of forward and backward, which holds data for backward, and the `grad_fn` of the results."""

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads: bool = True
    to_save: tuple[Any, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Save these tensors (or None) for backward, which checks that they were not written to since."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep these tensors for `jvp`, which reads them as `ctx.saved_tensors`."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """These outputs get no history."""
        self.non_differentiable = args

    def mark_dirty(self, *args: Any) -> None:
        """These inputs were written in place by forward and are returned."""
        self.dirty_tensors = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing output gradients reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function, and its `ctx`; each Function has a subclass named after it."""

    _forward_cls: Any = None

    def __init__(self, edges: Sequence[Any], positions: Sequence[int]) -> None:
        super().__init__(edges, ())
        self._saved: tuple[Any, ...] | None = None
        self._released = False
        self._positions = positions

    def forward_mode(self, tangents: Sequence[Any]) -> Any:
        """The result of the function's `jvp`. Its `ctx.saved_tensors` are the tensors given to `save_for_forward`, if any."""
        kept, before = self._saved, self.to_save
        self.to_save = self.saved_for_forward or self.saved_tensors
        self._saved = None
        try:
            return self._forward_cls.jvp(self, *tangents)
        finally:
            self._saved, self.to_save = kept, before

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`. Raises: RuntimeError if they were freed, or written to in place since."""
        if self._released:
            raise RuntimeError(RELEASED)
        if self._saved is None:  # forward has not ended, or no input requires a gradient
            return self.to_save or self.saved_for_forward
        return tuple(s.unpack(self) if isinstance(s, SavedTensor) else s for s in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def apply(self, grads: Any, needed: Sequence[bool] = ()) -> Sequence[Any]:
        if self._released:
            raise RuntimeError(RELEASED)
        if self.materialize_grads:
            grads = [hooks.zeros(s) if g is None and s is not None else g for g, s in zip(grads, self.output_specs, strict=True)]
        result = _backward_of(self._forward_cls)(self, *grads)
        result = result if isinstance(result, tuple) else (result,)
        return self._check(result)

    def _check(self, result: tuple[Any, ...]) -> list[Any]:
        """One gradient for each edge, summed and cast to the spec of its input. Raises: RuntimeError with torch's texts."""
        total = len(self.needs_input_grad)
        if len(result) > total and all(r is None for r in result[total:]):
            result = result[:total]
        if len(result) != total:
            raise RuntimeError(f"function {type(self).__name__} returned an incorrect number of gradients (expected {total}, got "
                               f"{len(result)})")  # fmt: skip
        tensor_at = set(self._positions)
        for i, r in enumerate(result):
            if r is None:
                continue
            if i not in tensor_at:
                raise RuntimeError(f"function {type(self).__name__} returned a gradient different than None at position {i + 1}, but the "
                                   "corresponding forward input was not a Variable")  # fmt: skip
            if not isinstance(r, TensorBase):
                raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
        found = []
        for n, (i, edge) in enumerate(zip(self._positions, self.edges, strict=True)):
            spec = None if edge is None else edge[0].output_specs[edge[1]]
            found.append(None if spec is None or result[i] is None else _fitted(result[i], spec, type(self).__name__, n))
        return found

    def release(self) -> None:
        self._saved, self._released = None, True

    @property
    def holds_tensors(self) -> bool:
        return True

    @property
    def is_released(self) -> bool:
        return self._released


def _fitted(g: Any, spec: TensorSpec, who: str, index: int) -> Any:
    """A gradient in the shape and dtype of the input: broadcast dims are summed."""
    shape = tuple(g.shape)
    if shape != tuple(spec.shape):
        try:
            fits = broadcast_shapes(spec.shape, shape) == shape
        except RuntimeError:
            fits = False
        if not fits:
            raise RuntimeError(f"Function {who} returned an invalid gradient at index {index} - got {list(shape)} but expected "
                               f"shape compatible with {list(spec.shape)}")  # fmt: skip
        g = sum_to(g, spec.shape)
    if g.dtype.is_complex and not spec.dtype.is_complex:
        g = OPS["real"](g)
    return cast_to(g, spec.dtype)


def _backward_of(cls: Any) -> Callable[..., Any]:
    own_backward, own_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
    if own_backward and own_vjp:
        raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                           "implement one of them.")  # fmt: skip
    return cls.vjp if own_vjp else cls.backward  # type: ignore[no-any-return]


@functools.cache
def _bound(forward: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(forward)


class Function:
    """Subclass with `forward(ctx, *args)` and `backward(ctx, *grads)`; call through `apply`.

    With a `setup_context(ctx, inputs, output)`, forward takes no ctx. `jvp(ctx, *tangents)` serves
    forward mode, `vmap(info, in_dims, *args)` or `generate_vmap_rule = True` serves `vmap`.
    """

    generate_vmap_rule = False
    _backward_cls: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
                      "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
                      "version of PyTorch.", DeprecationWarning, stacklevel=2)  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
                           "function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")  # fmt: skip

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(cls.__name__ + "Backward", (BackwardCFunction,), {"_forward_cls": cls})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to "
                                  "use it with backward mode AD.")  # fmt: skip

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to "
                                  "use it with backward mode AD.")  # fmt: skip

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode "
                                  "AD.")  # fmt: skip

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")  # fmt: skip

    @classmethod
    def has_setup_context(cls) -> bool:
        return cls.setup_context is not Function.setup_context

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward with recording off, and give its outputs this function's backward."""
        if kwargs:
            if not cls.has_setup_context():
                raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
            bound = _bound(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        level = calls.active_level()
        if level is not None:
            return level.custom_function(cls, args)
        return run(cls, args, None)


def run(cls: type[Function], args: tuple[Any, ...], forward: Callable[..., Any] | None) -> Any:
    """One call of a custom function on the present tape. forward: what to run in place of the class's own, in
    which case the class has a setup_context."""
    return run_with_ctx(cls, args, forward)[0]


def run_with_ctx(cls: type[Function], args: tuple[Any, ...], forward: Callable[..., Any] | None) -> tuple[Any, Any]:
    """(result, ctx) of one call; see `run`."""
    positions = [i for i, a in enumerate(args) if isinstance(a, TensorBase)]
    recording = _native.grad_enabled()
    ctx = cls._backward_cls([edge_of(args[i]) if recording else None for i in positions], positions)
    ctx.needs_input_grad = tuple(isinstance(a, TensorBase) and a._requires_grad for a in args)
    before = _native.set_grad_enabled(False)
    try:
        if cls.has_setup_context():
            if forward is not None:
                _native.set_grad_enabled(before)
            result = (forward or cls.forward)(*args)
            _native.set_grad_enabled(False)
            cls.setup_context(ctx, args, result)
        else:
            result = cls.forward(ctx, *args)
    finally:
        _native.set_grad_enabled(before)
    single = not isinstance(result, tuple)
    outputs = [result] if single else list(result)
    _check_marks(ctx, outputs)
    if any(e is not None for e in ctx.edges):
        outputs = attach_outputs(ctx, args, outputs)
    return (outputs[0] if single else tuple(outputs)), ctx


def _check_marks(ctx: Any, outputs: list[Any]) -> None:
    for i, t in enumerate(ctx.to_save):
        if t is not None and not isinstance(t, TensorBase):
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
    if any(all(d is not y for y in outputs) for d in ctx.dirty_tensors):
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                           "are modified inplace must all be outputs of the Function.")  # fmt: skip


def attach_outputs(node: Any, args: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
    """Give the outputs their history; an input that is returned unwritten is returned as a view of itself."""
    inputs = {id(a) for a in args if isinstance(a, TensorBase)}
    dirty = {id(d) for d in node.dirty_tensors}
    constant = {id(t) for t in node.non_differentiable}
    fresh = []
    for y in outputs:
        if isinstance(y, TensorBase) and id(y) in inputs and id(y) not in dirty:
            view = y._alias()
            note_view(view, y, OPS["alias"], (y,))
            y = view
        fresh.append(y)
    node.output_specs = [spec_of(y) if isinstance(y, TensorBase) else None for y in fresh]
    for i, (y, original) in enumerate(zip(fresh, outputs, strict=True)):
        if not isinstance(y, TensorBase) or id(original) in constant or y.dtype.category < 2:
            continue
        if id(original) in dirty:
            _rewrite(y, node, i)
        else:
            y._set_history(node, i)
    own = {id(y) for y in fresh if isinstance(y, TensorBase) and y._grad_fn is node}
    node._saved = tuple(None if t is None else SavedTensor(t, id(t) in own) for t in node.to_save)
    node.to_save = ()
    return fresh


def _rewrite(y: Any, node: Any, index: int) -> None:
    """History of an input that forward wrote to."""
    m = y._autograd
    if y._requires_grad and y._grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if m is None or m.base is None:
        y._set_history(node, index)
        return
    check_may_write(y)
    if len(node.output_specs) > 1:
        raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                           "return more than one Tensor. This is not supported by the current autograd engine.")  # fmt: skip
    rebase(y, node)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that cannot itself be differentiated: doing so raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        before = _native.set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _native.set_grad_enabled(before)
        if not before or not any(isinstance(a, TensorBase) and a._requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        found = [outputs] if single else list(outputs)
        edges = [edge_of(a) for a in args]
        found = [DifferentiatedTwice.guard(y, edges) for y in found]
        return found[0] if single else tuple(found)

    setattr(wrapper, ONCE, True)
    return wrapper


class DifferentiatedTwice(Node):
    """The history of the results of a `once_differentiable` backward."""

    @staticmethod
    def guard(y: Any, edges: Sequence[Any]) -> Any:
        if not isinstance(y, TensorBase) or y.dtype.category < 2:
            return y
        y = y._alias()
        y._set_history(DifferentiatedTwice(edges, [spec_of(y)]), 0)
        return y

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        raise RuntimeError(TWICE)


class InplaceFunction(Function):
    """A Function with the flag `inplace`; kept for programs that subclass it."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
