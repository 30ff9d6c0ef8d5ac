"""Lowering rules by op name, for ops that are not pointwise, reductions or views.

A rule is a function (builder, spec, *args) -> Ref; tensors among the args are Refs. The rule of an op with several results gets their
specs and gives their Refs. Rules are registered in `RULES`; an op without a rule is an extern call of its eager kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from eager.base import dtypes
from eager.base.spec import TensorSpec
from eager.optable.creation import in_dtype
from eager.optable.random import LANES
from eager.optable.views import slice_bounds
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain
from inductor.lowering.builder import Builder, Point, layout_of
from inductor.lowering.protocol import number

Rule = Callable[..., ir.Ref | tuple[ir.Ref, ...] | None]
RULES: Final[dict[str, Rule]] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register the rule of op `name`."""

    def register(fn: Rule) -> Rule:
        RULES[name] = fn
        return fn

    return register


def less(a: E.IntLike, b: Size) -> ir.Value:
    return ir.make_op("lt", (ir.index(a), ir.index(b)), dtypes.bool_)


def at_least(a: E.IntLike, b: Size) -> ir.Value:
    return ir.make_op("ge", (ir.index(a), ir.index(b)), dtypes.bool_)


def where(c: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.make_op("where", (c, a, b), a.dtype)


def all_of(*conditions: ir.Value | None) -> ir.Value | None:
    result: ir.Value | None = None
    for c in conditions:
        if c is not None:
            result = c if result is None else ir.make_op("logical_and", (result, c), dtypes.bool_)
    return result


@rule("full")
def _full(b: Builder, spec: TensorSpec, size: Any, value: Any, dtype: Any, device: Any) -> ir.Ref:
    return b.pointwise(layout_of(spec), lambda p: number(value, spec.dtype))


@rule("empty")
def _empty(b: Builder, spec: TensorSpec, *_: Any) -> ir.Ref:
    return b.pointwise(layout_of(spec), lambda p: ir.const(0, spec.dtype))


@rule("arange")
def _arange(b: Builder, spec: TensorSpec, start: Any, end: Any, step: Any, dtype: Any, device: Any) -> ir.Ref:
    start, step = in_dtype(start, spec.dtype), in_dtype(step, spec.dtype)

    def at(p: Point) -> ir.Value:
        if isinstance(start, int | E.Expr) and isinstance(step, int | E.Expr):
            return ir.index(E.add(E.mul(p[0], step), start))
        i = ir.cast(ir.index(p[0]), dtypes.float64)
        scaled = ir.make_op("mul", (i, number(step, dtypes.float64)), dtypes.float64)
        return ir.make_op("add", (number(start, dtypes.float64), scaled), dtypes.float64)

    return b.pointwise(layout_of(spec), at)


@rule("cat")
def _cat(b: Builder, spec: TensorSpec, tensors: Any, dim: int) -> ir.Ref:
    d = b.dim(dim, len(spec.shape))
    parts = [t for t in tensors if t.shape != (0,) and t.shape[d] != 0]

    def at(p: Point) -> ir.Value:
        result: ir.Value | None = None
        start: Size = plain(sum(t.shape[d] for t in parts))
        for t in reversed(parts):
            start = plain(start - t.shape[d])
            here = [*p[:d], 0 if t.shape[d] == 1 else E.add(p[d], -start), *p[d + 1 :]]
            inside = all_of(at_least(p[d], start) if start != 0 else None,
                          less(p[d], start + t.shape[d]) if result is not None else None)  # fmt: skip
            value = ir.cast(b.load(t, here, inside if len(parts) > 1 else None), spec.dtype)
            result = value if result is None else where(less(p[d], start + t.shape[d]), value, result)
        assert result is not None
        return result

    if not parts:
        return b.pointwise(layout_of(spec), lambda p: ir.const(0, spec.dtype))
    return b.pointwise(layout_of(spec), at)


@rule("flip")
def _flip(b: Builder, spec: TensorSpec, x: ir.Ref, dims: Any) -> ir.Ref:
    flipped = {b.dim(d, len(x.shape)) for d in dims}

    def at(p: Point) -> ir.Value:
        return b.load(x, [E.add(n - 1, E.mul(i, -1)) if d in flipped and n != 1 else i
                          for d, (i, n) in enumerate(zip(p, x.shape, strict=True))])  # fmt: skip

    return b.pointwise(layout_of(spec), at)


@rule("slice_scatter")
def _slice_scatter(b: Builder, spec: TensorSpec, x: ir.Ref, src: ir.Ref, dim: int, start: Any, end: Any, step: int) -> ir.Ref:
    d = b.dim(dim, len(spec.shape))
    n, start, end, step = b.facts.lift((spec.shape[d], start, end, step))
    bounds = slice_bounds(n, start, end)
    empty, to_end = bounds[1] <= bounds[0], bounds[1] >= n
    low, high, step = b.facts.lower((*bounds, step))

    def at(p: Point) -> ir.Value:
        if empty:
            return b.load(x, p)
        inside = all_of(at_least(p[d], low) if low != 0 else None, None if to_end else less(p[d], high),
                      _on_step(p[d], low, step))  # fmt: skip
        at_src = [*p[:d], 0 if src.shape[d] == 1 else E.floordiv(E.add(p[d], -low), step), *p[d + 1 :]]
        value = ir.cast(b.load(src, at_src, inside), spec.dtype)
        return value if inside is None else where(inside, value, ir.cast(b.load(x, p), spec.dtype))

    return b.pointwise(layout_of(spec), at)


def _on_step(i: E.IntLike, low: Size, step: Size) -> ir.Value | None:
    if step == 1:
        return None
    return ir.make_op("eq", (ir.index(E.mod(E.add(i, -low), step)), ir.const(0, dtypes.int64)), dtypes.bool_)


@rule("select_scatter")
def _select_scatter(b: Builder, spec: TensorSpec, x: ir.Ref, src: ir.Ref, dim: int, index: int) -> ir.Ref:
    d = b.dim(dim, len(spec.shape))
    n, index = b.facts.lift((spec.shape[d], index))
    at_index = b.facts.lower(index + n if index < 0 else index)

    def at(p: Point) -> ir.Value:
        inside = ir.make_op("eq", (ir.index(p[d]), ir.index(at_index)), dtypes.bool_)
        value = ir.cast(b.load(src, [*p[:d], *p[d + 1 :]], inside), spec.dtype)
        return where(inside, value, ir.cast(b.load(x, p), spec.dtype))

    return b.pointwise(layout_of(spec), at)


def _triangle(keep_low: bool) -> Rule:
    def lower(b: Builder, spec: TensorSpec, x: ir.Ref, diagonal: int = 0) -> ir.Ref:
        def at(p: Point) -> ir.Value:
            offset = E.add(p[-1], E.mul(p[-2], -1))
            kept = ir.make_op("le" if keep_low else "ge", (ir.index(offset), ir.index(diagonal)), dtypes.bool_)
            return where(kept, b.load(x, p), ir.const(0, spec.dtype))

        return b.pointwise(layout_of(spec), at)

    return lower


RULES["tril"] = _triangle(True)
RULES["triu"] = _triangle(False)


# ---- scans ----


def _running(kind: str) -> Rule:
    def lower(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, *rest: Any) -> ir.Ref | None:
        if len(spec.shape) == 0 or 0 in spec.shape or spec.dtype.itemsize == 2 or spec.dtype is dtypes.bool_:
            return None
        d = b.dim(dim, len(spec.shape))
        others = [i for i in range(len(spec.shape)) if i != d and spec.shape[i] != 1]
        order = (*others, d)
        strides: list[Size] = [1] * len(spec.shape)
        step: Size = 1
        for i in reversed(order):
            strides[i] = step
            step = plain(step * spec.shape[i])
        layout = ir.Layout(tuple(spec.shape), tuple(strides), spec.dtype)  # the scanned dim innermost
        point: list[E.IntLike] = [0] * len(spec.shape)
        for k, i in enumerate(others):
            point[i] = ir.axis(k, spec.shape[i])
        point[d] = 0 if spec.shape[d] == 1 else ir.reduced_axis(0, spec.shape[d])
        value = ir.cast(b.load(x, point), spec.dtype)
        made = b.define(layout, ir.Scan(tuple(spec.shape[i] for i in others), spec.shape[d], kind, value))
        return made if layout.strides == layout_of(spec).strides else b.copy(made, layout_of(spec))

    return lower


RULES["cumsum"] = _running("sum")
RULES["cumprod"] = _running("prod")


# ---- random numbers: the eager kernels, element by element ----


def _word(b: Builder, state: ir.Ref, i: E.IntLike, word: int, words: int) -> ir.Value:
    """32 random bits of element `i` of a draw, which has `words` words."""
    seed, offset = b.load(state, [0]), b.load(state, [1])
    i64, u32 = dtypes.int64, dtypes.uint32
    halves = [ir.cast(x, u32) for x in (seed, ir.make_op("right_shift", (seed, ir.const(32, i64)), i64))]
    return ir.make_op("philox", (*halves, offset, ir.index(i), ir.const(word, i64), ir.const(words, i64)), u32)


def _top(word: ir.Value, bits: int, of: dtypes.dtype) -> ir.Value:
    """The upper bits of a word without the last `bits`, at least one, as a float."""
    shifted = ir.make_op("right_shift", (word, ir.const(bits, dtypes.uint32)), dtypes.uint32)
    return ir.cast(ir.cast(shifted, dtypes.int32), of)


def uniform(b: Builder, state: ir.Ref, i: E.IntLike, double: bool = False) -> ir.Value:
    """Uniform in [0, 1), element `i` of a draw, computed as in `eager.optable.random`."""
    if not double:
        f32 = dtypes.float32
        return ir.make_op("mul", (_top(_word(b, state, i, 0, 1), 8, f32), ir.const(2.0**-24, f32)), f32)
    f64 = dtypes.float64
    high = ir.make_op("mul", (_top(_word(b, state, i, 0, 2), 5, f64), ir.const(2.0**26, f64)), f64)
    whole = ir.make_op("add", (high, _top(_word(b, state, i, 1, 2), 6, f64)), f64)
    return ir.make_op("mul", (whole, ir.const(2.0**-53, f64)), f64)


def _linear(spec: TensorSpec, p: Point) -> E.Expr:
    return ir.linear_position(spec.shape, p)


@rule("philox_uniform")
def _uniform(b: Builder, spec: TensorSpec, state: ir.Ref, size: Any, dtype: Any) -> ir.Ref:
    double = spec.dtype is dtypes.float64
    return b.pointwise(layout_of(spec), lambda p: uniform(b, state, _linear(spec, p), double))


@rule("philox_normal")
def _normal(b: Builder, spec: TensorSpec, state: ir.Ref, size: Any, dtype: Any) -> ir.Ref:
    double = spec.dtype is dtypes.float64
    f = dtypes.float64 if double else dtypes.float32

    def at(p: Point) -> ir.Value:
        i = _linear(spec, p)
        row = E.mod(E.floordiv(i, LANES), 2)  # of the pair
        first = E.add(i, E.mul(row, -LANES))
        u, v = uniform(b, state, first, double), uniform(b, state, E.add(first, LANES), double)
        log = ir.make_op("log1p", (ir.make_op("neg", (u,), f),), f)
        radius = ir.make_op("sqrt", (ir.make_op("mul", (ir.const(-2.0, f), log), f),), f)
        quarter = ir.make_op("mul", (ir.cast(ir.index(row), f), ir.const(0.25, f)), f)
        turn = ir.make_op("sub", (v, quarter), f)  # exact: the sine of an angle is the cosine a quarter of a turn before
        angle = ir.make_op("cos", (ir.make_op("mul", (turn, ir.const(2.0 * math.pi, f)), f),), f)
        return ir.make_op("mul", (radius, angle), f)

    return b.pointwise(layout_of(spec), at)
