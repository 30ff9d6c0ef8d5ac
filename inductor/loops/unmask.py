"""A loop in two versions: without masks where all its masks hold, and with them elsewhere.

A window over the rows and columns of an image reads nothing outside of the image. Far from its edges no mask is needed, and vector
instructions without masks are several times faster. The masks are the same in each iteration of the loop, and tested once before it.
"""

from __future__ import annotations

from functools import reduce

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.values import both
from inductor.loops.narrow import narrow
from inductor.loops.refusal import Refused
from inductor.loops.tree import Block, Contract, Guard, Loop, values_of, walk


def masks_of(loop: Loop) -> list[ir.Value]:
    """The masks of loads in a loop that read no memory and are the same in each of its iterations; none around a contraction."""
    if any(isinstance(x, Contract) for x in walk(loop.body)):
        return []
    axes = {x.axis for x in walk((loop,)) if isinstance(x, Loop)}
    loads = [x for s in walk(loop.body) for v in values_of(s) for x in v.loads if x.mask is not None]
    masks = dict.fromkeys([x.mask for x in loads if x.mask is not None])
    return [m for m in masks if not any(_changes(v, axes) for v in ir.walk([m]))]


def _changes(v: ir.Value, axes: set[E.Sym]) -> bool:
    return isinstance(v, ir.Load) or (isinstance(v, ir.Index) and not axes.isdisjoint(v.expr.symbols))


def unmasked(loop: Loop) -> Block:
    """Both versions of the loop. Raises: Refused if it has no mask that is the same in each iteration."""
    masks = masks_of(loop)
    if not masks:
        raise Refused("no mask is the same in each iteration")
    inside = reduce(lambda a, b: both(a, b) or a, masks)
    outside = ir.make_op("logical_not", (inside,), dtypes.bool_)
    return (Guard(inside, narrow((loop,), masks)), Guard(outside, (loop,)))
