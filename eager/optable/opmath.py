"""Formulas of half-precision tensors that compute in float32 and round once, at the end.

A formula of several ops would round every intermediate to float16 or bfloat16, and overflow where its result does not.
The op table applies these wrappers to gradient formulas and decompositions; formulas themselves know no dtypes.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eager import dtypes

_HALF: Final = (dtypes.float16, dtypes.bfloat16)
Cast = Callable[[Any, dtypes.dtype], Any]
Formula = Callable[..., Any]


def _widened(values: tuple[Any, ...], cast: Cast) -> list[Any]:
    return [cast(v, dtypes.float32) if getattr(v, "dtype", None) in _HALF and hasattr(v, "is_fake") else v for v in values]


def gradient(formula: Formula, cotangent: int, cast: Cast) -> Formula:
    """A gradient formula whose parameter number `cotangent` decides. Its caller casts gradients to the inputs' dtypes."""

    def in_float32(*values: Any) -> Any:
        if values[cotangent].dtype not in _HALF:
            return formula(*values)
        return formula(*_widened(values, cast))

    return in_float32


def decomposition(formula: Formula, cast: Cast) -> Formula:
    """A decomposition whose first argument decides the dtype of its floating results."""

    def in_float32(x: Any, *args: Any) -> Any:
        if x.dtype not in _HALF:
            return formula(x, *args)
        y = formula(*_widened((x, *args), cast))
        return cast(y, x.dtype) if y.dtype is dtypes.float32 else y

    in_float32.__doc__ = formula.__doc__
    return in_float32
