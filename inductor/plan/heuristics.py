"""The schedule that a kernel has by default, chosen by rules: no kernel is run.

`schedule_step` is for groups of definitions, `schedule_product` for contractions, `schedule_recurrence` for recurrences,
`schedule_rows` for scans, `schedule_scatter` for scatters. Each tries steps in order. A step that `inductor.loops.apply` refuses
is left out, so that the result is always legal. The numbers that the rules compare with are an `inductor.base.choice.Choice`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.base.choice import DEFAULT, Choice
from inductor.ir import definitions as ir
from inductor.ir.masks import comparison
from inductor.ir.sizes import Size, ceildiv, nominal, product
from inductor.loops import attention
from inductor.loops.apply import Refusal, Scheduler, apply, fuse_axes, join_all, merge_axes, path_to
from inductor.loops.build import build
from inductor.loops.narrow import rewrite
from inductor.loops.reductions import most
from inductor.loops.staged_draws import CHUNK
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
    StageDraws,
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

FEWEST_LANES: Final = 4
CHAINED: Final = frozenset({"max", "min"})  # are comparisons and a choice, so that the next element waits long: two vectors side by side
LONG_CHAIN: Final = 16  # vectors of a row for which that is worth another step of the fold
CASCADE: Final = 16  # floats that a running sum adds before it is added to its compensated total
_WIDEST: Final = 8  # bytes of an element
STREAM_LINE: Final = 16  # divides the elements of a block whose stores go past the caches
TILED: Final = 1 << 12  # fewest elements of loops that run in tiles
FAR: Final = 16  # elements between two that are not in one cache line
ATTENTION_QUERIES: Final = 64  # of a block
ATTENTION_BYTES: Final = 128 << 10  # of the tiles of scores of a block
ATTENTION_VECTORS: Final = 2  # vectors of queries whose maxima are computed side by side
LEAST_ROWS: Final = 256  # of such a block
SAMPLES: Final = (0.113, 0.271, 0.382, 0.539, 0.618, 0.757, 0.887)  # iterations that show whether masks hold, as parts of the extents
FEWEST_DRAWN: Final = 32  # elements of a loop whose random words are drawn before it, in whole chunks
FEWEST_ROWS: Final = 4  # rows of scans that are enough for all threads


@dataclass(slots=True)
class _Scheduler(Scheduler):
    choice: Choice = DEFAULT


def schedule_step(step: Nest, dtypes: Mapping[str, dtype], stored: Collection[str],
                  homes: Mapping[str, str] | None = None, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:  # fmt: skip
    """The loops of a group of definitions. dtypes: of all buffers; stored: the results that must be in memory after the kernel.

    homes: the input in whose memory a result is computed, by name of the result. The loops name this memory as the result, so that
    dependences through it are seen.
    """
    memory = {n: dtypes[n] for m in step.members for n in m.reads}
    names = {m.name for m in step.members}
    same = {given: name for name, given in (homes or {}).items() if name in names}
    is_pointwise = all(isinstance(m.definition, ir.Pointwise) and m.definition.ranges == step.rows for m in step.members)
    kernel = build(step.members, memory, names - set(stored), () if is_pointwise or step.column else step.rows, same)
    return schedule_pointwise(kernel, choice) if is_pointwise else schedule_nest(kernel, step.column, choice)


def schedule_product(product: ir.Buffer, after: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], stored: Collection[str],
                     homes: Mapping[str, str] | None = None) -> tuple[Kernel, Schedule] | Refusal:  # fmt: skip
    """A contraction, followed on each of its blocks by the loops of `after`. For the other arguments see `schedule_step`.

    Result: a refusal if these loops cannot follow the contraction block by block.
    """
    members = [product, *after]
    names = {m.name for m in members}
    memory = {n: dtypes[n] for m in members for n in m.reads if n not in names}
    same = {given: name for name, given in (homes or {}).items() if name in names}
    s = _Scheduler(build(members, memory, names - set(stored), (), same), [])
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
    s = _Scheduler(kernel, [])
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


def schedule_pointwise(kernel: Kernel, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:
    """Loops without reductions: joined where possible, with few axes, the innermost one vectorised and the others parallel.

    Every temporary buffer that fits becomes a local.
    """
    s = _Scheduler(kernel, [], choice)
    join_all(s, s.choice.joins)
    roots = [x.axis.name for x in s.kernel.body if isinstance(x, Loop)]
    for name in roots:
        _shape(s, name)
    if not roots:  # buffers of one element
        _localise(s, "")
    _draw_ahead(s)
    return s.kernel, tuple(s.steps)


def schedule_nest(kernel: Kernel, is_column: bool, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:
    """Loops with reductions: common outer axes are rows that run in parallel, and the buffers of a row are local to it.

    is_column: the loops reduce an outer axis while their innermost axis is contiguous in memory.
    """
    s = _Scheduler(kernel, [], choice)
    join_all(s, s.choice.joins)
    if not is_column and (len(s.kernel.body) != 1 or not isinstance(s.kernel.body[0], Loop)):  # no row
        _localise(s, "")
    for loop in loops_in(s.kernel.body):
        if is_column:
            _columns(s, loop.axis.name)
        elif any(loop is x for x in s.kernel.body):
            _rows(s, loop.axis.name)
        else:
            _everything(s, loop.axis.name)
    _draw_ahead(s)
    _stream(s)
    return s.kernel, tuple(s.steps)


def _draw_ahead(s: _Scheduler) -> None:
    """Draw the random words of innermost loops before the loops, or before blocks of them."""
    if dtypes.int64 not in s.kernel.dtypes.values():  # no state of a generator
        return
    loops = loops_of(s.kernel.body).values()
    for loop in [x for x in loops if x.kind in ("vector", "parallel") and _uses_random_words(x)]:
        name, extent, size = loop.axis.name, loop.extent, s.choice.drawn
        if isinstance(extent, int) and extent <= size:
            chains = [chain_of(x) for x in reversed(loops_of(s.kernel.body).values()) if x is loop or chain_of(x)[-1] is loop]
            long = [c[0].axis.name for c in chains if most(product(x.extent for x in c)) >= FEWEST_DRAWN]
            s.attempt(Mark(name, "vector"))
            any(s.attempt(StageDraws(axis)) for axis in long)
            continue
        if isinstance(extent, int):
            size = next((n for n in range(size, CHUNK - 1, -CHUNK) if extent % n == 0), size)
        tail: Literal["guard", "peel"] = "guard" if isinstance(extent, int) and extent % size == 0 else "peel"
        marks = [Mark(f"{name}_i", "vector"), *([Mark(f"{name}_o", "parallel")] if loop.kind == "parallel" else [])]
        if s.attempt_all(Mark(name, "serial"), Split(name, size, tail), StageDraws(f"{name}_i"), *marks) and tail == "peel":
            s.attempt(Mark(f"{name}_t", "vector"))
            if most(extent % size) >= FEWEST_DRAWN:
                s.attempt(StageDraws(f"{name}_t"))


def _uses_random_words(loop: Loop) -> bool:
    """Whether an innermost loop computes random words."""
    if any(isinstance(x, Loop) for x in walk(loop.body)):
        return False
    return any(isinstance(v, ir.Op) and v.name == "philox" for v in ir.walk([v for x in loop.body for v in values_of(x)]))


def _stream(s: _Scheduler) -> None:
    """Store results that are larger than the caches past them: a line that is stored whole is not read from memory before.

    For kernels that read a row, compute and then store it. In a loop that does all three, memory reads the lines meanwhile.
    """
    large = [(loop, count) for loop, count in _vector_loops(s.kernel.body, 1) if count * _WIDEST >= s.choice.streamed]
    read = {x.buffer for st in walk(s.kernel.body) for v in values_of(st) for x in v.loads} if large else set()
    for loop, count in large:
        stored = [x for x in loop.body if isinstance(x, Store) and x.place.name in s.kernel.dtypes and x.place.name not in read]
        if len(stored) < len(loop.body) or not all(count * x.value.dtype.itemsize >= s.choice.streamed for x in stored):
            continue
        name, extent = loop.axis.name, loop.extent
        assert isinstance(extent, int)
        most_elements = min(s.choice.stream_block, extent)
        size = next((n for n in range(most_elements, STREAM_LINE - 1, -1) if extent % n == 0 and n % STREAM_LINE == 0), 0)
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


def _rows(s: _Scheduler, name: str) -> None:
    """A loop over rows: one parallel loop, with the loops of a row inside."""
    chain = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    if not any(isinstance(x, Loop) for x in walk(find_loop(s.kernel, chain[-1]).body)) and len(chain) > 1:
        chain.pop()  # no reduction: the innermost loop is the loop of a row
    row = fuse_axes(s, chain)
    _localise(s, row)
    for loop in loops_in(find_loop(s.kernel, row).body):
        _inner(s, loop.axis.name)
    s.attempt(Mark(row, "parallel"))


def _localise(s: _Scheduler, row: str, apart: Collection[str] = ()) -> None:
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


def _inner(s: _Scheduler, name: str) -> None:
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


def _lanes(s: _Scheduler, loop: Loop, cascade: int = CASCADE) -> None:
    """Running results side by side, as many as fill a vector and the loop. cascade: values that a running sum adds."""
    found = [x for x in walk(loop.body) if isinstance(x, Accumulate)]
    lanes = s.choice.lane_bytes // min([v.dtype.itemsize for x in found for v in x.values])
    if all(x.combine in CHAINED for x in found) and isinstance(loop.extent, int) and loop.extent >= LONG_CHAIN * lanes:
        lanes *= 2
    if isinstance(loop.extent, int) and loop.extent < lanes:
        lanes = 1 << (loop.extent.bit_length() - 1)
    if lanes >= FEWEST_LANES:
        s.attempt(Lanes(loop.axis.name, lanes, cascade))


def _everything(s: _Scheduler, name: str) -> None:
    """A reduction without rows: in stages if it is long."""
    axes = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    count = product(x.extent for x in chain_of(find_loop(s.kernel, name)))
    if isinstance(count, int) and count <= 2 * s.choice.stage:
        _inner(s, name)
        return
    merge_axes(s, axes)
    whole = fuse_axes(s, [x.axis.name for x in chain_of(loop_made_of(s.kernel, name))])
    if s.attempt(Stages(whole, s.choice.stage)):
        _lanes(s, find_loop(s.kernel, f"{whole}_i_s"))
    else:
        _inner(s, whole)


def _columns(s: _Scheduler, name: str) -> None:
    """Groups of columns in parallel, each over all reduced rows; blocks of rows in parallel if there are few groups."""
    chain = chain_of(find_loop(s.kernel, name))
    for loop in loops_in(chain[-1].body):
        merge_axes(s, [x.axis.name for x in chain_of(loop)])
    axes, last = [x.axis.name for x in chain], chain[-1]
    bytes_of_column = sum(v.dtype.itemsize for x in walk(last.body) if isinstance(x, Accumulate) for v in x.values)
    width = min(s.choice.column_bytes // bytes_of_column, most(last.extent))
    groups = product((*(x.extent for x in chain[:-1]), ceildiv(last.extent, width)))
    (row, *_), count = loops_in(find_loop(s.kernel, axes[-1]).body), product(x.extent for x in chain)
    if isinstance(groups, int) and isinstance(count, int) and groups < s.choice.groups:
        size = max(s.choice.staged // count, LEAST_ROWS)
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


def schedule_rows(kernel: Kernel, threads: int, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:
    """Loops whose inner axis keeps its order, such as scans: the outer axes run in parallel, or blocks of the inner one.

    Blocks read everything twice, so that one thread runs without them.
    """
    s = _Scheduler(kernel, [], choice)
    for loop in loops_in(kernel.body):
        *rows_of, scan = [x for x in walk((loop,)) if isinstance(x, Loop)]
        rows = product(x.extent for x in rows_of)
        is_long = threads > 1 and most(rows) < FEWEST_ROWS and most(scan.extent) >= 2 * s.choice.scanned
        if is_long and s.attempt(ScanStages(scan.axis.name, s.choice.scanned)):
            _lanes(s, find_loop(s.kernel, f"{scan.axis.name}_i_s"), cascade=1)  # a state before a block is as exact as a state within it
        elif any(loop is x for x in s.kernel.body):
            row = fuse_axes(s, [x.axis.name for x in chain_of(loop)])
            width = s.choice.side_by_side
            paired = width > 1 and most(rows) >= FEWEST_ROWS * width and s.attempt(Interleave(row, width))
            s.attempt(Mark(f"{row}_o" if paired else row, "parallel"))
    return s.kernel, tuple(s.steps)


def schedule_scatter(kernel: Kernel, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:
    """Loops that write where data says, so that they keep their order.

    Where the innermost loop alone moves along the written memory, its iterations never write one element twice: parts of it run in
    parallel, each through all outer loops in order.
    """
    s = _Scheduler(kernel, [], choice)
    for loop in [x for x in kernel.body if isinstance(x, Loop)]:
        chain = [x.axis.name for x in chain_of(loop)]
        last = chain_of(loop)[-1]
        size = next((n for n in s.choice.parts if isinstance(last.extent, int) and last.extent % n == 0 and last.extent >= 2 * n), 0)
        name = last.axis.name
        if not size or not s.attempt(Split(name, size)):
            s.attempt(Mark(name, "vector"))
            continue
        if s.attempt(Mark(f"{name}_i", "vector")) and all(s.attempt(Reorder(outer, f"{name}_o")) for outer in reversed(chain[:-1])):
            s.attempt(Mark(f"{name}_o", "parallel"))
    return s.kernel, tuple(s.steps)


def _shape(s: _Scheduler, name: str) -> None:
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


def _is_mostly_unmasked(s: _Scheduler, axis: str) -> bool:
    """Whether several masks are the same in each iteration of a loop, and all hold in most iterations of the loops around it."""
    masks = masks_of(find_loop(s.kernel, axis))
    if len(masks) < s.choice.unmasked:
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


def _register_tiles(s: _Scheduler, outer: list[str], row: Loop, column: Loop) -> list[list[str]]:
    """Tiles that are transposed in registers, each by one copy to a local, and separate loops for the rows and columns that fill none.

    outer: the loops around `column`, the last of which is `row`. Result: groups of loops to run in parallel; none if no tiles are made.
    """
    i, j = row.axis.name, column.axis.name
    loads = _across(row, column)
    assert isinstance(row.extent, int) and isinstance(column.extent, int)
    sizes = s.choice.register_tiles
    if not sizes or min(row.extent, column.extent) < 2 * sizes[-1] or any(x.dtype.itemsize not in (4, 8) for x in loads):
        return []
    rows, columns = (next((n for n in sizes if x.extent % n == 0), sizes[-1]) for x in (row, column))
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
    is_streamed = is_copy and isinstance(size, int) and size * loads[0].dtype.itemsize >= s.choice.streamed
    run, moves = _runs_of_tiles(i, j, row.extent // rows, s.choice.tile_run)
    marks = [Mark(f"{j}_i", "streamed" if is_streamed else "vector"), *(Mark(name, "vector") for name in vectors)]
    if not _all(s, [*steps, *moves, *marks]):
        return []
    if len(outer) > 1 and (rest_rows or rest_columns):
        return [outer[:-1]]
    return [[*outer[:-1], *run], *([[f"{i}_t"]] if rest_rows else []), *([[f"{i}_1"]] if rest_columns else [])]


def _runs_of_tiles(i: str, j: str, count: int, most_tiles: int) -> tuple[list[str], list[Step]]:
    """Steps after which tiles follow one another along the lines that they read, in runs: the loads of a run are one stream for each
    line, and the cache lines that they load are used up. Otherwise each load is in another page of memory.

    i, j: the loops of a tile. count: tiles along i. most_tiles: of a run. Result: the loops around a run, and the steps.
    """
    length = next(n for n in range(most_tiles, 0, -1) if count % n == 0)
    if length == 1:
        return [f"{i}_o"], []
    if length == count:
        return [f"{j}_o"], [Reorder(f"{i}_o", f"{j}_o")]
    return [f"{i}_o_o", f"{j}_o"], [Split(f"{i}_o", length), Reorder(f"{i}_o_i", f"{j}_o")]


def _all(s: _Scheduler, steps: Sequence[Step]) -> bool:
    """Perform all steps, or none if one is refused."""
    before, done = s.kernel, len(s.steps)
    if all(s.attempt(step) for step in steps):
        return True
    s.kernel, s.steps = before, s.steps[:done]
    return False


def _tile(s: _Scheduler, outer: list[str], row: Loop, column: Loop) -> list[list[str]]:
    """Tiles of two loops: the cache lines that a tile loads are used up before they leave the nearest cache.

    outer: the loops around `column`, the last of which is `row`. Result: groups of loops to run in parallel; none if no tiles are made.
    """
    assert isinstance(row.extent, int) and isinstance(column.extent, int)
    rows = next((n for n in s.choice.tile_rows if row.extent % n == 0), 0)
    columns = next((n for n in s.choice.tile_columns if column.extent % n == 0), 0)
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
MOST_WORK: Final = 200  # most operations of all pieces together: code must not grow without bound
WORTHWHILE: Final = 16  # most elements of the longest piece
SHORTEST_LINE: Final = 8

# from c + these on, the comparison `axis <name> c` has another value
_TURNS: Final[dict[str, tuple[int, ...]]] = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}


def _pieces(s: _Scheduler, axis: str) -> Iterator[str]:
    """The innermost loops after the cuts of a loop where its conditions change."""
    loop = find_loop(s.kernel, axis)
    values = [v for x in walk(loop.body) for v in values_of(x)]
    at = cuts(values, loop.axis, loop.extent, s.choice.pieces) if isinstance(loop.extent, int) else ()
    if not at or not s.attempt(Cut(axis, at)):
        yield axis
        return
    for piece in [x for x in walk(s.kernel.body) if isinstance(x, Loop) and x.axis.name.startswith(f"{axis}_c")]:
        size = line([v for x in walk(piece.body) for v in values_of(x)], piece.axis, piece.extent)
        name = piece.axis.name
        yield f"{name}_i" if size and s.attempt(Split(name, size)) else name


def cuts(values: Sequence[ir.Value], axis: E.Expr, size: int, most_pieces: int = DEFAULT.pieces) -> tuple[int, ...]:
    """The positions at which a loop over `size` is cut; empty if it should stay whole."""
    turns = sorted({t for v in ir.walk(values) if isinstance(v, ir.Op) and v.name in _TURNS for t in _turns(v, axis) if 0 < t < size})
    edges = [0, *turns, size]
    if not turns or len(turns) >= most_pieces or max(b - a for a, b in pairwise(edges)) < WORTHWHILE:
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
