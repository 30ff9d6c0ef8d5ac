"""A printed kernel, the places of the buffers that it reaches, and the code that starts it.

Owns `Place`, `Kernel`, the estimate of a kernel's time (`Cost`) and the decision between one thread and several (`launch`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.cpp.units import SIZES
from inductor.cpp.values import size_source
from inductor.ir import definitions as ir
from inductor.ir.inline import EXPENSIVE
from inductor.ir.sizes import Size, is_symbolic, nominal, plain

PLAIN_NS, EXPENSIVE_NS = 0.12, 0.8  # nanoseconds of one vectorised operation on one element
FLOP_NS: Final = 0.01  # nanoseconds of a multiplication or addition in the core of a product, on one thread
GATHER: Final = 6  # a load at a position that comes from memory, in loads at a known position


class Place(NamedTuple):
    """The place of a buffer: entry of `bufs` and bytes from there; `dtype` of its elements. number: of a symbolic offset in the
    graph's sizes.
    """

    entry: int
    offset_bytes: Size
    dtype: dtype
    number: int = -1

    @property
    def offset(self) -> str:
        """The offset as C++ source."""
        return str(self.offset_bytes) if self.number < 0 else f"{SIZES}[{self.number}]"

    @property
    def source(self) -> str:
        """The pointer as C++ source."""
        return f"bufs[{self.entry}]" + (f" + {self.offset}" if self.offset_bytes != 0 else "")


class Kernel(NamedTuple):
    """A printed kernel. `text` and `call` name its function `units.NAME`.

    pointers: the contents of `args` after `bufs` at the call; None if the function takes `bufs` itself.
    title: the calls that it computes, by number of the node. cost_ns: its estimated time on one thread; symbolic_ps: the part
    of it that depends on symbols, in which case cost_ns is 0.
    """

    text: str
    call: str
    pointers: tuple[str, ...] | None
    title: str
    cost_ns: float
    symbolic_ps: Size = 0


class Cost(NamedTuple):
    """Estimated nanoseconds of one iteration of the outer loop: a sum of ns * size."""

    terms: tuple[tuple[float, Size], ...]

    @property
    def ns(self) -> float:
        return sum([ns * (n if type(n) is int else nominal(n)) for ns, n in self.terms])

    def is_fixed(self) -> bool:
        return not is_symbolic(*(n for _, n in self.terms))

    def source(self) -> str:
        """As a C++ double."""
        fixed = sum(ns * n for ns, n in self.terms if isinstance(n, int))
        return " + ".join([f"{fixed!r}", *(f"{ns!r} * {size_source(n)}" for ns, n in self.terms if not isinstance(n, int))])

    def picoseconds(self, count: Size) -> Size:
        return plain(count * plain(E.total(E.mul(math.ceil(ns * 1000), n) for ns, n in self.terms)))

    def of(self, count: Size) -> tuple[float, Size]:
        """(nanoseconds, picoseconds) of `count` iterations: nanoseconds if all sizes are fixed, else picoseconds."""
        if isinstance(count, int) and self.is_fixed():
            return self.ns * count, 0
        return 0.0, self.picoseconds(count)


def operations_ns(values: Iterable[ir.Value]) -> float:
    """Nanoseconds to compute `values` once in a vectorised loop, loads included."""
    found = 0.0
    for v in ir.walk(values):
        if isinstance(v, ir.Op):
            found += EXPENSIVE_NS if v.name in EXPENSIVE else PLAIN_NS
        elif isinstance(v, ir.Load):
            found += PLAIN_NS * (GATHER if v.indirect else 1)
    return found


def launch(function: str, context: str, count: Size, each: Cost, parallel_ns: int) -> str:
    """The statement that runs function(context, begin, end) over 0..count, on several threads if one needs `parallel_ns`."""
    if not isinstance(count, int) or not each.is_fixed():
        return (f"{{ const i64 count = {size_source(count)}; const f64 each = {each.source()};\n"
                f"    if (count * each < {parallel_ns}.0) {function}({context}, 0, count);\n"
                f"    else rt->parallel_for(rt, {function}, {context}, count, 1 + (i64)({parallel_ns}.0 / (2 * each))); }}")  # fmt: skip
    cost = each.ns * count
    if count <= 1 or cost < parallel_ns:
        return f"{function}({context}, 0, {count});"
    grain = max(1, math.ceil(count * parallel_ns / (2 * cost)))
    return f"rt->parallel_for(rt, {function}, {context}, {count}, {grain});"
