"""Integer expressions: interned, simplified as they are built, with bounds. This module is the face of `fxir.expr`.

Owns the laws of sums and division (`RULES`, `SUM_RULES`), extrema, comparisons, and the proofs of relations. The nodes, their bounds
and arithmetic are in `fxir.expr.nodes`, printing is in `fxir.expr.printing`.

Every expression is in one normal form: a sum `const + coef*term + ...` (`Add`) whose terms are symbols, products of non-sums
(`Mul`), or `FloorDiv`/`Mod`/`Min`/`Max`. Equal normal forms are one object, so `is` compares. Division is Python's (floor; the
remainder has the divisor's sign). The bounds of an expression hold for all values of its symbols within their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf
from typing import Final

from fxir.expr.nodes import (
    REBUILD,
    RULES,
    SUM_RULES,
    Add,
    Bound,
    Changed,
    Expr,
    Extremum,
    FloorDiv,
    Int,
    IntLike,
    Max,
    Min,
    Mod,
    Mul,
    Rule,
    Sym,
    add,
    add_bounds,
    as_expr,
    by_structure,
    ceildiv,
    clear_memo,
    dot,
    evaluate,
    factors_of,
    floordiv,
    integer,
    intern,
    linear,
    mod,
    mul,
    product,
    strides_of,
    substitute,
    substitute_all,
    sum_of,
    sym,
    terms_of,
    total,
)

__all__ = [
    "PROOFS",
    "RULES",
    "SUM_RULES",
    "Add",
    "Bound",
    "Expr",
    "FloorDiv",
    "Int",
    "IntLike",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Sym",
    "add",
    "as_expr",
    "at_most",
    "ceildiv",
    "clear_memo",
    "dot",
    "evaluate",
    "factors_of",
    "floordiv",
    "integer",
    "known_le",
    "known_lt",
    "least",
    "linear",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "product",
    "prove",
    "strides_of",
    "substitute",
    "substitute_all",
    "sym",
    "terms_of",
    "total",
]


# -- extrema and comparisons ---------------------------------------------------------------------------------------
def minimum(*items: IntLike) -> Expr:
    """The least item. Raises: TypeError without items."""
    return _extremum(Min, items)


def maximum(*items: IntLike) -> Expr:
    """The greatest item. Raises: TypeError without items."""
    return _extremum(Max, items)


def _extremum(cls: type[Extremum], items: tuple[IntLike, ...]) -> Expr:
    if not items:
        raise TypeError(f"{cls.__name__.lower()}imum: no item was given; allowed: one or more")
    flat: list[Expr] = []
    for i in items:
        e = as_expr(i)
        flat.extend(e.args if type(e) is cls else (e,))
    keep: list[Expr] = []
    for e in dict.fromkeys(flat):
        if any(_beats(cls, k, e) for k in keep):
            continue
        keep = [k for k in keep if not _beats(cls, e, k)]
        keep.append(e)
    if len(keep) == 1:
        return keep[0]
    return intern(cls, (tuple(sorted(keep, key=by_structure)),))


def _beats(cls: type[Extremum], winner: Expr, other: Expr) -> bool:
    return known_le(winner, other) if cls is Min else known_le(other, winner)


def known_le(a: IntLike, b: IntLike) -> bool:
    """Whether a <= b is provable from the bounds. False means "not proved"."""
    x, y = as_expr(a), as_expr(b)
    if x is y or x.hi <= y.lo:
        return True
    less = x - y
    return less.hi <= 0 or (_is_related(less) and (most := at_most(less)) is not None and most.hi <= 0)


def known_lt(a: IntLike, b: IntLike) -> bool:
    """Whether a < b is provable from the bounds."""
    return known_le(as_expr(a) + 1, b)


# -- symbols whose limit is an expression --------------------------------------------------------------------------


def _is_limited(e: Expr) -> bool:
    """Whether the expression has a loop variable: a symbol with a `below`, or a symbol that counts from 0 to a number."""
    return any(s.below is not None or (s.lo == 0 and s.hi < inf) for s in e.symbols)


def _is_related(e: Expr) -> bool:
    """Whether bounds of the terms, taken one by one, may be wider than `at_most` of the sum."""
    return any(isinstance(t, Mul) for t, _ in terms_of(e)[1]) or any(s.below is not None for s in e.symbols)


def at_most(e: Expr) -> Expr | None:
    """An upper bound of `e` without loop variables (see `_is_limited`); None if none is known."""
    if not _is_limited(e):
        return e
    if isinstance(e, Sym):
        return integer(int(e.hi)) if e.below is None else at_most(e.below - 1)
    if isinstance(e, Add):
        parts = [(at_most(t) if c > 0 else _at_least(t), c) for t, c in e.terms]
        known = [(t, c) for t, c in parts if t is not None]
        return linear(e.const, known) if len(known) == len(parts) else None
    if isinstance(e, Mul):
        tops = [at_most(f) for f in e.factors]
        return None if any(f.lo < 0 for f in e.factors) or None in tops else product(t for t in tops if t is not None)
    if isinstance(e, Mod) and e.b.lo >= 1:
        return at_most(e.b - 1)
    if isinstance(e, FloorDiv) and e.b.lo >= 1 and not _is_limited(e.b):
        top = at_most(e.a)
        return None if top is None else floordiv(top, e.b)
    return None


def _at_least(e: Expr) -> Expr | None:
    """A lower bound of `e` without loop variables."""
    if not _is_limited(e):
        return e
    return integer(int(e.lo)) if e.lo > -inf else None


REBUILD[Min] = lambda _, inner: minimum(*inner)
REBUILD[Max] = lambda _, inner: maximum(*inner)


# -- laws --------------------------------------------------------------------------------------------------------
_NEAR: Final = 1 << 53  # a larger bound is not a fact about sizes, and its multiples do not fit into 64 bits


def _split(a: Expr, d: int) -> tuple[Expr, Expr]:
    """a = d*q + r, with every coefficient of r in (-d, d), and r not negative if that is provable from a near bound."""
    const, terms = terms_of(a)
    whole: list[tuple[Expr, int]] = []
    rest: list[tuple[Expr, int]] = []
    for t, c in terms:
        k = c // d if c > 0 else -(-c // d)
        if k:
            whole.append((t, k))
        if c != k * d:
            rest.append((t, c - k * d))
    lo, _ = add_bounds(const, rest)
    k = const // d
    if -_NEAR < lo < k * d:
        k = int(lo) // d
    return linear(k, whole), linear(const - k * d, rest)


def _div_split(a: Expr, b: Expr) -> Expr | None:
    if not isinstance(b, Int):
        return None
    q, r = _split(a, b.value)
    return None if r is a else q + floordiv(r, b)


def _mod_split(a: Expr, b: Expr) -> Expr | None:
    if not isinstance(b, Int):
        return None
    const, terms = terms_of(a)
    kept: list[tuple[Expr, int]] = []
    for t, c in terms:
        if c * t.multiple_of % b.value == 0:
            continue
        drop = isinstance(t, Mod) and c * t.b.multiple_of % b.value == 0
        kept.append((t.a, c) if drop and isinstance(t, Mod) else (t, c))
    _, r = _split(linear(const, kept), b.value)
    return None if r is a else mod(r, b)


def _low_part(a: Expr, d: int) -> tuple[int, Expr, Expr] | None:
    """(g, p, s) with a = g*p + s, g > 1 dividing d, 0 <= s < g; the largest such g, or None."""
    const, terms = terms_of(a)
    sizes = {math.gcd(c, d) for _, c in terms} | {d}
    sizes |= {math.gcd(x, y) for x in sizes for y in sizes}
    for g in sorted(sizes, reverse=True):
        if g == 1:
            break
        low = [(t, c) for t, c in terms if c % g]
        lo, hi = add_bounds(const, low)
        if abs(lo) == inf or abs(hi) == inf or lo // g != hi // g:
            continue
        k = int(lo) // g
        return g, linear(k, [(t, c // g) for t, c in terms if c % g == 0]), linear(const - k * g, low)
    return None


def _scaled_divisor(b: Expr) -> int:
    """The constant factor of a divisor that is a constant, or a multiple of one term and at least 1; else 1."""
    if isinstance(b, Int):
        return b.value
    const, terms = terms_of(b)
    return terms[0][1] if const == 0 and len(terms) == 1 and b.lo >= 1 else 1


def _without_factor(b: Expr, g: int) -> Expr:
    const, terms = terms_of(b)
    return sum_of(const // g, tuple((t, c // g) for t, c in terms))


def _div_low_part(a: Expr, b: Expr) -> Expr | None:
    part = _low_part(a, d) if (d := _scaled_divisor(b)) > 1 else None
    return None if part is None else floordiv(part[1], _without_factor(b, part[0]))


def _mod_low_part(a: Expr, b: Expr) -> Expr | None:
    part = _low_part(a, d) if (d := _scaled_divisor(b)) > 1 else None
    if part is None:
        return None
    g, p, s = part
    return mod(p, _without_factor(b, g)) * g + s


def _div_known_multiple(a: Expr, b: Expr) -> Expr | None:
    if not isinstance(b, Int):
        return None
    const, terms = terms_of(a)
    whole = [(t, c) for t, c in terms if c * t.multiple_of % b.value == 0]
    low = const % b.value
    if not whole or (len(whole) == len(terms) and low == 0):
        return None
    rest = [(t, c) for t, c in terms if c * t.multiple_of % b.value]
    return floordiv(linear(const - low, whole), b) + floordiv(linear(low, rest), b)


def _div_nested(a: Expr, b: Expr) -> Expr | None:
    const, terms = terms_of(a)
    if len(terms) != 1 or terms[0][1] != 1 or not isinstance(terms[0][0], FloorDiv) or b.lo < 1:
        return None
    inner = terms[0][0]
    return floordiv(inner.a + inner.b * const, inner.b * b) if inner.b.lo >= 1 else None


def _div_of_mod(a: Expr, b: Expr) -> Expr | None:
    if isinstance(a, Mod) and isinstance(b, Int) and isinstance(a.b, Int) and a.b.value % b.value == 0:
        return mod(floordiv(a.a, b), a.b.value // b.value)
    return None


def _cancel(a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """a = b*q + r, q not 0."""
    if a is b:
        return integer(1), integer(0)
    const, terms = terms_of(b)
    if const or len(terms) != 1:
        return _cancel_sum(a, b)
    (_, scale), factors = terms[0], factors_of(terms[0][0])
    a_const, a_terms = terms_of(a)
    whole: list[tuple[Expr, int]] = []
    rest: list[tuple[Expr, int]] = []
    for t, c in a_terms:
        left = list(factors_of(t))
        if c % scale == 0 and all(left.count(f) >= factors.count(f) for f in set(factors)):
            for f in factors:
                left.remove(f)
            whole.append((product(left), c // scale))
        else:
            rest.append((t, c))
    return (linear(0, whole), linear(a_const, rest)) if whole else None


def _cancel_sum(a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """a = b*q + r for a divisor that is a sum, if terms of `a` together are b*q multiplied out; q not 0."""
    lead, scale = max(terms_of(b)[1], key=lambda term: len(factors_of(term[0])))
    factors = factors_of(lead)
    const, terms = terms_of(a)
    left = dict(terms)
    whole: list[tuple[Expr, int]] = []
    for t, c in terms:
        others = list(factors_of(t))
        if c % scale or any(others.count(f) < factors.count(f) for f in factors):
            continue
        for f in factors:
            others.remove(f)
        q = product(others)
        multiple, parts = terms_of(mul(mul(q, c // scale), b))
        if (multiple == 0 or isinstance(q, Int)) and all(left.get(u) == d for u, d in parts):
            const -= multiple
            left = {u: d for u, d in left.items() if (u, d) not in parts}
            whole.append((q, c // scale))
    return (linear(0, whole), linear(const, left.items())) if whole else None


def _div_symbolic(a: Expr, b: Expr) -> Expr | None:
    if isinstance(b, Int):
        return None
    if a.lo >= 0 and known_lt(a, b):
        return integer(0)
    parts = _cancel(a, b)
    return None if parts is None else parts[0] + floordiv(parts[1], b)


def _mod_symbolic(a: Expr, b: Expr) -> Expr | None:
    if isinstance(b, Int):
        return None
    if a.lo >= 0 and known_lt(a, b):
        return a
    parts = _cancel(a, b)
    return None if parts is None else mod(parts[1], b)


def _negative(b: Expr) -> bool:
    return isinstance(b, Int) and b.value < 0


# d, m, g are positive constants.
RULES[FloorDiv] = (
    Rule("x // -d = -x // d", lambda a, b: floordiv(-a, -b) if _negative(b) else None),
    Rule("(d*q + r) // d = q + r // d", _div_split),
    Rule("(g*p + s) // (g*d) = p // d where 0 <= s < g", _div_low_part),
    Rule("(x + y) // d = x // d + y // d where x is a multiple of d", _div_known_multiple),
    Rule("(x // c + k) // d = (x + c*k) // (c*d)", _div_nested),
    Rule("(x % (d*m)) // d = (x // d) % m", _div_of_mod),
    Rule("(s*q + r) // s = q + r // s; x // s = 0 where 0 <= x < s", _div_symbolic),
)
RULES[Mod] = (
    Rule("x % -d = -(-x % d)", lambda a, b: -mod(-a, -b) if _negative(b) else None),
    Rule("(d*q + r) % d = r % d; (y + x % (d*m)) % d = (y + x) % d", _mod_split),
    Rule("(g*p + s) % (g*d) = g*(p % d) + s where 0 <= s < g", _mod_low_part),
    Rule("(s*q + r) % s = r % s; x % s = x where 0 <= x < s", _mod_symbolic),
)



def _plus(sums: dict[Expr, int], e: Expr, k: int) -> tuple[int, dict[Expr, int]]:
    const, terms = terms_of(e)
    for t, c in terms:
        sums[t] = sums.get(t, 0) + c * k
    return const * k, {t: c for t, c in sums.items() if c}


def _sum_whole(sums: dict[Expr, int]) -> Changed:
    """c*f*(m*(x // m) + x % m) = c*f*x."""
    for t, c in sums.items():
        for i, part in enumerate(factors := factors_of(t)):
            if not isinstance(part, Mod):
                continue
            others = product((*factors[:i], *factors[i + 1 :]))
            const, parts = terms_of(mul(others, mul(floordiv(part.a, part.b), part.b)))
            if const == 0 and all(sums.get(u) == c * d for u, d in parts):
                gone = {t, *(u for u, _ in parts)}
                rest = {u: d for u, d in sums.items() if u not in gone}
                return _plus(rest, mul(others, part.a), c)
    return None


def _sum_remainder(sums: dict[Expr, int]) -> Changed:
    """c*(x - m*(x // m)) = c*(x % m), for a single term x."""
    for t, c in sums.items():
        if isinstance(t, FloorDiv) and isinstance(t.b, Int) and c % t.b.value == 0:
            k = -c // t.b.value
            if sums.get(t.a) == k:
                return _plus({u: d for u, d in sums.items() if u is not t and u is not t.a}, mod(t.a, t.b), k)
    return None


SUM_RULES.extend((_sum_whole, _sum_remainder))


# -- proofs: of relations between expressions, from the bounds of their symbols alone ---------------------------------
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
