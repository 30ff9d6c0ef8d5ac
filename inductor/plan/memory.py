"""One arena for a graph's intermediates: offsets by lifetime, so that a call reuses memory.

A buffer lives from the step that writes it to the last step that reads it. Placement is first fit over the buffers alive at the
same time, the largest first; the arena is at most the sum of all, usually far less.

Buffers of symbolic size follow the others, in slots. A slot holds buffers that are never alive at the same time and is as large
as its largest, so that slots do not overlap for any sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir.sizes import Size, ceildiv, nominal, plain

ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer of `nbytes`, in use from step `first` to step `last`, both included."""

    name: str
    nbytes: Size
    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both are in use at some step."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(sizes: Mapping[str, Size], uses: Sequence[Iterable[str]]) -> list[Lifetime]:
    """Lifetimes of the buffers in `sizes`; uses[i]: names that step i makes or reads."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for i, names in enumerate(uses):
        for n in names:
            if n in sizes:
                first.setdefault(n, i)
                last[n] = i
    return [Lifetime(n, sizes[n], first[n], last[n]) for n in first]


def plan_arena(buffers: Sequence[Lifetime], alignment: int = ALIGNMENT) -> tuple[dict[str, Size], Size]:
    """Offset in bytes of every buffer, a multiple of `alignment`, and the size of the arena.

    Buffers whose lifetimes overlap never overlap in memory.
    """
    total: Size
    offsets, total = _first_fit([b for b in buffers if isinstance(b.nbytes, int)], alignment)
    for slot in _slots([b for b in buffers if not isinstance(b.nbytes, int)]):
        offsets.update((b.name, total) for b in slot.members)
        total = plain(total + ceildiv(slot.nbytes, alignment) * alignment)
    return offsets, total


@dataclass(slots=True)
class _Slot:
    """Memory for buffers that are in use one after another."""

    nbytes: Size = 0
    members: list[Lifetime] = field(default_factory=list)

    def takes(self, b: Lifetime) -> bool:
        return not any(b.overlaps(m) for m in self.members)

    def grown(self, b: Lifetime) -> Size:
        return plain(E.maximum(self.nbytes, b.nbytes))


def _slots(buffers: Sequence[Lifetime]) -> list[_Slot]:
    """Each buffer in the slot that grows least by it, then the one it fills best."""
    slots: list[_Slot] = []
    for b in sorted(buffers, key=lambda b: (-nominal(b.nbytes), b.first, b.name)):
        free = [s for s in slots if s.takes(b)]
        if not free:
            free = [_Slot()]
            slots += free
        best = min(free, key=lambda s: (s.grown(b) != s.nbytes, nominal(s.grown(b)) - nominal(s.nbytes), nominal(s.nbytes)))
        best.nbytes = best.grown(b)
        best.members.append(b)
    return slots


def _first_fit(buffers: Sequence[Lifetime], alignment: int) -> tuple[dict[str, Size], int]:
    placed: list[tuple[int, int, Lifetime]] = []  # offset, end
    offsets: dict[str, Size] = {}
    total = 0
    for b in sorted(buffers, key=lambda b: (-nominal(b.nbytes), b.first, b.name)):
        size = max(-(-nominal(b.nbytes) // alignment) * alignment, alignment)
        at = 0
        for start, end, other in sorted(placed, key=lambda p: p[0]):
            if not b.overlaps(other):
                continue
            if at + size <= start:
                break
            at = max(at, end)
        placed.append((at, at + size, b))
        offsets[b.name] = at
        total = max(total, at + size)
    return offsets, total
