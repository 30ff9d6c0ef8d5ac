"""Results of products in the 16-bit dtype that all their readers convert them to.

A product adds up in float32, and its conversion is a part of the loops that read it. Where they cannot run on the blocks of the
product, its result is in memory: the conversion then runs on the blocks, and half as many bytes are stored and read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eager.base import dtypes
from eager.base.dtypes import dtype
from inductor.ir import definitions as ir
from inductor.ir.definitions import with_value
from inductor.ir.values import replace_loads
from inductor.plan.schedule import Nest, Schedule, Single, Step


def converted_results(program: ir.Program) -> dict[str, dtype]:
    """The products of float32 whose elements are read as numbers of one 16-bit dtype alone, and this dtype."""
    kept = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    for b in program.buffers.values():
        if b.definition is not None and not b.definition.operands:  # a call, which reads whole buffers
            kept.update(b.reads)
    products = {n for n, b in program.buffers.items() if isinstance(b.definition, ir.Contraction) and b.layout.dtype is dtypes.float32}
    uses: dict[str, set[dtype]] = {n: set() for n in products - kept}
    for b in program.buffers.values():
        if b.definition is not None and not uses.keys().isdisjoint(b.reads):
            for name, to in _conversions(b.definition):
                uses.get(name, set()).add(to)
    return {n: next(iter(to)) for n, to in uses.items() if len(to) == 1 and all(t.itemsize == 2 and t.is_floating_point for t in to)}


def _conversions(d: ir.Definition) -> Iterator[tuple[str, dtype]]:
    """Each use of a loaded element: its buffer, and the dtype that the element is converted to, or its dtype."""
    for root in d.operands:
        if isinstance(root, ir.Load):
            yield root.buffer, root.dtype
        for v in ir.walk([root]):
            for x in v.children:
                if isinstance(x, ir.Load):
                    yield x.buffer, v.dtype if isinstance(v, ir.Op) and v.name == "cast" else x.dtype


def narrowed(made: Schedule, results: Mapping[str, dtype]) -> Schedule:
    """The schedule in which each of these products is followed by its conversion, which all readers of the product read."""
    halves = {name: _half(made.program.buffers[name], to) for name, to in results.items()}

    def source(x: ir.Load) -> ir.Value | None:
        half = halves.get(x.buffer)
        return None if half is None else ir.cast(ir.load(half.name, x.index, half.layout.dtype, x.mask, x.indirect), x.dtype)

    def read(b: ir.Buffer) -> ir.Buffer:
        if b.definition is None or halves.keys().isdisjoint(b.reads):
            return b
        return replace(b, definition=with_value(b.definition, lambda v: replace_loads(v, source)))

    buffers: dict[str, ir.Buffer] = {}
    for name, b in made.program.buffers.items():
        buffers[name] = read(b)
        if name in halves:
            buffers[halves[name].name] = halves[name]
    steps: list[Step] = []
    for step in made.steps:
        if isinstance(step, Nest):
            steps.append(replace(step, members=[read(m) for m in step.members]))
            continue
        steps.append(Single(read(step.member), tuple(map(read, step.others))))
        if step.member.name in halves:
            half = halves[step.member.name]
            assert isinstance(half.definition, ir.Pointwise)
            steps.append(Nest(half.definition.ranges, [half]))
    return replace(made, program=replace(made.program, buffers=buffers), steps=tuple(steps))


def _half(product: ir.Buffer, to: dtype) -> ir.Buffer:
    """The conversion of a product."""
    d = product.definition
    assert isinstance(d, ir.Contraction)
    value = ir.cast(ir.load(product.name, ir.own_position(d.ranges), product.layout.dtype), to)
    layout, definition = replace(product.layout, dtype=to), ir.Pointwise(d.ranges, value)
    return replace(product, name=f"{product.name}_half", layout=layout, definition=definition)


__all__ = ["converted_results", "narrowed"]
