"""Which iterations of a loop touch the same memory.

Two accesses conflict if they touch one element and at least one writes. A loop *separates* two accesses if they can only touch
the same element in the same iteration of the loop, for all iterations of the loops inside it: then no dependence goes from one iteration
to another. Positions are compared as `stride * axis + rest`: different iterations differ by at least the stride, so a rest that
varies by less than the stride cannot bring them together. Where the positions are not linear in the axis, or come from data,
the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fxir.expr import rules as E
from fxir.expr.proofs import prove
from inductor.ir import definitions as ir
from inductor.loops.tree import Accumulate, Allocate, Block, Guard, Loop, Place, Statement, places_of, values_of


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write. combine: of an Accumulate, else ""; limits: expressions e and n with 0 <= e < n at the access."""

    place: Place
    writes: bool
    combine: str
    inner: frozenset[E.Sym]
    limits: tuple[tuple[E.Expr, E.Expr], ...]


def accesses(block: Block, inner: frozenset[E.Sym] = frozenset(), limits: tuple[tuple[E.Expr, E.Expr], ...] = ()) -> Iterator[Access]:
    """Every access of a block to memory that exists outside of it. inner: the axes of loops that were entered."""
    for s in block:
        match s:
            case Loop():
                yield from accesses(s.body, inner | {s.axis}, limits)
            case Guard():
                yield from accesses(s.body, inner, (*limits, *limits_of(s.condition)))
            case Allocate():
                yield from (a for a in accesses(s.body, inner, limits) if a.place.name != s.local.name)
            case _:
                yield from _own(s, inner, limits)


def _own(s: Statement, inner: frozenset[E.Sym], limits: tuple[tuple[E.Expr, E.Expr], ...]) -> Iterator[Access]:
    for v in ir.walk(values_of(s)):
        if isinstance(v, ir.Load):
            yield Access(Place(v.buffer, v.index, v.indirect), False, "", inner, limits)
    combine = s.combine if isinstance(s, Accumulate) else ""
    yield from (Access(p, True, combine, inner, limits) for p in places_of(s))


def limits_of(condition: ir.Value) -> Iterator[tuple[E.Expr, E.Expr]]:
    """The upper bounds that a guard sets: `lt(e, n)` gives (e, n)."""
    if isinstance(condition, ir.Op) and condition.name == "logical_and":
        for a in condition.args:
            yield from limits_of(a)
    elif isinstance(condition, ir.Op) and condition.name == "lt":
        left, right = (_expression(a) for a in condition.args)
        if left is not None and right is not None:
            yield left, right


def _expression(v: ir.Value) -> E.Expr | None:
    if isinstance(v, ir.Index):
        return v.expr
    return E.as_expr(int(v.value)) if isinstance(v, ir.Const) else None


def conflicts(first: Iterable[Access], second: Iterable[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses to one buffer of which one writes. Two accumulations of one kind commute, so they do not conflict."""
    others: dict[str, list[Access]] = {}
    for b in second:
        others.setdefault(b.place.name, []).append(b)
    for a in first:
        for b in others.get(a.place.name, ()):
            if (a.writes or b.writes) and not (a.combine and a.combine == b.combine):
                yield a, b


def separates(axis: E.Sym, a: Access, b: Access, others: Iterable[E.Sym] = ()) -> bool:
    """Whether `a` and `b` touch one element only where `axis` has one value for both.

    Loops outside of the axis have the same values for both accesses, except those in `others`, which are independent.
    """
    if _gathers(a.place) or _gathers(b.place):
        return False
    left, right = _Position.of(axis, a, "'", others), _Position.of(axis, b, '"', others)
    if left is None or right is None or left.stride is not right.stride:
        return False
    stride, apart = left.stride, left.rest - right.rest
    if prove("<", stride, E.as_expr(0)):
        stride = -stride
    return prove("<", E.as_expr(0), stride) is True and _less(apart, stride) and _less(-apart, stride)


def _gathers(place: Place) -> bool:
    return any(s in place.index.symbols for s, _ in place.indirect)


def _less(a: E.Expr, b: E.Expr) -> bool:
    """Whether a < b for all values of the symbols, by the proof rules or because the bound of each counter can be put in."""
    if prove("<", a, b) is True:
        return True
    highest = E.at_most(a)
    return highest is not None and prove("<", highest, b) is True


@dataclass(frozen=True, slots=True)
class _Position:
    """stride * axis + rest; the axes that are free in `rest` have separate names for each access."""

    stride: E.Expr
    rest: E.Expr

    @staticmethod
    def of(axis: E.Sym, access: Access, mark: str, others: Iterable[E.Sym]) -> _Position | None:
        split = E.strides_of(access.place.index, [axis])
        if split is None:
            return None
        strides, rest = split
        free = {s for s in (*access.inner, *others) if s is not axis}
        rest = _within_limits(rest, access.limits, axis, free, mark)
        own = {s: _renamed(s, mark) for s in free if s in rest.symbols}
        return _Position(strides[axis], E.substitute(rest, own) if own else rest)


def _renamed(s: E.Sym, mark: str) -> E.Expr:
    return E.sym(s.name + mark, s.lo, s.hi, s.multiple, s.below)


def _within_limits(rest: E.Expr, limits: Sequence[tuple[E.Expr, E.Expr]], axis: E.Sym, free: set[E.Sym], mark: str) -> E.Expr:
    """`rest` with each guarded expression replaced by one symbol that has the guard's bound.

    A split axis occurs as `factor * outer + inner`, whose own bounds reach past the end of the loop that was split.
    """
    for number, (e, n) in enumerate(limits):
        if not e.symbols or axis in e.symbols or not e.symbols <= free:
            continue
        scale = _multiple(rest, e)
        if scale is not None:
            bound = n.value if isinstance(n, E.Int) else n
            rest = rest - scale * e + scale * ir.counter(f"limit{number}{mark}", bound)
    return rest


def _multiple(whole: E.Expr, part: E.Expr) -> E.Expr | None:
    """k such that `whole` is k * part + rest with a rest free of the symbols of `part`, or None."""
    symbols = sorted(part.symbols, key=lambda s: s.name)
    big, small = E.strides_of(whole, symbols), E.strides_of(part, symbols)
    if big is None or small is None:
        return None
    scales = []
    for s in symbols:
        if small[0][s] is E.as_expr(0):
            return None
        k = E.floordiv(big[0][s], small[0][s])
        if E.mul(k, small[0][s]) is not big[0][s]:
            return None
        scales.append(k)
    return scales[0] if all(k is scales[0] for k in scales) else None


def rest_below_stride(a: Access, axis: E.Sym) -> tuple[E.Expr, E.Expr] | None:
    """(stride, rest) of a position `stride * axis + rest` with 0 <= rest < stride for all values of the other axes; else None."""
    if _gathers(a.place):
        return None
    position = _Position.of(axis, a, "'", ())
    if position is None or not _less(position.rest, position.stride) or not _less(E.as_expr(-1), position.rest):
        return None
    return position.stride, position.rest


def carried(loop: Loop) -> list[tuple[Access, Access]]:
    """The conflicts between different iterations of a loop that cannot be ruled out, accumulations included."""
    found = list(accesses(loop.body))
    pairs = [*conflicts(found, found), *_accumulations(found)]
    return [(a, b) for a, b in pairs if not separates(loop.axis, a, b)]


def _accumulations(found: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs of accumulations into one buffer: they commute, but two threads may not do them at once."""
    for k, a in enumerate(found):
        for b in found[k:]:
            if a.combine and a.combine == b.combine and a.place.name == b.place.name:
                yield a, b


