"""Results that are computed in the memory of the input that they overwrite, so that no copy follows.

A graph gives an input the elements of a buffer (`ir.Write`). If the kernel that computes the buffer is the last reader of the input,
and reads each element of it only where or before it stores that element, the kernel stores into the input itself. A scatter changes
the input itself if no later step reads it. `Objection` says why a buffer is copied instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, product
from inductor.plan.schedule import LoopNest, Schedule


class Objection(NamedTuple):
    """The reason why `buffer` is copied to `input` after it is computed."""

    buffer: str
    input: str
    reason: str

    def __str__(self) -> str:
        return f"not in place: {self.buffer} is copied to {self.input}: {self.reason}"


def in_place(made: Schedule, nests: Mapping[int, LoopNest], fixed: Collection[str]) -> tuple[dict[str, str], list[Objection]]:
    """The buffers that are computed in an input's memory, with the input; and the reasons for the other writes.

    nests: the loops of each step, without the loops that run as part of another step. fixed: buffers whose memory is decided already.
    """
    homes: dict[str, str] = {}
    objections: list[Objection] = []
    order = _Order.of(made)
    for w in made.program.writes:
        name = w.value.buffer
        reason = "another input is overwritten with it" if name in homes else ""
        buffers = [] if reason else _versions(made.program, w)
        reason = reason or _objection(made, order, nests, w, buffers, fixed)
        if reason:
            objections.append(Objection(name, w.input, reason))
        else:
            homes |= dict.fromkeys(buffers, w.input)
    return homes, objections


class _Order(NamedTuple):
    """The steps of a schedule by the buffers that they concern, so that each write is judged in constant time.

    step: of each buffer. last_read: the last step that reads a buffer. last_extern: the last step that calls an eager kernel, or -1.
    copied: the number of writes that copy each buffer to an input.
    """

    step: dict[str, int]
    last_read: dict[str, int]
    last_extern: int
    copied: Counter[str]

    @classmethod
    def of(cls, made: Schedule) -> _Order:
        members = [(i, m) for i, step in enumerate(made.steps) for m in step.members]
        externs = (i for i, m in members if isinstance(m.definition, ir.Extern))
        last_read = {name: i for i, m in members for name in m.reads}
        step, copied = {m.name: i for i, m in members}, Counter(w.value.buffer for w in made.program.writes)
        return cls(step, last_read, max(externs, default=-1), copied)


def _versions(program: ir.Program, w: ir.Write) -> list[str]:
    """The buffers that would be in the input's memory one after another: the written buffer, and the targets of scatters that make it."""
    names = [w.value.buffer]
    while True:
        d = program.buffers[names[-1]].definition
        if not isinstance(d, ir.Scatter) or d.target == w.input:
            return names[::-1]
        names.append(d.target)


def _objection(made: Schedule, order: _Order, nests: Mapping[int, LoopNest], w: ir.Write, buffers: Sequence[str],
               fixed: Collection[str]) -> str:  # fmt: skip
    program, name = made.program, w.value.buffer
    target = program.buffers[w.input].layout
    if program.checks and not program.early_checks:
        return "positions that the graph computes are checked, and a failed check must leave the input unchanged"
    if any(n in fixed or program.buffers[n].definition is None for n in buffers):
        return "its memory is decided already"
    if w.value.offset != 0 or not (_same(w.value.layout, target) and all(_same(program.buffers[n].layout, target) for n in buffers)):
        return f"its layout is {program.buffers[name].layout}, and the input's is {target}"
    if order.copied[w.input] > (w.value.buffer == w.input):
        return "the input's elements are copied to another input"
    at = order.step[buffers[0]]
    if at not in nests and not isinstance(program.buffers[buffers[0]].definition, ir.Scatter):
        return "no separate pointwise loops compute it"
    if any(at <= order.step[n] for n in program.early_checks):
        return "its loops also check positions"
    if order.last_read.get(w.input, -1) > at:
        return "a later step reads the input"
    if order.last_extern > at:
        return "a later call of an eager kernel may fail, and must leave the input unchanged"
    return _scattered(program, w, buffers) or (_order(nests[at], buffers[0], w.input, target.numel) if at in nests else "")


def _scattered(program: ir.Program, w: ir.Write, buffers: Sequence[str]) -> str:
    """The reason why a scatter of `buffers` may not change the memory of its target, or ""."""
    kept = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {x.value.buffer for x in program.writes}
    for n in buffers:
        d = program.buffers[n].definition
        if not isinstance(d, ir.Scatter):
            continue
        if any(v.buffer in (w.input, *buffers) for v in d.loads):
            return "its values are read from the memory that it changes"
        readers = [b.name for b in program.buffers.values() if d.target in b.reads]
        if d.target != w.input and (d.target in kept or readers != [n]):
            return f"{d.target}, which it changes, is also read elsewhere"
    return ""


def _same(a: ir.Layout, b: ir.Layout) -> bool:
    """Whether the elements of two layouts have the same positions."""
    strides = zip(a.strides, b.strides, a.shape, strict=True) if len(a.shape) == len(b.shape) else ()
    return a.dtype is b.dtype and a.shape == b.shape and all(x == y or n == 1 for x, y, n in strides)


def _order(nest: LoopNest, name: str, given: str, numel: Size) -> str:
    """The reason why some element of `given` may be read after the element of `name` at its place is stored; "" if none is."""
    stored = False
    for bundle in nest.bundles:
        ranges = (*nest.rows, *bundle.inner) if not nest.flat else bundle.inner
        here = ir.linear_position(ranges, [ir.axis(k, n) if n != 1 else 0 for k, n in enumerate(ranges)])
        for m in bundle.members:
            loads = [x for x in m.value.loads if x.buffer == given]
            if loads and (nest.column or m.extra or product(ranges) != numel or any(v.indirect or v.index is not here for v in loads)):
                return "its loops read the input at other elements"
            if stored and given in m.buffer.reads:  # `m.value` may contain the value of the result, which was computed before
                return "its loops read the input after they store the result"
            if m.buffer.name == name:
                stored = True
                if m.kind != "store" or nest.column:
                    return "it is the result of a reduction"
    return ""
