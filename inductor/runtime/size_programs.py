"""Derived sizes as a program for the native runtime, for plans without a library of C++.

A program is a flat tuple of pairs (operation, operand) for a machine with a stack; `native/graph_sizes.c` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fxir.expr import nodes as E
from inductor.artifact.format import ArtifactPlan

# The numbers of `enum operation` in native/graph_sizes.c.
_NUMBER, _SIZE, _ADD, _MUL, _FLOORDIV, _MOD, _MIN, _MAX, _PUT = range(9)


def size_program(plan: ArtifactPlan) -> tuple[int, ...]:
    """The program that computes `plan.derived` from the plan's symbols."""
    known: dict[E.Expr, int] = {s.symbol: k for k, s in enumerate(plan.symbols)}
    code: list[int] = []
    for e in plan.derived:
        _push(e, known, code)
        code += (_PUT, 0)
        known.setdefault(e, len(known))
    return tuple(code)


def _push(e: E.Expr | int, known: Mapping[E.Expr, int], code: list[int]) -> None:
    """Append instructions that leave the value of `e` on the stack."""
    match e:
        case int():
            code += (_NUMBER, e)
        case E.Expr() if e in known:
            code += (_SIZE, known[e])
        case E.Int():
            code += (_NUMBER, e.value)
        case E.Add():
            code += (_NUMBER, e.const)
            for term, factor in e.terms:
                _push(term, known, code)
                code += (_NUMBER, factor, _MUL, 0, _ADD, 0)
        case E.Mul():
            _fold(e.factors, _MUL, known, code)
        case E.FloorDiv():
            _fold((e.a, e.b), _FLOORDIV, known, code)
        case E.Mod():
            _fold((e.a, e.b), _MOD, known, code)
        case E.Min():
            _fold(e.args, _MIN, known, code)
        case E.Max():
            _fold(e.args, _MAX, known, code)
        case _:
            raise TypeError(f"size_program: no instructions for {e!r}")


def _fold(operands: tuple[E.Expr | int, ...], operation: int, known: Mapping[E.Expr, int], code: list[int]) -> None:
    for k, operand in enumerate(operands):
        _push(operand, known, code)
        if k:
            code += (operation, 0)
