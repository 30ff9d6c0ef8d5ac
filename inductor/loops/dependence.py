"""Dependences between iterations of loops: which accesses may touch one element.

Two accesses conflict if they touch one element and at least one writes. A loop *separates* two accesses if they can only touch
the same element in the same iteration of the loop, for all iterations of the loops inside it: then no dependence goes from one
iteration to another. Positions are compared as `stride * axis + rest`: different iterations differ by at least the stride, so a rest
that varies by less than the stride cannot bring them together. Multiples of the stride times the number of iterations cannot either. A
position that comes from data may be any. Where positions are not linear in the axis, the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from fxir.expr import rules as E
from fxir.expr.rules import prove
from inductor.ir import definitions as ir
from inductor.loops.tree import (
    REMEMBERED,
    Accumulate,
    Allocate,
    Block,
    Contract,
    Fold,
    Guard,
    Loop,
    Place,
    Statement,
    places_of,
    values_of,
)


class Access(NamedTuple):
    """One read or write of a block. combine: of an Accumulate, else ""; inner: the axes of the block's loops around it.

    limits: expressions e and n with 0 <= e < n at the access.
    """

    place: Place
    writes: bool
    combine: str = ""
    inner: frozenset[E.Sym] = frozenset()
    limits: tuple[tuple[E.Expr, E.Expr], ...] = ()


@lru_cache(maxsize=REMEMBERED)
def accesses(block: Block) -> tuple[Access, ...]:
    """Every access of a block to memory that exists outside of it."""
    found: list[Access] = []
    for s in block:
        match s:
            case Loop():
                found += [a._replace(inner=a.inner | {s.axis}) for a in accesses(s.body)]
            case Guard():
                limits = tuple(limits_of(s.condition))
                found += [a._replace(limits=(*limits, *a.limits)) for a in accesses(s.body)]
            case Allocate():
                found += [a for a in accesses(s.body) if a.place.name != s.local.name]
            case Contract():
                result, depth = (frozenset(a for a, _ in axes) for axes in (s.axes.result, s.axes.depth))
                found += [a._replace(inner=result if a.writes else result | depth) for a in _own(s)]
                found += [a._replace(inner=a.inner | result) for a in accesses(s.body)]
            case _:
                found += _own(s)
    return tuple(found)


def _own(s: Statement) -> list[Access]:
    """The accesses of a statement apart from its body."""
    places, values = places_of(s), values_of(s)
    loads = dict.fromkeys([x for v in values for x in v.loads])
    found = [Access(Place(x.buffer, x.index, x.indirect), False) for x in loads]
    if isinstance(s, Fold):
        for x in s.parts:
            some = ir.counter(f"any_{x.name}", x.size)
            found.append(Access(Place(x.name, some), False, "", frozenset((some,)) if isinstance(some, E.Sym) else frozenset()))
    combine = s.combine if isinstance(s, Accumulate | Fold) else ""
    return [*found, *[Access(p, True, combine) for p in places]]


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


def conflicts(first: Iterable[Access], second: Iterable[Access]) -> list[tuple[Access, Access]]:
    """Pairs of accesses to one buffer of which one writes. Two accumulations of one kind commute, so they do not conflict."""
    others: dict[str, list[Access]] = {}
    for b in second:
        others.setdefault(b.place.name, []).append(b)
    return [
        (a, b)
        for a in first
        for b in others.get(a.place.name, ())
        if (a.writes or b.writes) and not (a.combine and a.combine == b.combine)
    ]


def separates(axis: E.Sym, a: Access, b: Access, others: Iterable[E.Sym] = ()) -> bool:
    """Whether `a` and `b` touch one element only where `axis` has one value for both.

    Loops outside of the axis have the same values for both accesses, except those in `others`, which are independent.
    """
    if a.place.index is b.place.index and not _gathers(a.place) and _is_private(axis, a, b, others):
        return True
    left, right = _position(axis, a, "'", tuple(others)), _position(axis, b, '"', tuple(others))
    if left is None or right is None or left.stride is not right.stride:
        return False
    stride = left.stride
    if left.rest is right.rest and isinstance(stride, E.Int):
        return stride.value != 0
    apart = left.rest - right.rest
    if prove("<", stride, E.as_expr(0)):
        stride = -stride
    if prove("<", E.as_expr(0), stride) is not True:
        return False
    return (_less(apart, stride) and _less(-apart, stride)) or _is_remainder(axis, stride, apart)


def _is_remainder(axis: E.Sym, stride: E.Expr, apart: E.Expr) -> bool:
    """Whether positions differ by multiples of stride * extent of the axis, apart from a rest that varies by less than the stride.

    Positions modulo stride * extent are then different in different iterations of the axis.
    """
    if not isinstance(stride, E.Int) or axis.hi == inf:
        return False
    period = stride.value * (int(axis.hi) + 1)
    const, terms = E.terms_of(apart)
    left = [(t, c) for t, c in terms if c * t.multiple_of % period]
    for start in {const % period, const % period - period, const}:
        rest = E.linear(start, left)
        if rest is not apart and _less(rest, stride) and _less(-rest, stride):
            return True
    return False


def _is_private(axis: E.Sym, a: Access, b: Access, others: Iterable[E.Sym]) -> bool:
    """Whether two accesses at one index move with the axis and with no loop inside of it."""
    e = a.place.index
    moving = [t for t, _ in e.terms if axis in t.symbols] if isinstance(e, E.Add) else [e]
    if moving != [axis]:
        return False
    symbols = a.place.index.symbols - {axis}
    return symbols.isdisjoint(a.inner) and symbols.isdisjoint(b.inner) and symbols.isdisjoint(others)


def _gathers(place: Place) -> bool:
    return any(s in place.index.symbols for s, _ in place.indirect)


def _less(a: E.Expr, b: E.Expr) -> bool:
    """Whether a < b for all values of the symbols, by the proof rules or because the bound of each counter can be put in."""
    if a.hi < b.lo:
        return True
    if prove("<", a, b) is True:
        return True
    highest = E.at_most(a)
    return highest is not None and prove("<", highest, b) is True


_BELOW: Final = E.integer(-1)  # the greatest number less than every position


class _Position(NamedTuple):
    """stride * axis + rest; the axes that are free in `rest`, `moving`, have separate names for each access."""

    stride: E.Expr
    rest: E.Expr
    moving: frozenset[E.Expr]


@lru_cache(maxsize=REMEMBERED)
def _position(axis: E.Sym, access: Access, mark: str, others: tuple[E.Sym, ...]) -> _Position | None:
    free = {s for s in (*access.inner, *others) if s is not axis} | {s for s, _ in access.place.indirect}
    split = E.strides_of(access.place.index, [axis])
    if split is None:
        return None
    strides, rest = split
    if not strides[axis].symbols.isdisjoint(free):
        return None  # one iteration may step over more elements than another
    if access.limits:
        rest = _within_limits(rest, access.limits, axis, free, mark)
    own: dict[E.Expr, E.Expr] = {}
    for s in free & rest.symbols:
        own[s] = E.sym(s.name + mark, s.lo, s.hi, s.multiple, s.below)
    return _Position(strides[axis], E.substitute(rest, own) if own else rest, frozenset(own.values()))


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


def private_part(a: Access, axis: E.Sym) -> tuple[E.Expr, E.Expr] | None:
    """(stride, start) of a position `start + stride * axis + rest` with 0 <= rest < stride for all values of the loops inside of `axis`.

    `start` depends on outer loops alone. None: the elements of one iteration are not known to be its own.
    """
    if _gathers(a.place):
        return None
    position = _position(axis, a, "'", ())
    if position is None:
        return None
    const, terms = E.terms_of(position.rest)
    if a.place.index.symbols.isdisjoint(a.inner - {axis}) and not a.limits and position.stride.lo > 0:
        return position.stride, position.rest - const if 0 < const < position.stride.lo else position.rest
    moving = [(t, c) for t, c in terms if t.symbols & position.moving or any(s.name.startswith("limit") for s in t.symbols)]
    fixed = [(t, c) for t, c in terms if (t, c) not in moving]
    for shift in (const, 0):  # a constant is a place within the part if it fits
        rest = E.linear(shift, moving)
        if _less(rest, position.stride) and _less(_BELOW, rest):
            return position.stride, E.linear(const - shift, fixed)
    return None


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


