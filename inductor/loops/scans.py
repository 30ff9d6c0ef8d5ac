"""The steps of scans: in blocks, with the state of each block, the state before each block, then the results; and several side by side.

Source: Blelloch, "Prefix sums and their applications", 1990. The states before the blocks are computed in order and do not depend on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain, product
from inductor.loops.dependence import accesses, carried, conflicts, separates
from inductor.loops.reductions import COMBINES, inside, nest_around, opened
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    Accumulate,
    Block,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    allocated,
    places_of,
    rename,
    repeat,
    replace_statement,
    substitute,
    values_of,
    walk,
)


def in_scan_stages(body: Block, loop: Loop, size: int) -> Block:
    """A scan over `loop` with blocks of `size` iterations in parallel. Raises: Refused."""
    name, step, stores = loop.axis.name, *_scan(loop)
    root = next((s for s in body if any(x is loop for x in walk((s,)))), None)
    if root is None:
        raise Refused(f"there is no loop {name}")
    outer, locals_, statements = nest_around(root, loop)
    if statements[-1] is not loop or not {p.name for p in step.places} <= {x.name for x in locals_}:
        raise Refused(f"{name} is not the last loop of a scan")
    if any(x.kind != "serial" for x in (*outer, loop)):
        raise Refused(f"{name} or a loop around it is scheduled already")
    blocks = ceildiv(loop.extent, size)
    block, before, after = (ir.counter(f"{name}_{word}", blocks) for word in ("s", "m", "e"))
    if not all(isinstance(x, E.Sym) for x in (block, before, after)):
        raise Refused(f"{name} has one block")
    sizes: list[Size] = [x.extent for x in outer]
    dtypes = COMBINES[step.combine].components(step.values[0].dtype)
    parts = [Local(f"{name}_part{k}", product((blocks, *sizes)), t, "shared") for k, t in enumerate(dtypes)]
    begin = tuple(statements[:-1])

    def part(at: E.Expr) -> list[Place]:
        return [Place(x.name, ir.linear_position((blocks, *sizes), (at, *(o.axis for o in outer)))) for x in parts]

    def one(at: E.Expr, inner: Block) -> Block:
        n = plain(E.minimum(size, loop.extent - at * size))
        axis = ir.counter(f"{name}_i", n)
        return repeat(axis, n, "serial", substitute(inner, {loop.axis: at * size + axis}))

    def nest(at: E.Expr, suffix: str, inner: Block) -> Block:
        return repeat(at, blocks, "parallel", rename(inside(outer, allocated(locals_, inner)), suffix))

    first = nest(block, "_s", (*begin, *one(block, (step,)), *_moved(part(block), step.places, dtypes)))
    held = [Local(f"{name}_held{k}", 1, t) for k, t in enumerate(dtypes)]
    zero = [Place(x.name, E.as_expr(0)) for x in held]
    loaded = tuple(ir.load(p.name, p.index, t) for p, t in zip(zero, dtypes, strict=True))
    turn = (*_moved(zero, part(before), dtypes), *_moved(part(before), step.places, dtypes), Accumulate(step.places, step.combine, loaded))
    carried = allocated(locals_, (*begin, *repeat(before, blocks, "serial", allocated(held, turn))))
    second = rename(inside(outer, carried), "_m")
    third = nest(after, "_e", (*_moved(step.places, part(after), dtypes), *one(after, (step, *stores))))
    return tuple(y for s in body for y in (allocated(parts, (*first, *second, *third)) if s is root else (s,)))


def interleaved(body: Block, loop: Loop, count: int) -> Block:
    """The loop with `count` iterations side by side in the loop inside of it. Raises: Refused."""
    name, n = loop.axis.name, loop.extent
    if not isinstance(n, int) or count < 2 or n <= count or n % count:
        raise Refused(f"{name} has {n} iterations; allowed: several times {count}")
    for a, b in carried(loop):
        raise Refused(f"iterations depend on each other through {a.place} and {b.place}")
    outer = ir.counter(f"{name}_o", n // count)
    locals_: list[Local] = []
    before: list[Store] = []
    together: list[Statement] = []
    _, statements = opened(loop.body)
    scan = statements[-1]
    if not isinstance(scan, Loop) or scan.kind != "serial" or any(isinstance(x, Loop) for x in walk(scan.body)):
        raise Refused(f"the body of {name} does not end with one serial loop")
    if isinstance(scan.extent, E.Expr) and loop.axis in scan.extent.symbols:
        raise Refused(f"the extent of {scan.axis.name} depends on {name}")
    for k in range(count):
        found, (*stores, last) = opened(rename(substitute(loop.body, {loop.axis: outer * count + k}), f"_{k}"))
        if not isinstance(last, Loop) or not all(isinstance(s, Store) for s in stores):
            raise Refused(f"the body of {name} is not stores and one loop")
        locals_ += found
        before += [s for s in stores if isinstance(s, Store)]
        together += substitute(last.body, {last.axis: scan.axis})
    inner = Loop(scan.axis, scan.extent, "serial", tuple(together))
    return replace_statement(body, loop, repeat(outer, n // count, loop.kind, allocated(locals_, (*before, inner))))


def _moved(to: Sequence[Place], source: Sequence[Place], dtypes: Sequence[dtype]) -> Block:
    return tuple(Store(a, ir.load(b.name, b.index, t)) for a, b, t in zip(to, source, dtypes, strict=True))


def _scan(loop: Loop) -> tuple[Accumulate, Block]:
    """The accumulation of a scan's loop and the stores of its results. Raises: Refused."""
    name, (step, *stores) = loop.axis.name, loop.body
    if not isinstance(step, Accumulate) or not stores or not all(isinstance(s, Store) for s in stores):
        raise Refused(f"the body of {name} is not an accumulation and stores")
    state = {p.name for p in step.places}
    if any(p.indirect or loop.axis in p.index.symbols for p in step.places):
        raise Refused(f"{name} does not accumulate into one place")
    written = state | {p.name for s in stores for p in places_of(s)}
    reads = {x.buffer for v in values_of(step) for x in ir.loads_in(v)}
    reads |= {x.buffer for s in stores for v in values_of(s) for x in ir.loads_in(v)} - state
    if reads & written or state & {p.name for s in stores for p in places_of(s)}:
        raise Refused(f"{name} reads its results")
    found = accesses(tuple(stores))
    for a, b in conflicts(found, found):
        if not separates(loop.axis, a, b):
            raise Refused(f"iterations depend on each other through {a.place}")
    return step, tuple(stores)
