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
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import product
from inductor.loops.dependence import accesses
from inductor.loops.reductions import COMBINES, folded, state_of
from inductor.loops.refusal import Refused
from inductor.loops.tiles import ATOMIC, ELEMENTS, TILE_KINDS, colliding, expressions_of, rank_of, tiles_of
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Contract,
    Fold,
    Guard,
    Kernel,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    roots_of,
    substitute,
    values_of,
    walk,
)
from inductor.triton.combines import Combines
from inductor.triton.emitter import Emitter, Opened, Scope, Variable, written_in
from inductor.triton.helpers import HEADER
from inductor.triton.kernel import CHECKS_POINTER, DESCRIPTOR_BYTES, Launches, Options, Scratch, TritonKernel
from inductor.triton.products import Products
from inductor.triton.tiles import Known, Mask, all_of, broadcast, reach, spread, warps
from inductor.triton.values import Unprintable, literal, type_of

DOT_STAGES: Final = 3  # blocks of the operands of a product that are loaded ahead
NARROW: Final = 1 << 31  # below this, positions are int32
_BY_RULE: Final = Options()


def print_kernel(kernel: Kernel, name: str, options: Options = _BY_RULE) -> Launches:
    """The kernels that run a loop tree, in order. Raises: Unprintable."""
    statements, shared = roots_of(kernel.body)
    memory = {**kernel.dtypes, **{x.name: x.dtype for x in shared}}
    printed: list[TritonKernel] = []
    scratch = [Scratch(x.name, x.size, x.dtype) for x in shared]
    for k, s in enumerate(statements):
        own = name if len(statements) == 1 else f"{name}_{k}"
        try:
            elsewhere = {a.place.name for other in statements if other is not s for a in accesses((other,))}
            function = _Function(memory, s, kernel.temporary - elsewhere, options)
            printed.append(function.kernel(own))
            scratch += function.scratch
        except Refused as refused:
            raise Unprintable(f"triton: {own}: {refused}") from None
    return Launches(tuple(printed), tuple(scratch))


class _Function:
    """Prints one statement at the root. private: memory that nothing outside of it reads."""

    def __init__(self, memory: Mapping[str, dtype], root: Statement, private: frozenset[str], options: Options) -> None:
        self.root, self.private, self.options = root, private, options
        is_narrow = all(reach(e) < NARROW for e in expressions_of((root,)))
        self.out = Emitter(memory, written_in((root,)), rank_of((root,)), is_narrow)
        self.tiles = tiles_of((root,))
        self.grid: list[Loop] = []
        self.combines = Combines(self.out.name, self.out.line, self.out.helpers)
        loops = [s for s in walk((root,)) if isinstance(s, Loop) and s.kind in ("grid", "turns", "lanes")]
        self.atomic = frozenset().union(*(colliding(s) for s in loops)) if loops else frozenset()
        self.products = Products(self.out, options.precision)
        self.scratch: list[Scratch] = []

    def kernel(self, name: str) -> TritonKernel:
        """The kernel `name`."""
        self.statement(self.root)
        number, ids = self._program_ids()
        lines = [*ids, *self.out.scopes[0].lines]
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        combines = "".join(f"\n\n{source}" for source in self.combines.functions.values())
        before = f"{HEADER}{self.out.helpers.sources()}{combines}"
        checks = (CHECKS_POINTER,) if self.out.has_checks else ()
        pointers, parameters = (*self.out.pointers, *checks), (*self.out.pointers.values(), *checks, *self.out.sizes)
        written = {*self.out.scopes[0].written, *checks}
        types = tuple(dtypes.int64 if n == CHECKS_POINTER else self.out.memory[n] for n in pointers)
        grid = product(s.extent for s in self.grid)
        outputs = tuple(n for n in pointers if n in written)
        num_warps = self.options.num_warps or warps(self.out.tile, self.products.are_printed)
        descriptors = self.products.n_descriptors
        if descriptors:
            if self.out.sizes or not isinstance(grid, int):
                raise Unprintable(f"triton: {name} has descriptors, and sizes that are not constant")
            memory = f"{min(outputs)}_descriptors"
            self.scratch.append(Scratch(memory, grid * descriptors * DESCRIPTOR_BYTES, dtypes.uint8))
            pointers, outputs, types = (*pointers, memory), (*outputs, memory), (*types, dtypes.uint8)
        stages = (self.options.num_stages or DOT_STAGES) if self.products.are_printed else 1
        return TritonKernel(name, before, parameters, body, pointers, outputs, tuple(self.out.sizes), types, grid, num_warps,
                            self.out.tile, stages, (number, "" if self.out.is_narrow or not number else "tl.int64"),
                            descriptors=descriptors)  # fmt: skip

    def _program_ids(self) -> tuple[str, list[str]]:
        """The name of the program's number, and the counters of the grid loops from it, the innermost loop fastest."""
        if len(self.grid) < 2:
            return "".join(self.out.axes[s.axis.name] for s in self.grid), []
        lines, left = [], "pid"
        for k, s in reversed(list(enumerate(self.grid))):
            n = self.out.index(s.extent)
            lines.append(f"{self.out.axes[s.axis.name]} = {left}" + (f" % ({n})" if k else ""))
            if k:
                lines.append(f"pid{k} = {left} // ({n})")
                left = f"pid{k}"
        return "pid", lines

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
                self.store((s.place,), (self.out.value(s.value),))
            case Accumulate():
                self.accumulate(s)
            case Fold():
                self.fold(s)
            case Contract():
                self.products.block(s, self.finish)

    def loop(self, s: Loop) -> None:
        if s.kind == "grid":
            self.out.axes[s.axis.name] = f"g{len(self.grid)}"
            self.grid.append(s)
            self.out.enter(s, self.out.scope.lines)
            self.out.shape_of[s.axis] = ()
            self.block(s.body)
            self.out.leave()
        elif s.kind in TILE_KINDS:
            self.tile_loop(s)
        else:
            self.counted_loop(s)

    def tile_loop(self, s: Loop) -> None:
        """A loop whose iterations are the elements along an axis of tiles."""
        around, dim = self.out.scope, sum(x.dim >= 0 for x in self.out.scopes)
        opened = around.opened.get(s.extent)
        if opened is None:
            self.out.open_axis(s, dim)
            opened = around.opened[s.extent] = Opened(s.axis, self.out.scope.masks, {})
        else:
            s = Loop(opened.axis, s.extent, s.kind, substitute(s.body, {s.axis: opened.axis}))
            self.out.enter(s, around.lines, dim)
            self.out.scope.masks = opened.masks
            for v, known in opened.values.items():
                self.out.remember(v, known.name, known.shape, known.scope, known.reads)
        if s.kind == "scan":
            self.scan(s)
        else:
            self.block(s.body)
        opened.values = {v: self.out.known[v] for v in self.out.scope.values if v in self.out.known}
        self.out.leave()

    def counted_loop(self, s: Loop) -> None:
        """A Python loop. Turns over the blocks of a contraction have the loop over the depth in them."""
        product = s.body[0]
        if s.kind == "turns" and isinstance(product, Contract) and len(product.axes.depth) == 2:
            self.products.blocks(s, product, self.finish)
            return
        extent = self.out.index(s.extent)
        name = counter = self.out.axes[s.axis.name] = self.out.name("i")
        self.out.shape_of[s.axis] = ()
        with self.out.iterations(s) as inner:
            if not self.out.is_narrow:
                counter = self.out.name("i")
                self.out.line(f"{name} = tl.full([], {counter}, tl.int64)")
            self.block(s.body)
        self.out.line(f"for {counter} in range(0, {extent}):")
        for text in inner or ["pass"]:
            self.out.line(f"    {text}")

    def guard(self, s: Guard) -> None:
        condition = self.out.value(s.condition)
        self.out.enter(s, self.out.scope.lines)
        self.out.scope.masks = (*self.out.scope.masks, (condition.name, condition.shape))
        self.block(s.body)
        self.out.leave()

    def allocate(self, local: Local) -> None:
        outer = self.out.full_shape() if any(x.dim >= 0 for x in self.out.scopes) else (1,) * self.out.rank
        along = self.tiles.get(local.name)
        if local.size != 1 and along is None:
            raise Unprintable(f"triton: {local.name} of {local.size} elements is not a tile: its elements are not the iterations of a "
                              "loop over an axis")  # fmt: skip
        shape, names = outer, [self.out.name("l")]
        if local.size != 1 and along == ELEMENTS:
            assert isinstance(local.size, int)
            names = [self.out.name("l") for _ in range(local.size)]
        elif local.size != 1:
            shape = tuple(dict(along or ()).get(d, n) for d, n in enumerate(outer))
        self.out.use(math.prod(shape))
        for name in names:
            self.out.line(f"{name} = tl.full({list(shape)}, 0, {type_of(local.dtype)})")
        self.out.locals[local.name] = Variable(local, names[0], shape, len(self.out.scopes) - 1, tuple(names) if along == ELEMENTS else ())

    def store(self, places: Sequence[Place], values: Sequence[Known]) -> None:
        for p, v in zip(places, values, strict=True):
            if p.name in self.out.locals:
                self.assign(p, v)
            else:
                self.write(p, v)
        for p, v in zip(places, values, strict=True):
            self.out.forget(p.name)
            if not p.indirect and p.name not in self.out.locals:  # a later read of the element in this iteration finds the value
                stored = ir.load(p.name, p.index, self.out.memory[p.name])
                self.out.remember(stored, v.name, v.shape, len(self.out.scopes) - 1, frozenset((p.name,)))

    def assign(self, place: Place, value: Known) -> None:
        """Stores into a local. Outside of the guards since its allocation it keeps its value."""
        x = self.out.locals[place.name]
        target, text = self.out.variable(place.name, place.index), value.name
        masks = self.out.masks_since(x.scope)
        if masks:
            text = f"tl.where({all_of(masks)}, {text}, {target})"
            broadcast(x.shape, value.shape, *(m[1] for m in masks))
        else:
            text = spread(value, x.shape, x.local.dtype)
        self.out.line(f"{target} = {text}")

    def write(self, place: Place, value: Known) -> None:
        """Stores into memory, where all guards hold."""
        masks = self.out.scope.masks
        address, shape = self.out.address(place.name, place.index, place.indirect, (value.shape, *(m[1] for m in masks)))
        # The compiler may simplify integers, such as 0 * x, so that their value is not computed from x.
        is_computed = place.name in value.reads and self.out.memory[place.name].is_floating_point
        self.out.order(place.name, None if place.indirect else place.index, writes=True, is_computed_from=is_computed)
        text = spread(value, shape, self.out.memory[place.name])
        self.out.line(f"tl.store({address}, {text}{', ' + all_of(masks) if masks else ''})")

    # -- reductions ------------------------------------------------------------------------------------------------
    def accumulate(self, s: Accumulate) -> None:
        first = s.places[0]
        allocated = self.out.locals[first.name].scope if first.name in self.out.locals else 0
        values = [self.out.value(v) for v in s.values]
        fixed = [x for x in self.out.scopes[allocated + 1 :] if x.dim >= 0 and not self._moves(s.places, x)]
        if fixed:
            values = self.reduced(s, values, fixed, self.out.masks_since(allocated))
        if first.name not in self.out.locals:
            masks = self.narrowed(self.out.scope.masks, [x.dim for x in fixed])
            self.add_to_memory(s, values, masks)
        elif fixed:
            self.merge_reduced(s, values, allocated)
        else:
            self.store(s.places, [self.out.value(v) for v in COMBINES[s.combine].merge(state_of(s), s.values)])

    def _moves(self, places: Sequence[Place], scope: Scope) -> bool:
        """Whether places are different elements in different iterations of a tile loop."""
        assert scope.loop is not None
        bound = [self.out.value(v).shape for p in places for _, v in p.indirect]
        return any(scope.loop.axis in p.index.symbols for p in places) or any(shape and shape[scope.dim] > 1 for shape in bound)

    def narrowed(self, masks: Sequence[Mask], along: Sequence[int]) -> list[Mask]:
        """Masks of tiles that are reduced along axes: each holds where it held for some element."""
        out = []
        for name, shape in masks:
            for d in along:
                if shape and shape[d] > 1:
                    shape = tuple(1 if k == d else n for k, n in enumerate(shape))
                    name = self.out.hold(f"tl.max({name}.to(tl.int32), {d}, keep_dims=True) != 0") if math.prod(shape) > 1 else ""
                    if not name:
                        break
            if name:
                out.append((name, shape))
        return out

    def add_to_memory(self, s: Accumulate, values: Sequence[Known], masks: Sequence[Mask]) -> None:
        """Accumulates into memory, in one step if other elements or programs may accumulate into the same element."""
        (place,), (value,) = s.places, values
        of = self.out.memory[place.name]
        if place.name in self.atomic:
            if s.combine != "sum" or of not in ATOMIC:
                raise Unprintable(f"triton: several elements may accumulate into {place}, and {s.combine} of {of.name} is not one step")
        else:
            old = self.out.load(place.name, place.index, of, None, place.indirect)
            (name,) = self.combines.merged(s.combine, (of,), [old.name], [value.name])
            value = Known(name, broadcast(old.shape, value.shape), len(self.out.scopes) - 1)
        address, shape = self.out.address(place.name, place.index, place.indirect, (value.shape, *(m[1] for m in masks)))
        self.out.order(place.name, None, writes=True)
        where = f", {all_of(masks)}" if masks else ""
        text = spread(value, shape, of)
        is_atomic = place.name in self.atomic
        self.out.line(f"tl.atomic_add({address}, {text}{where}, sem='relaxed')" if is_atomic else f"tl.store({address}, {text}{where})")
        self.out.forget(place.name)

    def reduced(self, s: Accumulate, values: Sequence[Known], along: Sequence[Scope], masks: Sequence[Mask]) -> list[Known]:
        """The values combined along axes of the tile."""
        identity = COMBINES[s.combine].identity(s.values[0].dtype)
        components = COMBINES[s.combine].components(s.values[0].dtype)
        sizes = [self.out.shape_of[x.loop.axis] for x in along if x.loop is not None]
        shape = broadcast(*(v.shape for v in values), *sizes, *(m[1] for m in masks))
        names = []
        for v, zero, given, of in zip(values, identity, s.values, components, strict=True):
            text = v.name
            if given.dtype is not of:  # a wide sum
                text = f"{text}.to({type_of(of)})"
            if masks:
                assert isinstance(zero, ir.Const)
                text = f"tl.where({all_of(masks)}, {text}, {literal(zero.value, of)})"
            names.append(self.out.hold(spread(Known(text, broadcast(v.shape, *(m[1] for m in masks)), 0), shape, of)))
        for x in along:
            shape = tuple(1 if d == x.dim else n for d, n in enumerate(shape))
            names = self.combines.reduce(s.combine, components, names, x.dim)
        return [Known(n, shape, len(self.out.scopes) - 1) for n in names]

    def merge_reduced(self, s: Accumulate, values: Sequence[Known], allocated: int) -> None:
        """Combines reduced values into locals. Where a mask does not hold, the values are identities: no mask is left."""
        components = COMBINES[s.combine].components(s.values[0].dtype)
        old = [self.out.load(p.name, p.index, t, None, ()) for p, t in zip(s.places, components, strict=True)]
        fn = self.combines.merged(s.combine, components, [x.name for x in old], [v.name for v in values])
        for p, name, v in zip(s.places, fn, values, strict=True):
            x = self.out.locals[p.name]
            value = Known(name, broadcast(v.shape, x.shape), 0)
            self.out.line(f"{self.out.variable(p.name, p.index)} = {spread(value, x.shape, x.local.dtype)}")
            self.out.forget(p.name)

    def fold(self, s: Fold) -> None:
        """The elements of local arrays as a reduction along an axis of the tile."""
        lane = ir.counter(f"{s.parts[0].name}_fold", s.parts[0].size)
        assert isinstance(lane, E.Sym)
        values = tuple(ir.load(x.name, lane, x.dtype) for x in s.parts)
        self.statement(Loop(lane, s.parts[0].size, "lanes", (Accumulate(s.places, *folded(s.combine, values, s.dtype)),)))

    def scan(self, s: Loop) -> None:
        """Running results along an axis of the tile, on top of the results before the tile.

        An accumulation that the loop does not read has no running result: it is a reduction along every axis on which its place is fixed.
        """
        dim = self.out.scope.dim
        totals: list[tuple[Accumulate, list[Known], int]] = []
        read = frozenset(x.buffer for st in walk(s.body) for v in values_of(st) for x in ir.loads_in(v))
        for x in s.body:
            self.scan_statement(x, dim, read, totals)
        for acc, values, allocated in totals:
            for p in acc.places:
                self.out.running.pop(p.name, None)
                self.out.forget(p.name)
            self.merge_reduced(acc, values, allocated)

    def scan_statement(self, s: Statement, dim: int, read: frozenset[str], totals: list[tuple[Accumulate, list[Known], int]]) -> None:
        if isinstance(s, Guard):
            condition = self.out.value(s.condition)
            self.out.enter(s, self.out.scope.lines)
            self.out.scope.masks = (*self.out.scope.masks, (condition.name, condition.shape))
            for x in s.body:
                self.scan_statement(x, dim, read, totals)
            self.out.leave()
            return
        if not isinstance(s, Accumulate) or not any(p.name in read for p in s.places):
            self.statement(s)
            return
        if any(p.name not in self.out.locals for p in s.places):
            raise Unprintable(f"triton: the running result {s.places[0]} is not a local")
        allocated, here = self.out.locals[s.places[0].name].scope, len(self.out.scopes) - 1
        components = COMBINES[s.combine].components(s.values[0].dtype)
        along = [x for x in self.out.scopes if x.dim == dim]
        masks = self.out.masks_since(allocated)
        values = self.reduced(s, [self.out.value(v) for v in s.values], [], masks) if masks else self._wide(s)
        sizes = self.out.shape_of[along[0].loop.axis] if along[0].loop is not None else ()
        shape = broadcast(*(v.shape for v in values), sizes)
        values = [Known(self.out.hold(spread(v, shape, t)), shape, here) for v, t in zip(values, components, strict=True)]
        names = self.combines.scan(s.combine, components, [v.name for v in values], dim)
        old = [self.out.load(p.name, p.index, t, None, ()) for p, t in zip(s.places, components, strict=True)]
        results = self.combines.merged(s.combine, components, [x.name for x in old], names)
        for p, name, v, o in zip(s.places, results, values, old, strict=True):
            self.out.running[p.name] = Known(name, broadcast(v.shape, o.shape), here)
            self.out.forget(p.name)
        one = tuple(1 if d == dim else n for d, n in enumerate(shape))
        last = [Known(n, one, here) for n in self.combines.reduce(s.combine, components, [v.name for v in values], dim)]
        totals.append((s, last, allocated))

    def _wide(self, s: Accumulate) -> list[Known]:
        components = COMBINES[s.combine].components(s.values[0].dtype)
        out = []
        for v, t in zip([self.out.value(v) for v in s.values], components, strict=True):
            out.append(Known(self.out.hold(f"{v.name}.to({type_of(t)})"), v.shape, len(self.out.scopes) - 1))
        return out

    # -- contractions ----------------------------------------------------------------------------------------------
    def finish(self, s: Contract, total: Known) -> None:
        """The body of a contraction on a block of its results."""
        if not self.is_dead(s):
            self.store((s.place,), (total,))
        else:
            summed = ir.load(s.place.name, s.place.index, s.a.dtype)
            self.out.remember(summed, total.name, total.shape, len(self.out.scopes) - 1, frozenset())
        self.block(s.body)

    def is_dead(self, s: Contract) -> bool:
        """Whether nothing but the body reads the result, or the body overwrites it."""
        again = [x for x in s.body if isinstance(x, Store) and x.place.name == s.place.name and x.place.index is s.place.index]
        return bool(again) or s.place.name in self.private


__all__ = ["print_kernel"]
