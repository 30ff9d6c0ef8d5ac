"""Contractions in blocks: programs over blocks of rows and columns, each of which adds up blocks of the depth.

A block of the result and blocks of the operands are tiles, which a matrix unit multiplies. The last blocks of rows and columns have
fewer elements; beyond the end of the depth both operands are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, ceildiv, plain, product
from inductor.ir.values import at_point
from inductor.loops.contractions import contraction
from inductor.loops.refusal import Refused
from inductor.loops.tree import Axes, Block, Contract, Loop, Role, chain_of, repeat, replace_statement, substitute


class _Blocked(NamedTuple):
    """One role's axes as one axis in blocks. outer: the counter of blocks; role: the axis in a block; at: the old axes."""

    outer: E.Expr
    blocks: Size
    role: Role
    at: dict[E.Expr, E.IntLike]


def in_blocks(body: Block, name: str, rows: int, columns: int, depth: int) -> Block:
    """The contraction that computes `name` in blocks of `rows` x `columns`, over `depth` at a time. Raises: Refused."""
    s = contraction(body, name)
    if s not in body:
        raise Refused(f"other loops run around the product {name}")
    if not s.axes.depth:
        raise Refused(f"{name} adds up one product for each element")
    sizes = (rows, columns, depth)
    if any(n < 1 or n & (n - 1) for n in sizes):
        raise Refused(f"the blocks have {rows} x {columns} x {depth} elements; allowed: powers of two")
    row, column = _blocked(f"{name}_m", s.axes.rows, rows), _blocked(f"{name}_n", s.axes.columns, columns)
    groups = product(n for _, n in s.axes.batch)
    group = ir.counter(f"{name}_z", groups)
    (inside,) = substitute((s,), {**row.at, **column.at, **_split(group, s.axes.batch)})
    assert isinstance(inside, Contract)
    inside = _deep(replace(inside, axes=Axes((), row.role, column.role, s.axes.depth)), name, depth)
    block: Block = (inside,)
    for outer, count in ((column.outer, column.blocks), (row.outer, row.blocks), (group, groups)):
        block = repeat(outer, count, "grid", block)
    return replace_statement(body, s, block)


def persistent(body: Block, name: str, programs: int) -> Block:
    """The blocks of the contraction `name` by at most `programs` programs, each of which computes several in turn. Raises: Refused."""
    s = contraction(body, name)
    chain = _programs_around(body, s)
    if not chain:
        raise Refused(f"no loops over programs run around the product {name} alone")
    extents = [x.extent for x in chain]
    blocks = product(extents)
    if programs < 1 or (isinstance(blocks, int) and blocks <= programs):
        raise Refused(f"{name} has {blocks} blocks for {programs} programs; allowed: 1 program and more, but fewer than blocks")
    if isinstance(blocks, int):
        programs = -(-blocks // -(-blocks // programs))  # as many turns, of which fewer are empty
    program = ir.counter(f"{name}_p", programs)
    whole = E.mod(E.as_expr(blocks), E.as_expr(programs)) is E.as_expr(0)
    count = ceildiv(blocks, programs) if whole else ceildiv(plain(blocks - program), programs)
    turn = ir.counter(f"{name}_t", count)
    at: dict[E.Expr, E.IntLike] = dict(zip([x.axis for x in chain], ir.split_position(turn * programs + program, extents), strict=True))
    inside = repeat(turn, count, "turns", substitute((s,), at))
    return replace_statement(body, chain[0], repeat(program, programs, "grid", inside))


def _programs_around(body: Block, s: Contract) -> list[Loop]:
    """The loops over programs from the root down to a contraction, which is all that they hold; else none."""
    chains = [chain_of(x) for x in body if isinstance(x, Loop)]
    return next((c for c in chains if c[-1].body == (s,) and all(x.kind == "grid" for x in c)), [])


def _split(at: E.Expr, role: Role) -> dict[E.Expr, E.IntLike]:
    """The axes of a role at a position of all of them."""
    return dict(zip([a for a, _ in role], ir.split_position(at, [n for _, n in role]), strict=True))


def _blocked(name: str, role: Role, block: int) -> _Blocked:
    total = product(n for _, n in role)
    count = ceildiv(total, block)
    outer = ir.counter(f"{name}_o", count)
    whole = E.mod(E.as_expr(total), E.as_expr(block)) is E.as_expr(0)
    here = block if whole else plain(E.minimum(block, total - outer * block))
    inner = ir.counter(f"{name}_i", here)
    return _Blocked(outer, count, ((inner, here),) if isinstance(inner, E.Sym) else (), _split(outer * block + inner, role))


def _deep(s: Contract, name: str, block: int) -> Contract:
    """The contraction with its depth in blocks; `block` is the extent of the last axis of the depth."""
    total = product(n for _, n in s.axes.depth)
    count = ceildiv(total, block)
    outer, inner = ir.counter(f"{name}_k_o", count), ir.counter(f"{name}_k_i", block)
    if not isinstance(inner, E.Sym):
        raise Refused("the blocks of the depth have one element")
    at = outer * block + inner
    whole = E.mod(E.as_expr(total), E.as_expr(block)) is E.as_expr(0)
    inside = None if whole else ir.make_op("lt", (ir.index(at), ir.index(total)), dtypes.bool_)
    point = _split(at, s.axes.depth)
    a, b = (_within(at_point(v, point, inside), inside) for v in (s.a, s.b))
    depth: Sequence[tuple[E.Sym, Size]] = [(x, n) for x, n in ((outer, count), (inner, block)) if isinstance(x, E.Sym)]
    return replace(s, axes=s.axes._replace(depth=tuple(depth)), a=a, b=b)


def _within(v: ir.Value, inside: ir.Value | None) -> ir.Value:
    return v if inside is None else ir.make_op("where", (inside, v, ir.const(0, v.dtype)), v.dtype)
