"""Division by a constant as a multiplication and an fma: never another result than the division's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base import dtypes
from inductor.cpp.division import split_inverse

SIGNIFICANDS = np.arange(1 << 23, 1 << 24, 61, dtype=np.float64)  # every 61st of float32


@settings(max_examples=40, deadline=None)
@given(st.floats(2.0**-20, 2.0**20, width=32), st.booleans())
def test_split_constants_divide_every_significand_as_a_division_does(size: float, negative: bool) -> None:
    c = -size if negative else size
    parts = split_inverse(c, dtypes.float32)
    if parts is None:
        return
    high, low = parts
    corrections = (SIGNIFICANDS * low).astype(np.float32)
    quotients = (np.asarray(SIGNIFICANDS * high, np.longdouble) + corrections).astype(np.float32)
    np.testing.assert_array_equal(quotients, SIGNIFICANDS.astype(np.float32) / np.float32(c))


@pytest.mark.parametrize("c", [3.0, 7.0, 10.0, 0.1, 255.0, 5.656854249492381, -1.1])
def test_common_constants_are_split(c: float) -> None:
    for of in (dtypes.float32, dtypes.float64):
        parts = split_inverse(c, of)
        assert parts is not None
        high, low = parts
        assert abs(high) <= abs(1 / Fraction(float(np.dtype(of.name).type(c)))) and high * low > 0


@pytest.mark.parametrize("c", [0.0, 1.0, 2.0, -0.25, 1e30, 1e-30, float("inf"), float("nan")])
def test_powers_of_two_and_extremes_are_left_alone(c: float) -> None:
    assert split_inverse(c, dtypes.float32) is None


def test_a_constant_whose_split_rounds_otherwise_is_left_alone() -> None:
    c = np.float32(0.7)
    assert split_inverse(0.7, dtypes.float32) is None
    inverse = 1 / Fraction(float(c))
    high = np.float32(inverse)
    if Fraction(float(high)) > inverse:
        high = np.nextafter(high, np.float32(0))
    low = float(np.float32(float(inverse - Fraction(float(high)))))
    x = np.arange(1 << 23, 1 << 24, dtype=np.float64)
    quotients = (np.asarray(x * float(high), np.longdouble) + (x * low).astype(np.float32)).astype(np.float32)
    assert (quotients != x.astype(np.float32) / c).any()


@pytest.mark.parametrize("of", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_compiled_divisions_equal_eagers(of: torch.dtype) -> None:
    constants = (5.656854249492381, 3.0, 0.7, -0.1, 255.0, 1e25)
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal(3000), np.exp(rng.uniform(-60, 60, 3000)),
                             [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 3e38]])  # fmt: skip
    x = torch.from_numpy(values).to(of)
    got = torch.compile(lambda x: [x / c for c in constants])(x)
    for c, y in zip(constants, got, strict=True):
        want = (x / c).numpy()
        np.testing.assert_array_equal(y.numpy(), want)
        np.testing.assert_array_equal(np.signbit(y.numpy()), np.signbit(want))
