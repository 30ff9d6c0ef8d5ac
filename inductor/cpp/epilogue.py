"""Pointwise loops that follow a matrix product, run on each block of it while the block is in cache.

Owns the test whether a nest can follow a product (`match`), and its text as the epilogue function that `cpp.gemm_problem`
describes. If the result has the product's layout, the product is computed in the result's memory and changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fxir.expr import rules as E
from inductor.cpp.kernel import Place
from inductor.cpp.units import NAME, declared
from inductor.cpp.values import TYPE, Scope, index_source
from inductor.ir import definitions as ir
from inductor.ir.inline import Refusal
from inductor.ir.sizes import Size, is_symbolic, plain
from inductor.ir.values import at_point
from inductor.plan.bundles import LoopNest

# Axes of an epilogue: the product of the batch, its row, a run of columns, the column in the run.
_BATCH, _ROW, _RUN, _COLUMN = range(4)


@dataclass(frozen=True, slots=True)
class Store:
    """One result: `value` goes to `position` of `buffer`."""

    buffer: ir.Buffer
    value: ir.Value
    position: E.Expr


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The loops that follow product `c`. cut: columns come in runs of this length, inside which all positions are linear.

    in_place: the result that may share the memory of c, or None.
    """

    c: str
    n: Size
    cut: Size
    stores: tuple[Store, ...]
    in_place: str | None


def match(product: ir.Buffer, nest: LoopNest) -> Epilogue | Refusal:
    """The epilogue for a nest of pointwise loops, or the reason why it cannot be one."""
    members = [m for b in nest.bundles for m in b.members]
    label = ", ".join(m.buffer.name for m in members)
    if len(nest.bundles) != 1 or any(m.kind != "store" for m in members):
        return Refusal(product.name, label, "only pointwise loops can follow a product block by block")
    batch, rows, n = product.layout.shape
    sizes = (*nest.rows, *nest.bundles[0].inner)
    reads = {v for m in members for v in ir.walk([m.value]) if isinstance(v, ir.Load) and v.buffer == product.name}
    if len({v.index for v in reads}) != 1 or any(v.mask is not None or v.indirect for v in reads):
        return Refusal(product.name, label, "it reads the product at several places, or at computed ones")
    order = _order(next(iter(reads)).index, sizes, product.layout.numel)
    if order is None or not product.layout.is_row_major:
        return Refusal(product.name, label, "it does not read each element of the product once")
    for cut in dict.fromkeys((n, sizes[order[-1]] if order else n)):
        if cut != n and (is_symbolic(n, cut) or n % cut != 0):
            continue
        shape: tuple[Size, ...] = (batch, rows, 1 if cut == n else n // cut, cut)
        at = [ir.axis(k, size) for k, size in enumerate(shape)]
        position = ir.linear_position(shape, [a if s != 1 else 0 for a, s in zip(at, shape, strict=True)])
        point = ir.split_position(position, [sizes[k] for k in order])
        moved: dict[E.Expr, E.IntLike] = {ir.axis(k, sizes[k]): p for k, p in zip(order, point, strict=True)}
        whole = [moved.get(ir.axis(k, size), 0) if size != 1 else 0 for k, size in enumerate(sizes)]
        store_at = ir.linear_position(sizes, whole)
        stores = tuple(Store(m.buffer, at_point(m.value, moved), store_at) for m in members)
        if not _cuts_columns(stores, at[_COLUMN]):
            of = product.layout.dtype
            here = [s.buffer.name for s in stores if s.position is position and s.buffer.layout.dtype is of]
            return Epilogue(product.name, n, cut, stores, here[0] if here else None)
    return Refusal(product.name, label, "its order of elements divides the columns of the product into parts")


def _order(index: E.Expr, sizes: tuple[Size, ...], numel: Size) -> list[int] | None:
    """Axes from outermost to innermost in the product, if they count through all of its elements."""
    axes = {ir.axis(k, n): k for k, n in enumerate(sizes) if n != 1}
    steps = E.strides_of(index, list(axes))
    if steps is None or not isinstance(steps[1], E.Int) or int(steps[1]) != 0:
        return None
    by_step = {plain(s): axes[a] for a, s in steps[0].items()}
    found: list[int] = []
    step: Size = 1
    while by_step:
        k = by_step.pop(step, None)
        if k is None:
            return None
        found.append(k)
        step = plain(step * sizes[k])
    return found[::-1] if len(found) == len(axes) and step == numel else None


def _cuts_columns(stores: tuple[Store, ...], column: E.Expr) -> bool:
    """Whether a division or remainder depends on the column inside its run."""
    pending = [*(s.position for s in stores), *ir.expressions_in([s.value for s in stores])]
    while pending:
        e = pending.pop()
        if isinstance(e, E.FloorDiv | E.Mod) and column in e.symbols:
            return True
        pending.extend(e.children)
    return False


def print_epilogue(ep: Epilogue, places: Mapping[str, Place], stored: set[str]) -> tuple[str, tuple[str, ...]]:
    """The function `NAME(char** args, long batch, long i0, long i1, long j0, long j1)`, and the pointers of `args`."""
    pointers: dict[str, bool] = {}

    def load(v: ir.Load, index: str) -> str:
        pointers.setdefault(v.buffer, False)
        return f"p_{v.buffer}[{index}]"

    inner: list[str] = []
    outer: list[str] = []
    scope = Scope(outer, inner, [ir.axis(_COLUMN, ep.cut)], load, {}, [0])
    # All values before any store: a store may overwrite the product, which a later value still reads.
    values = [scope.print(s.value) for s in ep.stores]
    for s, value in zip(ep.stores, values, strict=True):
        if s.buffer.name in stored:
            pointers[s.buffer.name] = True
            inner.append(f"p_{s.buffer.name}[{index_source(s.position, {})}] = {value};")
    low, high = "c0", "c1"
    run: list[str] = []
    if ep.cut != ep.n:
        low, high = "low", "high"
        run = [f"const i64 low = fj_max(c0 - i{_RUN} * {ep.cut}, 0), high = fj_min(c1 - i{_RUN} * {ep.cut}, {ep.cut});"]
    loop = [*run, *outer, "#pragma omp simd", f"for (i64 i{_COLUMN} = {low}; i{_COLUMN} < {high}; i{_COLUMN}++) {{",
            *(f"  {x}" for x in inner), "}"]  # fmt: skip
    if ep.cut != ep.n:
        loop = [f"for (i64 i{_RUN} = c0 / {ep.cut}; i{_RUN} * {ep.cut} < c1; i{_RUN}++) {{", *(f"  {x}" for x in loop), "}"]
    shared = ep.in_place in stored and places[ep.in_place] == places[ep.c]
    restrict = "" if shared else " RESTRICT"
    lines = [f"static void {NAME}(char** args, long i{_BATCH}, long r0, long r1, long c0, long c1) {{"]
    symbols = declared(loop)
    if symbols or any("FJ_CHECKS" in line for line in loop):
        lines.append("  char** bufs = (char**)args[0];")
        lines += [f"  {x}" for x in symbols]
    for k, (buffer, written) in enumerate(pointers.items()):
        p = places[buffer]
        t = TYPE[p.dtype] if written else f"const {TYPE[p.dtype]}"
        lines.append(f"  {t}*{restrict} p_{buffer} = ({t}*)args[{k + 1}];")
    body = [f"for (i64 i{_ROW} = r0; i{_ROW} < r1; i{_ROW}++) {{", *(f"  {x}" for x in loop), "}"]
    return "\n".join([*lines, *(f"  {x}" for x in body), "}"]) + "\n", tuple(places[n].source for n in pointers)
