"""Schedules: tuples of steps, each a small record that names loops by their axes.

`inductor.loops.apply` performs a schedule. A step changes the order of the work and keeps the results: `apply` refuses a step that
a dependence forbids. `to_text` and `from_text` keep a schedule readable on disk.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, fields
from typing import Final, Literal, TypeAlias

from inductor.loops.tree import Kind


@dataclass(frozen=True, slots=True)
class Split:
    """Cuts a loop into `<axis>_o` over blocks and `<axis>_i` over the `factor` iterations of a block.

    tail: how the iterations that fill no block run: "guard" puts the last block under a condition, "peel" gives them a separate loop
    `<axis>_t` after the blocks.
    """

    axis: str
    factor: int
    tail: Literal["guard", "peel"] = "guard"


@dataclass(frozen=True, slots=True)
class Reorder:
    """Exchanges a loop with the loop that is its whole body."""

    outer: str
    inner: str


@dataclass(frozen=True, slots=True)
class FuseAxes:
    """Makes one loop `<outer>_<inner>` of a loop and the loop that is its whole body."""

    outer: str
    inner: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Sets how a loop runs: "parallel", "vector", "unrolled" or "serial"."""

    axis: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Distribute:
    """Gives each statement in a loop's body a separate loop. Locals of the body become arrays with an element an iteration."""

    axis: str


@dataclass(frozen=True, slots=True)
class Join:
    """Joins a loop with the next loop of the same extent: one loop runs both bodies."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class SplitReduction:
    """Gives a reduction `lanes` running results: lane k takes iterations k, k + lanes, ... and the lanes are combined at the end."""

    axis: str
    lanes: int


@dataclass(frozen=True, slots=True)
class BlockReduction:
    """Reduces blocks of `size` iterations one by one and combines their results: a sum rounds like a sum of blocks."""

    axis: str
    size: int


@dataclass(frozen=True, slots=True)
class Contract:
    """Turns a temporary buffer into a local of each iteration of a loop: a row, or one register."""

    buffer: str
    axis: str


Step: TypeAlias = Split | Reorder | FuseAxes | Mark | Distribute | Join | SplitReduction | BlockReduction | Contract
Schedule: TypeAlias = tuple[Step, ...]

_NAMES: Final = {
    "split": Split, "reorder": Reorder, "fuse_axes": FuseAxes, "mark": Mark, "distribute": Distribute, "join": Join,
    "split_reduction": SplitReduction, "block_reduction": BlockReduction,
    "contract": Contract,
}  # fmt: skip
_WORD_OF: Final = {cls: name for name, cls in _NAMES.items()}


def to_text(schedule: Schedule) -> str:
    """The schedule as one line: `split(i0, 8, guard); mark(i0_o, parallel)`."""
    return "; ".join(f"{_WORD_OF[type(s)]}({', '.join(map(str, astuple(s)))})" for s in schedule)


def from_text(text: str) -> Schedule:
    """The schedule that `to_text` wrote. Raises: ValueError for any other text."""
    return tuple(_step(part) for part in text.split("; ") if part)


def _step(text: str) -> Step:
    found = re.fullmatch(r"(\w+)\(([^()]*)\)", text)
    cls = _NAMES.get(found[1]) if found else None
    values = found[2].split(", ") if found else []
    if cls is Split and len(values) == 2:
        values = [*values, "guard"]
    if cls is None or len(values) != len(fields(cls)):
        raise ValueError(f"schedule: {text!r} is not a step; allowed: {', '.join(_NAMES)}")
    given = [int(v) if f.type == "int" else v for f, v in zip(fields(cls), values, strict=True)]
    return cls(*given)  # type: ignore[arg-type]
