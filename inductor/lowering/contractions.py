"""Lowering rules of contractions: matrix products.

A rule gives each dim of the result a role and says which elements of the operands meet at a point. Views of the operands cost
nothing, since an operand is a value at a point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from eager.base import dtypes
from eager.base.dtypes import Category
from eager.base.spec import TensorSpec
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.lowering.builder import Builder, Point, axes_of, layout_of, wide
from inductor.lowering.rules import rule

Operand: TypeAlias = Callable[[Point, Point], ir.Value]  # (point of the result, point of the depth) -> element


def contraction(b: Builder, layout: ir.Layout, roles: Sequence[ir.Role], depth: Sequence[Size], left: Operand, right: Operand) -> ir.Ref:
    """A buffer of sums over axes of sizes `depth` of left * right. roles: of each dim of `layout`.

    The result is in the layout's dtype; the operands and the sums are in float32 if it is a half.
    """
    if 0 in layout.shape or 0 in depth:
        return b.pointwise(layout, lambda p: ir.const(0, layout.dtype))
    made = ir.Layout(layout.shape, layout.strides, wide(layout.dtype))
    ranges, point = axes_of(made)
    inner: list[E.IntLike] = []
    sizes: list[Size] = []
    for n in depth:
        inner.append(0 if n == 1 else ir.reduced_axis(len(sizes), n))
        if n != 1:
            sizes.append(n)
    role_of = tuple(roles[d] for d in made.axes)
    result = b.define(made, ir.Contraction(ranges, tuple(sizes), role_of, left(point, inner), right(point, inner)))
    return result if made.dtype is layout.dtype else b.copy(result, layout)


def _element(b: Builder, x: ir.Ref) -> Callable[[Point], ir.Value]:
    """The elements of an operand, which is converted first if it is a half."""
    compute = wide(x.dtype)
    source = x if x.dtype is compute else b.copy(x, ir.row_major(x.shape, compute))
    return lambda point: b.load(source, point)


@rule("mm")
def _mm(b: Builder, spec: TensorSpec, x: ir.Ref, other: ir.Ref) -> ir.Ref | None:
    if spec.dtype.category is not Category.FLOAT:
        return None
    left, right = _element(b, x), _element(b, other)
    return contraction(b, layout_of(spec), ("row", "column"), x.shape[1:],
                       lambda p, r: left((p[0], r[0])), lambda p, r: right((r[0], p[1])))  # fmt: skip


@rule("bmm")
def _bmm(b: Builder, spec: TensorSpec, x: ir.Ref, other: ir.Ref) -> ir.Ref | None:
    if spec.dtype.category is not Category.FLOAT:
        return None
    left, right = _element(b, x), _element(b, other)
    return contraction(b, layout_of(spec), ("batch", "row", "column"), x.shape[2:],
                       lambda p, r: left((p[0], p[1], r[0])), lambda p, r: right((p[0], r[0], p[2])))  # fmt: skip


@rule("float8_mm")
def _float8_mm(b: Builder, spec: TensorSpec, x: ir.Ref, other: ir.Ref) -> ir.Ref | None:
    if not b.has_float8:
        return None

    def element(of: ir.Ref, point: Point) -> ir.Value:
        return ir.cast(b.load(of, point), dtypes.float32)

    return contraction(b, layout_of(spec), ("row", "column"), x.shape[1:],
                       lambda p, r: element(x, (p[0], r[0])), lambda p, r: element(other, (r[0], p[1])))  # fmt: skip
