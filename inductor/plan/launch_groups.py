"""Groups of launches that run as one: launches of one kernel over different buffers, without an order among each other.

A launch takes about a microsecond, as long as the work of a small kernel: the update of a bias, or the last stage of a sum. Nothing is
known here about kernels but their identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import itemgetter
from typing import NamedTuple


class Effect(NamedTuple):
    """The effect of a step on memory. touched: the buffers that it reads or writes. written: the buffers that it writes.

    kind: steps of equal kinds may run as one; None for a step that runs alone. most: steps of that kind in one launch.
    """

    touched: frozenset[str]
    written: frozenset[str]
    kind: Hashable = None
    most: int = 1


class _Waiting:
    """Steps of one kind that wait for more steps, and all their effects."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.touched: set[str] = set()
        self.written: set[str] = set()

    def add(self, number: int, effect: Effect) -> None:
        self.steps.append(number)
        self.touched |= effect.touched
        self.written |= effect.written

    def conflicts(self, effect: Effect) -> bool:
        """Whether the step has to run after the waiting steps."""
        return not (self.written.isdisjoint(effect.touched) and self.touched.isdisjoint(effect.written))


def launch_groups(effects: Sequence[Effect]) -> list[list[int]]:
    """The steps by number, in the order in which they run; each group is one launch.

    A step waits for more steps of its kind until a step comes that has to run after it. A group runs in the place of its last step.
    """
    groups: list[list[int]] = []
    waiting: dict[Hashable, _Waiting] = {}
    for number, effect in enumerate(effects):
        ready = [kind for kind, group in waiting.items() if group.conflicts(effect)]
        groups += [waiting.pop(kind).steps for kind in ready]
        if effect.kind is None or effect.most < 2:
            groups.append([number])
            continue
        group = waiting.setdefault(effect.kind, _Waiting())
        group.add(number, effect)
        if len(group.steps) == effect.most:
            groups.append(waiting.pop(effect.kind).steps)
    return sorted([*groups, *(group.steps for group in waiting.values())], key=itemgetter(-1))


__all__ = ["Effect", "launch_groups"]
