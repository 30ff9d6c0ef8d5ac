"""Resizing one dim: the inputs of each output and their weights, as numbers in double precision.

Each function gives (positions, weights), both (taps, out): output i is the sum over taps of weights[tap, i] times the input
at positions[tap, i]. n, out: sizes. scale: the factor to count coordinates by (None: the ratio of sizes).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Taps = tuple[Any, Any]


def ratio(n: int, out: int, scale: float | None, align_corners: bool) -> float:
    """Input steps per output step."""
    if align_corners:
        return (n - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale else n / out


def _source(n: int, out: int, scale: float | None, align_corners: bool) -> Any:
    """Where each output lies in the input."""
    i, step = np.arange(out, dtype=np.float64), ratio(n, out, scale, align_corners)
    return i * step if align_corners else (i + 0.5) * step - 0.5


def linear(n: int, out: int, scale: float | None, align_corners: bool) -> Taps:
    """Between the two neighbours."""
    at = np.maximum(_source(n, out, scale, align_corners), 0.0)
    low = np.minimum(np.floor(at).astype(np.int64), n - 1)
    weight = np.where(low < n - 1, at - low, 0.0)
    return np.stack([low, np.minimum(low + 1, n - 1)]), np.stack([1.0 - weight, weight])


def cubic(n: int, out: int, scale: float | None, align_corners: bool) -> Taps:
    """Between the four neighbours; those outside are the nearest inside."""
    at = _source(n, out, scale, align_corners)
    base = np.floor(at).astype(np.int64)
    positions = np.stack([np.clip(base + k, 0, n - 1) for k in (-1, 0, 1, 2)])
    return positions, np.stack([_keys(np.abs(at - (base + k)), -0.75) for k in (-1, 0, 1, 2)])


def _keys(t: Any, a: float) -> Any:
    """Keys' cubic convolution kernel with parameter `a`, at distances t >= 0 (IEEE ASSP 29, 1981)."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


# By mode: how far the filter reaches, and its value at distances t >= 0.
_FILTERS: Final[dict[str, tuple[float, Callable[[Any], Any]]]] = {
    "bilinear": (1.0, lambda t: np.maximum(1.0 - t, 0.0)),
    "bicubic": (2.0, lambda t: _keys(t, -0.5)),
    "lanczos": (3.0, lambda t: np.where(t < 3, np.sinc(t) * np.sinc(t / 3), 0.0)),
}


def antialiased(mode: str, n: int, out: int, scale: float | None, align_corners: bool) -> Taps:
    """The filter of `mode` stretched over all inputs that an output covers."""
    radius, kernel = _FILTERS[mode]
    step = ratio(n, out, scale, align_corners)
    stretch = max(step, 1.0)
    support = radius * stretch
    centers = step * (np.arange(out) + 0.5)
    taps = math.ceil(support) * 2 + 1
    starts = np.maximum((centers - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((centers + support + 0.5).astype(np.int64), n)
    positions = starts[None] + np.arange(taps)[:, None]
    weights = np.where(positions < ends, kernel(np.abs((positions - centers + 0.5) / stretch)), 0.0)
    return np.minimum(positions, n - 1), weights / weights.sum(0)


def fixed_point(positions: Any, weights: Any) -> tuple[Any, int]:
    """The weights as integers of 16 bits, and how many of their bits are behind the point: what images of bytes are resized
    with, in torch as in Pillow. Taps at one position count once, in the last of them."""
    weights = weights.copy()
    for k in range(len(weights) - 1):
        again = positions[k] == positions[k + 1]
        weights[k + 1] += np.where(again, weights[k], 0.0)
        weights[k][again] = 0.0
    bits = next(b for b in range(23) if b == 22 or int(0.5 + weights.max() * (1 << (b + 1))) >= 1 << 15)
    return np.trunc(weights * (1 << bits) + np.copysign(0.5, weights)), bits
