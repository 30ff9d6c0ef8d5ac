"""Lowering rules of pooling: each window is a short expression, so that its loops join their neighbours.

Windows with many elements stay calls of the eager kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

from eager.base import dtypes
from eager.base.dtypes import Category, dtype
from eager.base.spec import TensorSpec
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, fixed, is_symbolic
from inductor.lowering.builder import Builder, Point, layout_of
from inductor.lowering.rules import all_of, rule, where
from inductor.lowering.window import Dim

_MOST: Final = 32  # elements of a window
_BOOL: Final = dtypes.bool_


def _dims(spec: TensorSpec, x: ir.Ref, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[Dim] | None:
    """The spatial dims of a pooling with loops, or None."""
    if is_symbolic(*x.shape[2:], *spec.shape[2:], *kernel, *stride, *padding) or 0 in (*x.shape, *spec.shape):
        return None
    if spec.dtype.category is not Category.FLOAT or spec.dtype.itemsize == 1 or math.prod(kernel) > _MOST:
        return None
    sizes, outputs = (fixed(s[2:], "pooling") for s in (x.shape, spec.shape))
    return [Dim(n, o, tuple(range(k)), s, d, p) for n, o, k, s, d, p in
            zip(sizes, outputs, kernel, stride, dilation, padding, strict=True)]  # fmt: skip


def _wide(d: dtype) -> dtype:
    """The dtype that windows of `d` are computed in."""
    return dtypes.float32 if d.itemsize == 2 else d


def _window(b: Builder, x: ir.Ref, dims: Sequence[Dim], p: Point) -> Iterator[tuple[ir.Value, ir.Value | None, list[E.IntLike]]]:
    """(element in the wide dtype, the condition that it is in the image, its position) for each element of the window of output `p`."""
    for taps in product(*(range(len(d.taps)) for d in dims)):
        inside = all_of(*(c for d, i, t in zip(dims, p[2:], taps, strict=True) for c in d.inside(i, t)))
        at = [d.at(i, t) for d, i, t in zip(dims, p[2:], taps, strict=True)]
        yield ir.cast(b.load(x, (*p[:2], *at), inside), _wide(x.dtype)), inside, at


@rule("max_pool")
def _max_pool(b: Builder, specs: Sequence[TensorSpec], x: ir.Ref, kernel: Any, stride: Any, padding: Any, dilation: Any,
              ceil_mode: bool) -> tuple[ir.Ref, ...] | None:  # fmt: skip
    """Values and flat positions. A NaN is the largest element; of equal elements the first counts, of NaNs the last."""
    dims = _dims(specs[0], x, kernel, stride, padding, dilation)
    if dims is None:
        return None
    wide = _wide(x.dtype)
    lowest = ir.const(-math.inf, wide)

    def value(p: Point) -> ir.Value:
        best: ir.Value | None = None
        for v, inside, _ in _window(b, x, dims, p):
            v = v if inside is None else where(inside, v, lowest)
            best = v if best is None else ir.make_op("maximum", (best, v), wide)
        assert best is not None
        return ir.cast(best, x.dtype)

    def position(p: Point) -> ir.Value:
        best: ir.Value = lowest
        place = _flat([d.first(i) for d, i in zip(dims, p[2:], strict=True)], dims)
        for v, inside, at in _window(b, x, dims, p):
            above = ir.make_op("gt", (v, best), _BOOL)
            taken = ir.make_op("logical_or", (above, ir.make_op("isnan", (v,), _BOOL)), _BOOL)
            taken = taken if inside is None else ir.make_op("logical_and", (inside, taken), _BOOL)
            best, place = where(taken, v, best), where(taken, _flat([ir.index(i) for i in at], dims), place)
        return place

    return b.pointwise(layout_of(specs[0]), value), b.pointwise(layout_of(specs[1]), position)


def _flat(at: Sequence[ir.Value], dims: Sequence[Dim]) -> ir.Value:
    """The position in the flattened spatial dims, as an int64 value."""
    i64 = dtypes.int64
    total = at[0]
    for i, d in zip(at[1:], dims[1:], strict=True):
        total = ir.make_op("add", (ir.make_op("mul", (total, ir.const(d.size, i64)), i64), i), i64)
    return total


@rule("avg_pool")
def _avg_pool(b: Builder, spec: TensorSpec, x: ir.Ref, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor_override: int | None) -> ir.Ref | None:  # fmt: skip
    dims = _dims(spec, x, kernel, stride, padding, (1,) * len(kernel))
    if dims is None:
        return None
    wide = _wide(x.dtype)

    def at(p: Point) -> ir.Value:
        total: ir.Value | None = None
        for v, inside, _ in _window(b, x, dims, p):
            v = v if inside is None else where(inside, v, ir.const(0, wide))
            total = v if total is None else ir.make_op("add", (total, v), wide)
        assert total is not None
        count: Size | E.Expr = 1 if divisor_override is None else divisor_override
        for d, i in zip(dims, p[2:], strict=True) if divisor_override is None else ():
            count = E.mul(count, d.elements(i, count_include_pad))
        divisor = ir.const(count, wide) if isinstance(count, int) else ir.cast(ir.index(count), wide)
        return ir.cast(ir.make_op("div", (total, divisor), wide), x.dtype)

    return b.pointwise(layout_of(spec), at)
