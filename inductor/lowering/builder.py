"""The program under construction, which every lowering rule receives.

Owns buffers and their names, tensors as `Ref`s, and the mapping from an output's logical point to loop axes. Axes of size 1
never appear in a definition.

Owns `Facts` too, an environment of `eager.SymInt`s that decides only by proof: from the symbols' bounds, or from the relations of the
capture, which are guarded. Any other decision would need a new guard, and a graph found in the cache is not lowered again to create it;
such a decision raises `NeedsStatic`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, normalize_dim
from eager.base.symint import SymInt
from fxir.expr import rules as E
from fxir.expr.rules import least, prove
from fxir.symbols.shapes import NeedsStatic, Relation, map_ints
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, nominal, plain

# -- relations of the symbols ---------------------------------------------------------------------------------------
__all__ = ["Facts"]

_ONLY_INTS: Final = frozenset((int,))


class Facts:
    """relations: true of every call. what: the subject of lowering, for error messages."""

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self.what = "the graph"
        self._unequal: list[E.Expr] = []  # expressions that are not 0
        self._at_most_0: dict[E.Expr, None] = {}  # an ordered set: loops over sizes decide the same relations repeatedly
        self._proved: dict[E.Expr, bool] = {}  # memoised results of `_never_positive`
        for r in relations:
            d = r.left - r.right
            if r.op == "!=":
                self._unequal.append(d)
            else:
                self._at_most_0[d + 1 if r.op == "<" else d] = None
                if r.op == "==":
                    self._at_most_0[-d] = None

    # -- in and out --------------------------------------------------------------------------------------------
    def lift(self, x: Any) -> Any:
        """`x` with every expression in it as a SymInt of this environment."""
        if type(x) is int or (type(x) is tuple and _ONLY_INTS.issuperset(map(type, x))):
            return x
        return self.wrap(x) if isinstance(x, E.Expr) else map_ints(x, self.lift)

    def lower(self, x: Any) -> Any:
        """`x` with every SymInt in it as its expression, or an int if it is constant."""
        return plain(x.expr) if isinstance(x, SymInt) else map_ints(x, self.lower)

    # -- as the environment of SymInts -------------------------------------------------------------------------
    def wrap(self, expr: E.IntLike) -> int | SymInt:
        n = plain(E.as_expr(expr))
        return n if isinstance(n, int) else SymInt(n, nominal(n), self)

    def simplify(self, expr: E.Expr) -> E.Expr:
        return expr

    def decide(self, op: str, left: E.IntLike, right: E.IntLike) -> bool:
        a, b = E.as_expr(left), E.as_expr(right)
        proved = prove(op, a, b)
        if proved is None:
            proved = self._follows(op, a - b)
        if proved is None:
            raise self._refusal(a, b, f"{a!r} {op} {b!r}")
        return proved

    floats = None  # floats are tensors in a graph

    def specialise(self, expr: E.IntLike) -> int:
        e = E.as_expr(expr)
        if isinstance(e, E.Int):
            return e.value
        raise self._refusal(e, e, f"the value of {e!r}")

    def stretches(self, n: E.IntLike, m: E.IntLike | None) -> bool:
        """Whether a size `n` that broadcasts to `m` (None: unknown) is 1. An expression is not the constant 1, but its value may be 1."""
        if not isinstance(n, E.Expr) or n is m:
            return n == 1
        return self.decide("==", n, 1)

    # -- reasoning ---------------------------------------------------------------------------------------------
    def _follows(self, op: str, d: E.Expr) -> bool | None:
        """Whether `d op 0` follows from the relations."""
        if op in ("<", "<="):
            low = d + 1 if op == "<" else d
            return True if self._never_positive(low) else False if self._never_positive(1 - low) else None
        if self._never_positive(d) and self._never_positive(-d):
            return op == "=="
        differs = any(u is d or u is -d for u in self._unequal) or self._never_positive(d + 1) or self._never_positive(1 - d)
        return (op == "!=") if differs else None

    def _never_positive(self, d: E.Expr) -> bool:
        """Whether some known expression is at most 0 and at least `d`. An expression that shares no symbol with `d` implies nothing."""
        found = self._proved.get(d)
        if found is None:
            found = any(least(known - d) >= 0 for known in self._at_most_0 if not known.symbols.isdisjoint(d.symbols))
            self._proved[d] = found
        return found

    def _refusal(self, a: E.Expr, b: E.Expr, asked: str) -> NeedsStatic:
        return NeedsStatic(_symbols((a, b)), f"{self.what} depends on {asked}")


def _symbols(expressions: Sequence[E.Expr]) -> frozenset[E.Sym]:
    return frozenset().union(*(e.symbols for e in expressions))


# -- buffers and values ---------------------------------------------------------------------------------------------
Point = Sequence[E.IntLike]


def layout_of(spec: TensorSpec) -> ir.Layout:
    return _layout(tuple(spec.shape), tuple(spec.strides), spec.dtype)


_layout = lru_cache(maxsize=1024)(ir.Layout)  # one layout for all equal tensors, so that its facts are computed once


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
    """Collects the buffers of a program in order. facts: relations of its symbols. For the other arguments see `lower`."""

    def __init__(self, facts: Facts, has_recurrences: bool, has_tiles: bool, adds_floats: bool, has_float8: bool = False) -> None:
        self.facts, self.has_recurrences, self.has_tiles, self.adds_floats = facts, has_recurrences, has_tiles, adds_floats
        self.has_float8 = has_float8
        self.buffers: dict[str, ir.Buffer] = {}
        self.source = ir.Source()
        self.used: frozenset[int] = frozenset()  # numbers of the results of the lowered op that other nodes read
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

    def name_of(self, ahead: int) -> str:
        """The name of the buffer that is defined after `ahead` others."""
        return f"buf{self._count + ahead}"

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
        return self.define(layout, ir.Pointwise(ranges, ir.cast(value_at(point), layout.dtype)))

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

    def recurrence(self, layouts: Sequence[ir.Layout], length: Size, time: E.Expr, first: tuple[ir.Step, ...],
                   rest: tuple[ir.Step, ...]) -> list[ir.Ref]:  # fmt: skip
        """The results of a recurrence, whose steps name them by `name_of`."""
        call, names = self.call(), tuple(self.name_of(k) for k in range(len(layouts)))
        return [self.define(layout, ir.Recurrence(length, time, first, rest, call, names)) for layout in layouts]

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
        return self.load(x, self.broadcast_point(x.layout.shape, point, shape))

    def broadcast_point(self, own: Sequence[Size], point: Point, shape: Sequence[Size] | None = None) -> Point:
        """The point of the shape `own` that broadcasts to `point` of `shape`."""
        lead = len(point) - len(own)
        sizes = [None] * len(point) if shape is None else shape
        return [
            0 if (n == 1 if type(n) is int else self.facts.stretches(n, sizes[lead + d])) else point[lead + d]
            for d, n in enumerate(own)
        ]

    def copy(self, x: ir.Ref, layout: ir.Layout) -> ir.Ref:
        """The elements of `x` in memory of `layout`."""
        return self.pointwise(layout, lambda p: ir.cast(self.load(x, p), layout.dtype))
