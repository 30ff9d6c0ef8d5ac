"""Lowering rules of attention: scores are values of a product, so that masks and limits are fused into its blocks.

Dropout is a factor of each weight, computed from random bits in the block that uses the weight, in the gradients again.
Attention with wide rows, or with rows of unknown width, stays a call of the eager kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec
from eager.optable.attention import weights_shape
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.lowering.builder import Builder, Point, layout_of, wide
from inductor.lowering.rules import rule, uniform, where

WIDEST: Final = 256  # most columns of a row: the tiles of a block must stay in the nearest caches


class Dropout(NamedTuple):
    """Dropout of the weights. state: of its random bits, None without dropout. p: the probability, a number or a 0-d tensor.

    shape: of the weights, whose row-major positions number the bits; it broadcasts to the leading dims, queries and keys.
    """

    state: ir.Ref | None
    p: float | ir.Ref
    shape: tuple[Size, ...]

    def numbers(self, b: Builder) -> tuple[ir.Value, ir.Value]:
        """The probability, and the factor of a weight that is kept, in float64."""
        of = dtypes.float64
        if not isinstance(self.p, ir.Ref):
            return ir.const(self.p, of), ir.const(0 if self.p == 1 else 1 / (1 - self.p), of)
        p, one = b.load(self.p, ()), ir.const(1, of)
        return p, ir.make_op("div", (one, ir.make_op("sub", (one, p), of)), of)


class Axes:
    """The axes of one attention whose result has the leading dims `lead`; sizes: queries, keys, depth and width."""

    def __init__(self, lead: Sequence[Size], sizes: tuple[Size, Size, Size, Size]) -> None:
        self.lead, self.sizes = tuple(lead), sizes
        self.batch = tuple(n for n in lead if n != 1)
        numbers = iter(range(len(self.batch)))
        self.point: list[E.IntLike] = [0 if n == 1 else ir.axis(next(numbers), n) for n in lead]
        self.query = ir.axis(len(self.batch), sizes[0])
        self.key = ir.reduced_axis(0, sizes[1])
        self.depth = ir.reduced_axis(1, sizes[2])
        self.width = ir.axis(len(self.batch) + 1, sizes[3])

    def row(self, b: Builder, x: ir.Ref, at: Point) -> ir.Value:
        """The element of `x`, in the dtype of arithmetic, at a point of its last two dims."""
        return ir.cast(b.broadcast(x, (*self.point, *at), (*self.lead, *x.shape[-2:])), wide(x.dtype))

    def score(self, b: Builder, mask: ir.Ref | None, scale: float, of: dtype) -> ir.Value:
        """The product scaled and masked."""
        s: ir.Value = ir.load(ir.PRODUCT, 0, of)
        if scale != 1:
            s = ir.make_op("mul", (s, ir.const(scale, of)), of)
        if mask is None:
            return s
        shown = b.broadcast(mask, (*self.point, self.query, self.key), (*self.lead, *self.sizes[:2]))
        if mask.dtype is dtypes.bool_:
            return where(shown, s, ir.const(float("-inf"), of))
        return ir.make_op("add", (s, ir.cast(shown, of)), of)

    def weight(self, b: Builder, dropout: Dropout, of: dtype) -> ir.Value:
        """The element of the softmax after dropout."""
        weight: ir.Value = ir.load(ir.WEIGHT, 0, of)
        if dropout.state is None:
            return weight
        point = b.broadcast_point(dropout.shape, (*self.point, self.query, self.key), (*self.lead, *self.sizes[:2]))
        number = uniform(b, dropout.state, ir.linear_position(dropout.shape, point))
        p, share = dropout.numbers(b)
        is_kept = ir.make_op("ge", (number, ir.cast(p, number.dtype)), dtypes.bool_)
        return where(is_kept, ir.make_op("mul", (weight, ir.cast(share, of)), of), ir.const(0, of))

    def define(self, b: Builder, results: Mapping[str, ir.Layout], operands: tuple[ir.Ref, ir.Ref, ir.Ref], score: ir.Value,
               weight: ir.Value, is_causal: bool, given: ir.Cotangents | None = None, scale: float = 1) -> tuple[ir.Ref, ...]:  # fmt: skip
        """The buffers of results by name. operands: q, k and v. scale: of q, which costs less than a scale of each score."""
        points = ((self.query, self.depth), (self.key, self.depth), (self.key, self.width))
        q, k, v = (self.row(b, x, at) for x, at in zip(operands, points, strict=True))
        if scale != 1:
            q = ir.make_op("mul", (q, ir.const(scale, q.dtype)), q.dtype)
        seen, call = E.add(self.query, 1) if is_causal else None, b.call()
        made = {n: ir.Attention(n, call, self.batch, self.sizes, q, k, v, score, weight, seen, 0.0, given) for n in results}
        return tuple([b.define(layout, made[n]) for n, layout in results.items()])


def _shape_of_weights(b: Builder, q: ir.Ref, k: ir.Ref, mask: ir.Ref | None) -> tuple[Size, ...]:
    shapes = [b.facts.lift(x.shape) for x in (q, k, mask) if x is not None]
    found: tuple[Size, ...] = b.facts.lower(weights_shape(*shapes))
    return found


def _is_served(specs: Sequence[TensorSpec], sizes: Sequence[Size]) -> bool:
    queries, keys, depth, width = sizes
    if not all(s.dtype.is_floating_point for s in specs) or not isinstance(depth, int) or not isinstance(width, int):
        return False
    return 0 not in (queries, keys, depth, width) and not any(0 in s.shape for s in specs) and max(depth, width) <= WIDEST


@rule("attention")
def _attention(b: Builder, specs: tuple[TensorSpec, TensorSpec], q: ir.Ref, k: ir.Ref, v: ir.Ref, mask: ir.Ref | None, is_causal: bool,
               scale: float, state: ir.Ref | None, dropout_p: float | ir.Ref) -> tuple[ir.Ref, ...] | None:  # fmt: skip
    sizes = (q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1])
    if not _is_served(specs, sizes) or not isinstance(scale, float | int):
        return None
    axes = Axes(specs[0].shape[:-2], sizes)
    layouts = {"y": layout_of(specs[0]), "lse": layout_of(specs[1])}
    weight = axes.weight(b, Dropout(state, dropout_p, _shape_of_weights(b, q, k, mask)), wide(q.dtype))
    return axes.define(b, layouts, (q, k, v), axes.score(b, mask, 1, wide(q.dtype)), weight, is_causal, scale=scale)


@rule("attention_backward")
def _attention_backward(b: Builder, specs: tuple[TensorSpec, ...], g: ir.Ref, q: ir.Ref, k: ir.Ref, v: ir.Ref, mask: ir.Ref | None,
                        y: ir.Ref, lse: ir.Ref, is_causal: bool, scale: float, state: ir.Ref | None,
                        dropout_p: float | ir.Ref) -> tuple[ir.Ref, ...] | None:  # fmt: skip
    sizes = (q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1])
    if not _is_served(specs, sizes) or not isinstance(scale, float | int):
        return None
    lead, of = y.shape[:-2], wide(q.dtype)
    axes = Axes(lead, sizes)
    score = axes.score(b, mask, scale, of)
    weight = axes.weight(b, Dropout(state, dropout_p, _shape_of_weights(b, q, k, mask)), of)
    is_gpu = specs[0].device.type == "cuda"
    if y.dtype is not of and not is_gpu:  # the sum of g * y would carry the rounding of y; a GPU rounds all operands of products so
        (y,) = axes.define(b, {"y": ir.row_major(y.shape, of)}, (q, k, v), score, weight, is_causal)

    def terms(p: Point, r: Point) -> ir.Value:
        at = (*p[:-1], r[0])
        return ir.make_op("mul", (ir.cast(b.load(g, at), of), ir.cast(b.load(y, at), of)), of)

    delta = b.reduction(ir.row_major((*lead, sizes[0], 1), of), (sizes[3],), "sum", terms)
    given = ir.Cotangents(axes.row(b, g, (axes.query, axes.width)), axes.row(b, lse, (axes.query, 0)),
                          axes.row(b, delta, (axes.query, 0)), ir.const(scale, of))  # fmt: skip
    layouts = {n: ir.row_major((*lead, *s.shape[-2:]), of) for n, s in zip(("gq", "gk", "gv"), specs, strict=True)}
    if is_gpu:  # a program adds up whole gradients before it stores them
        layouts = {n: layout_of(s) if tuple(s.shape[:-2]) == tuple(lead) else layouts[n] for n, s in zip(layouts, specs, strict=True)}
    found = axes.define(b, layouts, (q, k, v), score, weight, is_causal, given)
    return tuple([_of_operand(b, x, layout_of(s)) for x, s in zip(found, specs, strict=True)])


def _of_operand(b: Builder, x: ir.Ref, layout: ir.Layout) -> ir.Ref:
    """The gradient of an operand, in its layout: summed over the leading dims in which the operand was broadcast."""
    missing = len(x.shape) - len(layout.shape)
    stretched = [d for d, n in enumerate(x.shape) if d < missing or layout.shape[d - missing] != n]
    if not stretched:
        return x if x.layout == layout else b.copy(x, layout)

    def element(p: Point, r: Point) -> ir.Value:
        reduced = iter(r)
        return b.load(x, [next(reduced) if d in stretched else p[d - missing] for d in range(len(x.shape))])

    total = b.reduction(ir.Layout(layout.shape, layout.strides, x.dtype), [x.shape[d] for d in stretched], "sum", element)
    return total if x.dtype is layout.dtype else b.copy(total, layout)
