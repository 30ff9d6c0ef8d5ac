"""A pointwise loop, split where conditions on its own axis change, so that each piece computes without them.

The code of joined, padded and cut tensors (`cat`, `pad`, the gradient of a slice) tests at every element which part it is in.
Within a piece the result is known: the other branches disappear, and the ranges of the axis are narrow enough to simplify
positions. If positions still divide the axis by one number, the piece runs in lines of that many elements, along which
positions are linear. Pieces are independent of C++.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.substitute import both

MOST_PIECES: Final = 6
MOST_WORK: Final = 200  # most operations of all pieces together: code must not grow without bound
WORTHWHILE: Final = 16  # most elements of the longest piece
SHORTEST_LINE: Final = 8

# from c + these on, the comparison `axis <name> c` has another value
_TURNS: Final[dict[str, tuple[int, ...]]] = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}
_MIRRORED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Iterations start..stop of the axis and their values. The axis is line * run + at: with line 0 it is `at` alone, else `at`
    counts the elements of a line. `run` and `at` are symbols, or numbers if they have one value only.
    """

    start: int
    stop: int
    values: tuple[ir.Value, ...]
    run: E.Expr
    at: E.Expr
    line: int


def pieces(values: Sequence[ir.Value], k: int, size: int) -> tuple[Piece, ...]:
    """The loop of axis `k` over `size` in pieces; empty if the loop should stay whole."""
    axis = ir.axis(k, size)
    turns = sorted({t for v in ir.walk(values) if isinstance(v, ir.Op) for t in _turns(v, axis) if 0 < t < size})
    edges = [0, *turns, size]
    if not turns or len(turns) >= MOST_PIECES or max(b - a for a, b in pairwise(edges)) < WORTHWHILE:
        return ()
    if len(edges) * sum(isinstance(v, ir.Op | ir.Load) for v in ir.walk(values)) > MOST_WORK:
        return ()
    return tuple(_piece(values, k, axis, a, b) for a, b in pairwise(edges))


def _turns(v: ir.Op, axis: E.Expr) -> list[int]:
    found = _comparison(v)
    if found is None:
        return []
    name, e, c = found
    shift = e - axis
    return [c - shift.value + t for t in _TURNS[name]] if isinstance(shift, E.Int) else []


def _comparison(v: ir.Op) -> tuple[str, E.Expr, int] | None:
    """(name, expression, number) of a comparison of an index expression with a number."""
    if v.name not in _TURNS:
        return None
    a, b = v.args
    if isinstance(a, ir.Index) and isinstance(b, ir.Const) and isinstance(b.value, int):
        return v.name, a.expr, b.value
    if isinstance(b, ir.Index) and isinstance(a, ir.Const) and isinstance(a.value, int):
        return _MIRRORED[v.name], b.expr, a.value
    return None


def _piece(values: Sequence[ir.Value], k: int, axis: E.Expr, start: int, stop: int) -> Piece:
    here = E.sym(f"i{k}", start, stop - 1)
    narrow = _rewrite(values, {axis: here})
    line = _line(narrow, here, start, stop)
    if not line:
        return Piece(start, stop, narrow, E.integer(0), here, 0)
    run, at = E.sym(f"run{k}", start // line, stop // line - 1), E.sym(f"at{k}", 0, line - 1)
    return Piece(start, stop, _rewrite(narrow, {here: run * line + at}), run, at, line)


def _line(values: Sequence[ir.Value], axis: E.Expr, start: int, stop: int) -> int:
    """The only number that positions divide the axis by, if it divides the piece into lines; else 0."""
    pending: list[E.Expr] = []
    for v in ir.walk(values):
        if isinstance(v, ir.Load):
            pending.append(v.index)
        elif isinstance(v, ir.Index):
            pending.append(v.expr)
    divisors: set[int] = set()
    while pending:
        e = pending.pop()
        if isinstance(e, E.FloorDiv | E.Mod) and axis in e.symbols:
            if e.children[0] is not axis or not isinstance(e.children[1], E.Int):
                pending.extend(e.children)
                continue
            divisors.add(e.children[1].value)
        pending.extend(e.children)
    line = min(divisors, default=0)
    even = line >= SHORTEST_LINE and all(n % line == 0 for n in (*divisors, start, stop))
    return line if even else 0


def _rewrite(values: Iterable[ir.Value], mapping: dict[E.Expr, E.IntLike]) -> tuple[ir.Value, ...]:
    """The values with axes replaced, and with every comparison that the ranges of the new axes decide replaced by its result."""
    values = tuple(values)
    done: dict[ir.Value, ir.Value] = {}
    for v in ir.walk(values):
        done[v] = _rebuilt(v, done, mapping)
    return tuple(done[v] for v in values)


def _rebuilt(v: ir.Value, done: dict[ir.Value, ir.Value], mapping: dict[E.Expr, E.IntLike]) -> ir.Value:
    if isinstance(v, ir.Index):
        return ir.index(E.substitute(v.expr, mapping))
    if isinstance(v, ir.Load):
        mask = None if v.mask is None else done[v.mask]
        if isinstance(mask, ir.Const) and not mask.value:
            return ir.const(0, v.dtype)  # the element is not read
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
        found = _comparison(made)
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
