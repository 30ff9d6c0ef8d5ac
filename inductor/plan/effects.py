"""The place of calls that have an effect among the loops of a program."""

from __future__ import annotations

from eager.optable.registry import Kind
from eager.optable.table import OPS
from inductor.ir import definitions as ir
from inductor.plan.updates import CHECKS


def effects_first(program: ir.Program) -> list[ir.Buffer]:
    """The definitions in order, but calls that have an effect and read nothing come before loops: they would part loops that belong
    together. No such call, which changes the state of a generator, passes a call or a check that may raise an error.
    """
    order: list[ir.Buffer] = []
    first = 0  # place of the next such call
    for b in program.buffers.values():
        if _is_free(b):
            order.insert(first, b)
            first += 1
        else:
            order.append(b)
            first = len(order) if _may_raise(b) else first
    return order


def _is_free(b: ir.Buffer) -> bool:
    return isinstance(b.definition, ir.Extern) and OPS[b.definition.op].kind is Kind.EFFECT and not b.reads


def _may_raise(b: ir.Buffer) -> bool:
    d = b.definition
    return isinstance(d, ir.Extern) or (d is not None and any(isinstance(v, ir.Op) and v.name in CHECKS for v in d.values))
