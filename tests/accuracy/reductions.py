"""Errors of reductions, scans and statistics, relative to float64, by layout and size.

The error of a result is max|result - exact| over max|exact|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

TITLE = "Reductions, scans and statistics"
HEADERS = ("operation", "layout", "size")
UNIT = "relative"
FLOOR = 2.4e-7  # four roundings of float32


def measure(torch: Any, mode: str) -> dict[str, float]:
    """The error of each operation in each layout at each size."""
    return {key: _error(torch, fn, args, mode) for key, fn, args in _cases(torch)}


def _cases(torch: Any) -> Iterator[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]]:
    x = np.random.default_rng(0).random((100_000, 4), dtype=np.float32)
    yield "sum | columns | 4e5", lambda t: t.sum(0), (x,)


def _error(torch: Any, fn: Callable[..., Any], args: tuple[np.ndarray, ...], mode: str) -> float:
    run = torch.compile(fn) if mode == "compiled" else fn
    found = run(*(torch.from_numpy(a) for a in args)).detach().numpy().astype(np.float64)
    exact = fn(*(torch.from_numpy(a.astype(np.float64)) for a in args)).detach().numpy()
    return float(np.abs(found - exact).max() / np.abs(exact).max())
