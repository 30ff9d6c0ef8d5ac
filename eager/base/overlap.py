"""Checks of overlapping memory: the `out=` tensors and in-place targets that torch refuses to write to."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from eager import _native

TensorBase = _native.TensorBase
_PARTIAL = 2  # of _native.memory_overlap
ADVICE: Final = "a single memory location. Please clone() the tensor before performing the operation."


def check_each_element_once(written: Any) -> None:
    """Raise RuntimeError if several positions of the written tensor are one element, as in an expanded tensor."""
    for size, stride in zip(written.shape, written.stride(), strict=True):
        if stride == 0 and size > 1 and written.numel():
            raise RuntimeError(f"unsupported operation: more than one element of the written-to tensor refers to {ADVICE}")


def check_no_overlap(written: Any, inputs: tuple[Any, ...], same_allowed: bool = True) -> None:
    """Raise RuntimeError if an input overlaps a part of the written tensor.

    same_allowed: an input may have exactly the same elements, in the same order. As in torch, tensors with gaps between their
    elements are not checked.
    """
    found = _native.memory_overlap(written, inputs)
    if found == _PARTIAL or (found and not same_allowed):
        raise RuntimeError(f"unsupported operation: some elements of the input tensor and the written-to tensor refer to {ADVICE}")


def check_out(out: Any, inputs: Iterable[Any], itself: bool = True) -> None:
    """Raise RuntimeError if the `out=` of an elementwise function overlaps a part of an input or, with `itself`, overlaps itself."""
    if not isinstance(out, TensorBase) or out.is_fake or out.device.type == "meta":
        return
    if itself:
        check_each_element_once(out)
    check_no_overlap(out, tuple(inputs))
