"""Type promotion over the arguments of an op: dimensioned tensors before 0-d ones before numbers."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import Category, dtype


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.category is Category.COMPLEX:
        return higher
    if higher.category is Category.FLOAT:
        return higher.to_complex() if lower.category is Category.COMPLEX else higher
    if higher is dtypes.bool_ or lower.category >= Category.FLOAT:
        return dtypes.promote_types(higher, lower)
    return higher


def result_type(*args: Any) -> dtype:
    """The dtype that an op over these tensors and numbers computes in, as torch's `result_type`.

    A number or a 0-d tensor decides only where it is of a higher category than every tensor with dims.
    """
    return _result_type(args)


def _result_type(args: Iterable[Any]) -> dtype:
    dimensioned: dtype | None = None
    zero_dim: dtype | None = None
    number: dtype | None = None
    for a in args:
        if a is None:
            continue
        if hasattr(a, "stride"):
            d = a.dtype
            if a.ndim:
                dimensioned = d if dimensioned is None else dtypes.promote_types(dimensioned, d)
            else:
                zero_dim = d if zero_dim is None else dtypes.promote_types(zero_dim, d)
        else:
            d = dtypes.of_scalar(a)
            number = d if number is None else dtypes.promote_types(number, d)
    result = _combine(dimensioned, _combine(zero_dim, number))
    if result is None:
        raise ValueError("result_type: no tensor and no number among the arguments")
    return result
