"""Bounds of symbols that follow from the relations of a capture: `1 < s // 8` implies that s is at least 16.

Index arithmetic divides by sizes like `s // 8`, and its laws hold only if such a size is known to be at least 1. Code made with
the bounds of the inputs alone would contain divisions that cancel in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fxir.expr.rules import Expr, FloorDiv, Int, Mul, Sym, as_expr, evaluate, terms_of
from fxir.symbols.shapes import Relation

_FAR: Final = 1 << 40  # the search for bounds ends here


def narrowed_bounds(symbols: Iterable[Sym], relations: Iterable[Relation]) -> dict[Sym, tuple[int, int]]:
    """(lo, hi) of each symbol: its own bounds, narrowed by the relations over that symbol alone. Its lower bound must be finite."""
    found = {s: (int(s.lo), int(s.hi)) for s in symbols if s.lo >= 0 and s.hi < float("inf")}
    for r in relations:
        d = _as_nonnegative(r)
        if d is None or len(d.symbols) != 1:
            continue
        (s,) = d.symbols
        if s in found:
            found[s] = _narrowed(d, s, *found[s])
    return found


def _as_nonnegative(r: Relation) -> Expr | None:
    """An expression that is >= 0 if and only if `r` holds."""
    if r.op == "!=" and isinstance(r.right, Int) and r.right.value == 0 and r.left.lo >= 0:
        return r.left - 1
    return r.right - r.left - (r.op == "<") if r.op in ("<", "<=") else None


def _narrowed(d: Expr, s: Sym, lo: int, hi: int) -> tuple[int, int]:
    """The part of lo..hi where d >= 0, for a `d` that is monotonic in s; lo..hi if it is not monotonic, or if no part remains."""
    if _is_increasing(d):
        first = _least_true(lambda n: evaluate(d, {s: n}) >= 0, lo, min(hi, _FAR))
        return (lo, hi) if first is None or first >= hi else (first, hi)
    if _is_increasing(-d):
        past = _least_true(lambda n: evaluate(d, {s: n}) < 0, lo, min(hi, _FAR))
        return (lo, hi) if past is None or past - 1 <= lo else (lo, past - 1)
    return lo, hi


def _least_true(holds: Callable[[int], bool], lo: int, hi: int) -> int | None:
    """The least n in lo..hi with holds(n), or None. If holds(n) is true, it is true of every greater n."""
    if not holds(hi):
        return None
    while lo < hi:
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if holds(middle) else (middle + 1, hi)
    return lo


def _is_increasing(e: Expr) -> bool:
    """Whether `e` never decreases as its symbol, which is not negative, grows."""
    return all(c > 0 and _term_rises(t) for t, c in terms_of(as_expr(e))[1])


def _term_rises(t: Expr) -> bool:
    if isinstance(t, Sym):
        return True
    if isinstance(t, FloorDiv):
        return isinstance(t.b, Int) and t.b.value > 0 and _is_increasing(t.a)
    return isinstance(t, Mul) and all(f.lo >= 0 and _term_rises(f) for f in t.factors)
