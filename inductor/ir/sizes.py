"""Sizes: ints, or expressions over the symbols of a graph that runs for many shapes.

Everything that counts elements or bytes in the compiler is a `Size`. Equal expressions are one object, so `==` tells
equal sizes; sizes that may or may not be equal at run time compare unequal, as do an expression and 0 or 1: code for
the general case is right for all of them. Code is made for every value of the symbols within their bounds; where a
choice only costs time it is made for the `nominal` one. Knows nothing of loops or buffers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from fxir.expr import rules as E
from fxir.symbols.shapes import NeedsStatic

__all__ = ["NOMINAL", "Size", "at_least", "ceildiv", "fixed", "is_symbolic", "nominal", "plain", "product"]

Size: TypeAlias = "int | E.Expr"
NOMINAL: Final = 64  # what a symbol is taken for where nothing but speed depends on it


def plain(n: E.IntLike) -> Size:
    """`n`, as an int where it is constant."""
    return n.value if isinstance(n, E.Int) else n


def product(sizes: Iterable[Size]) -> Size:
    """The product of all sizes (1 for none)."""
    return plain(math.prod(sizes))  # type: ignore[arg-type]


def ceildiv(n: Size, k: Size) -> Size:
    """ceil(n / k)."""
    return plain((n + k - 1) // k)


def at_least(n: Size, low: int) -> Size:
    """n, or `low` where n is less."""
    return max(n, low) if isinstance(n, int) else plain(E.maximum(n, low))


def is_symbolic(*sizes: Any) -> bool:
    """Whether any of these is an expression."""
    return any(isinstance(n, E.Expr) for n in sizes)


def fixed(sizes: Iterable[Size], who: str) -> tuple[int, ...]:
    """The sizes, none of them an expression. Raises: NeedsStatic, `who` needs that."""
    found = tuple(sizes)
    symbols = [s for n in found if isinstance(n, E.Expr) for s in n.symbols]
    if symbols:
        raise NeedsStatic(symbols, f"{who} is made for fixed sizes, not {list(found)}")
    return found  # type: ignore[return-value]


def nominal(n: E.IntLike) -> int:
    """`n` where every symbol is `NOMINAL`, or as near to it as its bounds allow; at least 1 for an expression."""
    if isinstance(n, int):
        return n
    values = {s: _middle(s) for s in n.symbols}
    return max(E.evaluate(n, values), 1) if values else E.evaluate(n, {})


def _middle(s: E.Sym) -> int:
    value = int(min(max(NOMINAL, s.lo), s.hi))
    return max(value // s.multiple * s.multiple, s.multiple)
