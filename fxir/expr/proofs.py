"""Proofs of relations between expressions from the bounds of their symbols alone."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

from fxir.expr.rules import Bound, Expr, Int, substitute, sym, terms_of


def least(d: Expr) -> Bound:
    """A lower bound of `d`. Each symbol is counted from its own lower bound, which shows that s*t - s is not negative."""
    if d.lo >= 0:
        return d.lo
    shifted: dict[Expr, Expr] = {s: sym(f"{s.name}'", 0, s.hi - s.lo) + int(s.lo) for s in d.symbols if abs(s.lo) != inf}
    return substitute(d, shifted).lo


def _prove_eq(a: Expr, b: Expr) -> bool | None:
    d = a - b
    if isinstance(d, Int):
        return d.value == 0
    if least(d) > 0 or least(-d) > 0:
        return False
    const, terms = terms_of(d)  # sum of multiples of g cannot be -const unless g divides const
    g = (d - const).multiple_of if terms else 0
    return False if g and const % g else None


def _prove_lt(a: Expr, b: Expr) -> bool | None:
    if least(b - a) > 0:
        return True
    return False if least(a - b) >= 0 else None


def _prove_ne(a: Expr, b: Expr) -> bool | None:
    equal = _prove_eq(a, b)
    return None if equal is None else not equal


def _prove_le(a: Expr, b: Expr) -> bool | None:
    if least(b - a) >= 0:
        return True
    return False if least(a - b) > 0 else None


PROOFS: Final[dict[str, Callable[[Expr, Expr], bool | None]]] = {
    "==": _prove_eq,
    "!=": _prove_ne,
    "<": _prove_lt,
    "<=": _prove_le,
}


def prove(op: str, a: Expr, b: Expr) -> bool | None:
    """Whether `a op b` (== != < <=) holds for all values of the symbols; None if neither it nor its opposite is proved."""
    return PROOFS[op](a, b)
