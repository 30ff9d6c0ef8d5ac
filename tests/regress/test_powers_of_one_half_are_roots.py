"""x ** 0.5 and x ** -0.5 are roots where the exponent is a number, and `pow` where it is a tensor or x is float16, as in torch."""
from __future__ import annotations

import math
from typing import Any

import pytest

import eager as torch

POINTS = [-0.0, -math.inf, 0.0, math.inf, 4.0, -4.0]
ROOTS = {0.5: [-0.0, math.nan, 0.0, math.inf, 2.0, math.nan], -0.5: [-math.inf, math.nan, math.inf, 0.0, 0.5, math.nan]}
POWERS = {0.5: [0.0, math.inf, 0.0, math.inf, 2.0, math.nan], -0.5: [math.inf, 0.0, math.inf, 0.0, 0.5, math.nan]}
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def _power(x: Any, p: Any) -> Any:
    return x**p


@pytest.mark.parametrize("p", [0.5, -0.5])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_are_roots_except_in_float16(dtype: Any, p: float, compiled: bool) -> None:
    x = torch.tensor(POINTS, dtype=dtype)
    expected = POWERS if dtype is torch.float16 else ROOTS
    found = (torch.compile(_power) if compiled else _power)(x, p)
    assert list(map(repr, found.tolist())) == list(map(repr, expected[p]))
    assert [repr((t**p).item()) for t in x] == list(map(repr, expected[p]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_tensors_are_powers(dtype: Any, compiled: bool) -> None:
    x, fn = torch.tensor(POINTS, dtype=dtype), torch.compile(_power, dynamic=True) if compiled else _power
    for p, expected in POWERS.items():
        t = torch.tensor(p, dtype=dtype)
        for exponent in (t, t.expand(6), t.repeat(6)):
            assert list(map(repr, fn(x, exponent).tolist())) == list(map(repr, expected))
        assert [repr(x[i].clone().pow_(t).item()) for i in range(6)] == list(map(repr, expected))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_number_that_changes_is_still_a_number(dtype: Any) -> None:
    """Once the exponent is an input of the compiled graph, results are eager's; so are gradients."""
    fn = torch.compile(_power, dynamic=True)
    for p in (1.7, 0.9, 0.5, -0.5, 2.0, -1.0, 1.5, 0.0):
        x, y = (torch.tensor(POINTS, dtype=dtype, requires_grad=True) for _ in range(2))
        expected, found = _power(x, p), fn(y, p)
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-2, nan_ok=True)
        if p in ROOTS:
            assert list(map(repr, found.tolist())) == list(map(repr, expected.tolist()))
        expected.sum().backward(), found.sum().backward()
        assert y.grad.tolist() == pytest.approx(x.grad.tolist(), rel=1e-2, nan_ok=True)
