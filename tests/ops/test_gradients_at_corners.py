"""Gradients where a formula divides by zero, ties or meets nan: what torch 2.13 gives there."""
from __future__ import annotations

import math
from typing import Any

import pytest

import eager as torch

NAN = math.nan
PAIRS = [
    ("atan2", 0.0, 0.0, [0.0, 0.0]), ("atan2", 1.0, 0.0, [0.0, -1.0]), ("maximum", 2.0, 2.0, [0.5, 0.5]), ("maximum", NAN, 1.0, [1.0, 1.0]),
    ("minimum", 1.0, NAN, [1.0, 1.0]), ("fmax", 2.0, 2.0, [1.0, 0.0]), ("xlogy", 0.0, 0.0, [0.0, NAN]), ("logaddexp", 2.0, 2.0, [0.5, 0.5]),
    ("hypot", 1.0, 0.0, [1.0, 0.0]), ("copysign", 0.0, 1.0, [0.0, 0.0]),
]  # fmt: skip
ROWS: list[tuple[str, Any, list[float], list[float]]] = [
    ("std", lambda x: x.std(), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]), ("norm", lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
    ("median", lambda x: x.median(), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]), ("max", lambda x: x.max(), [0.0, 2.0, 2.0], [0.0, 0.5, 0.5]),
    ("nanmedian", lambda x: x.nanmedian(), [2.0, NAN, 2.0], [0.5, 0.0, 0.5]), ("amax", lambda x: x.amax(), [1.0, 1.0], [0.5, 0.5]),
    ("prod", lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]), ("logit", lambda x: x.logit().sum(), [-1.0, 0.5, 2.0], [NAN, 4.0, NAN]),
    ("sinc", lambda x: x.sinc().sum(), [0.0], [0.0]), ("i1e", lambda x: torch.special.i1e(x).sum(), [0.0], [0.5]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "b", "expected"), PAIRS)
def test_of_two_numbers(name: str, a: float, b: float, expected: list[float]) -> None:
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    found = torch.autograd.grad(getattr(torch, name)(x, y), (x, y))
    assert [float(g) for g in found] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("name", "fn", "values", "expected"), ROWS, ids=[r[0] for r in ROWS])
def test_of_a_row(name: str, fn: Any, values: list[float], expected: list[float]) -> None:
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(fn(x), x)
    assert found.tolist() == pytest.approx(expected, nan_ok=True)
