"""Products of few rows and columns with a long depth: parts of the depth by separate programs, then the sum of their results.

A gradient of weights adds up a product for each of many thousand tokens or pixels. In blocks it has too few programs for a target
with many multiprocessors. The parts are a batch axis of the product. The sum of a few parts is a value of the loops after it, and of many
parts a reduction.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fxir.expr import rules as E
from inductor.base.target import Target
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, nominal, product
from inductor.ir.values import at_point
from inductor.loops.tiles import LEAST_PRODUCT

BLOCK: Final = 128  # rows and columns of a block of 16-bit numbers, which a program computes
WIDER_BLOCK: Final = 64  # the same, of float32
THIN: Final = 32  # columns of a block of fewer rows
LEAST_DEPTH: Final = 512  # of a part: below, the second pass costs more than it saves
MOST_PARTS: Final = 64
FEW_PARTS: Final = 8  # that are terms of one expression


def split_products(program: ir.Program, target: Target) -> ir.Program:
    """The program with deep products of few blocks in parts."""
    buffers: dict[str, ir.Buffer] = {}
    for name, b in program.buffers.items():
        if isinstance(b.definition, ir.Contraction):
            counts = _parts(b.definition, target)
            if product(counts) != 1:
                parts, b = _split(b, b.definition, counts)
                buffers[parts.name] = parts
        buffers[name] = b
    return replace(program, buffers=buffers)


def _parts(d: ir.Contraction, target: Target) -> tuple[int, ...]:
    """The number of parts along each axis of the depth."""
    ones = (1,) * len(d.reduced)
    of = {role: [nominal(n) for n, r in zip(d.ranges, d.roles, strict=True) if r == role] for role in ("batch", "row", "column")}
    rows, columns, depth = product(of["row"]), product(of["column"]), nominal(product(d.reduced))
    assert isinstance(rows, int) and isinstance(columns, int)
    if min(rows, columns) < LEAST_PRODUCT or d.a.dtype.itemsize > 4:
        return ones
    loads = [x for v in (d.a, d.b) for x in ir.loads_in(v)]
    most = BLOCK if all(x.dtype.itemsize <= 2 for x in loads if x.dtype.is_floating_point) else WIDER_BLOCK
    if min(rows, columns) <= THIN:
        most = THIN
    programs = nominal(product(of["batch"])) * -(-rows // most) * -(-columns // most)
    wanted = min(target.cores // programs, depth // LEAST_DEPTH, MOST_PARTS)
    counts: list[int] = []
    for n in d.reduced:
        count = next((k for k in range(min(wanted, n), 1, -1) if n % k == 0), 1) if isinstance(n, int) and wanted > 1 else 1
        counts.append(count)
        wanted //= count
    return tuple(counts)


def _split(b: ir.Buffer, d: ir.Contraction, counts: Sequence[int]) -> tuple[ir.Buffer, ir.Buffer]:
    """The buffer of the parts, and `b` as their sum."""
    cut = [k for k, count in enumerate(counts) if count > 1]
    ranges: tuple[Size, ...] = (*(counts[k] for k in cut), *d.ranges)
    sizes = tuple(n if counts[k] == 1 else _quotient(n, counts[k]) for k, n in enumerate(d.reduced))
    mapping: dict[E.Expr, E.IntLike] = {ir.axis(k, n): ir.axis(k + len(cut), n) for k, n in enumerate(d.ranges) if n != 1}
    for k, n in enumerate(d.reduced):
        if n != 1:
            inner = ir.reduced_axis(k, sizes[k])
            mapping[ir.reduced_axis(k, n)] = E.add(E.mul(ir.axis(cut.index(k), counts[k]), sizes[k]), inner) if k in cut else inner
    lead: list[ir.Role] = ["batch" for _ in cut]
    of = d.a.dtype
    made = ir.Contraction(ranges, sizes, (*lead, *d.roles), at_point(d.a, mapping), at_point(d.b, mapping))
    name = f"{b.name}_parts"
    parts = replace(b, name=name, layout=ir.row_major(ranges, of), definition=made)
    few = [counts[k] for k in cut]
    point = [ir.axis(k, n) for k, n in enumerate(d.ranges)]

    def part(at: Sequence[E.IntLike]) -> ir.Value:
        return ir.load(name, ir.linear_position(ranges, (*at, *point)), of)

    if math.prod(few) <= FEW_PARTS:
        terms = [part(at) for at in itertools.product(*map(range, few))]
        total = functools.reduce(lambda a, b: ir.make_op("add", (a, b), of), terms)
        return parts, replace(b, definition=ir.Pointwise(d.ranges, total))
    read = part([ir.reduced_axis(j, n) for j, n in enumerate(few)])
    return parts, replace(b, definition=ir.Reduction(d.ranges, tuple(few), "sum", read))


def _quotient(n: Size, count: int) -> int:
    assert isinstance(n, int)
    return n // count
