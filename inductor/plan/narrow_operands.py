"""Operands of products in the 16-bit dtype that they are converted from.

The rules of products convert operands to float32 first. A GPU's matrix unit multiplies 16-bit numbers, and adds up in float32: here
a conversion moves from the definition of an operand's buffer into the product that reads it. A product of converted numbers by true
float32 numbers gains nothing, and its kernel would keep too many registers: its operand stays converted in memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeGuard

from eager.base import dtypes
from inductor.ir import definitions as ir
from inductor.ir.values import replace_loads


def narrow_operands(program: ir.Program) -> ir.Program:
    """The program whose products convert their operands while they read them, where the matrix unit needs a conversion."""
    mixed = {name for name, b in program.buffers.items() if isinstance(b.definition, ir.Contraction) and _is_mixed(program, b.definition)}
    narrow = _narrow_buffers(program, mixed)

    def source(x: ir.Load) -> ir.Value | None:
        if x.buffer in narrow:
            return ir.cast(ir.load(x.buffer, x.index, narrow[x.buffer].layout.dtype, x.mask, x.indirect), x.dtype)
        d = program.buffers[x.buffer].definition
        if not isinstance(d, ir.Pointwise) or not isinstance(d.value, ir.Op) or d.value.name != "cast":
            return None
        return ir.producer_at(d, x) if isinstance(d.value.args[0], ir.Load) else None

    buffers = {}
    for name, b in program.buffers.items():
        b = narrow.get(name, b)
        if isinstance(b.definition, ir.Contraction) and name not in mixed:
            a, right = (replace_loads(v, source) for v in b.definition.operands)
            b = replace(b, definition=replace(b.definition, a=a, b=right))
        buffers[name] = b
    return replace(program, buffers=buffers)


def _is_mixed(program: ir.Program, d: ir.Contraction) -> bool:
    """Whether exactly one operand is converted from 16 bits."""
    return len({_narrow_value(program, ir.cast(v, dtypes.float32)) is None for v in d.operands}) == 2


def _narrow_buffers(program: ir.Program, mixed: Collection[str]) -> dict[str, ir.Buffer]:
    """The buffers of float32 that hold numbers of 16 bits and that only products read, as buffers of these numbers.

    mixed: products that read float32.
    """
    kept = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    for name, b in program.buffers.items():
        if not isinstance(b.definition, ir.Contraction) or name in mixed:
            kept.update(b.reads)
    found = {}
    for name, b in program.buffers.items():
        d = b.definition
        if name in kept or not isinstance(d, ir.Pointwise) or b.layout.dtype is not dtypes.float32:
            continue
        value = _narrow_value(program, d.value)
        if value is not None and not (_is_cast(d.value) and isinstance(value, ir.Load)):
            found[name] = replace(b, layout=replace(b.layout, dtype=value.dtype), definition=replace(d, value=value))
    return found


def _narrow_value(program: ir.Program, v: ir.Value) -> ir.Value | None:
    """The number of 16 bits that a value is converted from, in its definition or in the definition of a buffer that it copies."""
    while isinstance(v, ir.Load) and not v.indirect and isinstance(d := program.buffers[v.buffer].definition, ir.Pointwise):
        v = ir.producer_at(d, v)
    if _is_cast(v) and v.dtype is dtypes.float32 and v.args[0].dtype.itemsize == 2 and v.args[0].dtype.is_floating_point:
        return v.args[0]
    return None


def _is_cast(v: ir.Value) -> TypeGuard[ir.Op]:
    return isinstance(v, ir.Op) and v.name == "cast"


__all__ = ["narrow_operands"]
