"""The scheduled loops of a program's kernels; equal kernels are scheduled once in a process.

Two kernels are equal if they differ only in the names of their buffers and of gathered positions. Such kernels have one canonical form:
buffers are numbered (`b<k>`: computed, `m<k>`: read) in order of appearance. The canonical form is the key under which loops and
schedule are remembered. A `Scheduled` kernel gives the program's name for each canonical name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.base.choice import DEFAULT, Choice, Choose
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain
from inductor.ir.values import Renaming
from inductor.loops.build import build, copy
from inductor.loops.refusal import Refusal
from inductor.loops.steps import Schedule
from inductor.loops.tree import Block, Kernel
from inductor.plan.heuristics import (
    expand_product,
    schedule_attention,
    schedule_pointwise,
    schedule_product,
    schedule_recurrence,
    schedule_rows,
    schedule_scatter,
    schedule_step,
)
from inductor.plan.schedule import Nest

REMEMBERED: Final = 1024  # kernels whose loops are kept


class Unscheduled(NamedTuple):
    """A kernel over canonical names before it is scheduled: the function that schedules it, and its arguments before the choice."""

    schedule: Callable[..., tuple[Kernel, Schedule]]
    arguments: tuple[Any, ...]

    def scheduled(self, choice: Choice) -> tuple[Kernel, Schedule]:
        """The loops for a choice."""
        return self.schedule(*self.arguments, choice)


class Scheduled(NamedTuple):
    """Scheduled loops over canonical names. names: the program's name of each buffer, by canonical name.

    choice: the numbers that the schedule was made with. plain: the kernel before it, None if no choice changes its schedule.
    """

    kernel: Kernel
    steps: Schedule
    names: Mapping[str, str]
    choice: Choice = DEFAULT
    plain: Unscheduled | None = None

    @property
    def temporary(self) -> set[str]:
        """Names in the program of the buffers that only the kernel reads and that are in memory."""
        return {self.names[n] for n in self.kernel.temporary}

    @property
    def touched(self) -> set[str]:
        """Names in the program of the buffers that are in memory while the kernel runs."""
        return {self.names[n] for n in self.kernel.dtypes}

    @property
    def legend(self) -> str:
        """The program's name of each buffer, as `b0=buf3 m0=in1`."""
        return " ".join(f"{canonical}={name}" for canonical, name in self.names.items())


def nest_kernel(step: Nest, dtypes: Mapping[str, dtype], stored: Collection[str], homes: Mapping[str, str],
                choose: Choose | None = None) -> Scheduled:  # fmt: skip
    """The loops of a group of definitions; see `inductor.plan.heuristics.schedule_step` for the parameters."""
    names = _Canonical()
    members = names.members(step.members)
    made = {m.name for m in step.members}
    own = {names.of[n]: names.of[given] for n, given in homes.items() if n in made and given in names.of}
    kept = frozenset(names.of[n] for n in made & set(stored))
    plain = Unscheduled(_nest, (members, step.rows, step.column, names.dtypes(dtypes), kept, tuple(own.items())))
    return names.chosen(plain, choose)


def product_kernel(product: ir.Buffer, after: Sequence[ir.Buffer], dtypes: Mapping[str, dtype],
                   stored: Collection[str]) -> Scheduled | Refusal:  # fmt: skip
    """The loops of a contraction, with the loops of `after` on its blocks; see `inductor.plan.heuristics.schedule_product`."""
    names = _Canonical()
    members = names.members([product, *after])
    found = _product(members, names.dtypes(dtypes), frozenset(names.of[n] for n in stored))
    return found if isinstance(found, Refusal) else names.scheduled(*found)


def expanded_kernel(made: Scheduled, product: str) -> Scheduled:
    """A kernel with one of its contractions as plain loops."""
    kernel, steps = _expanded(made.kernel.body, tuple(made.kernel.dtypes.items()), made.kernel.temporary, product)
    return Scheduled(kernel, (*made.steps, *steps), made.names)


def recurrence_kernel(d: ir.Recurrence, results: Sequence[ir.Buffer], dtypes: Mapping[str, dtype]) -> Scheduled:
    """The loops of a recurrence, which computes all `results`."""
    names = _Canonical()
    members = names.members([replace(b, definition=None) for b in results])
    canonical = names.recurrence(d)
    return names.scheduled(*_recurrence(replace(members[0], definition=canonical), names.dtypes(dtypes)))


def attention_kernel(results: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], vector_bytes: int) -> Scheduled:
    """The loops of the results of one call of attention, under the names of the program."""
    kernel = schedule_attention(results, dtypes, vector_bytes)
    return Scheduled(kernel, (), {n: n for n in kernel.dtypes})


def scan_kernel(b: ir.Buffer, dtypes: Mapping[str, dtype], threads: int, choose: Choose | None = None) -> Scheduled:
    """The loops of a scan that `threads` run."""
    names = _Canonical()
    (member,) = names.members([b])
    return names.chosen(Unscheduled(_scan, (member, names.dtypes(dtypes), threads)), choose)


def scatter_kernel(b: ir.Buffer, dtypes: Mapping[str, dtype], choose: Choose | None = None) -> Scheduled:
    """The loops of a scatter, which change the memory that its target was copied to."""
    names = _Canonical()
    (member,) = names.members([b])
    return names.chosen(Unscheduled(_scatter, (member, names.dtypes(dtypes))), choose)


def copy_kernel(target: ir.Buffer, source: ir.Ref, choose: Choose | None = None) -> Scheduled:
    """The loops that store the elements of `source` into `target`."""
    names = _Canonical()
    (member,) = names.members([replace(target, definition=None)])
    return names.chosen(Unscheduled(_copy, (member, replace(source, buffer=names.read(source.buffer)))), choose)


Dtypes = tuple[tuple[str, dtype], ...]


@lru_cache(maxsize=REMEMBERED)
def _nest(members: tuple[ir.Buffer, ...], rows: tuple[Size, ...], column: bool, dtypes: Dtypes, stored: frozenset[str],
          homes: tuple[tuple[str, str], ...], choice: Choice) -> tuple[Kernel, Schedule]:  # fmt: skip
    return schedule_step(Nest(rows, list(members), column), dict(dtypes), stored, dict(homes), choice)


@lru_cache(maxsize=REMEMBERED)
def _product(members: tuple[ir.Buffer, ...], dtypes: Dtypes, stored: frozenset[str]) -> tuple[Kernel, Schedule] | Refusal:
    return schedule_product(members[0], members[1:], dict(dtypes), stored)


@lru_cache(maxsize=REMEMBERED)
def _expanded(body: Block, dtypes: Dtypes, temporary: frozenset[str], product: str) -> tuple[Kernel, Schedule]:
    return expand_product(Kernel(body, dict(dtypes), temporary), product)


@lru_cache(maxsize=REMEMBERED)
def _recurrence(member: ir.Buffer, dtypes: Dtypes) -> tuple[Kernel, Schedule]:
    return schedule_recurrence(build([member], dict(dtypes)))


@lru_cache(maxsize=REMEMBERED)
def _scan(member: ir.Buffer, dtypes: Dtypes, threads: int, choice: Choice) -> tuple[Kernel, Schedule]:
    return schedule_rows(build([member], dict(dtypes)), threads, choice)


@lru_cache(maxsize=REMEMBERED)
def _scatter(member: ir.Buffer, dtypes: Dtypes, choice: Choice) -> tuple[Kernel, Schedule]:
    return schedule_scatter(build([member], dict(dtypes)), choice)


@lru_cache(maxsize=REMEMBERED)
def _copy(target: ir.Buffer, source: ir.Ref, choice: Choice) -> tuple[Kernel, Schedule]:
    return schedule_pointwise(copy(target, source), choice)


class _Canonical:
    """Canonical names. of: by name in the program."""

    def __init__(self) -> None:
        self._renaming = Renaming()
        self.of = self._renaming.buffers

    def members(self, buffers: Sequence[ir.Buffer]) -> tuple[ir.Buffer, ...]:
        """The buffers that a kernel computes, without their origin."""
        for k, b in enumerate(buffers):
            self.of[b.name] = f"b{k}"
        return tuple([ir.Buffer(self.of[b.name], b.layout, self._definition(b.definition)) for b in buffers])

    def dtypes(self, program: Mapping[str, dtype]) -> Dtypes:
        """The dtypes of all named buffers."""
        return tuple([(name, program[buffer]) for buffer, name in self.of.items()])

    def scheduled(self, kernel: Kernel, steps: Schedule) -> Scheduled:
        return Scheduled(kernel, steps, {name: buffer for buffer, name in self.of.items()})

    def chosen(self, plain: Unscheduled, choose: Choose | None) -> Scheduled:
        """The loops of a kernel for its choice, by default `DEFAULT`."""
        choice = DEFAULT if choose is None else choose(plain)
        return self.scheduled(*plain.scheduled(choice))._replace(choice=choice, plain=plain)

    def read(self, buffer: str) -> str:
        """The name of a buffer that is copied."""
        return self._renaming.buffer(buffer)

    def _definition(self, d: ir.Definition | None) -> ir.Definition | None:
        new = self._renaming
        if isinstance(d, ir.Scatter):
            bound = tuple([(new.symbol(s), new.value(v)) for s, v in d.indirect])
            index = E.substitute(d.index, new.symbols)
            return ir.Scatter(d.ranges, new.buffer(d.target), index, bound, new.value(d.value), d.mode)
        return None if d is None else ir.with_value(d, new.value)

    def recurrence(self, d: ir.Recurrence) -> ir.Recurrence:
        """A recurrence whose results have names already. It is named by its first result."""
        time = ir.counter("t", plain(d.length - 1))
        moved: dict[E.Expr, E.IntLike] = {d.time: time}

        def steps(of: tuple[ir.Step, ...]) -> tuple[ir.Step, ...]:
            found = []
            for s in of:
                made = ir.with_value(s.definition, lambda v: self._renaming.value(ir.at_point(v, moved)))
                assert isinstance(made, ir.Pointwise | ir.Contraction)
                found.append(ir.Step(self.of[s.buffer], E.substitute(s.position, moved), made))
            return tuple(found)

        results = tuple(self.of[n] for n in d.results)
        return ir.Recurrence(d.length, time, steps(d.first), steps(d.rest), results[0], results)
