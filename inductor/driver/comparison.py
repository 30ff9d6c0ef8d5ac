"""The results of candidates of one kernel, compared: which buffers and elements, and how far sums in another order may differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from eager.base import dtypes
from eager.base.limits import finfo
from inductor.loops.dependence import accesses
from inductor.loops.tree import Kernel

__all__ = ["Written", "compared_ranges", "difference", "written_by"]

_RANGES: Final = 64  # of a result that is compared in parts


class Written(NamedTuple):
    """The buffers that a kernel writes.

    results: the buffers that are read after the kernel. updated: the results that it reads too, so that each run needs their first values.
    """

    all: frozenset[str]
    results: frozenset[str]
    updated: frozenset[str]


def written_by(kernels: Sequence[Kernel]) -> Written:
    """The buffers that candidates of one kernel write."""
    touched = [a for kernel in kernels for a in accesses(kernel.body)]
    read, written = ({a.place.name for a in touched if a.writes == of or a.combine} for of in (False, True))
    temporary = frozenset().union(*(kernel.temporary for kernel in kernels))
    return Written(frozenset(written), frozenset(written - temporary), frozenset((written & read) - temporary))


def compared_ranges(size: int, most: int) -> Iterator[tuple[int, int]]:
    """(start, end) of the parts of a result with `size` elements that are compared: all, or parts of `most` elements together.

    The parts have one length, and the first and the last elements are among them.
    """
    if size <= most:
        yield 0, size
        return
    length = most // _RANGES
    for k in range(_RANGES):
        start = (size - length) * k // (_RANGES - 1)
        yield start, start + length


def difference(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], rounding: float = 0.0) -> str:
    """The first result that differs by more than sums in another order may; "" if all agree.

    rounding: the relative error of a product, which may be more than the rounding of the result's dtype.
    """
    return next((name for name in a if not _agree(a[name], b[name], rounding)), "")


def _agree(a: np.ndarray, b: np.ndarray, rounding: float) -> bool:
    if a.dtype.kind in "iub":
        return bool(np.array_equal(a, b))
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    known = np.isfinite(x)
    if not np.array_equal(known, np.isfinite(y)) or not np.array_equal(x[~known], y[~known], equal_nan=True):
        return False
    scale, worst = np.abs(x[known]).max(initial=0), np.abs(x[known] - y[known]).max(initial=0)
    return bool(worst <= max(_tolerance(a.dtype), 4 * rounding) * scale)


def _tolerance(of: np.dtype) -> float:
    """Of a result, relative to the largest."""
    eps = finfo(dtypes.from_numpy(of)).eps
    return max(4 * eps, min(2.0**-11, 4096 * eps))
