"""Reductions as data, an identity and an associative `merge` of two states, and the steps that change how one adds up: in lanes, in
columns, in stages.

A state has one or more components. An element enters a reduction as a state (`lift`), so one merge serves elements and partial
results alike, and a reduction may be split, reordered and run in lanes. Sums and products of floats are rounded in another order
then, as in every parallel reduction.

Running sums of floats cascade: a lane adds at most `block` values, then its sum goes to a compensated total, so that the error of a
result does not grow with the number of elements. The totals are added in the wide type of the result, which is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain, product
from inductor.loops.dependence import accesses, conflicts, separates
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Fold,
    Guard,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    allocated,
    places_of,
    rename,
    repeat,
    rewrite,
    substitute,
    values_of,
    walk,
    with_body,
)

State: TypeAlias = tuple[ir.Value, ...]


class Combine(NamedTuple):
    """One kind of reduction.

    identity: the state of no elements, for elements of a dtype. merge: the state of two groups of elements, the first group
    before the second. components: the dtypes of the state, for elements of a dtype. is_ordered: the order of the groups
    matters, so loops over them keep their order.
    """

    name: str
    identity: Callable[[dtype], State]
    merge: Callable[[State, State], State]
    components: Callable[[dtype], tuple[dtype, ...]]
    is_ordered: bool = False


def _single(of: dtype) -> tuple[dtype, ...]:
    return (of,)


def _op(name: str, *args: ir.Value) -> ir.Value:
    return ir.make_op(name, args, args[-1].dtype)


def _simple(name: str, op: str, identity: Callable[[dtype], float | int | bool]) -> Combine:
    """`op` of two values. The later value is the first operand: a target that tests it for nan does so off the chain of results."""
    return Combine(name, lambda of: (ir.const(identity(of), of),), lambda a, b: (_op(op, b[0], a[0]),), _single)


def lowest(of: dtype) -> float | int | bool:
    """The value that every value of the dtype is at least."""
    if of is dtypes.bool_:
        return False
    if of.is_integral:
        return -(1 << (of.itemsize * 8 - 1)) if of.is_signed else 0
    return -math.inf


def highest(of: dtype) -> float | int | bool:
    """The value that every value of the dtype is at most."""
    if of is dtypes.bool_:
        return True
    if of.is_integral:
        return (1 << (of.itemsize * 8 - of.is_signed)) - 1
    return math.inf


def _arg(name: str, before: str, start: Callable[[dtype], float | int | bool]) -> Combine:
    """State (value, position). Of equal values the first position wins; a nan wins over every number."""

    def merge(a: State, b: State) -> State:
        better, same = _bool(before, b[0], a[0]), _bool("eq", a[0], b[0])
        if a[0].dtype.is_floating_point:
            a_nan, b_nan = _bool("isnan", a[0]), _bool("isnan", b[0])
            better = _bool("logical_or", better, _bool("logical_and", b_nan, _bool("logical_not", a_nan)))
            same = _bool("logical_or", same, _bool("logical_and", a_nan, b_nan))
        takes = _bool("logical_or", better, _bool("logical_and", same, _bool("lt", b[1], a[1])))
        return tuple(ir.make_op("where", (takes, y, x), x.dtype) for x, y in zip(a, b, strict=True))

    def identity(of: dtype) -> State:
        return ir.const(start(of), of), ir.const((1 << 63) - 1, dtypes.int64)

    return Combine(name, identity, merge, lambda of: (of, dtypes.int64))


def _bool(name: str, *args: ir.Value) -> ir.Value:
    return ir.make_op(name, args, dtypes.bool_)


def _welford() -> Combine:
    """State (mean, sum of squared deviations, count).

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    def merge(a: State, b: State) -> State:
        count = _op("add", a[2], b[2])
        share = _op("div", b[2], _op("maximum", count, ir.const(1, count.dtype)))
        delta = _op("sub", b[0], a[0])
        mean = _op("add", a[0], _op("mul", delta, share))
        between = _op("mul", _op("mul", delta, delta), _op("mul", a[2], share))
        return mean, _op("add", _op("add", a[1], b[1]), between), count

    return Combine("welford", lambda of: (ir.const(0, of),) * 3, merge, lambda of: (of, of, of))


def _online_softmax() -> Combine:
    """State (maximum, sum of exponentials relative to it).

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
    """

    def merge(a: State, b: State) -> State:
        top = _op("maximum", a[0], b[0])
        # Relative to a top of -inf every exponential is 0; the difference -inf - -inf would be nan.
        zero = ir.const(0, top.dtype)
        shift = ir.make_op("where", (_bool("eq", top, ir.const(-math.inf, top.dtype)), zero, top), top.dtype)
        scaled = [_op("mul", s, _op("exp", _op("sub", m, shift))) for m, s in (a, b)]
        return top, _op("add", *scaled)

    return Combine("softmax", lambda of: (ir.const(-math.inf, of), ir.const(0, of)), merge, lambda of: (of, of))


def _wide_sum() -> Combine:
    """The sum of float32 values in a float64: it is rounded once, at the end."""

    def merge(a: State, b: State) -> State:
        return (_op("add", *(ir.cast(v, dtypes.float64) for v in (a[0], b[0]))),)

    return Combine("wide_sum", lambda _: (ir.const(0, dtypes.float64),), merge, lambda _: (dtypes.float64,))


def _compensated() -> Combine:
    """State (total, carry): the carry holds the rounding errors of the additions to the total.

    Source: Knuth, "The Art of Computer Programming", volume 2, section 4.2.2, theorem B.
    """

    def merge(a: State, b: State) -> State:
        total = _op("add", a[0], b[0])
        part = _op("sub", total, a[0])
        error = _op("add", _op("sub", a[0], _op("sub", total, part)), _op("sub", b[0], part))
        carry = a[1] if isinstance(b[1], ir.Const) and b[1].value == 0 else _op("add", a[1], b[1])
        return total, _op("add", carry, error)

    return Combine("compensated", lambda of: (ir.const(0, of), ir.const(0, of)), merge, lambda of: (of, of))


COMBINES: Final[dict[str, Combine]] = {
    c.name: c
    for c in (
        _simple("sum", "add", lambda of: 0),
        _simple("prod", "mul", lambda of: 1),
        _simple("max", "maximum", lowest),
        _simple("min", "minimum", highest),
        _simple("any", "logical_or", lambda of: False),
        _simple("all", "logical_and", lambda of: True),
        _arg("argmax", "gt", lowest),
        _arg("argmin", "lt", highest),
        _welford(),
        _online_softmax(),
        _wide_sum(),
        _compensated(),
    )
}


def lift(combine: str, value: ir.Value, position: ir.Value) -> State:
    """One element as a state. position: its place in the reduction, an int64 value."""
    match combine:
        case "argmax" | "argmin":
            return value, position
        case "welford":
            return value, ir.const(0, value.dtype), ir.const(1, value.dtype)
        case "softmax":
            return value, ir.const(1, value.dtype)
    return (value,)


def folded(combine: str, parts: State, of: dtype) -> tuple[str, State]:
    """The combine and the state with which an element of the parts of a `Fold` is accumulated into places of dtype `of`."""
    wide = tuple(ir.cast(v, of) for v in parts)
    if combine != "compensated":
        return combine, wide
    both = _op("add", *wide)
    # An infinite total has a carry that is nan.
    return "sum", (ir.make_op("where", (_bool("ne", both, both), wide[0], both), of),)


def state_of(s: Accumulate) -> tuple[ir.Value, ...]:
    """The state in the places of an accumulation, as values."""
    components = COMBINES[s.combine].components(s.values[0].dtype)
    return tuple(ir.load(p.name, p.index, t, None, p.indirect) for p, t in zip(s.places, components, strict=True))


# -- steps -----------------------------------------------------------------------------------------------------------
UNBOUNDED = 1 << 62  # more values than a running sum may add


class _Running(NamedTuple):
    """The lanes of one accumulation: its running results and, for a sum that cascades, its compensated totals."""

    of: Accumulate
    value: ir.Value
    run: Local
    total: Local | None
    carry: Local | None

    @property
    def locals(self) -> list[Local]:
        return [x for x in (self.run, self.total, self.carry) if x is not None]

    def begin(self, lane: E.Expr) -> Block:
        """The stores that begin one lane."""
        (identity,) = COMBINES[lane_combine(self.of)].identity(self.run.dtype)
        zero = ir.const(0, self.run.dtype)
        sums = [x for x in (self.total, self.carry) if x is not None]
        return (Store(Place(self.run.name, lane), identity), *(Store(Place(x.name, lane), zero) for x in sums))

    def put_away(self, lane: E.Expr) -> Block:
        """Adds the running sum of one lane to its total, and begins it again."""
        if self.total is None or self.carry is None:
            return ()
        run, zero = Place(self.run.name, lane), ir.const(0, self.run.dtype)
        totals = (Place(self.total.name, lane), Place(self.carry.name, lane))
        return (Accumulate(totals, "compensated", (ir.load(run.name, lane, self.run.dtype), zero)), Store(run, zero))

    def fold(self) -> Fold:
        """Combines the lanes into the result."""
        if self.total is None or self.carry is None:
            return Fold(self.of.places, lane_combine(self.of), (self.run,), state_dtype(self.of))
        return Fold(self.of.places, "compensated", (self.total, self.carry), state_dtype(self.of))

    def result(self, lane: E.Expr) -> ir.Value:
        """The result of one lane, in the type of the accumulation."""
        of = state_dtype(self.of)
        if self.total is None or self.carry is None:
            return ir.cast(ir.load(self.run.name, lane, self.run.dtype), of)
        total, carry = (ir.cast(ir.load(x.name, lane, x.dtype), of) for x in (self.total, self.carry))
        both = ir.make_op("add", (total, carry), of)
        # An infinite total has a carry that is nan.
        return ir.make_op("where", (ir.make_op("ne", (both, both), dtypes.bool_), total, both), of)


def lane_combine(s: Accumulate) -> str:
    """The combine of one lane: a wide sum is added in the type of its values."""
    return "sum" if s.combine == "wide_sum" else s.combine


def state_dtype(s: Accumulate) -> dtype:
    """The dtype of the first place of an accumulation."""
    return COMBINES[s.combine].components(s.values[0].dtype)[0]


def _accumulations(loop: Loop) -> list[Accumulate]:
    """The accumulations of a loop's body. Raises: Refused if they cannot run in lanes."""
    inside = list(walk(loop.body))
    found = [s for s in inside if isinstance(s, Accumulate)]
    if not found or any(isinstance(s, Loop) for s in inside):
        raise Refused(f"{loop.axis.name} is not the innermost loop of a reduction")
    written = {p.name for s in found for p in places_of(s)}
    for s in found:
        if len(s.places) != 1 or any(loop.axis in p.index.symbols or p.indirect for p in s.places):
            raise Refused(f"{loop.axis.name} does not accumulate single values into one place")
        if COMBINES[s.combine].is_ordered:
            raise Refused("the order of the reduction's iterations matters")
    if any(x.buffer in written for s in inside for v in values_of(s) for x in v.loads):
        raise Refused("the loop reads the running result")
    reached = list(accesses(loop.body))
    for a, b in conflicts(reached, reached):
        if not separates(loop.axis, a, b):
            raise Refused(f"iterations depend on each other through {a.place}")
    return found


def _running(body: Block, found: Sequence[Accumulate], axis: str, lanes: int, cascades: bool) -> list[_Running]:
    taken = {x.local.name for x in walk(body) if isinstance(x, Allocate)}
    out = []
    for k, s in enumerate(found):
        value = s.values[0]
        sums = cascades and lane_combine(s) == "sum" and value.dtype.is_floating_point
        names = [f"{axis}_{word}{k}" for word in ("run", "total", "carry")]
        if taken & set(names):
            raise Refused(f"{axis} runs in lanes already")
        run, total, carry = (Local(n, lanes, value.dtype, "stack") for n in names)
        out.append(_Running(s, value, run, total if sums else None, carry if sums else None))
    return out


def _into(block: Block, running: Sequence[_Running], lane: E.Expr, at: dict[E.Expr, E.IntLike]) -> Block:
    """A body whose accumulations go to the running results of `lane`."""
    places = {id(r.of): r for r in running}

    def change(s: object) -> Block | None:
        r = places.get(id(s))
        return None if r is None else (Accumulate((Place(r.run.name, lane),), lane_combine(r.of), (r.value,)),)

    return substitute(rewrite(block, change), at)


def most(n: Size) -> int:
    """An upper bound of a size; `UNBOUNDED` for a size without one."""
    high = E.as_expr(n).hi
    return int(high) if high < UNBOUNDED else UNBOUNDED


def _chunks(axis: str, count: Size, block: int, body: Callable[[E.Expr], Block], after: Block) -> Block:
    """body(i) for i < count in blocks, with the statements `after` behind every block."""
    chunks = ceildiv(count, block)
    outer, inner = ir.counter(f"{axis}_c", chunks), ir.counter(f"{axis}_b", block)
    at = outer * block + inner
    inside = body(at)
    if not (isinstance(count, int) and count % block == 0):
        inside = (Guard(ir.make_op("lt", (ir.index(at), ir.index(count)), dtypes.bool_), inside),)
    return repeat(outer, chunks, "serial", (*repeat(inner, block, "serial", inside), *after))


def in_lanes(body: Block, chain: Sequence[Loop], lanes: int, block: int) -> Block:
    """The loops of `chain`, each the whole body of the one before, with the innermost one over `lanes` running results.

    Raises: Refused.
    """
    loop, name = chain[-1], chain[-1].axis.name
    if lanes < 2 or block < 1:
        raise Refused(f"{lanes} lanes in blocks of {block}; allowed: 2 lanes and more, blocks of 1 and more")
    found = _accumulations(loop)
    for outer in chain[:-1]:
        if any(outer.axis in p.index.symbols for s in found for p in s.places):
            raise Refused(f"{outer.axis.name} does not accumulate into one place")
    n = loop.extent
    count, rest = (n // lanes, n % lanes) if isinstance(n, int) else (plain(n // lanes), plain(n % lanes))
    steps = -(-most(loop.extent) // lanes)
    total = steps
    for outer in chain[:-1]:
        total *= most(outer.extent)
    running = _running(body, found, name, lanes, total > block)
    lane = ir.counter(f"{name}_l", lanes)

    def whole(i: E.Expr) -> Block:
        return repeat(lane, lanes, "vector", _into(loop.body, running, lane, {loop.axis: i * lanes + lane}))

    def each_lane(word: str, statements: Callable[[_Running, E.Expr], Block]) -> Block:
        axis = ir.counter(f"{name}_{word}", lanes)
        inside = tuple(x for r in running for x in statements(r, axis))
        return repeat(axis, lanes, "vector", inside) if inside else ()

    axis = ir.counter(f"{name}_o", count)
    away = each_lane("p", _Running.put_away)
    in_blocks = bool(away) and steps > block
    main = _chunks(f"{name}_o", count, block, whole, away) if in_blocks else repeat(axis, count, "serial", whole(axis))
    last = ir.counter(f"{name}_t", rest)
    tail = rename(_into(loop.body, running, last, {loop.axis: E.mul(count, lanes) + last}), "_t")
    inside = (*main, *repeat(last, rest, "vector", tail))
    # Where no block may be whole, nothing is put away inside, and a lane adds one value of the rest.
    may_be_short = in_blocks and rest != 0 and not isinstance(count, int)
    inside = _outer_loops(chain[:-1], inside, 1 if may_be_short else steps, block, away, in_blocks and not may_be_short)
    end = rename(away, "_e") if in_blocks and rest != 0 else ()  # otherwise every sum is put away
    folds = tuple(r.fold() for r in running)
    begin = each_lane("z", _Running.begin)
    return allocated([x for r in running for x in r.locals], (*begin, *inside, *end, *folds))


def _outer_loops(outer: Sequence[Loop], inside: Block, steps: int, block: int, away: Block, is_cut: bool) -> Block:
    """The loops around the innermost one. One of them runs in blocks, unless an inner loop does already."""
    for x in reversed(outer):
        steps *= most(x.extent)
        if is_cut or not away or steps <= block:
            inside = (with_body(x, inside),)
            continue
        size, is_cut = max(1, block * most(x.extent) // steps), True
        body = inside

        def at(i: E.Expr, x: Loop = x, body: Block = body) -> Block:
            return substitute(body, {x.axis: i})

        inside = _chunks(x.axis.name, x.extent, size, at, rename(away, "_c"))
    return inside


REGISTERS: Final = 1024  # bytes of running results that stay in vector registers
STREAMS: Final = 8  # rows, of all operands together, that are read side by side: each needs a pointer


def in_columns(body: Block, loop: Loop, width: int, block: int) -> Block:
    """A loop over columns, each of which is reduced, as a loop over groups of columns: the reduced loops run inside of a group.

    Several accumulations of the same elements run together, each with its running results.

    Raises: Refused.
    """
    name = loop.axis.name
    locals_, statements = opened(loop.body)
    at = [k for k, s in enumerate(statements) if isinstance(s, Loop)]
    if len(at) != 1 or width < 2 or not all(isinstance(s, Store) for k, s in enumerate(statements) if k != at[0]):
        raise Refused(f"the body of {name} is not one reduction")
    chain = [statements[at[0]]]
    assert isinstance(chain[0], Loop)
    reduced: list[Loop] = [chain[0]]
    while len(reduced[-1].body) == 1 and isinstance(reduced[-1].body[0], Loop):
        reduced.append(reduced[-1].body[0])
    if any(isinstance(x.extent, E.Expr) and loop.axis in x.extent.symbols for x in reduced):
        raise Refused(f"the number of reduced elements depends on {name}")
    found = _accumulations(reduced[-1])
    if len(found) != len(list(walk(reduced[-1].body))):
        raise Refused(f"the reduced loops of {name} store elements")
    total = 1
    for x in reduced:
        total *= most(x.extent)
    running = _running(body, found, name, width, total > block)
    groups = ceildiv(loop.extent, width)
    group = ir.counter(f"{name}_o", groups)
    columns = _Columns(loop.axis, group * width, plain(E.minimum(width, loop.extent - group * width)), reduced[-1], running)
    away = columns.each("p", width, _Running.put_away) if any(r.total for r in running) else ()
    last = reduced[-1].extent
    if isinstance(last, int) and width * sum(r.run.dtype.itemsize for r in running) > REGISTERS:
        is_cut = bool(away) and last > block
        inner = _outer_loops(reduced[:-1], columns.side_by_side(last, min(block, last), away if is_cut else ()), last, block, away, is_cut)
    else:
        inner = _outer_loops(reduced, columns.sweep("i", reduced[-1].axis, 1), 1, block, away, is_cut=False)

    def finish(r: _Running, c: E.Expr) -> Block:
        return (Store(r.of.places[0], r.result(c)),)

    end = columns.each("f", columns.width, finish, tuple(statements[at[0] + 1 :]), locals_)
    parts = (*columns.each("z", width, _Running.begin), *inner, *end)
    return repeat(group, groups, loop.kind, allocated([x for r in running for x in r.locals], parts))


class _Columns(NamedTuple):
    """A group of columns: `width` values of `axis`, from `first` on. The loop `rows` reduces them into the running results `to`."""

    axis: E.Sym
    first: E.Expr
    width: Size
    rows: Loop
    to: Sequence[_Running]

    def each(self, word: str, count: Size, inside: Callable[[_Running, E.Expr], Block], after: Block = (),
             locals_: Sequence[Local] = ()) -> Block:  # fmt: skip
        """A loop over columns of the group: `inside` for each running result, then `after`, which reads the original axis.

        word: of the name of the loop's axis.
        """
        c = ir.counter(f"{self.axis.name}_{word}", count)
        statements = (*(x for r in self.to for x in inside(r, c)), *after)
        return repeat(c, count, "vector", allocated(locals_, substitute(statements, {self.axis: self.first + c})))

    def sweep(self, word: str, first: E.Expr, rows: int) -> Block:
        """Adds `rows` rows, from `first` on, to all columns. The running results of a column are in registers meanwhile."""
        row, c = ir.counter(f"{self.rows.axis.name}_{word}", rows), ir.counter(f"{self.axis.name}_{word}", self.width)
        at: dict[E.Expr, E.IntLike] = {self.rows.axis: first + row, self.axis: self.first + c}
        if rows == 1:
            return repeat(c, self.width, "vector", _into(self.rows.body, self.to, c, at))
        here = [r._replace(run=Local(f"{r.run.name}_{word}", 1, r.run.dtype, "register")) for r in self.to]
        places = [(Place(a.run.name, E.as_expr(0)), Place(r.run.name, c)) for a, r in zip(here, self.to, strict=True)]
        begin = tuple(Store(near, ir.load(far.name, far.index, r.run.dtype)) for r, (near, far) in zip(here, places, strict=True))
        end = tuple(Store(far, ir.load(near.name, near.index, r.run.dtype)) for r, (near, far) in zip(here, places, strict=True))
        added = repeat(row, rows, "unrolled", _into(self.rows.body, here, E.as_expr(0), at))
        return repeat(c, self.width, "vector", allocated([r.run for r in here], (*begin, *added, *end)))

    def side_by_side(self, count: int, block: int, after: Block) -> Block:
        """Adds `count` rows in blocks, with the statements `after` behind each block. Sweeps read as many rows as have pointers."""
        streams = len({x for r in self.to for v in r.of.values for x in v.loads if self.axis in x.index.symbols})
        rows = next(n for n in range(max(1, min(block, STREAMS // max(1, streams))), 0, -1) if block % n == 0)
        (whole, rest), name = divmod(count, block), self.rows.axis.name
        chunk, part = ir.counter(f"{name}_c", whole), ir.counter(f"{name}_p", block // rows)
        sweeps = repeat(part, block // rows, "serial", self.sweep("i", chunk * block + part * rows, rows))
        tail = (*self.sweep("t", E.as_expr(whole * block), rest), *rename(after, "_e")) if rest else ()
        return (*repeat(chunk, whole, "serial", (*sweeps, *after)), *tail)


def opened(block: Block) -> tuple[list[Local], list[Store | Loop]]:
    """The locals around the statements of a block, and these statements. Raises: Refused for guards and nested locals."""
    locals_: list[Local] = []
    while len(block) == 1 and isinstance(block[0], Allocate):
        locals_.append(block[0].local)
        block = block[0].body
    kept = [s for s in block if isinstance(s, Store | Loop)]
    if len(kept) != len(block):
        raise Refused("the statements around the reduction are not stores and loops")
    return locals_, kept


def in_stages(body: Block, loop: Loop, size: int) -> Block:
    """A reduction in two stages: blocks of `size` iterations of its outermost loop in parallel, then their partial results in order.

    The loops around the reduction run inside of each block, and again in the second stage. The partial results do not depend on the
    number of threads. Raises: Refused.
    """
    name = loop.axis.name
    root = next((s for s in body if any(x is loop for x in walk((s,)))), None)
    if root is None:
        raise Refused(f"there is no loop {name}")
    outer, locals_, statements = nest_around(root, loop)
    at = next(k for k, s in enumerate(statements) if s is loop)
    found = _accumulations(_innermost(loop))
    if len([s for s in walk(loop.body) if not isinstance(s, Loop)]) != len(found):
        raise Refused(f"the body of {name} stores elements")
    if any(x.kind != "serial" for x in (*outer, loop)):
        raise Refused(f"{name} or a loop around it is scheduled already")
    blocks = ceildiv(loop.extent, size)
    block, again, inner = (ir.counter(f"{name}_{word}", n) for word, n in (("s", blocks), ("m", blocks), ("i", size)))
    if not isinstance(block, E.Sym) or not isinstance(inner, E.Sym) or not isinstance(again, E.Sym):
        raise Refused(f"{name} has one block")
    here = plain(E.minimum(size, loop.extent - block * size))
    inner = ir.counter(f"{name}_i", here)
    sizes: list[Size] = [x.extent for x in outer]
    axes = [x.axis for x in outer]
    parts = [Local(f"{name}_part{k}", product((blocks, *sizes)), state_dtype(s), "shared") for k, s in enumerate(found)]
    begin, end = tuple(statements[:at]), tuple(statements[at + 1 :])
    each = (*begin, *repeat(inner, here, "serial", substitute(loop.body, {loop.axis: block * size + inner})))
    results = [ir.load(s.places[0].name, s.places[0].index, p.dtype) for p, s in zip(parts, found, strict=True)]
    to, back = (ir.linear_position((blocks, *sizes), (b, *axes)) for b in (block, again))
    kept = tuple(Store(Place(p.name, to), result) for p, result in zip(parts, results, strict=True))
    first = Loop(block, blocks, "parallel", rename(inside(outer, allocated(locals_, (*each, *kept))), "_s"))
    merged = tuple(Accumulate(s.places, s.combine, (ir.load(p.name, back, p.dtype),)) for p, s in zip(parts, found, strict=True))
    second = inside(outer, allocated(locals_, (*begin, Loop(again, blocks, "serial", merged), *end)))
    return tuple(y for s in body for y in ((allocated(parts, (first, *second))) if s is root else (s,)))


def nest_around(root: Statement, loop: Loop) -> tuple[list[Loop], list[Local], list[Store | Loop]]:
    """The loops from `root` to the statements of a reduction, the locals around these, and the statements; one of them is `loop`."""
    outer: list[Loop] = []
    locals_, statements = opened((root,))
    while not any(s is loop for s in statements):
        (only, *others) = statements
        if locals_ or others or not isinstance(only, Loop):
            raise Refused(f"{loop.axis.name} is not the outermost loop of a reduction")
        outer.append(only)
        locals_, statements = opened(only.body)
    if any(isinstance(s, Loop) for s in statements if s is not loop):
        raise Refused(f"other loops run before or after {loop.axis.name}")
    return outer, locals_, statements


def _innermost(loop: Loop) -> Loop:
    """The last of the loops that are each the whole body of the loop around them."""
    while len(loop.body) == 1 and isinstance(loop.body[0], Loop):
        loop = loop.body[0]
    return loop


def inside(outer: Sequence[Loop], block: Block) -> Block:
    for x in reversed(outer):
        block = (with_body(x, block),)
    return block
