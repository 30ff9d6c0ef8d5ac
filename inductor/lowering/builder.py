"""The program under construction, which every lowering rule receives.

Owns buffers and their names, tensors as `Ref`s, and the mapping from an output's logical point to loop axes. Axes of size 1
never appear in a definition.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, normalize_dim
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.lowering.facts import Facts
from inductor.lowering.protocol import cast_value

Point = Sequence[E.IntLike]


def layout_of(spec: TensorSpec) -> ir.Layout:
    return ir.Layout(tuple(spec.shape), tuple(spec.strides), spec.dtype)


def axes_of(layout: ir.Layout) -> tuple[tuple[Size, ...], list[E.IntLike]]:
    """(ranges, point): loop sizes in memory order, and the logical index of the current element."""
    point: list[E.IntLike] = [0] * len(layout.shape)
    ranges = []
    for k, d in enumerate(layout.axes):
        point[d] = ir.axis(k, layout.shape[d])
        ranges.append(layout.shape[d])
    return tuple(ranges), point


def wide(d: dtype) -> dtype:
    """The dtype of arithmetic on `d`."""
    return dtypes.float32 if d.itemsize == 2 and d.is_floating_point else d


class ViewRule:
    """A Ref in the form that the view rule of an op reads: sizes are ints or SymInts."""

    def __init__(self, r: ir.Ref, facts: Facts) -> None:
        self.shape, self.dtype = facts.lift(r.layout.shape), r.dtype
        self.ndim = len(self.shape)
        self._strides: tuple[int, ...] = facts.lift(r.layout.strides)
        self._offset: int = facts.lift(r.offset)

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def storage_offset(self) -> int:
        return self._offset

    def numel(self) -> int:
        return math.prod(self.shape)


class Builder:
    """Collects the buffers of a program in order. facts: relations of its symbols."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.buffers: dict[str, ir.Buffer] = {}
        self.source = ir.Source()
        self.checks: dict[tuple[str, str, Size], int] = {}
        self._constants: dict[str, bool] = {}
        self._count = 0
        self._calls = 0
        self._symbols = 0

    # ---- buffers ----

    def given(self, name: str, spec: TensorSpec) -> ir.Ref:
        """An input or constant."""
        layout = layout_of(spec)
        self.buffers[name] = ir.Buffer(name, layout)
        return ir.Ref(name, layout)

    def define(self, layout: ir.Layout, definition: ir.Definition) -> ir.Ref:
        name = f"buf{self._count}"
        self._count += 1
        self.buffers[name] = ir.Buffer(name, layout, definition, self.source)
        return ir.Ref(name, layout)

    def pointwise(self, layout: ir.Layout, value_at: Callable[[Point], ir.Value]) -> ir.Ref:
        """A buffer of values computed at every point; stored in the layout's dtype."""
        if 0 in layout.shape:
            return self.define(layout, ir.Pointwise((0,), ir.const(0, layout.dtype)))
        ranges, point = axes_of(layout)
        return self.define(layout, ir.Pointwise(ranges, cast_value(value_at(point), layout.dtype)))

    def reduction(self, layout: ir.Layout, reduced: Sequence[Size], kind: str,
                  value_at: Callable[[Point, Point], ir.Value]) -> ir.Ref:  # fmt: skip
        """A buffer of `kind` over axes of sizes `reduced`; value_at(kept point, reduced point)."""
        if 0 in layout.shape:
            return self.pointwise(layout, lambda p: ir.const(0, layout.dtype))
        if 0 in reduced:
            empty = {"sum": 0, "mean": math.nan, "any": 0, "prod": 1, "all": 1}[kind]
            return self.pointwise(layout, lambda p: ir.const(empty, layout.dtype))
        ranges, point = axes_of(layout)
        inner: list[E.IntLike] = []
        sizes: list[Size] = []
        for n in reduced:
            inner.append(0 if n == 1 else ir.reduced_axis(len(sizes), n))
            if n != 1:
                sizes.append(n)
        value = value_at(point, inner)
        return self.define(layout, ir.Reduction(ranges, tuple(sizes), kind, value))

    def extern(self, op: str, args: Any, specs: Sequence[TensorSpec]) -> list[ir.Ref]:
        """The results of one call of an eager kernel."""
        call = self.call()
        return [self.define(layout_of(s), ir.Extern(op, args, call, i, len(specs))) for i, s in enumerate(specs)]

    def call(self) -> str:
        """A new name for a computation with several results."""
        self._calls += 1
        return f"call{self._calls - 1}"

    # ---- numbers ----

    def dim(self, d: Size, ndim: int) -> int:
        """A dim argument in 0..ndim-1. Raises: NeedsStatic for an expression, as code differs with the dim."""
        return operator.index(normalize_dim(self.facts.lift(d), ndim))

    # ---- values ----

    def load(self, x: ir.Ref, point: Point, mask: ir.Value | None = None,
             indirect: tuple[tuple[E.Sym, ir.Value], ...] = ()) -> ir.Value:  # fmt: skip
        """The element of `x` at a logical point. indirect: bindings of symbols in the point.

        If all elements are one number, the load disappears; the positions are still checked.
        """
        at = x.at(point)
        value: ir.Value = ir.load(x.buffer, at, x.dtype, mask, indirect)
        if not indirect:
            return value
        held = frozenset() if self._is_constant(x.buffer) else at.symbols
        for position in [v for s, v in indirect if s not in held]:
            inside = ir.make_op("ge", (position, ir.const(0, dtypes.int64)), dtypes.bool_)
            value = ir.make_op("where", (inside, value, ir.const(0, value.dtype)), value.dtype)
        return value

    def _is_constant(self, name: str) -> bool:
        """Whether a buffer's values are computed from numbers alone."""
        found = self._constants.get(name)
        if found is None:
            d = self.buffers[name].definition
            found = self._constants[name] = isinstance(d, ir.Pointwise) and all(map(self._is_constant, d.reads))
        return found

    def symbol(self, n: Size) -> E.Sym:
        """A new symbol for a data-dependent position in 0..n-1 (never a constant, so that its check stays)."""
        self._symbols += 1
        made = ir.counter(f"s{self._symbols - 1}", max(n, 2) if isinstance(n, int) else n)
        assert isinstance(made, E.Sym)
        return made

    def check(self, error: str, text: str, size: Size) -> int:
        """The number of a check of the program (see `ir.Program.checks`)."""
        return self.checks.setdefault((error, text, size), len(self.checks))

    def broadcast(self, x: ir.Ref, point: Point, shape: Sequence[Size] | None = None) -> ir.Value:
        """The element of `x` that broadcasts to `point` of a larger shape, or None if the position is not known."""
        lead = len(point) - len(x.shape)
        sizes = [None] * len(point) if shape is None else shape
        own = [
            0 if (n == 1 if type(n) is int else self.facts.stretches(n, sizes[lead + d])) else point[lead + d]
            for d, n in enumerate(x.layout.shape)
        ]
        return self.load(x, own)

    def copy(self, x: ir.Ref, layout: ir.Layout) -> ir.Ref:
        """The elements of `x` in memory of `layout`."""
        return self.pointwise(layout, lambda p: cast_value(self.load(x, p), layout.dtype))
