"""Vertical fusion of pointwise producers: their value moves into the consumers' loops, and no buffer is made.

A producer is inlined if computing it again costs no more than storing and loading it: always if it is cheap, and if it has a
single reader that reads each element once. A `Refusal` states why a producer keeps its buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from eager.base import logs
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.definitions import producer_at, with_value
from inductor.ir.values import replace_loads

FUSION: Final = logs.artifact("fusion")
CHEAP_OPERATIONS: Final = 6
REPEATS: Final = 16  # most times that a cheap value may be computed instead of loaded
LIMIT: Final = 400  # most operations in one value: beyond it a kernel grows without getting faster
EXPENSIVE: Final = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc erfinv "
    "lgamma digamma pow philox div sqrt rsqrt fmod remainder floordiv".split()
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why two loops were not joined, with the numbers that it depends on."""

    first: str
    second: str
    reason: str

    def __str__(self) -> str:
        return f"not fused: {self.first} into {self.second}: {self.reason}"


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
        times = _repeats(program, b, d, readers) if sum(isinstance(v, ir.Op) for v in d.values) > 1 else 1
        return f"its reader would compute each element {times} times" if times >= REPEATS else ""
    if points > 1:
        return f"it is read at {points} places and costs {count} operations"
    definition = program.buffers[readers[0]].definition
    assert definition is not None
    theirs, ours = definition.iterations, d.iterations
    if theirs > ours:
        return f"its reader would compute each element {theirs // max(ours, 1)} times"
    return ""
