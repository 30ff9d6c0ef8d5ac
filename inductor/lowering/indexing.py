"""Lowering rules of ops that read or write at positions held in index tensors, or at shifted positions.

Reads become indirect loads, writes `ir.Scatter`s over a copy of the first input. A position outside its dim is reported through
a check of the program, with the exception and text of the eager kernel, and replaced by position 0, so that no memory outside a
buffer is ever accessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, broadcast_shapes
from eager.optable.table import OPS
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain
from inductor.lowering.builder import Builder, Point, ViewRule, layout_of
from inductor.lowering.protocol import number
from inductor.lowering.rules import all_of, at_least, less, rule, where

Bindings = tuple[tuple[E.Sym, ir.Value], ...]
Check = tuple[str, str, Size]  # exception, text, size for the text
_SELF: Check = ("IndexError", "index out of range in self", 0)


def _bounds(error: str, d: int, n: Size) -> Check:
    return error, f"index {{}} is out of bounds for dimension {d} with size {{size}}", n


def _position(b: Builder, index: ir.Ref, point: Point, n: Size, check: Check, negative: bool = False) -> tuple[E.Expr, Bindings]:
    """The position in `index[point]`, as a symbol of 0..n-1 and its binding; `negative`: negative positions count from the end."""
    value = ir.cast(b.load(index, point), dtypes.int64)
    operands = (value, ir.index(n), ir.const(b.check(*check), dtypes.int64))
    symbol = b.symbol(n)
    return symbol, ((symbol, ir.make_op("wrap_index" if negative else "check_index", operands, dtypes.int64)),)


def _empty(*refs: Any) -> bool:
    return any(0 in r.shape for r in refs if isinstance(r, ir.Ref))


# ---- reads ----


@rule("gather")
def _gather(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref) -> ir.Ref | None:
    if not x.shape or not index.shape or _empty(x, index):
        return None
    d = b.dim(dim, len(x.shape))
    check = _bounds("RuntimeError", d, x.shape[d])

    def at(p: Point) -> ir.Value:
        here, bound = _position(b, index, p, x.shape[d], check)
        return b.load(x, [*p[:d], here, *p[d + 1 :]], indirect=bound)

    return b.pointwise(layout_of(spec), at)


@rule("index_select")
def _index_select(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref) -> ir.Ref | None:
    if not x.shape or _empty(x, index):
        return None
    d = b.dim(dim, len(x.shape))

    def at(p: Point) -> ir.Value:
        here, bound = _position(b, index, p[d : d + 1] if index.shape else (), x.shape[d], _SELF)
        return b.load(x, [*p[:d], here, *p[d + 1 :]], indirect=bound)

    return b.pointwise(layout_of(spec), at)


@rule("embedding")
def _embedding(b: Builder, spec: TensorSpec, weight: ir.Ref, indices: ir.Ref, padding_idx: int) -> ir.Ref | None:
    if _empty(weight, indices):
        return None

    def at(p: Point) -> ir.Value:
        row, bound = _position(b, indices, p[:-1], weight.shape[0], _SELF)
        return b.load(weight, [row, p[-1]], indirect=bound)

    return b.pointwise(layout_of(spec), at)


def _advanced(b: Builder, indices: Sequence[ir.Ref | None]) -> tuple[list[int], tuple[Size, ...], int]:
    """Dims that have an index, the indices' broadcast shape, and its place in the result."""
    dims = [i for i, t in enumerate(indices) if t is not None]
    shape = b.facts.lower(broadcast_shapes(*b.facts.lift([t.shape for t in indices if t is not None])))
    return dims, shape, dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0


def _advanced_point(b: Builder, x: ir.Ref, indices: Sequence[ir.Ref | None], p: Point) -> tuple[list[E.IntLike], Bindings]:
    """The point of `x` that corresponds to point `p` of `x[indices]`."""
    _dims, shape, start = _advanced(b, indices)
    chosen, rest = p[start : start + len(shape)], iter([*p[:start], *p[start + len(shape) :]])
    point: list[E.IntLike] = []
    bindings: Bindings = ()
    for d in range(len(x.shape)):
        t = indices[d] if d < len(indices) else None
        if t is None:
            point.append(next(rest))
            continue
        lead = len(shape) - len(t.shape)
        own = [0 if b.facts.stretches(n, shape[lead + i]) else chosen[lead + i] for i, n in enumerate(t.shape)]
        here, bound = _position(b, t, own, x.shape[d], _bounds("IndexError", d, x.shape[d]), negative=True)
        point.append(here)
        bindings += bound
    return point, bindings


@rule("index")
def _index(b: Builder, spec: TensorSpec, x: ir.Ref, indices: Sequence[ir.Ref | None]) -> ir.Ref | None:
    if _empty(x, *indices):
        return None

    def at(p: Point) -> ir.Value:
        point, bound = _advanced_point(b, x, indices, p)
        return b.load(x, point, indirect=bound)

    return b.pointwise(layout_of(spec), at)


# ---- writes ----


def _axes(shape: Sequence[Size]) -> tuple[tuple[Size, ...], list[E.IntLike]]:
    """(ranges, point) of loops over `shape` in row-major order."""
    ranges: list[Size] = []
    point: list[E.IntLike] = []
    for n in shape:
        point.append(0 if n == 1 else ir.axis(len(ranges), n))
        if n != 1:
            ranges.append(n)
    return tuple(ranges), point


def _sums_in(d: dtype) -> dtype | None:
    """The dtype whose `+=` in memory gives sums as the eager kernel rounds them: once, if they are narrower than float32."""
    if d is dtypes.bool_ or d.is_float8:
        return None
    return dtypes.float32 if d.is_floating_point and d.itemsize < 4 else d


def _write(b: Builder, spec: TensorSpec, x: ir.Ref, shape: Sequence[Size], target: Any, value: Any, mode: str) -> ir.Ref | None:
    """A copy of `x` with `value(p)` written at `target(p)` = (point, bindings), for every p of `shape`."""
    layout = layout_of(spec)
    if 0 in layout.shape or 0 in shape:
        return b.copy(x, layout)
    held = _sums_in(spec.dtype) if mode == "add" else spec.dtype
    if held is None or (mode == "add" and held.is_floating_point and not b.adds_floats):
        return None
    whole = ir.Layout(layout.shape, layout.strides, held)
    copied = b.copy(x, whole) if held is spec.dtype else b.pointwise(whole, lambda p: ir.cast(b.load(x, p), held))
    ranges, p = _axes(shape)
    point, bound = target(p)
    definition = ir.Scatter(ranges, copied.buffer, layout.position(point), bound, ir.cast(value(p), held), mode)
    written = b.define(whole, definition)
    return written if held is spec.dtype else b.pointwise(layout, lambda p: ir.cast(b.load(written, p), spec.dtype))


def _element(b: Builder, source: Any, of: dtype) -> Any:
    """value(p) for a source that is a Ref broadcast to the written shape, or a number."""
    if isinstance(source, ir.Ref):
        return lambda p: b.broadcast(source, p[max(len(p) - len(source.shape), 0) :] if len(source.shape) <= len(p) else p)
    return lambda p: number(source, of)


def _scatter_with(mode: str) -> Any:
    def lower(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref, src: Any) -> ir.Ref | None:
        if not x.shape or not index.shape:
            return None
        d = b.dim(dim, len(x.shape))
        check = _bounds("RuntimeError", d, x.shape[d])

        def target(p: Point) -> tuple[list[E.IntLike], Bindings]:
            here, bound = _position(b, index, p, x.shape[d], check)
            return [*p[:d], here, *p[d + 1 :]], bound

        # The index covers the part of src from its first element, so that the points are equal.
        value = (lambda p: b.load(src, p)) if isinstance(src, ir.Ref) and src.shape else _element(b, src, spec.dtype)
        return _write(b, spec, x, index.shape, target, value, mode)

    return lower


rule("scatter")(_scatter_with("set"))
rule("scatter_add")(_scatter_with("add"))


def _along(b: Builder, x: ir.Ref, d: int, index: ir.Ref, check: Check, negative: bool = False) -> Any:
    def target(p: Point) -> tuple[list[E.IntLike], Bindings]:
        here, bound = _position(b, index, p[d : d + 1] if index.shape else (), x.shape[d], check, negative)
        return [*p[:d], here, *p[d + 1 :]], bound

    return target


@rule("index_add")
def _index_add(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref, source: ir.Ref, alpha: Any) -> ir.Ref | None:
    if not x.shape or not source.shape:
        return None
    d = b.dim(dim, len(x.shape))

    def value(p: Point) -> ir.Value:
        v = b.load(source, p)
        if alpha == 1:
            return v
        wide = _sums_in(spec.dtype) or spec.dtype  # no target multiplies halves
        factors = (ir.cast(v, wide), ir.cast(number(alpha, spec.dtype), wide))
        return ir.cast(ir.make_op("mul", factors, wide), spec.dtype)

    return _write(b, spec, x, source.shape, _along(b, x, d, index, _SELF), value, "add")


@rule("index_copy")
def _index_copy(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref, source: ir.Ref) -> ir.Ref | None:
    if not x.shape or not source.shape:
        return None
    d = b.dim(dim, len(x.shape))
    check = _bounds("IndexError", d, x.shape[d])
    return _write(b, spec, x, source.shape, _along(b, x, d, index, check), lambda p: b.load(source, p), "set")


@rule("index_fill")
def _index_fill(b: Builder, spec: TensorSpec, x: ir.Ref, dim: int, index: ir.Ref, value: Any) -> ir.Ref | None:
    if not x.shape or not index.shape:
        return None
    d = b.dim(dim, len(x.shape))
    shape = (*x.shape[:d], *index.shape, *x.shape[d + 1 :])
    target = _along(b, x, d, index, _bounds("IndexError", d, x.shape[d]), negative=True)
    return _write(b, spec, x, shape, target, _element(b, value, spec.dtype), "set")


@rule("index_put")
def _index_put(b: Builder, spec: TensorSpec, x: ir.Ref, indices: Sequence[ir.Ref | None], values: Any,
               accumulate: bool) -> ir.Ref | None:  # fmt: skip
    dims, shape, start = _advanced(b, indices)
    rest = [x.shape[i] for i in range(len(x.shape)) if i not in dims]
    full = (*rest[:start], *shape, *rest[start:])
    if isinstance(values, ir.Ref) and len(values.shape) > len(full):
        return None
    return _write(b, spec, x, full, lambda p: _advanced_point(b, x, indices, p), _element(b, values, spec.dtype),
                  "add" if accumulate else "set")  # fmt: skip


def _write_part(b: Builder, spec: TensorSpec, x: ir.Ref, src: ir.Ref, view: str, *args: Any) -> ir.Ref | None:
    """A copy of `x` with `src` written into the part that a view op of the copy selects."""
    layout = layout_of(spec)
    rule_of = OPS[view].view
    assert rule_of is not None
    view_of = rule_of(ViewRule(ir.Ref("", layout), b.facts), *b.facts.lift(args))
    sizes, strides, offset = b.facts.lower(view_of)[:3]
    part = ir.Layout(tuple(sizes), tuple(strides), spec.dtype)
    copied = b.copy(x, layout)
    if 0 in part.shape:
        return copied
    ranges, p = _axes(part.shape)
    value = ir.cast(b.load(src, p), spec.dtype)
    return b.define(layout, ir.Scatter(ranges, copied.buffer, part.position(p) + offset, (), value, "set"))


@rule("diagonal_scatter")
def _diagonal_scatter(b: Builder, spec: TensorSpec, x: ir.Ref, src: ir.Ref, offset: int, dim1: int, dim2: int) -> ir.Ref | None:
    return _write_part(b, spec, x, src, "diagonal", offset, dim1, dim2)


@rule("as_strided_scatter")
def _as_strided_scatter(b: Builder, spec: TensorSpec, x: ir.Ref, src: ir.Ref, size: Any, stride: Any, offset: Any) -> ir.Ref | None:
    if tuple(x.layout.strides) != tuple(spec.strides):
        return None
    return _write_part(b, spec, x, src, "as_strided", size, stride, offset or 0)


# ---- shifted positions ----


@rule("constant_pad_nd")
def _constant_pad(b: Builder, spec: TensorSpec, x: ir.Ref, pad: Sequence[int], value: Any) -> ir.Ref:
    before: list[Size] = [0] * len(x.shape)
    for i in range(len(pad) // 2):
        before[-1 - i] = pad[2 * i]
    if _empty(x):
        return b.pointwise(layout_of(spec), lambda p: number(value, spec.dtype))
    tests = [(b.facts.lift(low) > 0, b.facts.lift(plain(low + n)) < b.facts.lift(m))
             for low, n, m in zip(before, x.shape, spec.shape, strict=True)]  # fmt: skip

    def at(p: Point) -> ir.Value:
        inside = all_of(*(c for i, low, n, (front, back) in zip(p, before, x.shape, tests, strict=True) for c in (
            at_least(i, low) if front else None, less(i, plain(low + n)) if back else None)))  # fmt: skip
        point = [0 if n == 1 else E.add(i, -low) for i, low, n in zip(p, before, x.shape, strict=True)]
        read = b.load(x, point, inside)
        return read if inside is None else where(inside, read, number(value, spec.dtype))

    return b.pointwise(layout_of(spec), at)


@rule("roll")
def _roll(b: Builder, spec: TensorSpec, x: ir.Ref, shifts: Sequence[int], dims: Sequence[int]) -> ir.Ref | None:
    if _empty(x) or not x.shape:
        return None
    by: list[Size] = [0] * len(x.shape)
    for s, d in zip(shifts, dims, strict=False):
        k = b.dim(d, len(x.shape))
        by[k] = plain(by[k] + s)

    def at(p: Point) -> ir.Value:
        if not dims:
            moved = E.mod(ir.linear_position(x.shape, p) + x.layout.numel - shifts[0] % x.layout.numel, x.layout.numel)
            return b.load(x, ir.split_position(moved, x.shape))
        point = [E.mod(E.add(i, n - s % n), n) if s % n != 0 else i for i, s, n in zip(p, by, x.shape, strict=True)]
        return b.load(x, point)

    return b.pointwise(layout_of(spec), at)


__all__: list[str] = []
