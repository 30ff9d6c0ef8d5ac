"""The loops that run on a finished block of a contraction: some of its rows by some of its columns.

The body of a contraction runs once for each element. The loops around it run along the columns, which are contiguous in the
product. If the body stores along the rows, as in an image with channels first, the loops run along the rows, and the body reads the
product through small tiles, which a target can transpose in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, product
from inductor.ir.values import at_point, replace_loads
from inductor.loops.refusal import Refused
from inductor.loops.staged_draws import stage_draws
from inductor.loops.tree import (
    Block,
    Contract,
    Local,
    Loop,
    Place,
    Role,
    Statement,
    Store,
    allocated,
    repeat,
    substitute,
    values_of,
)

__all__ = ["C0", "C1", "PARAMETERS", "R0", "R1", "Finished", "counted", "finished_block", "runs_of"]

# The position in the batch, the first row of the block, the row after its last, and its columns likewise.
PARAMETERS: Final = ("batch", "r0", "r1", "c0", "c1")
R0, R1, C0, C1 = (E.sym(name, 0) for name in PARAMETERS[1:])
_TILE_COLUMNS: Final = 8
_TILE_BYTES: Final = 64  # of a row of a transposed tile: one line of the cache
_DRAWN: Final = 256  # columns whose random words are drawn at once
_FAR: Final = 8  # elements: a load with this stride reads a line of the cache for few elements
_TRANSPOSED: Final = (4, 8)  # bytes of the elements of tiles

_Range = tuple[E.Expr, E.Expr]


class Finished(NamedTuple):
    """body: over the symbols `PARAMETERS`. ranges: by axis, the first value and the value after the last of a loop over a part."""

    body: Block
    ranges: Mapping[str, _Range]


def finished_block(s: Contract) -> Finished:
    """The body of a contraction for the elements of one block."""
    moved: dict[E.Expr, E.IntLike] = {}
    counted("batch", s.axes.batch, moved)
    body = substitute(s.body, moved)
    return _along_rows(s, body) or _along_columns(s, body)


def counted(name: str, axes: Role, moved: dict[E.Expr, E.IntLike]) -> E.Expr:
    """One axis that counts through all values of `axes`, which `moved` then maps to it."""
    sizes = [n for _, n in axes]
    whole = ir.counter(name, product(sizes))
    moved.update({axis: at for (axis, _), at in zip(axes, ir.split_position(whole, sizes), strict=True)})
    return whole


def _inside(run: E.Expr, n: Size, first: E.Expr, last: E.Expr) -> _Range:
    """The part of run number `run`, of n elements, that lies in first..last-1."""
    return E.maximum(first - run * n, 0), E.minimum(last - run * n, n)


# -- along the columns ---------------------------------------------------------------------------------------------
def _along_columns(s: Contract, body: Block) -> Finished:
    """Rows around runs of the innermost column axis."""
    moved: dict[E.Expr, E.IntLike] = {}
    row = counted("row", s.axes.rows, moved)
    body, ranges = runs_of(s.axes.columns, substitute(body, moved))
    if isinstance(row, E.Sym):
        body = (Loop(row, product(n for _, n in s.axes.rows), "serial", body),)
        ranges[row.name] = (R0, R1)
    return Finished(body, ranges)


def runs_of(axes: Role, body: Block) -> tuple[Block, dict[str, _Range]]:
    """A body for columns C0..C1-1, which count through `axes`: loops along the innermost axis, for each value of the others."""
    if not axes:
        return body, {}
    *outer, (column, n) = axes
    if not outer:
        return _drawn(column, body) or ((Loop(column, n, "vector", body),), {column.name: (C0, C1)})
    moved: dict[E.Expr, E.IntLike] = {}
    run = counted("run", tuple(outer), moved)
    assert isinstance(run, E.Sym)
    loop = Loop(run, product(m for _, m in outer), "serial", (Loop(column, n, "vector", substitute(body, moved)),))
    return (loop,), {run.name: (E.floordiv(C0, n), E.ceildiv(C1, n)), column.name: _inside(run, n, C0, C1)}


def _drawn(column: E.Sym, body: Block) -> tuple[Block, dict[str, _Range]] | None:
    """A loop over the columns in blocks whose random words are drawn before; None if the body draws none in the order of the columns."""
    if not any(isinstance(v, ir.Op) and v.name == "philox" for s in body for v in ir.walk(values_of(s))):
        return None
    block = _open_ended("column_o")
    begin = C0 + block * _DRAWN
    inner = ir.counter("column_i", E.minimum(C1 - begin, _DRAWN))
    assert isinstance(inner, E.Sym)
    loop = Loop(inner, E.minimum(C1 - begin, _DRAWN), "vector", substitute(body, {column: begin + inner}))
    try:
        staged = stage_draws((loop,), loop)
    except Refused:
        return None
    return (Loop(block, E.ceildiv(C1 - C0, _DRAWN), "serial", staged),), {}


# -- along the rows ------------------------------------------------------------------------------------------------
class _Rows(NamedTuple):
    """Innermost row axes as one axis `row` of n values, in which all positions of the body are linear. run: counts the others."""

    body: Block
    row: E.Sym
    n: Size
    run: E.Expr
    runs: Size


def _along_rows(s: Contract, body: Block) -> Finished | None:
    """Tiles of rows by columns, and separate loops for the columns and rows that fill none; None if the body stores along columns."""
    if len(s.axes.columns) != 1 or not all(isinstance(x, Store) and not x.place.indirect for x in body):
        return None
    ((column, _),) = s.axes.columns
    rows = _linear_rows(s.axes.rows, column, body)
    stores = [x for x in (rows.body if rows is not None else ()) if isinstance(x, Store)]
    if rows is None or any(_steps(x.place.index, rows.row, column) != (1, False) for x in stores):
        return None
    across = _across(stores, rows.row, column)
    if not across or any(x.place.name in {v.buffer for v in across} for x in stores):
        return None
    width = _TILE_BYTES // max(x.dtype.itemsize for x in across)
    if isinstance(rows.n, int) and rows.n < width:
        return None
    made = _tiled(rows, column, across, width)
    if not isinstance(rows.run, E.Sym):
        return made
    ranges = {**made.ranges, rows.run.name: (E.floordiv(R0, rows.n), E.ceildiv(R1, rows.n))}
    return Finished((Loop(rows.run, rows.runs, "serial", made.body),), ranges)


def _linear_rows(axes: Role, column: E.Sym, body: Block) -> _Rows | None:
    """As many of the innermost row axes as have one axis in common."""
    for k in range(len(axes)):
        moved: dict[E.Expr, E.IntLike] = {}
        run, row = counted("run", axes[:k], moved), counted("row", axes[k:], moved)
        if not isinstance(row, E.Sym):
            return None
        found = substitute(body, moved)
        if all(E.strides_of(e, [row, column]) is not None for e in _positions(found)):
            return _Rows(found, row, product(n for _, n in axes[k:]), run, product(n for _, n in axes[:k]))
    return None


def _positions(body: Block) -> list[E.Expr]:
    """The positions of all stores, and of all loads that depend on no other load."""
    stores = [x for x in body if isinstance(x, Store)]
    return [*(x.place.index for x in stores), *(v.index for x in stores for v in x.value.loads if not v.indirect)]


def _steps(e: E.Expr, row: E.Sym, column: E.Sym) -> tuple[int, bool]:
    """The stride along the rows, 0 if it is not a number, and whether neighbours along the columns are neighbours in memory."""
    found = E.strides_of(e, [row, column])
    assert found is not None
    along, across = found[0][row], found[0][column]
    return along.value if isinstance(along, E.Int) else 0, isinstance(across, E.Int) and across.value == 1


def _across(stores: Sequence[Store], row: E.Sym, column: E.Sym) -> list[ir.Load]:
    """The loads that are contiguous along the columns and far apart along the rows."""
    loads = dict.fromkeys([v for x in stores for v in x.value.loads if not v.indirect and v.mask is None])
    found = [(v, *_steps(v.index, row, column)) for v in loads]
    return [v for v, along, is_next in found if is_next and along >= _FAR and v.dtype.itemsize in _TRANSPOSED]


def _tiled(rows: _Rows, column: E.Sym, across: Sequence[ir.Load], width: int) -> Finished:
    """`width` rows by `_TILE_COLUMNS` columns at a time."""
    first, last = _inside(rows.run, rows.n, R0, R1) if isinstance(rows.run, E.Sym) else (R0, R1)
    row_tiles, column_tiles = E.floordiv(last - first, width), E.floordiv(C1 - C0, _TILE_COLUMNS)
    row_tile, column_tile = _open_ended("row_o"), _open_ended("column_o")
    row_begin, column_begin = first + row_tile * width, C0 + column_tile * _TILE_COLUMNS
    body, locals_ = _tile(rows, column, across, width, row_begin, column_begin)
    tiles = Loop(row_tile, row_tiles, "serial", (Loop(column_tile, column_tiles, "serial", body),))
    rest_columns = _plain(rows, column, "_c", (first, last), (C0 + column_tiles * _TILE_COLUMNS, C1))
    rest_rows = _plain(rows, column, "_r", (first + row_tiles * width, last), (C0, C0 + column_tiles * _TILE_COLUMNS))
    return Finished(
        (*allocated(locals_, (tiles,)), *rest_columns.body, *rest_rows.body),
        {**rest_columns.ranges, **rest_rows.ranges},
    )


def _tile(rows: _Rows, column: E.Sym, across: Sequence[ir.Load], width: int, row_begin: E.Expr,
          column_begin: E.Expr) -> tuple[Block, list[Local]]:  # fmt: skip
    """The body for a tile that begins at this row and column, which first copies the loads `across` to locals."""
    j, i = (ir.counter(name, n) for name, n in (("column_i", _TILE_COLUMNS), ("row_i", width)))
    point: dict[E.Expr, E.IntLike] = {rows.row: row_begin + i, column: column_begin + j}
    made: list[Local] = []
    copies: list[Statement] = []
    copied: dict[ir.Value, ir.Value] = {}
    for k, load in enumerate(across):
        local = Local(f"tile{k}", width * _TILE_COLUMNS, load.dtype, "stack")
        to, source = Place(local.name, j * width + i), at_point(load, point)
        copies += repeat(j, _TILE_COLUMNS, "serial", repeat(i, width, "vector", (Store(to, source),)))
        copied[source] = ir.load(local.name, j * width + i, load.dtype)
        made.append(local)
    inner = tuple([_reading(x, copied) for x in substitute(rows.body, point)])
    return (*copies, *repeat(j, _TILE_COLUMNS, "serial", repeat(i, width, "vector", inner))), made


def _reading(s: Statement, copied: Mapping[ir.Value, ir.Value]) -> Store:
    assert isinstance(s, Store)
    return Store(s.place, replace_loads(s.value, copied.get))


def _open_ended(name: str) -> E.Sym:
    """An axis whose extent depends on the block."""
    found = E.sym(name, 0)
    assert isinstance(found, E.Sym)
    return found


def _plain(rows: _Rows, column: E.Sym, suffix: str, row_range: _Range, column_range: _Range) -> Finished:
    """The body for these rows and columns, one column after another."""
    j, i = _open_ended(f"column{suffix}"), _open_ended(f"row{suffix}")
    body = substitute(rows.body, {rows.row: i, column: j})
    loops = Loop(j, column_range[1], "serial", (Loop(i, row_range[1], "vector", body),))
    return Finished((loops,), {i.name: row_range, j.name: column_range})
