"""The step that draws the random words of a loop before the loop.

The words of a counter belong to elements in four rows of a draw (see `eager.optable.random`). A loop over elements computes a block of
words for each element. The loops here draw whole chunks of elements, which a target does at once, also the elements of the first and the
last chunk that the loop does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eager.optable.random import LANES, WORDS
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain, product
from inductor.ir.values import replace_values
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    Accumulate,
    Block,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    allocated,
    chain_of,
    loops_of,
    places_of,
    repeat,
    replace_statement,
    values_of,
    with_body,
    with_values,
)

CHUNK: Final = LANES * WORDS  # words of a chunk of a draw
MOST_STAGED: Final = 4096  # words that are drawn before a loop, which should stay in the nearest cache


def stage_draws(body: Block, loop: Loop) -> Block:
    """The statements in which `loop` and the loops inside of it read words that a loop before them draws. Raises: Refused."""
    axis, chain = loop.axis.name, chain_of(loop)
    axes = [(x.axis, x.extent) for x in chain]
    size = product(n for _, n in axes)
    if not all(isinstance(n, int) for _, n in axes[1:]) or any(x.kind == "parallel" for x in chain):
        raise Refused(f"{axis} or a loop inside of it is parallel, or a loop inside of it has no constant extent")
    if E.as_expr(size).hi > MOST_STAGED:
        raise Refused(f"{axis} has {size} iterations; allowed: up to {MOST_STAGED}")
    inner = chain[-1].body
    if not all(isinstance(s, Store | Accumulate) for s in inner):
        raise Refused("the body of the innermost loop is not stores and accumulations")
    draws_of: dict[tuple[ir.Value, ...], list[ir.Op]] = {}
    for v in ir.walk([v for s in inner for v in values_of(s)]):
        if isinstance(v, ir.Op) and v.name == "philox" and _may_move(v, chain) and first_in_order(v, axes) is not None:
            draws_of.setdefault((*v.args[:4], v.args[5]), []).append(v)
    if not draws_of:
        raise Refused(f"{axis} draws no random words in the order of its elements")
    position = ir.linear_position([n for _, n in axes], [s for s, _ in axes])
    locals_: list[Local] = []
    fills: list[Statement] = []
    staged: dict[ir.Value, ir.Value] = {}
    for k, words in enumerate(draws_of.values()):
        chunk = chunk_of(words[0])
        first = first_in_order(words[0], axes)
        assert first is not None
        skipped = E.mod(first, chunk)  # elements of the first chunk before the loop's
        count = plain(E.mul(E.ceildiv(skipped + size, chunk), chunk))
        room = int(E.as_expr(count).hi)
        count = count if isinstance(size, E.Expr) else room
        at = ir.counter(f"{axis}_draw{k}", count)
        stores: list[Statement] = []
        for v in words:
            local = Local(f"{axis}_drawn{len(locals_)}", room, v.dtype, "stack")
            value = ir.make_op("philox", (*v.args[:3], ir.index(E.mul(E.floordiv(first, chunk), chunk) + at), *v.args[4:]), v.dtype)
            stores.append(Store(Place(local.name, at), value))
            staged[v] = ir.load(local.name, skipped + position, v.dtype)
            locals_.append(local)
        fills += repeat(at, count, "vector", tuple(stores))
    if not loops_of(body).keys().isdisjoint(loops_of(tuple(fills))):
        raise Refused(f"{axis} reads staged words already")
    new: Block = tuple([with_values(s, lambda v: replace_values(v, staged)) for s in inner])
    for x in reversed(chain):
        new = (with_body(x, new),)
    return replace_statement(body, loop, allocated(locals_, (*fills, *new)))


def _may_move(v: ir.Op, chain: list[Loop]) -> bool:
    """Whether the generator's state is the same in all iterations of the loops."""
    axes, written = {x.axis for x in chain}, {p.name for s in chain[-1].body for p in places_of(s)}
    state = v.args[:3]
    return all(axes.isdisjoint(a.symbols) and written.isdisjoint(x.buffer for x in a.loads) for a in state)


def chunk_of(v: ir.Op) -> int:
    """The elements of a chunk of a draw."""
    words = v.args[5]
    assert isinstance(words, ir.Const)
    return CHUNK // int(words.value)


def first_in_order(v: ir.Op, axes: Sequence[tuple[E.Sym, Size]]) -> E.Expr | None:
    """The first element of a draw that loops over `axes` take in order; None if they take elements in another order."""
    at, symbols = v.args[3], [s for s, _ in axes]
    steps = E.strides_of(at.expr, symbols) if isinstance(at, ir.Index) else None
    expected = E.strides_of(ir.linear_position([n for _, n in axes], symbols), symbols)
    assert expected is not None
    return steps[1] if steps is not None and steps[0] == expected[0] else None
