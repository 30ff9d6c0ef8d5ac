"""The pointwise definition that a product computes itself, block by block, in place of a buffer.

A nest that computes one operand of one product alone need not store it: the product's prologue computes each block right before it is
multiplied. The prologue must read its sources along the depth, as the product reads the operand. A definition with expensive operations
gains nothing: its time is not the time of its memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.definitions import producer_at
from inductor.ir.values import EXPENSIVE, free_axes
from inductor.plan.schedule import Nest, Schedule


def producer_of(made: Schedule, at: int, apart: Collection[int]) -> int:
    """The nest before step `at`, a product, that computes the product's operand `a` and nothing else; -1 if no nest does.

    apart: steps that run as part of another step, or between calls.
    """
    product = made.steps[at].members[0]
    d = product.definition
    if not isinstance(d, ir.Contraction) or not isinstance(d.a, ir.Load) or d.a.mask is not None or d.a.indirect:
        return -1
    name = d.a.buffer
    found = next((j for j in range(at - 1, -1, -1) if any(m.name == name for m in made.steps[j].members)), -1)
    if found < 0 or found in apart or not isinstance(made.steps[found], Nest) or len(made.steps[found].members) != 1:
        return -1
    source, program = made.steps[found].members[0], made.program
    leaves = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    readers = [b.name for b in program.buffers.values() if name in b.reads]
    is_alone = readers == [product.name] and name not in leaves and all(v.buffer != name for v in d.b.loads)
    # A step between the two may store into an input.
    is_kept = {w.input for w in program.writes}.isdisjoint(source.reads)
    return found if is_alone and is_kept and _is_cheap_along_depth(d, source) else -1


def computing(product: ir.Buffer, source: ir.Buffer) -> ir.Buffer:
    """The product with the definition of `source` in place of its operand `a`."""
    d = product.definition
    assert isinstance(d, ir.Contraction)
    return replace(product, definition=replace(d, a=_operand(d, source)), source=source.source.join(product.source))


def _operand(d: ir.Contraction, source: ir.Buffer) -> ir.Value:
    assert isinstance(d.a, ir.Load)
    return producer_at(ir.pointwise_of(source), d.a)


def _is_cheap_along_depth(d: ir.Contraction, source: ir.Buffer) -> bool:
    """Whether neighbours along the depth are neighbours in every source, or one element of it, and the operations are cheap."""
    depth = next((ir.reduced_axis(k, n) for k, n in reversed([*enumerate(d.reduced)]) if n != 1), None)
    if depth is None or not isinstance(source.definition, ir.Pointwise):
        return False
    if any(isinstance(v, ir.Op) and v.name in EXPENSIVE for v in source.definition.values):
        return False
    for v in _operand(d, source).loads:
        steps = E.strides_of(v.index, [depth])
        if steps is None or steps[0][depth] not in (E.integer(0), E.integer(1)) or any(depth in free_axes(x) for _, x in v.indirect):
            return False
    return True
