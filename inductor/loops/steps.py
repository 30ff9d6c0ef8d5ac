"""Schedules: tuples of steps, each a small record that names loops by their axes.

`inductor.loops.apply` performs a schedule. A step changes the order of the work and keeps the results: `apply` refuses a step that
a dependence forbids. `to_text` and `from_text` keep a schedule readable on disk.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from inductor.loops.tree import Kind


class Split(NamedTuple):
    """Cuts a loop into `<axis>_o` over blocks and `<axis>_i` over the `factor` iterations of a block.

    tail: how the iterations that fill no block run: "guard" puts the last block under a condition, "peel" gives them a separate loop
    `<axis>_t` after the blocks.
    """

    axis: str
    factor: int
    tail: Literal["guard", "peel"] = "guard"


class Cut(NamedTuple):
    """Cuts a loop into loops `<axis>_c<k>` over the ranges between the positions `at`, where conditions on the axis change."""

    axis: str
    at: tuple[int, ...]


class Reorder(NamedTuple):
    """Exchanges a loop with the loop that is its whole body."""

    outer: str
    inner: str


class FuseAxes(NamedTuple):
    """Makes one loop `<outer>.<inner>` of a loop and the loop that is its whole body."""

    outer: str
    inner: str


class Mark(NamedTuple):
    """Sets how a loop runs (see `inductor.loops.tree.Loop`)."""

    axis: str
    kind: Kind


class Interleave(NamedTuple):
    """Runs `width` iterations of a loop side by side: each iteration of the loop inside of it computes one step of all of them.

    A chain of dependent operations, such as a running sum, leaves arithmetic units idle.
    """

    axis: str
    width: int


class Unmask(NamedTuple):
    """Gives a loop a second version without masks, for the iterations of the loops around it in which all its masks hold.

    It concerns masks of loads that are the same in each iteration of the loop.
    """

    axis: str


class Distribute(NamedTuple):
    """Gives each statement in a loop's body a separate loop. Locals of the body become arrays with an element an iteration."""

    axis: str


class Join(NamedTuple):
    """Joins a loop with a later loop of the same block and extent; the statements between them move before or behind both."""

    first: str
    second: str


class Lanes(NamedTuple):
    """Gives the reductions of an innermost loop `lanes` running results each: lane k takes iterations k, k + lanes, ...

    block: the number of values that a running sum of floats adds before it goes to a compensated total.
    """

    axis: str
    lanes: int
    block: int


class Partials(NamedTuple):
    """Gives the reductions of an innermost loop a tile of `width` partial results, which are combined after the loop.

    Element k of the tile takes iterations k, k + width, ... A partial result has the type of the reduction's state.
    """

    axis: str
    width: int


class Parts(NamedTuple):
    """Reduces in two stages: parts of `size` iterations of the loop `axis`, each apart, then the results of the parts in order.

    The loop is inside of one loop over rows, or of none.
    """

    axis: str
    size: int


class Columns(NamedTuple):
    """Reduces `width` columns at once: each iteration of the loop `axis` is a column, and the reduced loops run over rows of them.

    block: see `Lanes`.
    """

    axis: str
    width: int
    block: int


class Stages(NamedTuple):
    """Reduces in two stages: blocks of `size` iterations of the reduction's outermost loop `axis` in parallel, then the partial results."""

    axis: str
    size: int


class ScanStages(NamedTuple):
    """Runs a scan over the loop `axis` in blocks of `size` iterations: first the state of each block, last its results, in parallel."""

    axis: str
    size: int


class Localise(NamedTuple):
    """Turns temporary buffers into locals of each iteration of a loop: rows, or registers. axis "": of the whole kernel."""

    buffers: tuple[str, ...]
    axis: str


class Follow(NamedTuple):
    """Runs a later nest of pointwise loops, whose outermost loop is `axis`, on each finished block of the contraction `product`."""

    product: str
    axis: str


class Share(NamedTuple):
    """Computes the contraction `product` in the memory of `result`, which its body stores."""

    product: str
    result: str


class Blocks(NamedTuple):
    """Computes the contraction `product` by programs over blocks of `rows` x `columns` elements, adding up `depth` at a time.

    The blocks are powers of two.
    """

    product: str
    rows: int
    columns: int
    depth: int


class Persistent(NamedTuple):
    """Computes the blocks of the contraction `product` by at most `programs` programs: program p of n takes blocks p, p + n, ...

    Fewer programs are used if they take as many turns. A program loads the operands of its next block while it stores the results of
    one.
    """

    product: str
    programs: int


class Descriptors(NamedTuple):
    """Copies blocks of the operands of the contraction `product` by descriptors of matrices, before the product is computed in blocks."""

    product: str


class Expand(NamedTuple):
    """Turns the contraction `product` into plain loops with a sum for each element."""

    product: str


class CacheRead(NamedTuple):
    """Copies the elements of `buffer` that a loop and the loops inside of it read to a local before the loop.

    Each of these loops is the whole body of the loop around it, and their iterations number the elements of the local.
    """

    buffer: str
    axis: str


class CacheWrite(NamedTuple):
    """Stores the elements that a vector loop writes to memory into locals, which streamed loops after it copy to memory."""

    axis: str


class StageDraws(NamedTuple):
    """Draws the random words that a loop and the loops inside of it use to locals before the loop.

    It concerns draws of elements in order (see `eager.optable.random`). Each of these loops is the whole body of the loop around it.
    """

    axis: str


LoopStep: TypeAlias = (
    Split | Cut | Unmask | Interleave | Reorder | FuseAxes | Mark | Distribute | Join | Lanes | Partials | Parts | Columns | Stages
    | ScanStages | Localise | CacheRead | CacheWrite | StageDraws
)
Step: TypeAlias = LoopStep | Follow | Share | Blocks | Persistent | Descriptors | Expand
Schedule: TypeAlias = tuple[Step, ...]

_NAMES: Final[dict[str, Any]] = {
    "split": Split, "cut": Cut, "unmask": Unmask, "interleave": Interleave, "reorder": Reorder, "fuse_axes": FuseAxes, "mark": Mark,
    "distribute": Distribute, "join": Join, "lanes": Lanes, "partials": Partials, "parts": Parts, "columns": Columns, "stages": Stages,
    "scan_stages": ScanStages, "localise": Localise, "follow": Follow, "share": Share, "blocks": Blocks, "persistent": Persistent,
    "descriptors": Descriptors, "expand": Expand, "cache_read": CacheRead, "cache_write": CacheWrite, "stage_draws": StageDraws,
}  # fmt: skip
_WORD_OF: Final = {cls: name for name, cls in _NAMES.items()}


def to_text(schedule: Schedule) -> str:
    """The schedule as one line: `split(i0, 8, guard); mark(i0_o, parallel)`."""
    return "; ".join(f"{_WORD_OF[type(s)]}({', '.join(map(_text, s))})" for s in schedule)


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def from_text(text: str) -> Schedule:
    """The schedule that `to_text` wrote. Raises: ValueError for any other text."""
    return tuple(_step(part) for part in text.split("; ") if part)


def _step(text: str) -> Step:
    found = re.fullmatch(r"(\w+)\(([^()]*)\)", text)
    cls = _NAMES.get(found[1]) if found else None
    values = found[2].split(", ") if found else []
    if cls is Split and len(values) == 2:
        values = [*values, "guard"]
    if cls is None or len(values) != len(cls._fields):
        raise ValueError(f"schedule: {text!r} is not a step; allowed: {', '.join(_NAMES)}")
    given = [_value(v, cls.__annotations__[name].__forward_arg__) for name, v in zip(cls._fields, values, strict=True)]
    step: Step = cls(*given)
    return step


def _value(text: str, of: str) -> object:
    if of.startswith("tuple"):
        return tuple(map(int if of.startswith("tuple[int") else str, text.split()))
    return int(text) if of == "int" else text
