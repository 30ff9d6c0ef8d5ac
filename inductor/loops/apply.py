"""Performs the steps of a schedule on a kernel.

Each step is a pure function from a kernel to a new kernel or to a `Refusal` that names the reason. The guard that a step adds
for the tail of a loop is a statement like any other, so every result prints, runs in the interpreter and takes further steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain
from inductor.loops.combine import COMBINES
from inductor.loops.dependence import accesses, carried, conflicts, rest_below_stride, separates
from inductor.loops.steps import (
    BlockReduction,
    Contract,
    Distribute,
    FuseAxes,
    Join,
    Mark,
    Reorder,
    Schedule,
    Split,
    SplitReduction,
    Step,
)
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Guard,
    Kernel,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    loops_of,
    places_of,
    rename,
    rename_memory,
    repeat,
    rewrite,
    substitute,
    values_of,
    walk,
    with_body,
)

MAX_UNROLLED = 64  # iterations
MAX_LOCAL = 1 << 16  # elements of a local that grows by a distributed loop


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that cannot be done, and why."""

    step: Step
    reason: str

    def __str__(self) -> str:
        return f"{self.step}: {self.reason}"


class _Refused(Exception):
    """Carries a reason from inside a step to `apply`."""


def apply(kernel: Kernel, schedule: Schedule) -> Kernel | Refusal:
    """The kernel after every step of the schedule, or the first refusal."""
    for step in schedule:
        try:
            kernel = _contract(kernel, step) if isinstance(step, Contract) else replace(kernel, body=_perform(kernel.body, step))
        except _Refused as refused:
            return Refusal(step, str(refused))
    return kernel


def _perform(body: Block, step: Step) -> Block:
    """The loops after a step that changes loops alone."""
    match step:
        case Split():
            return _split(body, step)
        case Reorder():
            return _reorder(body, step)
        case FuseAxes():
            return _fuse_axes(body, step)
        case Mark():
            return _mark(body, step)
        case Distribute():
            return _distribute(body, step)
        case Join():
            return _join(body, step)
        case SplitReduction():
            return _split_reduction(body, step)
        case BlockReduction():
            return _block_reduction(body, step)
    raise TypeError(f"apply: {step!r} is not a step")


# -- finding and replacing loops -----------------------------------------------------------------------------------
def _loop(body: Block, axis: str) -> Loop:
    found = loops_of(body).get(axis)
    if found is None:
        raise _Refused(f"there is no loop {axis}; the loops are {', '.join(loops_of(body)) or 'none'}")
    return found


def _replace(body: Block, old: Statement, new: Block) -> Block:
    return rewrite(body, lambda s: new if s is old else None)


def _only(loop: Loop) -> Loop:
    """The loop that is the whole body of `loop`."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Loop):
        raise _Refused(f"the body of {loop.axis.name} is not one loop")
    return loop.body[0]


def _free(body: Block, name: str) -> str:
    """`name`, which no loop may have yet."""
    if name in loops_of(body):
        raise _Refused(f"there is a loop {name} already")
    return name


def _less(e: E.Expr, n: Size) -> ir.Value:
    return ir.make_op("lt", (ir.index(e), ir.index(n)), dtypes.bool_)


def _constant(loop: Loop) -> int:
    if not isinstance(loop.extent, int):
        raise _Refused(f"the extent {loop.extent} of {loop.axis.name} is not constant")
    return loop.extent


# -- steps ---------------------------------------------------------------------------------------------------------
def _blocks(body: Block, loop: Loop, factor: int) -> tuple[E.Sym, E.Sym, Size, Callable[[Block], Block]]:
    """The two axes of a split loop, the number of blocks, and the substitution of the old axis in its body."""
    if factor < 2:
        raise _Refused(f"the factor is {factor}; allowed: 2 and more")
    count = ceildiv(loop.extent, factor)
    name = loop.axis.name
    outer, inner = ir.counter(_free(body, f"{name}_o"), count), ir.counter(_free(body, f"{name}_i"), factor)
    # A single block has no outer symbol: its counter is the constant 0.
    if not isinstance(outer, E.Sym) or not isinstance(inner, E.Sym):
        raise _Refused(f"{name} has {loop.extent} iterations, no more than one block of {factor}")
    at = outer * factor + inner

    def inside(block: Block) -> Block:
        block = substitute(block, {loop.axis: at})
        return block if _divides(factor, loop.extent) else (Guard(_less(at, loop.extent), block),)

    return outer, inner, count, inside


def _divides(factor: int, extent: Size) -> bool:
    return E.mod(E.as_expr(extent), E.as_expr(factor)) is E.as_expr(0)


def _split(body: Block, step: Split) -> Block:
    loop = _loop(body, step.axis)
    if step.tail == "peel":
        return _peel(body, loop, step.factor)
    outer, inner, count, inside = _blocks(body, loop, step.factor)
    kind = loop.kind
    return _replace(body, loop, (Loop(outer, count, kind, (Loop(inner, step.factor, kind, inside(loop.body)),)),))


def _peel(body: Block, loop: Loop, factor: int) -> Block:
    """Whole blocks, then a loop over the rest."""
    name, kind = loop.axis.name, loop.kind
    count, rest = (plain(op(E.as_expr(loop.extent), E.as_expr(factor))) for op in (E.floordiv, E.mod))
    if factor < 2 or count == 0:
        raise _Refused(f"{name} has {loop.extent} iterations, no whole block of {factor}")
    outer, inner = ir.counter(_free(body, f"{name}_o"), count), ir.counter(_free(body, f"{name}_i"), factor)
    blocks = repeat(inner, factor, kind, substitute(loop.body, {loop.axis: outer * factor + inner}))
    axis = ir.counter(_free(body, f"{name}_t"), rest)
    tail = rename(substitute(loop.body, {loop.axis: E.mul(count, factor) + axis}), "_t")
    return _replace(body, loop, (*repeat(outer, count, kind, blocks), *repeat(axis, rest, kind, tail)))


def _reorder(body: Block, step: Reorder) -> Block:
    outer = _loop(body, step.outer)
    if len(outer.body) == 1 and isinstance(outer.body[0], Guard):
        outer_new = _sink_guard(outer)
        body, outer = _replace(body, outer, (outer_new,)), outer_new
    inner = _only(outer)
    if inner.axis.name != step.inner:
        raise _Refused(f"the body of {step.outer} is the loop {inner.axis.name}")
    if isinstance(inner.extent, E.Expr) and outer.axis in inner.extent.symbols:
        raise _Refused(f"the extent of {step.inner} depends on {step.outer}")
    found = list(accesses(inner.body))
    for a, b in conflicts(found, found):
        if not separates(outer.axis, a, b, [inner.axis]) and not separates(inner.axis, a, b, [outer.axis]):
            raise _Refused(_depends(a.place, b.place))
    if _is_ordered(inner.body):
        raise _Refused("the order of the reduction's iterations matters")
    return _replace(body, outer, (with_body(inner, (with_body(outer, inner.body),)),))


def _sink_guard(outer: Loop) -> Loop:
    """The guard that is the body of `outer`, moved into the loop inside of it."""
    guard = outer.body[0]
    assert isinstance(guard, Guard)
    if len(guard.body) != 1 or not isinstance(guard.body[0], Loop):
        raise _Refused(f"the body of {outer.axis.name} is not one loop")
    inner = guard.body[0]
    return Loop(outer.axis, outer.extent, outer.kind, (with_body(inner, (Guard(guard.condition, inner.body),)),))


def _is_ordered(body: Block) -> bool:
    return any(isinstance(s, Accumulate) and COMBINES[s.combine].is_ordered for s in walk(body))


def _depends(a: Place, b: Place) -> str:
    return f"iterations depend on each other through {a} and {b}" if a != b else f"iterations depend on each other through {a}"


def _fuse_axes(body: Block, step: FuseAxes) -> Block:
    outer = _loop(body, step.outer)
    inner = _only(outer)
    if inner.axis.name != step.inner:
        raise _Refused(f"the body of {step.outer} is the loop {inner.axis.name}")
    if outer.kind != inner.kind:
        raise _Refused(f"{step.outer} is {outer.kind} and {step.inner} is {inner.kind}")
    extent = plain(E.mul(outer.extent, inner.extent))
    axis = ir.counter(_free(body, f"{step.outer}_{step.inner}"), extent)
    if not isinstance(axis, E.Sym):
        raise _Refused("the fused loop has one iteration")
    at: dict[E.Expr, E.IntLike] = {outer.axis: E.floordiv(axis, inner.extent), inner.axis: E.mod(axis, inner.extent)}
    return _replace(body, outer, (Loop(axis, extent, outer.kind, substitute(inner.body, at)),))


def _mark(body: Block, step: Mark) -> Block:
    loop = _loop(body, step.axis)
    if step.kind == "unrolled" and _constant(loop) > MAX_UNROLLED:
        raise _Refused(f"{loop.extent} iterations are too many to unroll; allowed: up to {MAX_UNROLLED}")
    if step.kind == "vector":
        _constant(loop)
        if any(isinstance(s, Loop) and s.kind != "unrolled" for s in walk(loop.body)):
            raise _Refused("a vector loop holds no other loop")
    if step.kind == "parallel" and any(isinstance(s, Loop) and s.kind == "parallel" for s in walk(loop.body)):
        raise _Refused("a parallel loop holds no other parallel loop")
    if step.kind in ("parallel", "vector"):
        for a, b in carried(loop):
            raise _Refused(_depends(a.place, b.place))
    return _replace(body, loop, (Loop(loop.axis, loop.extent, step.kind, loop.body),))


def _distribute(body: Block, step: Distribute) -> Block:
    loop = _loop(body, step.axis)
    locals_, statements = _flatten(loop.body)
    if len(statements) < 2:
        raise _Refused(f"the body of {step.axis} is one statement")
    if any(isinstance(s, Loop) and s.kind != "serial" for s in walk(loop.body)):
        raise _Refused("loops inside are scheduled already")
    arrays = {x.name: _expanded(x, loop) for x in locals_}
    block = rename_memory(tuple(statements), {x.name: (x.name, E.mul(loop.axis, x.size)) for x in locals_})
    for k, first in enumerate(block):
        for second in block[k + 1 :]:
            for a, b in conflicts(accesses((first,)), accesses((second,))):
                if not separates(loop.axis, a, b):
                    raise _Refused(_depends(a.place, b.place))
    names = [loop.axis.name, *(f"{loop.axis.name}_{k}" for k in range(1, len(block)))]
    out: list[Statement] = []
    for name, s in zip(names, block, strict=True):
        axis = loop.axis if name == loop.axis.name else ir.counter(_free(body, name), loop.extent)
        assert isinstance(axis, E.Sym)
        out.append(Loop(axis, loop.extent, loop.kind, substitute((s,), {loop.axis: axis})))
    new: Block = tuple(out)
    for x in reversed(list(arrays.values())):
        new = (Allocate(x, new),)
    return _replace(body, loop, new)


def _flatten(block: Block) -> tuple[list[Local], list[Statement]]:
    """The locals and the statements of a body, with guards and allocations around each statement taken apart."""
    locals_: list[Local] = []
    statements: list[Statement] = []
    for s in block:
        if isinstance(s, Allocate):
            inner_locals, inner = _flatten(s.body)
            locals_ += [s.local, *inner_locals]
            statements += inner
        elif isinstance(s, Guard):
            inner_locals, inner = _flatten(s.body)
            locals_ += inner_locals
            statements += [Guard(s.condition, (x,)) for x in inner]
        else:
            statements.append(s)
    return locals_, statements


def _expanded(x: Local, loop: Loop) -> Local:
    size = x.size * _constant(loop)
    if size > MAX_LOCAL:
        raise _Refused(f"{x.name} would have {size} elements; allowed: up to {MAX_LOCAL}")
    return Local(x.name, size, x.dtype, "stack")


def _join(body: Block, step: Join) -> Block:
    first, second = _loop(body, step.first), _loop(body, step.second)
    _require_neighbours(body, first, second)
    if E.as_expr(first.extent) is not E.as_expr(second.extent):
        raise _Refused(f"{step.first} has {first.extent} iterations and {step.second} has {second.extent}")
    if first.kind != second.kind:
        raise _Refused(f"{step.first} is {first.kind} and {step.second} is {second.kind}")
    moved = substitute(second.body, {second.axis: first.axis})
    for a, b in conflicts(accesses(first.body), accesses(moved)):
        if not separates(first.axis, a, b):
            raise _Refused(_depends(a.place, b.place))
    joined = Loop(first.axis, first.extent, first.kind, (*first.body, *moved))
    return _replace(_replace(body, second, ()), first, (joined,))


def _require_neighbours(body: Block, first: Loop, second: Loop) -> None:
    blocks: list[Block] = [body, *(s.body for s in walk(body) if isinstance(s, Loop | Guard | Allocate))]
    for block in blocks:
        for a, b in pairwise(block):
            if a is first and b is second:
                return
    raise _Refused(f"{second.axis.name} does not follow {first.axis.name}")


# -- reductions ----------------------------------------------------------------------------------------------------
def _accumulation(loop: Loop) -> Accumulate:
    """The accumulation that is the whole body of a loop, into one place for all iterations."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Accumulate):
        raise _Refused(f"the body of {loop.axis.name} is not one accumulation")
    s = loop.body[0]
    if any(loop.axis in p.index.symbols or p.indirect for p in s.places):
        raise _Refused(f"{loop.axis.name} does not accumulate into one place")
    written = {p.name for p in places_of(s)}
    if any(isinstance(v, ir.Load) and v.buffer in written for v in ir.walk(values_of(s))):
        raise _Refused("the accumulated value reads the running result")
    if COMBINES[s.combine].is_ordered:
        raise _Refused("the order of the reduction's iterations matters")
    return s


def _partial(body: Block, s: Accumulate, axis: str, size: int) -> list[Local]:
    taken = {x.local.name for x in walk(body) if isinstance(x, Allocate)}
    found = [Local(f"{axis}_part{k}", size, v.dtype, "stack" if size > 1 else "register") for k, v in enumerate(s.values)]
    if any(x.name in taken for x in found):
        raise _Refused(f"{axis} has partial results already")
    return found


def _identity(s: Accumulate, places: Iterable[Place]) -> Block:
    values = COMBINES[s.combine].identity(s.values[0].dtype)
    return tuple(Store(p, v) for p, v in zip(places, values, strict=True))


def _places(locals_: Iterable[Local], at: E.IntLike) -> tuple[Place, ...]:
    return tuple(Place(x.name, E.as_expr(at)) for x in locals_)


def _loads(locals_: Iterable[Local], at: E.IntLike) -> tuple[ir.Value, ...]:
    return tuple(ir.load(x.name, at, x.dtype) for x in locals_)


def _split_reduction(body: Block, step: SplitReduction) -> Block:
    loop = _loop(body, step.axis)
    s = _accumulation(loop)
    outer, inner, count, inside = _blocks(body, loop, step.lanes)
    parts = _partial(body, s, step.axis, step.lanes)
    begin, end = (ir.counter(_free(body, f"{step.axis}_{word}"), step.lanes) for word in ("begin", "end"))
    assert isinstance(begin, E.Sym) and isinstance(end, E.Sym)
    values = inside((Accumulate(_places(parts, inner), s.combine, s.values),))
    new: Block = (
        Loop(begin, step.lanes, "serial", _identity(s, _places(parts, begin))),
        Loop(outer, count, loop.kind, (Loop(inner, step.lanes, "serial", values),)),
        Loop(end, step.lanes, "serial", (Accumulate(s.places, s.combine, _loads(parts, end)),)),
    )
    return _replace(body, loop, _allocated(parts, new))


def _block_reduction(body: Block, step: BlockReduction) -> Block:
    loop = _loop(body, step.axis)
    s = _accumulation(loop)
    outer, inner, count, inside = _blocks(body, loop, step.size)
    parts = _partial(body, s, step.axis, 1)
    here = _places(parts, 0)
    values = inside((Accumulate(here, s.combine, s.values),))
    block: Block = (
        *_identity(s, here),
        Loop(inner, step.size, "serial", values),
        Accumulate(s.places, s.combine, _loads(parts, 0)),
    )
    return _replace(body, loop, (Loop(outer, count, loop.kind, _allocated(parts, block)),))


def _allocated(locals_: Iterable[Local], block: Block) -> Block:
    for x in reversed(list(locals_)):
        block = (Allocate(x, block),)
    return block


# -- memory --------------------------------------------------------------------------------------------------------
def _contract(kernel: Kernel, step: Contract) -> Kernel:
    """Each element of the buffer belongs to one iteration, so every iteration may have private memory for its elements."""
    loop, name = _loop(kernel.body, step.axis), step.buffer
    if name not in kernel.temporary:
        raise _Refused(f"{name} is read after the kernel")
    inside = [a for a in accesses(loop.body) if a.place.name == name]
    if len(inside) != sum(a.place.name == name for a in accesses(kernel.body)):
        raise _Refused(f"{name} is used outside of {step.axis}")
    rests = {rest_below_stride(a, loop.axis) for a in inside}
    strides = {r[0] for r in rests if r is not None}
    if None in rests or len(strides) != 1:
        raise _Refused(f"an element of {name} does not belong to one iteration of {step.axis}")
    (stride,) = strides
    if not isinstance(stride, E.Int) or stride.value > MAX_LOCAL:
        raise _Refused(f"the part of {name} in one iteration has {stride} elements; allowed: up to {MAX_LOCAL}")
    local = Local(name, stride.value, kernel.dtypes[name], "stack" if stride.value > 1 else "register")
    body = rename_memory(loop.body, {name: (name, E.mul(loop.axis, -stride.value))})
    new = with_body(loop, (Allocate(local, body),))
    dtypes_left = {n: t for n, t in kernel.dtypes.items() if n != name}
    return Kernel(_replace(kernel.body, loop, (new,)), dtypes_left, kernel.temporary - {name})
