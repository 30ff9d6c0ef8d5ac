"""Tiles: loops whose iterations are the elements along the axes of a tile, and the memory that such tiles hold.

On a GPU a program computes whole tiles, statement after statement. A "lanes" or "scan" loop
is one axis of these tiles; the axes are numbered from the outermost such loop inwards. A local array whose elements are the
iterations of such a loop is a tile in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain
from inductor.loops.dependence import Access, carried
from inductor.loops.reductions import COMBINES, UNBOUNDED, most
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Contract,
    Fold,
    Guard,
    Kind,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    allocated,
    axes_of,
    body_of,
    places_of,
    repeat,
    rewrite,
    substitute,
    values_of,
    walk,
)

TILE_KINDS: Final = frozenset({"lanes", "scan"})
LEAST_PRODUCT: Final = 16  # rows, columns and depth of a product of tiles on a matrix unit
MOST_LANES: Final = 1 << 16  # elements along one axis of a tile
MOST_ELEMENTS: Final = 16  # of a local array whose elements are separate values
ELEMENTS: Final = ()  # in `tiles_of`: an array whose elements are separate values
# dtypes that a GPU adds to memory in one step, which no other program can interrupt
ATOMIC: Final = frozenset((dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64, dtypes.float16, dtypes.float32, dtypes.float64))


def tile_size(n: Size) -> int:
    """Elements along the axis of a tile that holds `n` iterations: a power of two. Raises: Refused for too many."""
    size = most(n)
    if size > MOST_LANES:
        bound = "without a known bound" if size == UNBOUNDED else f"of at most {size}"
        raise Refused(f"a tile has no room for {n} elements, {bound}; allowed: up to {MOST_LANES}")
    return 1 << max(size - 1, 0).bit_length()


# -- which loops may be axes of tiles ------------------------------------------------------------------------------
def objection(body: Block, loop: Loop, kind: Kind) -> str:
    """The reason why a loop cannot run as "grid", "lanes" or "scan"; "" if it can."""
    if kind == "grid" and loop not in _outermost(body):
        return f"{loop.axis.name} is inside of loops that are not over programs"
    if kind != "grid":
        if any(isinstance(s, Contract) for s in walk(loop.body)):
            return f"{loop.axis.name} holds a contraction, which is computed in tiles"
        inside = [s for s in walk(loop.body) if isinstance(s, Loop)]
        if any(s.kind == "grid" for s in inside):
            return "a tile holds no loop over programs"
        if any(isinstance(s.extent, E.Expr) and loop.axis in s.extent.symbols for s in inside):
            return f"the number of iterations of an inner loop depends on {loop.axis.name}"
        if most(loop.extent) > MOST_LANES:
            return f"{loop.extent} iterations do not fit into a tile; allowed: up to {MOST_LANES}"
    if kind == "scan":
        return _scan_objection(loop)
    shared = _atomic(loop)
    for a, b in carried(loop):
        is_reduced = kind == "lanes" and is_fixed(a.place, loop.axis) and is_fixed(b.place, loop.axis)
        commutes = bool(a.combine) and a.combine == b.combine and not COMBINES[a.combine].is_ordered
        if not commutes or not (is_reduced or a.place.name in shared):
            return f"iterations depend on each other through {a.place}" + ("" if a.place == b.place else f" and {b.place}")
    return ""


def _outermost(block: Block) -> Iterator[Loop]:
    """The loops that are inside of loops over programs alone."""
    for s in block:
        if isinstance(s, Loop):
            yield s
        if (isinstance(s, Allocate) and s.local.space == "shared") or (isinstance(s, Loop) and s.kind == "grid" and len(s.body) == 1):
            yield from _outermost(s.body)


def is_fixed(place: Place, axis: E.Sym) -> bool:
    """Whether a place is one element for all iterations of a loop."""
    return axis not in place.index.symbols and not any(s in place.index.symbols for s, _ in place.indirect)


def _atomic(loop: Loop) -> frozenset[str]:
    """The memory to which a loop only adds, in a type that a GPU adds in one step."""
    locals_ = {s.local.name for s in walk(loop.body) if isinstance(s, Allocate)}
    sums = [s for s in walk(loop.body) if isinstance(s, Accumulate) and s.combine == "sum"]
    return frozenset(s.places[0].name for s in sums if s.values[0].dtype in ATOMIC) - locals_


def colliding(loop: Loop) -> frozenset[str]:
    """The memory outside of a loop to which different iterations may add at one element."""
    return frozenset(a.place.name for a, b in carried(loop) if _moves(a, loop) or _moves(b, loop) or loop.kind in ("grid", "turns"))


def _moves(a: Access, loop: Loop) -> bool:
    return not is_fixed(a.place, loop.axis)


def _scan_objection(loop: Loop) -> str:
    """Running results: each is combined once in an iteration, and read after that alone."""
    statements = walk(loop.body)
    if any(isinstance(s, Loop | Fold | Allocate) for s in statements):
        return f"the body of {loop.axis.name} holds loops or locals"
    found = [s for s in statements if isinstance(s, Accumulate)]
    names = [p.name for s in found for p in s.places]
    if not found or len(set(names)) < len(names):
        return f"{loop.axis.name} does not keep running results, each of one accumulation"
    if any(not is_fixed(p, loop.axis) for s in found for p in s.places):
        return f"a running result of {loop.axis.name} is not one element"
    pending = set(names)
    for s in statements:
        if any(x.buffer in pending for v in values_of(s) for x in ir.loads_in(v)):
            return "a running result is read before the current element is in it"
        if isinstance(s, Store) and s.place.name in names:
            return "a running result is stored into"
        if isinstance(s, Accumulate):
            pending -= {p.name for p in s.places}
    for a, b in carried(loop):
        if a.place.name not in names:
            return f"iterations depend on each other through {a.place}" + ("" if a.place == b.place else f" and {b.place}")
    return ""


def rank_of(block: Block) -> int:
    """The most tile axes around one another. A contraction has two; a fold is over one."""

    def own(s: Statement) -> int:
        if isinstance(s, Contract):
            return 2
        return int(isinstance(s, Fold) or (isinstance(s, Loop) and s.kind in TILE_KINDS))

    return max([rank_of(body_of(s)) + own(s) for s in block], default=0)


def expressions_of(block: Block) -> Iterator[E.Expr]:
    """Every index expression of a block."""
    for s in walk(block):
        yield from (E.as_expr(n) for _, n in axes_of(s))
        for p in places_of(s):
            yield p.index
        yield from ir.expressions_in((s.condition,) if isinstance(s, Guard) else values_of(s))


# -- reductions in partial results ---------------------------------------------------------------------------------
def in_partials(body: Block, loop: Loop, width: int) -> Block:
    """A reduction over blocks of `width` iterations, each element of a tile adding up its own, then over the tile.

    Raises: Refused.
    """
    name = loop.axis.name
    found = fixed_accumulations(loop)
    blocks = ceildiv(loop.extent, width)
    outer, inner = ir.counter(f"{name}_o", blocks), ir.counter(f"{name}_l", width)
    last = ir.counter(f"{name}_f", width)
    if not all(isinstance(x, E.Sym) for x in (outer, inner, last)):
        raise Refused(f"{name} has {loop.extent} iterations, no more than one block of {width}")
    partials = [_tile(s, f"{name}_part{k}", width) for k, s in enumerate(found)]
    if {x.name for tile in partials for x in tile} & {s.local.name for s in walk(body) if isinstance(s, Allocate)}:
        raise Refused(f"{name} has partial results already")
    at = outer * width + inner
    into = {id(s): _into(s, tile, inner) for s, tile in zip(found, partials, strict=True)}
    sweep = substitute(rewrite(loop.body, lambda s: into.get(id(s))), {loop.axis: at})
    if not (isinstance(loop.extent, int) and loop.extent % width == 0):
        sweep = (Guard(ir.make_op("lt", (ir.index(at), ir.index(loop.extent)), dtypes.bool_), sweep),)
    first = ir.counter(f"{name}_z", width)
    begin = tuple(x for s, tile in zip(found, partials, strict=True) for x in _begin(s, tile, first))
    end = tuple(_join(s, tile, last) for s, tile in zip(found, partials, strict=True))
    parts = (
        *repeat(first, width, "lanes", begin),
        *repeat(outer, blocks, "serial", repeat(inner, width, "lanes", sweep)),
        *repeat(last, width, "lanes", end),
    )
    return allocated([x for tile in partials for x in tile], parts)


def fixed_accumulations(loop: Loop) -> list[Accumulate]:
    """The accumulations of an innermost loop, each into fixed places. Raises: Refused."""
    inside = walk(loop.body)
    found = [s for s in inside if isinstance(s, Accumulate)]
    if not found or any(isinstance(s, Loop) for s in inside):
        raise Refused(f"{loop.axis.name} is not the innermost loop of a reduction")
    if any(not is_fixed(p, loop.axis) for s in found for p in s.places):
        raise Refused(f"{loop.axis.name} does not accumulate into one place")
    reason = objection((loop,), loop, "lanes") if most(loop.extent) <= MOST_LANES else _carried_reason(loop)
    if reason:
        raise Refused(reason)
    return found


def _carried_reason(loop: Loop) -> str:
    short = Loop(loop.axis, 2, loop.kind, loop.body)  # dependences do not depend on the extent of a loop over fixed places
    return objection((short,), short, "lanes")


def _tile(s: Accumulate, name: str, width: int) -> list[Local]:
    components = COMBINES[s.combine].components(s.values[0].dtype)
    return [Local(f"{name}_{j}", width, t, "stack") for j, t in enumerate(components)]


def _at(tile: list[Local], lane: E.Expr) -> tuple[Place, ...]:
    return tuple(Place(x.name, lane) for x in tile)


def _begin(s: Accumulate, tile: list[Local], lane: E.Expr) -> list[Statement]:
    identity = COMBINES[s.combine].identity(s.values[0].dtype)
    return [Store(p, v) for p, v in zip(_at(tile, lane), identity, strict=True)]


def _into(s: Accumulate, tile: list[Local], lane: E.Expr) -> Block:
    return (Accumulate(_at(tile, lane), s.combine, s.values),)


def _join(s: Accumulate, tile: list[Local], lane: E.Expr) -> Accumulate:
    return Accumulate(s.places, s.combine, tuple(ir.load(x.name, lane, x.dtype) for x in tile))


# -- which local arrays are tiles ----------------------------------------------------------------------------------
Along: TypeAlias = tuple[tuple[int, int], ...]  # (number of an axis, elements along it)
_Axes: TypeAlias = tuple[tuple[E.Sym, int, Size], ...]  # counters of axes of tiles, the number of the axis, and the extent


def tiles_of(body: Block) -> dict[str, Along | None]:
    """The axes of the tiles that each local array runs along; `ELEMENTS` if its few elements are separate; None for other arrays.

    An array runs along an axis if every access is at the counter of a loop over that axis, whose tiles have the array's size. It runs
    along two if every access is at the row-major position of two such counters.
    """
    arrays = {s.local.name: s.local for s in walk(body) if isinstance(s, Allocate) and s.local.size != 1 and s.local.space != "shared"}
    axes: dict[str, set[Along | None]] = {name: set() for name in arrays}
    for name, index, around in _uses(body, ()):
        if name in arrays:
            axes[name].add(_along(arrays[name], index, around))
    out: dict[str, Along | None] = {}
    for name, found in axes.items():
        out[name] = next(iter(found)) if len(found) == 1 else None if found else ELEMENTS
    return out


def _along(local: Local, index: E.Expr, around: _Axes) -> Along | None:
    size = local.size
    if not isinstance(size, int):
        return None
    if isinstance(index, E.Int) and size <= MOST_ELEMENTS:
        return ELEMENTS
    for axis, k, extent in around:
        if axis is index and tile_size(extent) == tile_size(size):
            return ((k, tile_size(size)),)
    found = E.strides_of(index, [axis for axis, _, _ in around])
    if found is None or found[1] is not E.as_expr(0):
        return None
    steps = [(plain(found[0][axis]), k, extent) for axis, k, extent in around if found[0][axis] is not E.as_expr(0)]
    if len(steps) != 2:
        return None
    (row, first, rows), (one, second, columns) = sorted(steps, key=lambda x: x[0] == 1)
    fits = one == 1 and row == columns and all(isinstance(n, int) and tile_size(n) == n for n in (rows, columns))
    if not fits or plain(E.mul(rows, columns)) != size or first >= second:
        return None
    return ((first, tile_size(rows)), (second, tile_size(columns)))


def _uses(block: Block, around: _Axes) -> Iterator[tuple[str, E.Expr, _Axes]]:
    """(name, position, axes of tiles around it) of every access."""
    for s in block:
        match s:
            case Loop():
                here = len(dict.fromkeys(k for _, k, _ in around))
                yield from _uses(s.body, (*around, (s.axis, here, s.extent)) if s.kind in TILE_KINDS else around)
            case Guard() | Allocate():
                yield from _uses(s.body, around)
            case Contract():
                yield from _uses_of_product(s, around)
            case _:
                yield from _accesses(places_of(s), values_of(s), around)
                if isinstance(s, Fold):
                    for part in s.parts:
                        yield part.name, ir.counter("any", part.size), around


def _uses_of_product(s: Contract, around: _Axes) -> Iterator[tuple[str, E.Expr, _Axes]]:
    """Uses of a contraction in blocks: the rows of the left operand and of the result are axis 0, their columns are axis 1."""
    rows, columns, depth = ([(x, n) for x, n in role] for role in (s.axes.rows, s.axes.columns, s.axes.depth[-1:]))

    def axes(first: list[tuple[E.Sym, Size]], second: list[tuple[E.Sym, Size]]) -> _Axes:
        return (*around, *((x, 0, n) for x, n in first), *((x, 1, n) for x, n in second))

    yield from _uses(s.body, axes(rows, columns))
    yield from _accesses((s.place,), (), axes(rows, columns))
    yield from _accesses((), (s.a,), axes(rows, depth))
    yield from _accesses((), (s.b,), axes(depth, columns))


def _accesses(places: Sequence[Place], values: Sequence[ir.Value], around: _Axes) -> Iterator[tuple[str, E.Expr, _Axes]]:
    for p in places:
        yield p.name, p.index, around
    for v in values:
        for x in ir.loads_in(v):
            yield x.buffer, x.index, around


__all__ = [
    "ATOMIC", "ELEMENTS", "TILE_KINDS", "colliding", "expressions_of", "fixed_accumulations", "in_partials", "is_fixed", "objection",
    "rank_of", "tile_size", "tiles_of",
]  # fmt: skip
