"""The schedule that a kernel has by default, chosen by rules: no kernel is run.

`schedule_step` is for groups of definitions, `schedule_product` for contractions, `schedule_recurrence` for recurrences,
`schedule_rows` for scans, `schedule_scatter` for scatters. Each tries steps in order. A step that `inductor.loops.apply` refuses
is left out, so that the result is always legal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, nominal, product
from inductor.loops import attention
from inductor.loops.apply import Refusal, Scheduler, apply, fuse_axes, join_all, merge_axes, path_to
from inductor.loops.build import build
from inductor.loops.narrow import comparison, rewrite
from inductor.loops.reductions import most
from inductor.loops.steps import (
    CacheRead,
    CacheWrite,
    Columns,
    Cut,
    Distribute,
    Expand,
    Follow,
    Interleave,
    Lanes,
    Localise,
    Mark,
    Reorder,
    ScanStages,
    Schedule,
    Share,
    Split,
    Stages,
    Step,
    Unmask,
)
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Contract,
    Kernel,
    Loop,
    Store,
    chain_of,
    find_loop,
    loop_made_of,
    loops_in,
    loops_of,
    values_of,
    walk,
)
from inductor.loops.unmask import masks_of
from inductor.plan.schedule import Nest

LANE_BYTES: Final = 64  # bytes of the running results of a reduction, side by side: at least one vector
FEWEST_LANES: Final = 4
CHAINED: Final = frozenset({"max", "min"})  # are comparisons and a choice, so that the next element waits long: two vectors side by side
LONG_CHAIN: Final = 16  # vectors of a row for which that is worth another step of the fold
CASCADE: Final = 16  # floats that a running sum adds before it is added to its compensated total
COLUMN_BYTES: Final = 8192  # most bytes of the running results of a group of columns: with two totals each they stay in the nearest cache
TILE_ROWS, TILE_COLUMNS = (64, 32, 16), (16, 8)  # iterations of a tile of two loops, the first that divides the loop
REGISTER_TILES: Final = (16, 8)  # iterations of each loop of a tile that is transposed in registers, the first that divides the loop
TILE_RUN: Final = 16  # most tiles that one thread transposes one after another along the lines that it reads
STREAMED: Final = 32 << 20  # fewest bytes of a result whose stores go past the caches: a cache of a machine may hold fewer
_WIDEST: Final = 8  # bytes of an element
STREAM_BLOCK, STREAM_LINE = 1024, 16  # most elements that are written to a local and from there past the caches, and a divisor of them
TILED: Final = 1 << 12  # fewest elements of loops that run in tiles
FAR: Final = 16  # elements between two that are not in one cache line
PARTS: Final = (128, 96, 64)  # elements of a part of the innermost loop that a scatter gives to one thread, the first that divides it
ATTENTION_QUERIES: Final = 64  # of a block
ATTENTION_BYTES: Final = 128 << 10  # of the tiles of scores of a block
ATTENTION_VECTORS: Final = 2  # vectors of queries whose maxima are computed side by side
STAGE: Final = 8192  # elements of one block of a reduction without rows
STAGED: Final = 1 << 15  # elements of a block of rows that one thread reduces
LEAST_ROWS: Final = 256  # of such a block
SCANNED: Final = 1 << 15  # elements of one block of a scan
UNMASKED: Final = 2  # fewest masks of a loop that a version without masks is printed for
SAMPLES: Final = (0.113, 0.271, 0.382, 0.539, 0.618, 0.757, 0.887)  # iterations that show whether masks hold, as parts of the extents
SIDE_BY_SIDE: Final = 2  # scans in one loop: more of them do not fit the ports for conversions, loads and stores
FEWEST_ROWS: Final = 4  # rows of scans that are enough for all threads
FEWEST_GROUPS: Final = 8  # groups of columns that are enough for all threads


def schedule_step(step: Nest, dtypes: Mapping[str, dtype], stored: Collection[str],
                  homes: Mapping[str, str] | None = None) -> tuple[Kernel, Schedule]:  # fmt: skip
    """The loops of a group of definitions. dtypes: of all buffers; stored: the results that must be in memory after the kernel.

    homes: the input in whose memory a result is computed, by name of the result. The loops name this memory as the result, so that
    dependences through it are seen.
    """
    memory = {n: dtypes[n] for m in step.members for n in m.reads}
    names = {m.name for m in step.members}
    same = {given: name for name, given in (homes or {}).items() if name in names}
    is_pointwise = all(isinstance(m.definition, ir.Pointwise) and m.definition.ranges == step.rows for m in step.members)
    kernel = build(step.members, memory, names - set(stored), () if is_pointwise or step.column else step.rows, same)
    return schedule_pointwise(kernel) if is_pointwise else schedule_nest(kernel, step.column)


def schedule_product(product: ir.Buffer, after: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], stored: Collection[str],
                     homes: Mapping[str, str] | None = None) -> tuple[Kernel, Schedule] | Refusal:  # fmt: skip
    """A contraction, followed on each of its blocks by the loops of `after`. For the other arguments see `schedule_step`.

    Result: a refusal if these loops cannot follow the contraction block by block.
    """
    members = [product, *after]
    names = {m.name for m in members}
    memory = {n: dtypes[n] for m in members for n in m.reads if n not in names}
    same = {given: name for name, given in (homes or {}).items() if name in names}
    s = Scheduler(build(members, memory, names - set(stored), (), same), [])
    join_all(s)
    loops = [x for x in s.kernel.body if isinstance(x, Loop)]
    for loop in loops:
        axes = [x.axis.name for x in chain_of(loop)]
        merge_axes(s, axes)
        _localise(s, chain_of(loop_made_of(s.kernel, axes[0]))[-1].axis.name, [product.name])
        step = Follow(product.name, loop_made_of(s.kernel, axes[0]).axis.name)
        found = apply(s.kernel, (step,))
        if isinstance(found, Refusal):
            return found
        s.attempt(step)
    if len(s.kernel.body) != 1 or not isinstance(s.kernel.body[0], Contract):
        return Refusal(Follow(product.name, ""), "only pointwise loops can follow a product block by block")
    any(s.attempt(Share(product.name, x.name)) for x in after)
    return s.kernel, tuple(s.steps)


def schedule_attention(buffers: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], vector_bytes: int) -> Kernel:
    """The loops of the results of one call of attention. dtypes: of all buffers."""
    d = buffers[0].definition
    assert isinstance(d, ir.Attention)
    size, (queries, keys, *_) = d.q.dtype.itemsize, d.sizes
    lanes = ATTENTION_VECTORS * vector_bytes // size
    tiles = 1 if d.given is None else 2
    rows = min(ATTENTION_QUERIES, -(-nominal(queries) // lanes) * lanes)
    most = ATTENTION_BYTES // (tiles * rows * size)
    blocks = attention.Blocks(rows, min(most, -(-nominal(keys) // lanes) * lanes) if isinstance(keys, int) else most, lanes)
    return attention.build(buffers, {n: dtypes[n] for b in buffers for n in b.reads}, blocks)


def schedule_recurrence(kernel: Kernel) -> tuple[Kernel, Schedule]:
    """The steps of a recurrence: loops over time stay in order, and inside of them contractions take the loops that follow them."""
    s = Scheduler(kernel, [])
    join_all(s)
    for block in _timed(s.kernel.body):
        names = [x.name if isinstance(x, Contract) else x.axis.name for x in block if isinstance(x, Contract | Loop)]
        before = ""
        for name in names:
            loop = loops_of(s.kernel.body).get(name)
            if loop is None:
                before = name
            elif not _is_timed(loop):
                merge_axes(s, [x.axis.name for x in chain_of(loop)])
                made = loop_made_of(s.kernel, name).axis.name
                if not before or not s.attempt(Follow(before, made)):
                    _shape(s, made)
                before = ""
    return s.kernel, tuple(s.steps)


def _is_timed(loop: Loop) -> bool:
    return any(isinstance(x, Contract) for x in walk(loop.body))


def _timed(block: Block) -> list[Block]:
    """The block and the bodies of its loops that hold contractions."""
    return [block, *(inner for x in block if isinstance(x, Loop) and _is_timed(x) for inner in _timed(x.body))]


def expand_product(kernel: Kernel, product: str) -> tuple[Kernel, Schedule]:
    """A contraction as plain loops, scheduled as a reduction: for operands that no core takes."""
    step = Expand(product)
    made = apply(kernel, (step,))
    assert not isinstance(made, Refusal)
    made, steps = schedule_nest(made, is_column=False)
    return made, (step, *steps)


def schedule_pointwise(kernel: Kernel) -> tuple[Kernel, Schedule]:
    """Loops without reductions: joined where possible, with few axes, the innermost one vectorised and the others parallel.

    Every temporary buffer that fits becomes a local.
    """
    s = Scheduler(kernel, [])
    join_all(s)
    roots = [x.axis.name for x in s.kernel.body if isinstance(x, Loop)]
    for name in roots:
        _shape(s, name)
    if not roots:  # buffers of one element
        _localise(s, "")
    return s.kernel, tuple(s.steps)


def schedule_nest(kernel: Kernel, is_column: bool) -> tuple[Kernel, Schedule]:
    """Loops with reductions: common outer axes are rows that run in parallel, and the buffers of a row are local to it.

    is_column: the loops reduce an outer axis while their innermost axis is contiguous in memory.
    """
    s = Scheduler(kernel, [])
    join_all(s)
    if not is_column and (len(s.kernel.body) != 1 or not isinstance(s.kernel.body[0], Loop)):  # no row
        _localise(s, "")
    for loop in loops_in(s.kernel.body):
        if is_column:
            _columns(s, loop.axis.name)
        elif any(loop is x for x in s.kernel.body):
            _rows(s, loop.axis.name)
        else:
            _everything(s, loop.axis.name)
    _stream(s)
    return s.kernel, tuple(s.steps)


def _stream(s: Scheduler) -> None:
    """Store results that are larger than the caches past them: a line that is stored whole is not read from memory before.

    For kernels that read a row, compute and then store it. In a loop that does all three, memory reads the lines meanwhile.
    """
    large = [(loop, count) for loop, count in _vector_loops(s.kernel.body, 1) if count * _WIDEST >= STREAMED]
    read = {x.buffer for st in walk(s.kernel.body) for v in values_of(st) for x in v.loads} if large else set()
    for loop, count in large:
        stored = [x for x in loop.body if isinstance(x, Store) and x.place.name in s.kernel.dtypes and x.place.name not in read]
        if len(stored) < len(loop.body) or not all(count * x.value.dtype.itemsize >= STREAMED for x in stored):
            continue
        name, extent = loop.axis.name, loop.extent
        assert isinstance(extent, int)
        size = next((n for n in range(min(STREAM_BLOCK, extent), STREAM_LINE - 1, -1) if extent % n == 0 and n % STREAM_LINE == 0), 0)
        if size == extent:
            s.attempt(CacheWrite(name))
        elif size:
            s.attempt_all(Mark(name, "serial"), Split(name, size), Mark(f"{name}_i", "vector"), CacheWrite(f"{name}_i"))


def _vector_loops(block: Block, times: int) -> Iterator[tuple[Loop, int]]:
    """The vector loops of known extent, and the iterations of each with the loops around it."""
    for x in block:
        if isinstance(x, Allocate):
            yield from _vector_loops(x.body, times)
        elif isinstance(x, Loop) and isinstance(x.extent, int):
            if x.kind != "vector":
                yield from _vector_loops(x.body, times * x.extent)
            elif not any(isinstance(y, Loop) for y in x.body):
                yield x, times * x.extent


def _rows(s: Scheduler, name: str) -> None:
    """A loop over rows: one parallel loop, with the loops of a row inside."""
    chain = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    if not any(isinstance(x, Loop) for x in walk(find_loop(s.kernel, chain[-1]).body)) and len(chain) > 1:
        chain.pop()  # no reduction: the innermost loop is the loop of a row
    row = fuse_axes(s, chain)
    _localise(s, row)
    for loop in loops_in(find_loop(s.kernel, row).body):
        _inner(s, loop.axis.name)
    s.attempt(Mark(row, "parallel"))


def _localise(s: Scheduler, row: str, apart: Collection[str] = ()) -> None:
    """Make each temporary buffer a local of the innermost loop that holds all its uses, or of a loop around that one.

    row: the outermost of these loops; "" is the whole kernel. apart: temporary buffers that stay.
    """
    groups: dict[str, list[str]] = {}
    for buffer in sorted(s.kernel.temporary.difference(apart)):
        groups.setdefault(path_to(s, buffer, row)[-1], []).append(buffer)
    for axis, buffers in groups.items():
        if not s.attempt(Localise(tuple(buffers), axis)):
            for buffer in buffers:
                any(s.attempt(Localise((buffer,), outer)) for outer in reversed(path_to(s, buffer, row)))


def _inner(s: Scheduler, name: str) -> None:
    """A loop of a row: few axes, and vectors or lanes innermost."""
    axes = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    merge_axes(s, axes)
    chain = chain_of(loop_made_of(s.kernel, name))
    last = chain[-1]
    inside = loops_in(last.body)
    if inside:
        for loop in inside:
            _inner(s, loop.axis.name)
    elif any(isinstance(x, Accumulate) for x in walk(last.body)):
        _lanes(s, last)
    else:
        for axis in _pieces(s, last.axis.name):
            s.attempt(Mark(axis, "vector"))


def _lanes(s: Scheduler, loop: Loop, cascade: int = CASCADE) -> None:
    """Running results side by side, as many as fill a vector and the loop. cascade: values that a running sum adds."""
    found = [x for x in walk(loop.body) if isinstance(x, Accumulate)]
    lanes = LANE_BYTES // min([v.dtype.itemsize for x in found for v in x.values])
    if all(x.combine in CHAINED for x in found) and isinstance(loop.extent, int) and loop.extent >= LONG_CHAIN * lanes:
        lanes *= 2
    if isinstance(loop.extent, int) and loop.extent < lanes:
        lanes = 1 << (loop.extent.bit_length() - 1)
    if lanes >= FEWEST_LANES:
        s.attempt(Lanes(loop.axis.name, lanes, cascade))


def _everything(s: Scheduler, name: str) -> None:
    """A reduction without rows: in stages if it is long."""
    axes = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    count = product(x.extent for x in chain_of(find_loop(s.kernel, name)))
    if isinstance(count, int) and count <= 2 * STAGE:
        _inner(s, name)
        return
    merge_axes(s, axes)
    whole = fuse_axes(s, [x.axis.name for x in chain_of(loop_made_of(s.kernel, name))])
    if s.attempt(Stages(whole, STAGE)):
        _lanes(s, find_loop(s.kernel, f"{whole}_i_s"))
    else:
        _inner(s, whole)


def _columns(s: Scheduler, name: str) -> None:
    """Groups of columns in parallel, each over all reduced rows; blocks of rows in parallel if there are few groups."""
    chain = chain_of(find_loop(s.kernel, name))
    for loop in loops_in(chain[-1].body):
        merge_axes(s, [x.axis.name for x in chain_of(loop)])
    axes, last = [x.axis.name for x in chain], chain[-1]
    bytes_of_column = sum(v.dtype.itemsize for x in walk(last.body) if isinstance(x, Accumulate) for v in x.values)
    width = min(COLUMN_BYTES // bytes_of_column, most(last.extent))
    groups = product((*(x.extent for x in chain[:-1]), ceildiv(last.extent, width)))
    (row, *_), count = loops_in(find_loop(s.kernel, axes[-1]).body), product(x.extent for x in chain)
    if isinstance(groups, int) and isinstance(count, int) and groups < FEWEST_GROUPS:
        size = max(STAGED // count, LEAST_ROWS)
        if most(row.extent) >= 2 * size and s.attempt(Stages(row.axis.name, size)):
            s.attempt(Columns(f"{axes[-1]}_s", width, CASCADE))
    if not s.attempt(Columns(axes[-1], width, CASCADE)):
        _rows(s, name)
        return
    group = f"{axes[-1]}_o"
    outer = [*axes[:-1], *([group] if any(x.axis.name == group for x in walk(s.kernel.body) if isinstance(x, Loop)) else [])]
    if outer:
        s.attempt(Mark(outer[0], "parallel"))
        fuse_axes(s, outer)


def schedule_rows(kernel: Kernel, threads: int) -> tuple[Kernel, Schedule]:
    """Loops whose inner axis keeps its order, such as scans: the outer axes run in parallel, or blocks of the inner one.

    Blocks read everything twice, so that one thread runs without them.
    """
    s = Scheduler(kernel, [])
    for loop in loops_in(kernel.body):
        *rows_of, scan = [x for x in walk((loop,)) if isinstance(x, Loop)]
        rows = product(x.extent for x in rows_of)
        is_long = threads > 1 and most(rows) < FEWEST_ROWS and most(scan.extent) >= 2 * SCANNED
        if is_long and s.attempt(ScanStages(scan.axis.name, SCANNED)):
            _lanes(s, find_loop(s.kernel, f"{scan.axis.name}_i_s"), cascade=1)  # a state before a block is as exact as a state within it
        elif any(loop is x for x in s.kernel.body):
            row = fuse_axes(s, [x.axis.name for x in chain_of(loop)])
            paired = most(rows) >= FEWEST_ROWS * SIDE_BY_SIDE and s.attempt(Interleave(row, SIDE_BY_SIDE))
            s.attempt(Mark(f"{row}_o" if paired else row, "parallel"))
    return s.kernel, tuple(s.steps)


def schedule_scatter(kernel: Kernel) -> tuple[Kernel, Schedule]:
    """Loops that write where data says, so that they keep their order.

    Where the innermost loop alone moves along the written memory, its iterations never write one element twice: parts of it run in
    parallel, each through all outer loops in order.
    """
    s = Scheduler(kernel, [])
    for loop in [x for x in kernel.body if isinstance(x, Loop)]:
        chain = [x.axis.name for x in chain_of(loop)]
        last = chain_of(loop)[-1]
        size = next((n for n in PARTS if isinstance(last.extent, int) and last.extent % n == 0 and last.extent >= 2 * n), 0)
        name = last.axis.name
        if not size or not s.attempt(Split(name, size)):
            s.attempt(Mark(name, "vector"))
            continue
        if s.attempt(Mark(f"{name}_i", "vector")) and all(s.attempt(Reorder(outer, f"{name}_o")) for outer in reversed(chain[:-1])):
            s.attempt(Mark(f"{name}_o", "parallel"))
    return s.kernel, tuple(s.steps)


def _shape(s: Scheduler, name: str) -> None:
    """Merge the axes of one loop nest, make its locals and mark its loops."""
    merge_axes(s, [x.axis.name for x in chain_of(find_loop(s.kernel, name))])
    chain = chain_of(loop_made_of(s.kernel, name))
    _localise(s, chain[0].axis.name)
    outer, inner = [x.axis.name for x in chain[:-1]], chain[-1].axis.name
    if not outer:
        if not s.attempt(Mark(inner, "parallel")):
            s.attempt(Mark(inner, "vector"))
        return
    if _is_read_across(chain[-2], chain[-1]):
        tiled = _register_tiles(s, outer, chain[-2], chain[-1]) or _tile(s, outer, chain[-2], chain[-1])
        if tiled:
            for loops in tiled:
                s.attempt(Mark(loops[0], "parallel"))  # positions of fused loops are quotients and remainders, which prove less
                fuse_axes(s, loops)
            return
    pieces = [*_pieces(s, inner)]
    for axis in pieces:
        s.attempt(Mark(axis, "vector"))
    s.attempt(Mark(fuse_axes(s, outer), "parallel"))
    for axis in pieces:
        if _is_mostly_unmasked(s, axis):
            s.attempt(Unmask(axis))


def _is_mostly_unmasked(s: Scheduler, axis: str) -> bool:
    """Whether several masks are the same in each iteration of a loop, and all hold in most iterations of the loops around it."""
    masks = masks_of(find_loop(s.kernel, axis))
    if len(masks) < UNMASKED:
        return False
    extents = {x.axis: nominal(x.extent) for x in loops_of(s.kernel.body).values()}
    found = 0
    for part in SAMPLES:
        point: dict[E.Expr, E.IntLike] = {x: int(n * part) for x, n in extents.items()}
        found += all(isinstance(v, ir.Const) and bool(v.value) for v in rewrite(masks, point))
    return 2 * found > len(SAMPLES)


def _is_read_across(outer: Loop, inner: Loop) -> bool:
    """Whether two large loops have a load that runs along the outer one while the store runs along the inner one."""
    if not isinstance(outer.extent, int) or not isinstance(inner.extent, int) or outer.extent * inner.extent < TILED:
        return False
    return bool(_across(outer, inner))


def _across(outer: Loop, inner: Loop) -> list[ir.Load]:
    loads = [x for st in walk(inner.body) for v in values_of(st) for x in v.loads]
    return list(dict.fromkeys([x for x in loads if _runs_along(x, outer, inner)]))


def _register_tiles(s: Scheduler, outer: list[str], row: Loop, column: Loop) -> list[list[str]]:
    """Tiles that are transposed in registers, each by one copy to a local, and separate loops for the rows and columns that fill none.

    outer: the loops around `column`, the last of which is `row`. Result: groups of loops to run in parallel; none if no tiles are made.
    """
    i, j = row.axis.name, column.axis.name
    loads = _across(row, column)
    assert isinstance(row.extent, int) and isinstance(column.extent, int)
    if min(row.extent, column.extent) < 2 * REGISTER_TILES[-1] or any(x.dtype.itemsize not in (4, 8) for x in loads):
        return []
    rows, columns = (next((n for n in REGISTER_TILES if x.extent % n == 0), REGISTER_TILES[-1]) for x in (row, column))
    rest_rows, rest_columns = row.extent % rows, column.extent % columns
    steps: list[Step] = [Split(j, columns, "peel" if rest_columns else "guard")]
    steps += [Distribute(i)] if rest_columns else []
    steps += [Split(i, rows, "peel" if rest_rows else "guard"), Reorder(f"{i}_i", f"{j}_o")]
    is_copy = any(isinstance(x, Store) and x.value in loads for x in column.body) and len(column.body) == 1
    copied = [] if is_copy else list(dict.fromkeys([x.buffer for x in loads]))
    steps += [CacheRead(buffer, f"{i}_i") for buffer in copied]
    vectors = [f"{buffer}_{i}_i_1" for buffer in copied]
    vectors += [f"{j}_t"] if rest_columns > 1 else []
    vectors += [f"{j}_i_t"] if rest_rows else []
    size = product(find_loop(s.kernel, name).extent for name in (*outer, j))
    is_streamed = is_copy and isinstance(size, int) and size * loads[0].dtype.itemsize >= STREAMED
    run, moves = _runs_of_tiles(i, j, row.extent // rows)
    marks = [Mark(f"{j}_i", "streamed" if is_streamed else "vector"), *(Mark(name, "vector") for name in vectors)]
    if not _all(s, [*steps, *moves, *marks]):
        return []
    if len(outer) > 1 and (rest_rows or rest_columns):
        return [outer[:-1]]
    return [[*outer[:-1], *run], *([[f"{i}_t"]] if rest_rows else []), *([[f"{i}_1"]] if rest_columns else [])]


def _runs_of_tiles(i: str, j: str, count: int) -> tuple[list[str], list[Step]]:
    """Steps after which tiles follow one another along the lines that they read, in runs: the loads of a run are one stream for each
    line, and the cache lines that they load are used up. Otherwise each load is in another page of memory.

    i, j: the loops of a tile. count: tiles along i. Result: the loops around a run, and the steps.
    """
    length = next(n for n in range(TILE_RUN, 0, -1) if count % n == 0)
    if length == 1:
        return [f"{i}_o"], []
    if length == count:
        return [f"{j}_o"], [Reorder(f"{i}_o", f"{j}_o")]
    return [f"{i}_o_o", f"{j}_o"], [Split(f"{i}_o", length), Reorder(f"{i}_o_i", f"{j}_o")]


def _all(s: Scheduler, steps: Sequence[Step]) -> bool:
    """Perform all steps, or none if one is refused."""
    before, done = s.kernel, len(s.steps)
    if all(s.attempt(step) for step in steps):
        return True
    s.kernel, s.steps = before, s.steps[:done]
    return False


def _tile(s: Scheduler, outer: list[str], row: Loop, column: Loop) -> list[list[str]]:
    """Tiles of two loops: the cache lines that a tile loads are used up before they leave the nearest cache.

    outer: the loops around `column`, the last of which is `row`. Result: groups of loops to run in parallel; none if no tiles are made.
    """
    assert isinstance(row.extent, int) and isinstance(column.extent, int)
    rows = next((n for n in TILE_ROWS if row.extent % n == 0), 0)
    columns = next((n for n in TILE_COLUMNS if column.extent % n == 0), 0)
    if not rows or not columns:
        return []
    first = i = row.axis.name
    if rows < row.extent and s.attempt(Split(i, rows)):
        first, i = f"{i}_o", f"{i}_i"
    j = column.axis.name
    if columns < column.extent and s.attempt(Split(j, columns)):
        if s.attempt(Reorder(i, f"{j}_o")) and first == i:
            first = f"{j}_o"
        j = f"{j}_i"
    s.attempt(Mark(j, "vector"))
    return [[*outer[:-1], first]]


def _runs_along(x: ir.Load, outer: Loop, inner: Loop) -> bool:
    """Whether a load is contiguous along the outer loop and far apart along the inner one."""
    split = None if x.indirect else E.strides_of(x.index, [outer.axis, inner.axis])
    if split is None:
        return False
    along, across = (split[0][a] for a in (outer.axis, inner.axis))
    return isinstance(along, E.Int) and abs(along.value) == 1 and isinstance(across, E.Int) and abs(across.value) >= FAR


# -- pieces of a pointwise loop --------------------------------------------------------------------------------------
# The code of joined, padded and cut tensors (`cat`, `pad`, the gradient of a slice) tests at every element which part it is in.
# Within a piece the result is known: the other branches disappear, and the ranges of the axis are narrow enough to simplify
# positions. If positions still divide the axis by one number, the piece runs in lines of that many elements, along which
# positions are linear.
MOST_PIECES: Final = 6
MOST_WORK: Final = 200  # most operations of all pieces together: code must not grow without bound
WORTHWHILE: Final = 16  # most elements of the longest piece
SHORTEST_LINE: Final = 8

# from c + these on, the comparison `axis <name> c` has another value
_TURNS: Final[dict[str, tuple[int, ...]]] = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}


def _pieces(s: Scheduler, axis: str) -> Iterator[str]:
    """The innermost loops after the cuts of a loop where its conditions change."""
    loop = find_loop(s.kernel, axis)
    values = [v for x in walk(loop.body) for v in values_of(x)]
    at = cuts(values, loop.axis, loop.extent) if isinstance(loop.extent, int) else ()
    if not at or not s.attempt(Cut(axis, at)):
        yield axis
        return
    for piece in [x for x in walk(s.kernel.body) if isinstance(x, Loop) and x.axis.name.startswith(f"{axis}_c")]:
        size = line([v for x in walk(piece.body) for v in values_of(x)], piece.axis, piece.extent)
        name = piece.axis.name
        yield f"{name}_i" if size and s.attempt(Split(name, size)) else name


def cuts(values: Sequence[ir.Value], axis: E.Expr, size: int) -> tuple[int, ...]:
    """The positions at which a loop over `size` is cut; empty if it should stay whole."""
    turns = sorted({t for v in ir.walk(values) if isinstance(v, ir.Op) and v.name in _TURNS for t in _turns(v, axis) if 0 < t < size})
    edges = [0, *turns, size]
    if not turns or len(turns) >= MOST_PIECES or max(b - a for a, b in pairwise(edges)) < WORTHWHILE:
        return ()
    if len(edges) * sum(isinstance(v, ir.Op | ir.Load) for v in ir.walk(values)) > MOST_WORK:
        return ()
    return tuple(turns)


def _turns(v: ir.Op, axis: E.Expr) -> list[int]:
    found = comparison(v)
    if found is None:
        return []
    name, e, c = found
    shift = e - axis
    return [c - shift.value + t for t in _TURNS[name]] if isinstance(shift, E.Int) else []


def line(values: Sequence[ir.Value], axis: E.Expr, size: Size) -> int:
    """The length of the lines in which a loop over `size` runs: the only number that positions divide the axis by; else 0."""
    pending = ir.expressions_in(values)
    divisors: set[int] = set()
    while pending:
        e = pending.pop()
        if isinstance(e, E.FloorDiv | E.Mod) and axis in e.symbols:
            if e.children[0] is not axis or not isinstance(e.children[1], E.Int):
                pending.extend(e.children)
                continue
            divisors.add(e.children[1].value)
        pending.extend(e.children)
    length = min(divisors, default=0)
    even = length >= SHORTEST_LINE and isinstance(size, int) and all(n % length == 0 for n in (*divisors, size))
    return length if even else 0


__all__ = [
    "expand_product",
    "schedule_attention",
    "schedule_nest",
    "schedule_pointwise",
    "schedule_product",
    "schedule_recurrence",
    "schedule_rows",
    "schedule_scatter",
    "schedule_step",
]
