"""A pointwise loop, split where conditions on its own axis change, so that each piece computes without them.

The code of joined, padded and cut tensors (`cat`, `pad`, the gradient of a slice) tests at every element which part it is in.
Within a piece the result is known: the other branches disappear, and the ranges of the axis are narrow enough to simplify
positions. If positions still divide the axis by one number, the piece runs in lines of that many elements, along which
positions are linear. Pieces are independent of C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.loops.narrow import comparison

MOST_PIECES: Final = 6
MOST_WORK: Final = 200  # most operations of all pieces together: code must not grow without bound
WORTHWHILE: Final = 16  # most elements of the longest piece
SHORTEST_LINE: Final = 8

# from c + these on, the comparison `axis <name> c` has another value
_TURNS: Final[dict[str, tuple[int, ...]]] = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}

def cuts(values: Sequence[ir.Value], axis: E.Expr, size: int) -> tuple[int, ...]:
    """The positions at which a loop over `size` is cut; empty if it should stay whole."""
    turns = sorted({t for v in ir.walk(values) if isinstance(v, ir.Op) and v.name in _TURNS for t in _turns(v, axis) if 0 < t < size})
    edges = [0, *turns, size]
    if not turns or len(turns) >= MOST_PIECES or max(b - a for a, b in pairwise(edges)) < WORTHWHILE:
        return ()
    if len(edges) * sum(isinstance(v, ir.Op | ir.Load) for v in ir.walk(values)) > MOST_WORK:
        return ()
    return tuple(turns)


def _turns(v: ir.Op, axis: E.Expr) -> list[int]:
    found = comparison(v)
    if found is None:
        return []
    name, e, c = found
    shift = e - axis
    return [c - shift.value + t for t in _TURNS[name]] if isinstance(shift, E.Int) else []


def line(values: Sequence[ir.Value], axis: E.Expr, size: Size) -> int:
    """The length of the lines in which a loop over `size` runs: the only number that positions divide the axis by; else 0."""
    pending = ir.expressions_in(values)
    divisors: set[int] = set()
    while pending:
        e = pending.pop()
        if isinstance(e, E.FloorDiv | E.Mod) and axis in e.symbols:
            if e.children[0] is not axis or not isinstance(e.children[1], E.Int):
                pending.extend(e.children)
                continue
            divisors.add(e.children[1].value)
        pending.extend(e.children)
    length = min(divisors, default=0)
    even = length >= SHORTEST_LINE and isinstance(size, int) and all(n % length == 0 for n in (*divisors, size))
    return length if even else 0
