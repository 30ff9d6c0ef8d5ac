"""Lowering rules of convolutions: forward, transposed (the gradient of the input) and the gradient of the weight.

A convolution is a contraction whose left operand reads a window of the image, zero where the window leaves it. Results are
channels last. A transposed convolution with a stride is one convolution for each phase of the output positions, since positions of one
phase meet the same taps (the sub-pixel form: W. Shi et al., arXiv:1609.07009).

A target that multiplies tiles loads 16 bytes at once, and converts elements while it reads them. There, images and weights stay in
their dtype, their channels are contiguous, and an image of few channels is copied with zeros around it, so that the taps along a row
are contiguous too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import Category
from eager.base.spec import TensorSpec
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, fixed, is_symbolic, plain
from inductor.lowering.builder import Builder, Point, layout_of, wide
from inductor.lowering.contractions import Operand, contraction
from inductor.lowering.rules import all_of, at_least, less, rule, where
from inductor.lowering.window import Dim

_MOST_UNROLLED = 32  # taps of a depthwise convolution that are terms of one expression
_TILE_BYTES = 4  # of the widest number that tiles are multiplied in
_LOAD_BYTES = 16  # of one load of a tile
_DEPTHS = (64, 32, 16)  # elements of a block of the depth, of which tiles of operands have one


class _Images(NamedTuple):
    """Operands of a convolution, in memory.

    weight(group, output channel of the group, input channel of the group, taps): its element. steps: of the weight in memory along the
    output channels and along the input channels.
    """

    x: ir.Ref
    weight: Callable[[E.IntLike, E.IntLike, E.IntLike, E.IntLike, E.IntLike], ir.Value]
    steps: tuple[Size, Size]
    groups: int
    channels: int
    outputs: int


class _Operands(NamedTuple):
    """Of a contraction over windows: the sizes of its depth, and the element of each operand at a point of the result and the depth."""

    depth: tuple[Size, ...]
    window: Operand
    weight: Operand


@rule("convolution")
def _convolution(b: Builder, spec: TensorSpec, x: ir.Ref, weight: ir.Ref, bias: ir.Ref | None, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, output_padding: Any, groups: int) -> ir.Ref | None:  # fmt: skip
    if not _has_loops(spec, x, weight):
        return None
    x, weight = _image(b, x), _image(b, weight)
    size, kernel, outputs = _fixed(x.shape[2:]), _fixed(weight.shape[2:]), _fixed(spec.shape[2:])
    if len(spec.shape) == 3:
        outputs, stride, padding, dilation = (1, *outputs), (1, *stride), (0, *padding), (1, *dilation)
    channels, results = (n // groups for n in _fixed((x.shape[1], spec.shape[1])))
    first, second = weight.layout.strides[:2]
    if transposed:
        images = _Images(x, lambda g, o, c, r, s: _element(b, weight, (g * channels + c, o, r, s)), (second, first), groups,
                         channels, results)  # fmt: skip
        apart = groups == 1 and list(kernel) == list(stride) and not any((*padding, *output_padding)) and kernel[1] > 1
        if apart and not _in_tiles(b, x):
            made = _apart(b, images, size, kernel)
        else:
            made = _transposed(b, images, size, kernel, outputs, stride, padding, dilation)
    else:
        images = _Images(x, lambda g, o, c, r, s: _element(b, weight, (g * results + o, c, r, s)), (first, second), groups,
                         channels, results)  # fmt: skip
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
    """The tensor with two spatial dims, in the dtype of arithmetic where elements are not converted while tiles are read."""
    compute = wide(x.dtype)
    if x.dtype is not compute and not b.has_tiles:
        x = b.copy(x, _last(x.shape, compute) if len(x.shape) == 4 else ir.row_major(x.shape, compute))
    layout = x.layout
    if len(layout.shape) == 4:
        return x
    (n, c, length), (a, k, step) = layout.shape, layout.strides
    return ir.Ref(x.buffer, ir.Layout((n, c, 1, length), (a, k, 0, step), layout.dtype), x.offset)


def _in_tiles(b: Builder, x: ir.Ref) -> bool:
    """Whether products of the elements are products of tiles."""
    return b.has_tiles and x.dtype.itemsize <= _TILE_BYTES


def _element(b: Builder, x: ir.Ref, point: Point, mask: ir.Value | None = None) -> ir.Value:
    """An element in the dtype of arithmetic."""
    return ir.cast(b.load(x, point, mask), wide(x.dtype))


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
    n, (h, w), of = images.x.shape[0], dims, wide(images.x.dtype)
    channels = images.outputs * images.groups
    layout = ir.Layout((n, images.groups, images.outputs, h.outputs, w.outputs),
                       (h.outputs * w.outputs * channels, images.outputs, 1, w.outputs * channels, channels), of)  # fmt: skip
    operands = _runs(b, images, h, w) if _has_few_channels(b, images.x, images.groups, dims) else _taps(b, images, h, w)
    made = contraction(b, layout, ("row", "batch", "column", "row", "row"), *operands)
    return ir.Ref(made.buffer, _last((n, channels, h.outputs, w.outputs), of), made.offset)


def _taps(b: Builder, images: _Images, h: Dim, w: Dim) -> _Operands:
    """Windows tap by tap: each tap reads the channels of a pixel, which is outside of the image for some rows of the result."""
    x = _channels_last(b, images.x) if _in_tiles(b, images.x) else images.x
    weight = _packed(b, images, h, w)

    def window(p: Point, r: Point) -> ir.Value:
        image, g, _, i, j = p
        mask = all_of(*h.inside(i, r[0]), *w.inside(j, r[1]))
        return _element(b, x, (image, E.add(E.mul(g, images.channels), r[2]), h.at(i, r[0]), w.at(j, r[1])), mask)

    return _Operands((len(h.taps), len(w.taps), images.channels), window, lambda p, r: weight(p[1], p[2], r[2], r[0], r[1]))


def _packed(b: Builder, images: _Images, h: Dim, w: Dim) -> Callable[..., ir.Value]:
    """The weight at (group, output, channel, number of the taps), whose outputs or channels are contiguous on a target with tiles."""
    if not _in_tiles(b, images.x) or 1 in images.steps or images.channels == 1:
        return lambda g, o, c, r, s: images.weight(g, o, c, h.tap(r), w.tap(s))
    shape = (images.groups, images.outputs, len(h.taps), len(w.taps), images.channels)
    copy = b.pointwise(ir.row_major(shape, images.x.dtype), lambda p: images.weight(p[0], p[1], p[4], h.tap(p[2]), w.tap(p[3])))
    return lambda g, o, c, r, s: _element(b, copy, (g, o, r, s, c))


def _has_few_channels(b: Builder, x: ir.Ref, groups: int, dims: Sequence[Dim]) -> bool:
    """Whether the channels of a pixel fill no block of the depth, and taps along a row read neighbouring pixels."""
    (channels,) = _fixed(x.shape[1:2])
    several = math.prod(len(d.taps) for d in dims) > 1 and groups == 1 and dims[1].dilation == 1
    return _in_tiles(b, x) and several and channels % _DEPTHS[-1] != 0


def _aligned_channels(x: ir.Ref, w: Dim) -> int:
    """So many channels that each window along a row starts at a multiple of 16 bytes."""
    (channels,) = _fixed(x.shape[1:2])
    return next(n for n in range(channels, channels + _LOAD_BYTES + 1) if w.stride * n * x.dtype.itemsize % _LOAD_BYTES == 0)


def _runs(b: Builder, images: _Images, h: Dim, w: Dim) -> _Operands:
    """Windows row by row: the taps of one row of a window are one run of memory, in an image with zeros around it.

    The weight has zeros after the last tap.
    """
    of, outputs = images.x.dtype, images.outputs
    channels = _aligned_channels(images.x, w)
    block = min(_DEPTHS, key=lambda k: -(-len(w.taps) * channels // k) * k)
    run = -(-len(w.taps) * channels // block) * block
    x = _padded(b, images.x, h, w, -(-run // channels))
    zero = ir.const(0, wide(of))

    def element(p: Point) -> ir.Value:
        tap, c = E.floordiv(p[2], channels), E.mod(p[2], channels)
        v = images.weight(0, p[0], E.minimum(c, images.channels - 1), h.tap(p[1]), w.tap(E.minimum(tap, len(w.taps) - 1)))
        inside = all_of(less(tap, len(w.taps)), less(c, images.channels))
        return v if inside is None else where(inside, v, zero)

    weight = b.pointwise(ir.row_major((outputs, len(h.taps), run), of), element)
    return _Operands(
        (len(h.taps), run),
        lambda p, r: _element(b, x, (p[0], E.add(E.mul(p[3], h.stride), E.mul(r[0], h.dilation)), E.mul(p[4], w.stride), r[1])),
        lambda p, r: _element(b, weight, (p[2], r[0], r[1])),
    )


def _padded(b: Builder, x: ir.Ref, h: Dim, w: Dim, last: int) -> ir.Ref:
    """(n, rows, columns, channels): the pixels that windows of `last` columns read, zero outside of the image."""
    (given,), zero = _fixed(x.shape[1:2]), ir.const(0, x.dtype)
    rows = (h.outputs - 1) * h.stride + (len(h.taps) - 1) * h.dilation + 1
    columns = (w.outputs - 1) * w.stride + last

    def at(p: Point) -> ir.Value:
        image, *place, c = p
        spatial = [E.add(i, -d.padding) for i, d in zip(place, (h, w), strict=True)]
        within = [E.minimum(E.maximum(i, 0), d.size - 1) for i, d in zip(spatial, (h, w), strict=True)]
        inside = all_of(*(v for i, d in zip(spatial, (h, w), strict=True) for v in (at_least(i, 0), less(i, d.size))),
                        less(c, given))  # fmt: skip
        v = b.load(x, (image, E.minimum(c, given - 1), *within), inside)
        return v if inside is None else where(inside, v, zero)

    return b.pointwise(ir.row_major((x.shape[0], rows, columns, _aligned_channels(x, w)), x.dtype), at)


def _depthwise(b: Builder, images: _Images, dims: Sequence[Dim]) -> ir.Ref:
    """One channel in and out per group: a sum of taps at every point, whose channels are contiguous in all operands."""
    x, (h, w), of = images.x, dims, wide(images.x.dtype)
    taps = ir.row_major((len(h.taps), len(w.taps), images.groups), of)
    weight = b.pointwise(taps, lambda p: images.weight(p[2], 0, 0, h.tap(p[0]), w.tap(p[1])))
    shape = (x.shape[0], images.groups, h.outputs, w.outputs)

    def at(p: Point) -> ir.Value:
        image, c, i, j = p
        total: ir.Value | None = None
        for r in range(len(h.taps)):
            for s in range(len(w.taps)):
                mask = all_of(*h.inside(i, r), *w.inside(j, s))
                pixel = _element(b, x, (image, c, h.at(i, r), w.at(j, s)), mask)
                term = ir.make_op("mul", (pixel, b.load(weight, (r, s, c))), of)
                total = term if total is None else ir.make_op("add", (total, term), of)
        assert total is not None
        return total

    return b.pointwise(_last(shape, of), at)


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
    of = wide(images.x.dtype)
    zero = ir.const(0, of)

    def at(p: Point) -> ir.Value:
        found: ir.Value = zero
        for i, row in enumerate(parts):
            for j, part in enumerate(row):
                here = all_of(_on_phase(p[2], i, stride[0], outputs[0]), _on_phase(p[3], j, stride[1], outputs[1]))
                if part is not None:
                    value = b.load(part, (p[0], p[1], E.floordiv(p[2], stride[0]), E.floordiv(p[3], stride[1])), here)
                    found = value if here is None else where(here, value, found)
        return found

    return b.pointwise(_last(shape, of), at)


def _apart(b: Builder, images: _Images, size: Sequence[int], kernel: Sequence[int]) -> ir.Ref:
    """A transposed convolution whose windows do not overlap: a product for each line of the kernel.

    An output position meets one tap. A pixel times the weight of a line of taps is a run of `kernel[1]` positions of the result.
    """
    (h, w), (rows, columns), n, of = size, kernel, images.x.shape[0], wide(images.x.dtype)
    run = columns * images.outputs

    def of_run(p: Point) -> ir.Value:
        return images.weight(0, E.mod(p[2], images.outputs), p[1], p[0], E.floordiv(p[2], images.outputs))

    weight = b.pointwise(ir.row_major((rows, images.channels, run), of), of_run)
    line = w * run
    layout = ir.Layout((rows, n, h, w, run), (line, h * rows * line, rows * line, run, 1), of)
    made = contraction(b, layout, ("batch", "row", "row", "row", "column"), (images.channels,),
                       lambda p, r: _element(b, images.x, (p[1], r[0], p[2], p[3])),
                       lambda p, r: b.load(weight, (p[0], r[0], p[4])))  # fmt: skip
    return ir.Ref(made.buffer, _last((n, images.outputs, h * rows, w * columns), of), made.offset)


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
    if not _has_loops(spec, x, grad):
        return None
    filters, channels = _fixed(spec.shape[:2])
    outputs = filters // groups
    flat = len(spec.shape) == 3
    x, grad = _image(b, x), _channels_last(b, _image(b, grad))
    kernel, stride, dilation = (((1, *v) if flat else v) for v in (kernel, stride, dilation))
    padding = (0, *padding) if flat else padding
    h, w = (Dim(n, o, tuple(range(k)), s, d, p) for n, o, k, s, d, p in
            zip(x.shape[2:], grad.shape[2:], kernel, stride, dilation, padding, strict=True))  # fmt: skip
    if channels == outputs == 1 and groups > 1:
        return b.copy(_depthwise_weight(b, x, grad, (h, w), flat), layout_of(spec))
    made = _sums_of_windows(b, x, grad, (groups, outputs, channels), (h, w))
    (o, c, r, t), of = made.layout.strides, made.dtype
    whole = ir.Ref(made.buffer, ir.Layout(tuple(spec.shape), (o, c, t) if flat else (o, c, r, t), of), made.offset)
    return whole if whole.layout == layout_of(spec) else b.copy(whole, layout_of(spec))


def _sums_of_windows(b: Builder, x: ir.Ref, grad: ir.Ref, each: tuple[int, int, int], dims: Sequence[Dim]) -> ir.Ref:
    """(outputs, channels, h, w): sums over positions of an input in the window times the gradient there. each: groups, and of a group the
    outputs and channels, which are contiguous in the result on a target that multiplies tiles."""
    (groups, outputs, channels), (h, w) = each, dims
    rows, columns = len(h.taps), len(w.taps)
    if _has_few_channels(b, x, groups, dims):
        return _sums_of_runs(b, x, grad, h, w)
    in_tiles = _in_tiles(b, x)
    x = _channels_last(b, x) if in_tiles else x

    def window(p: Point, r: Point) -> ir.Value:
        g, _, c, i, j = p
        mask = all_of(*h.inside(r[1], i), *w.inside(r[2], j))
        return _element(b, x, (r[0], E.add(E.mul(g, channels), c), h.at(r[1], i), w.at(r[2], j)), mask)

    count = rows * columns * channels
    inner = (1, columns * channels, channels) if in_tiles else (rows * columns, columns, 1)
    layout = ir.Layout((groups, outputs, channels, rows, columns), (outputs * count, count, *inner), wide(x.dtype))
    made = contraction(b, layout, ("batch", "column", "row", "row", "row"), (x.shape[0], *grad.shape[2:]), window,
                       lambda p, r: _element(b, grad, (r[0], E.add(E.mul(p[0], outputs), p[1]), r[1], r[2])))  # fmt: skip
    return ir.Ref(made.buffer, ir.Layout((groups * outputs, channels, rows, columns), (count, *inner), made.dtype), made.offset)


def _sums_of_runs(b: Builder, x: ir.Ref, grad: ir.Ref, h: Dim, w: Dim) -> ir.Ref:
    """`_sums_of_windows` of an image of few channels, where the taps of one row of a window are one run of memory."""
    padded = _padded(b, x, h, w, len(w.taps))
    width = _aligned_channels(x, w)
    shape = (grad.shape[1], len(h.taps), len(w.taps) * width)

    def window(p: Point, r: Point) -> ir.Value:
        return _element(b, padded, (r[0], E.add(E.mul(r[1], h.stride), E.mul(p[1], h.dilation)), E.mul(r[2], w.stride), p[2]))

    made = contraction(b, ir.row_major(shape, wide(x.dtype)), ("column", "row", "row"), (x.shape[0], *grad.shape[2:]), window,
                       lambda p, r: _element(b, grad, (r[0], p[0], r[1], r[2])))  # fmt: skip
    o, row, _ = made.layout.strides
    layout = ir.Layout((grad.shape[1], x.shape[1], len(h.taps), len(w.taps)), (o, 1, row, width), made.dtype)
    return ir.Ref(made.buffer, layout, made.offset)


def _depthwise_weight(b: Builder, x: ir.Ref, grad: ir.Ref, dims: Sequence[Dim], flat: bool) -> ir.Ref:
    """(c, 1, *taps), the last tap dim alone if `flat`: sums over positions, whose channels are contiguous in all operands."""
    (h, w), of = dims, wide(x.dtype)
    n, channels, *outputs = grad.shape

    def term(p: Point, r: Point) -> ir.Value:
        mask = all_of(*h.inside(r[1], p[0]), *w.inside(r[2], p[1]))
        v = _element(b, x, (r[0], p[2], h.at(r[1], p[0]), w.at(r[2], p[1])), mask)
        v = v if mask is None else where(mask, v, ir.const(0, of))
        return ir.make_op("mul", (v, _element(b, grad, (r[0], p[2], r[1], r[2]))), of)

    made = b.reduction(ir.row_major((len(h.taps), len(w.taps), channels), of), (n, *outputs), "sum", term)
    r, s, c = made.layout.strides
    taps, strides = ((len(w.taps),), (s,)) if flat else ((len(h.taps), len(w.taps)), (r, s))
    return ir.Ref(made.buffer, ir.Layout((channels, 1, *taps), (c, 0, *strides), of))


def _channels_last(b: Builder, x: ir.Ref) -> ir.Ref:
    if x.layout.strides[1] == 1 or x.shape[1] == 1:
        return x
    return b.copy(x, _last(x.shape, x.dtype))
