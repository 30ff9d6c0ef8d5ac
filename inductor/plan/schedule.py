"""From a program to kernels in order: which definitions share a loop nest, and the order of steps.

Owns grouping and order. A `Nest` runs its members one after another for each *row*: the axes that all of them have in common. A
member that reads an earlier member's result must read it in the same row. Schedules are independent of the target language.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from eager.base import logs
from eager.optable.registry import Kind
from eager.optable.table import OPS
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.inline import Refusal, inline
from inductor.ir.sizes import Size, nominal, product
from inductor.plan.fixed import fixed_buffers
from inductor.plan.updates import prepare_updates

SCHEDULE: Final = logs.artifact("schedule")
FUSION: Final = logs.artifact("fusion")
SERIAL_LIMIT: Final = 4096  # most iterations of one row, which runs on one thread, that fusion may create
CANDIDATES: Final = 8  # number of recent nests that a definition is tried against


@dataclass(slots=True)
class Nest:
    """Loops over common rows. rows: sizes of the shared leading axes. members: in order.

    column: its only member reduces an outer dim while its innermost axis is contiguous, so the loops are
    interchanged: accumulators for a block of columns, then all reduced elements.
    """

    rows: tuple[Size, ...]
    members: list[ir.Buffer]
    column: bool = False

    @property
    def produced(self) -> set[str]:
        return {m.name for m in self.members}


@dataclass(frozen=True, slots=True)
class Single:
    """A definition that is a separate step: a scan, a scatter, a contraction, a recurrence, attention, an extern call.

    others: further results of the same computation.
    """

    member: ir.Buffer
    others: tuple[ir.Buffer, ...] = ()

    @property
    def members(self) -> list[ir.Buffer]:
        return [self.member, *self.others]


Step = Nest | Single


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order, the program they compute (after inlining), and the refused fusions.

    fixed: the buffers that depend on weights alone, by name, and these weights. A nest computes only such buffers, or none.
    """

    program: ir.Program
    steps: tuple[Step, ...]
    refusals: tuple[Refusal, ...] = field(default=())
    fixed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = []
        for i, s in enumerate(self.steps):
            if isinstance(s, Nest):
                kind = "columns" if s.column else "rows"
                lines.append(f"{i}: {kind} {list(s.rows)}")
                lines += [f"     {ir.print_definition(m)}" for m in s.members]
            else:
                lines += [f"{i}: {ir.print_definition(m)}" for m in s.members]
        return "\n".join(lines)


def schedule(program: ir.Program, weights: Collection[str] = ()) -> Schedule:
    """Order and group the definitions of `program`. Time is nearly linear in their number.

    weights: the inputs and constants whose values seldom change between calls.
    """
    program, refusals = inline(program, fixed_buffers(program, weights))
    program = _drop_unread(prepare_updates(program))
    fixed = fixed_buffers(program, weights)
    steps: list[Step] = []
    home: dict[str, int] = {}  # buffer -> position of the step that makes it
    readers: dict[str, int] = {}  # input or buffer -> the last nest that reads it
    for b in program.buffers.values():
        if b.definition is None:
            continue
        at = _place(b, steps, home, readers, refusals, fixed)
        home[b.name] = at
        if b.name in program.early_checks:  # nothing may join it: the kernels after it may write to inputs
            continue
        for n in b.reads:
            readers[n] = at
    made = Schedule(program, tuple(steps), tuple(refusals), fixed)
    if SCHEDULE.enabled:
        SCHEDULE.log(str(made))
    if FUSION.enabled:
        for r in refusals:
            FUSION.log(str(r))
    return made


def _drop_unread(program: ir.Program) -> ir.Program:
    """The program without definitions that are not needed. Calls with an effect are always needed."""
    needed = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    needed |= {w.input for w in program.writes} | set(program.early_checks) | set(program.inputs) | {n for n, _ in program.constants}
    calls = set()
    for b in reversed(list(program.buffers.values())):
        d = b.definition
        if isinstance(d, ir.Extern) and (b.name in needed or OPS[d.op].kind is Kind.EFFECT):
            calls.add(d.call)
        if isinstance(d, ir.Recurrence) and not needed.isdisjoint(d.results):
            needed.update(d.results)
        if b.name in needed or (isinstance(d, ir.Extern) and d.call in calls):
            needed.add(b.name)
            needed.update(b.reads)
    return replace(program, buffers={n: b for n, b in program.buffers.items() if n in needed or b.definition is None})


def _place(b: ir.Buffer, steps: list[Step], home: dict[str, int], readers: dict[str, int], refusals: list[Refusal],
           fixed: Collection[str]) -> int:  # fmt: skip
    """Put `b` into an existing step, or into a new step if no nest accepts it; returns the step's position."""
    d = b.definition
    assert d is not None
    if not isinstance(d, ir.Pointwise | ir.Reduction):
        last = steps[-1] if steps else None
        if isinstance(d, ir.Attention) and isinstance(last, Single) and _is_of_call(last.member, d.call):
            steps[-1] = Single(last.member, (*last.others, b))
            return len(steps) - 1
        steps.append(Single(b))
        return len(steps) - 1
    column = isinstance(d, ir.Reduction) and _is_column(d)
    sources = [home[n] for n in b.reads if n in home]
    earliest = max(sources, default=-1)
    related = sorted({*sources, *(readers[n] for n in b.reads if n in readers)}, reverse=True)[:CANDIDATES]
    for at in related:
        nest = steps[at]
        if at < earliest or not isinstance(nest, Nest) or (nest.members[0].name in fixed) != (b.name in fixed):
            continue
        joined = fuse(nest, b, column)
        if isinstance(joined, Refusal):
            refusals.append(joined)
            continue
        steps[at] = joined
        return at
    steps.append(Nest(_rows(d), [b], column))
    return len(steps) - 1


def _is_of_call(b: ir.Buffer, call: str) -> bool:
    return isinstance(b.definition, ir.Attention) and b.definition.call == call


def _rows(d: ir.Pointwise | ir.Reduction) -> tuple[Size, ...]:
    return d.ranges


def _is_column(d: ir.Reduction) -> bool:
    """Whether the innermost kept axis is contiguous in the inputs and the innermost reduced one is not."""
    if not d.ranges or d.ranges[-1] == 1 or product(d.reduced) == 1:
        return False
    kept = ir.axis(len(d.ranges) - 1, d.ranges[-1])
    inner = next((ir.reduced_axis(k, n) for k, n in reversed(list(enumerate(d.reduced))) if n != 1), None)
    votes = 0
    for v in d.loads:
        if not v.indirect:
            steps = E.strides_of(v.index, [kept, *([inner] if inner is not None else [])])
            if steps is None:
                continue
            by = {s: nominal(e) for s, e in steps[0].items()}
            if inner is not None and by.get(inner) == 1:
                votes -= 1
            elif by.get(kept) == 1 and inner is not None and by.get(inner, 0) != 0:
                votes += 1
    return votes > 0


def fuse(nest: Nest, b: ir.Buffer, column: bool) -> Nest | Refusal:
    """`nest` with `b` as its last member, over as many common rows as both allow, or the reason why they cannot join."""
    d = b.definition
    assert isinstance(d, ir.Pointwise | ir.Reduction)
    label = "+".join(m.name for m in nest.members[-3:])
    if column or nest.column:
        return Refusal(label, b.name, "a column reduction runs alone")
    common = _common_prefix(nest.rows, d.ranges)
    produced = {m.name: m for m in nest.members}
    for load in d.loads:
        if load.buffer in produced:
            common = min(common, _same_row(load, produced[load.buffer], nest.rows))
    rows = nest.rows[:common]
    depends = any(n in produced for n in b.reads)
    if not depends and rows != nest.rows:
        return Refusal(label, b.name, f"rows {list(nest.rows)} and {list(d.ranges)} differ, and neither reads the other")
    if not depends and isinstance(d, ir.Pointwise) != all(isinstance(m.definition, ir.Pointwise) for m in nest.members):
        return Refusal(label, b.name, "it shares only inputs with the nest, and its loops have another shape")
    work = max([d.iterations, *(m.definition.iterations for m in nest.members if m.definition is not None)])
    count = nominal(product(rows))
    per_row = work // max(count, 1)
    if per_row > SERIAL_LIMIT and count < 64:
        return Refusal(label, b.name, f"only {count} common rows of {per_row} iterations")
    return Nest(rows, [*nest.members, b])


def _common_prefix(a: Sequence[Size], b: Sequence[Size]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def _same_row(load: ir.Load, producer: ir.Buffer, rows: Sequence[Size]) -> int:
    """The number of leading axes of `producer` that the load reads at the reader's own coordinates."""
    if load.indirect and any(s in load.index.symbols for s, _ in load.indirect):
        return 0
    assert isinstance(producer.definition, ir.Pointwise | ir.Reduction)
    point = ir.split_position(load.index, producer.definition.ranges)
    n = 0
    while n < len(rows) and (rows[n] == 1 or point[n] is ir.axis(n, rows[n])):
        n += 1
    return n
