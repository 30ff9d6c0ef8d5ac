"""Loop trees as C++ functions over memory whose pointers the caller passes in `args`.

Owns statements and the place of each computation; `inductor.cpp.values` owns the C++ form of operations. A value is computed once,
as a constant, in the outermost loop that its axes, the memory that it reads and the guards around it allow. Each statement at the
root of the tree is one function `void run(void* ctx, long begin, long end)`; a parallel loop at the root runs from begin to end.
Names of loops, locals and pointers are numbered in order of appearance, so that equal kernels have equal texts. The text of a kernel
is remembered: a kernel that runs on several groups of buffers is printed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from fxir.expr.printing import to_source
from inductor.cpp.division import split_inverse
from inductor.cpp.draws import Draw, whole_draw
from inductor.cpp.gemm_core import block_symbol
from inductor.cpp.products import problem_of
from inductor.cpp.transposes import Transposition, streamed_copy, transposition
from inductor.cpp.units import CALLED, FLOP_NS, RUN, Code, Cost, Place, declared, joined, launch
from inductor.cpp.units import Kernel as Printed
from inductor.cpp.values import STYLE, TYPE, called, literal, operation, size_source
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, nominal, plain, product
from inductor.ir.values import EXPENSIVE, at_point
from inductor.loops.apply import ROW_BYTES
from inductor.loops.build import expanded
from inductor.loops.reductions import COMBINES, folded, state_of
from inductor.loops.tree import (
    REMEMBERED,
    Accumulate,
    Allocate,
    Block,
    Contract,
    Fold,
    Guard,
    Kernel,
    Local,
    Loop,
    Statement,
    Store,
    loops_in,
    places_of,
    roots_of,
    values_of,
    walk,
)
from inductor.loops.tree import (
    Place as Element,
)

_FOLDED: Final = frozenset({"sum", "prod", "any", "all", "max", "min", "compensated"})  # have a function in the prelude
_FEWEST_FOLDED: Final = 4  # elements that these functions take
_LONGEST: Final = 1 << 24  # iterations of one loop; a larger bound is the bound of a symbol
_PLAIN_NS, _EXPENSIVE_NS = 0.12, 0.8  # nanoseconds of one vectorised operation on one element
_GATHER: Final = 6  # a load at a position that comes from memory, in loads at a known position
_MANY: Final = 4  # operations on an element that take longer than to read it from the nearest caches
_LOOKED_UP: Final = 4  # lines of a row of a table that are fetched ahead: hardware fetches the others once it has seen these
_LINE: Final = 64  # bytes of a cache line
_WIDEST: Final = 8  # bytes of an element
_FETCHED: Final = (1 << 12, 1 << 18)  # bytes of a row that is fetched ahead: longer than hardware fetches, and in the second cache
_CHECKS: Final = frozenset({"check_index", "wrap_index"})


class _Text(NamedTuple):
    """The functions of a kernel and the calls that run them; see `Printed`. names: of the memory behind the pointers in `args`.

    starts: the offset in bytes of each shared local in the scratch memory of the calling thread, which has `scratch` bytes.
    """

    functions: Code
    calls: str
    names: tuple[str, ...]
    starts: Mapping[str, Size]
    scratch: Size
    cost_ns: float
    symbolic_ps: Size

    def pointers(self, places: Mapping[str, Place]) -> tuple[str, ...]:
        """The entries of `args` after `bufs`."""
        scratch = f"(char*)rt->scratch(rt, 0, {size_source(self.scratch)})"
        return tuple(f"{scratch} + {size_source(self.starts[n])}" if n in self.starts else places[n].source for n in self.names)


def print_kernel(kernel: Kernel, places: Mapping[str, Place], parallel_ns: int, title: str) -> Printed:
    """The functions of a kernel and the statements that run them. places: of the buffers in memory.

    parallel_ns: a loop that takes longer is started on several threads.
    """
    memory = tuple([(n, places[n].dtype) for n in kernel.dtypes if n in places])
    text = _printed(kernel.body, memory, parallel_ns)
    return Printed(text.functions, text.calls, text.pointers(places), title, text.cost_ns, text.symbolic_ps)


@lru_cache(maxsize=REMEMBERED)
def _printed(body: Block, memory: tuple[tuple[str, dtype], ...], parallel_ns: int) -> _Text:
    """The text of a kernel, which does not depend on the places of its buffers. memory: their names and dtypes."""
    statements, shared = roots_of(body)
    pointers = Pointers(body, dict(memory), shared)
    codes, calls = [Code("", outside=_block_cores(body))], []
    costs: list[tuple[Size, Cost]] = []
    for k, s in enumerate(statements):
        name = RUN if len(statements) == 1 else f"{RUN}_{k}"
        codes.append(Function(pointers).code(name, s))
        count, each = cost_of(s)
        costs.append((count, each))
        is_parallel = isinstance(s, Loop) and s.kind == "parallel"
        function = f"{CALLED}::{name}"
        calls.append(launch(function, "args", count, each, parallel_ns) if is_parallel else f"{function}(args, 0, 1);")
    times = [each.of(count) for count, each in costs]
    symbolic = plain(E.total(ps for _, ps in times))
    starts, scratch = pointers.scratch()
    return _Text(joined(codes), " ".join(calls), pointers.names, starts, scratch, sum(ns for ns, _ in times), symbolic)


class Pointers:
    """The pointers in `args`, in order of first use. No two buffers of a kernel overlap. memory: the dtypes of the buffers.

    shared: locals that several functions use; they are in scratch memory of the thread that calls. outer: axes of loops around the
    functions, whose values are in `args` too.
    """

    def __init__(self, body: Block, memory: Mapping[str, dtype], shared: Sequence[Local], outer: Sequence[str] = ()) -> None:
        self.memory = memory
        self.outer = {axis: f"x_{k}" for k, axis in enumerate(outer)}
        self.shared = {x.name: x for x in shared}
        locals_ = {s.local.name for s in walk(body) if isinstance(s, Allocate)}
        spilled = {s.local.spill.name for s in walk(body) if isinstance(s, Allocate) and s.local.spill is not None}
        self.written = {p.name for s in walk(body) for p in places_of(s) if p.name in memory and p.name not in locals_} | spilled
        self._numbers: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The memory behind each pointer."""
        return tuple(self._numbers)

    def number(self, buffer: str) -> int:
        """The number of the pointer to a buffer."""
        return self._numbers.setdefault(buffer, len(self._numbers))

    def axis(self, name: str) -> str:
        """The name in C++ of an axis of a loop around the functions."""
        return self.outer[name]

    def declaration(self, number: int) -> str:
        """The declaration of a pointer, or of an outer axis, in a function that has `args`."""
        name = self.names[number]
        if name in self.outer:
            return f"const i64 {self.outer[name]} = (i64)args[{number + 1}];"
        t = f"{TYPE[self.shared[name].dtype if name in self.shared else self.memory[name]]}*"
        const = "" if name in self.written or name in self.shared else "const "
        return f"{const}{t} RESTRICT p{number} = ({const}{t})args[{number + 1}];"

    def scratch(self) -> tuple[dict[str, Size], Size]:
        """The offset in bytes of each shared local, and the bytes of all."""
        starts: dict[str, Size] = {}
        total: Size = 0
        for name, x in self.shared.items():
            starts[name] = total
            total = plain(total + ceildiv(product((x.size, x.dtype.itemsize)), 64) * 64)
        return starts, total


@dataclass(slots=True)
class _Level:
    """A loop or a guard that is being printed. lines: of its body, so far.

    written: memory that statements inside of it write. values: that are computed at this level.
    """

    lines: list[str]
    written: frozenset[str]
    is_loop: bool
    values: list[ir.Value] = field(default_factory=list)


class Function:
    """Prints one statement at the root. known: the name of each computed value, its level, and the written memory that it reads.

    given: buffers that parameters of the function point to, of type `void*`, by name.
    """

    def __init__(self, pointers: Pointers, given: Mapping[str, str] | None = None) -> None:
        self.pointers = pointers
        self.given = given or {}
        self.levels: list[_Level] = []
        self.known: dict[ir.Value, tuple[str, int, frozenset[str]]] = {}
        self.axes: dict[str, str] = {}
        self.level_of: dict[E.Sym, int] = {}
        self.locals: dict[str, tuple[Local, str]] = {}
        self.symbols: set[E.Sym] = set()
        self.backwards: set[E.Sym] = set()  # axes along which a position falls
        self.operations: set[str] = set()
        self.used: set[int] = set()
        self.n_values = self.n_axes = self.n_locals = 0
        self.has_checks = self.is_streamed = False
        self.ranges: Mapping[str, tuple[E.Expr, E.Expr]] = {}
        self.row: E.Sym | None = None  # the axis of the parallel loop at the root
        self.read: set[str] = set()  # buffers that loops of a row have read
        self.ahead: set[str] = set()  # buffers of which the code fetches the next row where it reads them again
        self.looks_up = False  # whether a row reads at positions that data gives
        self.starts: dict[str, Size] = {}  # of locals of unknown size in `near`, the stack memory for all of them
        self.near_bytes: Size = 0
        self.style = STYLE.with_names(self.axes)  # which grow while the function is printed

    def code(self, name: str, s: Statement) -> Code:
        """The function `name` that runs `s`; a parallel loop runs from `begin` to `end`."""
        head = f"void {name}(void* ctx, long begin, long end)"
        if isinstance(s, Loop) and s.kind == "parallel":
            begin, end = E.sym("begin"), E.sym("end")
            self.row = s.axis
            self.ahead, self.looks_up = _reads_of_row(s)
            text = self.function(f"FJ_LOCAL {head}", (s,), {s.axis.name: (begin, end)}, ("begin", "end"))
        else:
            text = self.function(f"FJ_LOCAL {head}", (s,))
        return Code(text, (f"{head};",), frozenset(self.operations))

    def function(self, head: str, block: Block, ranges: Mapping[str, tuple[E.Expr, E.Expr]] | None = None,
                 parameters: Iterable[str] = ()) -> str:  # fmt: skip
        """A function that runs a block. head: all before its body; of its parameters, the first of which is `ctx` or `args`.

        ranges: the first value, and the value after the last, of loops that run through part of their extent, by axis.
        parameters: symbols of the block or its ranges that are parameters of the function.
        """
        self.ranges = ranges or {}
        self.axes |= {name: name for name in parameters}
        root = _Level([], _written(block), is_loop=False)
        self.levels.append(root)
        for x in walk(block):
            if isinstance(x, Allocate) and not isinstance(x.local.size, int):
                self.starts[x.local.name] = self.near_bytes
                self.near_bytes = plain(self.near_bytes + ceildiv(product((x.local.size, x.local.dtype.itemsize)), 64) * 64)
        self.block(block)
        if self.is_streamed:
            root.lines.append("fj_fence();")
        lines = ["char** args = (char**)ctx;"] if "void* ctx" in head else []
        if self.starts:
            root.lines[:0] = self.near()
        if self.symbols or self.has_checks:
            lines.append("char** bufs = (char**)args[0];")
        lines += declared(self.symbols)
        lines += [self.pointers.declaration(k) for k in sorted(self.used)]
        lines += [f"{t}* RESTRICT {p}_at = ({t}*){p};" for n, p in self.given.items() for t in (TYPE[self.pointers.memory[n]],)]
        body = "".join(f"  {line}\n" for line in (*lines, *root.lines))
        return f"{head} {{\n{body}}}\n"

    def near(self) -> list[str]:
        """The stack memory for locals of unknown size, which are used if all of them fit."""
        return [f"alignas(64) char near[{ROW_BYTES}];", f"const b8 fits = {self.index(self.near_bytes)} <= {ROW_BYTES};"]

    # -- statements ------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for s in block:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        match s:
            case Loop():
                begin, end = self.ranges.get(s.axis.name, (0, s.extent))
                self.loop(s, self.index(begin), self.index(end))
            case Guard():
                self.guard(s)
            case Allocate():
                self.allocate(s.local)
                self.block(s.body)
            case Store():
                self.store((s.place,), (s.value,))
            case Accumulate():
                old = state_of(s)
                self.store(s.places, COMBINES[s.combine].merge(old, s.values))
            case Fold():
                self.fold(s)
            case Contract():
                self.contract(s)

    def contract(self, s: Contract) -> None:
        """A call of the core for blocks, which also adds to memory where the body does only that; any other body runs afterwards."""
        target = _target(s)
        adds = target is not None
        into, body = (target, ()) if target is not None else (s.place, s.body)
        found = problem_of(replace(s, place=into, body=()), s.a.dtype)
        if found is None or found.batch != 1 or not isinstance(s.a, ir.Load) or not isinstance(s.b, ir.Load):
            self.block(expanded(s))
            return
        names = (s.a.buffer, s.b.buffer, into.name)
        a, b, c = (f"&{self.element(n, E.as_expr(at), {})}" for n, at in zip(names, found.starts, strict=True))
        operands = ((a, *found.a_strides), (b, *found.b_strides), (c, found.ldc))
        sizes = ", ".join(self.index(n) for n in (found.m, found.n, found.k))
        texts = ", ".join(", ".join([first, *map(self.index, strides)]) for first, *strides in operands)
        self.line(f"{block_symbol(s.a.dtype.name)}({sizes}, {texts}, {int(adds)});")
        self.forget(into.name)
        for axis, n in reversed(s.axes.result if body else ()):
            body = (Loop(axis, n, "serial", body),)
        self.block(body)

    def fold(self, s: Fold) -> None:
        """The elements of the parts by halves, where the prelude has a function for it; else one after another."""
        lanes, names = s.parts[0].size, [self.locals[x.name][1] for x in s.parts]
        assert isinstance(lanes, int)
        if s.combine not in _FOLDED or lanes & (lanes - 1) or lanes < _FEWEST_FOLDED:
            lane = ir.counter(f"{s.parts[0].name}_fold", lanes)
            assert isinstance(lane, E.Sym)
            values = tuple(ir.load(x.name, lane, x.dtype) for x in s.parts)
            self.statement(Loop(lane, lanes, "serial", (Accumulate(s.places, *folded(s.combine, values, s.dtype)),)))
            return
        if s.combine == "compensated":
            # The copies are read in halves: arrays that are read in one width only stay in registers during the loop.
            t, copies = TYPE[s.parts[0].dtype], [f"c{self.n_values + k}" for k in range(2)]
            self.n_values += 2
            self.line(f"alignas(64) {t} {copies[0]}[{lanes}], {copies[1]}[{lanes}];")
            moves = " ".join(f"{c}[k] = {n}[k];" for c, n in zip(copies, names, strict=True))
            self.line(f"for (i64 k = 0; k < {lanes}; k++) {{ {moves} }}")
            source = f"fj_total<{lanes}>({', '.join(copies)})"
        else:
            source = f"fj_fold_{s.combine}<{lanes}>({names[0]})"
        name = f"t{self.n_values}"
        self.n_values += 1
        self.line(f"const {TYPE[s.dtype]} {name} = {source};")
        result = ir.load(f"{s.parts[0].name}_folded", 0, s.dtype)
        self.remember(result, name, len(self.levels) - 1, frozenset())
        combine = "sum" if s.combine == "compensated" else s.combine
        (identity,) = COMBINES[combine].identity(s.dtype)
        old = self.known.get(ir.load(s.places[0].name, s.places[0].index, s.dtype))
        if old is not None and isinstance(identity, ir.Const) and old[0] == literal(identity.value, s.dtype):
            self.store(s.places, (result,))  # nothing is accumulated yet
        else:
            self.statement(Accumulate(s.places, combine, (result,)))

    def loop(self, s: Loop, begin: str, end: str) -> None:
        """A C loop. The innermost parallel loop is a vector loop too: its iterations have no order."""
        is_nest = len(s.body) == 1 and isinstance(s.body[0], Loop)
        if is_nest and s.axis.name not in self.ranges and (tile := transposition(s)) is not None:
            self.transpose(tile)
            return
        first = s.body[0]
        is_draw = isinstance(first, Store) and isinstance(first.value, ir.Op) and first.value.name == "philox"
        if is_draw and (draw := whole_draw(s)) is not None:
            self.draw(draw)
            return
        copy = streamed_copy(s) if s.kind == "streamed" else None
        if copy is not None:
            place, source, count = copy
            to, start = self.element(place.name, place.index, {}), self.element(source.buffer, source.index, {})
            self.line(f"fj_stream(&{to}, &{start}, {count});")
            self.is_streamed = True
            self.forget(place.name)
            return
        if self.row is not None and self.looks_up and len(self.levels) == 2 and s.kind == "vector":
            self.fetch_lookups(s, self.row)
        name = self.axes[s.axis.name] = f"x{self.n_axes}"
        self.n_axes += 1
        inner = self.enter(s.body, s.axis)
        is_innermost = not any(isinstance(x, Loop) and x.kind != "unrolled" for x in walk(s.body))
        for load in self.next_row(s):
            self.line(f"__builtin_prefetch(&{self.element(load.buffer, load.index, {})}, 0, 2);")
        if self.ahead and len(self.levels) == 2:
            self.read |= {x.buffer for st in walk(s.body) for v in values_of(st) for x in v.loads}
        if s.kind in ("vector", "streamed") or (s.kind == "parallel" and is_innermost):
            self.line("#pragma omp simd")
        elif s.axis in self.backwards:
            # GCC 12 unrolls a short loop of this kind inside of a sum, and then reads wrong elements: it does not reverse a vector
            # that it has loaded in order (`for i: for j < 2: sum += p[2 * i + 1 - j]`, at -O2 with AVX).
            self.line("#pragma GCC unroll 1")
        elif s.kind == "unrolled":
            self.line(f"#pragma GCC unroll {s.extent}")
        self.line(f"for (i64 {name} = {begin}; {name} < {end}; {name}++) {{")
        self.leave(inner)

    def fetch_lookups(self, s: Loop, row: E.Sym) -> None:
        """Fetch the first lines of the rows of a table that the next iteration of `row` looks up: hardware cannot foresee them."""
        _, end = self.ranges[row.name]
        following: dict[E.Expr, E.IntLike] = {row: E.minimum(row + 1, end - 1)}
        for v in dict.fromkeys([x for st in s.body for value in values_of(st) for x in value.loads if x.indirect and x.mask is None]):
            steps, size = E.strides_of(v.index, [row, s.axis]), nominal(s.extent) * v.dtype.itemsize
            looked_up = [x.buffer for _, value in v.indirect for x in value.loads]
            if any(s.axis in ir.free_axes(value) for _, value in v.indirect):  # elements are in different rows
                continue
            if steps is None or steps[0][row] is not E.as_expr(0) or steps[0][s.axis] is not E.as_expr(1) or size < _LOOKED_UP * _LINE:
                continue
            if not looked_up or not self.pointers.written.isdisjoint([v.buffer, *looked_up]) or v.buffer in self.locals:
                continue
            bound = {symbol.name: self.value(at_point(value, following)) for symbol, value in v.indirect}
            first = self.element(v.buffer, E.substitute(v.index, {s.axis: 0}), bound)
            self.line(f"for (int k = 0; k < {_LOOKED_UP}; k++) __builtin_prefetch((const char*)&{first} + {_LINE} * k);")

    def next_row(self, s: Loop) -> list[ir.Load]:
        """The elements of the next row that a short loop over one cache line fetches while it computes.

        The first loop of a row reads it from memory, and the other loops find it in a cache: memory would rest while they run.
        """
        if self.row is None or not self.ahead or s.kind != "vector" or not isinstance(s.extent, int) or len(self.levels) < 3:
            return []
        found = []
        for v in dict.fromkeys([x for st in s.body for value in values_of(st) for x in value.loads]):
            if v.buffer not in self.read & self.ahead or v.buffer in self.pointers.written or v.indirect or v.mask is not None:
                continue
            size = v.dtype.itemsize
            steps = E.strides_of(v.index, [self.row, s.axis]) if s.extent * size == _LINE else None
            if steps is None or steps[0][s.axis] is not E.as_expr(1):
                continue
            if isinstance(step := steps[0][self.row], E.Int) and _FETCHED[0] <= step.value * size <= _FETCHED[1]:
                self.ahead.discard(v.buffer)
                found.append(ir.load(v.buffer, E.substitute(v.index, {self.row: self.row + 1, s.axis: 0}), v.dtype))
        return [x for x in found if isinstance(x, ir.Load)]

    def transpose(self, tile: Transposition) -> None:
        """Two loops that read along the outer one and store along the inner one, in registers."""
        to, source = self.element(tile.to.name, tile.to.index, {}), self.element(tile.source.buffer, tile.source.index, {})
        steps = [f"(i64){self.index(e)}" for e in (tile.to_step, tile.from_step)]
        shape = f"{tile.rows}, {tile.columns}{', true' if tile.is_streamed else ''}"
        self.is_streamed = self.is_streamed or tile.is_streamed
        self.line(f"fj_transpose<{shape}>(&{to}, {steps[0]}, &{source}, {steps[1]});")
        self.forget(tile.to.name)

    def draw(self, draw: Draw) -> None:
        """The random words of whole chunks, all words of a counter at once."""
        self.operations.add(draw.function)
        to = [self.element(p.name, p.index, {}) for p in draw.to]
        self.line(draw.call(to, [self.value(v) for v in draw.state], self.index(draw.counter), self.index(draw.chunks)))
        for p in draw.to:
            self.forget(p.name)

    def guard(self, s: Guard) -> None:
        condition = self.value(s.condition)
        inner = self.enter(s.body, None)
        self.line(f"if ({condition}) {{")
        self.leave(inner)

    def enter(self, body: Block, axis: E.Sym | None) -> _Level:
        """Print a body at a new level, which is left again."""
        level = _Level([], _written(body), axis is not None)
        self.levels.append(level)
        if axis is not None:
            self.level_of[axis] = len(self.levels) - 1
            for memory in level.written:  # an earlier iteration may have written it
                self.forget(memory)
        self.block(body)
        self.levels.pop()
        for v in level.values:
            self.known.pop(v, None)
        return level

    def leave(self, level: _Level) -> None:
        """Add the lines of a body, and its closing brace, to the level around it."""
        for line in level.lines:
            self.line(f"  {line}")
        self.line("}")

    def allocate(self, local: Local) -> None:
        name = f"l{self.n_locals}"
        self.n_locals += 1
        self.locals[local.name] = (local, name)
        if not isinstance(local.size, int):
            assert local.spill is not None
            t, start = f"{TYPE[local.dtype]}*", self.index(self.starts[local.name])
            number = self.pointers.number(local.spill.name)
            self.used.add(number)
            far = f"p{number} + {self.index(local.spill.index)}"
            self.line(f"{t} RESTRICT {name} = fits ? ({t})(near + {start}) : {far};")
            return
        is_one = local.space == "register"
        self.line(f"{TYPE[local.dtype]} {name};" if is_one else f"alignas(64) {TYPE[local.dtype]} {name}[{local.size}];")

    def store(self, places: Sequence[Element], values: Sequence[ir.Value]) -> None:
        """All values are computed before the first is stored: a state may read its own components."""
        unknown = [v for v in values if v not in self.known]
        # a later read of an element in this iteration finds its value
        elements = [None if p.indirect else ir.load(p.name, p.index, v.dtype) for p, v in zip(places, values, strict=True)]
        self.compute_all(ir.walk(unknown) if unknown else ())
        names = [self.known[v][0] for v in values]
        targets = [self.element(p.name, p.index, {s.name: self.value(v) for s, v in p.indirect}) for p in places]
        for place, target, name, element in zip(places, targets, names, elements, strict=True):
            self.line(f"{target} = {name};")
            self.forget(place.name)
            if element is not None:
                self.remember(element, name, len(self.levels) - 1, frozenset((place.name,)))

    # -- values ----------------------------------------------------------------------------------------------------
    def value(self, root: ir.Value) -> str:
        """The name or literal of a value, which is computed if it is not known."""
        if root not in self.known:
            self.compute_all(ir.walk([root]))
        return self.known[root][0]

    def compute_all(self, order: Iterable[ir.Value]) -> None:
        """Compute the values that are not known; operands come before users."""
        for v in order:
            if v not in self.known:
                self.compute(v)

    def compute(self, v: ir.Value) -> None:
        level = max([self.own_level(v), *(self.known[c][1] for c in v.children)])
        reads = frozenset().union(*(self.known[c][2] for c in v.children))
        if isinstance(v, ir.Load) and v.buffer in self.levels[0].written:
            reads |= {v.buffer}
        if isinstance(v, ir.Const):
            self.remember(v, literal(v.value, v.dtype), level, reads)
            return
        source = self.source(v, any(x.is_loop for x in self.levels[1 : level + 1]))
        name = f"t{self.n_values}"
        self.n_values += 1
        self.levels[level].lines.append(f"const {TYPE[v.dtype]} {name} = {source};")
        self.remember(v, name, level, reads)

    def own_level(self, v: ir.Value) -> int:
        """The outermost level at which a value may be computed, apart from its operands."""
        match v:
            case ir.Index():
                return self.level_of_expression(v.expr)
            case ir.Load():
                level = self.level_of_expression(v.index)
                for k in range(len(self.levels) - 1, level, -1):
                    if v.buffer in self.levels[k].written or not self.levels[k].is_loop:
                        return k
                return level
        return 0

    def level_of_expression(self, e: E.Expr) -> int:
        return max((self.level_of[s] for s in e.symbols if s in self.level_of), default=0)

    def remember(self, v: ir.Value, name: str, level: int, reads: frozenset[str]) -> None:
        self.known[v] = (name, level, reads)
        self.levels[level].values.append(v)

    def forget(self, memory: str) -> None:
        """Drop the values that read memory that has just been written."""
        for v in [v for v, (_, _, reads) in self.known.items() if memory in reads]:
            del self.known[v]

    def source(self, v: ir.Value, is_repeated: bool) -> str:
        """The expression of one value over the names of its operands."""
        match v:
            case ir.Index():
                return self.index(v.expr)
            case ir.Load():
                text = self.element(v.buffer, v.index, {s.name: self.known[x][0] for s, x in v.indirect})
                return text if v.mask is None else f"{self.known[v.mask][0]} ? {text} : {literal(0, v.dtype)}"
            case ir.Op():
                return self.operation(v, is_repeated)
        raise TypeError(f"{type(v).__name__} is not a value of loops")

    def operation(self, v: ir.Op, is_repeated: bool) -> str:
        args = [self.known[a][0] for a in v.args]
        self.operations.add(called(v))
        self.has_checks = self.has_checks or v.name in _CHECKS
        if is_repeated and v.name == "div" and isinstance(v.args[1], ir.Const):
            parts = split_inverse(v.args[1].value, v.dtype)
            if parts is not None:
                return f"fj_divide({', '.join([*args, *(literal(part, v.dtype) for part in parts)])})"
        return operation(v, args)

    def element(self, name: str, at: E.Expr, bound: Mapping[str, str]) -> str:
        """One element of a buffer or a local as an lvalue."""
        if name in self.locals:
            local, own = self.locals[name]
            return own if local.space == "register" else f"{own}[{self.index(at, bound)}]"
        if name in self.given:
            return f"{self.given[name]}_at[{self.index(at, bound)}]"
        number = self.pointers.number(name)
        self.used.add(number)
        return f"p{number}[{self.index(at, bound)}]"

    def index(self, e: E.IntLike, bound: Mapping[str, str] | None = None) -> str:
        """An index expression over printed loops and symbols of the graph."""
        if not isinstance(e, E.Expr):
            return str(e)
        if isinstance(e, E.Sym) and not bound and e.name in self.axes:
            return self.axes[e.name]
        for s in e.symbols:
            if s.name in self.pointers.outer and s.name not in self.axes:
                self.axes[s.name] = self.pointers.axis(s.name)
                self.used.add(self.pointers.number(s.name))
        if isinstance(e, E.Add):
            self.backwards.update([s for term, factor in e.terms if factor < 0 for s in term.symbols])
        self.symbols |= {s for s in e.symbols if s.name not in self.axes and (bound is None or s.name not in bound)}
        return to_source(e, STYLE.with_names({**self.axes, **bound}) if bound else self.style)

    def line(self, text: str) -> None:
        self.levels[-1].lines.append(text)


def _reads_of_row(row: Loop) -> tuple[set[str], bool]:
    """The buffers that a row reads again after long loops, and whether it reads at positions that data gives.

    Between two short loops over a row memory does not rest long enough to fetch another row.
    """
    values = [[v for x in walk(loop.body) for v in values_of(x)] for loop in loops_in(row.body)]
    looks_up = any(x.indirect for each in values for v in each for x in v.loads)
    if _longest(row.body) * _WIDEST < _FETCHED[0]:
        return set(), looks_up
    counts: dict[str, int] = {}
    for each in values:
        operations = [v.name for v in ir.walk(each) if isinstance(v, ir.Op)]
        is_long = len(operations) >= _MANY or not EXPENSIVE.isdisjoint(operations)
        for buffer in {x.buffer for v in each for x in v.loads}:
            counts[buffer] = counts.get(buffer, 0) + (2 if is_long else 1)
    return {buffer for buffer, count in counts.items() if count >= 3}, looks_up


def _longest(block: Block) -> float:
    """The most iterations of a loop with the loops around it."""
    found = 1.0
    for x in block:
        if isinstance(x, Allocate):
            found = max(found, _longest(x.body))
        elif isinstance(x, Loop):
            found = max(found, (x.extent if isinstance(x.extent, int) else math.inf) * _longest(x.body))
    return found


def _target(s: Contract) -> Element | None:
    """The element of memory to which the body of a contraction adds the sum, if the body does nothing else."""
    add = s.body[0] if len(s.body) == 1 else None
    if not isinstance(add, Accumulate):
        return None
    is_sum = add.combine == "sum" and add.values == (ir.load(s.place.name, s.place.index, s.a.dtype),)
    return add.places[0] if is_sum and not add.places[0].indirect else None


def _block_cores(body: Block) -> tuple[str, ...]:
    """Declarations of the cores of blocks that a kernel calls."""
    names = {block_symbol(s.a.dtype.name): TYPE[s.a.dtype] for s in walk(body) if isinstance(s, Contract)}
    return tuple(
        f'extern "C" void {name}(i64, i64, i64, const {t}*, i64, i64, const {t}*, i64, i64, {t}*, i64, int);' for name, t in names.items()
    )


def _written(body: Block) -> frozenset[str]:
    return frozenset(p.name for s in walk(body) for p in places_of(s))


def cost_of(s: Statement) -> tuple[Size, Cost]:
    """The iterations of a parallel loop and the cost of each; one iteration for any other statement."""
    if isinstance(s, Loop) and s.kind == "parallel":
        terms = _terms(s.body, 1, frozenset((s.axis,)))
        if any(isinstance(x, Loop) for x in walk(s.body)):
            terms.append((1.0, 1))
        return s.extent, Cost(tuple(terms))
    return 1, Cost(tuple(_terms((s,), 1)))


def _terms(block: Iterable[Statement], times: Size, around: frozenset[E.Sym] = frozenset()) -> list[tuple[float, Size]]:
    """(nanoseconds, how often) of the statements of a block that runs `times`, inside of the loops `around`."""
    found: list[tuple[float, Size]] = []
    values: list[ir.Value] = []
    conditions: set[ir.Value] = set()
    for s in block:
        if isinstance(s, Guard):
            if isinstance(s.condition, ir.Op) and s.condition.name == "logical_not" and s.condition.args[0] in conditions:
                continue  # the loop runs in one of its two versions: the first counts
            conditions.add(s.condition)
        if isinstance(s, Contract):
            extents = [_most(n, around) for _, n in (*s.axes.result, *s.axes.depth)]
            found.append((2 * FLOP_NS, product((times, *extents))))
        if isinstance(s, Loop):
            n = _iterations(s, around)
            found += _terms(s.body, n if times == 1 else product((times, n)), around | {s.axis})
        elif isinstance(s, Guard | Allocate):
            found += _terms(s.body, times, around)
        else:
            values += values_of(s)
    if values:
        found.append((_operations_ns(values) + _PLAIN_NS * len(values), times))
    return found


def _operations_ns(values: Iterable[ir.Value]) -> float:
    """Nanoseconds to compute `values` once in a vectorised loop, loads included."""
    found = 0.0
    for v in ir.walk(values):
        if isinstance(v, ir.Op):
            found += _EXPENSIVE_NS if v.name in EXPENSIVE else _PLAIN_NS
        elif isinstance(v, ir.Load):
            found += _PLAIN_NS * (_GATHER if v.indirect else 1)
    return found


def _iterations(loop: Loop, around: frozenset[E.Sym]) -> Size:
    """The iterations of a loop; their upper bound, if the number depends on the loops `around` it."""
    return _most(loop.extent, around)


def _most(n: Size, around: frozenset[E.Sym]) -> Size:
    """An extent, without the axes `around` it: its upper bound; its value in their last iteration, if the bound is one of a symbol."""
    if not isinstance(n, E.Expr) or not n.symbols & around:
        return n
    if n.hi <= _LONGEST:
        return int(n.hi)
    last = {s: int(s.hi) if s.below is None else E.add(s.below, -1) for s in around & n.symbols}
    return _most(plain(E.substitute(n, last)), around)


__all__ = ["Function", "Pointers", "cost_of", "print_kernel"]
