"""Sizes: ints, or expressions over the symbols of a graph that runs for many shapes.

Every count of elements or bytes in the compiler is a `Size`. Equal expressions are one object, so `==` compares sizes. Sizes
that are equal for some values of the symbols compare unequal, as do an expression and 0 or 1; code for the general case is
correct for all of them. Code is valid for every value of the symbols within their bounds; a choice that affects only speed is
made for the `nominal` value. Sizes are independent of loops and buffers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from fxir.expr import rules as E
from fxir.symbols.shapes import NeedsStatic

__all__ = ["NOMINAL", "Size", "at_least", "ceildiv", "fixed", "is_symbolic", "nominal", "plain", "product"]

Size: TypeAlias = "int | E.Expr"
NOMINAL: Final = 64  # the value assumed for a symbol in decisions that affect only speed


def plain(n: E.IntLike) -> Size:
    """`n`, as an int if it is constant."""
    return n.value if isinstance(n, E.Int) else n


def product(sizes: Iterable[Size]) -> Size:
    """The product of all sizes (1 without sizes)."""
    factors: Any = sizes
    n: Size = math.prod(factors)
    return n if type(n) is int else plain(n)


def ceildiv(n: Size, k: Size) -> Size:
    """ceil(n / k)."""
    return plain((n + k - 1) // k)


def at_least(n: Size, low: int) -> Size:
    """n, or `low` if n is less."""
    return max(n, low) if isinstance(n, int) else plain(E.maximum(n, low))


def is_symbolic(*sizes: Any) -> bool:
    """Whether any of these is an expression."""
    return any(isinstance(n, E.Expr) for n in sizes)


def fixed(sizes: Iterable[Size], who: str) -> tuple[int, ...]:
    """The sizes as ints. Raises: NeedsStatic, naming the stage `who`, if one of them is an expression."""
    found = tuple(sizes)
    ints = tuple(n for n in found if not isinstance(n, E.Expr))
    if len(ints) < len(found):
        raise NeedsStatic([s for n in found if isinstance(n, E.Expr) for s in n.symbols], f"{who} needs fixed sizes; got {list(found)}")
    return ints


def nominal(n: E.IntLike) -> int:
    """`n` with `NOMINAL` for every symbol, or the nearest value within its bounds; at least 1 for an expression."""
    if isinstance(n, int):
        return n
    values = {s: _middle(s) for s in n.symbols}
    return max(E.evaluate(n, values), 1) if values else E.evaluate(n, {})


def _middle(s: E.Sym) -> int:
    value = int(min(max(NOMINAL, s.lo), s.hi))
    return max(value // s.multiple * s.multiple, s.multiple)
