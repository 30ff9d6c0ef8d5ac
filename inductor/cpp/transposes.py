"""Loops that copy elements with functions of the prelude. Owns the form of these loops.

`fj_transpose` transposes a tile in vector registers: two loops that read along the outer one and store along the inner one.
`fj_stream` copies to memory past the caches: one loop.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.loops.tree import Loop, Place, Store

SIDE: Final = 8  # the sides of a tile are multiples of it
ITEM_BYTES: Final = (4, 8)  # of the elements


class Transposition(NamedTuple):
    """to[r * to_step + c] = source[c * from_step + r] for r < rows and c < columns; `to` and `source` are the first elements.

    is_streamed: the stores go past the caches.
    """

    rows: int
    columns: int
    to: Place
    to_step: E.Expr
    source: ir.Load
    from_step: E.Expr
    is_streamed: bool


def transposition(outer: Loop) -> Transposition | None:
    """The tile that a loop and the loop inside of it transpose; None if the loops have another form."""
    if len(outer.body) != 1 or not isinstance(inner := outer.body[0], Loop) or len(inner.body) != 1:
        return None
    s = inner.body[0]
    if not isinstance(s, Store) or s.place.indirect or not isinstance(v := s.value, ir.Load) or v.mask is not None or v.indirect:
        return None
    if v.buffer == s.place.name or v.dtype.itemsize not in ITEM_BYTES or "parallel" in (outer.kind, inner.kind):
        return None
    axes = [outer.axis, inner.axis]
    stores, loads = E.strides_of(s.place.index, axes), E.strides_of(v.index, axes)
    if stores is None or loads is None or not _is_one(stores[0][inner.axis]) or not _is_one(loads[0][outer.axis]):
        return None
    rows, columns = outer.extent, inner.extent
    if not isinstance(rows, int) or not isinstance(columns, int) or rows % SIDE or columns % SIDE:
        return None
    source = ir.load(v.buffer, loads[1], v.dtype)
    assert isinstance(source, ir.Load)
    steps = stores[0][outer.axis], loads[0][inner.axis]
    return Transposition(rows, columns, Place(s.place.name, stores[1]), steps[0], source, steps[1], inner.kind == "streamed")


def streamed_copy(loop: Loop) -> tuple[Place, ir.Load, int] | None:
    """Where a loop that copies contiguous elements begins to store and to load, and their number; None for other loops.

    loop: is streamed.
    """
    s = loop.body[0]
    if len(loop.body) != 1 or not isinstance(s, Store) or not isinstance(v := s.value, ir.Load):
        return None
    if s.place.indirect or v.indirect or v.mask is not None or v.buffer == s.place.name or not isinstance(loop.extent, int):
        return None
    steps = [E.strides_of(e, [loop.axis]) for e in (s.place.index, v.index)]
    if any(x is None or not _is_one(x[0][loop.axis]) for x in steps):
        return None
    first: dict[E.Expr, E.IntLike] = {loop.axis: 0}
    source = ir.load(v.buffer, E.substitute(v.index, first), v.dtype)
    assert isinstance(source, ir.Load)
    return Place(s.place.name, E.substitute(s.place.index, first)), source, loop.extent


def _is_one(e: E.Expr) -> bool:
    return isinstance(e, E.Int) and e.value == 1
