"""The loops of attention: products of blocks of queries and keys around an online softmax, and their gradients.

A block of scores is a tile in local memory, (keys, queries): queries lie side by side, so that maxima, exponentials and sums of all
queries of a block are vector operations without a step across lanes, and the tile is read by rows or by columns in the products.
No memory grows with queries times keys. One iteration of the parallel loop is a block of queries of one head; of the gradients, which
add up over queries, a whole head.

Sources: Milakov and Gimelshein, arXiv:1805.02867 (the running maximum and sum); Dao et al., arXiv:2205.14135 (the blocks, and the
gradients from the logarithm of the sum).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, is_symbolic, nominal, plain, product
from inductor.ir.values import at_point, replace_loads
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Axes,
    Block,
    Contract,
    Guard,
    Kernel,
    Kind,
    Local,
    Place,
    Role,
    Store,
    allocated,
    repeat,
    values_of,
    walk,
)

_STRIP: Final = 16  # keys
_LINE_BYTES: Final = 128
_SET_BYTES: Final = 2048  # addresses this far apart share sets of a first-level cache


Staged: TypeAlias = Mapping[ir.Load, ir.Value]


class Blocks(NamedTuple):
    """Sizes of the tiles. queries, keys: of a block. lanes: running maxima side by side; queries is a multiple of it.

    chunk: exponentials that are added up before their sum is added to the running sum, which keeps sums of many keys exact.
    """

    queries: int
    keys: int
    lanes: int
    chunk: int = 32


def build(buffers: Sequence[ir.Buffer], memory: Mapping[str, dtype], blocks: Blocks) -> Kernel:
    """The loops that compute `buffers`, results of one call of attention. memory: dtypes of the buffers that they read."""
    made = _Gradients(buffers, blocks) if attention_of(buffers[0]).given else _Forward(buffers, blocks)
    body = made.body()
    locals_ = {s.local.name for s in walk(body) if isinstance(s, Allocate)}
    reads = dict.fromkeys(x.buffer for s in walk(body) for v in values_of(s) for x in ir.loads_in(v))
    types = {**memory, **{b.name: b.layout.dtype for b in buffers}}
    return Kernel(body, {n: types[n] for n in (*(b.name for b in buffers), *reads) if n not in locals_})


def attention_of(b: ir.Buffer) -> ir.Attention:
    assert isinstance(b.definition, ir.Attention)
    return b.definition


def operation(name: str, *args: ir.Value) -> ir.Value:
    return ir.make_op(name, args, args[-1].dtype)


def compare(name: str, a: E.IntLike, b: E.IntLike) -> ir.Value:
    return ir.make_op(name, (ir.index(a), ir.index(b)), dtypes.bool_)


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.make_op("where", (condition, a, b), a.dtype)


def role_of(axis: E.Expr, extent: Size) -> Role:
    return ((axis, extent),) if isinstance(axis, E.Sym) else ()


class Tile(NamedTuple):
    """A row-major local matrix."""

    local: Local
    columns: Size

    def position(self, row: E.IntLike, column: E.IntLike) -> E.Expr:
        return E.add(E.mul(row, self.columns), column)

    def place(self, row: E.IntLike, column: E.IntLike) -> Place:
        return Place(self.local.name, self.position(row, column))

    def load(self, row: E.IntLike, column: E.IntLike) -> ir.Value:
        return ir.load(self.local.name, self.position(row, column), self.local.dtype)


class _Operand(NamedTuple):
    """Keys or values as an operand of products: `at(key of the block, column)`; `fill` stages a block of them."""

    at: Callable[[E.IntLike, E.IntLike], ir.Value]
    fill: Block
    local: tuple[Local, ...]


class _Keys(NamedTuple):
    """A block of keys: its first key, the number of keys in it, and whether some query of the block does not see all of them."""

    first: E.Expr
    number: Size
    is_edge: ir.Value | None


class Loops:
    """Names, axes and tiles of one call, for results and gradients."""

    def __init__(self, buffers: Sequence[ir.Buffer], blocks: Blocks) -> None:
        self.d = attention_of(buffers[0])
        self.results = {attention_of(b).result: b for b in buffers}
        self.blocks, self.of = blocks, self.d.q.dtype
        self.queries, self.keys, self.depth, self.width = self.d.sizes
        self.query_blocks = ceildiv(self.queries, blocks.queries)
        self.numbers = count()
        self.point: list[E.IntLike] = []  # of the batch axes
        self.first: E.Expr = E.as_expr(0)  # query of the block
        self.valid: Size = blocks.queries  # queries of the block

    # -- names and loops -------------------------------------------------------------------------------------------
    def loop(self, extent: Size, body: Callable[[E.Expr], Block], kind: Kind = "serial", name: str = "x") -> Block:
        axis = ir.counter(f"{self.d.call}_{name}{next(self.numbers)}", extent)
        return repeat(axis, extent, kind, body(axis))

    def tile(self, name: str, rows: Size, columns: Size = 1) -> Tile:
        size = plain(E.mul(rows, columns))
        return Tile(Local(f"{self.d.call}_{name}{next(self.numbers)}", size, self.of, "stack"), columns)

    def number(self, value: float) -> ir.Value:
        return ir.const(value, self.of)

    def fill(self, tile: Tile, rows: Size, value: Callable[[E.Expr, E.Expr], ir.Value], first: E.IntLike = 0) -> Block:
        """Rows of a tile from `first` on: value(row counted from there, column)."""

        def row(i: E.Expr) -> Block:
            return self.loop(tile.columns, lambda c: (Store(tile.place(E.add(first, i), c), value(i, c)),), "vector")

        return self.loop(rows, row)

    def at(self, v: ir.Value, query: E.IntLike = 0, key: E.IntLike = 0, depth: E.IntLike = 0, width: E.IntLike = 0) -> ir.Value:
        """A value of the definition at a point."""
        d = self.d
        axes = [ir.axis(k, n) for k, n in enumerate(d.batch)]
        pairs = zip((*axes, d.query, d.key, d.depth, d.width), (*self.point, query, key, depth, width), strict=True)
        return at_point(v, {a: to for a, to in pairs if isinstance(a, E.Sym)})

    def over(self, v: ir.Value, name: str, element: ir.Value, query: E.Expr, key: E.Expr, staged: Staged | None = None) -> ir.Value:
        """A score or weight for the element that `name` stands for. staged: values that replace loads of the definition."""
        if staged:
            v = replace_loads(v, staged.get)
        return replace_loads(self.at(v, query, key), lambda x: element if x.buffer == name else None)

    def reads_by_query(self, *values: ir.Value) -> bool:
        """Whether values read memory at the query: then they must not be computed after the last query."""
        return any(self.d.query in x.index.symbols for v in values for x in ir.loads_in(v))

    def elements(self, k: _Keys, count: Size, values: Sequence[ir.Value], body: Callable[[E.Expr, E.Expr, Staged], Block]) -> Block:
        """body(key, query, staged) for the elements of a tile and its first `count` queries.

        values: that the body computes. Loads in them that run along the keys are transposed a strip of keys at a time: a vector of
        queries would read each element from another cache line.
        """
        loads = [x for x in dict.fromkeys(x for v in values for x in ir.loads_in(v)) if self.runs_along_keys(x)]
        if not loads:
            return self.loop(k.number, lambda j: self.loop(count, lambda i: body(j, i, {}), "vector"))

        def strip(o: E.Expr) -> Block:
            start = E.mul(o, _STRIP)
            number = _block(_STRIP, k.number, start)
            tiles = {x: self.tile("strip", _STRIP, self.blocks.queries) for x in loads}

            def row(c: E.Expr) -> Block:
                def one(i: E.Expr) -> Block:
                    return body(E.add(start, c), i, {x: self.staged(x, t.load(c, i)) for x, t in tiles.items()})

                return self.loop(count, one, "vector")

            filled = [s for x, t in tiles.items() for s in self.transposed(x, t, (E.add(k.first, start), number, _STRIP))]
            return allocated([t.local for t in tiles.values()], (*filled, *self.loop(number, row)))

        return self.loop(ceildiv(k.number, _STRIP), strip)

    def transposed(self, x: ir.Load, tile: Tile, keys: tuple[E.Expr, Size, int]) -> Block:
        """Fill rows of a tile, one for each key, with the elements of a load that runs along the keys.

        keys: the first one, their number, and the most that a tile has.
        """
        key, number, most = keys

        def load(c: E.IntLike, i: E.IntLike) -> ir.Value:
            return ir.cast(self.at(x, E.add(self.first, i), E.add(key, c)), self.of)

        def turned(rows: Size, columns: Size) -> Block:
            if x.dtype is self.of:
                return self.loop(rows, lambda c: self.loop(columns, lambda i: (Store(tile.place(c, i), load(c, i)),), "vector"))
            lines = self.tile("line", self.blocks.queries, most)
            line = self.loop(columns, lambda i: self.loop(rows, lambda c: (Store(lines.place(i, c), load(c, i)),), "vector"))
            turn = self.loop(rows, lambda c: self.loop(columns, lambda i: (Store(tile.place(c, i), lines.load(i, c)),), "vector"))
            return allocated([lines.local], (*line, *turn))

        queries = self.blocks.queries
        is_full = [compare("eq", n, m) for n, m in ((number, most), (self.valid, queries)) if not isinstance(n, int)]
        if not is_full:
            return turned(number, self.valid)
        # Loops of known lengths run in registers.
        known = turned(*(n if isinstance(n, int) else m for n, m in ((number, most), (self.valid, queries))))
        whole = reduce(lambda a, b: ir.make_op("logical_and", (a, b), dtypes.bool_), is_full)
        return (Guard(whole, known), Guard(ir.make_op("logical_not", (whole,), dtypes.bool_), turned(number, self.valid)))

    def staged(self, x: ir.Load, element: ir.Value) -> ir.Value:
        """A load whose value, in the dtype of the tiles, is `element`."""
        if x.dtype is dtypes.bool_:
            return ir.make_op("ne", (element, self.number(0)), dtypes.bool_)
        return ir.cast(element, x.dtype)

    def runs_along_keys(self, x: ir.Load) -> bool:
        """Whether neighbours along the keys are neighbours in memory, and those along the queries are not."""
        if x.mask is not None or x.indirect or (x.dtype.is_integral and x.dtype is not dtypes.bool_):
            return False
        found = E.strides_of(x.index, [a for a in (self.d.query, self.d.key) if isinstance(a, E.Sym)])
        if found is None or x.dtype.itemsize > self.of.itemsize:
            return False
        query, key = (plain(found[0].get(a, E.as_expr(0))) for a in (self.d.query, self.d.key))
        return key == 1 and query not in (0, 1)

    # -- blocks ----------------------------------------------------------------------------------------------------
    def enter(self, batch: E.Expr, block: E.Expr) -> None:
        """Set the point of the batch and the block of queries."""
        self.point = list(ir.split_position(batch, self.d.batch))
        self.first = E.mul(block, self.blocks.queries)
        self.valid = _block(self.blocks.queries, self.queries, self.first)

    def key_blocks(self, body: Callable[[_Keys], Block]) -> Block:
        """`body` for every block of keys that the block of queries sees."""
        size = self.blocks.keys
        seen, end = self.d.seen, self.keys
        if seen is not None:
            last = self.seen(E.add(E.add(self.first, self.valid), -1))
            end = plain(E.maximum(0, E.minimum(last, self.keys)))

        def one(block: E.Expr) -> Block:
            first = E.mul(block, size)
            number = _block(size, end, first)
            edge = None if seen is None else compare("lt", self.seen(self.first), E.add(first, number))
            return body(_Keys(first, number, edge))

        return self.loop(ceildiv(end, size), one, name="keys")

    def seen(self, query: E.IntLike) -> E.Expr:
        assert self.d.seen is not None
        return E.substitute(self.d.seen, {self.d.query: query}) if isinstance(self.d.query, E.Sym) else self.d.seen

    def block_of_queries(self, name: str, value: ir.Value, columns: Size, **axis: str) -> tuple[Tile, Block]:
        """The queries of the block as rows of a tile, zeros after the last query. axis: the name of the column's axis."""
        tile = self.tile(name, self.blocks.queries, columns)
        (role,) = axis.values()

        def element(i: E.Expr, c: E.Expr) -> ir.Value:
            return ir.cast(self.at(value, query=E.add(self.first, i), **{role: c}), self.of)

        rest = plain(E.add(self.blocks.queries, E.mul(self.valid, -1)))
        zero = self.fill(tile, rest, lambda i, c: self.number(0), self.valid) if rest != 0 else ()
        return tile, (*self.fill(tile, self.valid, element), *zero)

    def operand(self, value: ir.Value, columns: Size, column: E.Expr, keys: _Keys) -> _Operand:
        """Keys or values of a block: read in place, or staged in a tile where a product could not read them fast."""

        def at(key: E.IntLike, c: E.IntLike) -> ir.Value:
            moved = E.add(keys.first, key)
            return self.at(value, key=moved, depth=c) if column is self.d.depth else self.at(value, key=moved, width=c)

        if _is_near(value, self.d.key, column, self.of):
            return _Operand(at, (), ())
        tile = self.tile("rows", self.blocks.keys, columns)
        return _Operand(tile.load, self.fill(tile, keys.number, lambda i, c: ir.cast(at(i, c), self.of)), (tile.local,))

    def product(self, into: Tile, rows: Size, columns: Size, depth: Size, a: Callable[[E.Expr, E.Expr], ir.Value],
                b: Callable[[E.Expr, E.Expr], ir.Value], add_to: Callable[[E.Expr, E.Expr], Place] | None = None) -> Block:  # fmt: skip
        """into[i, j] = sum over r of a(i, r) * b(r, j); then it is added to the place add_to(i, j)."""
        i, j, r = (ir.counter(f"{self.d.call}_c{next(self.numbers)}", n) for n in (rows, columns, depth))
        body: Block = () if add_to is None else (Accumulate((add_to(i, j),), "sum", (into.load(i, j),)),)
        name = f"{self.d.call}_product{next(self.numbers)}"
        axes = Axes((), role_of(i, rows), role_of(j, columns), role_of(r, depth))
        return (Contract(name, into.place(i, j), axes, a(i, r), b(r, j), body),)

    def result(self, name: str, *point: E.IntLike) -> Place:
        """The place of an element of a result, by its point in the last two dims."""
        b = self.results[name]
        batch = iter(self.point)
        lead = [0 if n == 1 else next(batch) for n in b.layout.shape[:-2]]
        return Place(b.name, b.layout.position((*lead, *point)))

    def store(self, name: str, value: ir.Value, *point: E.IntLike) -> Store:
        return Store(self.result(name, *point), ir.cast(value, self.results[name].layout.dtype))


def _block(size: int, whole: Size, first: E.Expr) -> Size:
    """The length of the block from `first` on, of blocks of `size` that `whole` is divided into."""
    if isinstance(whole, int) and whole % size == 0:
        return size
    return plain(E.minimum(size, E.add(whole, E.mul(first, -1))))


def _is_near(v: ir.Value, row: E.Expr, column: E.Expr, of: dtype) -> bool:
    """Whether a product reads a value in place: a load in the product's dtype, whose rows do not share sets of the cache."""
    if not isinstance(v, ir.Load) or v.mask is not None or v.indirect or v.dtype is not of:
        return False
    found = E.strides_of(v.index, [a for a in (row, column) if isinstance(a, E.Sym)])
    if found is None:
        return False
    step, unit = (plain(found[0].get(a, E.as_expr(1))) for a in (row, column))
    if unit != 1 or is_symbolic(step):
        return False
    apart = nominal(step) * of.itemsize
    return apart < _SET_BYTES // 2 or min(apart % _SET_BYTES, -apart % _SET_BYTES) >= _LINE_BYTES


class _Affine(NamedTuple):
    """A score that is the product times `factor`, plus `added`; None stands for 1 and for 0."""

    factor: ir.Value | None
    added: ir.Value | None


def _affine(score: ir.Value) -> _Affine | None:
    """The parts of a score; None for any other score."""

    def is_free(v: ir.Value) -> bool:
        return all(x.buffer != ir.PRODUCT for x in ir.loads_in(v))

    scaled, added = score, None
    if isinstance(score, ir.Op) and score.name == "add":
        scaled, added = score.args if is_free(score.args[1]) else score.args[::-1]
    if isinstance(scaled, ir.Load) and scaled.buffer == ir.PRODUCT:
        return _Affine(None, added) if added is None or is_free(added) else None
    if not isinstance(scaled, ir.Op) or scaled.name != "mul" or (added is not None and not is_free(added)):
        return None
    for x, factor in (scaled.args, scaled.args[::-1]):
        if isinstance(x, ir.Load) and x.buffer == ir.PRODUCT and isinstance(factor, ir.Const):
            return _Affine(factor, added)
    return None


class _Forward(Loops):
    """The result, and the logarithm of the sum of exponentials for each query.

    Queries take the factor of their scores. A block of scores begins as the values that are added to its products.
    """

    def __init__(self, buffers: Sequence[ir.Buffer], blocks: Blocks) -> None:
        super().__init__(buffers, blocks)
        self.added: ir.Value | None = None
        found = _affine(self.d.score)
        if found is None:
            return
        score: ir.Value = ir.load(ir.PRODUCT, 0, self.of)
        q = self.d.q if found.factor is None else operation("mul", self.d.q, found.factor)
        if found.added is not None and self.reads_by_query(found.added):
            self.added = found.added
        elif found.added is not None:
            score = operation("add", score, found.added)
        self.d = replace(self.d, q=q, score=score)

    def body(self) -> Block:
        unit_count = product((*self.d.batch, self.query_blocks))

        def unit(u: E.Expr) -> Block:
            batch, block = ir.split_position(u, (product(self.d.batch), self.query_blocks))
            self.enter(batch, block)
            return self.block()

        return self.loop(unit_count, unit, "parallel", "unit")

    def block(self) -> Block:
        """One block of queries."""
        b = self.blocks
        q, fill_q = self.block_of_queries("q", self.d.q, self.depth, axis="depth")
        total_y, part = self.tile("y", b.queries, self.width), self.tile("part", b.queries, self.width)
        scores = self.tile("scores", b.keys, b.queries)
        top, total, factor = (self.tile(name, b.queries) for name in ("top", "total", "factor"))
        begin = self.loop(b.queries, lambda i: (Store(top.place(i, 0), self.number(-math.inf)), Store(total.place(i, 0), self.number(0))),
                          "vector")  # fmt: skip
        has_y = "y" in self.results

        def keys(k: _Keys) -> Block:
            left = self.operand(self.d.k, self.depth, self.d.depth, k)
            right = self.operand(self.d.v, self.width, self.d.width, k)
            body = (
                *left.fill,
                *self.products(scores, k, q, left),
                *self.scored(scores, k),
                *self.loop(b.queries // b.lanes, lambda c: self.softmax(scores, k, c, top, total, factor)),
            )
            if has_y:
                scale = self.fill(total_y, b.queries, lambda i, e: operation("mul", total_y.load(i, e), factor.load(i, 0)))
                add = self.product(part, b.queries, self.width, k.number, lambda i, r: scores.load(r, i), right.at, total_y.place)
                body = (*body, *self.weighted(scores, k), *scale, *right.fill, *add)
            return allocated((*left.local, *right.local), body)

        zero = self.fill(total_y, b.queries, lambda i, e: self.number(0)) if has_y else ()
        body = (*fill_q, *begin, *zero, *self.key_blocks(keys), *self.end(total_y, top, total))
        return allocated([t.local for t in (q, scores, total_y, part, top, total, factor)], body)

    def products(self, scores: Tile, k: _Keys, q: Tile, keys: _Operand) -> Block:
        """The products of a block, added to the values that its scores begin with."""
        if self.added is None:
            return self.product(scores, k.number, self.blocks.queries, self.depth, keys.at, lambda r, j: q.load(j, r))
        added = self.added
        if isinstance(added, ir.Load) and added.dtype is self.of and self.runs_along_keys(added):
            begin = self.transposed(added, scores, (k.first, k.number, self.blocks.keys))
        else:

            def one(j: E.Expr, i: E.Expr, staged: Staged) -> Block:
                return (Store(scores.place(j, i), self.over(added, "", added, E.add(self.first, i), E.add(k.first, j), staged)),)

            begin = self.elements(k, self.valid, (added,), one)
        rest = plain(E.add(self.blocks.queries, E.mul(self.valid, -1)))

        def zeros(j: E.Expr) -> Block:
            return self.loop(rest, lambda i: (Store(scores.place(j, E.add(self.valid, i)), self.number(0)),), "vector")

        sums = self.tile("sums", self.blocks.keys, self.blocks.queries)
        add = self.product(sums, k.number, self.blocks.queries, self.depth, keys.at, lambda r, j: q.load(j, r), scores.place)
        return allocated([sums.local], (*begin, *(self.loop(k.number, zeros) if rest != 0 else ()), *add))

    def scored(self, scores: Tile, k: _Keys) -> Block:
        """Products become scores in place where a score reads memory, and scores that a query does not see become -inf."""
        reads = self.reads_by_query(self.d.score)
        hides = k.is_edge is not None

        def one(j: E.Expr, i: E.Expr, staged: Staged) -> Block:
            query, key = E.add(self.first, i), E.add(k.first, j)
            s = scores.load(j, i)
            s = self.over(self.d.score, ir.PRODUCT, s, query, key, staged) if reads else s
            return (Store(scores.place(j, i), select(compare("lt", key, self.seen(query)), s, self.number(-math.inf)) if hides else s),)

        if reads:
            return self.elements(k, self.valid, (self.d.score,), one)
        return () if k.is_edge is None else (Guard(k.is_edge, self.elements(k, self.blocks.queries, (), one)),)

    def score(self, scores: Tile, j: E.Expr, i: E.Expr, k: _Keys) -> ir.Value:
        """An element of the tile as a score, unless `scored` stores scores."""
        s = scores.load(j, i)
        if self.reads_by_query(self.d.score):
            return s
        return self.over(self.d.score, ir.PRODUCT, s, E.add(self.first, i), E.add(k.first, j))

    def weight(self, x: ir.Value, j: E.Expr, i: E.Expr, k: _Keys, staged: Staged | None = None) -> ir.Value:
        return self.over(self.d.weight, ir.WEIGHT, x, E.add(self.first, i), E.add(k.first, j), staged)

    def weighted(self, scores: Tile, k: _Keys) -> Block:
        """Exponentials become weights in place, where a weight reads memory at the query."""
        if not self.reads_by_query(self.d.weight):
            return ()

        def one(j: E.Expr, i: E.Expr, staged: Staged) -> Block:
            return (Store(scores.place(j, i), self.weight(scores.load(j, i), j, i, k, staged)),)

        return self.elements(k, self.valid, (self.d.weight,), one)

    def softmax(self, scores: Tile, k: _Keys, c: E.Expr, top: Tile, total: Tile, factor: Tile) -> Block:
        """Scores of one vector of queries become exponentials relative to the new maximum; the running values are updated."""
        n, chunk = self.blocks.lanes, self.blocks.chunk
        first = E.mul(c, n)
        peak, shift, part = (self.tile(name, n) for name in ("peak", "shift", "sum"))

        def lanes(body: Callable[[E.Expr, E.Expr], Block]) -> Block:
            return self.loop(n, lambda i: body(i, E.add(first, i)), "vector")

        def larger(j: E.Expr) -> Block:
            # A nan is not larger, but its exponential is nan.
            def one(lane: E.Expr, i: E.Expr) -> Block:
                s, old = self.score(scores, j, i, k), peak.load(lane, 0)
                return (Store(peak.place(lane, 0), select(ir.make_op("gt", (s, old), dtypes.bool_), s, old)),)

            return lanes(one)

        def renew(lane: E.Expr, i: E.Expr) -> Block:
            new, low = peak.load(lane, 0), self.number(-math.inf)
            base = select(ir.make_op("eq", (new, low), dtypes.bool_), self.number(0), new)  # -inf - -inf would be nan
            scale = operation("exp", operation("sub", top.load(i, 0), base))
            return (Store(shift.place(lane, 0), base), Store(factor.place(i, 0), scale), Store(top.place(i, 0), new),
                    Store(total.place(i, 0), operation("mul", total.load(i, 0), factor.load(i, 0))))  # fmt: skip

        def exponential(j: E.Expr) -> Block:
            def one(lane: E.Expr, i: E.Expr) -> Block:
                x = operation("exp", operation("sub", self.score(scores, j, i, k), shift.load(lane, 0)))
                weighted = x if self.reads_by_query(self.d.weight) else self.weight(x, j, i, k)
                return (Accumulate((part.place(lane, 0),), "sum", (x,)), Store(scores.place(j, i), weighted))

            return lanes(one)

        def chunks(o: E.Expr) -> Block:
            start = E.mul(o, chunk)
            number = _block(chunk, k.number, start)
            zero = lanes(lambda lane, i: (Store(part.place(lane, 0), self.number(0)),))
            add = lanes(lambda lane, i: (Accumulate((total.place(i, 0),), "sum", (part.load(lane, 0),)),))
            return (*zero, *self.loop(number, lambda j: exponential(E.add(start, j))), *add)

        begin = lanes(lambda lane, i: (Store(peak.place(lane, 0), top.load(i, 0)),))
        body = (*begin, *self.loop(k.number, larger), *lanes(renew), *self.loop(ceildiv(k.number, chunk), chunks))
        return allocated([t.local for t in (peak, shift, part)], body)

    def end(self, total_y: Tile, top: Tile, total: Tile) -> Block:
        """The results of the block's queries."""

        def row(i: E.Expr) -> Block:
            query = E.add(self.first, i)
            sum_, low = total.load(i, 0), self.number(-math.inf)
            is_empty = ir.make_op("eq", (sum_, self.number(0)), dtypes.bool_)
            safe = select(is_empty, self.number(1), sum_)
            divisor = safe if self.d.empty == 0 else sum_
            found: Block = ()
            if "y" in self.results:

                def column(e: E.Expr) -> Block:
                    return (self.store("y", operation("div", total_y.load(i, e), divisor), query, e),)

                found += self.loop(self.width, column, "vector")
            if "lse" in self.results:
                peak = select(ir.make_op("eq", (top.load(i, 0), low), dtypes.bool_), self.number(0), top.load(i, 0))
                found += (self.store("lse", operation("add", operation("log", safe), peak), query, 0),)
            return found

        return self.loop(self.valid, row)


class _Gradients(Loops):
    """The gradients of q, k and v: weights are computed again from `lse`, block by block."""

    def body(self) -> Block:
        def head(batch: E.Expr) -> Block:
            self.enter(batch, E.as_expr(0))
            sizes = {"gk": self.depth, "gv": self.width}
            zero = [self.zero(name, n) for name, n in sizes.items() if name in self.results]

            def block(i: E.Expr) -> Block:
                self.enter(batch, i)
                return self.block()

            return (*(s for z in zero for s in z), *self.loop(self.query_blocks, block, name="queries"))

        return self.loop(product(self.d.batch), head, "parallel", "head")

    def zero(self, name: str, columns: Size) -> Block:
        def row(j: E.Expr) -> Block:
            return self.loop(columns, lambda c: (self.store(name, self.number(0), j, c),), "vector")

        return self.loop(self.keys, row)

    def block(self) -> Block:
        """One block of queries."""
        d, b = self.d, self.blocks
        assert d.given is not None
        q, fill_q = self.block_of_queries("q", d.q, self.depth, axis="depth")
        g, fill_g = self.block_of_queries("g", d.given.g, self.width, axis="width")
        lse, fill_lse = self.of_queries("lse", d.given.lse, math.inf)
        delta, fill_delta = self.of_queries("delta", d.given.delta, 0)
        p, ds = self.tile("p", b.keys, b.queries), self.tile("ds", b.keys, b.queries)
        gq = self.tile("gq", b.queries, self.depth)
        parts = [self.tile("part", rows, n) for rows, n in ((b.keys, self.width), (b.keys, self.depth), (b.queries, self.depth))]

        def keys(k: _Keys) -> Block:
            left, right = self.operand(d.k, self.depth, d.depth, k), self.operand(d.v, self.width, d.width, k)
            body: Block = (
                *left.fill,
                *right.fill,
                *self.product(p, k.number, b.queries, self.depth, left.at, lambda r, j: q.load(j, r)),
                *self.product(ds, k.number, b.queries, self.width, right.at, lambda r, j: g.load(j, r)),
                *self.weigh(p, ds, lse, delta, k),
            )
            if "gv" in self.results:
                body += self.product(parts[0], k.number, self.width, b.queries, p.load, g.load,
                                     lambda j, c: self.result("gv", E.add(k.first, j), c))  # fmt: skip
            if "gk" in self.results:
                body += self.product(parts[1], k.number, self.depth, b.queries, ds.load, q.load,
                                     lambda j, c: self.result("gk", E.add(k.first, j), c))  # fmt: skip
            if "gq" in self.results:
                body += self.product(parts[2], b.queries, self.depth, k.number, lambda i, r: ds.load(r, i), left.at, gq.place)
            return allocated((*left.local, *right.local), body)

        def row(i: E.Expr) -> Block:
            return self.loop(self.depth, lambda c: (self.store("gq", gq.load(i, c), E.add(self.first, i), c),), "vector")

        begin = self.fill(gq, b.queries, lambda i, c: self.number(0)) if "gq" in self.results else ()
        end = self.loop(self.valid, row) if "gq" in self.results else ()
        body = (*fill_q, *fill_g, *fill_lse, *fill_delta, *begin, *self.key_blocks(keys), *end)
        return allocated([t.local for t in (q, g, lse, delta, p, ds, gq, *parts)], body)

    def of_queries(self, name: str, value: ir.Value, rest: float) -> tuple[Tile, Block]:
        """A number for each query of the block; `rest` after the last query."""
        tile = self.tile(name, self.blocks.queries)
        fill = self.loop(self.valid, lambda i: (Store(tile.place(i, 0), ir.cast(self.at(value, E.add(self.first, i)), self.of)),), "vector")
        left = plain(E.add(self.blocks.queries, E.mul(self.valid, -1)))
        if left != 0:
            fill += self.loop(left, lambda i: (Store(tile.place(E.add(self.valid, i), 0), self.number(rest)),), "vector")
        return tile, fill

    def weigh(self, p: Tile, ds: Tile, lse: Tile, delta: Tile, k: _Keys) -> Block:
        """Products become weights, and cotangents of weights become cotangents of the products."""
        given = self.d.given
        assert given is not None
        is_masked = self.reads_by_query(self.d.score, given.slope, self.d.weight)

        def one(j: E.Expr, i: E.Expr, staged: Staged, hides: bool) -> Block:
            query, key = E.add(self.first, i), E.add(k.first, j)
            score = self.over(self.d.score, ir.PRODUCT, p.load(j, i), query, key, staged)
            slope = self.over(given.slope, ir.PRODUCT, p.load(j, i), query, key, staged)
            weight = operation("exp", operation("sub", score, lse.load(i, 0)))
            if hides:
                weight = select(compare("lt", key, self.seen(query)), weight, self.number(0))
            cotangent = self.over(self.d.weight, ir.WEIGHT, ds.load(j, i), query, key, staged)
            change = operation("mul", operation("mul", weight, operation("sub", cotangent, delta.load(i, 0))), slope)
            used = self.over(self.d.weight, ir.WEIGHT, weight, query, key, staged)
            return (Store(ds.place(j, i), change), Store(p.place(j, i), used))

        rest = plain(E.add(self.blocks.queries, E.mul(self.valid, -1)))

        def nothing(j: E.Expr) -> Block:
            zero = self.number(0)
            return self.loop(rest, lambda i: tuple(Store(t.place(j, E.add(self.valid, i)), zero) for t in (p, ds)), "vector")

        def whole(hides: bool) -> Block:
            n: Size = self.valid if is_masked else self.blocks.queries
            rows = self.elements(k, n, (self.d.score, given.slope, self.d.weight), lambda j, i, staged: one(j, i, staged, hides))
            return (*rows, *self.loop(k.number, nothing)) if is_masked and rest != 0 else rows

        if k.is_edge is None:
            return whole(False)
        return (Guard(k.is_edge, whole(True)), Guard(ir.make_op("logical_not", (k.is_edge,), dtypes.bool_), whole(False)))


__all__ = ["Blocks", "Loops", "Tile", "attention_of", "build", "compare", "operation", "role_of", "select"]
