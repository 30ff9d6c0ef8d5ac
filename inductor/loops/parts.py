"""Reductions in two stages: parts of the reduced loop by separate programs, then their results in order.

Few rows with many elements give a target with many cores too few programs. The partial results are in memory, and do not depend on
the number of cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain, product
from inductor.loops.reductions import COMBINES, opened
from inductor.loops.refusal import Refused
from inductor.loops.tiles import fixed_accumulations
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Local,
    Loop,
    Place,
    Store,
    allocated,
    rename,
    repeat,
    replace_statement,
    substitute,
    walk,
)


def in_parts(body: Block, loop: Loop, size: int) -> Block:
    """A reduction as parts of `size` iterations, each with its own results, and a reduction of these. Raises: Refused."""
    root, row = _around(body, loop)
    inside: Block = (root,) if row is None else row.body
    locals_, statements = opened(inside)
    at = next(k for k, s in enumerate(statements) if s is loop)
    if any(isinstance(s, Loop) for s in statements if s is not loop):
        raise Refused(f"other loops run before or after {loop.axis.name}")
    found = fixed_accumulations(loop)
    if len(walk(loop.body)) != len(found):
        raise Refused(f"the body of {loop.axis.name} stores elements")
    name, count = loop.axis.name, ceildiv(loop.extent, size)
    part, again = ir.counter(f"{name}_p", count), ir.counter(f"{name}_q", count)
    if not isinstance(part, E.Sym) or not isinstance(again, E.Sym):
        raise Refused(f"{name} has one part")
    here = plain(E.minimum(size, loop.extent - part * size))
    inner = ir.counter(f"{name}_h", here)
    rows: Size = 1 if row is None else row.extent
    results = [_results(s, f"{name}_result{k}", product((count, rows))) for k, s in enumerate(found)]
    begin, end = tuple(statements[:at]), tuple(statements[at + 1 :])
    step = E.as_expr(0) if row is None else E.as_expr(row.axis)

    def places(names: Sequence[Local], which: E.Expr) -> tuple[Place, ...]:
        return tuple(Place(x.name, which * rows + step) for x in names)

    kept = [Store(p, _load(q, x)) for s, own in zip(found, results, strict=True)
            for p, q, x in zip(places(own, part), s.places, own, strict=True)]  # fmt: skip
    sweep = repeat(inner, here, "serial", substitute(loop.body, {loop.axis: part * size + inner}))
    first = rename(_rows(row, allocated(locals_, (*begin, *sweep, *kept))), "_p")
    pairs = zip(found, results, strict=True)
    merged = tuple([Accumulate(s.places, s.combine, tuple(map(_load, places(own, again), own))) for s, own in pairs])
    second = _rows(row, allocated(locals_, (*begin, Loop(again, count, "serial", merged), *end)))
    both = allocated([x for own in results for x in own], (Loop(part, count, "serial", first), *second))
    return replace_statement(body, root, both)


def _around(body: Block, loop: Loop) -> tuple[Loop | Allocate, Loop | None]:
    """The statement at the root that holds a loop, and the loop over rows, if there is one."""
    root = next((s for s in body if any(x is loop for x in walk((s,)))), None)
    if root is loop or not isinstance(root, Loop | Allocate):
        raise Refused(f"{loop.axis.name} is not a reduction with results")
    row = root if isinstance(root, Loop) else None
    inside = (root,) if row is None else row.body
    if not any(s is loop for s in opened(inside)[1]):
        raise Refused(f"{loop.axis.name} is not inside of one loop at most")
    if row is not None and isinstance(loop.extent, E.Expr) and row.axis in loop.extent.symbols:
        raise Refused(f"the number of elements depends on {row.axis.name}")
    return root, row


def _load(place: Place, local: Local) -> ir.Value:
    return ir.load(place.name, place.index, local.dtype)


def _rows(row: Loop | None, block: Block) -> Block:
    return block if row is None else (Loop(row.axis, row.extent, row.kind, block),)


def _results(s: Accumulate, name: str, size: Size) -> list[Local]:
    components: tuple[dtype, ...] = COMBINES[s.combine].components(s.values[0].dtype)
    return [Local(f"{name}_{j}", size, t, "shared") for j, t in enumerate(components)]
