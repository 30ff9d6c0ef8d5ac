"""Tracebacks that read as in eager: of exceptions that captured code raises, and of exceptions that cross generated code.

A generated function replaces several frames of the user, one inlined in another. Each of its instructions carries a mark: the number
of frames that a traceback through the instruction shows. Owns the traceback entries of frames that never ran. Must not
know captured values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, FrameType, FunctionType, MappingProxyType, TracebackType
from typing import Any, Final

from dynamo.bytecode.decode import Place, location_table
from dynamo.report.errors import Steering
from eager import _native as eager_native
from eager.base.records import dataclass
from eager.base.tracebacks import OURS, owner_of

GENERATED: Final = "__framejit_generated__"  # a global of every generated function: its `Generated`
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The frames that a generated function replaces, outermost first.

    marks: for each instruction, how many of the frames a traceback shows. held: for each frame, (variable of the user, variable of
    the generated function with its value).
    """

    places: tuple[Place, ...]
    marks: tuple[int, ...]
    held: tuple[tuple[tuple[str, str], ...], ...]

    def entries(self, entry: TracebackType, skip: int, after: TracebackType | None) -> TracebackType | None:
        """Entries for the frames that `entry` shows, without the first `skip` frames, in front of `after`."""
        at = entry.tb_lasti // 2
        shown = self.marks[at] if 0 <= at < len(self.marks) else 1
        found = entry.tb_frame.f_locals
        for i in reversed(range(skip, min(shown, len(self.places)))):
            if owner_of(self.places[i].code.co_filename) != OURS:
                after = entry_at(self.places[i], after, _variables(found, self.held[i]))
        if isinstance(found, dict):  # before 3.13 the frame keeps this copy of its variables
            found.clear()
        return after


def _variables(found: Mapping[str, Any], held: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The user's variables of a frame."""
    variables = {name: found[text] for name, text in held if text in found}
    for name, value in list(variables.items()):
        if isinstance(value, CellType):
            del variables[name]
            with contextlib.suppress(ValueError):  # the cell is empty
                variables[name] = value.cell_contents
    return variables


def _never_run() -> Iterator[None]:
    yield


class Owner:
    """A placeholder, in traceback entries, of a frame that will run. frame: set when the frame starts."""

    __slots__ = ("frame",)
    frame: FrameType


def entry_at(
    place: Place, after: TracebackType | None, variables: Mapping[str, Any] = _NONE, owner: Owner | None = None,
    callers: tuple[Owner | dict[str, Any], ...] = (),
) -> TracebackType:  # fmt: skip
    """A traceback entry for a frame that never ran, with the user's names, file and position.

    variables: live as long as the traceback. owner: the placeholder of the frame, if the frame will run. callers: placeholders of
    the frames that called it, or the variables of those frames.

    The entry shows the frame of a generator that has not started, whose f_back is None: the real caller would keep objects alive
    that the user's function has dropped. The generator's function holds the callers, so that cycles through them can be collected.
    """
    code, position = place.code, place.position
    table = location_table(len(_never_run.__code__.co_code) // 2, code.co_firstlineno, position)
    stub = _never_run.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_filename=code.co_filename,
                                       co_firstlineno=code.co_firstlineno, co_linetable=table, co_argcount=len(variables),
                                       co_nlocals=len(variables), co_varnames=tuple(variables),
                                       co_consts=(place, owner))  # fmt: skip
    function = FunctionType(stub, place.globals, code.co_name)
    if callers:
        vars(function)["callers"] = callers
    return TracebackType(after, function(*variables.values()).gi_frame, 0, position[0])


def adopt(frame: FrameType, shown: tuple[Any, ...]) -> None:
    """Give the traceback entries of a placeholder to `frame`, which continues in its own code.

    Exceptions passed the frame while generated code replaced it. Their tracebacks get the real frame, whose variables then live
    as long as the tracebacks. shown: the placeholder, then the exceptions.
    """
    owner, *errors = shown
    owner.frame = frame
    for error in errors:
        after: TracebackType | None = None
        for entry in reversed(_entries(error)):
            place, theirs = (*entry.tb_frame.f_code.co_consts, None, None)[:2]
            if theirs is owner:
                after = TracebackType(after, frame, place.offset, entry.tb_lineno)
                entry.tb_frame.clear()
            else:
                if entry.tb_next is not after:
                    entry.tb_next = after
                after = entry
        error.__traceback__ = after


def traceback_of(
    frames: Sequence[tuple[Place, Mapping[str, Any], Owner | None]], after: TracebackType | None = None,
    callers: tuple[Owner | dict[str, Any], ...] = (),
) -> TracebackType | None:  # fmt: skip
    """Entries for frames, outermost first, in front of `after`.

    frames: the place of each frame, its variables, its placeholder. callers: of the outermost frame, whose entry holds them.
    """
    for i, (place, held, owner) in reversed([*enumerate(frames)]):
        if owner_of(place.code.co_filename) == OURS and owner is None and not (i == 0 and callers):
            continue
        variables = _variables(held, tuple((name, name) for name in held))
        after = entry_at(place, after, variables, owner, () if i else callers)
    return after


def _entries(error: BaseException) -> list[TracebackType]:
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found


def _is_generated(entry: TracebackType) -> bool:
    return GENERATED in entry.tb_frame.f_globals


def _is_made(entry: TracebackType) -> bool:
    """Whether `entry_at` made the entry."""
    constants = entry.tb_frame.f_code.co_consts
    return len(constants) == 2 and type(constants[0]) is Place


def _fresh_entries(error: BaseException) -> list[TracebackType]:
    """The entries up to the first entry of `entry_at`, which is included. That entry and all entries behind it are already tidy.

    A deep recursion passes through many regions, and each region tidies: a walk of the whole chain each time would be quadratic.
    """
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry)
        if _is_made(entry):
            break
        entry = entry.tb_next
    return found


def _tidied(entries: list[TracebackType], skip: int) -> TracebackType | None:
    """The traceback of these entries, with entries of generated functions replaced. skip: number of frames of the first entry to omit.

    Entries behind the last generated entry stay unchanged. A link that is already right is not set again, because CPython walks the
    rest of the chain at each assignment to find a loop.
    """
    end = next((i + 1 for i in reversed(range(len(entries))) if _is_generated(entries[i])), 0)
    after: TracebackType | None = entries[end] if end < len(entries) else entries[-1].tb_next if entries else None
    for i in reversed(range(end)):
        entry = entries[i]
        generated = entry.tb_frame.f_globals.get(GENERATED)
        if isinstance(generated, Generated):
            after = generated.entries(entry, skip if i == 0 else 0, after)
        elif GENERATED not in entry.tb_frame.f_globals:
            if entry.tb_next is not after:
                entry.tb_next = after
            after = entry
            continue
        if i or not skip:
            entry.tb_frame.clear()  # the remaining frames refer to this frame, and its variables must die now
    return after


def tidy_traceback(error: BaseException) -> None:
    """Remove frames of this library from a traceback, and insert the inlined frames of the user."""
    if error.__traceback__ is None:
        return
    fresh = _fresh_entries(error)
    tidy = fresh[-1] if _is_made(fresh[-1]) else None
    if tidy is not None and len(fresh) > 1:
        fresh[-2].tb_next = None
        eager_native.drop_library_frames(error)
        fresh = [*_fresh_entries(error), tidy]
        if len(fresh) > 1:
            fresh[-2].tb_next = tidy
        error.__traceback__ = fresh[0]
    elif tidy is None:
        eager_native.drop_library_frames(error)
        fresh = _fresh_entries(error)
    if any(map(_is_generated, fresh)):
        error.__traceback__ = _tidied(fresh, 0)


def caught(error: BaseException, frame: int) -> BaseException:
    """`error`, caught in a generated function that throws it into frame number `frame`; that frame adds its own entry."""
    error.__traceback__ = _tidied(_fresh_entries(error), frame + 1)
    return error


def forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of a handled error of the compiler, and of the errors that caused it.

    Their frames hold objects of the user, often in cycles. The cause of a compiler error is a compiler error too. Its __context__
    may be an exception of the user, which stays unchanged.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        before = error.__context__
        error = before if isinstance(before, Steering) else error.__cause__


def with_tracebacks(handled: Any, stack: list[Any]) -> list[Any]:
    """`stack`, after each exception on it, and the handled exception, has a traceback: the interpreter requires one."""
    for item in (handled, *stack):
        if isinstance(item, BaseException) and item.__traceback__ is None:
            give_traceback(item)
    return stack


def give_traceback(exception: BaseException) -> None:
    """Raise and catch `exception`: the interpreter requires a traceback of a handled exception."""
    context, cause, suppress = exception.__context__, exception.__cause__, exception.__suppress_context__
    try:
        raise exception
    except BaseException:  # noqa: BLE001 - exactly the one raised
        exception.__context__, exception.__cause__, exception.__suppress_context__ = context, cause, suppress
