"""Lowering rules of recurrent layers: one recurrence for all time steps, forward and backward.

A step reads the state that the step before stored; the first step reads the given state. The results of a layer are the memory of
its steps. A result that no other op reads holds one step only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from eager.base.spec import TensorSpec
from eager.optable.table import OPS
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain, product
from inductor.lowering.builder import Builder, Point, axes_of, layout_of
from inductor.lowering.protocol import LOOP, Scalar, as_value
from inductor.lowering.rules import at_least, rule, where


class _Time(NamedTuple):
    """Times of a step: in the memory of a layer, and of the step before it (None if this is the first in the order of the layer).

    has_before: a condition on the axis of time, if only some of the steps have one before.
    """

    at: E.IntLike
    before: E.IntLike | None
    has_before: ir.Value | None = None


class _Memory(NamedTuple):
    """A buffer of the recurrence. step: the elements from one time to the next, 0 if all times share them. shape: of a time."""

    name: str
    step: Size
    shape: tuple[Size, ...]

    def position(self, t: E.IntLike, p: Point) -> E.Expr:
        """The position of an element at time t."""
        return E.mul(t, self.step) + ir.linear_position(self.shape, p)


class _Layer:
    """A recurrence under construction."""

    def __init__(self, b: Builder, of: Any) -> None:
        self.b, self.dtype = b, of
        self.memories: dict[str, _Memory] = {}
        self.layouts: list[ir.Layout] = []
        self.steps: list[ir.Step] = []

    def result(self, layout: ir.Layout, steps: Size | None = None) -> _Memory:
        """Memory of a result. steps: the number of times that it has elements for; None if all times share them."""
        shape = layout.shape if steps is None else layout.shape[1:]
        name = self.b.name_of(len(self.layouts))
        self.layouts.append(layout)
        return self.memories.setdefault(name, _Memory(name, 0 if steps is None else product(shape), shape))

    def read(self, m: _Memory, t: E.IntLike, p: Point, mask: ir.Value | None = None) -> Scalar:
        """An element of a buffer of the recurrence at time t."""
        return Scalar(ir.load(m.name, m.position(t, p), self.dtype, mask))

    def given(self, x: ir.Ref, *p: E.IntLike) -> Scalar:
        """An element of an input of the layer."""
        return Scalar(ir.cast(self.b.load(x, p), self.dtype))

    def old(self, m: _Memory, first: ir.Ref, time: _Time, p: Point) -> Scalar:
        """The state before a step: an element of `m`, or of `first` if no step is before."""
        if time.before is None:
            return self.given(first, *p)
        then = self.read(m, time.before, p, time.has_before)
        if time.has_before is None:
            return then
        return Scalar(where(time.has_before, then.value, self.given(first, *p).value))

    def store(self, m: _Memory, t: E.IntLike, shape: Sequence[Size], place: Callable[[Point], Point],
              value: Callable[[Point], Any]) -> None:  # fmt: skip
        """A step over points of `shape`: m[t, place(point)] = value(point)."""
        ranges, point = axes_of(ir.row_major(shape, self.dtype))
        self.steps.append(ir.Step(m.name, m.position(t, place(point)), ir.Pointwise(ranges, as_value(value(point), self.dtype))))

    def multiply(self, m: _Memory, t: E.IntLike, depth: Size, left: Callable[[Point], Scalar], right: Callable[[Point], Scalar]) -> None:
        """A step m[t, i, j] = sum over r < depth of left((i, r)) * right((r, j))."""
        ranges, point = axes_of(ir.row_major(m.shape, self.dtype))
        roles: list[ir.Role] = [role for role, n in zip(("row", "column"), m.shape, strict=True) if n != 1]  # type: ignore[misc]
        r = ir.reduced_axis(0, depth)
        reduced = () if depth == 1 else (depth,)
        a, b = left((point[0], r)).value, right((r, point[1])).value
        self.steps.append(ir.Step(m.name, m.position(t, point), ir.Contraction(ranges, reduced, tuple(roles), a, b)))

    def run(self, length: Size, times: Callable[[E.IntLike], _Time], step: Callable[[_Time, bool], None]) -> list[ir.Ref]:
        """The results of steps 0..length-1. times: of a step by number. step: (times, whether it is the first) adds a step."""
        step(times(0), True)
        first, self.steps = tuple(self.steps), []
        time = ir.counter(f"{next(iter(self.memories))}_t", plain(length - 1))
        step(times(time + 1), False)
        return self.b.recurrence(self.layouts, length, time, first, tuple(self.steps))


def _forward(length: Size, reverse: bool) -> Callable[[E.IntLike], _Time]:
    """The times of the steps of a layer."""

    def times(k: E.IntLike) -> _Time:
        before = None if isinstance(k, int) and k == 0 else E.add(k, -1)
        if not reverse:
            return _Time(k, before)
        last = plain(length - 1)
        return _Time(plain(last - k), None if before is None else plain(last - before))

    return times


def _backward(length: Size, reverse: bool) -> Callable[[E.IntLike], _Time]:
    """The times of the steps of a layer's gradient, which run from the last step of the layer to the first."""
    forward = _forward(length, reverse)

    def times(k: E.IntLike) -> _Time:
        number = plain(length - 1 - k)
        if isinstance(number, int):
            return forward(number)
        found = forward(number)
        return _Time(found.at, found.before, at_least(number, 1))

    return times


def _call(name: str, *values: Any) -> Scalar:
    """The scalar rule of an op of the table."""
    scalar = OPS[name].scalar
    assert scalar is not None
    result: Scalar = scalar(LOOP, *values)
    return result


def _same(p: Point) -> Point:
    return p


def _part(k: int, h: Size) -> Callable[[Point], Point]:
    """The point of gate k."""
    return lambda p: (p[0], plain(E.add(p[1], E.mul(k, h))))


def _is_lowered(b: Builder, spec: TensorSpec) -> bool:
    return b.has_recurrences and spec.dtype.is_floating_point and spec.dtype.itemsize >= 4 and 0 not in spec.shape


@rule("lstm_layer")
def _lstm(b: Builder, specs: Sequence[TensorSpec], gx: ir.Ref, h: ir.Ref, c: ir.Ref, w: ir.Ref, bias: ir.Ref | None, reverse: bool) -> Any:
    if not _is_lowered(b, specs[2]):
        return None
    layer, layouts = _Layer(b, specs[0].dtype), [layout_of(s) for s in specs]
    length, (n, size) = gx.shape[0], h.shape
    y, cs, gates = (layer.result(x, length) if k in b.used else layer.result(_one(x)) for k, x in enumerate(layouts))

    def step(time: _Time, is_first: bool) -> None:
        at = time.at
        layer.multiply(gates, at, size, lambda p: layer.old(y, h, time, p), lambda p: layer.given(w, p[1], p[0]))

        def gate(p: Point, k: int) -> Any:
            q = _part(k, size)(p)
            product = layer.read(gates, at, q)
            return layer.given(gx, at, *q) + (product if bias is None else product + layer.given(bias, q[1]))

        if 2 in b.used:
            for k in range(4):
                layer.store(gates, at, (n, size), _part(k, size), partial(gate, k=k))

        def read(p: Point, k: int) -> Any:
            return layer.read(gates, at, _part(k, size)(p)) if 2 in b.used else gate(p, k)

        layer.store(cs, at, (n, size), _same, lambda p: _call("sigmoid", read(p, 1)) * layer.old(cs, c, time, p)
                    + _call("sigmoid", read(p, 0)) * _call("tanh", read(p, 2)))  # fmt: skip
        layer.store(y, at, (n, size), _same, lambda p: _call("sigmoid", read(p, 3)) * _call("tanh", layer.read(cs, at, p)))

    return tuple(layer.run(length, _forward(length, reverse), step))


def _one(layout: ir.Layout) -> ir.Layout:
    """The layout of one time step."""
    return ir.row_major(layout.shape[1:], layout.dtype)


@rule("lstm_layer_backward")
def _lstm_backward(b: Builder, specs: Sequence[TensorSpec], gy: ir.Ref, gcs: ir.Ref | None, ggates: ir.Ref | None, gates: ir.Ref,
                   cs: ir.Ref, c: ir.Ref, w: ir.Ref, reverse: bool) -> Any:  # fmt: skip
    if not _is_lowered(b, specs[0]):
        return None
    layer = _Layer(b, specs[0].dtype)
    length, (n, size) = gates.shape[0], c.shape
    ds, gh, gc = layer.result(layout_of(specs[0]), length), layer.result(layout_of(specs[1])), layer.result(layout_of(specs[2]))

    def step(time: _Time, is_first: bool) -> None:
        at = time.at

        def before(p: Point) -> Scalar:
            if time.before is None:
                return layer.given(c, *p)
            then = ir.cast(b.load(cs, (time.before, *p), time.has_before), layer.dtype)
            return Scalar(then if time.has_before is None else where(time.has_before, then, layer.given(c, *p).value))

        def parts(p: Point) -> tuple[list[Any], Any]:
            """The cotangents of the four gates and of the state before."""
            raw = [layer.given(gates, at, *_part(k, size)(p)) for k in range(4)]
            i, f, o = (_call("sigmoid", raw[k]) for k in (0, 1, 3))
            g, old = _call("tanh", raw[2]), before(p)
            t = _call("tanh", f * old + i * g)
            g_h = layer.given(gy, at, *p) if is_first else layer.given(gy, at, *p) + layer.read(gh, at, p)
            d = g_h * o * (1 - t * t)
            if gcs is not None:
                d = d + layer.given(gcs, at, *p)
            if not is_first:
                d = d + layer.read(gc, at, p)
            return [d * g * i * (1 - i), d * old * f * (1 - f), d * i * (1 - g * g), g_h * t * o * (1 - o)], d * f

        for k in range(4):
            def part(p: Point, k: int = k) -> Any:
                found = parts(p)[0][k]
                return found if ggates is None else found + layer.given(ggates, at, *_part(k, size)(p))

            layer.store(ds, at, (n, size), _part(k, size), part)
        layer.store(gc, at, (n, size), _same, lambda p: parts(p)[1])
        layer.multiply(gh, at, plain(size * 4), lambda p: layer.read(ds, at, p), lambda p: layer.given(w, *p))

    return tuple(layer.run(length, _backward(length, reverse), step))


@rule("gru_layer")
def _gru(b: Builder, specs: Sequence[TensorSpec], gx: ir.Ref, h: ir.Ref, w: ir.Ref, bias: ir.Ref | None, reverse: bool) -> Any:
    if not _is_lowered(b, specs[1]):
        return None
    layer, layouts = _Layer(b, specs[0].dtype), [layout_of(s) for s in specs]
    length, (n, size) = gx.shape[0], h.shape
    y, products = (layer.result(x, length) if k in b.used else layer.result(_one(x)) for k, x in enumerate(layouts))

    def step(time: _Time, is_first: bool) -> None:
        at = time.at
        layer.multiply(products, at, size, lambda p: layer.old(y, h, time, p), lambda p: layer.given(w, p[1], p[0]))
        if bias is not None:
            layer.store(products, at, (n, plain(size * 3)), _same, lambda p: layer.read(products, at, p) + layer.given(bias, p[1]))

        def state(p: Point) -> Any:
            rx, zx, nx = (layer.given(gx, at, *_part(k, size)(p)) for k in range(3))
            rh, zh, nh = (layer.read(products, at, _part(k, size)(p)) for k in range(3))
            z = _call("sigmoid", zx + zh)
            new = _call("tanh", nx + _call("sigmoid", rx + rh) * nh)
            return new + z * (layer.old(y, h, time, p) - new)

        layer.store(y, at, (n, size), _same, state)

    return tuple(layer.run(length, _forward(length, reverse), step))


@rule("gru_layer_backward")
def _gru_backward(b: Builder, specs: Sequence[TensorSpec], gy: ir.Ref, gproducts: ir.Ref | None, gx: ir.Ref, products: ir.Ref, y: ir.Ref,
                  h: ir.Ref, w: ir.Ref, reverse: bool) -> Any:  # fmt: skip
    if not _is_lowered(b, specs[0]):
        return None
    layer = _Layer(b, specs[0].dtype)
    length, (n, size) = gx.shape[0], h.shape
    dx, ds, gh = layer.result(layout_of(specs[0]), length), layer.result(layout_of(specs[1]), length), layer.result(layout_of(specs[2]))
    direct = layer.result(layout_of(specs[2]))

    def step(time: _Time, is_first: bool) -> None:
        at = time.at

        def old(p: Point) -> Scalar:
            if time.before is None:
                return layer.given(h, *p)
            then = ir.cast(b.load(y, (time.before, *p), time.has_before), layer.dtype)
            return Scalar(then if time.has_before is None else where(time.has_before, then, layer.given(h, *p).value))

        def parts(p: Point) -> tuple[list[Any], list[Any], Any]:
            """The cotangents of both products, and the direct part of the cotangent of the state before."""
            (rx, zx, nx), (rh, zh, nh) = ([layer.given(x, at, *_part(k, size)(p)) for k in range(3)] for x in (gx, products))
            r, z, state = _call("sigmoid", rx + rh), _call("sigmoid", zx + zh), old(p)
            new = _call("tanh", nx + r * nh)
            g = layer.given(gy, at, *p) if is_first else layer.given(gy, at, *p) + layer.read(gh, at, p)
            d_new = g * (1 - z) * (1 - new * new)
            d_r, d_z = d_new * nh * r * (1 - r), g * (state - new) * z * (1 - z)
            return [d_r, d_z, d_new], [d_r, d_z, d_new * r], g * z

        for k in range(3):
            def of_product(p: Point, k: int = k) -> Any:
                found = parts(p)[1][k]
                return found if gproducts is None else found + layer.given(gproducts, at, *_part(k, size)(p))

            def of_input(p: Point, k: int = k) -> Any:
                return parts(p)[0][k]

            layer.store(dx, at, (n, size), _part(k, size), of_input)
            layer.store(ds, at, (n, size), _part(k, size), of_product)
        layer.store(direct, at, (n, size), _same, lambda p: parts(p)[2])
        layer.multiply(gh, at, plain(size * 3), lambda p: layer.read(ds, at, p), lambda p: layer.given(w, *p))
        layer.store(gh, at, (n, size), _same, lambda p: layer.read(gh, at, p) + layer.read(direct, at, p))

    return tuple(layer.run(length, _backward(length, reverse), step)[:3])


@rule("rnn_layer")
def _rnn(b: Builder, spec: TensorSpec, gx: ir.Ref, h: ir.Ref, w: ir.Ref, bias: ir.Ref | None, nonlinearity: str, reverse: bool) -> Any:
    if not _is_lowered(b, spec):
        return None
    layer = _Layer(b, spec.dtype)
    length, size = gx.shape[0], h.shape[1]
    y = layer.result(layout_of(spec), length)

    def step(time: _Time, is_first: bool) -> None:
        at = time.at
        layer.multiply(y, at, size, lambda p: layer.old(y, h, time, p), lambda p: layer.given(w, p[1], p[0]))

        def state(p: Point) -> Any:
            product = layer.read(y, at, p)
            return _call(nonlinearity, layer.given(gx, at, *p) + (product if bias is None else product + layer.given(bias, p[1])))

        layer.store(y, at, y.shape, _same, state)

    return layer.run(length, _forward(length, reverse), step)[0]


@rule("rnn_layer_backward")
def _rnn_backward(b: Builder, specs: Sequence[TensorSpec], gy: ir.Ref, y: ir.Ref, w: ir.Ref, nonlinearity: str, reverse: bool) -> Any:
    if not _is_lowered(b, specs[0]):
        return None
    layer = _Layer(b, specs[0].dtype)
    length, size = y.shape[0], y.shape[2]
    ds, gh = layer.result(layout_of(specs[0]), length), layer.result(layout_of(specs[1]))

    def step(time: _Time, is_first: bool) -> None:
        at = time.at

        def value(p: Point) -> Any:
            g, state = layer.given(gy, at, *p), layer.given(y, at, *p)
            g = g if is_first else g + layer.read(gh, at, p)
            if nonlinearity == "tanh":
                return g * (1 - state * state)
            return Scalar(where((state > 0).value, g.value, ir.const(0, layer.dtype)))

        layer.store(ds, at, ds.shape, _same, value)
        layer.multiply(gh, at, size, lambda p: layer.read(ds, at, p), lambda p: layer.given(w, *p))

    return tuple(layer.run(length, _backward(length, reverse), step))
