"""Functions over numpy and CuPy arrays that CuPy lacks or defines for fewer dtypes, in terms of functions that it has.

Every function takes the array module first. Does not depend on ops.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager.base import precision


def on_host(a: Any) -> Any:
    """The numpy array of an array of either device; numbers unchanged. Waits for the device."""
    return a.get() if hasattr(a, "get") else a


def from_host(xp: Any, out: Any, values: Any) -> None:
    """Store a numpy array into `out`, on whichever device it is, cast to its dtype."""
    values = np.asarray(values)
    xp.copyto(out, xp.asarray(values if values.dtype == out.dtype else values.astype(out.dtype)), casting="unsafe")


def take(xp: Any, out: Any, x: Any, index: Any, axis: int) -> None:
    """Elements of `x` along an axis, at positions in [-n, n), into `out`."""
    if xp is np:
        np.take(x, index, axis=axis, out=out, mode="wrap")
    else:
        xp.copyto(out, xp.take(x, index, axis=axis))  # CuPy's positions always wrap


def accumulate(xp: Any, name: str, x: Any, axis: int) -> Any:
    """The running result of a binary ufunc that is associative: on CUDA in log2(n) steps over the whole array.

    Source: Hillis & Steele, "Data parallel algorithms", CACM 29(12), 1986.
    """
    ufunc = getattr(xp, name)
    if xp is np:
        return ufunc.accumulate(x, axis=axis)
    y, step = xp.moveaxis(x.copy(), axis, 0), 1
    while step < y.shape[0]:
        y = xp.concatenate([y[:step], ufunc(y[:-step], y[step:])])
        step *= 2
    return xp.moveaxis(y, 0, axis)


def reduce_xor(xp: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The exclusive or over axes: on CUDA by halves."""
    if xp is np:
        return np.bitwise_xor.reduce(x, axis=axes, keepdims=keepdims)  # type: ignore[call-overload]
    for axis in axes:
        y = xp.moveaxis(x, axis, 0)
        while y.shape[0] > 1:
            half = y.shape[0] // 2
            y = xp.concatenate([y[:half] ^ y[half : 2 * half], y[2 * half :]])
        x = xp.moveaxis(y if y.shape[0] else xp.zeros((1, *y.shape[1:]), y.dtype), 0, axis)
    return x if keepdims else x.reshape(tuple(n for i, n in enumerate(x.shape) if i not in {a % x.ndim for a in axes}))


def hosted(kernel: Any) -> Any:
    """A kernel that computes on the host. On CUDA its arguments are copied there, and its results back."""

    @functools.wraps(kernel)
    def run(xp: Any, out: Any, *args: Any) -> None:
        if xp is np:
            kernel(np, out, *args)
            return
        outs = out if isinstance(out, tuple) else (out,)
        made = tuple(np.empty(o.shape, o.dtype) for o in outs)
        kernel(np, made if isinstance(out, tuple) else made[0], *map(on_host, args))
        for o, values in zip(outs, made, strict=True):
            from_host(xp, o, values)

    return run


_ATOMIC = {"add": "ifdIL", "maximum": "ifdIL", "minimum": "ifdIL"}  # dtypes with atomic operations on CUDA, by character code


def combine_at(xp: Any, name: str, target: Any, index: Any, source: Any) -> None:
    """`target[index] = ufunc(target[index], source)` for repeated positions, over 1-d arrays of one dtype."""
    if xp is np:
        getattr(np, name).at(target, index, source)
    elif name == "add" and target.dtype.kind == "c":
        combine_at(xp, name, target.real, index, source.real)
        combine_at(xp, name, target.imag, index, source.imag)
    elif name == "add" and target.dtype == np.int64:  # sums of two's complements are the same bits
        xp.add.at(target.view(np.uint64), index, source.view(np.uint64))
    elif target.dtype.char not in _ATOMIC.get(name, "") or (
        name == "add" and target.dtype.kind == "f" and precision.are_deterministic_algorithms_enabled()
    ):
        _combine_in_rounds(xp, name, target, index, source)
    elif name == "add" or target.dtype.kind != "f":
        getattr(xp, name).at(target, index, source)
    else:
        _extremes_at(xp, name, target, index, source)


def _extremes_at(xp: Any, name: str, target: Any, index: Any, source: Any) -> None:
    """Extremes of floats. CUDA's atomic extremes drop nan, so that positions with a nan are counted beside them."""
    nans = xp.isnan(target).astype(np.float32)
    xp.add.at(nans, index, xp.isnan(source).astype(np.float32))
    getattr(xp, name).at(target, index, source)
    xp.copyto(target, np.nan, where=nans > 0)


def _combine_in_rounds(xp: Any, name: str, target: Any, index: Any, source: Any) -> None:
    """One round for each repetition of a position, in which all positions differ."""
    ufunc, order = getattr(xp, name), xp.argsort(index)
    ranked = index[order]
    starts = xp.searchsorted(ranked, ranked)  # where the run of each position begins
    rank = xp.arange(len(ranked)) - starts
    for i in range(int(rank.max()) + 1 if len(ranked) else 0):
        now = order[rank == i]
        at = index[now]
        target[at] = ufunc(target[at], source[now]).astype(target.dtype)
