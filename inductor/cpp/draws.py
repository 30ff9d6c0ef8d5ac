"""Loops that draw whole chunks of random words with functions of `inductor.cpp.random_bits`. Owns the form of these loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eager.optable.random import LANES
from fxir.expr import rules as E
from inductor.cpp.random_bits import FILLS
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain
from inductor.loops.staged_draws import CHUNK, chunk_of, first_in_order
from inductor.loops.tree import Loop, Place, Store


class Draw(NamedTuple):
    """Word k of the elements of `chunks` chunks goes to the place to[k] and the places after it.

    state: the halves of the key, and the offset of the draw. counter: of the first chunk, as its distance from the offset.
    """

    to: tuple[Place, ...]
    state: tuple[ir.Value, ...]
    counter: E.Expr
    chunks: Size

    @property
    def function(self) -> str:
        """The operation of the prelude that draws."""
        return FILLS[len(self.to)]

    def call(self, to: Sequence[str], state: Sequence[str], counter: str, chunks: str) -> str:
        """The statement that draws. The arguments are in C++."""
        low, high, offset = state
        pointers = ", ".join(f"&{x}" for x in to)
        return f"fj_{self.function}({pointers}, {low}, {high}, (i64)((u64){offset} + (u64)({counter})), {chunks});"


def whole_draw(loop: Loop) -> Draw | None:
    """The chunks that a vector loop draws and stores in order; None for other loops."""
    if loop.kind != "vector":
        return None
    drawn: list[ir.Op] = []
    places: dict[int, Place] = {}
    for s in loop.body:
        if not isinstance(s, Store) or not isinstance(v := s.value, ir.Op) or v.name != "philox" or s.place.indirect:
            return None
        steps, word = E.strides_of(s.place.index, [loop.axis]), v.args[4]
        if steps is None or steps[0][loop.axis] is not E.as_expr(1) or not isinstance(word, ir.Const):
            return None
        places[int(word.value)] = Place(s.place.name, steps[1])
        drawn.append(v)
    chunk, words = chunk_of(drawn[0]), CHUNK // chunk_of(drawn[0])
    first = first_in_order(drawn[0], [(loop.axis, loop.extent)])
    is_one = len({(*v.args[:4], v.args[5]) for v in drawn}) == 1 and len(drawn) == len(places) == words
    if first is None or not is_one or any(E.mod(e, chunk) is not E.as_expr(0) for e in (first, loop.extent)):
        return None
    counter = E.mul(E.floordiv(first, chunk), LANES)
    return Draw(tuple(places[k] for k in range(words)), drawn[0].args[:3], counter, plain(E.floordiv(loop.extent, chunk)))
