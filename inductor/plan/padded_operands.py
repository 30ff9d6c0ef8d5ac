"""Operands of products whose rows start at unaligned addresses: copied into rows that start at aligned ones.

A GPU loads 16 bytes at once, and ahead of a product, from aligned addresses alone. Rows of an odd number of 16-bit numbers, such as
the logits of 50,257 tokens, are read one number at a time. The copy is a loop of its program like any other: the loop that computes
the operand writes the copy, if nothing else reads the operand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import nominal, product
from inductor.ir.values import replace_loads

ALIGNED_BYTES: Final = 16  # of one load
ROW: Final = 64  # numbers that a row of a copy is a multiple of: a cache line
LEAST_USES: Final = 256  # of each number: below, the copy costs more than the loads
LEAST_SIZE: Final = 256  # of a row: below, the copy is much larger than the operand


def pad_operands(program: ir.Program) -> ir.Program:
    """The program whose products of 16-bit numbers read aligned rows, where the sizes are known."""
    made = _Padder(program)
    for b in program.buffers.values():
        made.add(b)
    return replace(program, buffers=made.buffers)


class _Padder:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.buffers: dict[str, ir.Buffer] = {}

    def add(self, b: ir.Buffer) -> None:
        d = b.definition
        if isinstance(d, ir.Contraction):
            rows, columns = (
                nominal(product(n for n, r in zip(d.ranges, d.roles, strict=True) if r == role)) for role in ("row", "column")
            )

            def padded(x: ir.Load) -> ir.Value | None:
                return self.padded(x, b)

            left = replace_loads(d.a, padded) if columns >= LEAST_USES else d.a
            right = replace_loads(d.b, padded) if rows >= LEAST_USES else d.b
            b = replace(b, definition=replace(d, a=left, b=right))
        self.buffers[b.name] = b

    def padded(self, x: ir.Load, reader: ir.Buffer) -> ir.Value | None:
        """The element from the copy of its buffer, which is defined at its first use. None if the rows are aligned or unknown."""
        layout = self.program.buffers[x.buffer].layout
        if x.dtype.itemsize != 2 or x.mask is not None or x.indirect or not layout.is_row_major or len(layout.shape) < 2:
            return None
        size, count = layout.shape[-1], product(layout.shape[:-1])
        if not isinstance(size, int) or not isinstance(count, int) or size < LEAST_SIZE or count == 1:
            return None
        if size * x.dtype.itemsize % ALIGNED_BYTES == 0:
            return None
        width = -(-size // ROW) * ROW
        index = _in_rows(x.index, size, width)
        if index is None:
            return None
        name = f"{x.buffer}_rows"
        if name not in self.buffers:
            row, column = ir.axis(0, count), ir.axis(1, width)
            inside = ir.make_op("lt", (ir.index(column), ir.index(size)), dtypes.bool_)
            element = ir.load(x.buffer, row * size + column, x.dtype, inside)
            value = ir.make_op("where", (inside, element, ir.const(0, x.dtype)), x.dtype)
            definition = ir.Pointwise((count, width), value)
            self.buffers[name] = replace(reader, name=name, layout=ir.row_major((count, width), x.dtype), definition=definition)
        return ir.load(name, index, x.dtype)


def _in_rows(index: E.Expr, size: int, width: int) -> E.Expr | None:
    """A position in rows of `size` elements as the position in rows of `width`; None if it is not a sum of rows and of one column axis."""
    axes = list(index.symbols)
    found = E.strides_of(index, axes)
    if found is None or found[1] is not E.as_expr(0):
        return None
    steps: list[int] = []
    for axis in axes:
        step = found[0][axis]
        if not isinstance(step, E.Int) or (step.value != 1 and step.value % size) or (step.value == 1 and axis.hi >= size):
            return None
        steps.append(1 if step.value == 1 else step.value // size * width)
    return E.dot(axes, steps) if steps.count(1) == 1 else None


__all__ = ["pad_operands"]
