"""`out=`: writing a result into a tensor that the caller passes, and tensors that take another shape in place."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base import dtypes, thread_state
from eager.base.dtypes import scalar_name
from eager.base.spec import TensorSpec
from eager.base.warn import warn
from eager.optable.memory import empty
from eager.optable.registry import CALLS

TensorBase = _native.TensorBase


def become(t: Any, other: Any) -> None:
    """Give `t` the geometry and the memory of `other`, in place.

    Raises: NotImplementedError while calls are recorded: a graph of functions knows no tensor whose shape changes.
    """
    if t.is_fake and _native.mode_depth() & thread_state.MODES:
        raise NotImplementedError(f"a tensor of shape {list(t.shape)} takes the shape {list(other.shape)} in place while it is traced")
    t._set_impl(other)


def reshape_storage(t: Any, spec: TensorSpec) -> bool:
    """Lay `t` out as `spec` over its own memory. Returns False, with `t` unchanged, if the memory does not suffice."""
    room = t.untyped_storage().nbytes() // t.element_size() - t.storage_offset()
    span = 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True)) if spec.numel() else 0
    if span > room:
        return False
    become(t, _native.alias(t, spec.shape, spec.strides, t.storage_offset()))
    return True


def resize_out(out: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Give an `out=` tensor the shape of its result, over its own memory if that suffices, so that other views see the
    result too. A tensor with elements is resized with torch's warning.
    """
    if out.numel():
        warn(f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match "
             f"the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release "
             "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
             "resizing it, inplace, to zero elements with t.resize_(0).")  # fmt: skip
    spec = TensorSpec(shape, out.dtype, strides, out.device)
    if not reshape_storage(out, spec):
        become(out, empty(spec))


def refuse_gradients_through_out(name: str, *values: Any) -> None:
    """Raise RuntimeError, in torch's words, if autograd records and one of the values, numbers or tensors, requires grad."""
    if _native.grad_enabled() and any(isinstance(v, TensorBase) and v.requires_grad for v in values):
        raise RuntimeError(f"{name + '(): ' if name else ''}functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")  # fmt: skip


def write_out(out: Any, result: Any, exact: bool = False, differentiable: bool = True) -> Any:
    """Store a result into `out=`, as torch does: resized if empty, cast if the category allows and `exact` does not forbid it.

    Raises: RuntimeError if the function is `differentiable` and a gradient is required through it, which `out=` cannot record.
    """
    if isinstance(result, (tuple, list)):
        if isinstance(out, TensorBase):
            raise TypeError("argument 'out' must be tuple of Tensors, not Tensor")
        written = [write_out(o, r, exact, differentiable) for o, r in zip(out, result, strict=True)]
        return result._make(written) if hasattr(result, "_make") else type(result)(written)
    if not isinstance(out, TensorBase):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if differentiable:
        refuse_gradients_through_out("", result, out)
    if exact and out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype.name}, but got {out.dtype.name} instead")
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"result type {scalar_name(result.dtype)} can't be cast to the desired output type {scalar_name(out.dtype)}")
    if tuple(out.shape) != tuple(result.shape):
        resize_out(out, tuple(result.shape), tuple(result.stride()))
    return CALLS["copy_"](out, result)
