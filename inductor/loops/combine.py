"""Reductions as data: an identity and an associative `merge` of two states.

A state has one or more components. An element enters a reduction as a state (`lift`), so one merge serves elements
and partial results alike, and a reduction may be split, reordered and run in lanes. Sums and products of floats are rounded in
another order then, as in every parallel reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from eager.base import dtypes
from eager.base.dtypes import dtype
from inductor.ir import definitions as ir

State: TypeAlias = tuple[ir.Value, ...]


class Combine(NamedTuple):
    """One kind of reduction.

    identity: the state of no elements, for elements of a dtype. merge: the state of two groups of elements, the first group
    before the second. components: the dtypes of the state, for elements of a dtype. is_ordered: the order of the groups
    matters, so loops over them keep their order.
    """

    name: str
    identity: Callable[[dtype], State]
    merge: Callable[[State, State], State]
    components: Callable[[dtype], tuple[dtype, ...]]
    is_ordered: bool = False


def _single(of: dtype) -> tuple[dtype, ...]:
    return (of,)


def _op(name: str, *args: ir.Value) -> ir.Value:
    return ir.make_op(name, args, args[-1].dtype)


def _simple(name: str, op: str, identity: Callable[[dtype], float | int | bool]) -> Combine:
    """`op` of two values. The later value is the first operand: a target that tests it for nan does so off the chain of results."""
    return Combine(name, lambda of: (ir.const(identity(of), of),), lambda a, b: (_op(op, b[0], a[0]),), _single)


def lowest(of: dtype) -> float | int | bool:
    """The value that every value of the dtype is at least."""
    if of is dtypes.bool_:
        return False
    if of.is_integral:
        return -(1 << (of.itemsize * 8 - 1)) if of.is_signed else 0
    return -math.inf


def highest(of: dtype) -> float | int | bool:
    """The value that every value of the dtype is at most."""
    if of is dtypes.bool_:
        return True
    if of.is_integral:
        return (1 << (of.itemsize * 8 - of.is_signed)) - 1
    return math.inf


def _arg(name: str, before: str, start: Callable[[dtype], float | int | bool]) -> Combine:
    """State (value, position). Of equal values the first position wins; a nan wins over every number."""

    def merge(a: State, b: State) -> State:
        better, same = _bool(before, b[0], a[0]), _bool("eq", a[0], b[0])
        if a[0].dtype.is_floating_point:
            a_nan, b_nan = _bool("isnan", a[0]), _bool("isnan", b[0])
            better = _bool("logical_or", better, _bool("logical_and", b_nan, _bool("logical_not", a_nan)))
            same = _bool("logical_or", same, _bool("logical_and", a_nan, b_nan))
        takes = _bool("logical_or", better, _bool("logical_and", same, _bool("lt", b[1], a[1])))
        return tuple(ir.make_op("where", (takes, y, x), x.dtype) for x, y in zip(a, b, strict=True))

    def identity(of: dtype) -> State:
        return ir.const(start(of), of), ir.const((1 << 63) - 1, dtypes.int64)

    return Combine(name, identity, merge, lambda of: (of, dtypes.int64))


def _bool(name: str, *args: ir.Value) -> ir.Value:
    return ir.make_op(name, args, dtypes.bool_)


def _welford() -> Combine:
    """State (mean, sum of squared deviations, count).

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    def merge(a: State, b: State) -> State:
        count = _op("add", a[2], b[2])
        share = _op("div", b[2], _op("maximum", count, ir.const(1, count.dtype)))
        delta = _op("sub", b[0], a[0])
        mean = _op("add", a[0], _op("mul", delta, share))
        between = _op("mul", _op("mul", delta, delta), _op("mul", a[2], share))
        return mean, _op("add", _op("add", a[1], b[1]), between), count

    return Combine("welford", lambda of: (ir.const(0, of),) * 3, merge, lambda of: (of, of, of))


def _online_softmax() -> Combine:
    """State (maximum, sum of exponentials relative to it).

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
    """

    def merge(a: State, b: State) -> State:
        top = _op("maximum", a[0], b[0])
        # Relative to a top of -inf every exponential is 0; the difference -inf - -inf would be nan.
        zero = ir.const(0, top.dtype)
        shift = ir.make_op("where", (_bool("eq", top, ir.const(-math.inf, top.dtype)), zero, top), top.dtype)
        scaled = [_op("mul", s, _op("exp", _op("sub", m, shift))) for m, s in (a, b)]
        return top, _op("add", *scaled)

    return Combine("softmax", lambda of: (ir.const(-math.inf, of), ir.const(0, of)), merge, lambda of: (of, of))


def _wide_sum() -> Combine:
    """The sum of float32 values in a float64: it is rounded once, at the end."""

    def merge(a: State, b: State) -> State:
        return (_op("add", *(ir.cast(v, dtypes.float64) for v in (a[0], b[0]))),)

    return Combine("wide_sum", lambda _: (ir.const(0, dtypes.float64),), merge, lambda _: (dtypes.float64,))


def _compensated() -> Combine:
    """State (total, carry): the carry holds the rounding errors of the additions to the total.

    Source: Knuth, "The Art of Computer Programming", volume 2, section 4.2.2, theorem B.
    """

    def merge(a: State, b: State) -> State:
        total = _op("add", a[0], b[0])
        part = _op("sub", total, a[0])
        error = _op("add", _op("sub", a[0], _op("sub", total, part)), _op("sub", b[0], part))
        carry = a[1] if isinstance(b[1], ir.Const) and b[1].value == 0 else _op("add", a[1], b[1])
        return total, _op("add", carry, error)

    return Combine("compensated", lambda of: (ir.const(0, of), ir.const(0, of)), merge, lambda of: (of, of))


COMBINES: Final[dict[str, Combine]] = {
    c.name: c
    for c in (
        _simple("sum", "add", lambda of: 0),
        _simple("prod", "mul", lambda of: 1),
        _simple("max", "maximum", lowest),
        _simple("min", "minimum", highest),
        _simple("any", "logical_or", lambda of: False),
        _simple("all", "logical_and", lambda of: True),
        _arg("argmax", "gt", lowest),
        _arg("argmin", "lt", highest),
        _welford(),
        _online_softmax(),
        _wide_sum(),
        _compensated(),
    )
}


def lift(combine: str, value: ir.Value, position: ir.Value) -> State:
    """One element as a state. position: its place in the reduction, an int64 value."""
    match combine:
        case "argmax" | "argmin":
            return value, position
        case "welford":
            return value, ir.const(0, value.dtype), ir.const(1, value.dtype)
        case "softmax":
            return value, ir.const(1, value.dtype)
    return (value,)


def folded(combine: str, parts: State, of: dtype) -> tuple[str, State]:
    """The combine and the state with which an element of the parts of a `Fold` is accumulated into places of dtype `of`."""
    wide = tuple(ir.cast(v, of) for v in parts)
    if combine != "compensated":
        return combine, wide
    both = _op("add", *wide)
    # An infinite total has a carry that is nan.
    return "sum", (ir.make_op("where", (_bool("ne", both, both), wide[0], both), of),)
