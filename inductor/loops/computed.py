"""The loops that compute a block of an operand of a contraction: the prologue of a product.

The operand `a` of a contraction may be a value that no buffer holds. A target that multiplies blocks computes such a block right before
its product, in memory that is near.
"""

from __future__ import annotations

from typing import Final

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import product
from inductor.loops.finished import PARAMETERS, R0, R1, Finished, counted, runs_of
from inductor.loops.tree import Contract, Loop, Place, Store, substitute

__all__ = ["COMPUTED_PARAMETERS", "computed_block", "computed_name", "computed_operand"]

_PITCH: Final = E.sym("pitch", 0)
# As for a finished block, with the depth as its columns; and the elements between two rows of the block.
COMPUTED_PARAMETERS: Final = (*PARAMETERS, "pitch")


def computed_name(s: Contract) -> str:
    """The name of the memory that holds a block of the operand `a`."""
    return f"{s.name} a"


def computed_operand(s: Contract) -> ir.Value:
    """The operand `a` as a load from rows of elements without gaps, equal for all products of a batch."""
    position = ir.linear_position([n for _, n in (*s.axes.rows, *s.axes.depth)], [axis for axis, _ in (*s.axes.rows, *s.axes.depth)])
    return ir.load(computed_name(s), position, s.a.dtype)


def computed_block(s: Contract) -> Finished:
    """The loops that store the operand `a` of some rows and some of the depth, with element (row, k) at row * pitch + k."""
    moved: dict[E.Expr, E.IntLike] = {}
    counted("batch", s.axes.batch, moved)
    row = counted("row", s.axes.rows, moved)
    at = ir.linear_position([n for _, n in s.axes.depth], [axis for axis, _ in s.axes.depth])
    place = Place(computed_name(s), E.as_expr(row * _PITCH + at))
    body, ranges = runs_of(s.axes.depth, substitute((Store(place, s.a),), moved))
    if isinstance(row, E.Sym):
        body = (Loop(row, product(n for _, n in s.axes.rows), "serial", body),)
        ranges[row.name] = (R0, R1)
    return Finished(body, ranges)
