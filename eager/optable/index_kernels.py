"""Tools of the kernels that read or write elements by their positions: checks, and combination at repeated positions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.base import float8
from eager.base.spec import (
    contiguous_strides,
)
from eager.optable import array_functions


def at_least_1d(a: Any) -> Any:
    """A 0-d array as one of a single element, over the same memory."""
    return a.reshape(1) if a.ndim == 0 else a


def begin(xp: Any, out: Any, x: Any) -> None:
    """Start a result as a copy of `x`, unless it shares the memory of `x` already."""
    if out is not x:
        xp.copyto(out, x)


def check_positions(index: Any, n: int, dim: int, error: type[Exception] = RuntimeError, *, negative: bool = False,
                    text: str | None = None, who: str = "") -> None:  # fmt: skip
    """Refuse positions outside 0..n-1 (or -n..n-1 where `negative`)."""
    if index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    if high < n and low >= (-n if negative else 0):
        return
    bad = high if high >= n else low
    raise error(text or f"{who}index {bad} is out of bounds for dimension {dim} with size {n}")


def _wide(a: Any) -> Any:
    """The type in which sums over many elements of an array are kept."""
    return np.dtype(np.float32) if a.dtype.itemsize <= 2 and a.dtype.kind in "fV" else a.dtype


def combine_at(xp: Any, how: str, out: Any, index: Any, src: Any) -> None:
    """`out[index] = how(out[index], src)` for repeated positions, over 1-d arrays; `how` names a ufunc."""
    wide = _wide(out)
    target = out if wide == out.dtype else out.astype(wide)
    source = src.astype(wide, copy=False)
    array_functions.combine_at(xp, how, target, index, source)
    if target is not out:
        float8.store(xp, out, target)


def add_rows(xp: Any, out: Any, index: Any, src: Any) -> None:
    """Add row `src[i]` to row `out[index[i]]`. out: (n, m) contiguous, index: (k,), src: (k, m).

    Wide rows are sorted by position and summed run by run: one pass over memory, where an
    element-wise scatter would take one step for each element.
    """
    m, index = out.shape[1], index.astype("i8", copy=False)
    if out.size == 0 or index.size == 0:
        return
    if m < 8 or xp is not np:
        positions = index[:, None] * m + xp.arange(m)
        combine_at(xp, "add", out.reshape(-1), positions.reshape(-1), src.reshape(-1))
        return
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    rows = ranked[starts]
    sums = np.add.reduceat(src[order].astype(_wide(out), copy=False), starts, axis=0)
    out[rows] = float8.cast(out[rows].astype(sums.dtype, copy=False) + sums, out.dtype)


def linear_positions(xp: Any, shape: Sequence[int], dim: int, index: Any) -> Any:
    """Flat positions in a contiguous array of `shape` that `index` stands for along `dim`. Same shape as index."""
    strides = contiguous_strides(shape)
    at = index.astype("i8", copy=False) * strides[dim]
    for i, n in enumerate(index.shape):
        if i != dim:
            at = at + (xp.arange(n) * strides[i]).reshape([-1 if j == i else 1 for j in range(index.ndim)])
    return at
