"""Loop nests as C++ functions `void NAME(void* ctx, long begin, long end)` over rows begin..end.

Owns the loops, accumulators and stores. `cpp.values` prints values, `cpp.bundles` gives the loop structure, and `Places` reads
pointers from `bufs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.cpp.bundles import ROW_BYTES, Bundle, LoopNest, Member, collapse, in_register
from inductor.cpp.pieces import WORTHWHILE, Piece, pieces
from inductor.cpp.units import NAME, SIZES, declared
from inductor.cpp.values import TYPE, Scope, cast, index_source, literal, size_source
from inductor.ir import definitions as ir
from inductor.ir.inline import EXPENSIVE
from inductor.ir.sizes import Size, ceildiv, is_symbolic, nominal, plain, product
from inductor.ir.substitute import at_point

COLUMN_BLOCK: Final = 64
REDUCTION_BLOCK: Final = 8192  # elements of one block of a reduction without rows
LANE_BYTES: Final = 64  # bytes of the running results of a reduction, side by side: at least one vector
CASCADE_STEPS: Final = 16  # floats that a running sum adds before it is added to its compensated total
_PLAIN_NS, _EXPENSIVE_NS = 0.12, 0.8  # picoseconds of one vectorised operation on one element


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a buffer: entry of `bufs` and bytes from there; `dtype` of its elements. number: of a symbolic offset in the
    graph's sizes.
    """

    entry: int
    offset_bytes: Size
    dtype: dtype
    number: int = -1

    @property
    def offset(self) -> str:
        """The offset as C++ source."""
        return str(self.offset_bytes) if self.number < 0 else f"{SIZES}[{self.number}]"

    @property
    def source(self) -> str:
        """The pointer as C++ source."""
        return f"bufs[{self.entry}]" + (f" + {self.offset}" if self.offset_bytes != 0 else "")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A printed nest. `text` and `call` name their function `functions.NAME`.

    pointers: the contents of `args` after `bufs` at the call; None if the function takes `bufs` itself.
    title: the calls that it computes, by number of the node. cost_ns: its estimated time on one thread; symbolic_ps: the part
    of it that depends on symbols, in which case cost_ns is 0.
    """

    text: str
    call: str
    pointers: tuple[str, ...] | None
    title: str
    cost_ns: float
    symbolic_ps: Size = 0


@dataclass(frozen=True, slots=True)
class _Cost:
    """Estimated nanoseconds of one iteration of the outer loop: a sum of ns * size."""

    terms: tuple[tuple[float, Size], ...]

    @property
    def ns(self) -> float:
        return sum([ns * (n if type(n) is int else nominal(n)) for ns, n in self.terms])

    def is_fixed(self) -> bool:
        return not is_symbolic(*(n for _, n in self.terms))

    def source(self) -> str:
        """As a C++ double."""
        fixed = sum(ns * n for ns, n in self.terms if isinstance(n, int))
        return " + ".join([f"{fixed!r}", *(f"{ns!r} * {size_source(n)}" for ns, n in self.terms if not isinstance(n, int))])

    def picoseconds(self, count: Size) -> Size:
        return plain(count * plain(E.total(E.mul(math.ceil(ns * 1000), n) for ns, n in self.terms)))


def print_nest(nest: LoopNest, places: dict[str, Place], stored: set[str], parallel_ns: int,
               local: dict[str, Size] | None = None) -> Kernel:  # fmt: skip
    """The kernel of a nest. places: of all buffers in memory; stored: results that must be written; local: stored results that
    only the nest itself reads, row by row, with their elements per row (see `bundles.row_local`).
    """
    return _Printer(nest, places, stored, parallel_ns, local or {}).kernel()


class _Printer:
    def __init__(self, nest: LoopNest, places: dict[str, Place], stored: set[str], parallel_ns: int,
                 local: dict[str, Size]) -> None:  # fmt: skip
        self.nest, self.places, self.stored, self.parallel_ns = nest, places, stored, parallel_ns
        self.local = local
        self.here: dict[E.Expr, E.IntLike] = {ir.axis(k, n): 0 for k, n in enumerate(nest.rows) if n != 1}
        self.local_types = {m.buffer.name: TYPE[m.buffer.layout.dtype] for b in nest.bundles for m in b.members}
        self.pointers: dict[str, bool] = {}  # buffer -> written
        self.registers: dict[str, str] = {}
        self.known: dict[ir.Value, str] = {}
        self.counter = [0]

    # ---- the function ----

    def kernel(self) -> Kernel:
        nest = self.nest
        if nest.column:
            body, count = self._column()
        elif nest.flat:
            body, count = self._flat()
        elif self._splits():
            return self._split_reduction()
        else:
            body, count = self._rows()
        head = f"static void {NAME}(void* ctx, long begin, long end) {{\n  char** args = (char**)ctx;\n"
        symbols = declared(body)
        if symbols or any("FJ_CHECKS" in line for line in body):
            head += "  char** bufs = (char**)args[0];\n"
        text = head + self._pointer_lines(True) + "".join(f"  {line}\n" for line in (*symbols, *body)) + "}\n"
        pointers = tuple(self.places[n].source for n in self.pointers)
        each = self._cost()
        return self._kernel(text, self._launch(NAME, "args", count, each), pointers, count, each)

    def _kernel(self, text: str, call: str, pointers: tuple[str, ...] | None, count: Size, each: _Cost) -> Kernel:
        """The record of a kernel whose outer loop has `count` iterations that cost `each`."""
        if isinstance(count, int) and each.is_fixed():
            return Kernel(text, call, pointers, self._title(), each.ns * count)
        return Kernel(text, call, pointers, self._title(), 0.0, each.picoseconds(count))

    def _launch(self, function: str, context: str, count: Size, each: _Cost) -> str:
        if not isinstance(count, int) or not each.is_fixed():
            return (f"{{ const i64 count = {size_source(count)}; const f64 each = {each.source()};\n"
                    f"    if (count * each < {self.parallel_ns}.0) {function}({context}, 0, count);\n"
                    f"    else rt->parallel_for(rt, {function}, {context}, count, 1 + (i64)({self.parallel_ns}.0 / (2 * each))); }}")
        cost = each.ns * count
        if count <= 1 or cost < self.parallel_ns:
            return f"{function}({context}, 0, {count});"
        grain = max(1, math.ceil(count * self.parallel_ns / (2 * cost)))
        return f"rt->parallel_for(rt, {function}, {context}, {count}, {grain});"

    def _title(self) -> str:
        members = [m.buffer for b in self.nest.bundles for m in b.members]
        return "; ".join(f"{b.name}: {b.source.title or 'copy'}" for b in members)

    def _pointer_lines(self, from_args: bool) -> str:
        fixed = {n: size for n, size in self.local.items() if isinstance(size, int)}
        lines = "".join(f"  alignas(64) {self.local_types[n]} p_{n}[{size}];\n" for n, size in fixed.items())
        for k, (buffer, written) in enumerate(self.pointers.items()):
            p = self.places[buffer]
            t = TYPE[p.dtype] if written else f"const {TYPE[p.dtype]}"
            at = f"args[{k + 1}]" if from_args else p.source
            name = f"far_{buffer}" if buffer in self.local else f"p_{buffer}"
            lines += f"  {t}* RESTRICT {name} = ({t}*)({at});\n"
        return lines

    def _near_rows(self) -> tuple[list[str], list[str]]:
        """The place of rows whose length is not known yet: the stack if all of them fit, else the arena. (lines before the loop
        over rows, lines in it)
        """
        lengths = [(name, n) for name, n in self.local.items() if not isinstance(n, int)]
        if not lengths:
            return [], []
        starts: list[Size] = [0]
        for name, n in lengths:
            nbytes = product((n, self.places[name].dtype.itemsize))
            starts.append(plain(starts[-1] + product((ceildiv(nbytes, 64), 64))))
        outside = [f"alignas(64) char near[{ROW_BYTES}];", f"const b8 fits = {size_source(starts[-1])} <= {ROW_BYTES};"]
        inside = []
        for (name, n), start in zip(lengths, starts[:-1], strict=True):
            t = self.local_types[name]
            inside.append(f"{t}* RESTRICT p_{name} = fits ? ({t}*)(near + {size_source(start)}) : far_{name} + row * {size_source(n)};")
        return outside, inside

    def _load(self, v: ir.Load, index: str) -> str:
        if v.buffer in self.registers:
            return self.registers[v.buffer]
        if v.buffer in self.local:
            return f"p_{v.buffer}[{index_source(E.substitute(v.index, self.here), {})}]"
        self.pointers.setdefault(v.buffer, False)
        return f"p_{v.buffer}[{index}]"

    def _store(self, m: Member, position: str, value: str) -> str:
        if m.buffer.name in self.local:
            if not isinstance(self.local[m.buffer.name], int):
                self.pointers[m.buffer.name] = True
            ranges = self.nest.rows + tuple(n for b in self.nest.bundles if m in b.members for n in b.inner)
            point = [ir.axis(k, n) if n != 1 and k >= len(self.nest.rows) else 0 for k, n in enumerate(ranges)]
            return f"p_{m.buffer.name}[{index_source(ir.linear_position(ranges, point), {})}] = {value};"
        self.pointers[m.buffer.name] = True
        return f"p_{m.buffer.name}[{position}] = {value};"

    def _cost(self) -> _Cost:
        """The cost of one row (of one element if flat)."""
        terms: list[tuple[float, Size]] = [] if self.nest.flat else [(1.0, 1)]
        for b in self.nest.bundles:
            n = 1 if self.nest.flat else product(b.inner)
            for m in b.members:
                each = 0.0
                for v in ir.walk([m.value]):
                    if isinstance(v, ir.Op):
                        each += _EXPENSIVE_NS if v.name in EXPENSIVE else _PLAIN_NS
                    elif isinstance(v, ir.Load):
                        each += _PLAIN_NS * (6 if v.indirect else 1)
                terms.append((each + _PLAIN_NS, n))
        return _Cost(tuple(terms))

    # ---- forms ----

    def _flat(self) -> tuple[list[str], Size]:
        """One axis: the parallel loop is the vector loop."""
        bundle = self.nest.bundles[0]
        count = product(bundle.inner)
        outer: list[str] = []
        inner: list[str] = []
        scope = self._scope(outer, inner, 0, bundle.inner)
        for m in bundle.members:
            value = scope.print(m.value)
            if m.buffer.name in self.stored:
                inner.append(self._store(m, "i0", value))
        lines = [*outer, "#pragma omp simd", "for (i64 i0 = begin; i0 < end; i0++) {", *(f"  {x}" for x in inner), "}"]
        return lines, count

    def _rows(self) -> tuple[list[str], Size]:
        rows = self.nest.rows
        before, within = self._near_rows()
        body: list[str] = [*self._row_axes(rows), *within]
        for bundle in self.nest.bundles:
            self._bundle(body, bundle)
        lines = [*before, "for (i64 row = begin; row < end; row++) {", *(f"  {x}" for x in body), "}"]
        return lines, product(rows)

    @staticmethod
    def _row_axes(rows: tuple[Size, ...], position: str = "row") -> list[str]:
        lines: list[str] = []
        step: Size = 1
        outermost = next((k for k, n in enumerate(rows) if n != 1), None)
        for k in range(len(rows) - 1, -1, -1):
            if rows[k] != 1:
                text = position if step == 1 else f"{position} / {size_source(step)}"
                lines.append(f"const i64 i{k} = {text if k == outermost else f'({text}) % {size_source(rows[k])}'};")
            step = product((step, rows[k]))
        return lines

    def _scope(self, outer: list[str], inner: list[str], first: int, sizes: tuple[Size, ...]) -> Scope:
        axes = [ir.axis(first + j, n) for j, n in enumerate(sizes) if n != 1]
        return Scope(outer, inner, axes, self._load, self.known, self.counter)

    def _position(self, ranges: tuple[Size, ...]) -> str:
        return index_source(ir.own_position(ranges), {})

    def _bundle(self, body: list[str], bundle: Bundle) -> None:
        rows, k = self.nest.rows, len(self.nest.rows)
        first = bundle.members[0]
        if first.kind == "row":
            scope = self._scope(body, body, k, ())
            value = scope.print(first.value)
            self.registers[first.buffer.name] = value
            if first.buffer.name in self.stored:
                body.append(self._store(first, self._position(rows) if rows else "0", value))
            return
        if first.kind == "reduce" and first.extra:
            self._reduction_with_kept_axes(body, bundle, first)
            return
        reductions = [m for m in bundle.members if m.kind == "reduce"]
        if not reductions and isinstance(bundle.inner[-1], int) and bundle.inner[-1] >= WORTHWHILE:
            parts = pieces([m.value for m in bundle.members], k + len(bundle.inner) - 1, bundle.inner[-1])
            if parts:
                for part in parts:
                    self._piece(body, bundle, part)
                return
        inner: list[str] = []
        scope = self._scope(body, inner, k, bundle.inner)
        ranges = (*rows, *bundle.inner)
        lanes = _lanes(bundle.inner, reductions)
        accumulators = [_Accumulator(f"a_{m.buffer.name}", m, lanes) for m in reductions]
        by_name = {a.member.buffer.name: a for a in accumulators}
        for m in bundle.members:
            value = scope.print(m.value)
            if m.kind == "reduce":
                inner.append(by_name[m.buffer.name].step(value))
            elif m.buffer.name in self.stored:
                inner.append(self._store(m, self._position(ranges), value))
        body += [a.declare() for a in accumulators]
        body += _loops(bundle.inner, k, inner, accumulators, lanes)
        for a in accumulators:
            self._finish(body, a, self._position(rows) if rows else "0")

    def _piece(self, body: list[str], bundle: Bundle, piece: Piece) -> None:
        """Loops over a part of the innermost axis, perhaps in lines."""
        k = len(self.nest.rows)
        last = k + len(bundle.inner) - 1
        around = any(n != 1 for n in bundle.inner[:-1]) or isinstance(piece.run, E.Sym)
        outside: list[str] = [] if around else body
        inner: list[str] = []
        saved = dict(self.known)
        scope = Scope(outside, inner, piece.at.symbols, self._load, self.known, self.counter)
        if str(piece.at) != f"i{last}":
            inner.append(f"const i64 i{last} = {index_source(piece.run * piece.line + piece.at, {})};")
        position = self._position((*self.nest.rows, *bundle.inner))
        for m, value in zip(bundle.members, piece.values, strict=True):
            source = scope.print(value)
            if m.buffer.name in self.stored:
                inner.append(self._store(m, position, source))
        lines = ["{", *(f"  {x}" for x in inner), "}"]
        if isinstance(piece.at, E.Sym):
            low, high = (0, piece.line) if piece.line else (piece.start, piece.stop)
            lines = ["#pragma omp simd", f"for (i64 {piece.at} = {low}; {piece.at} < {high}; {piece.at}++) {{", *lines[1:]]
        if around:
            lines = [*outside, *lines]
        if isinstance(piece.run, E.Sym):
            first, end = piece.start // piece.line, piece.stop // piece.line
            lines = [f"for (i64 {piece.run} = {first}; {piece.run} < {end}; {piece.run}++) {{", *(f"  {x}" for x in lines), "}"]
        for j in range(len(bundle.inner) - 2, -1, -1):
            if bundle.inner[j] != 1:
                lines = _loop(k + j, bundle.inner[j], lines)
        body += lines
        if around:
            self.known.clear()
            self.known.update(saved)

    def _finish(self, body: list[str], a: _Accumulator, position: str) -> None:
        m = a.member
        name = f"s_{m.buffer.name}"
        body.append(f"const {TYPE[m.buffer.layout.dtype]} {name} = {a.result()};")
        if in_register(m):
            self.registers[m.buffer.name] = name
        if m.buffer.name in self.stored:
            body.append(self._store(m, position, name))

    def _reduction_with_kept_axes(self, body: list[str], bundle: Bundle, m: Member) -> None:
        """Kept axes beyond the rows: loops around the reduced axes, one result each."""
        k, extra = len(self.nest.rows), m.extra
        kept, reduced = bundle.inner[:extra], bundle.inner[extra:]
        middle: list[str] = []
        inner: list[str] = []
        saved = dict(self.known)
        axes = [ir.axis(k + extra + j, n) for j, n in enumerate(reduced) if n != 1]
        scope = Scope(middle, inner, axes, self._load, self.known, self.counter)
        lanes = _lanes(reduced, [m])
        a = _Accumulator(f"a_{m.buffer.name}", m, lanes)
        inner.append(a.step(scope.print(m.value)))
        middle.append(a.declare())
        middle += _loops(reduced, k + extra, inner, [a], lanes)
        self._finish(middle, a, self._position((*self.nest.rows, *kept)))
        self.known.clear()
        self.known.update(saved)
        for j in range(len(kept) - 1, -1, -1):
            middle = _loop(k + j, kept[j], middle) if kept[j] != 1 else ["{", *(f"  {x}" for x in middle), "}"]
        body += middle

    def _column(self) -> tuple[list[str], Size]:
        """Accumulators for a block of columns; the reduced loops run over rows of it, vectorised across."""
        m = self.nest.bundles[0].members[0]
        rows, bundle = self.nest.rows, self.nest.bundles[0]
        columns, reduced = bundle.inner[0], bundle.inner[1:]
        k = len(rows)
        blocks = ceildiv(columns, COLUMN_BLOCK)
        n_columns, n_blocks = size_source(columns), size_source(blocks)
        inner: list[str] = []
        body: list[str] = []
        axes = [ir.axis(k + j, n) for j, n in enumerate(bundle.inner) if n != 1]
        scope = Scope(body, inner, axes, self._load, self.known, self.counter)
        a = _Accumulator("acc", m, COLUMN_BLOCK, "c")
        step = a.step(scope.print(m.value))
        sweep = ["#pragma omp simd", "for (i64 c = 0; c < width; c++) {", f"  const i64 i{k} = start + c;",
                 *(f"  {x}" for x in inner), f"  {step}", "}"]  # fmt: skip
        sweep = _cascade([(k + 1 + j, n) for j, n in enumerate(reduced) if n != 1], sweep, [a])
        position = f"row * {n_columns}{'LL' if isinstance(columns, int) else ''} + start + c" if rows else "start + c"
        lines = [
            "for (i64 at = begin; at < end; at++) {",
            f"  const i64 row = at / {n_blocks}, start = (at % {n_blocks}) * {COLUMN_BLOCK};",
            f"  const i64 width = {n_columns} - start < {COLUMN_BLOCK} ? {n_columns} - start : {COLUMN_BLOCK};",
            *(f"  {x}" for x in self._row_axes(rows)), *(f"  {x}" for x in body),
            f"  {a.declare()}",
            *(f"  {x}" for x in sweep),
            f"  for (i64 c = 0; c < width; c++) {self._store(m, position, a.result())}",
            "}",
        ]  # fmt: skip
        return lines, product((*(n for n in rows if n != 0), blocks))

    # ---- reductions of everything ----

    def _splits(self) -> bool:
        nest = self.nest
        if product(nest.rows) != 1 or len(nest.bundles) != 1:
            return False
        bundle = nest.bundles[0]
        count = product(bundle.inner)
        many = not isinstance(count, int) or count > 2 * REDUCTION_BLOCK
        return many and all(m.kind == "reduce" and not m.extra for m in bundle.members)

    def _split_reduction(self) -> Kernel:
        """Blocks in parallel, each to a partial result; then the partial results in order, so that sums are repeatable."""
        bundle = self.nest.bundles[0]
        k = len(self.nest.rows)
        moved = {ir.axis(k + j, n): ir.axis(j, n) for j, n in enumerate(bundle.inner) if n != 1}
        sizes, values = collapse(bundle.inner, [at_point(m.value, moved) for m in bundle.members])
        count = product(sizes)
        if len(sizes) > 1:
            joint = ir.axis(0, count)
            point = ir.split_position(joint, sizes)
            values = [at_point(v, {ir.axis(j, n): p for j, (n, p) in enumerate(zip(sizes, point, strict=True))}) for v in values]
        blocks = ceildiv(count, REDUCTION_BLOCK)
        n_count, n_blocks = size_source(count), size_source(blocks)
        starts = [size_source(product((8 * j, blocks))) for j in range(len(bundle.members) + 1)]
        lanes = _lanes((count,), bundle.members)
        accumulators = [_Accumulator(f"a_{m.buffer.name}", m, lanes) for m in bundle.members]
        inner: list[str] = []
        outer: list[str] = []
        scope = self._scope(outer, inner, 0, (count,))
        inner += [a.step(scope.print(v)) for a, v in zip(accumulators, values, strict=True)]
        loop = _with_totals(_cascade_lanes("i0", "first", "last", None, inner, accumulators, lanes), accumulators)
        body = [*outer, "for (i64 at = begin; at < end; at++) {",
                f"  const i64 first = at * {REDUCTION_BLOCK};",
                f"  const i64 last = first + {REDUCTION_BLOCK} < {n_count} ? first + {REDUCTION_BLOCK} : {n_count};",
                *(f"  {a.declare()}" for a in accumulators), *(f"  {x}" for x in loop),
                *(f"  (({TYPE[a.whole]}*)(parts + {starts[j]}))[at] = {a.folded()};" for j, a in enumerate(accumulators)),
                "}"]  # fmt: skip
        finish: list[str] = []
        for j, a in enumerate(accumulators):
            total = _Accumulator(a.name, a.member, of=a.whole)
            part = f"(({TYPE[a.whole]}*)(parts + {starts[j]}))[at]"
            finish += [total.declare(), *(total.declare_total() if total.cascades else ()),
                       f"for (i64 at = 0; at < {n_blocks}; at++) {total.put(part) if total.cascades else total.step(part)}",
                       *([total.take()] if total.cascades else ()), self._store(a.member, "0", total.result())]  # fmt: skip
        pointers = self._pointer_lines(False)
        each = self._cost()
        if each.is_fixed():
            each = _Cost(((each.ns / max(nominal(blocks), 1), 1),))
        else:
            each = _Cost(tuple((ns * (REDUCTION_BLOCK if is_symbolic(n) else 1), 1) for ns, n in each.terms))
        launch = self._launch(f"{NAME}_part", "context", blocks, each)
        used = declared((pointers, launch, *body, *finish, starts[-1]))
        text = (f"static void {NAME}_part(void* ctx, long begin, long end) {{\n"
                "  char** bufs = ((char***)ctx)[0];\n  char* parts = ((char**)ctx)[1];\n"
                + "".join(f"  {x}\n" for x in used) + pointers
                + "".join(f"  {x}\n" for x in body) + "}\n"
                f"static void {NAME}(char** bufs, const Runtime* rt) {{\n"
                + "".join(f"  {x}\n" for x in used)
                + f"  char* parts = (char*)rt->scratch(rt, 0, {starts[-1]});\n"
                "  void* context[2] = {bufs, parts};\n" + pointers
                + f"  {launch}\n" + "".join(f"  {x}\n" for x in finish) + "}\n")  # fmt: skip
        return self._kernel(text, f"{NAME}(bufs, rt);", None, blocks, each)


class _Accumulator:
    """The running result of a reduction. lanes: number of partial results, `name[index]` each; 1: just `name`.

    A sum or mean of floats `cascades`: a running sum adds at most `CASCADE_STEPS` values, then it is added to a compensated
    total (`fj_add_to`) and starts again, so that the error of the result does not grow with the number of elements. The totals
    of all lanes are added in float64 (`name_whole`), and a mean is divided there: the result is rounded once. A product of
    float32 runs in float64, because its roundings add up in any order.
    """

    def __init__(self, name: str, member: Member, lanes: int = 1, index: str = "lane", of: dtype | None = None) -> None:
        self.name, self.member, self.lanes, self.index = name, member, lanes, index
        d = member.buffer.definition
        assert isinstance(d, ir.Reduction)
        self.kind, self.dtype = "sum" if d.kind == "mean" else d.kind, of or _accumulated(d)
        self.count = product(d.reduced) if d.kind == "mean" else None
        self.cascades = self.kind == "sum" and self.dtype.is_floating_point
        self.whole = dtypes.float64 if self.cascades else self.dtype  # of the result before it is rounded
        self.has_total = False
        self._each = f"for (i64 {index} = 0; {index} < {lanes}; {index}++) " if lanes > 1 else ""
        self._at = f"[{index}]" if lanes > 1 else ""

    def identity(self) -> str:
        d = self.dtype
        if self.kind in ("max", "min"):
            if d is dtypes.bool_:
                return literal(self.kind == "min", d)
            if d.is_integral:
                bits = d.itemsize * 8
                low = -(1 << (bits - 1)) if d.is_signed else 0
                high = (1 << (bits - (1 if d.is_signed else 0))) - 1
                return literal(low if self.kind == "max" else high, d)
            return literal(-math.inf if self.kind == "max" else math.inf, d)
        return literal({"sum": 0, "prod": 1, "any": 0, "all": 1}[self.kind], d)

    def declare(self) -> str:
        running = self._declaration(self.name, self.identity())
        if not self.cascades:
            return running
        return f"{running} {TYPE[self.whole]} {self.name}_whole{'' if self.is_folded else f'[{self.lanes}]'};"

    def _declaration(self, name: str, value: str) -> str:
        if self.lanes == 1:
            return f"{TYPE[self.dtype]} {name} = {value};"
        return f"alignas(64) {TYPE[self.dtype]} {name}[{self.lanes}]; fj_fill({name}, {value});"

    @property
    def is_folded(self) -> bool:
        """Whether the lanes are parts of one result; in a block of columns each lane is a result."""
        return self.index == "lane"

    def step(self, value: str) -> str:
        """The statement that adds `value`; to a lane if there are several."""
        # New value first: if one operand of the comparison is nan, the second is selected, so its test is off the critical
        # path.
        form = {"sum": "{0} += {1};", "prod": "{0} *= {1};", "max": "{0} = fj_maximum({1}, {0});",
                "min": "{0} = fj_minimum({1}, {0});", "any": "{0} |= {1} != 0;", "all": "{0} &= {1} != 0;"}[self.kind]  # fmt: skip
        return form.format(self.name + self._at, value)

    def declare_total(self) -> list[str]:
        """The compensated total of a sum that cascades."""
        self.has_total = True
        zero = literal(0, self.dtype)
        return [self._declaration(f"{self.name}_total", zero), self._declaration(f"{self.name}_carry", zero)]

    def put(self, value: str) -> str:
        """The statement that adds `value` to the total."""
        return f"fj_add_to({self.name}_total{self._at}, {self.name}_carry{self._at}, {value});"

    def put_away(self) -> str:
        """The statement that adds the running sum to the total and starts it again."""
        running = self.name + self._at
        return f"{self._each}{{ {self.put(running)} {running} = {literal(0, self.dtype)}; }}"

    def take(self) -> str:
        """The statement that stores the total as the result."""
        total, carry, whole = (f"{self.name}_{part}" for part in ("total", "carry", "whole"))
        if not self.is_folded:
            return f"{self._each}{whole}{self._at} = fj_total({total}{self._at}, {carry}{self._at});"
        if self.lanes == 1:
            return f"{whole} = fj_total({total}, {carry});"
        # The copies are read in halves: arrays that are read in one width only stay in registers during the loop.
        return (f"alignas(64) {TYPE[self.dtype]} {self.name}_rest[{self.lanes}]; "
                f"{self._each}{{ {self.name}{self._at} = {total}{self._at}; {self.name}_rest{self._at} = {carry}{self._at}; }} "
                f"{whole} = fj_total<{self.lanes}>({self.name}, {self.name}_rest);")

    def folded(self) -> str:
        """The result of all lanes, of type `whole`; of a lane if each is a result."""
        if self.has_total:
            return f"{self.name}_whole{'' if self.is_folded else self._at}"
        return f"fj_fold_{self.kind}<{self.lanes}>({self.name})" if self.is_folded and self.lanes > 1 else self.name + self._at

    def result(self) -> str:
        """The result as an element of the buffer."""
        value, of = self.folded(), self.whole if self.has_total else self.dtype
        if self.count is not None:
            inverse = self.dtype is not dtypes.float64  # then the product's rounding is below the result's
            value = f"{value} * (1.0 / {size_source(self.count)})" if inverse else f"{value} / {size_source(self.count)}"
            value, of = f"({value})", dtypes.float64
        return cast(value, of, self.member.buffer.layout.dtype)


def _loop(axis: int, size: Size, body: list[str]) -> list[str]:
    return _part_loop(axis, "0", size_source(size), body)


def _part_loop(axis: int, start: str, stop: str, body: list[str]) -> list[str]:
    return [f"for (i64 i{axis} = {start}; i{axis} < {stop}; i{axis}++) {{", *(f"  {x}" for x in body), "}"]


def _accumulated(d: ir.Reduction) -> dtype:
    """The type of a reduction's running result."""
    if d.kind in ("any", "all"):
        return dtypes.bool_
    return dtypes.float64 if d.kind == "prod" and d.value.dtype is dtypes.float32 else d.value.dtype


def _lanes(sizes: tuple[Size, ...], members: Sequence[Member]) -> int:
    """The number of running results of each reduction over `sizes`: a power of two that the innermost loop can fill."""
    definitions = [m.buffer.definition for m in members]
    itemsize = min((_accumulated(d).itemsize for d in definitions if isinstance(d, ir.Reduction)), default=LANE_BYTES)
    lanes, innermost = LANE_BYTES // itemsize, next((n for n in reversed(sizes) if n != 1), 1)
    if isinstance(innermost, int) and innermost < lanes:
        return 1 << (innermost.bit_length() - 1) if innermost >= 4 else 1
    return lanes


def _lane_loops(axis: str, start: str, stop: str, count: int | None, body: list[str], lanes: int) -> list[str]:
    """Loops over start..stop in which `body` sees `axis`, and in `lane` the index of its running result.

    g++ adds the lanes of `reduction(...)` one after another, which costs a short row more than all the rest.
    count: number of iterations, if known.
    """
    def sweep(head: str, place: str, n: str) -> list[str]:
        return [head, "  #pragma omp simd", f"  for (i64 lane = 0; lane < {n}; lane++) {{",
                f"    const i64 {axis} = {place} + lane;", *(f"    {x}" for x in body), "  }", "}"]  # fmt: skip

    if count is not None and count % lanes == 0:
        return sweep(f"for (i64 at_{axis} = {start}; at_{axis} < {stop}; at_{axis} += {lanes}) {{", f"at_{axis}", str(lanes))
    whole = f"{stop} - ({stop} - {start}) % {lanes}"
    rest = f"{stop} - last_{axis}" if count is None else str(count % lanes)
    return [f"const i64 last_{axis} = {whole};",
            *sweep(f"for (i64 at_{axis} = {start}; at_{axis} < last_{axis}; at_{axis} += {lanes}) {{", f"at_{axis}", str(lanes)),
            *sweep("{", f"last_{axis}", rest)]  # fmt: skip


def _loops(sizes: tuple[Size, ...], first: int, body: list[str], accumulators: list[_Accumulator], lanes: int) -> list[str]:
    """Nested loops, the innermost vectorised: over `lanes` running results if there are accumulators."""
    axes = [(first + j, n) for j, n in enumerate(sizes) if n != 1]
    if not axes:
        return ["{", *(f"  {x}" for x in body), "}"]
    if not accumulators:
        axis, n = axes[-1]
        lines = ["#pragma omp simd", *_loop(axis, n, body)]
        for axis, n in reversed(axes[:-1]):
            lines = _loop(axis, n, lines)
        return lines
    if lanes == 1:
        return ["{", *(f"  {x}" for x in _cascade(axes, body, accumulators, unroll=True)), "}"]
    axis, n = axes[-1]
    end, count = size_source(n), n if isinstance(n, int) else None
    steps = -(-_most(n) // lanes)
    if steps > CASCADE_STEPS:
        lines = _cascade_lanes(f"i{axis}", "0", end, count, body, accumulators, lanes)
        for axis, n in reversed(axes[:-1]):
            lines = _loop(axis, n, lines)
        lines = _with_totals(lines, accumulators)
    else:
        lines = ["{", *(f"  {x}" for x in _lane_loops(f"i{axis}", "0", end, count, body, lanes)), "}"]
        lines = _cascade(axes[:-1], lines, accumulators, steps)
    return ["{", *(f"  {x}" for x in lines), "}"]


def _most(n: Size) -> int:
    """An upper bound of a size; for an unbounded size, more than a running sum may add."""
    high = E.as_expr(n).hi
    return int(high) if high < 1 << 62 else 1 << 62


def _cascade(axes: list[tuple[int, Size]], body: list[str], accumulators: Sequence[_Accumulator], steps: int = 1,
             unroll: bool = False) -> list[str]:  # fmt: skip
    """Nested loops around `body`, in which each accumulator adds `steps` values. One loop is split into blocks, after each of
    which the running sums are added to their totals.
    """
    sums = [a for a in accumulators if a.cascades]
    lines, cut = body, not sums
    for at, (axis, n) in enumerate(reversed(axes)):
        pragma = ["#pragma GCC unroll 3"] if unroll and at == 0 else []
        steps *= 1 if cut else _most(n)
        if cut or steps <= CASCADE_STEPS:
            lines = [*pragma, *_loop(axis, n, lines)]
            continue
        block, cut = max(1, CASCADE_STEPS * _most(n) // steps), True
        end = size_source(n)
        lines = [f"for (i64 from_i{axis} = 0; from_i{axis} < {end}; from_i{axis} += {block}) {{",
                 f"  const i64 to_i{axis} = {_stop(n, f'from_i{axis}', block)};",
                 *(f"  {x}" for x in (*pragma, *_part_loop(axis, f"from_i{axis}", f"to_i{axis}", lines))),
                 *(f"  {a.put_away()}" for a in sums), "}"]  # fmt: skip
    return _with_totals(lines, sums) if cut else lines


def _with_totals(lines: list[str], accumulators: Sequence[_Accumulator]) -> list[str]:
    """Loops that cascade, between the declarations of the totals and the statements that store them as results."""
    sums = [a for a in accumulators if a.cascades]
    return [*(x for a in sums for x in a.declare_total()), *lines, *(a.take() for a in sums)]


def _stop(n: Size, start: str, block: int) -> str:
    """The end of the block that begins at `start`."""
    if isinstance(n, int) and n % block == 0:
        return f"{start} + {block}"
    return f"fj_min({start} + {block}, {size_source(n)})"


def _cascade_lanes(axis: str, start: str, stop: str, count: int | None, body: list[str], accumulators: Sequence[_Accumulator],
                   lanes: int) -> list[str]:  # fmt: skip
    """`_lane_loops` in blocks, after each of which the running sums are added to their totals."""
    sums = [a for a in accumulators if a.cascades]
    if not sums:
        return _lane_loops(axis, start, stop, count, body, lanes)
    block = CASCADE_STEPS * lanes
    even = count is not None and count % block == 0
    end = f"from_{axis} + {block}" if even else f"fj_min(from_{axis} + {block}, {stop})"
    return [f"for (i64 from_{axis} = {start}; from_{axis} < {stop}; from_{axis} += {block}) {{",
            f"  const i64 to_{axis} = {end};",
            *(f"  {x}" for x in _lane_loops(axis, f"from_{axis}", f"to_{axis}", block if even else None, body, lanes)),
            *(f"  {a.put_away()}" for a in sums), "}"]  # fmt: skip
