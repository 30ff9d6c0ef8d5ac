"""The state of a kernel that is being printed: names, scopes, masks, pointers, and the values that are known.

Owns where a value is computed and under which masks memory is read. `inductor.triton.loops` prints statements with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.loops.dependence import carried
from inductor.loops.tiles import tile_size
from inductor.loops.tree import UNORDERED, Block, Guard, Local, Loop, places_of, walk
from inductor.triton.helpers import Helpers
from inductor.triton.kernel import CHECKS_POINTER
from inductor.triton.tiles import Known, Mask, Shape, all_of, broadcast
from inductor.triton.values import (
    CHECKS,
    COMPARE,
    Unprintable,
    fused,
    index_source,
    literal,
    operation,
    product_operand,
    type_of,
)


@dataclass(slots=True)
class Scope:
    """A loop or guard that is being printed. lines: of the Python block around it. masks: names and shapes, all of which hold.

    written: memory that its statements write. blocks: whether the lines are a separate Python block. values: known in it alone.
    loop, dim: the loop, and the axis of tiles that it is. opened: the tile loops in it so far, by extent: a later one with the
    extent of an earlier one continues with its counter, its mask and its values. positions: names of parts of positions that are
    computed in it.
    """

    lines: list[str]
    written: frozenset[str]
    masks: tuple[Mask, ...]
    loop: Loop | None = None
    dim: int = -1
    values: list[ir.Value] = field(default_factory=list)
    opened: dict[Size, Opened] = field(default_factory=dict)
    positions: dict[E.Expr, str] = field(default_factory=dict)


@dataclass(slots=True)
class Opened:
    """A tile loop that has been printed: its axis and mask, and the values that are known in it."""

    axis: E.Sym
    masks: tuple[Mask, ...]
    values: dict[ir.Value, Known]


@dataclass(slots=True)
class Variable:
    """A local: the name of its variable, its shape, and the scope that allocates it. elements: names of separate elements."""

    local: Local
    name: str
    shape: Shape
    scope: int
    elements: tuple[str, ...] = ()


class Emitter:
    """memory: dtypes of all memory outside. written: the memory that the kernel writes. rank: of its tiles.

    is_narrow: whether all positions fit into int32. locals: by name. running: results of the scan that is being printed.
    touched: accesses of memory since the last barrier, (writes, position).
    """

    def __init__(self, memory: Mapping[str, dtype], written: frozenset[str], rank: int, is_narrow: bool) -> None:
        self.memory, self.rank, self.is_narrow = memory, rank, is_narrow
        self.index_type = "tl.int32" if is_narrow else "tl.int64"
        self.scopes = [Scope([], written, ())]
        self.known: dict[ir.Value, Known] = {}
        self.axes: dict[str, str] = {}
        self.shape_of: dict[E.Sym, Shape] = {}
        self.scope_of: dict[E.Sym, int] = {}
        self.locals: dict[str, Variable] = {}
        self.running: dict[str, Known] = {}
        self.pointers: dict[str, str] = {}
        self.sizes: dict[str, None] = {}
        self.touched: dict[str, set[tuple[bool, E.Expr | None]]] = {}
        self.helpers = Helpers()
        self.n_names = 0
        self.tile = 1
        self.has_checks = False

    # -- scopes ----------------------------------------------------------------------------------------------------
    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    def line(self, text: str) -> None:
        self.scope.lines.append(text)

    def name(self, letter: str = "t") -> str:
        self.n_names += 1
        return f"{letter}{self.n_names - 1}"

    def enter(self, s: Loop | Guard, lines: list[str], dim: int = -1) -> Scope:
        made = Scope(lines, written_in(s.body), self.scope.masks, s if isinstance(s, Loop) else None, dim)
        self.scopes.append(made)
        if isinstance(s, Loop):
            self.scope_of[s.axis] = len(self.scopes) - 1
        return made

    @contextmanager
    def iterations(self, s: Loop) -> Iterator[list[str]]:
        """A Python loop, whose lines the caller prints. Memory that it writes may have been touched by an earlier iteration."""
        again = frozenset() if s.kind in UNORDERED else frozenset(a.place.name for a, _ in carried(s)) - self.locals.keys()
        before = {} if E.as_expr(s.extent).lo > 0 else {name: set(found) for name, found in self.touched.items()}
        self.touch_all(again)
        lines: list[str] = []
        self.enter(s, lines)
        for memory in self.scope.written:
            self.forget(memory)
        yield lines
        self.leave()
        self.touch_all(again)
        for name, found in before.items():  # a loop without iterations has no barrier
            self.touched.setdefault(name, set()).update(found)

    def leave(self) -> None:
        for v in self.scopes.pop().values:
            self.known.pop(v, None)

    def mask(self, condition: str, shape: Shape) -> None:
        """Makes the scope run only where a condition holds."""
        name = self.name("m")
        self.line(f"{name} = {condition}")
        self.scope.masks = (*self.scope.masks, (name, shape))

    def open_axis(self, s: Loop, dim: int) -> None:
        """Enters a tile loop that becomes axis `dim`."""
        self.enter(s, self.scope.lines, dim)
        self.count_along(s, dim)
        self.mask_along(s)

    def count_along(self, s: Loop, dim: int) -> None:
        """The counter of a tile loop that has been entered as axis `dim`."""
        self.counter(s.axis, tile_size(s.extent), dim)
        self.use(math.prod(self.full_shape()))

    def mask_along(self, s: Loop) -> None:
        """Makes the scope run only in the iterations of a tile loop, which has a counter."""
        if s.extent != tile_size(s.extent):
            self.mask(f"{self.axes[s.axis.name]} < {self.index(s.extent)}", self.shape_of[s.axis])

    def counter(self, axis: E.Sym, size: int, dim: int) -> tuple[str, Shape]:
        """The name and the shape of the positions along axis `dim` of a tile."""
        name = self.axes[axis.name] = self.name("x")
        shape = self.shape_of[axis] = tuple(size if d == dim else 1 for d in range(self.rank))
        self.scope_of[axis] = len(self.scopes) - 1
        view = "" if self.rank == 1 else f"[{', '.join(':' if d == dim else 'None' for d in range(self.rank))}]"
        self.line(f"{name} = tl.arange(0, {size}){view}{'' if self.is_narrow else '.to(tl.int64)'}")
        return name, shape

    def use(self, elements: int) -> None:
        self.tile = max(self.tile, elements)

    def touch_all(self, names: frozenset[str]) -> None:
        for memory in names:
            if memory in self.memory:
                self.touched.setdefault(memory, set()).add((True, None))

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
        names = {n: k.name for n, k in bound.items()}
        pointer = self.pointers.setdefault(name, f"p{len(self.pointers)}")
        if name not in self.memory:
            raise Unprintable(f"triton: {name} is not memory of the kernel")
        type_of(self.memory[name])
        fixed, moving = (at, None) if bound else self.split(at)
        if moving is not None:
            pointer, at = f"({pointer} + ({self.index(moving)}))", fixed
        text = self.position(at, names)
        if own != shape:
            text = f"tl.broadcast_to({text}, {list(shape)})" if own else f"tl.full({list(shape)}, {text}, {self.index_type})"
        elif text == "0":
            return pointer, shape
        return f"{pointer} + ({text})" if own == shape else f"{pointer} + {text}", shape

    def order(self, name: str, at: E.Expr | None, writes: bool, is_computed_from: bool = False) -> None:
        """A barrier, if another thread of the program may have touched the element since the last one.

        The compiler chooses separately which thread runs each access to an element. Only a store whose value is computed from the loaded
        element (is_computed_from) needs no barrier after the load: the compiler orders the threads that the value passes between.
        """
        if name not in self.scopes[0].written:
            return
        found = self.touched.get(name, set())
        if any((w or writes) and (w or e is not at or at is None or not is_computed_from) for w, e in found):
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
            case ir.Op() if self.is_loaded(v):
                self.remember(v, inputs[1].name, inputs[1].shape, inputs[1].scope, reads)
                return
            case ir.Op():
                text = self.fused(v, inputs) or operation(v, [k.name for k in inputs], self.helpers)
            case _:
                raise Unprintable(f"triton: there is no form of a {type(v).__name__}")
        type_of(v.dtype)
        name = self.name()
        self.scopes[scope].lines.append(f"{name} = {text}")
        self.remember(v, name, shape, scope, reads)

    def fused(self, v: ir.Op, inputs: Sequence[Known]) -> str:
        """Source of a sum with a product in one instruction, if the product's factors are known; else ""."""
        number = product_operand(v)
        product = v.args[number]
        if number < 0 or any(x not in self.known for x in product.children):
            return ""
        return fused(v, number, [self.known[x].name for x in product.children], inputs[1 - number].name)

    def compare(self, v: ir.Op) -> None:
        """A comparison of positions, in the type of positions."""
        sides = [E.as_expr(int(a.value)) if isinstance(a, ir.Const) else a.expr for a in v.args if isinstance(a, ir.Const | ir.Index)]
        shape, scope = broadcast(*(self.shape_of_index(e, {}) for e in sides)), max(self.own_scope(a) for a in v.args)
        text = f" {COMPARE[v.name]} ".join(map(self.position, sides))
        self.remember(v, self.hold(text, scope), shape, scope, frozenset())

    def is_loaded(self, v: ir.Op) -> bool:
        """Whether an operation selects 0 where a load from memory is masked, which gives 0 there."""
        if v.name != "where" or not isinstance(v.args[2], ir.Const) or v.args[2].value != 0:
            return False
        condition, x = v.args[:2]
        while isinstance(x, ir.Op) and x.name == "cast":
            x = x.args[0]
        if not isinstance(x, ir.Load) or x.buffer in self.running or x.mask is None:
            return False
        pending = [x.mask]
        while pending:
            m = pending.pop()
            if m is condition:
                return True
            pending += m.args if isinstance(m, ir.Op) and m.name == "logical_and" else ()
        return False

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
        zero = "0.0" if of.is_float8 else "0"  # Triton does not convert a whole number to 8 bits
        text = f"tl.load({address}{f', {all_of(masks)}, other={zero}' if masks else ''})"
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
        at = self.hold(f"{self.helpers['wrapped']}({position}, {size})") if v.name == "wrap_index" else position
        inside = self.hold(f"({at} >= 0) & ({at} < {size})")
        shape = broadcast(inputs[0].shape, inputs[1].shape)
        active = [m for m in self.scope.masks if not m[1] or broadcast(m[1], shape) == shape]
        excused = f"{inside} | ({all_of(active)} == 0)" if active else inside
        self.line(f"{self.helpers['check']}({CHECKS_POINTER}, {2 * int(check.value)}, {position}, {excused})")
        return f"tl.where({inside}, {at}, 0)", shape

    def hold(self, text: str, scope: int = -1) -> str:
        """A new name for an expression, in the innermost scope or in `scope`."""
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

    def split(self, e: E.Expr) -> tuple[E.Expr, E.Expr | None]:
        """A position of a tile as a part that is fixed in the innermost of its loops, and a scalar part; (e, None) if it has no such parts.

        The fixed part is computed before the loop, and a pointer moves by one scalar in each iteration.
        """
        innermost = self.innermost(e)
        if not isinstance(e, E.Add) or not innermost:
            return e, None
        terms = [(t, c) for t, c in e.terms if self.innermost(t) == innermost]
        moving = E.dot([t for t, _ in terms], [c for _, c in terms])
        fixed = e - moving
        return (e, None) if self.shape_of_index(moving, {}) or not self.shape_of_index(fixed, {}) else (fixed, moving)

    def innermost(self, e: E.Expr) -> int:
        """The scope of the innermost loop whose counter is in an expression."""
        return max((self.scope_of[s] for s in e.symbols if s in self.scope_of), default=0)

    def position(self, e: E.Expr, bound: Mapping[str, str] | None = None) -> str:
        """An index expression, whose part that is fixed in the innermost loop is computed outside of it."""
        if bound or not self.shape_of_index(e, {}):
            return self.index(e, bound)
        fixed, moving = self.split(e)
        if moving is not None:
            return f"{self.position(fixed)} + ({self.index(moving)})"
        scope = self.innermost(e)
        if scope == len(self.scopes) - 1 or isinstance(e, E.Sym):
            return self.index(e)
        names = self.scopes[scope].positions
        if e not in names:
            names[e] = self.hold(self.index(e), scope)
        return names[e]

    def index(self, e: E.IntLike, bound: Mapping[str, str] | None = None) -> str:
        """An index expression over printed loops and sizes."""
        if not isinstance(e, E.Expr):
            return str(e)
        names = {**self.axes, **(bound or {})}
        for s in sorted(e.symbols, key=lambda s: s.name):
            if s.name not in names:
                self.sizes[s.name] = None
        return index_source(e, names, self.helpers)


def _are_positions(values: Sequence[ir.Value]) -> bool:
    """Whether values are index expressions, not all of them constants."""
    return all(isinstance(a, ir.Index | ir.Const) for a in values) and any(isinstance(a, ir.Index) for a in values)


def written_in(body: Block) -> frozenset[str]:
    """The memory that statements write."""
    return frozenset(p.name for s in walk(body) for p in places_of(s))
