"""The schedule that a kernel has on a GPU by default, chosen by rules: no kernel is run.

Programs run over a grid; each computes tiles. Outer loops become one loop over the grid, and inner loops become axes of tiles,
in blocks where they are long. Every rule tries steps in order, and leaves out the steps that `inductor.loops.apply` refuses. A loop that
no rule can spread stays a loop of one program, so the result is always legal.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.base.target import SM_90, Target
from inductor.ir import definitions as ir
from inductor.ir.sizes import nominal, product
from inductor.loops.apply import Scheduler, fuse_axes, join_all, merge_axes, path_to
from inductor.loops.reductions import most
from inductor.loops.steps import (
    Blocks,
    Descriptors,
    Expand,
    Localise,
    Mark,
    Partials,
    Parts,
    Persistent,
    Reorder,
    Schedule,
    Split,
)
from inductor.loops.tiles import LEAST_PRODUCT, tiles_of
from inductor.loops.tree import (
    Accumulate,
    Contract,
    Kernel,
    Kind,
    Loop,
    Store,
    chain_of,
    find_loop,
    loop_made_of,
    loops_in,
    values_of,
    walk,
)

SQUARE: Final = 32  # rows and columns of a tile of two axes
MATRIX_BYTES: Final = 4  # of the widest number that tiles are multiplied in
DEPTH_BYTES: Final = 128  # of a row of a block of an operand
THIN: Final = 32  # rows or columns of a block whose products take less time than its loads
THIN_DEPTH_BYTES: Final = 512  # of a row of such a block
# Blocks of products of 16-bit numbers (rows, columns, speed of a multiprocessor relative to the first) on a unit that multiplies tiles in
# shared memory. Larger blocks read their operands less often.
SHARED_BLOCKS: Final = ((128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.85), (64, 256, 0.75), (256, 64, 0.75), (64, 128, 0.6),
                        (128, 64, 0.6), (64, 64, 0.4))  # fmt: skip
TWICE: Final = 128 * 128  # most elements of a block whose sums a program holds twice: blocks of products of 8 bits are added to them
TOGETHER: Final = 8  # 16-bit numbers that one instruction loads or stores, at an aligned address
SHALLOW_BYTES: Final = 512  # of a row of an operand of a product that takes less time than its loads and stores
SHALLOW: Final = 128 * 64  # elements of a block of such a product, of which a multiprocessor holds several
GROUP: Final = 8  # blocks of rows that programs of one block of columns share: their operands stay in the last cache
PART: Final = 1 << 15  # most elements of one part of a reduction of everything
LEAST_PART: Final = 1 << 13  # fewest of them: a second kernel takes longer than to reduce these
SCATTERED_PART: Final = 64  # fewest of them that are read here and there
RESIDENT: Final = 4  # programs of a multiprocessor whose loads hide each other's latency
WASTE: Final = 6  # fewest elements of a loop for each element of its tiles that is outside of it
WHOLE: Final = 128  # elements of a row of a tile that divides a loop, where a longer row does not
FAR: Final = 16  # elements between two that are not in one cache line


class Choice(NamedTuple):
    """Sizes of tiles, of which the default fits most kernels.

    block: elements of a tile of pointwise loops. row: most elements of a reduced row that a program holds at once. reduced: elements of
    the partial results of a longer row. columns: rows of a program whose elements lie side by side in memory, by default a cache
    line of float32. product: rows, columns and depth of a block of a product; (0, 0, 0): chosen by its sizes. resident: programs of a
    multiprocessor that compute the blocks of a product in turn; 0: a program for each block. descriptors: whether blocks of the
    operands are copied by descriptors of matrices.
    """

    block: int = 1024
    row: int = 4096
    reduced: int = 2048
    columns: int = 32
    product: tuple[int, int, int] = (0, 0, 0)
    resident: int = 0
    descriptors: bool = False


DEFAULT: Final = Choice()


@dataclass(slots=True)
class _Scheduler(Scheduler):
    """kept: temporary buffers that stay in memory."""

    target: Target = SM_90
    kept: frozenset[str] = frozenset()
    choice: Choice = DEFAULT


def schedule_gpu(kernel: Kernel, target: Target = SM_90, choice: Choice = DEFAULT) -> tuple[Kernel, Schedule]:
    """The plain loops of a kernel as programs over tiles. Temporary buffers become registers where a tile holds them."""
    kept: frozenset[str] = frozenset()
    while True:
        s = _Scheduler(kernel, [], target, kept, choice)
        _products(s)
        join_all(s)
        if len([x for x in s.kernel.body if isinstance(x, Loop)]) != 1:
            _localise(s, "")
        for name in [x.axis.name for x in loops_in(s.kernel.body) if x.kind != "grid"]:
            _root(s, name)
        arrays = frozenset(name for name, axis in tiles_of(s.kernel.body).items() if axis is None)
        if not arrays:
            return s.kernel, tuple(s.steps)
        kept |= arrays & kernel.temporary
        if not arrays & kernel.temporary:
            raise AssertionError(f"gpu_schedule: {', '.join(sorted(arrays))} are neither tiles nor buffers")


def _products(s: _Scheduler) -> None:
    """Contractions in blocks; those with few rows or columns, and of float64, as reductions."""
    for x in [x for x in s.kernel.body if isinstance(x, Contract)]:
        rows, columns, _ = sizes_of(x)
        if s.choice.descriptors:
            s.attempt(Descriptors(x.name))
        size = s.choice.product if 0 not in s.choice.product else block_of(s.target, x)
        if min(rows, columns) < LEAST_PRODUCT or x.a.dtype.itemsize > MATRIX_BYTES or not s.attempt(Blocks(x.name, *size)):
            s.attempt(Expand(x.name))
        else:
            _grouped(s, f"{x.name}_m_o", f"{x.name}_n_o")
            if s.choice.resident:
                s.attempt(Persistent(x.name, s.choice.resident * s.target.cores))


def _grouped(s: _Scheduler, rows: str, columns: str) -> None:
    """Neighbouring programs share a few blocks of rows and of columns, where the blocks of rows divide into groups."""
    found = {x.axis.name: x for x in walk(s.kernel.body) if isinstance(x, Loop)}
    count = found[rows].extent if rows in found and columns in found else 1
    group = next((k for k in range(GROUP, 1, -1) if isinstance(count, int) and count % k == 0 and count > k), 1)
    if group > 1:
        s.attempt_all(Split(rows, group), Reorder(f"{rows}_i", columns))


def sizes_of(x: Contract) -> tuple[int, int, int]:
    """Rows, columns and depth of a contraction; the likely ones of symbolic sizes."""
    rows, columns, depth = (nominal(product(n for _, n in role)) for role in (x.axes.rows, x.axes.columns, x.axes.depth))
    return rows, columns, depth


def block_of(target: Target, x: Contract) -> tuple[int, int, int]:
    """Rows, columns and depth of the block whose programs take the least time together."""
    rows, columns, depth = sizes_of(x)
    groups = nominal(product(n for _, n in x.axes.batch))
    itemsize = itemsize_of(x)
    m, n = _most_product(target, itemsize, groups, rows, columns)
    if min(m, n) >= THIN and itemsize <= 2 and target.multiplies_shared and min(rows, columns) > THIN:
        most = _most_elements(x) if itemsize == 2 else min(_most_elements(x), TWICE)
        blocks = [(m, n) for m, n, _ in SHARED_BLOCKS if m * n <= most]
        m, n = min(blocks, key=lambda b: _time(target, b, groups, rows, columns))
    if min(m, n) < THIN:
        return m, n, max(least_depth(itemsize), min(THIN_DEPTH_BYTES // itemsize, 1 << max(depth - 1, 1).bit_length()))
    return m, n, max(least_depth(itemsize), min(_run(x), DEPTH_BYTES // itemsize, 1 << max(depth - 1, 1).bit_length()))


def _run(x: Contract) -> int:
    """Elements of a block of the depth: of one tap of a window, or half a block where the positions outside change along it."""
    most_depth = DEPTH_BYTES // itemsize_of(x)
    kind = _windows(x)
    if kind == "none":
        return most_depth
    last = x.axes.depth[-1][1]
    return last & -last if kind == "across depth" and isinstance(last, int) else most_depth // 2


def _most_elements(x: Contract) -> int:
    """Elements of a block for which registers suffice, with the positions of the operands and of results in unaligned rows."""
    largest, *_, smallest = (m * n for m, n, _ in SHARED_BLOCKS)
    by_windows = {"none": largest, "across depth": largest, "along depth": smallest}[_windows(x)]
    if sizes_of(x)[2] * itemsize_of(x) <= SHALLOW_BYTES:
        return min(by_windows, SHALLOW)
    return min(by_windows, largest // 2 if _reads_tiles(x) or not _has_aligned_rows(x) else largest)


def _has_aligned_rows(x: Contract) -> bool:
    """Whether each row of the results starts at an aligned address. Else elements are stored one by one."""
    places = [s.place for s in walk(x.body) if isinstance(s, Store)] or [x.place]
    for p in places:
        found = E.strides_of(p.index, list(p.index.symbols))
        steps = [step.value for step in found[0].values() if isinstance(step, E.Int)] if found else []
        if any(step != 1 and step % TOGETHER for step in steps):
            return False
    return True


def _reads_tiles(x: Contract) -> bool:
    """Whether the statements on a block of the result read another tensor's elements for each of its elements."""
    rows, columns = ({axis for axis, _ in role} for role in (x.axes.rows, x.axes.columns))
    loads = [load for s in walk(x.body) for v in values_of(s) for load in v.loads if load.buffer != x.place.name]
    return any(rows & load.index.symbols and columns & load.index.symbols for load in loads)


def _windows(x: Contract) -> Literal["none", "across depth", "along depth"]:
    """Whether windows leave an image, and whether the positions outside of it change along a block of the depth."""
    masks = [load.mask for v in (x.a, x.b) for load in ir.loads_in(v) if load.mask is not None]
    if not masks:
        return "none"
    last, n = x.axes.depth[-1] if x.axes.depth else (None, 1)
    is_across = isinstance(n, int) and n % LEAST_PRODUCT == 0 and not any(last in m.symbols for m in masks)
    return "across depth" if is_across else "along depth"


def _time(target: Target, block: tuple[int, int], groups: int, rows: int, columns: int) -> float:
    """Time of a product in blocks, relative to other blocks: rounds of one program a multiprocessor."""
    speed = next(speed for m, n, speed in SHARED_BLOCKS if (m, n) == block)
    programs = groups * -(-rows // block[0]) * -(-columns // block[1])
    return -(-programs // target.cores) * block[0] * block[1] / speed


def _most_product(target: Target, itemsize: int, groups: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of a block: as many as registers hold, fewer where the programs would be too few for the target."""
    most_elements = 128 if itemsize <= 2 and target.matrix_unit else 64
    m, n = (max(LEAST_PRODUCT, min(most_elements, 1 << (k - 1).bit_length())) for k in (rows, columns))
    while max(m, n) > 2 * LEAST_PRODUCT and groups * -(-rows // m) * -(-columns // n) < target.cores:
        m, n = (m // 2, n) if m >= n else (m, n // 2)
    return m, n


def least_depth(itemsize: int) -> int:
    """The least depth of a block that a matrix unit multiplies."""
    return LEAST_PRODUCT if itemsize > 1 else 2 * LEAST_PRODUCT


def itemsize_of(x: Contract) -> int:
    """Bytes of an element in memory of the operands of a contraction."""
    return max((load.dtype.itemsize for v in (x.a, x.b) for load in ir.loads_in(v)), default=4)


def _root(s: _Scheduler, name: str) -> None:
    """One loop nest at the root: a kernel."""
    chain = chain_of(find_loop(s.kernel, name))
    if any(isinstance(x, Accumulate) and x.places[0].name in s.kernel.dtypes for x in walk(chain[-1].body)) or _is_ordered(chain):
        _scatter(s, [x.axis.name for x in chain])
    elif not any(isinstance(x, Loop) for x in walk(chain[-1].body)):
        if any(isinstance(x, Accumulate) for x in walk(chain[-1].body)):
            _everything(s, [x.axis.name for x in chain])
        else:
            _pointwise(s, [x.axis.name for x in chain])
    else:
        _rows(s, [x.axis.name for x in chain])


# -- pointwise -----------------------------------------------------------------------------------------------------
def _pointwise(s: _Scheduler, axes: list[str]) -> None:
    """One axis in blocks, or tiles of two: where a load runs along one and the store along the other, or where one axis made of both
    would have harder positions, whose elements no thread loads together."""
    merge_axes(s, axes)
    chain = chain_of(loop_made_of(s.kernel, axes[0]))
    _localise(s, chain[0].axis.name)
    chain = chain_of(find_loop(s.kernel, chain[0].axis.name))
    names = [x.axis.name for x in chain]
    if len(chain) > 1 and _crosses(chain[-2], chain[-1]):
        _tiles(s, names, max(SQUARE, s.choice.block // _power(min(nominal(chain[-1].extent), s.choice.block))), SQUARE)
        return
    columns = _columns(chain[-1], s.choice.block) if len(chain) > 1 else 0
    whole = fuse_axes(s, names[:-1] if columns else names)
    if columns and whole == ".".join(names[:-1]):
        elements = nominal(product(x.extent for x in chain))
        _tiles(s, [whole, names[-1]], max(1, _block_of(s, elements, s.choice.block) // columns), columns)
    elif not columns and whole == ".".join(names):
        _blocks(s, whole, _block(s, whole, s.choice.block))
    else:
        _over_programs(s, chain_of(loop_made_of(s.kernel, names[0])))


def _power(n: int) -> int:
    """The least power of two that is not less than n."""
    return 1 << max(n - 1, 0).bit_length()


def _columns(loop: Loop, most_elements: int) -> int:
    """Elements of a row of a tile along the innermost loop: none or few of them are outside of the loop.

    0 if the loop is short, or if its rows start at addresses from which a thread cannot load several elements at once.
    """
    count = loop.extent
    if not isinstance(count, int) or count < SQUARE or count % TOGETHER:
        return 0
    size = _power(min(most_elements, count))
    exact = min(size, count & -count)
    if exact >= min(WHOLE, size):
        return exact
    while size > SQUARE and -(-count // size) * size * WASTE > count * (WASTE + 1):
        size //= 2
    return size


def _tiles(s: _Scheduler, names: list[str], rows: int, columns: int) -> None:
    """Tiles of the two innermost axes, over programs. The axes are marked before they are split: a block that is not full seems to
    overlap the next."""
    row, column = names[-2:]
    for axis in names:
        s.attempt(Mark(axis, "grid"))
    if rows > 1 and s.attempt(Split(row, rows)):
        row = f"{row}_i"
    if s.attempt(Split(column, columns)):
        if rows > 1:
            s.attempt(Reorder(row, f"{column}_o"))
        column = f"{column}_i"
    s.attempt(Mark(column, "lanes"))
    if rows > 1:
        s.attempt(Mark(row, "lanes"))


def _over_programs(s: _Scheduler, chain: list[Loop]) -> None:
    """The innermost of several axes in blocks, the others over the grid."""
    for x in chain[:-1]:
        s.attempt(Mark(x.axis.name, "grid"))
    _blocks(s, chain[-1].axis.name, _block(s, chain[-1].axis.name, s.choice.block), is_grid=False)


def _blocks(s: _Scheduler, axis: str, size: int, is_grid: bool = True) -> str:
    """An axis as tiles of `size`, each of a separate program if the loop is at the root. Result: the name of the loop of a tile."""
    outer, inner = axis, axis
    if s.attempt(Split(axis, size)):
        outer, inner = f"{axis}_o", f"{axis}_i"
    s.attempt(Mark(inner, "lanes"))
    if outer != inner and is_grid:
        s.attempt(Mark(outer, "grid"))
    return inner


def _block(s: _Scheduler, axis: str, most_elements: int) -> int:
    """The size of the tiles of an axis."""
    return _block_of(s, nominal(find_loop(s.kernel, axis).extent), most_elements)


def _block_of(s: _Scheduler, count: int, most_elements: int) -> int:
    """Elements of a tile, of `count` in all: fewer where the programs would be too few for the target."""
    size = most_elements
    while size > 4 * s.target.lanes and count < size * s.target.cores:
        size //= 2
    return size


def _crosses(outer: Loop, inner: Loop) -> bool:
    """Whether some load is contiguous along the outer loop and far apart along the inner one."""
    for x in walk(inner.body):
        for v in values_of(x):
            for load in ir.loads_in(v):
                split = None if load.indirect else E.strides_of(load.index, [outer.axis, inner.axis])
                if split is None:
                    continue
                along, across = (split[0][a] for a in (outer.axis, inner.axis))
                if isinstance(along, E.Int) and abs(along.value) == 1 and abs(nominal(across)) >= FAR:
                    return True
    return False


# -- rows ----------------------------------------------------------------------------------------------------------
def _rows(s: _Scheduler, axes: list[str]) -> None:
    """Outer loops around reductions or scans: rows over the grid, several at once where a row is short."""
    before = s.mark()
    row = fuse_axes(s, axes)
    if row == ".".join(axes) and _split_few_rows(s, row):
        return
    if row != ".".join(axes):  # the others stay outside
        _localise(s, row)
        _inner(s, chain_of(find_loop(s.kernel, row))[-1].axis.name, row)
        return
    _localise(s, row)
    inside = [x.axis.name for x in loops_in(find_loop(s.kernel, row).body)]
    widths = [_inner(s, name, row) for name in inside]
    width = max(widths, default=1)
    rows = 1 if width == 0 else max(1, s.choice.block // width)
    if rows > 1 and _is_column(find_loop(s.kernel, row)):
        rows = max(rows, s.choice.columns)
    count = nominal(find_loop(s.kernel, row).extent)
    while rows > 1 and count < rows * s.target.cores and not _is_column(find_loop(s.kernel, row)):
        rows //= 2
    if rows > 1:
        _blocks(s, row, rows)
    elif not s.attempt(Mark(row, "grid")) and len(axes) > 1:  # rows of one axis may write to one element, as far as is known
        s.undo(before)
        _separate_rows(s, axes)


def _separate_rows(s: _Scheduler, axes: list[str]) -> None:
    """Each of several outer loops over the grid."""
    _localise(s, axes[0])
    for x in loops_in(find_loop(s.kernel, axes[-1]).body):
        _inner(s, x.axis.name, axes[-1])
    for axis in axes:
        s.attempt(Mark(axis, "grid"))


def _split_few_rows(s: _Scheduler, row: str) -> bool:
    """Few rows of many elements in parts, so that every core has a program."""
    loop = find_loop(s.kernel, row)
    reduced = loops_in(loop.body)
    if len(reduced) != 1:
        return False
    is_column = _is_column(loop)
    programs = -(-nominal(loop.extent) // (s.choice.columns if is_column else 1))
    before = s.mark()
    axis = fuse_axes(s, [x.axis.name for x in chain_of(reduced[0])])
    elements = nominal(find_loop(s.kernel, axis).extent)
    parts = min(RESIDENT * s.target.cores // programs, elements // (s.choice.row // (s.choice.columns if is_column else 1)))
    size = -(-elements // max(parts, 1))
    if parts < 2 or not s.attempt(Parts(axis, 1 << (size - 1).bit_length())):
        s.undo(before)
        return False
    _part_rows(s, f"{axis}_p", f"{row}_p")
    _rows(s, [row])
    return True


def _part_rows(s: _Scheduler, part: str, row: str) -> None:
    """The rows of one part: blocks of them and the parts over the grid."""
    (inside,) = (x.axis.name for x in loops_in(find_loop(s.kernel, row).body))
    is_column = _is_column(find_loop(s.kernel, row))
    _inner(s, inside, row)
    outer = row
    if is_column and s.attempt(Split(row, s.choice.columns)):
        s.attempt(Mark(f"{row}_i", "lanes"))
        outer = f"{row}_o"
    s.attempt(Mark(part, "grid"))
    s.attempt(Mark(outer, "grid"))


def _inner(s: _Scheduler, name: str, row: str) -> int:
    """A loop of a row as an axis of tiles. Result: the elements of the tiles, 0 if the row has to be the only one of a program."""
    axes = [x.axis.name for x in chain_of(find_loop(s.kernel, name))]
    if len(axes) > 1:
        name = fuse_axes(s, axes)
        if name != ".".join(axes):
            return 0
    loop = find_loop(s.kernel, name)
    if any(isinstance(x, Loop) for x in walk(loop.body)):  # a kept axis around other reductions
        widths = [_inner(s, x.axis.name, row) for x in loops_in(loop.body)]
        if 0 not in widths:
            _blocks(s, name, max(1, s.choice.block // max(widths)), is_grid=False)
        return 0
    is_scan = _is_running(loop)
    kind: Kind = "scan" if is_scan else "lanes"
    is_column = _is_column(find_loop(s.kernel, row))
    limit = min(s.choice.row, s.choice.block) if is_scan else s.choice.row // (s.choice.columns if is_column else 1)
    width = most(loop.extent)
    if width <= limit and s.attempt(Mark(name, kind)):
        return 1 << max(width - 1, 0).bit_length()
    columns = s.choice.reduced // s.choice.columns if is_column else s.choice.reduced
    if not is_scan and any(isinstance(x, Accumulate) for x in walk(loop.body)) and s.attempt(Partials(name, columns)):
        return columns
    block = s.choice.block if is_scan or columns == s.choice.reduced else columns
    if s.attempt(Split(name, block)) and s.attempt(Mark(f"{name}_i", kind)):
        return block
    return 1


def _is_running(loop: Loop) -> bool:
    """Whether a loop stores running results."""
    kept = {p.name for x in walk(loop.body) if isinstance(x, Accumulate) for p in x.places}
    return any(x.buffer in kept for st in walk(loop.body) if isinstance(st, Store) for x in ir.loads_in(st.value))


def _is_column(row: Loop) -> bool:
    """Whether a program of several rows reads more contiguous elements than a program of one row.

    It does if the loads of the row's reductions are contiguous along the loop over rows as often as along a reduced loop. A load that
    is the same for all rows, or for all elements of a row, is short beside the others.
    """
    inside = [x for x in walk(row.body) if isinstance(x, Loop)]
    loads = {load for loop in inside for x in walk(loop.body) for v in values_of(x) for load in ir.loads_in(v) if not load.indirect}
    columns = rows = 0
    for load in loads:
        split = E.strides_of(load.index, [row.axis, *(x.axis for x in inside)])
        if split is None:
            continue
        across = abs(nominal(split[0][row.axis]))
        along = [abs(nominal(split[0][x.axis])) for x in inside]
        columns += across == 1 and max(along) > 1
        rows += across > 1 and 1 in along
    return columns > 0 and columns >= rows


def _everything(s: _Scheduler, axes: list[str]) -> None:
    """A reduction without rows: in parts if it is long, or if it reads elements here and there."""
    whole = fuse_axes(s, axes)
    size = _part(s, find_loop(s.kernel, whole))
    if nominal(find_loop(s.kernel, whole).extent) <= size or not s.attempt(Parts(whole, size)):
        _inner(s, whole, whole)
        return
    for name in (f"{whole}_h_p", f"{whole}_q"):  # the elements of a part, and the parts
        _inner(s, name, name)
    s.attempt(Mark(f"{whole}_p", "grid"))


def _part(s: _Scheduler, loop: Loop) -> int:
    """Elements of a part of a reduction of everything: so few that every multiprocessor has programs, but enough for a program.

    A multiprocessor finds the addresses of elements on different pages one after another, so a program reads few of them.
    """
    is_scattered = any(load.indirect for x in walk(loop.body) for v in values_of(x) for load in ir.loads_in(v))
    least = SCATTERED_PART if is_scattered else LEAST_PART
    wanted = -(-nominal(loop.extent) // (s.target.cores * (1 if is_scattered else RESIDENT)))
    return max(least, min(PART, 1 << max(wanted - 1, 0).bit_length()))


# -- writes where data says ----------------------------------------------------------------------------------------
def _scatter(s: _Scheduler, axes: list[str]) -> None:
    """Additions in any order if they can be atomic; otherwise in order, with the axes spread that never meet at an element."""
    before = s.mark()
    whole = fuse_axes(s, axes)
    if whole == ".".join(axes) and _spread(s, whole):
        return
    s.undo(before)
    last = axes[-1]
    split = s.attempt(Split(last, s.choice.block))
    inner = f"{last}_i" if split else last
    if not s.attempt(Mark(inner, "lanes")):
        s.undo(before)
        return
    if split and all(s.attempt(Reorder(outer, f"{last}_o")) for outer in reversed(axes[:-1])):
        s.attempt(Mark(f"{last}_o", "grid"))


def _spread(s: _Scheduler, axis: str) -> bool:
    """One axis in blocks over the grid, if its iterations have no order."""
    size = _block(s, axis, s.choice.block)
    split = s.attempt(Split(axis, size))
    if not s.attempt(Mark(f"{axis}_i" if split else axis, "lanes")):
        return False
    return not split or s.attempt(Mark(f"{axis}_o", "grid"))


def _is_ordered(chain: list[Loop]) -> bool:
    """Whether stores go where data says."""
    return any(isinstance(x, Store) and x.place.indirect for x in walk(chain[-1].body))


# -- locals --------------------------------------------------------------------------------------------------------
def _localise(s: _Scheduler, row: str) -> None:
    """Make each temporary buffer a local of the innermost loop that holds all its uses, or of a loop around that one.

    row: the outermost of these loops; "" is the whole kernel.
    """
    for buffer in sorted(s.kernel.temporary - s.kept):
        any(s.attempt(Localise((buffer,), outer)) for outer in reversed(path_to(s, buffer, row)) if outer)
