"""Inner loops that members of a nest share, and the buffers that need memory.

A *bundle* is one run of inner loops for one or more members. Inside it a pointwise member's value is passed to later members in
a register; a reduction's result exists only after its bundle. Bundles are independent of C++.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, product
from inductor.ir.values import at_point, replace_loads
from inductor.loops.apply import ROW_BYTES
from inductor.plan.schedule import Nest, Schedule, Single


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
