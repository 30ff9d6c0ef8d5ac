"""Sums of arrays inside kernels: as accurate as the `sum` op, for every layout.

numpy adds rows to each other in the dtype of the array when the last dim is kept, so the error grows with the number of
rows. These functions run the native kernels on the CPU, which keep totals in double precision.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager import _native
from eager.optable.table import OPS, by_kernel


def wide_type(d: Any) -> Any:
    """The dtype that kernels compute in for arrays of dtype `d`: float32 for half precision."""
    return np.dtype(np.float32) if d.itemsize == 2 and d.kind in "fV" else d


def widen(a: Any) -> Any:
    """The array in the dtype that kernels compute in."""
    return a.astype(wide_type(a.dtype), copy=False)


def total(xp: Any, x: Any, dims: int | Sequence[int], keepdim: bool = True, mean: bool = False) -> Any:
    """The sum over `dims`, or the mean: an array of dtype of x, of float32 if x has half precision."""
    x = widen(x)
    dims = tuple(d % x.ndim for d in ((dims,) if isinstance(dims, int) else dims))
    if xp is np and dims and x.size and x.dtype.char in "fd":
        made = by_kernel(OPS["mean" if mean else "sum"], x, dims, keepdim, None)
        if made is not None:
            return made
    return (xp.mean if mean else xp.sum)(x, axis=dims, keepdims=keepdim, dtype=x.dtype)


def moments(xp: Any, x: Any, dims: Sequence[int]) -> tuple[Any, Any]:
    """Mean and variance over `dims`, which are kept with size 1, in two passes. Complex x: see `var`."""
    x = widen(x)
    kept = [d for d in range(x.ndim) if d not in dims]
    if xp is np and kept and kept[-1] - kept[0] == len(kept) - 1 and x.size and x.dtype.char in "fd":
        shape = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
        mean, var = np.empty(shape, x.dtype), np.empty(shape, x.dtype)
        outer, inner = math.prod(x.shape[: kept[0]]), math.prod(x.shape[kept[-1] + 1 :])
        if _native.channel_moments(mean, var, np.ascontiguousarray(x), outer, inner):
            return mean, var
    mean = total(xp, x, dims, mean=True)
    d = xp.asarray(x - mean)  # of a 0-d array a number
    squares = d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else xp.multiply(d, d, out=d)
    return mean, total(xp, squares, dims, mean=True)
