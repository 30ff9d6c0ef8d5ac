"""Comparisons of positions with numbers, and the ranges of axes in which a mask of such comparisons can hold."""

from __future__ import annotations

from typing import Final

from fxir.expr import rules as E
from fxir.expr.nodes import terms_of
from inductor.ir.values import Const, Index, Op, Value

_MIRRORED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def comparison(v: Op) -> tuple[str, E.Expr, int] | None:
    """(name, expression, number) of a comparison of an index expression with a number."""
    if v.name not in _MIRRORED:
        return None
    a, b = v.args
    if isinstance(a, Index) and isinstance(b, Const) and isinstance(b.value, int):
        return v.name, a.expr, b.value
    if isinstance(b, Index) and isinstance(a, Const) and isinstance(a.value, int):
        return _MIRRORED[v.name], b.expr, a.value
    return None


def bounded(mask: Value) -> dict[E.Sym, E.Expr]:
    """The axes whose range a mask narrows, each with a symbol for the points at which the mask can hold, or their only value.

    An axis that is not in the result has its whole range.
    """
    ranges: dict[E.Sym, tuple[E.Bound, E.Bound]] = {}
    pending = [mask]
    while pending:
        v = pending.pop()
        if not isinstance(v, Op):
            continue
        if v.name == "logical_and":
            pending.extend(v.args)
        found = comparison(v)
        if found is not None:
            _narrow(ranges, *found)
    return {a: E.sym(f"{a.name}_shown", lo, hi, a.multiple, a.below) for a, (lo, hi) in ranges.items() if lo <= hi}


def _narrow(ranges: dict[E.Sym, tuple[E.Bound, E.Bound]], name: str, e: E.Expr, c: int) -> None:
    """Take a comparison of an axis, or of an axis plus a number, with `c` into account."""
    constant, terms = terms_of(e)
    if len(terms) != 1 or terms[0][1] != 1 or not isinstance(terms[0][0], E.Sym):
        return
    axis, c = terms[0][0], c - constant
    lo, hi = ranges.get(axis, (axis.lo, axis.hi))
    if name in ("gt", "ge", "eq"):
        lo = max(lo, c + (name == "gt"))
    if name in ("lt", "le", "eq"):
        hi = min(hi, c - (name == "lt"))
    ranges[axis] = lo, hi


__all__ = ["bounded", "comparison"]
