"""The loop tree: typed statements over flat memory.

Memory is named. A name is a buffer of the program or a `Local`, and a `Place` is one element of it at a row-major position.
Statements compute values of `inductor.ir.definitions`; a load of a local is an ordinary `Load` of its name.

    Loop(axis, extent, kind, body)           runs the body for every value 0..extent-1 of the symbol `axis`
    Guard(condition, body)                   runs the body where the condition holds: the tail of a split loop
    Allocate(local, body)                    gives the body private, uninitialised memory
    Store(place, value)                      place = value
    Accumulate(places, combine, values)      places = combine(places, values), see `inductor.loops.reductions`
    Fold(places, combine, parts)             places = combine(places, every element of the locals `parts`)
    Contract(name, place, axes, a, b, body)  place = the sum over the depth of a * b, for every batch, row and column; then the body

A tree is immutable, and a statement is equal to itself alone, so that facts about it are remembered. Axis names and local names are
unique in a kernel, so a schedule refers to loops by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.ir.values import at_point, replace_loads

REMEMBERED: Final = 2048  # statements or blocks whose facts are kept
Kind: TypeAlias = Literal["serial", "parallel", "vector", "streamed", "unrolled", "grid", "turns", "lanes", "scan"]
UNORDERED: Final = frozenset({"parallel", "vector", "streamed", "grid", "turns", "lanes"})  # kinds whose iterations run in any order
Space: TypeAlias = Literal["register", "stack", "shared"]
Indirect: TypeAlias = tuple[tuple[E.Sym, ir.Value], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """The element of `name` at position `index`. `indirect` binds symbols of the index to int64 values."""

    name: str
    index: E.Expr
    indirect: Indirect = ()

    def __str__(self) -> str:
        bound = "".join(f", {s}={v}" for s, v in self.indirect)
        return f"{self.name}[{self.index}{bound}]"


class Local(NamedTuple):
    """Memory of `size` elements that lives while its `Allocate` runs. space: where a target puts it.

    "shared" memory is seen by all threads of a parallel loop; the other spaces are private to an iteration. spill: the elements of
    a buffer that an iteration uses instead if its size, an expression, is too large for the stack.
    """

    name: str
    size: Size
    dtype: dtype
    space: Space = "register"
    spill: Place | None = None

    def __str__(self) -> str:
        return f"{self.space} {self.name}: {self.dtype.name}[{self.size}]"


class _Computing:
    """A statement that computes values itself.

    writes: the places that it writes. computes: stored values, operands and gathered positions.
    """

    __slots__ = ("computes", "writes")

    writes: tuple[Place, ...]
    computes: tuple[ir.Value, ...]

    def _note(self, places: tuple[Place, ...], values: tuple[ir.Value, ...]) -> None:
        object.__setattr__(self, "writes", places)
        for p in places:
            for _, v in p.indirect:
                values = (*values, v)
        object.__setattr__(self, "computes", values)


class _Control:
    """A statement that only runs others."""

    __slots__ = ()

    writes: tuple[Place, ...] = ()
    computes: tuple[ir.Value, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Store(_Computing):
    """place = value"""

    place: Place
    value: ir.Value

    def __post_init__(self) -> None:
        self._note((self.place,), (self.value,))


@dataclass(frozen=True, slots=True, eq=False)
class Accumulate(_Computing):
    """places = combine(places, values), a component of the reduction's state in each place."""

    places: tuple[Place, ...]
    combine: str
    values: tuple[ir.Value, ...]

    def __post_init__(self) -> None:
        self._note(self.places, self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Fold(_Computing):
    """places = combine(places, element k of each of the parts), for every k.

    combine "compensated": the one place is a wide sum, and the parts are totals and carries of sums (see `inductor.loops.reductions`).
    dtype: of the places.
    """

    places: tuple[Place, ...]
    combine: str
    parts: tuple[Local, ...]
    dtype: dtype

    def __post_init__(self) -> None:
        self._note(self.places, ())


@dataclass(frozen=True, slots=True, eq=False)
class Guard(_Control):
    """Runs the body where `condition`, a bool value without loads, holds."""

    condition: ir.Value
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(_Control):
    """Runs the body with `local`."""

    local: Local
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Loop(_Control):
    """Runs the body for axis = 0..extent-1; `kind` says how.

    serial, unrolled    one iteration after another
    parallel            on the threads of a pool, in any order
    vector              the elements of vectors, in any order
    streamed            as "vector"; where the target can, its stores go to memory past the caches
    grid                programs of a GPU, in any order
    turns               programs of a GPU that one program stands for, one after another, in any order
    lanes               the elements along one axis of a tile, in any order; accumulations into one place are combined as a tree
    scan                as "lanes", in order: a read of a running result sees the elements up to the current one
    """

    axis: E.Sym
    extent: Size
    kind: Kind
    body: Block


Role: TypeAlias = tuple[tuple[E.Sym, Size], ...]  # axes and their extents, outermost first


class Axes(NamedTuple):
    """The axes of a contraction by role."""

    batch: Role
    rows: Role
    columns: Role
    depth: Role

    @property
    def result(self) -> Role:
        """The axes of the result."""
        return (*self.batch, *self.rows, *self.columns)

    def __str__(self) -> str:
        named = (("batch", self.batch), ("rows", self.rows), ("columns", self.columns), ("depth", self.depth))
        return "; ".join(f"{role} {', '.join(f'{s} < {n}' for s, n in of)}" for role, of in named if of)


@dataclass(frozen=True, slots=True, eq=False)
class Contract(_Computing):
    """place = sum over `axes.depth` of a * b, for all values of the other axes.

    a: over batch, rows and depth. b: over batch, depth and columns. place: over batch, rows and columns, another element for each.
    body: runs for each element after its sum is complete. It may read the place at this element alone, and the elements have no order.
    A target computes blocks of the sum with its matrix unit and runs the body while a block is near. name: unique in a kernel.
    described: rows, columns and depth of the whole product if each operand is one matrix, of which the device copies blocks that a
    descriptor of the matrix finds; () if its elements are loaded.
    """

    name: str
    place: Place
    axes: Axes
    a: ir.Value
    b: ir.Value
    body: Block = ()
    described: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._note((self.place,), (self.a, self.b))


Statement: TypeAlias = Store | Accumulate | Fold | Guard | Allocate | Loop | Contract
Block: TypeAlias = tuple[Statement, ...]
Holder: TypeAlias = Guard | Allocate | Loop | Contract  # a statement with a body
HOLDERS: Final = (Guard, Allocate, Loop, Contract)


class Kernel(NamedTuple):
    """Loops over named memory. dtypes: of every buffer that the loops touch, by name. temporary: buffers that only the loops read."""

    body: Block
    dtypes: Mapping[str, dtype]
    temporary: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return print_kernel(self)


def repeat(axis: E.Expr, extent: Size, kind: Kind, body: Block) -> Block:
    """`body` for every value of an axis that `ir.counter` made for `extent`: a loop, or no loop where the axis is always 0."""
    if isinstance(axis, E.Sym):
        return (Loop(axis, extent, kind, body),)
    if isinstance(extent, int):
        return body if extent else ()
    some = ir.make_op("lt", (ir.index(0), ir.index(extent)), dtypes.bool_)
    return (Guard(some, body),)


def allocated(locals_: Sequence[Local], block: Block) -> Block:
    """The block with locals around it."""
    for x in reversed(locals_):
        block = (Allocate(x, block),)
    return block


def raised(block: Block) -> Block:
    """The block with all its locals allocated around the whole."""
    locals_: list[Local] = []

    def opened(b: Block) -> Iterator[Statement]:
        for s in b:
            if isinstance(s, Allocate):
                locals_.append(s.local)
                yield from opened(s.body)
            else:
                yield s

    statements = tuple(opened(block))
    return allocated(locals_, statements)


def roots_of(body: Block) -> tuple[list[Statement], list[Local]]:
    """The statements that a target prints as separate functions, and the memory that they share."""
    statements: list[Statement] = []
    shared: list[Local] = []
    for s in body:
        if isinstance(s, Allocate) and s.local.space == "shared":
            inside, more = roots_of(s.body)
            statements += inside
            shared += [s.local, *more]
        else:
            statements.append(s)
    return statements, shared


def body_of(s: Statement) -> Block:
    """The statements inside `s`."""
    return s.body if isinstance(s, HOLDERS) else ()


def with_body(s: Holder, body: Block) -> Holder:
    """`s` around another body."""
    return replace(s, body=body)


@lru_cache(maxsize=REMEMBERED)
def walk(block: Block) -> tuple[Statement, ...]:
    """Every statement, outer ones first, in program order."""
    found: list[Statement] = []
    for s in block:
        found.append(s)
        if isinstance(s, HOLDERS):
            found += walk(s.body)
    return tuple(found)


@lru_cache(maxsize=REMEMBERED)
def loops_of(block: Block) -> dict[str, Loop]:
    """The loops of a block by the name of their axis."""
    return {s.axis.name: s for s in walk(block) if isinstance(s, Loop)}


def find_loop(kernel: Kernel, name: str) -> Loop:
    """The loop over the axis `name`, which exists."""
    return loops_of(kernel.body)[name]


def loop_made_of(kernel: Kernel, name: str) -> Loop:
    """The loop `name`, or the loop that was made of it and others."""
    parts = set(name.split("."))
    return next(x for x in loops_of(kernel.body).values() if parts <= set(x.axis.name.split(".")))


def loops_in(block: Block) -> list[Loop]:
    """The loops of a block, apart from the locals around them."""
    return [x for s in block for x in (loops_in(s.body) if isinstance(s, Allocate) else [s]) if isinstance(x, Loop)]


def chain_of(loop: Loop) -> list[Loop]:
    """The loop and the loops that are each the whole body of the one before."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    return chain


def with_values(s: Statement, change: Callable[[ir.Value], ir.Value]) -> Statement:
    """A store or an accumulation over changed values."""
    def place(p: Place) -> Place:
        return Place(p.name, p.index, tuple([(x, change(v)) for x, v in p.indirect])) if p.indirect else p

    if isinstance(s, Store):
        return Store(place(s.place), change(s.value))
    assert isinstance(s, Accumulate)
    return Accumulate(tuple(map(place, s.places)), s.combine, tuple(map(change, s.values)))


def axes_of(s: Statement) -> Role:
    """The axes that `s` itself runs through, with their extents."""
    if isinstance(s, Loop):
        return ((s.axis, s.extent),)
    return (*s.axes.result, *s.axes.depth) if isinstance(s, Contract) else ()


# (statement) -> the places that it writes itself, and the values that it computes itself: stored values, operands and gathered positions.
places_of: Final[Callable[[Statement], tuple[Place, ...]]] = attrgetter("writes")
values_of: Final[Callable[[Statement], tuple[ir.Value, ...]]] = attrgetter("computes")


def rewrite(block: Block, change: Callable[[Statement], Block | None]) -> Block:
    """The block with statements replaced from the outside in; `change` returns None for a statement that stays.

    A statement in which nothing changes stays the same object.
    """
    out: list[Statement] = []
    for s in block:
        new = change(s)
        if new is not None:
            out.extend(new)
        elif isinstance(s, HOLDERS):
            body = rewrite(s.body, change)
            out.append(s if body is s.body else with_body(s, body))
        else:
            out.append(s)
    is_same = len(out) == len(block) and all(a is b for a, b in zip(out, block, strict=True))
    return block if is_same else tuple(out)


def substitute(block: Block, mapping: Mapping[E.Expr, E.IntLike]) -> Block:
    """The block with symbols replaced in every index, value, condition and extent."""

    def place(p: Place) -> Place:
        bound = tuple([(s, at_point(v, mapping)) for s, v in p.indirect]) if p.indirect else ()
        return Place(p.name, E.substitute(p.index, mapping), bound)

    def memory(x: Local) -> Local:
        if isinstance(x.size, int):
            return x
        return x._replace(size=E.substitute(x.size, mapping), spill=None if x.spill is None else place(x.spill))

    def one(s: Statement) -> Statement:
        match s:
            case Store():
                return Store(place(s.place), at_point(s.value, mapping))
            case Accumulate():
                return Accumulate(tuple(map(place, s.places)), s.combine, tuple(at_point(v, mapping) for v in s.values))
            case Fold():
                return Fold(tuple(map(place, s.places)), s.combine, s.parts, s.dtype)
            case Guard():
                return Guard(at_point(s.condition, mapping), many(s.body))
            case Allocate():
                return Allocate(memory(s.local), many(s.body))
            case Loop():
                return Loop(s.axis, size(s.extent), s.kind, many(s.body))
            case Contract():
                axes = Axes(*(tuple((a, size(n)) for a, n in role) for role in s.axes))
                return Contract(s.name, place(s.place), axes, at_point(s.a, mapping), at_point(s.b, mapping), many(s.body), s.described)

    def size(n: Size) -> Size:
        return n if isinstance(n, int) else E.substitute(n, mapping)

    def many(b: Block) -> Block:
        return tuple(map(one, b))

    return many(block)


def rename(block: Block, suffix: str) -> Block:
    """A copy of the block whose loops and locals have new names."""
    axes: dict[E.Expr, E.IntLike] = {a: ir.counter(f"{a.name}{suffix}", n) for s in walk(block) for a, n in axes_of(s)}
    locals_ = {s.local.name for s in walk(block) if isinstance(s, Allocate)}
    block = rename_memory(substitute(block, axes), {n: (f"{n}{suffix}", E.as_expr(0)) for n in locals_})

    def many(b: Block) -> Block:
        return tuple(x for s in b for x in one(s))

    def one(s: Statement) -> Block:
        match s:
            case Loop():
                # An extent that depends on another loop may have become 1 or 0: then no loop is left.
                return repeat(E.as_expr(axes[s.axis]), s.extent, s.kind, many(s.body))
            case Allocate():
                return (Allocate(s.local._replace(name=f"{s.local.name}{suffix}"), many(s.body)),)
            case Guard():
                return (Guard(s.condition, many(s.body)),)
            case Contract():
                roles = [[(E.as_expr(axes[a]), n) for a, n in role] for role in s.axes]
                left = Axes(*(tuple((a, n) for a, n in role if isinstance(a, E.Sym)) for role in roles))
                return (Contract(f"{s.name}{suffix}", s.place, left, s.a, s.b, many(s.body), s.described),)
        return (s,)

    return many(block)


def replace_statement(block: Block, old: Statement, new: Block) -> Block:
    """The block with one statement, at any depth, replaced by `new`; the block itself if it does not hold the statement."""
    for k, s in enumerate(block):
        if s is old:
            return (*block[:k], *new, *block[k + 1 :])
        if isinstance(s, HOLDERS):
            body = replace_statement(s.body, old, new)
            if body is not s.body:
                return (*block[:k], with_body(s, body), *block[k + 1 :])
    return block


def rename_memory(block: Block, names: Mapping[str, tuple[str, E.Expr]]) -> Block:
    """The block with memory renamed: `names` gives the new name and the expression added to each position."""

    moved: dict[tuple[E.Expr, E.Expr], E.Expr] = {}  # (position, addend) -> the sum

    def position(at: E.Expr, more: E.Expr) -> E.Expr:
        found = moved.get((at, more))
        if found is None:
            found = moved[at, more] = at + more
        return found

    def value(v: ir.Value) -> ir.Value:
        for x in v.loads:
            if x.buffer in names:
                return replace_loads(v, load)
        return v

    def load(x: ir.Load) -> ir.Value | None:
        if x.buffer not in names:
            return None
        name, more = names[x.buffer]
        return ir.load(name, position(x.index, more), x.dtype, x.mask, x.indirect)

    def place(p: Place) -> Place:
        if p.name not in names:
            return Place(p.name, p.index, tuple([(s, value(v)) for s, v in p.indirect])) if p.indirect else p
        name, more = names[p.name]
        return Place(name, position(p.index, more), tuple([(s, value(v)) for s, v in p.indirect]))

    def one(s: Statement) -> Statement:
        match s:
            case Store():
                return Store(place(s.place), value(s.value))
            case Accumulate():
                return Accumulate(tuple(map(place, s.places)), s.combine, tuple(map(value, s.values)))
            case Fold():  # reads whole locals, which `names` may rename but not move
                parts = tuple(x._replace(name=names[x.name][0]) if x.name in names else x for x in s.parts)
                return Fold(tuple(map(place, s.places)), s.combine, parts, s.dtype)
            case Contract():
                return Contract(s.name, place(s.place), s.axes, value(s.a), value(s.b), tuple(map(one, s.body)), s.described)
        return with_body(s, tuple(map(one, s.body)))

    return tuple(map(one, block))


def print_kernel(kernel: Kernel) -> str:
    """The loops as indented text, a statement a line."""
    return "\n".join(_lines(kernel.body, 0))


def _lines(block: Iterable[Statement], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for s in block:
        match s:
            case Loop():
                word = "for" if s.kind == "serial" else f"{s.kind} for"
                yield f"{pad}{word} {s.axis.name} < {s.extent}:"
            case Guard():
                yield f"{pad}if {s.condition}:"
            case Allocate():
                yield f"{pad}with {s.local}:"
            case Store():
                yield f"{pad}{s.place} = {s.value}"
            case Accumulate():
                left, right = ", ".join(map(str, s.places)), ", ".join(map(repr, s.values))
                yield f"{pad}{left} {s.combine}= {right}"
            case Fold():
                left, right = ", ".join(map(str, s.places)), ", ".join(f"all {x.name}" for x in s.parts)
                yield f"{pad}{left} {s.combine}= {right}"
            case Contract():
                way = " by descriptors" if s.described else ""
                yield f"{pad}contract {s.name}{way} over {s.axes}: {s.place} = sum of {s.a!r} * {s.b!r}{', then' if s.body else ''}"
        yield from _lines(body_of(s), depth + 1)
