"""A kernel under a scheduler: the steps so far, and the facts of its loops that rules depend on.

The rules themselves are in `inductor.plan.heuristics` for CPUs and in `inductor.plan.gpu_schedule` for GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from inductor.ir import definitions as ir
from inductor.loops.apply import Refusal, apply
from inductor.loops.dependence import accesses
from inductor.loops.steps import FuseAxes, Join, Step
from inductor.loops.tree import Allocate, Block, Kernel, Loop, places_of, values_of, walk

MAX_JOINS: Final = 64  # loops at the root of one kernel


@dataclass(slots=True)
class Scheduler:
    """A kernel and the steps that made it."""

    kernel: Kernel
    steps: list[Step]

    def attempt(self, step: Step) -> bool:
        """Perform a step if it is legal."""
        found = apply(self.kernel, (step,))
        if isinstance(found, Refusal):
            return False
        self.kernel = found
        self.steps.append(step)
        return True

    def attempt_all(self, *steps: Step) -> bool:
        """Perform several steps, if all of them are legal."""
        before = self.mark()
        if all(map(self.attempt, steps)):
            return True
        self.undo(before)
        return False

    def mark(self) -> tuple[Kernel, int]:
        """The present state, for `undo`."""
        return self.kernel, len(self.steps)

    def undo(self, mark: tuple[Kernel, int]) -> None:
        """Return to an earlier state."""
        self.kernel, count = mark
        del self.steps[count:]


def find_loop(kernel: Kernel, name: str) -> Loop:
    """The loop over the axis `name`, which exists."""
    return next(x for x in walk(kernel.body) if isinstance(x, Loop) and x.axis.name == name)


def loop_made_of(kernel: Kernel, name: str) -> Loop:
    """The loop `name`, or the loop that was made of it and others."""
    parts = set(name.split("."))
    return next(x for x in walk(kernel.body) if isinstance(x, Loop) and parts <= set(x.axis.name.split(".")))


def loops_in(block: Block) -> list[Loop]:
    """The loops of a block, apart from the locals around them."""
    return [x for s in block for x in (loops_in(s.body) if isinstance(s, Allocate) else [s]) if isinstance(x, Loop)]


def chain_of(loop: Loop) -> list[Loop]:
    """The loop and the loops that are each the whole body of the one before."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    return chain


def join_all(s: Scheduler) -> None:
    """Join neighbours at the root and then, level by level, the loops inside of them."""
    blocks = [s.kernel.body]
    while blocks:
        block = blocks.pop()
        names = [x.axis.name for x in loops_in(block)][:MAX_JOINS]
        kept = names[:1]
        for name in names[1:]:
            if not s.attempt(Join(kept[-1], name)):
                kept.append(name)
        blocks += [find_loop(s.kernel, name).body for name in kept]


def fuse_axes(s: Scheduler, axes: list[str]) -> str:
    """One loop of the outer loops `axes`; its name."""
    name = axes[0]
    for other in axes[1:]:
        if not s.attempt(FuseAxes(name, other)):
            break
        name = f"{name}.{other}"
    return name


def merge_axes(s: Scheduler, axes: list[str]) -> None:
    """Make one loop of two neighbours where no index becomes harder to compute, from the inside out."""
    for k in range(len(axes) - 2, -1, -1):
        before = s.mark()
        if not s.attempt(FuseAxes(axes[k], axes[k + 1])):
            continue
        if hardness(s.kernel.body) > hardness(before[0].body):
            s.undo(before)
        else:
            axes[k] = f"{axes[k]}.{axes[k + 1]}"


def path_to(s: Scheduler, buffer: str, row: str) -> list[str]:
    """The loops from `row` inwards that each hold all uses of a buffer."""
    path, body = [row], find_loop(s.kernel, row).body if row else s.kernel.body
    while True:
        users = [x for x in loops_in(body) if uses_of((x,), buffer)]
        if len(users) != 1 or uses_of(body, buffer) != uses_of((users[0],), buffer):
            return path
        path.append(users[0].axis.name)
        body = users[0].body


def uses_of(block: Block, buffer: str) -> int:
    """The number of accesses of a block to a buffer."""
    return sum(a.place.name == buffer for a in accesses(block))


def hardness(block: Block) -> int:
    """The number of divisions and remainders in all index expressions, counted in each statement."""
    statements = walk(block)
    return ir.divisions([e for s in statements for e in (*(p.index for p in places_of(s)), *ir.expressions_in(values_of(s)))])
