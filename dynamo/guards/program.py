"""What a capture relied on, and the flat native program that checks it.

Owns: the record of one fact (`Guard`), their collection during a capture (`GuardSet`), the program made of them
(order, one fetch per source, watched blocks), and the report of which one failed. The checks themselves run in
`dynamo._native`.

Order: checks on the call's own slots first, types and constants before tensors, then what hangs on them, then the
watched blocks (one comparison each while nothing changes), then relations between slots.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dynamo._native import ANY, AT_LEAST_2, META_ALL, GuardProgram
from dynamo.guards.shape_guards import ShapeCheck
from dynamo.guards.sources import AttrSource, ChildSource, ConstSource, Source
from eager import _native as eager_native
from eager import dtype
from eager.base import dtypes, logs, thread_state
from eager.nn.parameter import REQUIRES_GRAD_FLAG
from eager.optable.table import OPS
from fxir.base.origin import Origin
from fxir.base.safe_repr import cut, text

LOG: Final = logs.artifact("guards")

_RANK: Final = {
    "is": 0, "type": 0, "int_eq": 1, "str_eq": 1, "float_eq": 1, "const_eq": 1, "content_eq": 1, "len": 2, "tensor": 3, "grad_mode": 0,
    "ambient": 0, "is_not": 2, "dict_keys": 4, "no_attr": 4, "dict_absent": 4, "cell_empty": 4, "type_absent": 4, "plain_new": 4,
    "call_eq": 5, "iterator_state": 4, "set_elements": 4,
}  # fmt: skip
DEVICE_TYPES: Final = ("cpu", "cuda", "meta")  # by their number in the meta word
_RELATIONAL: Final = frozenset({"shape", "same", "distinct", "alias", "not_alias"})


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """One fact: `kind` as in dynamo._native.GuardProgram, the sources it is about, its operands, its maker.

    watch: objects (dicts, types, instances) whose change is the only way for the fact to change, or None when it
    must be checked at each call. epoch: the fact may also change with eager's epoch.
    """

    kind: str
    sources: tuple[Source, ...]
    operands: tuple[Any, ...]
    origin: Origin | None
    watch: tuple[Any, ...] | None = None
    epoch: bool = False

    @property
    def note(self) -> str:
        """What is guarded and the line that made it. It identifies the guard in a failed program."""
        if self.kind == "shape":
            return f"{self.operands[0].text}  # {self.origin}" if self.origin else str(self.operands[0].text)
        names = ", ".join(s.name for s in self.sources)
        what = f"{names} {self._fact()}" if names else self._fact()
        return f"{what}  # {self.origin}" if self.origin else what

    def _fact(self) -> str:
        """The fact in words, without who it is about."""
        if self.kind == "tensor":
            return f"is {_expected_tensor(self.operands)}"
        if self.kind == "grad_mode":
            return describe_grad_mode(self.operands[0])
        if self.kind == "ambient":
            return f"surroundings: {thread_state.describe(self.operands[0])}"
        if self.kind == "call_eq":
            return f"{text(self.operands[0])}() gives {text(self.operands[1])}"
        return f"{_WORDS.get(self.kind, self.kind)} {_short(self.operands)}".strip()


_WORDS: Final = {
    "is": "is the object", "is_not": "is not the object", "type": "has the type", "int_eq": "==", "float_eq": "==", "str_eq": "==",
    "const_eq": "==", "content_eq": "==", "len": "has the length", "dict_keys": "has the keys", "no_attr": "has no attribute",
    "type_absent": "has no attribute", "dict_absent": "has no entry", "cell_empty": "is not bound",
    "same": "are one object", "distinct": "are different objects", "alias": "share memory",
    "not_alias": "share no memory", "iterator_state": "stands at", "set_elements": "has the elements",
    "plain_new": "makes its instances as object does",
}  # fmt: skip


def grad_modes() -> int:
    """The modes of this thread that the guard "grad_mode" compares: 1 gradients are recorded, 2 inference mode."""
    return eager_native.grad_enabled() | eager_native.inference_mode() << 1


def describe_grad_mode(modes: int) -> str:
    """The modes in words."""
    return ("gradients are recorded" if modes & 1 else "no gradients are recorded") + (", inference mode" if modes & 2 else "")


def _short(operands: tuple[Any, ...]) -> str:
    return cut(", ".join(map(text, operands)), 120)


@dataclass(slots=True)
class GuardSet:
    """Facts collected while capturing, in the order they were used, each once."""

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
        """Record a fact unless it is recorded already."""
        where = (sources,) if isinstance(sources, Source) else tuple(sources)
        if self.new(kind, where, operands):
            self.append(kind, where, operands, origin, watch, epoch)

    def append(
        self, kind: str, sources: tuple[Source, ...], operands: tuple[Any, ...], origin: Origin | None,
        watch: tuple[Any, ...] | None, epoch: bool
    ) -> None:  # fmt: skip
        """Record a fact that is `new`."""
        self.guards.append(Guard(kind, sources, operands, origin, watch, epoch))

    def new(self, kind: str, sources: tuple[Source, ...], operands: tuple[Any, ...]) -> bool:
        """Whether a fact is not recorded yet. It counts as known from then on: the caller is to `append` it."""
        key = (kind, sources, tuple(map(_identity, operands)))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def copy(self) -> GuardSet:
        return GuardSet(list(self.guards), set(self._seen))


def _identity(operand: Any) -> Any:
    kind = type(operand)
    if kind is ShapeCheck:
        return operand.steps
    if kind in (int, str, bytes, bool):
        return kind, operand
    if kind is float:
        return kind, repr(operand)  # tells -0.0 from 0.0
    if kind is tuple:
        return tuple(map(_identity, operand))
    if kind is functools.partial:
        return _identity((operand.func, *operand.args))
    return id(operand)


class ProgramBuilder:
    """Turns guards into instructions; each source is fetched once per block."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._next = n_slots
        self._slots: dict[Source, int] = {}
        self._out: list[tuple[Any, ...]] = []
        self._note: str | None = None

    def slot(self, source: Source) -> int:
        """The slot that holds `source`, fetching it here if it is not yet fetched."""
        if source not in self._slots:
            self._slots[source] = source.fetch(self)
        return self._slots[source]

    def emit_fetch(self, op: str, *operands: Any) -> int:
        """Append a fetch into a fresh temporary; returns the temporary."""
        dst = self._next
        self._next += 1
        self._out.append((op, *operands, dst, self._note))
        return dst

    def emit(self, guard: Guard) -> None:
        """Append the check of `guard` and the fetches that it needs."""
        self._note = guard.note
        if guard.kind in ("grad_mode", "ambient", "call_eq"):
            self._out.append((guard.kind, *guard.operands, self._note))
            return
        held = _held_check(guard)
        if held is not None:
            self._out.append((*held, self._note))
            return
        slots = [self.slot(s) for s in guard.sources]
        operands = (tuple(slots),) if guard.kind in ("shape", "distinct", "not_alias") else tuple(slots)
        stated = (guard.operands[0].steps,) if guard.kind == "shape" else guard.operands
        self._out.append((guard.kind, *operands, *stated, self._note))

    def block(self, op: str, items: tuple[Any, ...], guards: Iterable[Guard]) -> None:
        """Append a watched block. What it fetches is not visible outside it."""
        outer, self._out = self._out, []
        slots, self._slots = self._slots, {}
        for guard in guards:
            self.emit(guard)
        inner, self._out, self._slots = self._out, outer, slots
        self._out.append((op, items, tuple(inner), f"{len(inner)} guards while {len(items)} containers do not change"))

    def build(self) -> GuardProgram:
        return GuardProgram(self._out, self.n_slots)


_FUNCTION_FIELDS: Final = frozenset({"__code__", "__defaults__", "__kwdefaults__"})


def _held_check(guard: Guard) -> tuple[Any, ...] | None:
    """The instruction without a fetch, for what the object header or the function of a held object says; None for others."""
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
    """Direct checks in the order they are run: shallow sources and cheap, discriminating kinds first."""
    return sorted(guards, key=lambda g: (max(map(_depth, g.sources), default=0), _RANK.get(g.kind, 3)))


def build_program(guards: list[Guard], n_slots: int) -> GuardProgram | None:
    """The native program of `guards`, or None when there is nothing to check."""
    if not guards:
        return None
    builder = ProgramBuilder(n_slots)
    direct = [g for g in guards if g.watch is None and g.kind not in _RELATIONAL]
    for guard in order(direct):
        builder.emit(guard)
    for op, epoch in (("watch", False), ("epoch", True)):
        watched = [g for g in guards if g.watch is not None and g.epoch is epoch and g.kind not in _RELATIONAL]
        if watched:
            builder.block(op, _unique(item for g in watched for item in g.watch or ()), watched)
    for guard in sorted((g for g in guards if g.kind in _RELATIONAL), key=lambda g: g.kind != "shape"):
        builder.emit(guard)
    return builder.build()


def _unique(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({id(item): item for item in items}.values())


_ANY_REMEDY: Final = "Raise torch._dynamo.config.recompile_limit if the number of variants has a bound."
_REMEDIES: Final = {
    "int_eq": "The integer `{name}` changes between calls: keep it in a tensor, or pass it as an argument, where it becomes a symbol.",
    "float_eq": "The number `{name}` changes between calls: keep it in a tensor, or pass it as an argument, where it becomes a symbol.",
    "str_eq": "The text `{name}` changes between calls: compile one function for each, or use it outside the compiled function.",
    "is": "`{name}` is another object at each call: make it once, outside the compiled function.",
    "tensor": "The sizes or the kind of `{name}` change between calls: torch._dynamo.mark_dynamic({name}, dim) marks a size that does.",
    "len": "The length of `{name}` changes between calls: pass one tensor instead, or pad it.",
    "dict_keys": "The keys of `{name}` change between calls: keep what changes out of the compiled function.",
}  # fmt: skip

# --- reports -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an existing compiled variant was not used. line: the user line that made the guard."""

    guard: str
    expected: str
    actual: str
    line: str

    def remedy(self) -> str:
        """What a program can do about a guard that fails again and again, as a sentence."""
        name, _, kind = self.guard.rpartition(" [")
        return _REMEDIES.get(kind.rstrip("]"), _ANY_REMEDY).format(name=name or self.guard)

    def __str__(self) -> str:
        made = f", needed at {self.line}" if self.line else ""
        return f"{self.guard}: expected {self.expected}, got {self.actual}{made}"


def _tensor_text(cls: type, dtype_name: str, device_name: str, sizes: Any, strides: Any, requires_grad: bool) -> str:
    layout = "contiguous" if strides is None else f"stride={_dims(strides)}"
    grad = ", requires_grad" if requires_grad else ""
    return f"{cls.__name__}(size={_dims(sizes)}, {layout}, {dtype_name}, {device_name}{grad})"


def _dims(dims: Any) -> str:
    special = {ANY: "any", AT_LEAST_2: "2 or more"}
    return f"({', '.join(special.get(d, str(d)) for d in dims)}{',' if len(dims) == 1 else ''})"


def _expected_tensor(operands: tuple[Any, ...]) -> str:
    """A tensor guard's operands (class, meta word, mask, sizes, strides) as a tensor is written."""
    cls, word, _, sizes, strides = operands
    name = next(d.name for d in dtypes.ALL if d.code == word & 0xFF)
    return _tensor_text(cls, name, DEVICE_TYPES[word >> 8 & 0xFF], sizes, strides, bool(word >> 32 & 1))


def _describe_actual(kind: str, operands: tuple[Any, ...], value: Any) -> str:
    if kind == "type":
        return type(value).__qualname__
    if kind in ("is", "is_not", "same", "distinct"):
        if value is None or isinstance(value, bool | dtype):
            return repr(value)
        return f"another {type(value).__qualname__} object"
    if kind == "len":
        return str(len(value))
    if kind in ("dict_keys", "set_elements"):
        return cut(text(tuple(value)), 200)
    if kind == "tensor":
        try:
            return _tensor_text(type(value), value.dtype.name, value.device.type, value.shape, value.stride(), value.requires_grad)
        except AttributeError:
            return f"a {type(value).__qualname__}"
    return cut(text(value), 200)


def _describe_expected(guard: Guard) -> str:
    operands = guard.operands
    if guard.kind == "type":
        return str(operands[0].__qualname__)
    if guard.kind == "is" and (operands[0] is None or isinstance(operands[0], bool | dtype)):
        return repr(operands[0])
    if guard.kind == "is":
        return f"the same {type(operands[0]).__qualname__} object as before"
    if guard.kind == "tensor":
        return _expected_tensor(operands)
    if guard.kind in ("same", "distinct", "alias", "not_alias"):
        return {"same": "one object", "distinct": "different objects"}.get(guard.kind, guard.kind)
    if guard.kind == "ambient":
        return thread_state.describe(operands[0])
    if guard.kind == "grad_mode":
        return describe_grad_mode(operands[0])
    return _short(operands)


def explain_failure(guards: list[Guard], program: GuardProgram, slots: tuple[Any, ...]) -> Failure:
    """Which guard keeps `slots` from `program`, with the expected and the actual value."""
    failed = program.failed(slots)
    if failed is None:
        return Failure("(none)", "a match", "a match: the guards hold now", "")
    note = failed[1]
    guard = next((g for g in guards if g.note == note), None)
    if guard is None:
        return Failure(note or f"guard {failed[0]}", "it to hold", "it does not", "")
    line = str(guard.origin) if guard.origin else ""
    names = ", ".join(s.name for s in guard.sources) or guard.kind
    actual = "(not readable)"
    if guard.kind == "grad_mode":
        names, actual = "grad mode", describe_grad_mode(grad_modes())
    elif guard.kind == "ambient":
        names, actual = "autocast and default device", thread_state.describe(thread_state.word())
    elif guard.kind == "shape":
        check = guard.operands[0]
        return Failure(f"{check.text} [shape]", check.expected(), check.actual(slots), line)
    elif guard.sources:
        try:
            actual = _describe_actual(guard.kind, guard.operands, guard.sources[0].read(slots))
        except Exception as error:  # noqa: BLE001 - reading may run into what made the guard fail
            actual = f"(not readable: {type(error).__name__}: {error})"
    return Failure(f"{names} [{guard.kind}]", _describe_expected(guard), actual, line)


def when(guard: Guard) -> str:
    """When a guard is checked."""
    return "epoch" if guard.epoch else "watched" if guard.watch is not None else "each call"


def guard_cost_ns(guards: list[Guard], slots: tuple[Any, ...]) -> float | None:
    """Nanoseconds that a program of these guards takes on these slots; None where they do not hold."""
    program = build_program(guards, len(slots))
    if program is None:
        return 0.0
    if not program.check(slots):
        return None
    return min(program.bench(slots, 200) for _ in range(5))


_LIBRARY: Final = ("eager", "fxir", "dynamo", "inductor")


def _is_of_library(source: Source) -> bool:
    """Whether what a guard is about belongs to this library: its classes, its modules' functions."""
    value = getattr(source.root, "value", None)
    if type(value) is dict:
        name = value.get("__name__", "") if source.root is not source else ""
        return value is OPS or (isinstance(name, str) and name.partition(".")[0] in _LIBRARY)
    if isinstance(value, type | types.FunctionType):
        return str(value.__module__).partition(".")[0] in _LIBRARY
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _LIBRARY


def folded(guards: Iterable[Guard]) -> list[tuple[str, list[Guard]]]:
    """Guards as a user reads them: each with its own line, and those of modules and of this library in one line each, last."""
    own: list[tuple[str, list[Guard]]] = []
    modules: list[Guard] = []
    library: list[Guard] = []
    for guard in guards:
        if any(_is_of_library(source) for source in guard.sources):
            library.append(guard)
        elif guard.epoch:
            modules.append(guard)
        else:
            own.append((guard.note, [guard]))
    if modules:
        own.append((f"modules, their parameters, attributes and hooks are unchanged ({len(modules)} guards)", modules))
    if library:
        own.append((f"the library's own functions and classes are unchanged ({len(library)} guards)", library))
    return own


def describe(guards: list[Guard]) -> str:
    """The list of guards as printed under TORCH_LOGS=guards."""
    return "\n".join(f"{guard.note}  [{when(guard)}]" for guard in guards) or "(no guards)"


def meta_word(t: Any) -> int:
    """What the guard "tensor" compares: the word of a tensor, with the flag that a view may have through its base alone."""
    return t._meta_word | (REQUIRES_GRAD_FLAG if t.requires_grad else 0)


TENSOR_MASK: Final[int] = META_ALL
