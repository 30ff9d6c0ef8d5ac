"""Operands of contractions as matrices in memory: a start and one step for each role of their axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir.sizes import Size, plain
from inductor.ir.values import Load, Value
from inductor.loops.tree import Role

__all__ = ["Matrix", "Strides", "blas_layout", "matrix_of", "unit_strides"]

Strides: TypeAlias = tuple[Size, Size]


class Matrix(NamedTuple):
    """The strides of an operand by role, and the position of its first element."""

    step: Size
    row: Size
    column: Size
    start: Size


def matrix_of(v: Value, of: dtype, *roles: Role) -> Matrix | None:
    """The matrix that a plain load of dtype `of` reads over batch, rows and columns; None if the axes of a role have no common step."""
    if not isinstance(v, Load) or v.mask is not None or v.indirect or v.dtype is not of:
        return None
    found = E.strides_of(v.index, [a for role in roles for a, _ in role])
    strides = None if found is None else [_stride(role, found[0]) for role in roles]
    if found is None or strides is None or None in strides:
        return None
    batch, row, column = (n for n in strides if n is not None)
    return Matrix(batch, row, column, plain(found[1]))


def _stride(role: Role, strides: Mapping[E.Expr, E.Expr]) -> Size | None:
    """The step between neighbours of the axes of a role, counted as one; 1 without an axis. None if the steps differ."""
    step: Size | None = None
    whole: Size = 1  # the stride that the next axis outwards must have
    for axis, n in reversed(role):
        own = plain(strides[axis])
        if step is None:
            step = own
        elif own != whole:
            return None
        whole = plain(E.mul(own, n))
    return 1 if step is None else step


def unit_strides(strides: Sequence[Size], shape: tuple[Size, Size]) -> Strides:
    """Strides in which an axis of size 1 does not prevent a BLAS call."""
    row, column = strides
    rows, columns = shape
    if columns == 1 and row != 1:
        column = 1
    elif columns == 1:
        column = _larger(column, rows)
    if rows == 1:
        row = _larger(row, columns) if column == 1 else 1
    return row, column


def _larger(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else plain(E.maximum(a, b))


def blas_layout(strides: Strides, rows: Size, columns: Size) -> tuple[int, Size] | None:
    """(transposed, pitch) of an operand for CBLAS, or None if CBLAS cannot express it for all sizes."""
    row, column = strides
    if column == 1 and E.known_le(columns, row):
        return 0, _larger(row, columns)
    return (1, _larger(column, rows)) if row == 1 and E.known_le(rows, column) else None
