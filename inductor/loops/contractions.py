"""Steps on contractions: loops that run on its finished blocks, memory that it shares, and its form as plain loops.

A loop nest that reads each element of a product once can run where the element is complete (`follow`). If its result has the place
of the product's element, both may be in one memory (`share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, is_symbolic, plain, product
from inductor.loops.build import expanded
from inductor.loops.dependence import accesses, carried, conflicts
from inductor.loops.refusal import Refused
from inductor.loops.tree import (
    HOLDERS,
    Block,
    Contract,
    Kernel,
    Loop,
    Store,
    places_of,
    rename_memory,
    replace_statement,
    substitute,
    values_of,
    walk,
    with_body,
)


def contraction(body: Block, name: str) -> Contract:
    """The contraction `name`. Raises: Refused if no contraction has this name."""
    found = next((s for s in walk(body) if isinstance(s, Contract) and s.name == name), None)
    if found is None:
        raise Refused(f"no contraction is named {name}")
    return found


def expand(body: Block, name: str) -> Block:
    """The contraction as plain loops."""
    s = contraction(body, name)
    return replace_statement(body, s, expanded(s))


def follow(body: Block, name: str, axis: str) -> Block:
    """The nest of pointwise loops `axis` moved into the body of the contraction `name`, which comes before it in its block."""
    s = contraction(body, name)
    holder = next((x for x in walk(body) if isinstance(x, HOLDERS) and any(y is s for y in x.body)), None)
    block = body if holder is None else holder.body
    at = next(k for k, x in enumerate(block) if x is s)
    to = next((k for k, x in enumerate(block) if isinstance(x, Loop) and x.axis.name == axis and k > at), None)
    if to is None:
        raise Refused(f"the loop {axis} does not come after the product in its block")
    nest = block[to]
    assert isinstance(nest, Loop)
    if conflicts(accesses(block[at + 1 : to]), accesses((nest,))):
        raise Refused(f"a statement before the loop {axis} must run before it, and after the product")
    loops, inner = _chain(nest)
    order, start = _order(s, loops, inner)
    cut = _with_runs(s, loops, inner, order, start)
    point = ir.split_position(cut.place.index - start, [x.extent for x in order])
    moved = substitute(inner, {x.axis: at for x, at in zip(order, point, strict=True)})
    _check(cut, nest, moved)
    new = (*block[:at], replace(cut, body=(*s.body, *moved)), *block[at + 1 : to], *block[to + 1 :])
    return new if holder is None else replace_statement(body, holder, (with_body(holder, new),))


def share(kernel: Kernel, name: str, result: str) -> Kernel:
    """The product `name` computed in the memory of `result`, which the body of the contraction stores."""
    s = contraction(kernel.body, name)
    name = s.place.name
    inside = accesses(s.body)
    stores = [k for k, x in enumerate(s.body) if isinstance(x, Store) and x.place.name == result]
    if name not in kernel.temporary or len(accesses(kernel.body)) != len(accesses((s,))):
        raise Refused(f"{name} is read after its blocks are complete")
    if kernel.dtypes.get(result) is not kernel.dtypes[name] or len(stores) != 1:
        raise Refused(f"{result} is not one store of elements of the dtype of {name}")
    (k,) = stores
    store = s.body[k]
    assert isinstance(store, Store)
    if store.place.index is not s.place.index or store.place.indirect:
        raise Refused(f"{result} has its elements at other positions than {name}")
    later = [a for a in accesses(s.body[k + 1 :]) if a.place.name == name]
    if later or any(a.place.name == result and not a.writes for a in (*inside, *accesses((replace(s, body=()),)))):
        raise Refused(f"an element of {name} or {result} is read after {result} is stored")
    body = rename_memory(kernel.body, {name: (result, E.as_expr(0))})
    dtypes = {n: t for n, t in kernel.dtypes.items() if n != name}
    return Kernel(body, dtypes, kernel.temporary - {name})


def _chain(nest: Loop) -> tuple[list[Loop], Block]:
    """The loops that are each the whole body of the one before, and the body of the last."""
    loops = [nest]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    inner = loops[-1].body
    if any(isinstance(x, Loop | Contract) for x in walk(inner)):
        raise Refused("only pointwise loops can follow a product block by block")
    return loops, inner


def _order(s: Contract, loops: Sequence[Loop], inner: Block) -> tuple[list[Loop], E.Expr]:
    """The loops in the order of the product's memory, whose elements they count through, and the position of its first element."""
    name = s.place.name
    loads = {v for x in walk(inner) for r in values_of(x) for v in r.loads if v.buffer == name}
    if len({v.index for v in loads}) != 1 or any(v.mask is not None or v.indirect for v in loads):
        raise Refused("it reads the product at several places, or at computed ones")
    steps = E.strides_of(next(iter(loads)).index, [x.axis for x in loops])
    own = E.strides_of(s.place.index, [a for a, _ in s.axes.result])
    by_step: dict[Size, Loop] = {}
    if steps is not None and own is not None and steps[1] is own[1]:
        by_step = {plain(steps[0][x.axis]): x for x in loops}
    found: list[Loop] = []
    step: Size = 1
    while step in by_step:
        found.append(by_step.pop(step))
        step = plain(step * found[-1].extent)
    if by_step or len(found) != len(loops) or step != product(n for _, n in s.axes.result):
        raise Refused("it does not read each element of the product once")
    assert own is not None
    return found[::-1], own[1]


def _with_runs(s: Contract, loops: Sequence[Loop], inner: Block, order: Sequence[Loop], start: E.Expr) -> Contract:
    """The contraction with its columns in runs, inside which all positions of the nest are linear."""
    if not s.axes.columns:
        return s
    axis, n = s.axes.columns[-1]
    for cut in dict.fromkeys((n, order[-1].extent)):
        if cut == n:
            cut_s = s
        elif is_symbolic(n, cut) or n % cut != 0:
            continue
        else:
            cut_s = _in_runs(s, axis, n, cut)
        column = cut_s.axes.columns[-1][0]
        point = ir.split_position(cut_s.place.index - start, [x.extent for x in order])
        if not _divides(substitute(inner, {x.axis: at for x, at in zip(order, point, strict=True)}), column):
            return cut_s
    raise Refused("its order of elements divides the columns of the product into parts")


def _in_runs(s: Contract, axis: E.Sym, n: Size, cut: Size) -> Contract:
    run, column = ir.counter(f"{axis.name}_o", plain(E.floordiv(n, cut))), ir.counter(f"{axis.name}_i", cut)
    pairs = [(x, m) for x, m in ((run, plain(E.floordiv(n, cut))), (column, cut)) if isinstance(x, E.Sym)]
    (new,) = substitute((s,), {axis: run * cut + column})
    assert isinstance(new, Contract)
    return replace(new, axes=s.axes._replace(columns=(*s.axes.columns[:-1], *pairs)))


def _divides(block: Block, column: E.Sym) -> bool:
    """Whether a division or remainder depends on the column."""
    pending = [e for s in walk(block) for e in ir.expressions_in(values_of(s))]
    pending += [p.index for s in walk(block) for p in places_of(s)]
    while pending:
        e = pending.pop()
        if isinstance(e, E.FloorDiv | E.Mod) and column in e.symbols:
            return True
        pending.extend(e.children)
    return False


def _check(s: Contract, nest: Loop, moved: Block) -> None:
    """Refuse loops whose elements depend on each other, or on more of the product than their element."""
    for x in walk((nest,)):
        if isinstance(x, Loop):
            for a, b in carried(x):
                raise Refused(f"its iterations depend on each other through {a.place} and {b.place}")
    own = accesses((replace(s, body=()),))
    for a, b in conflicts(own, accesses(moved)):
        is_own = a.place.name == b.place.name == s.place.name and not b.place.indirect and b.place.index is s.place.index
        if not is_own:
            raise Refused(f"it uses other elements of {b.place.name} than the product")
    for _, b in conflicts(accesses(s.body), accesses(moved)):
        raise Refused(f"the loops that follow the product already depend on {b.place.name}")
