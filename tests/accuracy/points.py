"""Points at which functions are sampled. A rule generates them, so that every machine samples the same points.

Every point is a float64. A point serves each dtype that represents it exactly, so that one exact value of the function
serves all dtypes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

INF, NAN = float("inf"), float("nan")
SPECIAL: Final = (0.0, -0.0, INF, -INF, NAN)
MANTISSA_BITS: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_LOWEST: Final = {"float64": -1074, "float32": -149, "float16": -24, "bfloat16": -133}  # exponents of the smallest subnormals
_HIGHEST: Final = {"float64": 1023, "float32": 127, "float16": 15, "bfloat16": 127}
_GOLDEN: Final = 0.6180339887498949
PAIR_SPECIAL: Final = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -2.5)


def rounded(x: np.ndarray, bits: int) -> np.ndarray:
    """x rounded to mantissas of at most `bits` bits. Subnormals of float64 keep their value."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)


def spread(low: float, high: float, count: int, bits: int = 24) -> np.ndarray:
    """`count` points that fill (low, high) evenly (a Weyl sequence), with mantissas of `bits` bits."""
    return rounded(low + (high - low) * np.modf(np.arange(1, count + 1) * _GOLDEN)[0], bits)


def fits(x: np.ndarray, dtype: str) -> np.ndarray:
    """Mask of the points that the dtype represents exactly. Zeros, infinities and nan always count."""
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(x)
        bits = np.minimum(MANTISSA_BITS[dtype], exponent - _LOWEST[dtype])
        whole = np.ldexp(fraction, np.maximum(bits, 0))
        exact = (bits > 0) & (whole == np.rint(whole)) & (exponent - 1 <= _HIGHEST[dtype])
    return exact | ~np.isfinite(x) | (x == 0)


def unary(ranges: Sequence[tuple[float, float, int]] = (), near: Sequence[float] = ()) -> np.ndarray:
    """Points of one argument: specials, all exponents, both signs, integers, halves; `ranges` filled evenly, at
    alternately 24 and 8 bits; the neighbourhoods of the points `near`."""
    exponents = np.concatenate([np.arange(-1074, 1024, 131), np.arange(-149, 128, 9), np.arange(-14, 9)])
    mantissas = rounded(1 + np.modf(np.arange(len(exponents)) * _GOLDEN)[0], 8)
    sizes = np.ldexp(mantissas, exponents)
    dense = np.concatenate([np.ldexp(spread(1, 2, 4), e) for e in range(-5, 6)])
    parts = [np.array(SPECIAL), sizes, -sizes, dense, -dense, np.arange(-6, 9.0), np.arange(-4.5, 6, 1.0)]
    for low, high, count in ranges:
        parts += [spread(low, high, count - count // 3), spread(low, high, count // 3, 8)]
    for x in near:
        steps = np.ldexp(max(abs(x), 2.0**-20), np.array([-52, -40, -30, -23, -18, -12, -7, -4]))
        parts += [np.array([x]), x + steps, x - steps]
    points = np.concatenate(parts)
    _, first = np.unique(points.view(np.int64), return_index=True)
    return points[np.sort(first)]


def pairs(a: tuple[float, float], b: tuple[float, float], count: int = 120, whole: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Points of two arguments: all pairs of specials, then `count` that fill the ranges. whole: which of "a" and "b"
    are integers among the latter."""
    grid = np.array(PAIR_SPECIAL)
    index = np.arange(1, count + 1)
    first = rounded(a[0] + (a[1] - a[0]) * np.modf(index * 0.7548776662466927)[0], 11)
    second = rounded(b[0] + (b[1] - b[0]) * np.modf(index * 0.5698402909980532)[0], 11)
    if "a" in whole:
        first = np.floor(first)
    if "b" in whole:
        second = np.floor(second)
    return np.concatenate([np.repeat(grid, len(grid)), first]), np.concatenate([np.tile(grid, len(grid)), second])
