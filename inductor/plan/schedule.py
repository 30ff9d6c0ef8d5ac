"""From a program to kernels in order: which definitions move into others, which share a loop nest, and which results need memory.

First, pointwise producers move into the loops of their readers, and no buffer is made (`inline`): if computing one again costs no more
than storing and loading it. Then definitions are grouped and ordered. A `Nest` runs its members one after another for each *row*: the
axes that all of them have in common. A member that reads an earlier member's result must read it in the same row.

A *bundle* is one run of inner loops for one or more members of a nest. Inside it a pointwise member's value is passed to later members
in a register; a reduction's result exists only after its bundle. So bundles decide which results need memory (`in_memory`,
`row_local`). Schedules are independent of the target language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from eager.base import logs
from eager.base.records import dataclass
from eager.optable.registry import Kind
from eager.optable.table import OPS
from fxir.expr import rules as E
from fxir.expr.nodes import strides_of
from inductor.ir import definitions as ir
from inductor.ir.definitions import producer_at, with_value
from inductor.ir.sizes import Size, nominal, product
from inductor.ir.values import EXPENSIVE, at_point, replace_loads
from inductor.loops.apply import ROW_BYTES
from inductor.plan.effects import effects_first
from inductor.plan.fixed import fixed_buffers
from inductor.plan.updates import prepare_updates

SCHEDULE: Final = logs.artifact("schedule")
FUSION: Final = logs.artifact("fusion")
SERIAL_LIMIT: Final = 4096  # most iterations of one row, which runs on one thread, that fusion may create
CANDIDATES: Final = 8  # number of recent nests that a definition is tried against
MOST_COLUMNS: Final = 4  # column reductions in one pass over their inputs: the running results stay in the nearest cache
CHEAP_OPERATIONS: Final = 6
PADDED: Final = 1.25  # most elements that a reader, such as a pad, may have for each element of a value that is not cheap
REPEATS: Final = 16  # most times that a cheap value may be computed instead of loaded
LIMIT: Final = 400  # most operations in one value: beyond it a kernel grows without getting faster


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why two loops were not joined, with the numbers that it depends on."""

    first: str
    second: str
    reason: str

    def __str__(self) -> str:
        return f"not fused: {self.first} into {self.second}: {self.reason}"


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
    program = _drop_unread(program)  # first: an unread reader must not keep a producer in memory
    program, refusals = inline(program, fixed_buffers(program, weights) if weights else ())
    if program.writes or ir.Scatter in program.kinds:
        program = _drop_unread(prepare_updates(program))
    fixed = fixed_buffers(program, weights) if weights else {}
    steps: list[Step] = []
    home: dict[str, int] = {}  # buffer -> position of the step that makes it
    readers: dict[str, int] = {}  # input or buffer -> the last nest that reads it
    for b in effects_first(program) if ir.Extern in program.kinds else program.buffers.values():
        if b.definition is None:
            continue
        at = _place(b, steps, home, readers, refusals, fixed, program.early_checks)
        home[b.name] = at
        if b.name in program.early_checks:  # nothing may join it: the kernels after it may write to inputs
            continue
        for n in b.reads:
            readers[n] = at
    made = Schedule(program, tuple([s for s in steps if s.members]), tuple(refusals), fixed)
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
           fixed: Collection[str], early: Collection[str]) -> int:  # fmt: skip
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
        if isinstance(joined, Refusal) and (flat := _over_ranges_of(nest, b)) is not None:
            joined = fuse(nest, flat, column)
        if isinstance(joined, Refusal):
            refusals.append(joined)
            continue
        steps[at] = joined
        if b.name not in early:
            _take_in(steps, at, [k for k in related if k < at], home, readers, fixed)
        return at
    steps.append(Nest(_rows(d), [b], column))
    if column and b.name not in early:
        _take_in(steps, len(steps) - 1, related, home, readers, fixed)
    return len(steps) - 1


def _take_in(steps: list[Step], at: int, earlier: Sequence[int], home: dict[str, int], readers: dict[str, int],
             fixed: Collection[str]) -> None:  # fmt: skip
    """Move the members of earlier nests that reduce the same rows and read the same inputs to the beginning of nest `at`.

    That nest began with a member that shares nothing with them, or that needs a result of a step between.
    """
    for k in earlier:
        nest, before = steps[at], steps[k]
        if not isinstance(nest, Nest) or not isinstance(before, Nest) or not _share_loops(before, nest):
            continue
        between = {n for step in steps[k + 1 : at] for m in step.members for n in m.reads}
        made = {m.name: m for m in before.members}
        reads = [x for m in nest.members if m.definition is not None for x in m.definition.loads if x.buffer in made]
        if between.isdisjoint(made) and all(same_row(x, made[x.buffer], nest.rows) == len(nest.rows) for x in reads) and (
            (before.members[0].name in fixed) == (nest.members[0].name in fixed)
        ):  # fmt: skip
            steps[at], steps[k] = Nest(nest.rows, [*before.members, *nest.members], nest.column), Nest(before.rows, [])
            home.update(dict.fromkeys(made, at))
            readers.update({n: at for n, last in readers.items() if last == k})


def _share_loops(before: Nest, nest: Nest) -> bool:
    """Whether one nest can begin with the members of `before`: both reduce the same rows, or the same columns."""
    if before.rows != nest.rows or before.column != nest.column or not before.members:
        return False
    if nest.column:
        others = [m.definition for m in nest.members if isinstance(m.definition, ir.Reduction)]
        return len(before.members) + len(others) <= MOST_COLUMNS and all(_reduces_the_columns_of(before, d) for d in others)
    return all(any(isinstance(m.definition, ir.Reduction) for m in x.members) or _is_one_a_row(x) for x in (nest, before))


def _is_one_a_row(nest: Nest) -> bool:
    """Whether each member of a nest is one value for each row."""
    return all(isinstance(m.definition, ir.Pointwise) and product(m.definition.ranges) == product(nest.rows) for m in nest.members)


def _is_of_call(b: ir.Buffer, call: str) -> bool:
    return isinstance(b.definition, ir.Attention) and b.definition.call == call


def _rows(d: ir.Pointwise | ir.Reduction) -> tuple[Size, ...]:
    return d.ranges


def _is_column(d: ir.Reduction) -> bool:
    """Whether the innermost kept axis is contiguous in the inputs and the innermost reduced one is not.

    Only loads that move along both axes count. A load that one of the axes does not move is read from the nearest cache in any order.
    """
    if not d.ranges or d.ranges[-1] == 1 or product(d.reduced) == 1:
        return False
    kept = ir.axis(len(d.ranges) - 1, d.ranges[-1])
    inner = next((ir.reduced_axis(k, n) for k, n in reversed(list(enumerate(d.reduced))) if n != 1), None)
    if inner is None:
        return False
    votes = 0
    for v in d.loads:
        steps = None if v.indirect else E.strides_of(v.index, [kept, inner])
        if steps is not None:
            along, across = _number(steps[0][inner]), _number(steps[0][kept])
            votes += 0 if 0 in (along, across) else (across == 1) - (along == 1)
    return votes > 0


def _number(e: E.Expr) -> int | None:
    """The value of an expression without symbols."""
    return e.value if isinstance(e, E.Int) else None


def fuse(nest: Nest, b: ir.Buffer, column: bool) -> Nest | Refusal:
    """`nest` with `b` as its last member, over as many common rows as both allow, or the reason why they cannot join."""
    d = b.definition
    assert isinstance(d, ir.Pointwise | ir.Reduction)
    label = "+".join(m.name for m in nest.members[-3:])
    if column or nest.column:
        return Nest(nest.rows, [*nest.members, b], True) if column and _reduces_the_columns_of(nest, d) else Refusal(
            label, b.name, f"column reductions share loops with at most {MOST_COLUMNS - 1} others of the same rows and columns")
    common = _common_prefix(nest.rows, d.ranges)
    produced = {m.name: m for m in nest.members}
    for load in d.loads:
        if load.buffer in produced:
            common = min(common, same_row(load, produced[load.buffer], nest.rows))
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


def _reduces_the_columns_of(nest: Nest, d: ir.Pointwise | ir.Reduction) -> bool:
    """Whether a column reduction reads the rows and columns that all members of the nest reduce, and none of their results."""
    if not nest.column or not isinstance(d, ir.Reduction) or len(nest.members) == MOST_COLUMNS:
        return False
    sizes = {(m.definition.ranges, m.definition.reduced) for m in nest.members if isinstance(m.definition, ir.Reduction)}
    return sizes == {(d.ranges, d.reduced)} and nest.produced.isdisjoint(x.buffer for x in d.loads)


def _over_ranges_of(nest: Nest, b: ir.Buffer) -> ir.Buffer | None:
    """`b` over the ranges of a member of the nest that it reads, such as (4096, 64) in place of (8, 512, 64); None if they run over
    other elements, or if a load would then divide positions."""
    d = b.definition
    source = next((m.definition for m in reversed(nest.members) if m.name in b.reads), None)
    if not isinstance(d, ir.Pointwise) or not isinstance(source, ir.Pointwise) or len(source.ranges) == len(d.ranges):
        return None
    if product(source.ranges) != product(d.ranges) or 0 in d.ranges:
        return None
    value = producer_at(d, ir.load(b.name, ir.own_position(source.ranges), b.layout.dtype))
    positions = [x.expr if isinstance(x, ir.Index) else x.index for x in ir.walk([value]) if isinstance(x, ir.Load | ir.Index)]
    if any(map(_divides, positions)):
        return None
    return replace(b, definition=ir.Pointwise(source.ranges, value))


def _divides(e: E.IntLike) -> bool:
    """Whether a position has a quotient or a remainder."""
    return isinstance(e, E.FloorDiv | E.Mod) or (isinstance(e, E.Expr) and any(map(_divides, e.children)))


def _common_prefix(a: Sequence[Size], b: Sequence[Size]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def same_row(load: ir.Load, producer: ir.Buffer, rows: Sequence[Size]) -> int:
    """The number of leading axes of `producer` that the load reads at the reader's own coordinates."""
    if load.indirect and any(s in load.index.symbols for s, _ in load.indirect):
        return 0
    assert isinstance(producer.definition, ir.Pointwise | ir.Reduction)
    point = ir.split_position(load.index, producer.definition.ranges)
    n = 0
    while n < len(rows) and (rows[n] == 1 or point[n] is ir.axis(n, rows[n])):
        n += 1
    return n


# -- producers inside their readers ----------------------------------------------------------------------------------


def _pinned(program: ir.Program) -> set[str]:
    """Buffers that must exist in memory: read as tensors, returned, or written back."""
    pinned = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)}
    pinned |= {w.value.buffer for w in program.writes}
    for b in program.buffers.values():
        d = b.definition
        if isinstance(d, ir.Contraction | ir.Recurrence | ir.Extern):
            pinned |= set(d.reads)
        elif isinstance(d, ir.Scatter):
            pinned.add(d.target)
    return pinned


def _loads_of(definition: ir.Definition) -> Counter[tuple[str, Any]]:
    return Counter([(v.buffer, v.index) for v in definition.loads])


def _is_cheap(d: ir.Pointwise) -> bool:
    return d.operation_count <= CHEAP_OPERATIONS and not any(isinstance(v, ir.Op) and v.name in EXPENSIVE for v in d.values)


def inline(program: ir.Program, apart: Collection[str] = ()) -> tuple[ir.Program, list[Refusal]]:
    """The program with pointwise producers moved into their readers, and the refusals for the other producers.

    apart: buffers that move only into each other.
    Linear in the number of loads: every load is visited once, in the order of the program.
    """
    pinned = _pinned(program) | {n for name, b in program.buffers.items() if name not in apart for n in b.reads if n in apart}
    readers: dict[str, list[str]] = {}
    points: dict[str, set[Any]] = {}
    for name, b in program.buffers.items():
        if b.definition is None:
            continue
        for buffer, index in _loads_of(b.definition):
            if name not in readers.setdefault(buffer, []):
                readers[buffer].append(name)
            points.setdefault(buffer, set()).add((name, index))
    refusals: list[Refusal] = []
    inlined: dict[str, ir.Buffer] = {}
    kept: dict[str, ir.Buffer] = {}
    for name, b in program.buffers.items():
        if b.definition is None:
            kept[name] = b
            continue
        b = _absorb(b, inlined)
        if _should_inline(program, b, pinned, readers.get(name, []), len(points.get(name, ())), refusals):
            inlined[name] = b
        else:
            kept[name] = b
    return replace(program, buffers=kept), refusals


def _absorb(b: ir.Buffer, inlined: dict[str, ir.Buffer]) -> ir.Buffer:
    """`b` with its loads of inlined buffers replaced by their values."""
    assert b.definition is not None
    sources = [inlined[n] for n in b.reads if n in inlined]
    if not sources:
        return b

    def value_of(load: ir.Load) -> ir.Value | None:
        producer = inlined.get(load.buffer)
        if producer is None:
            return None
        assert isinstance(producer.definition, ir.Pointwise)
        return producer_at(producer.definition, load)

    definition = with_value(b.definition, lambda v: replace_loads(v, value_of))
    source = b.source
    for s in reversed(sources):
        source = s.source.join(source)
    return replace(b, definition=definition, source=source)


def _should_inline(program: ir.Program, b: ir.Buffer, pinned: set[str], readers: list[str], points: int,
                   refusals: list[Refusal]) -> bool:  # fmt: skip
    d = b.definition
    if not isinstance(d, ir.Pointwise) or b.name in pinned or not readers:
        return False
    reason = _objection(program, b, d, readers, points)
    if reason:
        refusals.append(Refusal(b.name, ", ".join(readers), reason))
        return False
    return True


def _innermost(definition: ir.Definition) -> E.Expr | None:
    """The loop variable that changes fastest."""
    match definition:
        case ir.Reduction():
            return next((ir.reduced_axis(k, n) for k, n in reversed([*enumerate(definition.reduced)]) if n != 1), None)
        case ir.Pointwise():
            return next((ir.axis(k, n) for k, n in reversed([*enumerate(definition.ranges)]) if n != 1), None)
    return None


def _repeats(program: ir.Program, b: ir.Buffer, d: ir.Pointwise, readers: list[str]) -> int:
    """The number of times that the innermost loops of its readers would compute one element, on average.

    A value that does not change in an innermost loop is computed before that loop, and does not count.
    """
    found = 1
    for r in readers:
        definition = program.buffers[r].definition
        assert definition is not None
        inner = _innermost(definition)
        if any(v.buffer == b.name and inner in v.index.symbols for v in definition.loads):
            found = max(found, definition.iterations // max(d.iterations, 1))
    return found


def _reads_with_gaps(d: ir.Pointwise) -> bool:
    """Whether neighbours in the result are neither neighbours nor one element in a source, as in a transposed copy."""
    inner = _innermost(d)
    if inner is None:
        return False
    found = [strides_of(v.index, [inner]) for v in d.loads if inner in v.index.symbols]
    return any(steps is not None and steps[0][inner] is not E.integer(1) for steps in found)


def _objection(program: ir.Program, b: ir.Buffer, d: ir.Pointwise, readers: list[str], points: int) -> str:
    count = d.operation_count
    if any(isinstance(v, ir.Index) for v in d.values):
        for r in readers:
            definition = program.buffers[r].definition
            assert definition is not None
            if any(v.buffer == b.name and v.indirect for v in definition.loads):
                return "its reader gathers from it, and its value depends on its own indices"
    if any(isinstance(program.buffers[r].definition, ir.Scan) for r in readers):
        return "a scan reads it"
    if any(isinstance(v, ir.Op) and v.name != "cast" for v in d.values):
        for r in readers:
            definition = program.buffers[r].definition
            if isinstance(definition, ir.Attention) and b.name in definition.rows:
                return "attention reads it once for each block of queries"
    if count > LIMIT:
        return f"its value has {count} operations already"
    if _is_cheap(d):
        again = sum(isinstance(v, ir.Op) for v in d.values) > 1 or _reads_with_gaps(d)
        times = _repeats(program, b, d, readers) if again else 1
        return f"its reader would compute each element {times} times" if times >= REPEATS else ""
    if points > 1:
        return f"it is read at {points} places and costs {count} operations"
    definition = program.buffers[readers[0]].definition
    assert definition is not None
    theirs, ours = definition.iterations, max(d.iterations, 1)
    if theirs > PADDED * ours:
        return f"its reader would compute each element {theirs / ours:.3g} times"
    return ""


# -- bundles and memory ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Member:
    """One definition inside a bundle, its reduced axes renamed to inner axes.

    kind: "store" (pointwise), "reduce", or "row" (pointwise over the rows alone, no inner loop).
    value: over the nest's axes. extra: how many leading inner axes a reduction keeps.
    """

    buffer: ir.Buffer
    kind: str
    value: ir.Value
    extra: int = 0


@dataclass(slots=True)
class Bundle:
    """Inner loops of these sizes, for these members; axes are numbered on from the rows."""

    inner: tuple[Size, ...]
    members: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class LoopNest:
    """A nest ready for printing: rows, and bundles in order. flat: the only axis is the parallel one."""

    rows: tuple[Size, ...]
    bundles: list[Bundle]
    column: bool = False
    flat: bool = False


def loop_nest(nest: Nest) -> LoopNest:
    """Bundles of a nest; a nest of pointwise members alone is brought to few axes first."""
    members = nest.members
    alike = all(isinstance(m.definition, ir.Pointwise) and m.definition.ranges == nest.rows for m in members)
    if not nest.column and alike and not _looks_up_its_own(members):
        return _pointwise_nest(members)
    rows = nest.rows[:-1] if nest.column else nest.rows
    made = LoopNest(rows, [], nest.column)
    for m in members:
        _add(made, m)
    return made


def _looks_up_its_own(members: list[ir.Buffer]) -> bool:
    """Whether a member reads another member at an indirect position: the other member must then be in memory."""
    made = {m.name for m in members}
    values = [ir.pointwise_of(m).value for m in members]
    return any(x.indirect and x.buffer in made for v in values for x in v.loads)


def _pointwise_nest(members: list[ir.Buffer]) -> LoopNest:
    ranges, values = collapse(ir.pointwise_of(members[0]).ranges, [ir.pointwise_of(m).value for m in members])
    flat = len(ranges) <= 1
    rows, inner = ((), ranges) if flat else (ranges[:-1], ranges[-1:])
    bundle = Bundle(inner or (1,))
    produced: dict[str, Member] = {}
    for m, value in zip(members, values, strict=True):
        value = _forward(value, produced, ranges)
        member = Member(m, "store", value)
        produced[m.name] = member
        bundle.members.append(member)
    return LoopNest(rows, [bundle], flat=flat)


def collapse(ranges: tuple[Size, ...], values: list[ir.Value]) -> tuple[tuple[Size, ...], list[ir.Value]]:
    """Merge neighbouring axes if no index expression becomes harder; drops axes of size 1."""
    sizes = [n for n in ranges if n != 1]
    moved: dict[E.Expr, E.IntLike] = {}
    for k, n in enumerate(ranges):
        if n != 1:
            moved[ir.axis(k, n)] = ir.axis(len(moved), n)
    values = [at_point(v, moved) for v in values]
    k = len(sizes) - 2
    while k >= 0:
        merged = _merge(sizes, k, values)
        if merged is not None:
            sizes, values = merged
        k -= 1
    return tuple(sizes), values


def _merge(sizes: list[Size], k: int, values: list[ir.Value]) -> tuple[list[Size], list[ir.Value]] | None:
    n = sizes[k + 1]
    new = [*sizes[:k], product((sizes[k], n)), *sizes[k + 2 :]]
    joint = ir.axis(k, new[k])
    mapping: dict[E.Expr, E.IntLike] = {ir.axis(k, sizes[k]): E.floordiv(joint, n), ir.axis(k + 1, n): E.mod(joint, n)}
    for j in range(k + 2, len(sizes)):
        mapping[ir.axis(j, sizes[j])] = ir.axis(j - 1, sizes[j])
    rewritten = [at_point(v, mapping) for v in values]
    is_harder = ir.divisions(ir.expressions_in(rewritten)) > ir.divisions(ir.expressions_in(values))
    return None if is_harder else (new, rewritten)


def _forward(value: ir.Value, produced: dict[str, Member], ranges: tuple[Size, ...]) -> ir.Value:
    """Replaces loads of values made in the same inner iteration by the values."""
    here = ir.own_position(ranges)

    def known(load: ir.Load) -> ir.Value | None:
        member = produced.get(load.buffer)
        if member is None or member.kind != "store" or load.index is not here:
            return None
        return member.value

    return replace_loads(value, known) if produced else value


def _add(made: LoopNest, m: ir.Buffer) -> None:
    d, k = m.definition, len(made.rows)
    assert isinstance(d, ir.Pointwise | ir.Reduction)
    if isinstance(d, ir.Pointwise):
        inner, value, kind, extra = d.ranges[k:], d.value, "store", 0
        if product(inner) == 1:
            kind = "row"
    else:
        inner = (*d.ranges[k:], *d.reduced)
        extra = len(d.ranges) - k
        renamed: dict[E.Expr, E.IntLike] = {
            ir.reduced_axis(j, n): ir.axis(k + extra + j, n) for j, n in enumerate(d.reduced) if n != 1
        }
        value, kind = at_point(d.value, renamed), "reduce"
    member = Member(m, kind, value, extra)
    last = made.bundles[-1] if made.bundles else None
    if last is not None and not extra and not made.column and kind != "row" and _may_join(last, member, inner, made.rows):
        produced = {x.buffer.name: x for x in last.members}
        member.value = _forward(member.value, produced, (*made.rows, *inner))
        last.members.append(member)
        return
    made.bundles.append(Bundle(tuple(inner), [member]))


def _may_join(bundle: Bundle, member: Member, inner: tuple[Size, ...], rows: tuple[Size, ...]) -> bool:
    if bundle.inner != tuple(inner) or any(m.kind == "row" or m.extra for m in bundle.members):
        return False
    made = {m.buffer.name: m for m in bundle.members}
    ranges = (*rows, *inner)
    here = ir.own_position(ranges)
    read = [v for v in member.value.loads if v.buffer in made]
    return all(made[v.buffer].kind == "store" and v.index is here for v in read)


def in_memory(schedule: Schedule, nests: dict[int, LoopNest]) -> set[str]:
    """Buffers that some step, or a later bundle, reads from memory, or that leave the graph."""
    program = schedule.program
    needed = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    for i, step in enumerate(schedule.steps):
        if isinstance(step, Single):
            needed.update(n for m in step.members for n in (m.name, *m.reads))
            continue
        registers: set[str] = set()
        for bundle in nests[i].bundles:
            for m in bundle.members:
                for v in m.value.loads:
                    if v.indirect or v.buffer not in registers:
                        needed.add(v.buffer)
            registers |= {m.buffer.name for m in bundle.members if in_register(m)}
    return needed


def row_local(schedule: Schedule, nests: dict[int, LoopNest], memory: set[str]) -> dict[int, dict[str, Size]]:
    """By nest: results that only later loops over the same row read, and their elements per row (at most).

    They live on the stack of the thread that works on the row, in its nearest cache, instead of in the arena. If the number is
    an expression without a low bound, the code tests at run time whether a row is short, and else uses the arena.
    """
    program = schedule.program
    elsewhere = {r.buffer for r in program.outputs if isinstance(r, ir.Ref)} | {w.value.buffer for w in program.writes}
    readers: dict[str, set[int]] = {}
    for i, step in enumerate(schedule.steps):
        if isinstance(step, Single):
            elsewhere.update(n for m in step.members for n in m.reads)
            continue
        for v in [v for b in nests[i].bundles for m in b.members for v in m.value.loads]:
            readers.setdefault(v.buffer, set()).add(i)
            if v.indirect:
                elsewhere.add(v.buffer)
    found: dict[int, dict[str, Size]] = {}
    for i, nest in nests.items():
        room = ROW_BYTES
        mine: dict[str, Size] = {}
        for b in () if nest.flat or nest.column else nest.bundles:
            for m in b.members:
                name = m.buffer.name
                if m.kind != "store" or name not in memory - elsewhere or readers.get(name) != {i}:
                    continue
                n = product(b.inner)
                most = E.as_expr(n).hi
                nbytes = most * m.buffer.layout.dtype.itemsize
                if nbytes <= room:
                    mine[name] = int(most)
                    room -= int(nbytes)
                elif not isinstance(n, int):
                    mine[name] = n
        found[i] = mine
    return found


def in_register(m: Member) -> bool:
    """Whether a member's result is one value per row, held in a register for the rest of the row."""
    return m.kind == "row" or (m.kind == "reduce" and m.extra == 0)
