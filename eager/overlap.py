"""Memory that is written while it is read: what torch refuses of `out=` and of in-place targets, though a copy would do."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eager import _native
from eager.spec import is_dense

TensorBase = _native.TensorBase
_ADVICE = "a single memory location. Please clone() the tensor before performing the operation."


def check_each_element_once(written: Any) -> None:
    """Raise RuntimeError for a tensor that is to be written and has one element in several places, as expanded ones do."""
    for size, stride in zip(written.shape, written.stride(), strict=True):
        if size > 1 and stride == 0 and written.numel():
            raise RuntimeError(f"unsupported operation: more than one element of the written-to tensor refers to {_ADVICE}")


def check_out(out: Any, inputs: Iterable[Any], itself: bool = True) -> None:
    """Raise RuntimeError where the `out=` of an elementwise function lies over part of an input, or (with `itself`) over itself.

    An input may be `out` itself. As in torch, tensors with gaps between their elements are not looked into.
    """
    if not isinstance(out, TensorBase) or out.is_fake or out.device.type == "meta":
        return
    if itself:
        check_each_element_once(out)
    if not is_dense(out.shape, out.stride()):
        return
    for x in inputs:
        if isinstance(x, TensorBase) and x is not out and not x.is_fake and _partly_over(out, x):
            raise RuntimeError(f"unsupported operation: some elements of the input tensor and the written-to tensor refer to {_ADVICE}")


def _partly_over(a: Any, b: Any) -> bool:
    if a.device is not b.device or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr() or not a.numel() or not b.numel():
        return False
    if a.data_ptr() == b.data_ptr() and a.stride() == b.stride() and a.numel() == b.numel() and a.dtype is b.dtype:
        return False
    begin, end = max(a.data_ptr(), b.data_ptr()), min(_end(a), _end(b))
    return begin < end and is_dense(b.shape, b.stride())


def _end(t: Any) -> int:
    return int(t.data_ptr() + t.numel() * t.element_size())
