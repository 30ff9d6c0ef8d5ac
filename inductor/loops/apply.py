"""Performs the steps of a schedule on a kernel.

Each step is a pure function from a kernel to a new kernel or to a `Refusal` that names the reason. The guard that a step adds
for the tail of a loop is a statement like any other, so every result prints, runs in the interpreter and takes further steps.

A `Scheduler` is a kernel with the steps so far, for rules that try steps one by one: `inductor.plan.heuristics` for CPUs and
`inductor.plan.gpu_schedule` for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain
from inductor.loops.blocks import in_blocks, persistent
from inductor.loops.cached_reads import cache_read, cache_write
from inductor.loops.contractions import expand, follow, share
from inductor.loops.dependence import Access, accesses, carried, conflicts, private_part, separates
from inductor.loops.described import described
from inductor.loops.narrow import narrow
from inductor.loops.parts import in_parts
from inductor.loops.reductions import COMBINES, in_columns, in_lanes, in_stages
from inductor.loops.refusal import Refusal, Refused
from inductor.loops.scans import in_scan_stages, interleaved
from inductor.loops.staged_draws import stage_draws
from inductor.loops.steps import (
    Blocks,
    CacheRead,
    CacheWrite,
    Columns,
    Cut,
    Descriptors,
    Distribute,
    Expand,
    Follow,
    FuseAxes,
    Interleave,
    Join,
    Lanes,
    Localise,
    Mark,
    Partials,
    Parts,
    Persistent,
    Reorder,
    ScanStages,
    Schedule,
    Share,
    Split,
    StageDraws,
    Stages,
    Step,
    Unmask,
)
from inductor.loops.tiles import in_partials, objection
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Fold,
    Guard,
    Kernel,
    Kind,
    Local,
    Loop,
    Place,
    Statement,
    allocated,
    find_loop,
    loops_in,
    loops_of,
    places_of,
    raised,
    rename,
    rename_memory,
    repeat,
    replace_statement,
    substitute,
    values_of,
    walk,
    with_body,
)
from inductor.loops.unmask import unmasked

MAX_JOINS = 64  # loops at the root of one kernel
MAX_UNROLLED = 64  # iterations
MAX_LOCAL = 1 << 16  # elements of a local that grows by a distributed loop
ROW_BYTES = 24 << 10  # most bytes of a local that holds one iteration's part of a buffer: it should stay in the nearest cache


def apply(kernel: Kernel, schedule: Schedule) -> Kernel | Refusal:
    """The kernel after every step of the schedule, or the first refusal."""
    for step in schedule:
        try:
            kernel = _performed(kernel, step)
        except Refused as refused:
            return Refusal(step, str(refused))
    return kernel


def _performed(kernel: Kernel, step: Step) -> Kernel:
    match step:
        case Localise():
            return _localise(kernel, step)
        case CacheRead():
            return kernel._replace(body=cache_read(kernel, step.buffer, _loop(kernel.body, step.axis)))
        case CacheWrite():
            return kernel._replace(body=cache_write(kernel, _loop(kernel.body, step.axis)))
        case Share():
            return share(kernel, step.product, step.result)
    return kernel._replace(body=_perform(kernel.body, step))


def _perform(body: Block, step: Step) -> Block:
    """The loops after a step that changes loops alone."""
    match step:
        case Split():
            return _split(body, step)
        case Cut():
            return _cut(body, step)
        case Unmask():
            loop = _loop(body, step.axis)
            return replace_statement(body, loop, unmasked(loop))
        case Interleave():
            return interleaved(body, _loop(body, step.axis), step.width)
        case Reorder():
            return _reorder(body, step)
        case FuseAxes():
            return _fuse_axes(body, step)
        case Mark():
            return _mark(body, step)
        case Distribute():
            return _distribute(body, step)
        case Join():
            return _join(body, step)
        case Lanes():
            return _lanes(body, step)
        case Partials():
            loop = _loop(body, step.axis)
            return replace_statement(body, loop, in_partials(body, loop, step.width))
        case Parts():
            return in_parts(body, _loop(body, step.axis), step.size)
        case Columns():
            return _columns(body, step)
        case Stages():
            return _stages(body, step)
        case ScanStages():
            return in_scan_stages(body, _loop(body, step.axis), step.size)
        case Follow():
            return follow(body, step.product, step.axis)
        case Blocks():
            return in_blocks(body, step.product, step.rows, step.columns, step.depth)
        case Persistent():
            return persistent(body, step.product, step.programs)
        case Descriptors():
            return described(body, step.product)
        case Expand():
            return expand(body, step.product)
        case StageDraws():
            return stage_draws(body, _loop(body, step.axis))
    raise TypeError(f"apply: {step!r} is not a step")


# -- finding and replacing loops -----------------------------------------------------------------------------------
def _loop(body: Block, axis: str) -> Loop:
    found = loops_of(body).get(axis)
    if found is None:
        raise Refused(f"there is no loop {axis}; the loops are {', '.join(loops_of(body)) or 'none'}")
    return found


def _only(loop: Loop) -> Loop:
    """The loop that is the whole body of `loop`."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Loop):
        raise Refused(f"the body of {loop.axis.name} is not one loop")
    return loop.body[0]


def _free(body: Block, name: str) -> str:
    """`name`, which no loop may have yet."""
    if name in loops_of(body):
        raise Refused(f"there is a loop {name} already")
    return name


def _less(e: E.Expr, n: Size) -> ir.Value:
    return ir.make_op("lt", (ir.index(e), ir.index(n)), dtypes.bool_)


def _constant(loop: Loop) -> int:
    if not isinstance(loop.extent, int):
        raise Refused(f"the extent {loop.extent} of {loop.axis.name} is not constant")
    return loop.extent


# -- steps ---------------------------------------------------------------------------------------------------------
def _blocks(body: Block, loop: Loop, factor: int) -> tuple[E.Sym, E.Sym, Size, Callable[[Block], Block]]:
    """The two axes of a split loop, the number of blocks, and the substitution of the old axis in its body."""
    if factor < 2:
        raise Refused(f"the factor is {factor}; allowed: 2 and more")
    count = ceildiv(loop.extent, factor)
    name = loop.axis.name
    outer, inner = ir.counter(_free(body, f"{name}_o"), count), ir.counter(_free(body, f"{name}_i"), factor)
    # A single block has no outer symbol: its counter is the constant 0.
    if not isinstance(outer, E.Sym) or not isinstance(inner, E.Sym):
        raise Refused(f"{name} has {loop.extent} iterations, no more than one block of {factor}")
    at = outer * factor + inner

    def inside(block: Block) -> Block:
        block = substitute(block, {loop.axis: at})
        return block if _divides(factor, loop.extent) else (Guard(_less(at, loop.extent), block),)

    return outer, inner, count, inside


def _divides(factor: int, extent: Size) -> bool:
    return E.mod(E.as_expr(extent), E.as_expr(factor)) is E.as_expr(0)


def _split(body: Block, step: Split) -> Block:
    loop = _loop(body, step.axis)
    if step.tail == "peel":
        return _peel(body, loop, step.factor)
    outer, inner, count, inside = _blocks(body, loop, step.factor)
    kind = loop.kind
    return replace_statement(body, loop, (Loop(outer, count, kind, (Loop(inner, step.factor, kind, inside(loop.body)),)),))


def _peel(body: Block, loop: Loop, factor: int) -> Block:
    """Whole blocks, then a loop over the rest."""
    name, kind = loop.axis.name, loop.kind
    count, rest = (plain(op(E.as_expr(loop.extent), E.as_expr(factor))) for op in (E.floordiv, E.mod))
    if factor < 2 or count == 0:
        raise Refused(f"{name} has {loop.extent} iterations, no whole block of {factor}")
    outer, inner = ir.counter(_free(body, f"{name}_o"), count), ir.counter(_free(body, f"{name}_i"), factor)
    blocks = repeat(inner, factor, kind, substitute(loop.body, {loop.axis: outer * factor + inner}))
    axis = ir.counter(_free(body, f"{name}_t"), rest)
    tail = rename(substitute(loop.body, {loop.axis: E.mul(count, factor) + axis}), "_t")
    return replace_statement(body, loop, (*repeat(outer, count, kind, blocks), *repeat(axis, rest, kind, tail)))


def _cut(body: Block, step: Cut) -> Block:
    """Loops over the ranges between the cuts, in which comparisons that a range decides are replaced by their results."""
    loop = _loop(body, step.axis)
    edges = [0, *step.at, _constant(loop)]
    if any(a >= b for a, b in pairwise(edges)):
        raise Refused(f"the cuts {list(step.at)} are not ascending positions in 1..{_constant(loop) - 1}")
    if any(isinstance(s, Allocate) for s in walk(loop.body)):
        raise Refused(f"the body of {step.axis} has locals")
    pieces: list[Statement] = []
    for k, (start, stop) in enumerate(pairwise(edges)):
        axis = ir.counter(_free(body, f"{step.axis}_c{k}"), stop - start)
        inside = narrow(substitute(rename(loop.body, f"_c{k}"), {loop.axis: axis + start}))
        pieces += repeat(axis, stop - start, loop.kind, inside)
    return replace_statement(body, loop, tuple(pieces))


def _reorder(body: Block, step: Reorder) -> Block:
    outer = _loop(body, step.outer)
    if len(outer.body) == 1 and isinstance(outer.body[0], Guard):
        outer_new = _sink_guard(outer)
        body, outer = replace_statement(body, outer, (outer_new,)), outer_new
    inner = _only(outer)
    if inner.axis.name != step.inner:
        raise Refused(f"the body of {step.outer} is the loop {inner.axis.name}")
    if isinstance(inner.extent, E.Expr) and outer.axis in inner.extent.symbols:
        raise Refused(f"the extent of {step.inner} depends on {step.outer}")
    found = () if outer.kind == inner.kind == "grid" else accesses(inner.body)  # programs run in any order
    for a, b in conflicts(found, found):
        if not separates(outer.axis, a, b, [inner.axis]) and not separates(inner.axis, a, b, [outer.axis]):
            raise Refused(_depends(a.place, b.place))
    if _is_ordered(inner.body):
        raise Refused("the order of the reduction's iterations matters")
    return replace_statement(body, outer, (with_body(inner, (with_body(outer, inner.body),)),))


def _sink_guard(outer: Loop) -> Loop:
    """The guard that is the body of `outer`, moved into the loop inside of it."""
    guard = outer.body[0]
    assert isinstance(guard, Guard)
    if len(guard.body) != 1 or not isinstance(guard.body[0], Loop):
        raise Refused(f"the body of {outer.axis.name} is not one loop")
    inner = guard.body[0]
    return Loop(outer.axis, outer.extent, outer.kind, (with_body(inner, (Guard(guard.condition, inner.body),)),))


def _is_ordered(body: Block) -> bool:
    return any(isinstance(s, Accumulate) and COMBINES[s.combine].is_ordered for s in walk(body))


def _depends(a: Place, b: Place) -> str:
    return f"iterations depend on each other through {a} and {b}" if a != b else f"iterations depend on each other through {a}"


def _fuse_axes(body: Block, step: FuseAxes) -> Block:
    outer = _loop(body, step.outer)
    inner = _only(outer)
    if inner.axis.name != step.inner:
        raise Refused(f"the body of {step.outer} is the loop {inner.axis.name}")
    kind = _kind_of_both(outer, inner)
    extent = plain(E.mul(outer.extent, inner.extent))
    axis = ir.counter(_free(body, f"{step.outer}.{step.inner}"), extent)
    if not isinstance(axis, E.Sym):
        raise Refused("the fused loop has one iteration")
    at: dict[E.Expr, E.IntLike] = {outer.axis: E.floordiv(axis, inner.extent), inner.axis: E.mod(axis, inner.extent)}
    return replace_statement(body, outer, (Loop(axis, extent, kind, substitute(inner.body, at)),))


def _kind_of_both(outer: Loop, inner: Loop) -> Kind:
    """How one loop of both runs. A serial loop may join a parallel one if its iterations are independent."""
    if {outer.kind, inner.kind} == {"serial", "parallel"}:
        for a, b in carried(outer if outer.kind == "serial" else inner):
            raise Refused(_depends(a.place, b.place))
        return "parallel"
    if outer.kind != inner.kind:
        raise Refused(f"{outer.axis.name} is {outer.kind} and {inner.axis.name} is {inner.kind}")
    return outer.kind


def _mark(body: Block, step: Mark) -> Block:
    loop = _loop(body, step.axis)
    if step.kind == "turns":
        raise Refused("only a persistent product computes programs in turns")
    if step.kind == "unrolled" and _constant(loop) > MAX_UNROLLED:
        raise Refused(f"{loop.extent} iterations are too many to unroll; allowed: up to {MAX_UNROLLED}")
    if step.kind in ("vector", "streamed") and any(isinstance(s, Loop) and s.kind != "unrolled" for s in walk(loop.body)):
        raise Refused("a vector loop holds no other loop")
    if step.kind == "parallel" and any(isinstance(s, Loop) and s.kind == "parallel" for s in walk(loop.body)):
        raise Refused("a parallel loop holds no other parallel loop")
    if step.kind in ("parallel", "vector", "streamed"):
        for a, b in carried(loop):
            raise Refused(_depends(a.place, b.place))
    if step.kind in ("grid", "lanes", "scan") and (reason := objection(body, loop, step.kind)):
        raise Refused(reason)
    return replace_statement(body, loop, (Loop(loop.axis, loop.extent, step.kind, loop.body),))


def _distribute(body: Block, step: Distribute) -> Block:
    loop = _loop(body, step.axis)
    locals_, statements = _flatten(loop.body)
    if len(statements) < 2:
        raise Refused(f"the body of {step.axis} is one statement")
    if any(isinstance(s, Loop) and s.kind != "serial" for s in walk(loop.body)):
        raise Refused("loops inside are scheduled already")
    if any(x in s.parts for s in walk(loop.body) if isinstance(s, Fold) for x in locals_):
        raise Refused("a statement reads a whole local of the loop's body")
    arrays = {x.name: _expanded(x, loop) for x in locals_}
    block = rename_memory(tuple(statements), {x.name: (x.name, E.mul(loop.axis, x.size)) for x in locals_})
    for k, first in enumerate(block):
        for second in block[k + 1 :]:
            for a, b in conflicts(accesses((first,)), accesses((second,))):
                if not separates(loop.axis, a, b):
                    raise Refused(_depends(a.place, b.place))
    names = [loop.axis.name, *(f"{loop.axis.name}_{k}" for k in range(1, len(block)))]
    out: list[Statement] = []
    for name, s in zip(names, block, strict=True):
        axis = loop.axis if name == loop.axis.name else ir.counter(_free(body, name), loop.extent)
        assert isinstance(axis, E.Sym)
        out.append(Loop(axis, loop.extent, loop.kind, substitute((s,), {loop.axis: axis})))
    new: Block = tuple(out)
    for x in reversed(list(arrays.values())):
        new = (Allocate(x, new),)
    return replace_statement(body, loop, new)


def _flatten(block: Block) -> tuple[list[Local], list[Statement]]:
    """The locals and the statements of a body, with guards and allocations around each statement taken apart."""
    locals_: list[Local] = []
    statements: list[Statement] = []
    for s in block:
        if isinstance(s, Allocate):
            inner_locals, inner = _flatten(s.body)
            locals_ += [s.local, *inner_locals]
            statements += inner
        elif isinstance(s, Guard):
            inner_locals, inner = _flatten(s.body)
            locals_ += inner_locals
            statements += [Guard(s.condition, (x,)) for x in inner]
        else:
            statements.append(s)
    return locals_, statements


def _expanded(x: Local, loop: Loop) -> Local:
    if not isinstance(x.size, int):
        raise Refused(f"{x.name} has {x.size} elements in each iteration, which is not constant")
    size = x.size * _constant(loop)
    if size > MAX_LOCAL:
        raise Refused(f"{x.name} would have {size} elements; allowed: up to {MAX_LOCAL}")
    return Local(x.name, size, x.dtype, "stack")


def _join(body: Block, step: Join) -> Block:
    first, second = _loop(body, step.first), _loop(body, step.second)
    owner = next((x for x in walk(body) if isinstance(x, Loop | Guard) and _holds(x.body, first, second)), None)
    block = body if owner is None else owner.body
    if not _holds(block, first, second):
        raise Refused(f"{step.second} does not follow {step.first}")
    if E.as_expr(first.extent) is not E.as_expr(second.extent):
        raise Refused(f"{step.first} has {first.extent} iterations and {step.second} has {second.extent}")
    if first.kind != second.kind:
        raise Refused(f"{step.first} is {first.kind} and {step.second} is {second.kind}")
    moved = substitute(second.body, {second.axis: first.axis})
    for a, b in conflicts(accesses(first.body), accesses(moved)):
        if not separates(first.axis, a, b):
            raise Refused(_depends(a.place, b.place))
    joined = Loop(first.axis, first.extent, first.kind, raised((*first.body, *moved)))
    new = _beside(raised(block), first, second, joined)
    return new if owner is None else replace_statement(body, owner, (with_body(owner, new),))


def _holds(block: Block, first: Loop, second: Loop) -> bool:
    """Whether both loops are statements of the block, in this order, apart from the locals around them."""
    found = [s for s in _within_locals(block) if s is first or s is second]
    return len(found) == 2 and found[0] is first


def _within_locals(block: Block) -> Iterator[Statement]:
    """The statements of a block and of the allocations in it."""
    for s in block:
        if isinstance(s, Allocate):
            yield from _within_locals(s.body)
        else:
            yield s


def _beside(block: Block, first: Loop, second: Loop, joined: Loop) -> Block:
    """The block with `joined` in place of the two loops. Each statement between them moves before or behind, as conflicts allow."""
    if len(block) == 1 and isinstance(block[0], Allocate):
        return (with_body(block[0], _beside(block[0].body, first, second, joined)),)
    at, to = (next(k for k, s in enumerate(block) if s is x) for x in (first, second))
    before: list[Statement] = []
    behind: list[Statement] = []
    for s in block[at + 1 : to]:
        if not _conflict((s,), (first, *behind)):
            before.append(s)
        elif not _conflict((s,), (second,)):
            behind.append(s)
        else:
            raise Refused(f"{second.axis.name} does not follow {first.axis.name}: a statement between them needs both orders")
    return (*block[:at], *before, joined, *behind, *block[to + 1 :])


def _conflict(first: Block, second: Block) -> bool:
    return bool(conflicts(accesses(first), accesses(second)))


# -- reductions ----------------------------------------------------------------------------------------------------
def _lanes(body: Block, step: Lanes) -> Block:
    chain = _around(body, _loop(body, step.axis))
    return replace_statement(body, chain[0], in_lanes(body, chain, step.lanes, step.block))


def _around(body: Block, loop: Loop) -> list[Loop]:
    """The loops that end in `loop`, each the whole body of the one before."""
    chain = [loop]
    parents = {id(s): x for x in walk(body) if isinstance(x, Loop) for s in x.body if len(x.body) == 1}
    while (parent := parents.get(id(chain[0]))) is not None:
        chain.insert(0, parent)
    return chain


def _columns(body: Block, step: Columns) -> Block:
    loop = _loop(body, step.axis)
    return replace_statement(body, loop, in_columns(body, loop, step.width, step.block))


def _stages(body: Block, step: Stages) -> Block:
    return in_stages(body, _loop(body, step.axis), step.size)


# -- memory --------------------------------------------------------------------------------------------------------
def _localise(kernel: Kernel, step: Localise) -> Kernel:
    """Each element of the buffers belongs to one iteration, so every iteration may have private memory for its elements."""
    loop = _loop(kernel.body, step.axis) if step.axis else None
    inside = kernel.body if loop is None else loop.body
    found = [_private(kernel, inside, loop, name) for name in step.buffers]
    moved = {x.name: (x.name, -start) for x, start in found}
    body = allocated([x for x, _ in found], rename_memory(inside, moved))
    left = {m: t for m, t in kernel.dtypes.items() if m not in moved or any(x.name == m and x.spill is not None for x, _ in found)}
    new = body if loop is None else replace_statement(kernel.body, loop, (with_body(loop, body),))
    return Kernel(new, left, kernel.temporary - moved.keys())


def _private(kernel: Kernel, inside: Block, loop: Loop | None, name: str) -> tuple[Local, E.Expr]:
    """The local for the elements of a buffer that one iteration uses, and the position of the first of them."""
    if name not in kernel.temporary:
        raise Refused(f"{name} is read after the kernel")
    found = [a for a in accesses(inside) if a.place.name == name]
    if loop is None:
        start = E.as_expr(0)
        return _part(name, kernel.dtypes[name], _extent(found, name), start), start
    if inside is not kernel.body and len(found) != sum([a.place.name == name for a in accesses(kernel.body)]):
        raise Refused(f"{name} is used outside of {loop.axis.name}")
    parts = {private_part(a, loop.axis) for a in found}
    if None in parts or len(parts) != 1:
        raise Refused(f"an element of {name} does not belong to one iteration of {loop.axis.name}")
    ((n, first),) = (part for part in parts if part is not None)
    start = first + E.mul(loop.axis, n)
    return _part(name, kernel.dtypes[name], n, start), start


def _extent(found: Sequence[Access], name: str) -> E.Expr:
    """A number of elements that holds all positions of the accesses."""
    ends = {E.at_most(a.place.index + 1) for a in found if not a.place.indirect}
    known = [e for e in ends if e is not None]
    if len(known) < len(ends) or any(a.place.indirect for a in found):
        raise Refused(f"the number of elements of {name} is not known")
    if not all(isinstance(e, E.Int) for e in known) and len(known) > 1:
        raise Refused(f"{name} is read at positions of which none is known to be the last")
    return max(known, key=lambda e: e.hi)


def _part(name: str, of: dtype, n: E.Expr, start: E.Expr) -> Local:
    """The local for `n` elements of a buffer, of which the first is at `start`."""
    if n.hi * of.itemsize <= ROW_BYTES:
        return Local(name, int(n.hi), of, "register" if n.hi == 1 else "stack")
    if isinstance(n, E.Int):
        raise Refused(f"the part of {name} in one iteration has {n} elements; allowed: up to {ROW_BYTES // of.itemsize}")
    return Local(name, n, of, "stack", Place(name, start))


# -- step by step ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scheduler:
    """A kernel and the steps that made it."""

    kernel: Kernel
    steps: list[Step]

    def attempt(self, step: Step) -> bool:
        """Perform a step if it is legal."""
        found = apply(self.kernel, (step,))
        if isinstance(found, Refusal):
            return False
        self.kernel = found
        self.steps.append(step)
        return True

    def attempt_all(self, *steps: Step) -> bool:
        """Perform several steps, if all of them are legal."""
        before = self.mark()
        if all(map(self.attempt, steps)):
            return True
        self.undo(before)
        return False

    def mark(self) -> tuple[Kernel, int]:
        """The present state, for `undo`."""
        return self.kernel, len(self.steps)

    def undo(self, mark: tuple[Kernel, int]) -> None:
        """Return to an earlier state."""
        self.kernel, count = mark
        del self.steps[count:]


def join_all(s: Scheduler, levels: int = MAX_JOINS) -> None:
    """Join neighbours at the root and then, level by level, the loops inside of them. levels: the most."""
    blocks = [(s.kernel.body, levels)]
    while blocks:
        block, levels = blocks.pop()
        if levels < 1:
            continue
        names = [x.axis.name for x in loops_in(block)][:MAX_JOINS]
        kept = names[:1]
        for name in names[1:]:
            if not s.attempt(Join(kept[-1], name)):
                kept.append(name)
        blocks += [(find_loop(s.kernel, name).body, levels - 1) for name in kept]


def fuse_axes(s: Scheduler, axes: list[str]) -> str:
    """One loop of the outer loops `axes`; its name."""
    name = axes[0]
    for other in axes[1:]:
        if not s.attempt(FuseAxes(name, other)):
            break
        name = f"{name}.{other}"
    return name


def merge_axes(s: Scheduler, axes: list[str]) -> None:
    """Make one loop of two neighbours where no index becomes harder to compute, from the inside out."""
    for k in range(len(axes) - 2, -1, -1):
        before = s.mark()
        if not s.attempt(FuseAxes(axes[k], axes[k + 1])):
            continue
        if hardness(s.kernel.body) > hardness(before[0].body):
            s.undo(before)
        else:
            axes[k] = f"{axes[k]}.{axes[k + 1]}"


def path_to(s: Scheduler, buffer: str, row: str) -> list[str]:
    """The loops from `row` inwards that each hold all uses of a buffer."""
    path, body = [row], find_loop(s.kernel, row).body if row else s.kernel.body
    while True:
        users = [x for x in loops_in(body) if uses_of((x,), buffer)]
        if len(users) != 1 or uses_of(body, buffer) != uses_of((users[0],), buffer):
            return path
        path.append(users[0].axis.name)
        body = users[0].body


def uses_of(block: Block, buffer: str) -> int:
    """The number of accesses of a block to a buffer."""
    return sum(a.place.name == buffer for a in accesses(block))


def hardness(block: Block) -> int:
    """The number of divisions and remainders in all index expressions, counted in each statement."""
    statements = walk(block)
    return ir.divisions([e for s in statements for e in (*(p.index for p in places_of(s)), *ir.expressions_in(values_of(s)))])
