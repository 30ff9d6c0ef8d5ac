"""The schedule that a kernel has on a GPU by default, chosen by rules: no kernel is run.

Programs run over a grid; each computes tiles. Outer loops become one loop over the grid, and inner loops become axes of tiles,
in blocks where they are long. Every rule tries steps in order, and leaves out the steps that `inductor.loops.apply` refuses. A loop that
no rule can spread stays a loop of one program, so the result is always legal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fxir.expr import rules as E
from inductor.base.target import SM_90, Target
from inductor.ir import definitions as ir
from inductor.ir.sizes import nominal, product
from inductor.loops.apply import Scheduler, fuse_axes, join_all, merge_axes, path_to
from inductor.loops.reductions import most
from inductor.loops.steps import Blocks, Expand, Localise, Mark, Partials, Parts, Reorder, Schedule, Split
from inductor.loops.tiles import tiles_of
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

BLOCK: Final = 1024  # elements of a tile of pointwise loops
SQUARE: Final = 32  # rows and columns of a tile of two axes
ROW: Final = 4096  # most elements of a reduced row that a program holds at once
REDUCED: Final = 2048  # elements of the partial results of a longer row
COLUMNS: Final = 32  # rows of a program whose elements lie side by side in memory: a cache line of float32
LEAST_PRODUCT: Final = 16  # rows, columns and depth of a product of tiles
MATRIX_BYTES: Final = 4  # of the widest number that tiles are multiplied in
DEPTH_BYTES: Final = 128  # of a row of a block of an operand
PART: Final = 1 << 15  # elements of one part of a reduction of everything
FAR: Final = 16  # elements between two that are not in one cache line


@dataclass(slots=True)
class _Scheduler(Scheduler):
    """kept: temporary buffers that stay in memory."""

    target: Target = SM_90
    kept: frozenset[str] = frozenset()


def schedule_gpu(kernel: Kernel, target: Target = SM_90) -> tuple[Kernel, Schedule]:
    """The plain loops of a kernel as programs over tiles. Temporary buffers become registers where a tile holds them."""
    kept: frozenset[str] = frozenset()
    while True:
        s = _Scheduler(kernel, [], target, kept)
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
        name = x.name
        rows, columns, depth = (nominal(product(n for _, n in role)) for role in (x.axes.rows, x.axes.columns, x.axes.depth))
        groups = nominal(product(n for _, n in x.axes.batch))
        size = _block_of_product(s.target, x.a, groups, rows, columns)
        deep = max(LEAST_PRODUCT, min(DEPTH_BYTES // _itemsize(x.a), 1 << max(depth - 1, 1).bit_length()))
        if min(rows, columns) < LEAST_PRODUCT or x.a.dtype.itemsize > MATRIX_BYTES or not s.attempt(Blocks(name, *size, deep)):
            s.attempt(Expand(name))


def _block_of_product(target: Target, operand: ir.Value, groups: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of a block: as many as registers hold, fewer where the programs would be too few for the target."""
    most_elements = 128 if _itemsize(operand) == 2 and target.matrix_unit else 64
    m, n = (max(LEAST_PRODUCT, min(most_elements, 1 << (k - 1).bit_length())) for k in (rows, columns))
    while max(m, n) > 2 * LEAST_PRODUCT and groups * -(-rows // m) * -(-columns // n) < target.cores:
        m, n = (m // 2, n) if m >= n else (m, n // 2)
    return m, n


def _itemsize(operand: ir.Value) -> int:
    """Bytes of an element in memory of an operand of a contraction."""
    return max((x.dtype.itemsize for x in ir.loads_in(operand)), default=4)


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
    """One axis in blocks; two where a load runs along one and the store along the other."""
    merge_axes(s, axes)
    chain = chain_of(loop_made_of(s.kernel, axes[0]))
    _localise(s, chain[0].axis.name)
    chain = chain_of(find_loop(s.kernel, chain[0].axis.name))
    names = [x.axis.name for x in chain]
    if len(chain) > 1 and _crosses(chain[-2], chain[-1]):
        _square(s, names)
        return
    whole = fuse_axes(s, names)
    if whole != ".".join(names):
        _over_programs(s, chain_of(find_loop(s.kernel, whole)))
        return
    _blocks(s, whole, _block(s, whole, BLOCK))


def _square(s: _Scheduler, names: list[str]) -> None:
    """Tiles of the two innermost axes."""
    row, column = names[-2:]
    blocks = list(names[:-2])
    if s.attempt(Split(row, SQUARE)):
        blocks.append(f"{row}_o")
        row = f"{row}_i"
    if s.attempt(Split(column, SQUARE)):
        if s.attempt(Reorder(row, f"{column}_o")):
            blocks.append(f"{column}_o")
        column = f"{column}_i"
    s.attempt(Mark(column, "lanes"))
    s.attempt(Mark(row, "lanes"))
    for axis in blocks:
        s.attempt(Mark(axis, "grid"))


def _over_programs(s: _Scheduler, chain: list[Loop]) -> None:
    """The innermost of several axes in blocks, the others over the grid."""
    _blocks(s, chain[-1].axis.name, _block(s, chain[-1].axis.name, BLOCK), is_grid=False)
    for x in chain[:-1]:
        s.attempt(Mark(x.axis.name, "grid"))


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
    """The size of the tiles of an axis: fewer elements where the programs would be too few for the target."""
    count = nominal(find_loop(s.kernel, axis).extent)
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
    rows = 1 if width == 0 else max(1, BLOCK // width)
    if rows > 1 and _is_column(find_loop(s.kernel, row)):
        rows = max(rows, COLUMNS)
    count = nominal(find_loop(s.kernel, row).extent)
    while rows > 1 and count < rows * s.target.cores and not _is_column(find_loop(s.kernel, row)):
        rows //= 2
    if rows > 1:
        _blocks(s, row, rows)
    elif not s.attempt(Mark(row, "grid")):
        return


def _split_few_rows(s: _Scheduler, row: str) -> bool:
    """Few rows of many elements in parts, so that every core has a program."""
    loop = find_loop(s.kernel, row)
    reduced = loops_in(loop.body)
    if len(reduced) != 1:
        return False
    is_column = _is_column(loop)
    programs = -(-nominal(loop.extent) // (COLUMNS if is_column else 1))
    before = s.mark()
    axis = fuse_axes(s, [x.axis.name for x in chain_of(reduced[0])])
    elements = nominal(find_loop(s.kernel, axis).extent)
    parts = min(s.target.cores // programs, elements // (ROW // (COLUMNS if is_column else 1)))
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
    if is_column and s.attempt(Split(row, COLUMNS)):
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
            _blocks(s, name, max(1, BLOCK // max(widths)), is_grid=False)
        return 0
    is_scan = _is_running(loop)
    kind: Kind = "scan" if is_scan else "lanes"
    is_column = _is_column(find_loop(s.kernel, row))
    limit = min(ROW, BLOCK) if is_scan else ROW // (COLUMNS if is_column else 1)
    width = most(loop.extent)
    if width <= limit and s.attempt(Mark(name, kind)):
        return 1 << max(width - 1, 0).bit_length()
    columns = REDUCED // COLUMNS if is_column else REDUCED
    if not is_scan and any(isinstance(x, Accumulate) for x in walk(loop.body)) and s.attempt(Partials(name, columns)):
        return columns
    block = BLOCK if is_scan or columns == REDUCED else columns
    if s.attempt(Split(name, block)) and s.attempt(Mark(f"{name}_i", kind)):
        return block
    return 1


def _is_running(loop: Loop) -> bool:
    """Whether a loop stores running results."""
    kept = {p.name for x in walk(loop.body) if isinstance(x, Accumulate) for p in x.places}
    return any(x.buffer in kept for st in walk(loop.body) if isinstance(st, Store) for x in ir.loads_in(st.value))


def _is_column(row: Loop) -> bool:
    """Whether the loads of a row's reductions are contiguous along the loop over rows."""
    votes = 0
    for loop in (x for x in walk(row.body) if isinstance(x, Loop)):
        for x in walk(loop.body):
            for v in values_of(x):
                for load in ir.loads_in(v):
                    split = None if load.indirect else E.strides_of(load.index, [row.axis, loop.axis])
                    if split is None:
                        continue
                    across, along = (nominal(split[0][a]) for a in (row.axis, loop.axis))
                    votes += (abs(across) == 1 and abs(along) > 1) - (abs(along) == 1)
    return votes > 0


def _everything(s: _Scheduler, axes: list[str]) -> None:
    """A reduction without rows: in parts if it is long."""
    whole = fuse_axes(s, axes)
    if nominal(find_loop(s.kernel, whole).extent) <= PART or not s.attempt(Parts(whole, PART)):
        _inner(s, whole, whole)
        return
    for name in (f"{whole}_h_p", f"{whole}_q"):  # the elements of a part, and the parts
        _inner(s, name, name)
    s.attempt(Mark(f"{whole}_p", "grid"))


# -- writes where data says ----------------------------------------------------------------------------------------
def _scatter(s: _Scheduler, axes: list[str]) -> None:
    """Additions in any order if they can be atomic; otherwise in order, with the axes spread that never meet at an element."""
    before = s.mark()
    whole = fuse_axes(s, axes)
    if whole == ".".join(axes) and _spread(s, whole):
        return
    s.undo(before)
    last = axes[-1]
    split = s.attempt(Split(last, BLOCK))
    inner = f"{last}_i" if split else last
    if not s.attempt(Mark(inner, "lanes")):
        s.undo(before)
        return
    if split and all(s.attempt(Reorder(outer, f"{last}_o")) for outer in reversed(axes[:-1])):
        s.attempt(Mark(f"{last}_o", "grid"))


def _spread(s: _Scheduler, axis: str) -> bool:
    """One axis in blocks over the grid, if its iterations have no order."""
    size = _block(s, axis, BLOCK)
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
