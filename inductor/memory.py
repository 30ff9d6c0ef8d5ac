"""One arena for a graph's intermediates: offsets by lifetime, so that memory is used again within a call.

A buffer lives from the step that makes it to the last step that reads it. Placement is first fit over the
buffers alive at the same time, the largest first; the arena is at most the sum of all, usually far less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer of `nbytes`, in use from step `first` to step `last`, both included."""

    name: str
    nbytes: int
    first: int
    last: int


def lifetimes(sizes: Mapping[str, int], uses: Sequence[Iterable[str]]) -> list[Lifetime]:
    """Lifetimes of the buffers in `sizes`; uses[i]: names that step i makes or reads."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for i, names in enumerate(uses):
        for n in names:
            if n in sizes:
                first.setdefault(n, i)
                last[n] = i
    return [Lifetime(n, sizes[n], first[n], last[n]) for n in first]


def plan_arena(buffers: Sequence[Lifetime]) -> tuple[dict[str, int], int]:
    """Offset in bytes of every buffer, 64-byte aligned, and the size of the arena.

    Buffers whose lifetimes overlap never overlap in memory.
    """
    placed: list[tuple[int, int, Lifetime]] = []  # offset, end
    offsets: dict[str, int] = {}
    total = 0
    for b in sorted(buffers, key=lambda b: (-b.nbytes, b.first, b.name)):
        size = max(-(-b.nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        at = 0
        for start, end, other in sorted(placed, key=lambda p: p[0]):
            if other.last < b.first or b.last < other.first:
                continue
            if at + size <= start:
                break
            at = max(at, end)
        placed.append((at, at + size, b))
        offsets[b.name] = at
        total = max(total, at + size)
    return offsets, total
