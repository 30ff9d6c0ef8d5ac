"""`torch.nn._reduction`: loss reductions as integers, and the name that two deprecated flags select."""
from __future__ import annotations

import warnings

from eager.nn.functional.loss import reduction_of_flags

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum". Raises: ValueError for another name."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction name that the deprecated flags `size_average` and `reduce` select."""
    reduction = reduction_of_flags(size_average, reduce)
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=2)
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The reduction that the deprecated flags select, as the integer of `get_enum`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
