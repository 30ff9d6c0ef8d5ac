"""Attention that a program writes out: product, pointwise score, softmax, pointwise weights, product.

Owns the recognition of this pattern among definitions. The softmax is found by its values: exp(s - max of s), divided by its sum, where
the reductions run over the depth of the second product. Values are interned, so that two ways to compute one element are one object.
A product that is also read elsewhere stays, since it is in memory anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.definitions import producer_at
from inductor.ir.values import at_point, replace_loads
from inductor.plan.schedule import FUSION, Refusal

WIDEST: Final = 256  # most columns of a row of queries, keys or values: the tiles of a block must stay in the nearest caches
LIMIT: Final = 80  # most operations of a score or weight
_LINEAR: Final = {"mul": (0, 1), "div": (0,), "neg": (0,)}  # operations that are linear in these operands


class _Mismatch(Exception):
    """The definitions are not attention; the message says why."""


def fuse_attention(program: ir.Program) -> ir.Program:
    """The program with each pattern replaced by an `Attention`."""
    for b in [b for b in program.buffers.values() if isinstance(b.definition, ir.Contraction)]:
        try:
            found, product = _match(program, b)
        except _Mismatch as reason:
            if str(reason):
                FUSION.log(str(Refusal("attention", b.name, str(reason))))
            continue
        fused = replace(program, buffers={**program.buffers, b.name: replace(b, definition=found)})
        needed = _needed(fused)
        if product in needed:
            FUSION.log(str(Refusal(product, b.name, "the scores of attention are also read elsewhere")))
        else:
            kept = {n: x for n, x in fused.buffers.items() if n in needed or x.definition is None}
            program = replace(fused, buffers=kept)
    return program


def _needed(program: ir.Program) -> set[str]:
    """The buffers that results, written inputs and calls depend on."""
    pending = [r.buffer for r in program.outputs if isinstance(r, ir.Ref)] + [w.value.buffer for w in program.writes]
    pending += [b.name for b in program.buffers.values() if isinstance(b.definition, ir.Extern)]
    needed: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending.extend(program.buffers[name].reads)
    return needed


def _match(program: ir.Program, b: ir.Buffer) -> tuple[ir.Attention, str]:
    """The attention that computes the result of the product `b`, and the name of the product before it. Raises: _Mismatch."""
    d = b.definition
    assert isinstance(d, ir.Contraction)
    n = len(d.ranges) - 2
    if d.roles != (*("batch",) * n, "row", "column") or len(d.reduced) != 1 or not b.layout.is_row_major or len(b.layout.shape) < 2:
        raise _Mismatch
    query, key = ir.axis(n, d.ranges[n]), ir.reduced_axis(0, d.reduced[0])
    weights = _inlined(program, d.a)
    weight, score = _softmax(program, weights, key)
    products = [x for x in ir.loads_in(score) if isinstance(program.buffers[x.buffer].definition, ir.Contraction)]
    if len(products) != 1:
        raise _Mismatch("the scores are not computed from one product")
    (load,) = products
    first = program.buffers[load.buffer].definition
    assert isinstance(first, ir.Contraction)
    q, k = _operands(first, load, query, key)
    if load.dtype is not d.b.dtype or any(x.indirect for v in (score, weight, q, k, d.b) for x in ir.loads_in(v)):
        raise _Mismatch("its products have other dtypes, or it gathers")
    sizes = (d.ranges[n], d.reduced[0], first.reduced[0], d.ranges[n + 1])
    if not all(isinstance(size, int) and size <= WIDEST for size in sizes[2:]):
        raise _Mismatch(f"rows of {sizes[2]} and {sizes[3]} columns; allowed: at most {WIDEST}")
    score = replace_loads(score, lambda x: ir.load(ir.PRODUCT, 0, x.dtype) if x is load else None)
    if sum(isinstance(v, ir.Op) for v in ir.walk([score, weight])) > LIMIT:
        raise _Mismatch(f"its score and weight have more than {LIMIT} operations")
    return ir.Attention("y", f"{b.name}_attention", d.ranges[:n], sizes, q, k, d.b, score, weight, None, math.nan), load.buffer


def _inlined(program: ir.Program, value: ir.Value) -> ir.Value:
    """The value over loads of stored and reduced buffers: pointwise producers are replaced by their values."""
    while True:
        if sum(isinstance(v, ir.Op) for v in ir.walk([value])) > 2 * LIMIT:
            raise _Mismatch(f"its values have more than {2 * LIMIT} operations")
        new = replace_loads(value, lambda x: _producer(program, x))
        if new is value:
            return value
        value = new


def _producer(program: ir.Program, x: ir.Load) -> ir.Value | None:
    d = program.buffers[x.buffer].definition if x.buffer in program.buffers else None
    return producer_at(d, x) if isinstance(d, ir.Pointwise) and not x.indirect else None


def _reduced_at(program: ir.Program, x: ir.Load, kind: str, key: E.Expr) -> ir.Value | None:
    """The value that a reduction over the keys combines into the element `x`, at the key; None for any other buffer."""
    d = program.buffers[x.buffer].definition if x.buffer in program.buffers else None
    if not isinstance(d, ir.Reduction) or d.kind != kind or len(d.reduced) != 1:
        return None
    if key in x.index.symbols or x.indirect or x.mask is not None:
        return None
    point = ir.split_position(x.index, d.ranges)
    mapping: dict[E.Expr, E.IntLike] = {ir.axis(k, n): at for k, (n, at) in enumerate(zip(d.ranges, point, strict=True)) if n != 1}
    return _inlined(program, at_point(d.value, {**mapping, ir.reduced_axis(0, d.reduced[0]): key}))


def _softmax(program: ir.Program, weights: ir.Value, key: E.Expr) -> tuple[ir.Value, ir.Value]:
    """(weight over a load of `WEIGHT`, score) of a value that is computed from one softmax over the keys."""
    for total in ir.loads_in(weights):
        exponential = _reduced_at(program, total, "sum", key)
        if not isinstance(exponential, ir.Op) or exponential.name != "exp":
            continue
        shifted = exponential.args[0]
        if not isinstance(shifted, ir.Op) or shifted.name != "sub" or not isinstance(shifted.args[1], ir.Load):
            continue
        score, top = shifted.args
        assert isinstance(top, ir.Load)
        if _reduced_at(program, top, "max", key) is not score:
            continue
        of = exponential.dtype
        inverse = ir.make_op("div", (ir.const(1, of), total), of)
        quotients = (ir.make_op("mul", (exponential, inverse), of), ir.make_op("div", (exponential, total), of))
        weight = _replaced(weights, dict.fromkeys(quotients, ir.load(ir.WEIGHT, 0, of)))
        if not _is_linear(weight) or {exponential, total, top} & set(ir.walk([weight])):
            raise _Mismatch("its weights are not linear in a softmax")
        return weight, score
    raise _Mismatch


def _replaced(value: ir.Value, new: Mapping[ir.Value, ir.Value]) -> ir.Value:
    done: dict[ir.Value, ir.Value] = {}
    for v in ir.walk([value]):
        if v in new:
            done[v] = new[v]
        elif isinstance(v, ir.Op):
            done[v] = ir.make_op(v.name, tuple(done[a] for a in v.args), v.dtype)
        else:
            done[v] = v
    return done[value]


def _is_linear(v: ir.Value) -> bool:
    """Whether a value is a load of `WEIGHT` times a number that does not depend on it, or 0."""
    if isinstance(v, ir.Load):
        return v.buffer == ir.WEIGHT
    if not isinstance(v, ir.Op):
        return False
    if v.name == "where":
        free, *cases = v.args
        return not _has_weight(free) and any(map(_has_weight, cases)) and all(_is_linear(x) or _is_zero(x) for x in cases)
    at = [k for k, x in enumerate(v.args) if _has_weight(x)]
    return v.name in _LINEAR and len(at) == 1 and at[0] in _LINEAR[v.name] and _is_linear(v.args[at[0]])


def _is_zero(v: ir.Value) -> bool:
    return isinstance(v, ir.Const) and v.value == 0


def _has_weight(v: ir.Value) -> bool:
    return any(x.buffer == ir.WEIGHT for x in ir.loads_in(v))


def _operands(d: ir.Contraction, load: ir.Load, query: E.Expr, key: E.Expr) -> tuple[ir.Value, ir.Value]:
    """The queries and keys of the product whose element is `load`, over the axes of an `Attention`."""
    if len(d.reduced) != 1 or load.mask is not None or load.indirect:
        raise _Mismatch("its first product has several inner dims")
    point = ir.split_position(load.index, d.ranges)
    mapping: dict[E.Expr, E.IntLike] = {ir.axis(k, n): at for k, (n, at) in enumerate(zip(d.ranges, point, strict=True)) if n != 1}
    depth = ir.reduced_axis(0, d.reduced[0])
    # The depth is named apart from the key first: both are reduced axis 0 of their product.
    apart = ir.reduced_axis(1, d.reduced[0])
    a, b = (at_point(at_point(v, {depth: apart} if isinstance(depth, E.Sym) else {}), mapping) for v in (d.a, d.b))
    for left, right in ((a, b), (b, a)):
        if key not in _symbols(left) and query not in _symbols(right):
            return left, right
    raise _Mismatch("its first product does not separate queries from keys")


def _symbols(v: ir.Value) -> frozenset[E.Sym]:
    return frozenset().union(*(x.index.symbols for x in ir.loads_in(v)))
