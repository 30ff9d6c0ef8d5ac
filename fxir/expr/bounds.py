"""Interval arithmetic for `fxir.expr.rules`: the bounds of an expression from the bounds of its parts.

Bounds are inclusive; plus or minus infinity means "not known". This module reads only the `lo` and `hi` of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol, TypeAlias

Bound: TypeAlias = int | float  # a float is always +-inf


class Bounded(Protocol):
    """Anything with inclusive bounds."""

    @property
    def lo(self) -> Bound: ...

    @property
    def hi(self) -> Bound: ...


def _times(x: Bound, y: Bound) -> Bound:
    return 0 if x == 0 or y == 0 else x * y


def mul_bounds(factors: Sequence[Bounded]) -> tuple[Bound, Bound]:
    """Bounds of a product (of a square if both factors are the same object)."""
    lo: Bound = 1
    hi: Bound = 1
    for f in factors:
        corners = (_times(lo, f.lo), _times(lo, f.hi), _times(hi, f.lo), _times(hi, f.hi))
        lo, hi = min(corners), max(corners)
    if len(factors) == 2 and factors[0] is factors[1]:
        lo = max(lo, 0)
    return lo, hi


def add_bounds(const: int, terms: Sequence[tuple[Bounded, int]]) -> tuple[Bound, Bound]:
    """Bounds of const + sum of coef*term."""
    lo: Bound = const
    hi: Bound = const
    for t, c in terms:
        if c > 0:
            lo += c * t.lo
            hi += c * t.hi
        else:
            lo += c * t.hi
            hi += c * t.lo
    return lo, hi


def _floor_bound(x: Bound, d: Bound) -> Bound:
    """Limit of floor(x/d) for d > 0, either of them possibly infinite."""
    if d == inf:
        return (0 if x >= 0 else -1) if abs(x) != inf else x
    return x // d if abs(x) != inf else x


def floordiv_bounds(a: Bounded, b: Bounded) -> tuple[Bound, Bound]:
    """Bounds of floor(a/b); not known if b may be 0 or negative."""
    if b.lo < 1:
        return -inf, inf
    corners = [_floor_bound(x, d) for x in (a.lo, a.hi) for d in (b.lo, b.hi)]
    return min(corners), max(corners)


def mod_bounds(a: Bounded, b: Bounded) -> tuple[Bound, Bound]:
    """Bounds of a modulo b."""
    if b.lo >= 1:
        top = b.hi - 1
        return 0, min(top, a.hi) if a.lo >= 0 else top
    if b.hi <= -1:
        return b.lo + 1, 0
    return -inf, inf


def min_bounds(args: Sequence[Bounded]) -> tuple[Bound, Bound]:
    """Bounds of the least argument."""
    return min(a.lo for a in args), min(a.hi for a in args)


def max_bounds(args: Sequence[Bounded]) -> tuple[Bound, Bound]:
    """Bounds of the greatest argument."""
    return max(a.lo for a in args), max(a.hi for a in args)
