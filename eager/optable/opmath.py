"""Formulas of half-precision tensors that compute in float32 and round once, at the end.

A formula of several ops would round every intermediate to float16 or bfloat16, and overflow where its result does not.
The op table applies `gradient` and `decomposition` to its formulas, public functions of several ops apply `composition`
to themselves; the wrapped functions do not handle dtypes.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from eager.base import dtypes

_HALF: Final = (dtypes.float16, dtypes.bfloat16)
Cast = Callable[[Any, dtypes.dtype], Any]
Formula = Callable[..., Any]


def _is_tensor(v: Any) -> bool:
    return hasattr(v, "is_fake") and hasattr(v, "dtype")


def _widened(values: Iterable[Any], cast: Cast) -> list[Any]:
    """The values with half-precision tensors in float32, also those in lists and tuples."""
    return [cast(v, dtypes.float32) if _is_tensor(v) and v.dtype in _HALF
            else type(v)(_widened(v, cast)) if type(v) in (list, tuple) and any(map(_is_tensor, v)) else v for v in values]  # fmt: skip


def gradient(formula: Formula, cotangent: int, cast: Cast) -> Formula:
    """A gradient formula whose parameter number `cotangent` decides: a cotangent, or the list of all of them.

    Its caller casts gradients to the inputs' dtypes.
    """

    def widened(*values: Any) -> Any:
        g = values[cotangent]
        if isinstance(g, list):
            g = next((t for t in g if t is not None), None)
        return formula(*values) if g is None or g.dtype not in _HALF else formula(*_widened(values, cast))

    return widened


def decomposition(formula: Formula, cast: Cast) -> Formula:
    """A decomposition whose first argument decides the dtype of its floating results."""

    def widened(x: Any, *args: Any) -> Any:
        if x.dtype not in _HALF:
            return formula(x, *args)
        y = formula(*_widened((x, *args), cast))
        return cast(y, x.dtype) if y.dtype is dtypes.float32 else y

    widened.__doc__ = formula.__doc__
    return widened


def in_float32(fn: Formula, cast: Cast, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `fn`; if all floating tensors among the arguments are of one half dtype, in float32, and round the result to that dtype."""
    half = _common_half((*args, *kwargs.values()))
    if half is None:
        return fn(*args, **kwargs)
    named = dict(zip(kwargs, _widened(kwargs.values(), cast), strict=True))
    return _narrowed(fn(*_widened(args, cast), **named), half, cast)


def composition(cast: Cast) -> Callable[[Formula], Formula]:
    """A decorator for a function of several ops: `in_float32` of each call.

    The function must neither write to its arguments nor return one of them.
    """

    def decorate(fn: Formula) -> Formula:
        @functools.wraps(fn)
        def composed(*args: Any, **kwargs: Any) -> Any:
            return in_float32(fn, cast, args, kwargs)

        return composed

    return decorate


def _common_half(values: Iterable[Any]) -> dtypes.dtype | None:
    """The half dtype of all floating tensors among the values; None if there is another dtype among them."""
    found = None
    for v in values:
        if _is_tensor(v) and (v.dtype.is_floating_point or v.dtype.is_complex):
            if v.dtype not in _HALF or found not in (None, v.dtype):
                return None
            found = v.dtype
    return found


def _narrowed(result: Any, half: dtypes.dtype, cast: Cast) -> Any:
    if isinstance(result, tuple):
        return tuple(_narrowed(r, half, cast) for r in result)
    return cast(result, half) if result.dtype is dtypes.float32 else result
