"""The facts that a capture relies on, and the native program that checks them at each call.

Owns: the record of one fact (`Guard`), the collection of facts during a capture (`GuardSet`), and the guard program (order of
checks, one fetch for each source, watched blocks). `dynamo._native` runs the program, `kinds` describes the instructions, and
`explain` reports which guard failed.

Order of a program: checks of the call's own slots first, types and constants before tensors; then checks of the objects reached
from the slots; then the watched blocks, which cost one comparison while nothing changes; then relations between slots.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dynamo._native import META_ALL, GuardProgram
from dynamo.guards.kinds import KINDS
from dynamo.guards.shape_guards import ShapeCheck
from dynamo.guards.sources import AttrSource, ChildSource, ConstSource, Source
from eager.base import logs
from eager.nn.parameter import REQUIRES_GRAD_FLAG
from fxir.base.origin import Origin

LOG: Final = logs.artifact("guards")

TENSOR_MASK: Final[int] = META_ALL


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """One fact: its kind (a name in `kinds.KINDS`), its sources, its operands, and the user's line that needs it.

    watch: the objects (dicts, types, instances) whose change alone can change the fact; None for a fact that is checked at each
    call. epoch: eager's global epoch can change the fact too.
    """

    kind: str
    sources: tuple[Source, ...]
    operands: tuple[Any, ...]
    origin: Origin | None
    watch: tuple[Any, ...] | None = None
    epoch: bool = False

    @property
    def note(self) -> str:
        """The fact in words, with the user's line. The note identifies the guard in a failed program."""
        kind = KINDS[self.kind]
        names = ", ".join(s.name for s in self.sources) if kind.names_sources else ""
        fact = kind.state(self.operands)
        what = f"{names} {fact}" if names else fact
        return f"{what}  # {self.origin}" if self.origin else what


@dataclass(slots=True)
class GuardSet:
    """The facts of one capture in the order of their first use; each fact occurs once."""

    guards: list[Guard] = field(default_factory=list)
    _seen: set[Any] = field(default_factory=set)

    def add(
        self,
        kind: str,
        sources: Iterable[Source] | Source,
        *operands: Any,
        origin: Origin | None = None,
        watch: tuple[Any, ...] | None = None,
        epoch: bool = False,
    ) -> None:
        """Record a fact unless the set contains it."""
        where = (sources,) if isinstance(sources, Source) else tuple(sources)
        if self.new(kind, where, operands):
            self.append(kind, where, operands, origin, watch, epoch)

    def append(
        self, kind: str, sources: tuple[Source, ...], operands: tuple[Any, ...], origin: Origin | None,
        watch: tuple[Any, ...] | None, epoch: bool
    ) -> None:  # fmt: skip
        """Record a fact for which `new` has returned True."""
        self.guards.append(Guard(kind, sources, operands, origin, watch, epoch))

    def new(self, kind: str, sources: tuple[Source, ...], operands: tuple[Any, ...]) -> bool:
        """Whether the set does not contain the fact. The set then counts the fact as known; the caller has to `append` it."""
        key = (kind, sources, tuple(map(_identity, operands)))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def copy(self) -> GuardSet:
        """A set of the same facts that can grow separately."""
        return GuardSet(list(self.guards), set(self._seen))


def _identity(operand: Any) -> Any:
    """A hashable key of an operand. Two operands with one key make the same check."""
    kind = type(operand)
    if kind is ShapeCheck:
        return operand.steps
    if kind in (int, str, bytes, bool):
        return kind, operand
    if kind is float:
        return kind, repr(operand)  # the repr distinguishes -0.0 from 0.0
    if kind is tuple:
        return tuple(map(_identity, operand))
    if kind is functools.partial:
        return _identity((operand.func, *operand.args))
    return id(operand)


class ProgramBuilder:
    """Turns guards into instructions. Each block fetches a source once."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._next = n_slots
        self._slots: dict[Source, int] = {}
        self._out: list[tuple[Any, ...]] = []
        self._note: str | None = None

    def slot(self, source: Source) -> int:
        """The slot that holds the object at `source`; emits the fetch at the first call for a source."""
        if source not in self._slots:
            self._slots[source] = source.fetch(self)
        return self._slots[source]

    def emit_fetch(self, op: str, *operands: Any) -> int:
        """Append a fetch into a fresh temporary; return the temporary."""
        dst = self._next
        self._next += 1
        self._out.append((op, *operands, dst, self._note))
        return dst

    def emit(self, guard: Guard) -> None:
        """Append the check of `guard` and the fetches that the check needs."""
        self._note = guard.note
        kind = KINDS[guard.kind]
        if not kind.reads_slots:
            self._out.append((guard.kind, *guard.operands, self._note))
            return
        held = _check_of_held_object(guard)
        if held is not None:
            self._out.append((*held, self._note))
            return
        slots = tuple(self.slot(s) for s in guard.sources)
        operands = [o.steps if type(o) is ShapeCheck else o for o in guard.operands]
        self._out.append((guard.kind, *((slots,) if kind.lists_slots else slots), *operands, self._note))

    def block(self, op: str, items: tuple[Any, ...], guards: Iterable[Guard]) -> None:
        """Append a watched block. Temporaries of the block are not visible outside it."""
        outer, self._out = self._out, []
        slots, self._slots = self._slots, {}
        for guard in guards:
            self.emit(guard)
        inner, self._out, self._slots = self._out, outer, slots
        self._out.append((op, items, tuple(inner), f"{len(inner)} guards while {len(items)} containers do not change"))

    def build(self) -> GuardProgram:
        """The native program."""
        return GuardProgram(self._out, self.n_slots)


_FUNCTION_FIELDS: Final = frozenset({"__code__", "__defaults__", "__kwdefaults__"})


def _check_of_held_object(guard: Guard) -> tuple[Any, ...] | None:
    """The instruction without a fetch, for a field of an object that the entry holds; None for any other guard."""
    source = guard.sources[0]
    if guard.kind == "type" and isinstance(source, ConstSource):
        return "held_type", source.value, *guard.operands
    if guard.kind == "is" and isinstance(source, AttrSource) and source.key in _FUNCTION_FIELDS:
        parent = source.parent
        if isinstance(parent, ConstSource) and type(parent.value) is types.FunctionType:
            return "function_is", parent.value, source.key, *guard.operands
    return None


def _depth(source: Source) -> int:
    depth = 0
    while isinstance(source, ChildSource):
        source, depth = source.parent, depth + 1
    return depth


def order(guards: Iterable[Guard]) -> list[Guard]:
    """Checks in the order of execution: shallow sources first, then cheap and discriminating kinds."""
    return sorted(guards, key=lambda g: (max(map(_depth, g.sources), default=0), KINDS[g.kind].rank))


def build_program(guards: list[Guard], n_slots: int) -> GuardProgram | None:
    """The native program of `guards`; None for an empty list."""
    if not guards:
        return None
    builder = ProgramBuilder(n_slots)
    relations = [g for g in guards if KINDS[g.kind].is_relation]
    others = [g for g in guards if not KINDS[g.kind].is_relation]
    for guard in order(g for g in others if g.watch is None):
        builder.emit(guard)
    for op, epoch in (("watch", False), ("epoch", True)):
        watched = [g for g in others if g.watch is not None and g.epoch is epoch]
        if watched:
            builder.block(op, _unique(item for g in watched for item in g.watch or ()), watched)
    for guard in sorted(relations, key=lambda g: g.kind != "shape"):
        builder.emit(guard)
    return builder.build()


def _unique(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({id(item): item for item in items}.values())


def meta_word(t: Any) -> int:
    """The word that a "tensor" guard compares: the meta word of a tensor, with the requires_grad flag that a view has from its base."""
    return t._meta_word | (REQUIRES_GRAD_FLAG if t.requires_grad else 0)
