"""Lowering rules of convolutions: forward, transposed (the gradient of the input) and the gradient of the weight.

A convolution is a contraction whose left operand reads a window of the image, zero where the window leaves it. Results are
channels last. A transposed convolution with a stride is one convolution for each phase of the output positions, since positions of
one phase meet the same taps (the sub-pixel form: W. Shi et al., arXiv:1609.07009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import Category
from eager.base.spec import TensorSpec
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, fixed, is_symbolic, plain
from inductor.lowering.builder import Builder, Point, layout_of, wide
from inductor.lowering.contractions import contraction
from inductor.lowering.rules import all_of, rule, where
from inductor.lowering.window import Dim

_MOST_UNROLLED = 32  # taps of a depthwise convolution that are terms of one expression


class _Images(NamedTuple):
    """Operands of a convolution. weight(group, output channel of the group, input channel of the group, taps): its element."""

    x: ir.Ref
    weight: Any
    groups: int
    channels: int
    outputs: int


@rule("convolution")
def _convolution(b: Builder, spec: TensorSpec, x: ir.Ref, weight: ir.Ref, bias: ir.Ref | None, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, output_padding: Any, groups: int) -> ir.Ref | None:  # fmt: skip
    if not _has_loops(spec, x, weight):
        return None
    x, weight = _image(b, x), _image(b, weight)
    size, kernel, outputs = _fixed(x.shape[2:]), _fixed(weight.shape[2:]), _fixed(spec.shape[2:])
    if len(spec.shape) == 3:
        outputs, stride, padding, dilation = (1, *outputs), (1, *stride), (0, *padding), (1, *dilation)
    each = tuple(n // groups for n in _fixed((x.shape[1], spec.shape[1])))
    if transposed:
        images = _Images(x, lambda g, o, c, r, s: b.load(weight, (g * each[0] + c, o, r, s)), groups, each[0], each[1])
        made = _transposed(b, images, size, kernel, outputs, stride, padding, dilation)
    else:
        images = _Images(x, lambda g, o, c, r, s: b.load(weight, (g * each[1] + o, c, r, s)), groups, each[0], each[1])
        dims = [Dim(n, o, tuple(range(k)), s, d, p) for n, o, k, s, d, p in
                zip(size, outputs, kernel, stride, dilation, padding, strict=True)]  # fmt: skip
        made = _windows(b, images, dims)
    return _finished(b, spec, made, bias)


def _fixed(sizes: Sequence[Size]) -> tuple[int, ...]:
    return fixed(sizes, "a convolution")


def _last(shape: Sequence[Size], of: dtypes.dtype) -> ir.Layout:
    """The channels-last layout of (n, c, h, w)."""
    _, c, h, w = shape
    return ir.Layout(tuple(shape), (plain(h * w * c), 1, plain(w * c), c), of)


def _has_loops(spec: TensorSpec, x: ir.Ref, weight: ir.Ref) -> bool:
    if spec.dtype.category is not Category.FLOAT or len(spec.shape) not in (3, 4):
        return False
    return not is_symbolic(*x.shape[1:], *weight.shape, *spec.shape[1:]) and 0 not in (*x.shape, *weight.shape, *spec.shape)


def _image(b: Builder, x: ir.Ref) -> ir.Ref:
    """The tensor with two spatial dims, in the dtype of arithmetic."""
    compute = wide(x.dtype)
    if x.dtype is not compute:
        x = b.copy(x, _last(x.shape, compute) if len(x.shape) == 4 else ir.row_major(x.shape, compute))
    layout = x.layout
    if len(layout.shape) == 4:
        return x
    (n, c, length), (a, k, step) = layout.shape, layout.strides
    return ir.Ref(x.buffer, ir.Layout((n, c, 1, length), (a, k, 0, step), layout.dtype), x.offset)


def _finished(b: Builder, spec: TensorSpec, made: ir.Ref, bias: ir.Ref | None) -> ir.Ref:
    """The result with its bias, in the layout of `spec`."""
    layout = layout_of(spec)
    n, c, _, w = made.layout.strides
    flat = made if len(spec.shape) == 4 else ir.Ref(made.buffer, ir.Layout(layout.shape, (n, c, w), made.dtype), made.offset)
    if bias is None:
        same = flat.dtype is layout.dtype and all(m == 1 or s == t for m, s, t in
                                                  zip(layout.shape, flat.layout.strides, layout.strides, strict=True))  # fmt: skip
        return flat if same else b.copy(flat, layout)

    def at(p: Point) -> ir.Value:
        y, shift = b.load(flat, p), ir.cast(b.load(bias, (p[1],)), flat.dtype)
        return ir.cast(ir.make_op("add", (y, shift), flat.dtype), layout.dtype)

    return b.pointwise(layout, at)


# ---- windows of an image ----


def _windows(b: Builder, images: _Images, dims: Sequence[Dim]) -> ir.Ref:
    """(n, c, h, w), channels last: the sum over windows of the image times the weight."""
    if images.channels == images.outputs == 1 and images.groups > 1 and math.prod(len(d.taps) for d in dims) <= _MOST_UNROLLED:
        return _depthwise(b, images, dims)
    x, groups = images.x, images.groups
    n, (h, w) = x.shape[0], dims
    channels = images.outputs * groups
    layout = ir.Layout((n, groups, images.outputs, h.outputs, w.outputs),
                       (h.outputs * w.outputs * channels, images.outputs, 1, w.outputs * channels, channels), x.dtype)  # fmt: skip

    def window(p: Point, r: Point) -> ir.Value:
        image, g, _, i, j = p
        mask = all_of(*h.inside(i, r[0]), *w.inside(j, r[1]))
        return b.load(x, (image, E.add(E.mul(g, images.channels), r[2]), h.at(i, r[0]), w.at(j, r[1])), mask)

    made = contraction(b, layout, ("row", "batch", "column", "row", "row"), (len(h.taps), len(w.taps), images.channels), window,
                       lambda p, r: images.weight(p[1], p[2], r[2], h.tap(r[0]), w.tap(r[1])))  # fmt: skip
    shape = (n, channels, h.outputs, w.outputs)
    return ir.Ref(made.buffer, _last(shape, x.dtype), made.offset)


def _depthwise(b: Builder, images: _Images, dims: Sequence[Dim]) -> ir.Ref:
    """One channel in and out per group: a sum of taps at every point, whose channels are contiguous in all operands."""
    x, (h, w) = images.x, dims
    taps = ir.row_major((len(h.taps), len(w.taps), images.groups), x.dtype)
    weight = b.pointwise(taps, lambda p: images.weight(p[2], 0, 0, h.tap(p[0]), w.tap(p[1])))
    shape = (x.shape[0], images.groups, h.outputs, w.outputs)

    def at(p: Point) -> ir.Value:
        image, c, i, j = p
        total: ir.Value | None = None
        for r in range(len(h.taps)):
            for s in range(len(w.taps)):
                mask = all_of(*h.inside(i, r), *w.inside(j, s))
                term = ir.make_op("mul", (b.load(x, (image, c, h.at(i, r), w.at(j, s)), mask), b.load(weight, (r, s, c))), x.dtype)
                total = term if total is None else ir.make_op("add", (total, term), x.dtype)
        assert total is not None
        return total

    return b.pointwise(_last(shape, x.dtype), at)


# ---- transposed ----


def _transposed(b: Builder, images: _Images, size: Sequence[int], kernel: Sequence[int], outputs: Sequence[int], stride: Sequence[int],
                padding: Sequence[int], dilation: Sequence[int]) -> ir.Ref:  # fmt: skip
    phases: list[list[Dim | None]] = [
        [_phase(first, *given) for first in range(min(given[4], given[2]))]
        for given in zip(size, kernel, outputs, padding, stride, dilation, strict=True)
    ]
    parts = [[None if h is None or w is None else _windows(b, images, (h, w)) for w in phases[1]] for h in phases[0]]
    if len(phases[0]) == len(phases[1]) == 1 and parts[0][0] is not None:
        return parts[0][0]
    shape = (images.x.shape[0], images.outputs * images.groups, *outputs)
    zero = ir.const(0, images.x.dtype)

    def at(p: Point) -> ir.Value:
        found: ir.Value = zero
        for i, row in enumerate(parts):
            for j, part in enumerate(row):
                here = all_of(_on_phase(p[2], i, stride[0], outputs[0]), _on_phase(p[3], j, stride[1], outputs[1]))
                if part is not None:
                    value = b.load(part, (p[0], p[1], E.floordiv(p[2], stride[0]), E.floordiv(p[3], stride[1])), here)
                    found = value if here is None else where(here, value, found)
        return found

    return b.pointwise(_last(shape, images.x.dtype), at)


def _on_phase(i: E.IntLike, phase: int, stride: int, outputs: int) -> ir.Value | None:
    if stride == 1 or outputs == 1:
        return None
    return ir.make_op("eq", (ir.index(E.mod(i, stride)), ir.const(phase, dtypes.int64)), dtypes.bool_)


def _phase(first: int, size: int, kernel: int, outputs: int, padding: int, stride: int, dilation: int) -> Dim | None:
    """Outputs first, first + stride, ...: the taps that meet them, backwards. None if no tap does."""
    taps = [t for t in reversed(range(kernel)) if (first + padding - t * dilation) % stride == 0]
    if not taps:
        return None
    step = (taps[0] - taps[1]) * dilation // stride if len(taps) > 1 else 1
    start = (first + padding - taps[0] * dilation) // stride
    return Dim(size, -(-(outputs - first) // stride), tuple(taps), 1, step, -start)


# ---- the gradient of the weight ----


@rule("conv_weight")
def _conv_weight(b: Builder, spec: TensorSpec, x: ir.Ref, grad: ir.Ref, kernel: Any, stride: Any, padding: Any, dilation: Any,
                 groups: int) -> ir.Ref | None:  # fmt: skip
    channels, outputs = int(spec.shape[1]), int(spec.shape[0]) // groups
    if not _has_loops(spec, x, grad):
        return None
    flat = len(spec.shape) == 3
    x, grad = _image(b, x), _channels_last(b, _image(b, grad))
    kernel, stride, dilation = (((1, *v) if flat else v) for v in (kernel, stride, dilation))
    padding = (0, *padding) if flat else padding
    h, w = (Dim(n, o, tuple(range(k)), s, d, p) for n, o, k, s, d, p in
            zip(x.shape[2:], grad.shape[2:], kernel, stride, dilation, padding, strict=True))  # fmt: skip
    compute = wide(spec.dtype)
    if channels == outputs == 1 and groups > 1:
        return b.copy(_depthwise_weight(b, x, grad, (h, w), flat), layout_of(spec))

    def window(p: Point, r: Point) -> ir.Value:
        g, _, c, i, j = p
        mask = all_of(*h.inside(r[1], i), *w.inside(r[2], j))
        return b.load(x, (r[0], E.add(E.mul(g, channels), c), h.at(r[1], i), w.at(r[2], j)), mask)

    layout = ir.row_major((groups, outputs, channels, *kernel), compute)
    made = contraction(b, layout, ("batch", "column", "row", "row", "row"), (x.shape[0], *grad.shape[2:]), window,
                       lambda p, r: b.load(grad, (r[0], E.add(E.mul(p[0], outputs), p[1]), r[1], r[2])))  # fmt: skip
    whole = ir.Ref(made.buffer, ir.row_major(spec.shape, compute), made.offset)
    same = whole.layout == layout_of(spec)
    return whole if same else b.copy(whole, layout_of(spec))


def _depthwise_weight(b: Builder, x: ir.Ref, grad: ir.Ref, dims: Sequence[Dim], flat: bool) -> ir.Ref:
    """(c, 1, *taps), the last tap dim alone if `flat`: sums over positions, whose channels are contiguous in all operands."""
    h, w = dims
    n, channels, *outputs = grad.shape

    def term(p: Point, r: Point) -> ir.Value:
        mask = all_of(*h.inside(r[1], p[0]), *w.inside(r[2], p[1]))
        v = b.load(x, (r[0], p[2], h.at(r[1], p[0]), w.at(r[2], p[1])), mask)
        v = v if mask is None else where(mask, v, ir.const(0, x.dtype))
        return ir.make_op("mul", (v, b.load(grad, (r[0], p[2], r[1], r[2]))), x.dtype)

    made = b.reduction(ir.row_major((len(h.taps), len(w.taps), channels), x.dtype), (n, *outputs), "sum", term)
    r, s, c = made.layout.strides
    taps, strides = ((len(w.taps),), (s,)) if flat else ((len(h.taps), len(w.taps)), (r, s))
    return ir.Ref(made.buffer, ir.Layout((channels, 1, *taps), (c, 0, *strides), x.dtype))


def _channels_last(b: Builder, x: ir.Ref) -> ir.Ref:
    if x.layout.strides[1] == 1 or x.shape[1] == 1:
        return x
    return b.copy(x, _last(x.shape, x.dtype))
