"""Values and statements over narrower ranges of their axes: what the ranges decide is replaced by its result.

A comparison of an index expression with a number is decided where it has one result at every point of the ranges. The branches
that are never taken disappear with it, and with them the loads that only they read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.masks import comparison
from inductor.ir.values import both
from inductor.loops.tree import Accumulate, Block, Fold, Place, Statement, Store, with_body

_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}


def rewrite(
    values: Iterable[ir.Value], mapping: Mapping[E.Expr, E.IntLike], true: Collection[ir.Value] = ()
) -> tuple[ir.Value, ...]:
    """The values with axes replaced, and with every comparison that the ranges of the new axes decide replaced by its result.

    true: conditions that hold.
    """
    values = tuple(values)
    done: dict[ir.Value, ir.Value] = dict.fromkeys(true, ir.const(True, dtypes.bool_))
    for v in ir.walk(values):
        if v not in done:
            done[v] = _rebuilt(v, done, mapping)
    return tuple(done[v] for v in values)


def _rebuilt(v: ir.Value, done: dict[ir.Value, ir.Value], mapping: Mapping[E.Expr, E.IntLike]) -> ir.Value:
    if isinstance(v, ir.Index):
        return ir.index(E.substitute(v.expr, mapping))
    if isinstance(v, ir.Load):
        mask = None if v.mask is None else done[v.mask]
        if isinstance(mask, ir.Const):
            if not mask.value:
                return ir.const(0, v.dtype)  # the element is not read
            mask = None
        return ir.load(v.buffer, E.substitute(v.index, mapping), v.dtype, mask, tuple((s, done[x]) for s, x in v.indirect))
    if isinstance(v, ir.Op):
        return _decided(v.name, tuple(done[a] for a in v.args), v)
    return v


def _decided(name: str, args: tuple[ir.Value, ...], v: ir.Op) -> ir.Value:
    """name(*args), or its value if the value is the same at every point of the ranges."""
    if name == "where" and isinstance(args[0], ir.Const):
        return args[1] if args[0].value else args[2]
    if name == "logical_not" and isinstance(args[0], ir.Const):
        return ir.const(not args[0].value, dtypes.bool_)
    if name in ("logical_and", "logical_or") and all(a.dtype is dtypes.bool_ for a in args):
        for a, other in (args, args[::-1]):
            if isinstance(a, ir.Const):
                return other if bool(a.value) == (name == "logical_and") else a
        if name == "logical_and":
            joined = both(*args)
            assert joined is not None
            return joined
    made = v if args == v.args else ir.make_op(name, args, v.dtype)
    if name in _COMPARE:
        numbers = [a.value for a in args if isinstance(a, ir.Const) and isinstance(a.value, int)]
        if len(numbers) == len(args):
            return ir.const(_COMPARE[name](*numbers), dtypes.bool_)
        found = comparison(made)
        if found is not None:
            truth = _always(*found)
            return made if truth is None else ir.const(truth, dtypes.bool_)
    return made


def _always(name: str, e: E.Expr, c: int) -> bool | None:
    """Whether `e <name> c` holds for all values of e (True), for no value (False), or for some (None)."""
    if name in ("eq", "ne"):
        return None if e.lo <= c <= e.hi else name == "ne"
    low, high = _COMPARE[name](e.lo, c), _COMPARE[name](e.hi, c)
    return bool(low) if low == high else None


def narrow(block: Block, true: Collection[ir.Value] = ()) -> Block:
    """The block with every comparison that the ranges of its axes decide replaced by its result. true: conditions that hold."""

    def place(p: Place) -> Place:
        return Place(p.name, p.index, tuple((s, rewrite((v,), {}, true)[0]) for s, v in p.indirect))

    def one(s: Statement) -> Statement:
        match s:
            case Store():
                return Store(place(s.place), rewrite((s.value,), {}, true)[0])
            case Accumulate():
                return Accumulate(tuple(map(place, s.places)), s.combine, rewrite(s.values, {}, true))
            case Fold():
                return s
        return with_body(s, tuple(map(one, s.body)))

    return tuple(map(one, block))
