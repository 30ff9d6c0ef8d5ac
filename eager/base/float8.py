"""The 8-bit floating types: rounding to them as torch rounds.

Owns the conversion of ndarrays and numbers. The types hold different values: e4m3fn has no infinity, the "fnuz" types have
neither infinity nor negative zero, e8m0fnu has powers of two only.
Source: Micikevicius et al., arXiv:2209.05433 (e4m3fn, e5m2); the OCP Microscaling specification 1.0 (e8m0fnu).
"""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from eager.base.scalars import element

_E4M3FN = np.dtype(ml_dtypes.float8_e4m3fn)
_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
_E8M0FNU = np.dtype(ml_dtypes.float8_e8m0fnu)
TYPES = frozenset({_E4M3FN, _E5M2, np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz), _E8M0FNU})

_LARGEST = np.float32(448.0)  # of e4m3fn
_SMALLEST = np.float32(2.0**-127)  # of e8m0fnu, which has no zero


def rounded(values: Any, to: np.dtype[Any]) -> Any:
    """An array or number in the 8-bit type `to`, by way of float32, to the nearest, ties to even.

    e4m3fn saturates, infinities included; e5m2 and the "fnuz" types go to infinity or nan beyond their largest number;
    e8m0fnu drops the sign and takes zero to its smallest number.
    """
    wide = np.asarray(values)
    wide = (wide.real if wide.dtype.kind == "c" else wide).astype(np.float32)
    if to == _E4M3FN:
        wide = np.clip(wide, -_LARGEST, _LARGEST)  # nan stays
    elif to == _E8M0FNU:
        wide = np.maximum(np.abs(wide), _SMALLEST)
    with np.errstate(all="ignore"):
        result = wide.astype(to)
    if to == _E5M2:  # one of its six nans
        result = (result.view(np.uint8) | np.where(np.isnan(wide), np.uint8(3), np.uint8(0))).view(to)
    return result


def cast(a: Any, to: np.dtype[Any]) -> Any:
    """A numpy array in the type `to`, whichever it is."""
    return rounded(a, to) if to.itemsize == 1 and to in TYPES else a.astype(to)


def fill(out: Any, value: Any) -> None:
    """out[...] = value, a number. Raises: RuntimeError if the type of `out` cannot hold the number."""
    out.fill(rounded(value, out.dtype)[()] if out.itemsize == 1 and out.dtype in TYPES else element(value, out.dtype))


def store(xp: Any, out: Any, values: Any) -> None:
    """out[...] = values, cast and broadcast. xp: numpy or cupy, where `out` is."""
    if out.itemsize == 1 and out.dtype in TYPES and getattr(values, "dtype", None) != out.dtype:
        values = rounded(values, out.dtype)
    xp.copyto(out, values, casting="unsafe")
