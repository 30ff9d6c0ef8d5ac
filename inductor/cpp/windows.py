"""A contraction as a convolution: the windows that its left operand reads, recognised from the index and mask of a load.

The index of the operand is linear in the axes of the contraction. A condition of its mask bounds `i * stride - padding + t *
dilation`, the position in the image along one dim, where i counts outputs and t taps. The test finds these numbers again; it does
not depend on how the contraction was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir.sizes import Size, plain, product
from inductor.ir.values import Const, Index, Load, Op, Value
from inductor.loops.tree import Contract, Role

__all__ = ["Convolution", "convolution_of", "weight_gradient_of"]

_SPATIAL: Final = 2


@dataclass(frozen=True, slots=True)
class Convolution:
    """The fields of a `ConvTask` or `ConvWeightTask` by name, without pointers; `images` may be symbolic.

    starts: the positions of the first elements of image, second operand and result in their buffers.
    """

    dtype: str
    fields: Mapping[str, Size]
    starts: tuple[int, int, int]

    def __getitem__(self, name: str) -> int:
        found = self.fields[name]
        assert isinstance(found, int)
        return found


class _Window(NamedTuple):
    """One spatial dim: its axes, and numbers such that output i and tap t are at i * stride - padding + t * dilation, in steps of
    `step` elements, in 0..size-1.
    """

    output: E.Sym | None
    tap: E.Sym | None
    stride: int
    dilation: int
    padding: int
    size: int
    step: int


class _Image(NamedTuple):
    """The windows of an operand, the axis that counts images, the axis of channels, and the position of element 0."""

    windows: tuple[_Window, _Window]
    images: E.Sym | None
    channel: E.Sym | None
    start: int


def convolution_of(s: Contract, of: dtype) -> Convolution | None:
    """The contraction as a convolution of dtype `of` with contiguous output channels, or None if it is not one."""
    found = _parts(s, of, s.axes.rows, s.axes.depth)
    if found is None:
        return None
    image, (x, w, y), column, group = found
    (h, v), n = image.windows, image.images
    if y.at(column) != 1 and column is not None:
        return None
    return Convolution(of.name, {
        **_sizes(s, image), "x_n": x.at(n), "x_h": h.step, "x_w": v.step, "x_c": x.at(image.channel, 1), "x_g": x.at(group),
        "w_g": w.at(group), "w_column": w.at(column), "w_c": w.at(image.channel), "w_h": w.at(h.tap), "w_w": w.at(v.tap),
        "y_n": y.at(n), "y_h": y.at(h.output), "y_w": y.at(v.output), "y_g": y.at(group),
    }, (image.start, w.start, y.start))  # fmt: skip


def weight_gradient_of(s: Contract, of: dtype) -> Convolution | None:
    """The contraction as the gradient of a weight, from a cotangent with contiguous channels, or None if it is not one."""
    found = _parts(s, of, s.axes.depth, s.axes.rows)
    if found is None:
        return None
    image, (x, g, w), column, group = found
    (h, v), n = image.windows, image.images
    if g.at(column) != 1 and column is not None:
        return None
    return Convolution(of.name, {
        **_sizes(s, image), "x_n": x.at(n), "x_h": h.step, "x_w": v.step, "x_c": x.at(image.channel, 1), "x_g": x.at(group),
        "g_n": g.at(n), "g_h": g.at(h.output), "g_w": g.at(v.output), "g_g": g.at(group),
        "w_column": w.at(column), "w_c": w.at(image.channel), "w_h": w.at(h.tap), "w_w": w.at(v.tap), "w_g": w.at(group),
    }, (image.start, g.start, w.start))  # fmt: skip


class _Strides(NamedTuple):
    """The strides of an operand by axis, and the position of its first element."""

    by: Mapping[E.Expr, int]
    start: int

    def at(self, axis: E.Sym | None, without: int = 0) -> int:
        return without if axis is None else self.by[axis]


class _Parts(NamedTuple):
    """The image, the strides of image, second operand and result, the innermost axis of columns, and the axis of groups."""

    image: _Image
    strides: tuple[_Strides, _Strides, _Strides]
    column: E.Sym | None
    group: E.Sym | None


def _parts(s: Contract, of: dtype, outputs: Role, taps: Role) -> _Parts | None:
    axes = s.axes
    if of not in (dtypes.float32, dtypes.float64) or len(axes.batch) > 1 or s.place.indirect:
        return None
    if not all(isinstance(v, Load) and not v.indirect and v.dtype is of for v in (s.a, s.b)):
        return None
    assert isinstance(s.a, Load) and isinstance(s.b, Load)
    every = [a for a, _ in (*axes.result, *axes.depth)]
    strides = [_strides(index, every) for index in (s.a.index, s.b.index, s.place.index)]
    x, second, result = strides
    if x is None or second is None or result is None or s.b.mask is not None:
        return None
    images = outputs[: len(outputs) > _SPATIAL]  # their number may be symbolic
    if not all(isinstance(n, int) for _, n in (*outputs[len(images) :], *taps, *axes.columns, *axes.batch)):
        return None
    image = _image(s.a, x, outputs, taps)
    if image is None:
        return None
    if not all(_count_as_one(axes.columns, z.by) for z in strides if z is not None):
        return None
    column, group = (role[-1][0] if role else None for role in (axes.columns, axes.batch))
    return _Parts(image, (x, second, result), column, group)


def _count_as_one(role: Role, by: Mapping[E.Expr, int]) -> bool:
    """Whether the axes count through equal steps."""
    return all(by[outer] == by[inner] * n for (outer, _), (inner, n) in pairwise(role))


def _strides(index: E.Expr, axes: Sequence[E.Expr]) -> _Strides | None:
    found = E.strides_of(index, axes)
    if found is None or not isinstance(found[1], E.Int):
        return None
    by = {a: plain(n) for a, n in found[0].items()}
    numbers = {a: n for a, n in by.items() if isinstance(n, int)}
    return _Strides(numbers, found[1].value) if len(numbers) == len(by) else None


def _sizes(s: Contract, image: _Image) -> dict[str, Size]:
    extents: dict[E.Expr | None, Size] = {None: 1, **dict((*s.axes.result, *s.axes.depth))}
    (h, w), columns, groups = image.windows, s.axes.columns, s.axes.batch
    return {
        "images": extents[image.images], "groups": groups[0][1] if groups else 1, "channels": extents[image.channel],
        "columns": product(n for _, n in columns), "ih": h.size, "iw": w.size, "oh": extents[h.output], "ow": extents[w.output],
        "kh": extents[h.tap], "kw": extents[w.tap], "sh": h.stride, "sw": w.stride, "ph": h.padding, "pw": w.padding,
        "dh": h.dilation, "dw": w.dilation,
    }  # fmt: skip


# ---- windows ----


def _image(a: Load, x: _Strides, outputs: Role, taps: Role) -> _Image | None:
    bounds = _bounds(a.mask)
    if bounds is None:
        return None
    masked = [_masked(e, low, high, x, outputs, taps) for e, (low, high) in bounds.items()]
    windows = [m for m in masked if m is not None]
    if len(windows) < len(masked) or len(windows) > _SPATIAL:
        return None
    bound = {w.tap for w in windows}
    free = [t for t, _ in taps if t not in bound]
    channel = min(free, key=lambda t: x.by[t]) if free else None
    return _assigned(x, windows, [o for o, _ in outputs], [t for t in free if t is not channel], channel, dict((*outputs, *taps)))


def _assigned(x: _Strides, masked: list[_Window], outputs: list[E.Sym], taps: list[E.Sym], channel: E.Sym | None,
              extents: Mapping[E.Sym, Size]) -> _Image | None:  # fmt: skip
    """The windows in the order of their outputs: the innermost axes are spatial, and the one before them counts images."""
    alone = [w for w in masked if w.output is None]
    spatial = outputs[len(outputs) - (_SPATIAL - len(alone)) :] if len(outputs) > _SPATIAL - len(alone) else outputs
    images = outputs[: len(outputs) - len(spatial)]
    by_output = {w.output: w for w in masked if w.output is not None}
    if len(images) > 1 or not by_output.keys() <= set(spatial):
        return None
    slots: list[_Window | E.Sym | None] = [*alone, *(by_output.get(o, o) for o in spatial)]
    slots = [*[None] * (_SPATIAL - len(slots)), *slots]
    open_slots = [k for k, slot in enumerate(slots) if not isinstance(slot, _Window)]
    if len(taps) > len(open_slots) or any(x.by[t] <= 0 for t in taps):
        return None
    tap_of: dict[int, E.Sym] = {}
    for tap in taps:  # outer taps first; a tap goes to the dim whose outputs are its nearest multiple apart
        k = min((k for k in open_slots if k not in tap_of), key=lambda k: _apart(x, slots[k], tap))
        tap_of[k] = tap
    found: list[_Window] = []
    for k, slot in enumerate(slots):
        window = slot if isinstance(slot, _Window) else _unmasked(x, slot, tap_of.get(k), extents)
        if window is None:
            return None
        found.append(window)
    first, second = found
    start = x.start + first.padding * first.step + second.padding * second.step
    return _Image((first, second), images[0] if images else None, channel, start)


def _apart(x: _Strides, output: _Window | E.Sym | None, tap: E.Sym) -> int:
    """The stride of the outputs in steps that outputs and taps have in common."""
    assert not isinstance(output, _Window)
    return x.by[output] // math.gcd(x.by[output], x.by[tap]) if output is not None else 1 << 62


def _unmasked(x: _Strides, output: E.Sym | None, tap: E.Sym | None, extents: Mapping[E.Sym, Size]) -> _Window | None:
    """A dim whose windows are all inside the image."""
    strides = [x.by[a] for a in (output, tap) if a is not None]
    if any(n <= 0 for n in strides):
        return None
    step = math.gcd(*strides) if strides else 1
    stride, dilation = (x.at(a, step) // step for a in (output, tap))
    last = 0
    for a, each in ((output, stride), (tap, dilation)):
        n = 1 if a is None else extents[a]
        if not isinstance(n, int):
            return None
        last += (n - 1) * each
    return _Window(output, tap, stride, dilation, 0, last + 1, step)


def _masked(e: E.Expr, low: int | None, high: int | None, x: _Strides, outputs: Role, taps: Role) -> _Window | None:
    found = E.strides_of(e, [a for a, _ in (*outputs, *taps)])
    if found is None or not isinstance(found[1], E.Int):
        return None
    numbers = {a: plain(n) for a, n in found[0].items() if plain(n) != 0}
    by = {a: n for a, n in numbers.items() if isinstance(n, int) and n > 0}
    output, tap = ([(a, n) for a, n in by.items() if a in dict(role)] for role in (outputs, taps))
    if len(output) > 1 or len(tap) > 1 or not by or len(by) < len(numbers):
        return None
    steps = {x.by[a] / n for a, n in by.items()}
    step = steps.pop()
    if steps or step != int(step) or step <= 0:
        return None
    (o, stride), (t, dilation) = ((pair[0] if pair else (None, 1)) for pair in (output, tap))
    first = found[1].value if low is None else low  # positions are counted from here
    padding = first - found[1].value
    last = sum((n - 1) * by[a] for a, n in (*outputs, *taps) if a in by) + found[1].value
    size = (last + 1 if high is None else high) - first
    assert (o is None or isinstance(o, E.Sym)) and (t is None or isinstance(t, E.Sym))
    if not isinstance(size, int):
        return None
    return _Window(o, t, stride, dilation, padding, size, int(step))


def _bounds(mask: Value | None) -> dict[E.Expr, tuple[int | None, int | None]] | None:
    """The least value of each expression, and the value after its last, where `mask` is their conjunction; else None."""
    found: dict[E.Expr, tuple[int | None, int | None]] = {}
    pending = [] if mask is None else [mask]
    while pending:
        v = pending.pop()
        if not isinstance(v, Op):
            return None
        if v.name == "logical_and":
            pending += v.args
            continue
        left, right = (_expression(a) for a in v.args)
        if left is None or not isinstance(right, E.Int) or v.name not in ("ge", "lt"):
            return None
        low, high = found.get(left, (None, None))
        found[left] = (right.value, high) if v.name == "ge" else (low, right.value)
    return found


def _expression(v: Value) -> E.Expr | None:
    if isinstance(v, Index):
        return v.expr
    return E.as_expr(v.value) if isinstance(v, Const) and isinstance(v.value, int) else None
