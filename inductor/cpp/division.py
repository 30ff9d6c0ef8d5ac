"""Division by a constant as a multiplication and a fused multiply-add, for constants with the same rounding as division.

A vector division takes as long as a dozen multiplications. With 1/c = high + low, x / c is `fma(x, high, x * low)`: Brisebarre,
Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in advance" (IEEE
Transactions on Computers, 2004). `high` is rounded towards zero here, so that `low` has its sign: zeros keep theirs, and
infinities do not change. Results below the normal range may be off by a unit in the last place. This module is independent of
generated code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import dtype

BITS: Final = {dtypes.float32: 24, dtypes.float64: 53}  # bits of a significand
_RANGE: Final = 2.0**20  # constants beyond it, and their inverses, are divided by: no intermediate may overflow


@lru_cache(1024)
def split_inverse(c: float, of: dtype) -> tuple[float, float] | None:
    """(high, low) for division by `c`, or None if the result could differ from a division's.

    c: rounded to the type `of`. Result: None also for powers of two, whose inverse the compiler itself multiplies by.
    """
    if of not in BITS:
        return None
    c = float(np.dtype(of.name).type(c))
    if not 1 / _RANGE <= abs(c) <= _RANGE or abs(math.frexp(c)[0]) == 0.5:
        return None
    inverse = 1 / Fraction(c)
    high = _rounded(inverse, BITS[of], nearest=False)
    low = _rounded(inverse - high, BITS[of])
    if any(_by_parts(x, high, low, BITS[of]) != _rounded(x * inverse, BITS[of]) for x in _hard_cases(c, BITS[of])):
        return None
    return float(high), float(low)


def _by_parts(x: int, high: Fraction, low: Fraction, bits: int) -> Fraction:
    return _rounded(x * high + _rounded(x * low, bits), bits)


def _rounded(x: Fraction, bits: int, nearest: bool = True) -> Fraction:
    """`x` rounded to `bits` bits: to nearest, ties to even, or towards zero."""
    if not x:
        return x
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (exponent - bits + 1)
    count = round(size / unit) if nearest else size // unit
    return count * unit if x > 0 else -count * unit


def _hard_cases(c: float, bits: int) -> Iterator[int]:
    """Every significand X for which the error before the last rounding could reach from X / c to a midpoint between
    neighbours.

    That error is at most 2 ** (2 - bits) units in the last place. With c's significand 2**t * C, C odd, X / c lies
    k / 2C units from a midpoint, for an integer k that is X * 2**(s - t) modulo C, where s = `bits` or `bits` + 1. No
    quotient is a midpoint: it would have more bits than X when multiplied by C.
    """
    significand = abs(Fraction(c)) * Fraction(2) ** (bits - math.frexp(c)[1])
    t = (significand.numerator & -significand.numerator).bit_length() - 1
    odd = significand.numerator >> t
    reach = odd >> (bits - 3)
    low, high = 1 << (bits - 1), 1 << bits
    for s in (bits - t, bits + 1 - t):
        inverse = pow(2, -s, odd)
        for k in (*range(-reach, 0), *range(1, reach + 1)):
            first = k * inverse % odd
            yield from range(first + -(-(low - first) // odd) * odd, high, odd)
