"""Loop trees as Triton kernels: one for each statement at the root.

Owns statements, tiles and masks; `inductor.triton.values` owns operations. A loop over the grid is a program id. A loop over an axis
of a tile ("lanes", "scan") is a `tl.arange`, masked where the tile has more elements than the loop has iterations. Guards are
masks. Every other loop is a Python loop. All tiles of a kernel have one rank; an axis that a value does not depend on has size 1,
and a value that depends on no axis is a scalar. Locals are variables that hold tiles.

An accumulation along an axis of a tile is a `tl.reduce` of the values, with the identity where the mask does not hold, into the
place. An accumulation into memory that several programs or elements may reach is an atomic addition. A read of memory that an
earlier statement of the kernel writes follows a barrier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, product
from inductor.loops.combine import COMBINES, folded
from inductor.loops.dependence import carried
from inductor.loops.refusal import Refused
from inductor.loops.tiles import ATOMIC, ELEMENTS, TILE_KINDS, colliding, expressions_of, rank_of, tile_size, tiles_of
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Fold,
    Guard,
    Kernel,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    places_of,
    state_of,
    substitute,
    walk,
)
from inductor.triton.combines import Combines
from inductor.triton.helpers import HEADER, helpers
from inductor.triton.kernel import CHECKS_POINTER, Launches, Scratch, TritonKernel
from inductor.triton.tiles import Known, Mask, Shape, all_of, broadcast, reach, spread, warps
from inductor.triton.values import CHECKS, COMPARE, Unprintable, index_source, literal, operation, type_of

NARROW: Final = 1 << 31  # below this, positions are int32


def print_kernel(kernel: Kernel, name: str) -> Launches:
    """The kernels that run a loop tree, in order. Raises: Unprintable."""
    statements, shared = _roots(kernel.body)
    memory = {**kernel.dtypes, **{x.name: x.dtype for x in shared}}
    printed = []
    for k, s in enumerate(statements):
        own = name if len(statements) == 1 else f"{name}_{k}"
        try:
            printed.append(_Function(memory, s).kernel(own))
        except Refused as refused:
            raise Unprintable(f"triton: {own}: {refused}") from None
    return Launches(tuple(printed), tuple(Scratch(x.name, x.size, x.dtype) for x in shared))


def _roots(body: Block) -> tuple[list[Statement], list[Local]]:
    """The statements that become kernels, and the memory that they share."""
    statements: list[Statement] = []
    shared: list[Local] = []
    for s in body:
        if isinstance(s, Allocate) and s.local.space == "shared":
            inside, more = _roots(s.body)
            statements += inside
            shared += [s.local, *more]
        else:
            statements.append(s)
    return statements, shared


@dataclass(slots=True)
class _Scope:
    """A loop or guard that is being printed. lines: of the Python block around it. masks: names and shapes, all of which hold.

    written: memory that its statements write. blocks: whether the lines are a separate Python block. values: known in it alone.
    loop, dim: the loop, and the axis of tiles that it is. opened: the tile loops in it so far, by extent: a later one with the extent of an
    earlier one goes on with its counter, its mask and its values.
    """

    lines: list[str]
    written: frozenset[str]
    masks: tuple[Mask, ...]
    loop: Loop | None = None
    dim: int = -1
    values: list[ir.Value] = field(default_factory=list)
    opened: dict[Size, _Opened] = field(default_factory=dict)


@dataclass(slots=True)
class _Opened:
    """A tile loop that has been printed: its axis and mask, and the values that are known in it."""

    axis: E.Sym
    masks: tuple[Mask, ...]
    values: dict[ir.Value, Known]


@dataclass(slots=True)
class _Variable:
    """A local: the name of its variable, its shape, and the scope that allocates it. elements: names of separate elements."""

    local: Local
    name: str
    shape: Shape
    scope: int
    elements: tuple[str, ...] = ()


class _Function:
    """Prints one statement at the root."""

    def __init__(self, memory: Mapping[str, dtype], root: Statement) -> None:
        self.memory, self.root = memory, root
        self.rank = rank_of((root,))
        self.tiles = tiles_of((root,))
        self.is_narrow = all(reach(e) < NARROW for e in expressions_of((root,)))
        self.index_type = "tl.int32" if self.is_narrow else "tl.int64"
        self.scopes = [_Scope([], _written((root,)), ())]
        self.known: dict[ir.Value, Known] = {}
        self.axes: dict[str, str] = {}
        self.shape_of: dict[E.Sym, Shape] = {}
        self.scope_of: dict[E.Sym, int] = {}
        self.locals: dict[str, _Variable] = {}
        self.running: dict[str, Known] = {}  # running results of the scan that is being printed
        self.pointers: dict[str, str] = {}
        self.sizes: dict[str, None] = {}
        self.grid: list[Loop] = []
        self.combines = Combines(self.name, self.line)
        self.touched: dict[str, set[tuple[bool, E.Expr | None]]] = {}  # accesses since the last barrier: (writes, position)
        self.n_names = 0
        self.tile = 1
        self.has_checks = False
        loops = [s for s in walk((root,)) if isinstance(s, Loop) and s.kind in ("grid", "lanes")]
        self.atomic = frozenset().union(*(colliding(s) for s in loops)) if loops else frozenset()

    def kernel(self, name: str) -> TritonKernel:
        """The kernel `name`."""
        self.statement(self.root)
        lines = [*self._program_ids(), *self.scopes[0].lines]
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        combines = "".join(f"\n\n{source}" for source in self.combines.functions.values())
        before = f"{HEADER}{helpers(body + combines)}{combines}"
        checks = (CHECKS_POINTER,) if self.has_checks else ()
        pointers, parameters = (*self.pointers, *checks), (*self.pointers.values(), *checks, *self.sizes)
        written = {*self.scopes[0].written, *checks}
        types = tuple(dtypes.int64 if n == CHECKS_POINTER else self.memory[n] for n in pointers)
        grid = product(s.extent for s in self.grid)
        return TritonKernel(name, before, parameters, body, pointers, tuple(n for n in pointers if n in written), tuple(self.sizes), types,
                            grid, warps(self.tile), self.tile)  # fmt: skip

    def _program_ids(self) -> list[str]:
        """The counters of the grid loops from the one program id, the innermost loop fastest."""
        if not self.grid:
            return []
        convert = "" if self.is_narrow else ".to(tl.int64)"
        if len(self.grid) == 1:
            return [f"{self.axes[self.grid[0].axis.name]} = tl.program_id(0){convert}"]
        lines, left = [f"pid = tl.program_id(0){convert}"], "pid"
        for k, s in reversed(list(enumerate(self.grid))):
            n = self.index(s.extent)
            lines.append(f"{self.axes[s.axis.name]} = {left}" + (f" % ({n})" if k else ""))
            if k:
                lines.append(f"pid{k} = {left} // ({n})")
                left = f"pid{k}"
        return lines

    # -- scopes ----------------------------------------------------------------------------------------------------
    @property
    def scope(self) -> _Scope:
        return self.scopes[-1]

    def line(self, text: str) -> None:
        self.scope.lines.append(text)

    def name(self, letter: str = "t") -> str:
        self.n_names += 1
        return f"{letter}{self.n_names - 1}"

    def enter(self, s: Loop | Guard, lines: list[str], dim: int = -1) -> _Scope:
        made = _Scope(lines, _written(s.body), self.scope.masks, s if isinstance(s, Loop) else None, dim)
        self.scopes.append(made)
        if isinstance(s, Loop):
            self.scope_of[s.axis] = len(self.scopes) - 1
        return made

    def leave(self) -> None:
        for v in self.scopes.pop().values:
            self.known.pop(v, None)

    def mask(self, condition: str, shape: Shape) -> None:
        """Makes the scope run only where a condition holds."""
        name = self.name("m")
        self.line(f"{name} = {condition}")
        self.scope.masks = (*self.scope.masks, (name, shape))

    # -- statements ------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for s in block:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        match s:
            case Loop():
                self.loop(s)
            case Guard():
                self.guard(s)
            case Allocate():
                self.allocate(s.local)
                self.block(s.body)
            case Store():
                self.store((s.place,), (self.value(s.value),))
            case Accumulate():
                self.accumulate(s)
            case Fold():
                self.fold(s)

    def loop(self, s: Loop) -> None:
        if s.kind == "grid":
            self.axes[s.axis.name] = f"g{len(self.grid)}"
            self.grid.append(s)
            self.enter(s, self.scope.lines)
            self.shape_of[s.axis] = ()
            self.block(s.body)
            self.leave()
        elif s.kind in TILE_KINDS:
            self.tile_loop(s)
        else:
            self.counted_loop(s)

    def tile_loop(self, s: Loop) -> None:
        """A loop whose iterations are the elements along an axis of tiles."""
        around, dim = self.scope, sum(x.dim >= 0 for x in self.scopes)
        opened = around.opened.get(s.extent)
        if opened is None:
            size, extent = tile_size(s.extent), self.index(s.extent)
            self.enter(s, around.lines, dim)
            name = self.axes[s.axis.name] = self.name("x")
            shape = self.shape_of[s.axis] = tuple(size if d == dim else 1 for d in range(self.rank))
            view = "" if self.rank == 1 else f"[{', '.join(':' if d == dim else 'None' for d in range(self.rank))}]"
            self.line(f"{name} = tl.arange(0, {size}){view}{'' if self.is_narrow else '.to(tl.int64)'}")
            self.use(math.prod(self.full_shape()))
            if s.extent != size:
                self.mask(f"{name} < {extent}", shape)
            opened = around.opened[s.extent] = _Opened(s.axis, self.scope.masks, {})
        else:
            s = Loop(opened.axis, s.extent, s.kind, substitute(s.body, {s.axis: opened.axis}))
            self.enter(s, around.lines, dim)
            self.scope.masks = opened.masks
            for v, known in opened.values.items():
                self.remember(v, known.name, known.shape, known.scope, known.reads)
        if s.kind == "scan":
            self.scan(s)
        else:
            self.block(s.body)
        opened.values = {v: self.known[v] for v in self.scope.values if v in self.known}
        self.leave()

    def use(self, elements: int) -> None:
        self.tile = max(self.tile, elements)

    def counted_loop(self, s: Loop) -> None:
        """A Python loop. Memory that it writes may have been touched by an earlier iteration."""
        extent = self.index(s.extent)
        name = self.axes[s.axis.name] = self.name("i")
        self.shape_of[s.axis] = ()
        inner: list[str] = []
        again = frozenset(a.place.name for a, _ in carried(s)) - self.locals.keys()
        self._touch_all(again)
        self.enter(s, inner)
        for memory in self.scope.written:
            self.forget(memory)
        counter = name
        if not self.is_narrow:
            counter = self.name("i")
            self.line(f"{name} = tl.full([], {counter}, tl.int64)")
        self.block(s.body)
        self.leave()
        self._touch_all(again)
        self.line(f"for {counter} in range(0, {extent}):")
        for text in inner or ["pass"]:
            self.line(f"    {text}")

    def _touch_all(self, names: frozenset[str]) -> None:
        for memory in names:
            if memory in self.memory:
                self.touched.setdefault(memory, set()).add((True, None))

    def guard(self, s: Guard) -> None:
        condition = self.value(s.condition)
        self.enter(s, self.scope.lines)
        self.scope.masks = (*self.scope.masks, (condition.name, condition.shape))
        self.block(s.body)
        self.leave()

    def allocate(self, local: Local) -> None:
        outer = self.full_shape() if any(x.dim >= 0 for x in self.scopes) else (1,) * self.rank
        along = self.tiles.get(local.name)
        if local.size != 1 and along is None:
            raise Unprintable(f"triton: {local.name} of {local.size} elements is not a tile: its elements are not the iterations of a "
                              "loop over an axis")  # fmt: skip
        shape, names = outer, [self.name("l")]
        if local.size != 1 and along == ELEMENTS:
            assert isinstance(local.size, int)
            names = [self.name("l") for _ in range(local.size)]
        elif local.size != 1:
            shape = tuple(tile_size(local.size) if d == along else n for d, n in enumerate(outer))
        self.use(math.prod(shape))
        for name in names:
            self.line(f"{name} = tl.full({list(shape)}, 0, {type_of(local.dtype)})")
        self.locals[local.name] = _Variable(local, names[0], shape, len(self.scopes) - 1, tuple(names) if along == ELEMENTS else ())

    def store(self, places: Sequence[Place], values: Sequence[Known]) -> None:
        for p, v in zip(places, values, strict=True):
            if p.name in self.locals:
                self.assign(p, v)
            else:
                self.write(p, v)
        for p, v in zip(places, values, strict=True):
            self.forget(p.name)
            if not p.indirect and p.name not in self.locals:  # a later read of the element in this iteration finds the value
                self.remember(ir.load(p.name, p.index, self.memory[p.name]), v.name, v.shape, len(self.scopes) - 1, frozenset((p.name,)))

    def assign(self, place: Place, value: Known) -> None:
        """Stores into a local. Outside of the guards since its allocation it keeps its value."""
        x = self.locals[place.name]
        target, text = self.variable(place.name, place.index), value.name
        masks = self.masks_since(x.scope)
        if masks:
            text = f"tl.where({all_of(masks)}, {text}, {target})"
            broadcast(x.shape, value.shape, *(m[1] for m in masks))
        else:
            text = spread(value, x.shape, x.local.dtype)
        self.line(f"{target} = {text}")

    def write(self, place: Place, value: Known) -> None:
        """Stores into memory, where all guards hold."""
        masks = self.scope.masks
        address, shape = self.address(place.name, place.index, place.indirect, (value.shape, *(m[1] for m in masks)))
        self.order(place.name, None if place.indirect else place.index, writes=True)
        text = spread(value, shape, self.memory[place.name])
        self.line(f"tl.store({address}, {text}{', ' + all_of(masks) if masks else ''})")

    # -- reductions ------------------------------------------------------------------------------------------------
    def accumulate(self, s: Accumulate) -> None:
        first = s.places[0]
        allocated = self.locals[first.name].scope if first.name in self.locals else 0
        values = [self.value(v) for v in s.values]
        fixed = [x for x in self.scopes[allocated + 1 :] if x.dim >= 0 and not self._moves(s.places, x)]
        if fixed:
            values = self.reduced(s, values, fixed, self.masks_since(allocated))
        if first.name not in self.locals:
            masks = self.narrowed(self.scope.masks, [x.dim for x in fixed])
            self.add_to_memory(s, values, masks)
        elif fixed:
            self.merge_reduced(s, values, allocated)
        else:
            self.store(s.places, [self.value(v) for v in COMBINES[s.combine].merge(state_of(s), s.values)])

    def _moves(self, places: Sequence[Place], scope: _Scope) -> bool:
        """Whether places are different elements in different iterations of a tile loop."""
        assert scope.loop is not None
        bound = [self.value(v).shape for p in places for _, v in p.indirect]
        return any(scope.loop.axis in p.index.symbols for p in places) or any(shape and shape[scope.dim] > 1 for shape in bound)

    def narrowed(self, masks: Sequence[Mask], along: Sequence[int]) -> list[Mask]:
        """Masks of tiles that are reduced along axes: each holds where it held for some element."""
        out = []
        for name, shape in masks:
            for d in along:
                if shape and shape[d] > 1:
                    shape = tuple(1 if k == d else n for k, n in enumerate(shape))
                    name = self.hold(f"tl.max({name}.to(tl.int32), {d}, keep_dims=True) != 0") if math.prod(shape) > 1 else ""
                    if not name:
                        break
            if name:
                out.append((name, shape))
        return out

    def add_to_memory(self, s: Accumulate, values: Sequence[Known], masks: Sequence[Mask]) -> None:
        """Accumulates into memory, in one step if other elements or programs may accumulate into the same element."""
        (place,), (value,) = s.places, values
        of = self.memory[place.name]
        if place.name in self.atomic:
            if s.combine != "sum" or of not in ATOMIC:
                raise Unprintable(f"triton: several elements may accumulate into {place}, and {s.combine} of {of.name} is not one step")
        else:
            old = self.load(place.name, place.index, of, None, place.indirect)
            (name,) = self.combines.merged(s.combine, (of,), [old.name], [value.name])
            value = Known(name, broadcast(old.shape, value.shape), len(self.scopes) - 1)
        address, shape = self.address(place.name, place.index, place.indirect, (value.shape, *(m[1] for m in masks)))
        self.order(place.name, None, writes=True)
        where = f", {all_of(masks)}" if masks else ""
        text = spread(value, shape, of)
        is_atomic = place.name in self.atomic
        self.line(f"tl.atomic_add({address}, {text}{where}, sem='relaxed')" if is_atomic else f"tl.store({address}, {text}{where})")
        self.forget(place.name)

    def reduced(self, s: Accumulate, values: Sequence[Known], along: Sequence[_Scope], masks: Sequence[Mask]) -> list[Known]:
        """The values combined along axes of the tile."""
        identity = COMBINES[s.combine].identity(s.values[0].dtype)
        components = COMBINES[s.combine].components(s.values[0].dtype)
        sizes = [self.shape_of[x.loop.axis] for x in along if x.loop is not None]
        shape = broadcast(*(v.shape for v in values), *sizes, *(m[1] for m in masks))
        names = []
        for v, zero, given, of in zip(values, identity, s.values, components, strict=True):
            text = v.name
            if given.dtype is not of:  # a wide sum
                text = f"{text}.to({type_of(of)})"
            if masks:
                assert isinstance(zero, ir.Const)
                text = f"tl.where({all_of(masks)}, {text}, {literal(zero.value, of)})"
            names.append(self.hold(spread(Known(text, broadcast(v.shape, *(m[1] for m in masks)), 0), shape, of)))
        for x in along:
            shape = tuple(1 if d == x.dim else n for d, n in enumerate(shape))
            names = self.combines.reduce(s.combine, components, names, x.dim)
        return [Known(n, shape, len(self.scopes) - 1) for n in names]

    def merge_reduced(self, s: Accumulate, values: Sequence[Known], allocated: int) -> None:
        """Combines reduced values into locals. Where a mask does not hold, the values are identities: no mask is left."""
        components = COMBINES[s.combine].components(s.values[0].dtype)
        old = [self.load(p.name, p.index, t, None, ()) for p, t in zip(s.places, components, strict=True)]
        fn = self.combines.merged(s.combine, components, [x.name for x in old], [v.name for v in values])
        for p, name, v in zip(s.places, fn, values, strict=True):
            x = self.locals[p.name]
            value = Known(name, broadcast(v.shape, x.shape), 0)
            self.line(f"{self.variable(p.name, p.index)} = {spread(value, x.shape, x.local.dtype)}")
            self.forget(p.name)

    def fold(self, s: Fold) -> None:
        """The elements of local arrays as a reduction along an axis of the tile."""
        lane = ir.counter(f"{s.parts[0].name}_fold", s.parts[0].size)
        assert isinstance(lane, E.Sym)
        values = tuple(ir.load(x.name, lane, x.dtype) for x in s.parts)
        self.statement(Loop(lane, s.parts[0].size, "lanes", (Accumulate(s.places, *folded(s.combine, values, s.dtype)),)))

    def scan(self, s: Loop) -> None:
        """Running results along an axis of the tile, on top of the results before the tile."""
        dim = self.scope.dim
        totals: list[tuple[Accumulate, list[Known], int]] = []
        for x in s.body:
            self.scan_statement(x, dim, totals)
        for acc, values, allocated in totals:
            for p in acc.places:
                self.running.pop(p.name, None)
                self.forget(p.name)
            self.merge_reduced(acc, values, allocated)

    def scan_statement(self, s: Statement, dim: int, totals: list[tuple[Accumulate, list[Known], int]]) -> None:
        if isinstance(s, Guard):
            condition = self.value(s.condition)
            self.enter(s, self.scope.lines)
            self.scope.masks = (*self.scope.masks, (condition.name, condition.shape))
            for x in s.body:
                self.scan_statement(x, dim, totals)
            self.leave()
            return
        if not isinstance(s, Accumulate):
            self.statement(s)
            return
        if any(p.name not in self.locals for p in s.places):
            raise Unprintable(f"triton: the running result {s.places[0]} is not a local")
        allocated, here = self.locals[s.places[0].name].scope, len(self.scopes) - 1
        components = COMBINES[s.combine].components(s.values[0].dtype)
        along = [x for x in self.scopes if x.dim == dim]
        masks = self.masks_since(allocated)
        values = self.reduced(s, [self.value(v) for v in s.values], [], masks) if masks else self._wide(s)
        sizes = self.shape_of[along[0].loop.axis] if along[0].loop is not None else ()
        shape = broadcast(*(v.shape for v in values), sizes)
        values = [Known(self.hold(spread(v, shape, t)), shape, here) for v, t in zip(values, components, strict=True)]
        names = self.combines.scan(s.combine, components, [v.name for v in values], dim)
        old = [self.load(p.name, p.index, t, None, ()) for p, t in zip(s.places, components, strict=True)]
        results = self.combines.merged(s.combine, components, [x.name for x in old], names)
        for p, name, v, o in zip(s.places, results, values, old, strict=True):
            self.running[p.name] = Known(name, broadcast(v.shape, o.shape), here)
            self.forget(p.name)
        one = tuple(1 if d == dim else n for d, n in enumerate(shape))
        last = [Known(n, one, here) for n in self.combines.reduce(s.combine, components, [v.name for v in values], dim)]
        totals.append((s, last, allocated))

    def _wide(self, s: Accumulate) -> list[Known]:
        components = COMBINES[s.combine].components(s.values[0].dtype)
        out = []
        for v, t in zip([self.value(v) for v in s.values], components, strict=True):
            out.append(Known(self.hold(f"{v.name}.to({type_of(t)})"), v.shape, len(self.scopes) - 1))
        return out

    # -- masks and shapes ------------------------------------------------------------------------------------------
    def masks_since(self, scope: int) -> tuple[Mask, ...]:
        return self.scope.masks[len(self.scopes[scope].masks) :]

    def full_shape(self) -> Shape:
        """The shape that all tile loops around give."""
        return broadcast(*(self.shape_of[x.loop.axis] for x in self.scopes if x.dim >= 0 and x.loop is not None), (1,) * self.rank)

    def shape_of_index(self, e: E.Expr, bound: Mapping[str, Known]) -> Shape:
        shapes = [self.shape_of[s] for s in e.symbols if s in self.shape_of]
        return broadcast(*shapes, *(bound[s.name].shape for s in e.symbols if s.name in bound))

    def variable(self, name: str, index: E.Expr) -> str:
        x = self.locals[name]
        if not x.elements:
            return x.name
        if not isinstance(index, E.Int):
            raise Unprintable(f"triton: {name}[{index}] is not one of the separate elements of {name}")
        return x.elements[index.value]

    def address(self, name: str, at: E.Expr, indirect: Sequence[tuple[E.Sym, ir.Value]], shapes: Sequence[Shape]) -> tuple[str, Shape]:
        """Source of a pointer to an element in each of a tile's, and the tile's shape, which covers `shapes`."""
        bound = {s.name: self.value(v) for s, v in indirect}
        own = self.shape_of_index(at, bound)
        shape = broadcast(own, *shapes)
        text = self.index(at, {n: k.name for n, k in bound.items()})
        pointer = self.pointers.setdefault(name, f"p{len(self.pointers)}")
        if name not in self.memory:
            raise Unprintable(f"triton: {name} is not memory of the kernel")
        type_of(self.memory[name])
        if own != shape:
            text = f"tl.broadcast_to({text}, {list(shape)})" if own else f"tl.full({list(shape)}, {text}, {self.index_type})"
        elif text == "0":
            return pointer, shape
        return f"{pointer} + ({text})" if own == shape else f"{pointer} + {text}", shape

    def order(self, name: str, at: E.Expr | None, writes: bool) -> None:
        """A barrier, if another thread of the program may have touched the element since the last one."""
        if name not in self.scopes[0].written:
            return
        found = self.touched.get(name, set())
        if any((w or writes) and (not writes or at is None or e is not at) for w, e in found):
            self.line("tl.debug_barrier()")
            self.touched = {}
        self.touched.setdefault(name, set()).add((writes, at))

    # -- values ----------------------------------------------------------------------------------------------------
    def value(self, root: ir.Value) -> Known:
        """The name of a value, which is computed if it is not known."""
        if root not in self.known:
            for v in ir.walk([root]):
                if v not in self.known and (v is root or not isinstance(v, ir.Index | ir.Const)):
                    self.compute(v)
        return self.known[root]

    def compute(self, v: ir.Value) -> None:
        if isinstance(v, ir.Op) and v.name in COMPARE and _are_positions(v.args):
            self.compare(v)
            return
        inputs = [self.value(c) for c in v.children]
        if isinstance(v, ir.Load):
            found = self.load(v.buffer, v.index, v.dtype, v.mask, v.indirect)
            self.remember(v, found.name, found.shape, found.scope, found.reads.union(*(k.reads for k in inputs)))
            return
        scope = max([self.own_scope(v), *(k.scope for k in inputs)])
        shape = broadcast(*(k.shape for k in inputs))
        reads: frozenset[str] = frozenset().union(*(k.reads for k in inputs))
        match v:
            case ir.Const():
                self.remember(v, literal(v.value, v.dtype), (), 0, reads)
                return
            case ir.Index():
                shape = self.shape_of_index(v.expr, {})
                text = self.index(v.expr)
                text = f"({text}).to(tl.int64)" if shape else f"tl.full([], {text}, tl.int64)"
            case ir.Op() if v.name in CHECKS:
                text, shape = self.checked(v, inputs)
            case ir.Op():
                text = operation(v, [k.name for k in inputs])
            case _:
                raise Unprintable(f"triton: there is no form of a {type(v).__name__}")
        type_of(v.dtype)
        name = self.name()
        self.scopes[scope].lines.append(f"{name} = {text}")
        self.remember(v, name, shape, scope, reads)

    def compare(self, v: ir.Op) -> None:
        """A comparison of positions, in the type of positions."""
        sides = [E.as_expr(int(a.value)) if isinstance(a, ir.Const) else a.expr for a in v.args if isinstance(a, ir.Const | ir.Index)]
        shape, scope = broadcast(*(self.shape_of_index(e, {}) for e in sides)), max(self.own_scope(a) for a in v.args)
        text = f" {COMPARE[v.name]} ".join(map(self.index, sides))
        self.remember(v, self.hold(text, scope), shape, scope, frozenset())

    def own_scope(self, v: ir.Value) -> int:
        """The outermost scope in which a value may be computed, apart from its operands."""
        if isinstance(v, ir.Index):
            return max((self.scope_of[s] for s in v.expr.symbols if s in self.scope_of), default=0)
        return len(self.scopes) - 1 if isinstance(v, ir.Op) and v.name in CHECKS else 0

    def load(self, name: str, at: E.Expr, of: dtype, mask: ir.Value | None, indirect: Sequence[tuple[E.Sym, ir.Value]]) -> Known:
        """An element of a local or of memory; 0 where a mask does not hold."""
        here, reads = len(self.scopes) - 1, frozenset((name,)) if name in self.scopes[0].written else frozenset()
        own = None if mask is None else self.value(mask)
        if name in self.running:
            return self.running[name]
        if name in self.locals:
            x = self.locals[name]
            text = self.variable(name, at)
            if own is not None:
                text = f"tl.where({own.name}, {text}, {literal(0, of)})"
            return Known(self.hold(text), x.shape if own is None else broadcast(x.shape, own.shape), here, frozenset((name,)))
        index = self.shape_of_index(at, {s.name: self.value(v) for s, v in indirect})
        # A guard on an axis that the position does not move along holds in some element of the axis.
        masks = [m for m in self.scope.masks if not m[1] or any(n > 1 and k == n for n, k in zip(m[1], index, strict=False))]
        inputs = [self.value(v) for _, v in indirect] + ([own] if own is not None else [])
        scope = self.load_scope(name, at, masks, inputs)
        if own is not None:
            masks.append((own.name, own.shape))
        address, shape = self.address(name, at, indirect, [m[1] for m in masks])
        self.order(name, None if indirect else at, writes=False)
        text = f"tl.load({address}{f', {all_of(masks)}, other=0' if masks else ''})"
        return Known(self.hold(text, scope), shape, scope, reads)

    def load_scope(self, name: str, at: E.Expr, masks: Sequence[Mask], inputs: Sequence[Known]) -> int:
        """The outermost scope in which an element of memory may be read: the memory has its value, and the masks are known."""
        here = len(self.scopes) - 1
        if name in self.scopes[0].written:
            return here
        first = max([0, *(k.scope for k in inputs), *(self.scope_of[s] for s in at.symbols if s in self.scope_of)])
        return next((k for k in range(here, first, -1) if not set(masks) <= set(self.scopes[k - 1].masks)), first)

    def checked(self, v: ir.Op, inputs: Sequence[Known]) -> tuple[str, Shape]:
        """A position, or 0 where it is outside of its range; then its check fails, in the elements that the guards let run."""
        check = v.args[2]
        if not isinstance(check, ir.Const):
            raise Unprintable("triton: the number of an index check is not constant")
        self.has_checks = True
        position, size = inputs[0].name, inputs[1].name
        at = self.hold(f"fj_wrapped({position}, {size})") if v.name == "wrap_index" else position
        inside = self.hold(f"({at} >= 0) & ({at} < {size})")
        shape = broadcast(inputs[0].shape, inputs[1].shape)
        active = [m for m in self.scope.masks if not m[1] or broadcast(m[1], shape) == shape]
        excused = f"{inside} | ({all_of(active)} == 0)" if active else inside
        self.line(f"fj_check({CHECKS_POINTER}, {2 * int(check.value)}, {position}, {excused})")
        return f"tl.where({inside}, {at}, 0)", shape

    def hold(self, text: str, scope: int = -1) -> str:
        """A new name for an expression, in the innermost scope or in another one."""
        name = self.name()
        self.scopes[scope].lines.append(f"{name} = {text}")
        return name

    def remember(self, v: ir.Value, name: str, shape: Shape, scope: int, reads: frozenset[str]) -> None:
        self.known[v] = Known(name, shape, scope, reads)
        self.scopes[scope].values.append(v)

    def forget(self, memory: str) -> None:
        """Drop the values that read memory that has just been written."""
        for values in (self.known, *(x.values for scope in self.scopes for x in scope.opened.values())):
            for v in [v for v, k in values.items() if memory in k.reads]:
                del values[v]

    def index(self, e: E.IntLike, bound: Mapping[str, str] | None = None) -> str:
        """An index expression over printed loops and sizes."""
        if not isinstance(e, E.Expr):
            return str(e)
        names = {**self.axes, **(bound or {})}
        for s in sorted(e.symbols, key=lambda s: s.name):
            if s.name not in names:
                self.sizes[s.name] = None
        return index_source(e, names)


def _are_positions(values: Sequence[ir.Value]) -> bool:
    """Whether values are index expressions, not all of them constants."""
    return all(isinstance(a, ir.Index | ir.Const) for a in values) and any(isinstance(a, ir.Index) for a in values)


def _written(body: Block) -> frozenset[str]:
    return frozenset(p.name for s in walk(body) for p in places_of(s))


__all__ = ["print_kernel"]
