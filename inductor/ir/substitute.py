"""Rewriting loop values: replaces axes by expressions, and loads by the values they read.

Owns the one walk that rebuilds interned values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir

Indirect = tuple[tuple[E.Sym, ir.Value], ...]


def at_point(value: ir.Value, mapping: Mapping[E.Expr, E.IntLike], mask: ir.Value | None = None,
             indirect: Indirect = ()) -> ir.Value:  # fmt: skip
    """`value` with its axes replaced. Its loads are read only where `mask` also holds.

    indirect: bindings of symbols in the new expressions. Only loads can carry them. Raises: ValueError for a value with an
    `Index` over such a symbol.
    """
    bound = {s for s, _ in indirect}
    done: dict[ir.Value, ir.Value] = {}
    for v in ir.walk([value]):
        done[v] = _rebuild(v, done, mapping, mask, indirect, bound)
    return done[value]


def _rebuild(v: ir.Value, done: dict[ir.Value, ir.Value], mapping: Mapping[E.Expr, E.IntLike], mask: ir.Value | None,
             indirect: Indirect, bound: set[E.Sym]) -> ir.Value:  # fmt: skip
    if isinstance(v, ir.Index):
        e = E.substitute(v.expr, mapping)
        if bound & e.symbols:
            raise ValueError(f"substitute: {v} would depend on a gathered index")
        return ir.index(e)
    if isinstance(v, ir.Load):
        own = tuple((s, done[x]) for s, x in v.indirect)
        inner = None if v.mask is None else done[v.mask]
        return ir.load(v.buffer, E.substitute(v.index, mapping), v.dtype, both(inner, mask), (*own, *indirect))
    if isinstance(v, ir.Op):
        args = tuple(done[a] for a in v.args)
        return v if args == v.args else ir.make_op(v.name, args, v.dtype)
    return v


def both(a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
    """The conjunction of two masks; None is a mask that always holds."""
    if a is None or b is None:
        return a or b
    return a if a is b else ir.make_op("logical_and", (a, b), dtypes.bool_)


def replace_loads(value: ir.Value, replace: Callable[[ir.Load], ir.Value | None]) -> ir.Value:
    """`value` with some loads replaced: `replace` gives the new value, or None to keep the load."""
    done: dict[ir.Value, ir.Value] = {}
    for v in ir.walk([value]):
        new: ir.Value | None = None
        if isinstance(v, ir.Load):
            own = tuple((s, done[x]) for s, x in v.indirect)
            inner = None if v.mask is None else done[v.mask]
            kept = ir.load(v.buffer, v.index, v.dtype, inner, own)
            new = replace(kept)
            done[v] = kept if new is None else new
        elif isinstance(v, ir.Op):
            args = tuple(done[a] for a in v.args)
            done[v] = v if args == v.args else ir.make_op(v.name, args, v.dtype)
        else:
            done[v] = v
    return done[value]


def producer_at(definition: ir.Pointwise, at: ir.Load) -> ir.Value:
    """The value of `definition` at the element that `at` reads."""
    point = ir.split_position(at.index, definition.ranges)
    mapping: dict[E.Expr, E.IntLike] = {ir.axis(k, n): p for k, (n, p) in enumerate(zip(definition.ranges, point, strict=True)) if n != 1}
    return at_point(definition.value, mapping, at.mask, at.indirect)


def free_axes(value: ir.Value) -> frozenset[E.Sym]:
    """The loop variables that a value depends on (symbols bound by indirect loads are not free)."""
    free: set[E.Sym] = set()
    for v in ir.walk([value]):
        if isinstance(v, ir.Index):
            free |= v.expr.symbols
        elif isinstance(v, ir.Load):
            free |= v.index.symbols - {s for s, _ in v.indirect}
    return frozenset(free)


def with_value(definition: ir.Definition, rewrite: Callable[[ir.Value], ir.Value]) -> ir.Definition:
    """The same definition over rewritten values."""
    match definition:
        case ir.Pointwise():
            return ir.Pointwise(definition.ranges, rewrite(definition.value))
        case ir.Reduction():
            return ir.Reduction(definition.ranges, definition.reduced, definition.kind, rewrite(definition.value))
        case ir.Scan():
            return ir.Scan(definition.ranges, definition.length, definition.kind, rewrite(definition.value))
        case ir.Scatter():
            bound = tuple((s, rewrite(v)) for s, v in definition.indirect)
            return ir.Scatter(definition.ranges, definition.target, definition.index, bound, rewrite(definition.value),
                              definition.mode)  # fmt: skip
    return definition
