"""The loops of attention for targets that multiply tiles: a program for each block of queries, or of keys.

A block of scores is a tile, (queries, keys), that no memory holds. Queries lie along axis 0 of the tiles of a program over queries, keys
along axis 0 in a program over keys, so that every product reads its left operand as it was computed. Products multiply numbers of
the dtype of the inputs, weights and cotangents of scores rounded to it, and add up in the dtype of arithmetic. Scores are multiplied by
log2(e), together with their scale: weights are powers of two, which a GPU computes in one instruction.

Source: Dao, "FlashAttention-2", arXiv:2307.08691 (programs over queries in the forward, over keys for their gradients).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain, product
from inductor.ir.values import replace_loads
from inductor.loops.attention import Blocks, Loops, Tile, attention_of, compare, operation, role_of, select
from inductor.loops.tiles import LEAST_PRODUCT, tile_size
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Axes,
    Block,
    Contract,
    Guard,
    Kernel,
    Store,
    allocated,
    values_of,
    walk,
)

_LOG2_E: Final = math.log2(math.e)


class Sizes(NamedTuple):
    """Queries and keys of a block, powers of two."""

    queries: int
    keys: int


def build(buffers: Sequence[ir.Buffer], memory: Mapping[str, dtype], sizes: Sizes) -> Kernel:
    """The kernel that computes `buffers`: results of one call of attention, its gradient "gq", or its gradients "gk" and "gv".

    memory: dtypes of the buffers that they read.
    """
    d = attention_of(buffers[0])
    if d.given is None:
        return _kernel(_Forward(buffers, sizes), memory)
    return _kernel((_GradientOfQueries if d.result == "gq" else _GradientsOfKeys)(buffers, sizes), memory)


def _kernel(made: _Blocked, memory: Mapping[str, dtype]) -> Kernel:
    body = made.body()
    locals_ = {s.local.name for s in walk(body) if isinstance(s, Allocate)}
    reads = dict.fromkeys(x.buffer for s in walk(body) for v in values_of(s) for x in ir.loads_in(v))
    types = {**memory, **{b.name: b.layout.dtype for b in made.results.values()}}
    return Kernel(body, {n: types[n] for n in (*(b.name for b in made.results.values()), *reads) if n not in locals_})


def narrow_of(d: ir.Attention) -> dtype:
    """The dtype that products multiply: of the inputs, if all of them have one dtype of 16 bits, else the dtype of arithmetic."""
    values = (d.q, d.k, d.v, *(d.given[:1] if d.given else ()))
    found = {_source(_unscaled(v)[0]) for v in values}
    (of,) = found if len(found) == 1 else (None,)
    return of if of is not None and of.itemsize == 2 else d.q.dtype


def _source(v: ir.Value) -> dtype | None:
    """The dtype that a value is converted from."""
    return v.args[0].dtype if isinstance(v, ir.Op) and v.name == "cast" else None


def _unscaled(v: ir.Value) -> tuple[ir.Value, ir.Const | None]:
    """A value and the number that it is multiplied by: the queries' scale rounds less as a factor of the scores."""
    if isinstance(v, ir.Op) and v.name == "mul" and isinstance(v.args[1], ir.Const):
        return v.args[0], v.args[1]
    return v, None


def _of_two(v: ir.Value) -> ir.Value:
    """The logarithm to base 2 of exp(v)."""
    if isinstance(v, ir.Op) and v.name == "mul" and isinstance(v.args[1], ir.Const):
        return operation("mul", v.args[0], ir.const(v.args[1].value * _LOG2_E, v.dtype))
    return operation("mul", v, ir.const(_LOG2_E, v.dtype))


def _all(conditions: Sequence[ir.Value]) -> ir.Value | None:
    return reduce(lambda a, b: ir.make_op("logical_and", (a, b), dtypes.bool_), conditions) if conditions else None


class _Blocked(Loops):
    """Blocks of queries and keys of one call. narrow: the dtype of operands of products."""

    def __init__(self, buffers: Sequence[ir.Buffer], sizes: Sizes) -> None:
        super().__init__(buffers, Blocks(sizes.queries, sizes.keys, 1))
        self.narrow = narrow_of(self.d)
        q, factor = _unscaled(self.d.q)
        if factor is not None:
            scaled = operation("mul", ir.load(ir.PRODUCT, 0, self.of), factor)
            score = replace_loads(self.d.score, lambda x: scaled if x.buffer == ir.PRODUCT else None)
            given = None if self.d.given is None else self.d.given._replace(slope=operation("mul", self.d.given.slope, factor))
            self.d = replace(self.d, q=q, score=score, given=given)
        self.d = replace(self.d, score=_of_two(self.d.score))
        self.columns = {name: max(tile_size(n), LEAST_PRODUCT) for name, n in (("depth", self.depth), ("width", self.width))}
        self.has_more_queries = not (isinstance(self.queries, int) and self.queries % sizes.queries == 0)
        self.has_more_keys = not (isinstance(self.keys, int) and self.keys % sizes.keys == 0)

    def body(self) -> Block:
        raise NotImplementedError

    # -- loops and tiles -------------------------------------------------------------------------------------------
    def rows(self, extent: int, body: Callable[[E.Expr], Block]) -> Block:
        return self.loop(extent, body, "lanes")

    def cells(self, rows: int, columns: int, body: Callable[[E.Expr, E.Expr], Block]) -> Block:
        return self.loop(rows, lambda i: self.loop(columns, lambda j: body(i, j), "lanes"), "lanes")

    def narrow_tile(self, name: str, rows: Size, columns: Size) -> Tile:
        return Tile(self.tile(name, rows, columns).local._replace(dtype=self.narrow), columns)

    def narrowed(self, v: ir.Value) -> ir.Value:
        """A value in the dtype of operands."""
        return v.args[0] if isinstance(v, ir.Op) and v.name == "cast" and v.args[0].dtype is self.narrow else ir.cast(v, self.narrow)

    def widened(self, tile: Tile, i: E.Expr, j: E.Expr) -> ir.Value:
        return ir.cast(tile.load(i, j), self.of)

    def bounds(self, query: E.Expr | None, key: E.Expr | None) -> list[ir.Value]:
        """The conditions that a query and a key exist, where a block may go past the last."""
        found = [compare("lt", query, self.queries)] if query is not None and self.has_more_queries else []
        return [*found, compare("lt", key, self.keys)] if key is not None and self.has_more_keys else found

    def column_bounds(self, name: str, column: E.Expr) -> list[ir.Value]:
        """The condition that a column of the depth or width exists, if tiles have more."""
        n = self.depth if name == "depth" else self.width
        return [] if n == self.columns[name] else [compare("lt", column, n)]

    def read(self, v: ir.Value, query: E.Expr | None = None, key: E.Expr | None = None, **axes: E.Expr) -> ir.Value:
        """A value of the definition at a point, 0 past the last query, key or column."""
        inside = _all([*self.bounds(query, key), *(x for name, c in axes.items() for x in self.column_bounds(name, c))])
        v = v if inside is None else self.guarded(v, inside)
        found = self.at(v, query=0 if query is None else query, key=0 if key is None else key, **axes)
        return found if inside is None else select(inside, found, ir.const(0, found.dtype))

    def guarded(self, v: ir.Value, inside: ir.Value) -> ir.Value:
        """A value of the definition that reads memory only where a condition holds. Loads of one element for all of a block stay."""
        d = self.d
        moving = [a for a in (d.query, d.key, d.depth, d.width) if isinstance(a, E.Sym)]

        def one(x: ir.Load) -> ir.Value | None:
            if x.index.symbols.isdisjoint(moving):
                return None
            masks = [m for m in (x.mask, inside) if m is not None]
            return ir.load(x.buffer, x.index, x.dtype, _all(masks), x.indirect)

        return replace_loads(v, one)

    def value_at(self, v: ir.Value, name: str, element: ir.Value, query: E.Expr, key: E.Expr) -> ir.Value:
        """A score or weight for an element of a tile."""
        inside = _all(self.bounds(query, key))
        found = self.at(v if inside is None else self.guarded(v, inside), query, key)
        return replace_loads(found, lambda x: element if x.buffer == name else None)

    def multiplied(self, into: Tile, sizes: tuple[Size, Size, Size], a: Callable[[E.Expr, E.Expr], ir.Value],
                   b: Callable[[E.Expr, E.Expr], ir.Value], add_to: Tile | None = None) -> Block:  # fmt: skip
        """into[i, j] = sum over r of a(i, r) * b(r, j), then added to `add_to`. sizes: rows, columns, depth."""
        names = [f"{self.d.call}_c{next(self.numbers)}" for _ in range(3)]
        i, j, r = (ir.counter(name, n) for name, n in zip(names, sizes, strict=True))
        body: Block = () if add_to is None else (Accumulate((add_to.place(i, j),), "sum", (into.load(i, j),)),)
        axes = Axes((), role_of(i, sizes[0]), role_of(j, sizes[1]), role_of(r, sizes[2]))
        return (Contract(f"{self.d.call}_product{next(self.numbers)}", into.place(i, j), axes, a(i, r), b(r, j), body),)

    # -- blocks ----------------------------------------------------------------------------------------------------
    def each_key_block(self, body: Callable[[E.Expr, bool], Block]) -> Block:
        """body(first key, whether some query of the block may not see some key of it) for the blocks that the queries see."""
        size = self.blocks.keys
        if self.d.seen is None:
            whole, end = plain(E.floordiv(self.keys, size)), self.keys
        else:
            last = self.seen(E.add(self.first, self.blocks.queries - 1))
            end = plain(E.maximum(0, E.minimum(last, self.keys)))
            whole = plain(E.floordiv(E.maximum(0, E.minimum(self.seen(self.first), self.keys)), size))
        rest = plain(E.add(ceildiv(end, size), E.mul(whole, -1)))
        first = self.loop(whole, lambda k: body(E.mul(k, size), False), name="keys") if whole != 0 else ()
        if rest == 0:
            return first
        return (*first, *self.loop(rest, lambda k: body(E.mul(E.add(whole, k), size), True), name="keys"))

    def visible(self, query: E.Expr, key: E.Expr) -> ir.Value | None:
        """Whether a query sees a key."""
        found = self.bounds(None, key)
        return _all(found if self.d.seen is None else [*found, compare("lt", key, self.seen(query))])

    def units(self, extent: Size, body: Callable[[E.Expr], Block], is_reversed: bool) -> Block:
        """Programs over the blocks of each batch. is_reversed: the last blocks start first, as they take the longest."""

        def one(u: E.Expr) -> Block:
            batch, block = ir.split_position(u, (product(self.d.batch), extent))
            self.point = list(ir.split_position(batch, self.d.batch))
            return body(E.add(E.add(extent, -1), E.mul(block, -1)) if is_reversed else block)

        return self.loop(product((*self.d.batch, extent)), one, "grid", "unit")

    def weight_and_change(self, query: E.Expr, key: E.Expr, score: ir.Value, cotangent: ir.Value, lse: ir.Value, delta: ir.Value,
                          is_edge: bool) -> tuple[ir.Value, ir.Value]:  # fmt: skip
        """The weight of a key for a query, and the cotangent of their product. score: the product; cotangent: of the weight."""
        given = self.d.given
        assert given is not None
        s = self.value_at(self.d.score, ir.PRODUCT, score, query, key)
        slope = self.value_at(given.slope, ir.PRODUCT, score, query, key)
        weight = operation("exp2", operation("sub", s, _of_two(lse)))
        visible = self.visible(query, key) if is_edge else None
        seen = _all([*self.bounds(query, None), *([] if visible is None else [visible])])
        weight = weight if seen is None else select(seen, weight, self.number(0))
        change = operation("sub", self.value_at(self.d.weight, ir.WEIGHT, cotangent, query, key), delta)
        used = self.value_at(self.d.weight, ir.WEIGHT, weight, query, key)
        return used, operation("mul", operation("mul", weight, change), slope)

    def if_inside(self, bounds: Sequence[ir.Value], store: Store) -> Block:
        inside = _all(bounds)
        return (store,) if inside is None else (Guard(inside, (store,)),)


class _ByQueries(_Blocked):
    """A program for each block of queries. first: the first query of the block."""

    def body(self) -> Block:
        def block(k: E.Expr) -> Block:
            self.first = E.mul(k, self.blocks.queries)
            return self.block()

        return self.units(self.query_blocks, block, self.d.seen is not None)

    def block(self) -> Block:
        """The work of one block."""
        raise NotImplementedError


class _Forward(_ByQueries):
    """The result, and the logarithm of the sum of exponentials for each query.

    A positive scale of all scores is a part of the exponent, which a GPU multiplies and subtracts in one instruction: tiles hold the
    products, whose maxima are in the same places.
    """

    def __init__(self, buffers: Sequence[ir.Buffer], sizes: Sizes) -> None:
        super().__init__(buffers, sizes)
        s = self.d.score
        is_scaled = isinstance(s, ir.Op) and s.name == "mul" and isinstance(s.args[0], ir.Load) and s.args[0].buffer == ir.PRODUCT
        factor = s.args[1] if is_scaled and isinstance(s, ir.Op) else None
        self.factor = factor if isinstance(factor, ir.Const) and factor.value > 0 else None

    def exponent(self, v: ir.Value) -> ir.Value:
        """A number of a tile of scores as an exponent of 2."""
        return v if self.factor is None else operation("mul", v, self.factor)

    def block(self) -> Block:
        n, depth, width = self.blocks.queries, self.columns["depth"], self.columns["width"]
        q, y = self.narrow_tile("q", n, depth), self.tile("y", n, width)
        top, total = self.tile("top", n), self.tile("total", n)
        has_y = "y" in self.results

        def start(i: E.Expr) -> Block:
            return (Store(top.place(i, 0), self.number(-math.inf)), Store(total.place(i, 0), self.number(0)))

        def query(i: E.Expr, c: E.Expr) -> Block:
            return (Store(q.place(i, c), self.narrowed(self.read(self.d.q, query=E.add(self.first, i), depth=c))),)

        def keys(first: E.Expr, is_edge: bool) -> Block:
            return self.keys_of_block(first, is_edge, q, y if has_y else None, top, total)

        begin = (*self.cells(n, depth, query), *self.rows(n, start))
        zero = self.cells(n, width, lambda i, c: (Store(y.place(i, c), self.number(0)),)) if has_y else ()
        body = (*begin, *zero, *self.each_key_block(keys), *self.end(y, top, total))
        return allocated([t.local for t in (q, top, total, *((y,) if has_y else ()))], body)

    def keys_of_block(self, first: E.Expr, is_edge: bool, q: Tile, y: Tile | None, top: Tile, total: Tile) -> Block:
        """The scores of one block of keys, the softmax over the keys so far, and the weighted values."""
        n, m, depth, width = self.blocks.queries, self.blocks.keys, self.columns["depth"], self.columns["width"]
        scores, weights, part = self.tile("scores", n, m), self.narrow_tile("weights", n, m), self.tile("part", n, width)
        peak, shift, factor = (self.tile(name, n) for name in ("peak", "shift", "factor"))
        multiply = self.multiplied(scores, (n, m, depth), lambda i, r: self.widened(q, i, r),
                                   lambda r, j: self.read(self.d.k, key=E.add(first, j), depth=r))  # fmt: skip

        def score(i: E.Expr, j: E.Expr) -> Block:
            query, key = E.add(self.first, i), E.add(first, j)
            s = scores.load(i, j)
            s = self.value_at(self.d.score, ir.PRODUCT, s, query, key) if self.factor is None else s
            visible = self.visible(query, key) if is_edge else None
            return (Store(scores.place(i, j), s if visible is None else select(visible, s, self.number(-math.inf))),)

        def renew(i: E.Expr) -> Block:
            new, low = peak.load(i, 0), self.number(-math.inf)
            base = select(ir.make_op("eq", (new, low), dtypes.bool_), self.number(0), self.exponent(new))  # -inf - -inf would be nan
            scale = operation("exp2", operation("sub", self.exponent(top.load(i, 0)), shift.load(i, 0)))
            return (Store(shift.place(i, 0), base), Store(factor.place(i, 0), scale), Store(top.place(i, 0), new),
                    Store(total.place(i, 0), operation("mul", total.load(i, 0), factor.load(i, 0))))  # fmt: skip

        def exponential(i: E.Expr, j: E.Expr) -> Block:
            return (Store(scores.place(i, j), operation("exp2", operation("sub", self.exponent(scores.load(i, j)), shift.load(i, 0)))),)

        def weigh(i: E.Expr, j: E.Expr) -> Block:
            w = self.value_at(self.d.weight, ir.WEIGHT, scores.load(i, j), E.add(self.first, i), E.add(first, j))
            return (Store(weights.place(i, j), self.narrowed(w)),)

        body = (
            *multiply,
            *(self.cells(n, m, score) if is_edge or self.factor is None else ()),
            *self.rows(n, lambda i: (Store(peak.place(i, 0), top.load(i, 0)),)),
            *self.cells(n, m, lambda i, j: (Accumulate((peak.place(i, 0),), "max", (scores.load(i, j),)),)),
            *self.rows(n, renew),
            *self.cells(n, m, exponential),
            *self.cells(n, m, lambda i, j: (Accumulate((total.place(i, 0),), "sum", (scores.load(i, j),)),)),
        )
        locals_ = [t.local for t in (scores, peak, shift, factor)]
        if y is not None:

            def scale(i: E.Expr, c: E.Expr) -> Block:
                return (Store(y.place(i, c), operation("mul", y.load(i, c), factor.load(i, 0))),)

            scaled = self.cells(n, width, scale)
            add = self.multiplied(part, (n, width, m), lambda i, r: self.widened(weights, i, r),
                                  lambda r, c: self.read(self.d.v, key=E.add(first, r), width=c), y)  # fmt: skip
            body = (*body, *self.cells(n, m, weigh), *scaled, *add)
            locals_ += [weights.local, part.local]
        return allocated(locals_, body)

    def end(self, y: Tile, top: Tile, total: Tile) -> Block:
        n = self.blocks.queries

        def parts(i: E.Expr) -> tuple[ir.Value, ir.Value]:
            sum_ = total.load(i, 0)
            is_empty = ir.make_op("eq", (sum_, self.number(0)), dtypes.bool_)
            return sum_, select(is_empty, self.number(1), sum_)

        def result(i: E.Expr, c: E.Expr) -> Block:
            sum_, safe = parts(i)
            query = E.add(self.first, i)
            divided = operation("div", y.load(i, c), safe if self.d.empty == 0 else sum_)
            return self.if_inside([*self.bounds(query, None), *self.column_bounds("width", c)], self.store("y", divided, query, c))

        def logarithm(i: E.Expr) -> Block:
            query, low = E.add(self.first, i), self.number(-math.inf)
            peak = select(ir.make_op("eq", (top.load(i, 0), low), dtypes.bool_), self.number(0), self.exponent(top.load(i, 0)))
            value = operation("mul", operation("add", operation("log2", parts(i)[1]), peak), self.number(math.log(2)))
            return self.if_inside(self.bounds(query, None), self.store("lse", value, query, 0))

        body: Block = self.cells(n, self.columns["width"], result) if "y" in self.results else ()
        return (*body, *self.rows(n, logarithm)) if "lse" in self.results else body


class _GradientOfQueries(_ByQueries):
    """The gradient of the queries of a block: weights are computed again from `lse`."""

    def block(self) -> Block:
        n = self.blocks.queries
        given = self.d.given
        assert given is not None
        depth, width = self.columns["depth"], self.columns["width"]
        q, g, gq = self.narrow_tile("q", n, depth), self.narrow_tile("g", n, width), self.tile("gq", n, depth)
        lse, delta = self.tile("lse", n), self.tile("delta", n)

        def query(i: E.Expr) -> E.Expr:
            return E.add(self.first, i)

        def numbers(i: E.Expr) -> Block:
            return (Store(lse.place(i, 0), ir.cast(self.read(given.lse, query=query(i)), self.of)),
                    Store(delta.place(i, 0), ir.cast(self.read(given.delta, query=query(i)), self.of)))  # fmt: skip

        def result(i: E.Expr, c: E.Expr) -> Block:
            inside = [*self.bounds(query(i), None), *self.column_bounds("depth", c)]
            return self.if_inside(inside, self.store("gq", gq.load(i, c), query(i), c))

        body = (
            *self.cells(n, depth, lambda i, c: (Store(q.place(i, c), self.narrowed(self.read(self.d.q, query=query(i), depth=c))),)),
            *self.cells(n, width, lambda i, c: (Store(g.place(i, c), self.narrowed(self.read(given.g, query=query(i), width=c))),)),
            *self.cells(n, depth, lambda i, c: (Store(gq.place(i, c), self.number(0)),)),
            *self.rows(n, numbers),
            *self.each_key_block(lambda first, is_edge: self.keys_of_block(first, is_edge, (q, g, gq, lse, delta))),
            *self.cells(n, depth, result),
        )
        return allocated([t.local for t in (q, g, gq, lse, delta)], body)

    def keys_of_block(self, first: E.Expr, is_edge: bool, tiles: tuple[Tile, ...]) -> Block:
        q, g, gq, lse, delta = tiles
        n, m, depth, width = self.blocks.queries, self.blocks.keys, self.columns["depth"], self.columns["width"]
        scores, cotangents, part = self.tile("scores", n, m), self.tile("gp", n, m), self.tile("part", n, depth)
        changes = self.narrow_tile("gs", n, m)

        def key(r: E.Expr) -> E.Expr:
            return E.add(first, r)

        def change(i: E.Expr, j: E.Expr) -> Block:
            query = E.add(self.first, i)
            _, changed = self.weight_and_change(query, key(j), scores.load(i, j), cotangents.load(i, j), lse.load(i, 0),
                                                delta.load(i, 0), is_edge)  # fmt: skip
            return (Store(changes.place(i, j), self.narrowed(changed)),)

        body = (
            *self.multiplied(scores, (n, m, depth), lambda i, r: self.widened(q, i, r),
                             lambda r, j: self.read(self.d.k, key=key(j), depth=r)),
            *self.multiplied(cotangents, (n, m, width), lambda i, r: self.widened(g, i, r),
                             lambda r, j: self.read(self.d.v, key=key(j), width=r)),
            *self.cells(n, m, change),
            *self.multiplied(part, (n, depth, m), lambda i, r: self.widened(changes, i, r),
                             lambda r, c: self.read(self.d.k, key=key(r), depth=c), gq),
        )  # fmt: skip
        return allocated([t.local for t in (scores, cotangents, part, changes)], body)


class _GradientsOfKeys(_Blocked):
    """The gradients of the keys and values of a block; keys lie along axis 0 of its tiles."""

    def body(self) -> Block:
        def block(k: E.Expr) -> Block:
            self.first_key = E.mul(k, self.blocks.keys)
            return self.block()

        return self.units(ceildiv(self.keys, self.blocks.keys), block, False)

    def block(self) -> Block:
        n = self.blocks.keys
        depth, width = self.columns["depth"], self.columns["width"]
        k, v = self.narrow_tile("k", n, depth), self.narrow_tile("v", n, width)
        gk, gv = self.tile("gk", n, depth), self.tile("gv", n, width)

        def key(j: E.Expr) -> E.Expr:
            return E.add(self.first_key, j)

        def result(name: str, tile: Tile) -> Callable[[E.Expr, E.Expr], Block]:
            axis = "depth" if name == "gk" else "width"

            def one(j: E.Expr, c: E.Expr) -> Block:
                inside = [*self.bounds(None, key(j)), *self.column_bounds(axis, c)]
                return self.if_inside(inside, self.store(name, tile.load(j, c), key(j), c))

            return one

        def queries(first: E.Expr, is_edge: bool) -> Block:
            return self.queries_of_block(first, is_edge, k, v, {name: t for name, (t, _) in sums.items()})

        sums = {name: (t, c) for name, t, c in (("gk", gk, depth), ("gv", gv, width)) if name in self.results}
        begin = [self.cells(n, c, self.zero_of(t)) for t, c in sums.values()]
        end = [self.cells(n, c, result(name, t)) for name, (t, c) in sums.items()]
        body = (
            *self.cells(n, depth, lambda j, c: (Store(k.place(j, c), self.narrowed(self.read(self.d.k, key=key(j), depth=c))),)),
            *self.cells(n, width, lambda j, c: (Store(v.place(j, c), self.narrowed(self.read(self.d.v, key=key(j), width=c))),)),
            *(s for block in begin for s in block),
            *self.each_query_block(queries),
            *(s for block in end for s in block),
        )
        return allocated([t.local for t in (k, v, *(t for t, _ in sums.values()))], body)

    def zero_of(self, tile: Tile) -> Callable[[E.Expr, E.Expr], Block]:
        return lambda j, c: (Store(tile.place(j, c), self.number(0)),)

    def each_query_block(self, body: Callable[[E.Expr, bool], Block]) -> Block:
        """body(first query, whether some query of the block may not see some key) for the blocks of which some query sees some key."""
        size, count = self.blocks.queries, self.query_blocks
        begin, whole = self.first_block(self.first_key), self.first_block(E.add(self.first_key, self.blocks.keys - 1), size - 1)
        if whole is None or begin is None or self.has_more_keys:
            return self.loop(count, lambda b: body(E.mul(b, size), self.d.seen is not None or self.has_more_keys), name="queries")
        between, rest = plain(E.add(whole, E.mul(begin, -1))), plain(E.add(count, E.mul(whole, -1)))
        return (
            *self.loop(between, lambda b: body(E.mul(E.add(begin, b), size), True), name="queries"),
            *self.loop(rest, lambda b: body(E.mul(E.add(whole, b), size), False), name="queries"),
        )

    def first_block(self, key: E.Expr, round_up: int = 0) -> E.Expr | None:
        """The block of the first query that sees a key, at most the number of blocks; None if it has no expression.

        round_up: one less than the queries of a block gives the first block all of whose queries see the key.
        """
        if self.d.seen is None:
            return E.as_expr(0)
        found = E.strides_of(self.d.seen, [self.d.query]) if isinstance(self.d.query, E.Sym) else None
        if found is None or found[0].get(self.d.query) is not E.as_expr(1):
            return None
        first = E.add(E.add(key, 1), E.mul(found[1], -1))  # key < query + constant
        return E.minimum(E.floordiv(E.maximum(0, E.add(first, round_up)), self.blocks.queries), self.query_blocks)

    def queries_of_block(self, first: E.Expr, is_edge: bool, k: Tile, v: Tile, sums: Mapping[str, Tile]) -> Block:
        n, m = self.blocks.keys, self.blocks.queries
        given = self.d.given
        assert given is not None
        scores, cotangents = self.tile("scores", n, m), self.tile("gp", n, m)
        weights, changes = self.narrow_tile("weights", n, m), self.narrow_tile("gs", n, m)
        depth, width = self.columns["depth"], self.columns["width"]
        parts = {"gk": self.tile("part", n, depth), "gv": self.tile("part", n, width)}

        def query(i: E.Expr) -> E.Expr:
            return E.add(first, i)

        def change(j: E.Expr, i: E.Expr) -> Block:
            lse, delta = (ir.cast(self.read(x, query=query(i)), self.of) for x in (given.lse, given.delta))
            weight, changed = self.weight_and_change(query(i), E.add(self.first_key, j), scores.load(j, i), cotangents.load(j, i),
                                                     lse, delta, is_edge)  # fmt: skip
            return (Store(weights.place(j, i), self.narrowed(weight)), Store(changes.place(j, i), self.narrowed(changed)))

        body: Block = (
            *self.multiplied(scores, (n, m, depth), lambda j, r: self.widened(k, j, r),
                             lambda r, i: self.read(self.d.q, query=query(i), depth=r)),
            *self.multiplied(cotangents, (n, m, width), lambda j, r: self.widened(v, j, r),
                             lambda r, i: self.read(given.g, query=query(i), width=r)),
            *self.cells(n, m, change),
        )  # fmt: skip
        if "gv" in sums:
            body += self.multiplied(parts["gv"], (n, width, m), lambda j, r: self.widened(weights, j, r),
                                    lambda r, c: self.read(given.g, query=query(r), width=c), sums["gv"])  # fmt: skip
        if "gk" in sums:
            body += self.multiplied(parts["gk"], (n, depth, m), lambda j, r: self.widened(changes, j, r),
                                    lambda r, c: self.read(self.d.q, query=query(r), depth=c), sums["gk"])  # fmt: skip
        return allocated([t.local for t in (scores, cotangents, weights, changes, *(parts[name] for name in sums))], body)


__all__ = ["Sizes", "build", "narrow_of"]
