"""The steps that copy the elements which a loop reads to a local before the loop, and the elements which it writes to memory after it.

A target can make a copy of two loops in registers: it reads along one loop and stores along the other. It can make a copy of one
loop to memory with stores past the caches.
"""

from __future__ import annotations

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import product
from inductor.ir.values import at_point, replace_loads
from inductor.loops.dependence import accesses
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    Accumulate,
    Block,
    Kernel,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    allocated,
    chain_of,
    loops_of,
    repeat,
    replace_statement,
    values_of,
    with_body,
    with_values,
)

MOST_CACHED = 4096  # elements of a copy, which should stay in the nearest cache


def cache_read(kernel: Kernel, buffer: str, loop: Loop) -> Block:
    """The loops of a kernel in which `loop` reads a copy of its elements of `buffer`. Raises: Refused."""
    axis, chain = loop.axis.name, chain_of(loop)
    extents = [x.extent for x in chain if isinstance(x.extent, int)]
    size = product(extents)
    if len(extents) < len(chain) or any(x.kind == "parallel" for x in chain):
        raise Refused(f"{axis} or a loop inside of it is parallel or of unknown extent")
    if not isinstance(size, int) or size > MOST_CACHED:
        raise Refused(f"the iterations of {axis} read {size} elements; allowed: up to {MOST_CACHED}")
    read, name = _only_load(chain[-1].body, buffer), f"{buffer}_{axis}"
    if kernel.dtypes.get(buffer) is not read.dtype:
        raise Refused(f"{buffer} is local to an iteration, or has elements of another dtype than {read}")
    axes = [ir.counter(f"{name}_{k}", n) for k, n in enumerate(extents)]
    if not loops_of(kernel.body).keys().isdisjoint(str(x) for x in axes):
        raise Refused(f"{axis} reads a copy of {buffer} already")
    source = at_point(read, {x.axis: at for x, at in zip(chain, axes, strict=True)})
    copied: Block = (Store(Place(name, ir.linear_position(extents, axes)), source),)
    for at, x in reversed(list(zip(axes, chain, strict=True))):
        copied = repeat(at, x.extent, x.kind, copied)
    local = ir.load(name, ir.linear_position(extents, [x.axis for x in chain]), read.dtype)

    def changed(v: ir.Value) -> ir.Value:
        return replace_loads(v, lambda x: local if x is read else None)

    body: Block = tuple([with_values(s, changed) for s in chain[-1].body])
    for x in reversed(chain):
        body = (with_body(x, body),)
    return replace_statement(kernel.body, chain[0], allocated([Local(name, size, read.dtype, "stack")], (*copied, *body)))


def cache_write(kernel: Kernel, loop: Loop) -> Block:
    """The loops of a kernel in which the vector loop `loop` writes to locals, and loops after it copy them. Raises: Refused."""
    axis = loop.axis.name
    if loop.kind != "vector" or not isinstance(loop.extent, int) or loop.extent > MOST_CACHED:
        raise Refused(f"{axis} is {loop.kind} and has {loop.extent} iterations; allowed: a vector loop of up to {MOST_CACHED}")
    if not all(isinstance(s, Store) for s in loop.body):
        raise Refused(f"the body of {axis} is not stores")
    reached = [a.place.name for a in accesses(loop.body)]
    stored: list[Statement] = []
    copies: list[Statement] = []
    locals_: list[Local] = []
    for k, s in enumerate(loop.body):
        assert isinstance(s, Store)
        place = s.place
        if place.name in kernel.dtypes and reached.count(place.name) == 1 and not place.indirect and _is_contiguous(place.index, loop.axis):
            local = Local(f"{axis}_w{k}", loop.extent, s.value.dtype, "stack")
            at = ir.counter(f"{axis}_c{k}", loop.extent)
            target = Place(place.name, E.substitute(place.index, {loop.axis: at}))
            copies += repeat(at, loop.extent, "streamed", (Store(target, ir.load(local.name, at, local.dtype)),))
            locals_.append(local)
            place = Place(local.name, loop.axis)
        stored.append(Store(place, s.value))
    if not copies:
        raise Refused(f"{axis} writes no contiguous memory of which it reads and writes nothing else")
    return replace_statement(kernel.body, loop, allocated(locals_, (with_body(loop, tuple(stored)), *copies)))


def _is_contiguous(index: E.Expr, axis: E.Sym) -> bool:
    found = E.strides_of(index, [axis])
    return found is not None and found[0][axis] is E.as_expr(1)


def _only_load(body: Block, buffer: str) -> ir.Load:
    """The load by which the body of a loop reads a buffer, and which runs in every iteration."""
    if not all(isinstance(s, Store | Accumulate) for s in body):
        raise Refused("the body of the innermost loop is not stores and accumulations")
    if any(a.writes and a.place.name == buffer for a in accesses(body)):
        raise Refused(f"{buffer} is written in the loop")
    found = {x for s in body for v in values_of(s) for x in ir.loads_in(v) if x.buffer == buffer}
    if len(found) != 1:
        raise Refused(f"{buffer} is read at {len(found)} positions")
    (read,) = found
    if read.mask is not None or read.indirect:
        raise Refused(f"{read} is read where data says")
    return read
