"""Nests that a GPU runs otherwise than a CPU: joined sums, and the results of products apart from the rows that are reduced.

A program of a GPU has a product's block in registers when its sum is complete, and a conversion or an addition there costs nothing.
In a loop over rows it reads the product from memory again, in its wide type.

A kernel of a CPU reduces columns in blocks, and nothing else. A program of a GPU also computes from the sums where they are complete:
the gradients of the weight and of the bias of a norm are converted there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.plan.schedule import Nest, Schedule, Step, same_row

NEAR: Final = 16  # following steps that a nest is tried against


def join_sums(made: Schedule) -> Schedule:
    """The schedule with nests of sums joined. A nest moves up to the sums that it joins, if all that it reads exists by then."""
    steps: list[Step | None] = list(made.steps)
    made_at = {m.name: i for i, step in enumerate(made.steps) for m in step.members}
    apart = {w.value.buffer for w in made.program.writes} | set(made.program.early_checks)
    for i, first in enumerate(made.steps):
        nest = steps[i]
        if not isinstance(nest, Nest) or nest is not first or not _is_sums(nest) or apart & nest.produced:
            continue
        joined = nest
        for j in range(i + 1, min(i + 1 + NEAR, len(steps))):
            other = steps[j]
            if not isinstance(other, Nest) or apart & other.produced or not _joins(joined, other):
                continue
            outside = {n for m in other.members for n in m.reads} - joined.produced - other.produced
            if all(made_at.get(n, -1) < i for n in outside):
                joined = Nest(joined.rows, [*joined.members, *other.members])
                made_at.update({m.name: i for m in other.members})
                steps[j] = None
        steps[i] = joined
    return replace(made, steps=tuple(s for s in steps if s is not None))


def separate_results(made: Schedule) -> Schedule:
    """The schedule with pointwise members that read a product, and that run with reductions, as nests before the reductions."""
    products = {m.name for step in made.steps for m in step.members if isinstance(m.definition, ir.Contraction)}
    readers = Counter(n for step in made.steps for m in step.members for n in m.reads)
    leaving = {r.buffer for r in made.program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in made.program.writes}
    single = {n for n in products if readers[n] == 1 and n not in leaving}
    steps: list[Step] = []
    for step in made.steps:
        alone = _results_of(step, single) if isinstance(step, Nest) else {}
        steps += [Nest(ranges, [m for m in step.members if m.name == name]) for name, ranges in alone.items()]
        if isinstance(step, Nest) and alone:
            step = Nest(step.rows, [m for m in step.members if m.name not in alone], step.column)
        steps.append(step)
    return replace(made, steps=tuple(steps))


def _results_of(nest: Nest, products: Collection[str]) -> dict[str, tuple[Size, ...]]:
    """The pointwise members of a nest with reductions that read a product, and no other member; with their ranges."""
    if not any(isinstance(m.definition, ir.Reduction) for m in nest.members):
        return {}
    return {m.name: m.definition.ranges for m in nest.members if isinstance(m.definition, ir.Pointwise)
            and m.definition.ranges != nest.rows and any(n in products for n in m.reads) and nest.produced.isdisjoint(m.reads)}  # fmt: skip


def _is_sums(nest: Nest) -> bool:
    """Whether a nest has reductions over the same elements of each row, and other members for the row alone."""
    found = {m.definition.reduced for m in nest.members if isinstance(m.definition, ir.Reduction)}
    return bool(nest.rows) and len(found) == 1 and _is_of_rows(nest) and not _depends(nest)


def _is_of_rows(nest: Nest) -> bool:
    of_rows = all(isinstance(m.definition, ir.Pointwise | ir.Reduction) and m.definition.ranges == nest.rows for m in nest.members)
    return of_rows and all(same_row(load, m, nest.rows) == len(nest.rows) for m, load in _passed(nest.members))


def _depends(nest: Nest) -> bool:
    """Whether a reduction needs a result of the nest."""
    return any(isinstance(m.definition, ir.Reduction) and not nest.produced.isdisjoint(m.reads) for m in nest.members)


def _passed(members: list[ir.Buffer]) -> list[tuple[ir.Buffer, ir.Load]]:
    """The loads of members' results by other members, each with the member that it reads."""
    produced = {m.name: m for m in members}
    loads = [load for m in members if m.definition is not None for load in m.definition.loads]
    return [(produced[load.buffer], load) for load in loads if load.buffer in produced]


def _joins(nest: Nest, other: Nest) -> bool:
    """Whether the sums of `nest` share an operand with the sums of `other`, or `other` is computed from their results."""
    both = Nest(nest.rows, [*nest.members, *other.members])
    if other.rows != nest.rows or not _is_of_rows(both):
        return False
    sums = [m for m in other.members if isinstance(m.definition, ir.Reduction)]
    if not sums:
        return any(not nest.produced.isdisjoint(m.reads) for m in other.members)
    operands = {n for m in nest.members if isinstance(m.definition, ir.Reduction) for n in m.reads}
    return _is_sums(both) and any(not operands.isdisjoint(m.reads) for m in sums)


__all__ = ["join_sums", "separate_results"]
