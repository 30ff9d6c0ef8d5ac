"""Reports on guards: the list that a user reads, the cost of a check, and the reason why a compiled variant did not match."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Final

from dynamo._native import GuardProgram
from dynamo.guards.kinds import KINDS
from dynamo.guards.program import Guard, build_program
from dynamo.guards.sources import Source
from eager.base.records import dataclass
from eager.optable.table import OPS

_DEFAULT_REMEDY: Final = "Raise torch._dynamo.config.recompile_limit if the number of variants has a bound."


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why an existing compiled variant did not match.

    subject: the source, or the state of the process. kind: of the guard; "" if no guard of the variant is known to have failed.
    line: the user's line that needs the guard.
    """

    subject: str
    kind: str
    expected: str
    actual: str
    line: str

    @property
    def guard(self) -> str:
        """The subject with the kind of the guard."""
        return f"{self.subject} [{self.kind}]" if self.kind else self.subject

    def remedy(self) -> str:
        """Advice about a guard that fails again and again, as a sentence."""
        kind = KINDS.get(self.kind)
        return (kind.remedy if kind is not None and kind.remedy else _DEFAULT_REMEDY).format(name=self.subject)

    def __str__(self) -> str:
        needed = f", needed at {self.line}" if self.line else ""
        return f"{self.guard}: expected {self.expected}, got {self.actual}{needed}"


def explain_failure(guards: list[Guard], program: GuardProgram, slots: tuple[Any, ...]) -> Failure:
    """The guard that rejects `slots` in `program`, with the expected and the actual value.

    guards: the list that `build_program` turned into the program.
    """
    failed = program.failed(slots)
    if failed is None:
        return Failure("(none)", "", "a match", "a match: the guards hold now", "")
    index, number = failed
    if number is None or not number.isdecimal():  # a watched block, which has no guard
        return Failure(number or f"guard {index}", "", "it to hold", "it does not", "")
    guard = guards[int(number)]
    line = str(guard.origin) if guard.origin else ""
    if guard.kind == "shape":
        check = guard.operands[0]
        return Failure(check.text, guard.kind, check.expected(), check.actual(slots), line)
    kind = KINDS[guard.kind]
    subject = ", ".join(s.name for s in guard.sources) or kind.subject or guard.kind
    return Failure(subject, guard.kind, kind.expected(guard.operands), _actual(guard, slots), line)


def _actual(guard: Guard, slots: tuple[Any, ...]) -> str:
    """The state that a failed guard observed."""
    kind = KINDS[guard.kind]
    if kind.current is not None:
        return kind.current()
    if not guard.sources:
        return "(not readable)"
    try:
        return kind.actual(guard.sources[0].read(slots))
    except Exception as error:  # noqa: BLE001 - the cause of the failed guard may make the source unreadable
        return f"(not readable: {type(error).__name__}: {error})"


def when(guard: Guard) -> str:
    """When a guard is checked: "each call", "watched" or "epoch"."""
    return "epoch" if guard.epoch else "watched" if guard.watch is not None else "each call"


def guard_cost_ns(guards: list[Guard], slots: tuple[Any, ...]) -> float | None:
    """Nanoseconds of one run of a program of these guards on these slots; None where a guard fails."""
    program = build_program(guards, len(slots))
    if program is None:
        return 0.0
    if not program.check(slots):
        return None
    return min(program.bench(slots, 200) for _ in range(5))


_LIBRARY: Final = ("eager", "fxir", "dynamo", "inductor")


def _is_of_library(source: Source) -> bool:
    """Whether the root of a source belongs to this library: a class, a function or a module of its packages."""
    value = getattr(source.root, "value", None)
    if type(value) is dict:
        name = value.get("__name__", "") if source.root is not source else ""
        return value is OPS or (isinstance(name, str) and name.partition(".")[0] in _LIBRARY)
    if isinstance(value, type | types.FunctionType):
        return str(value.__module__).partition(".")[0] in _LIBRARY
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _LIBRARY


def folded(guards: Iterable[Guard]) -> list[tuple[str, list[Guard]]]:
    """(text, guards) of each line of a report: a line for each guard, one for all module guards, one for all guards of this library."""
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
