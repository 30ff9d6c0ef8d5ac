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
from dataclasses import field
from typing import Any, Final

from dynamo._native import META_ALL, GuardProgram
from dynamo.guards.kinds import KINDS, LISTING, OF_THE_PROCESS, RANKS, RELATIONS
from dynamo.guards.shape_guards import ShapeCheck
from dynamo.guards.sources import AttrSource, ChildSource, ConstSource, Source
from eager.base import logs
from eager.base.records import dataclass
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
        """The fact in words, with the user's line."""
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
        self._note = ""  # number of the guard, by which a report finds the guard of a failed instruction

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

    def emit(self, number: int, guard: Guard) -> None:
        """Append the check of `guard` and the fetches that the check needs. number: of the guard in the list of guards."""
        self._note = str(number)
        if guard.kind in OF_THE_PROCESS:
            self._out.append((guard.kind, *guard.operands, self._note))
            return
        held = _check_of_held_object(guard)
        if held is not None:
            self._out.append((*held, self._note))
            return
        slots = tuple(self.slot(s) for s in guard.sources)
        operands = [o.steps if type(o) is ShapeCheck else o for o in guard.operands]
        self._out.append((guard.kind, *((slots,) if guard.kind in LISTING else slots), *operands, self._note))

    def block(self, op: str, items: tuple[Any, ...], guards: Iterable[tuple[int, Guard]]) -> None:
        """Append a watched block. Temporaries of the block are not visible outside it."""
        outer, self._out = self._out, []
        slots, self._slots = self._slots, {}
        for number, guard in guards:
            self.emit(number, guard)
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


def _cost(guard: Guard) -> tuple[int, int]:
    """The order of checks: shallow sources first, then cheap and discriminating kinds."""
    return max(map(_depth, guard.sources), default=0), RANKS[guard.kind]


def build_program(guards: list[Guard], n_slots: int) -> GuardProgram | None:
    """The native program of `guards`; None for an empty list. The note of an instruction is the number of its guard in the list."""
    if not guards:
        return None
    builder = ProgramBuilder(n_slots)
    relations = [(i, g) for i, g in enumerate(guards) if g.kind in RELATIONS]
    others = [(i, g) for i, g in enumerate(guards) if g.kind not in RELATIONS]
    for number, guard in sorted(((i, g) for i, g in others if g.watch is None), key=lambda item: _cost(item[1])):
        builder.emit(number, guard)
    for op, epoch in (("watch", False), ("epoch", True)):
        watched = [(i, g) for i, g in others if g.watch is not None and g.epoch is epoch]
        if watched:
            builder.block(op, _unique(item for _, g in watched for item in g.watch or ()), watched)
    for number, guard in sorted(relations, key=lambda item: item[1].kind != "shape"):
        builder.emit(number, guard)
    return builder.build()


def _unique(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({id(item): item for item in items}.values())


def meta_word(t: Any) -> int:
    """The word that a "tensor" guard compares: the meta word of a tensor, with the requires_grad flag that a view has from its base."""
    return t._meta_word | (REQUIRES_GRAD_FLAG if t._requires_grad else 0)
