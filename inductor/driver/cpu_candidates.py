"""The schedules of a CPU kernel that are worth timing, the default first.

Owns which numbers are tried. A candidate is scheduled and printed like the default, so that the same checks of dependences hold; it is
not compiled or run. Of candidates with the same text one is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from eager.base.dtypes import dtype
from inductor.base.choice import DEFAULT, Choice
from inductor.cpp.loops import cost_of, print_kernel
from inductor.cpp.units import Kernel as Printed
from inductor.cpp.units import Place
from inductor.loops.steps import Schedule, to_text
from inductor.loops.tree import Accumulate, Kernel, roots_of, walk
from inductor.plan.kernels import Unscheduled

__all__ = ["Candidate", "Machine", "call_places", "candidates", "description", "read_candidate", "record", "used_by"]

T = TypeVar("T")
_SERIAL: Final = 1 << 60  # nanoseconds: no loop takes as long
_SHORT_NS: Final = 16 * DEFAULT.parallel_ns


class Machine(NamedTuple):
    """The properties of a machine on which the candidates depend. simd_bits: of its widest vectors."""

    simd_bits: int
    threads: int


class Candidate(NamedTuple):
    """A schedule of a kernel, and the numbers that it was made with."""

    choice: Choice
    kernel: Kernel
    steps: Schedule

    def printed(self, places: Mapping[str, Place], title: str = "") -> Printed:
        """The functions of the kernel and the statements that run them."""
        made = print_kernel(self.kernel, places, self.choice.parallel_ns, title)
        return made._replace(code=made.code._replace(vector_bits=self.choice.vector_bits))


def call_places(memory: Mapping[str, tuple[dtype, Any]]) -> dict[str, Place]:
    """The place of each buffer in the call of a measured kernel: a separate entry."""
    return {name: Place(k, 0, of) for k, (name, (of, _)) in enumerate(memory.items())}


def used_by(found: Iterable[Candidate], memory: Mapping[str, tuple[dtype, T]]) -> dict[str, tuple[dtype, T]]:
    """The buffers that candidates have in memory."""
    names = {name for c in found for name in c.kernel.dtypes}
    return {name: of for name, of in memory.items() if name in names}


def candidates(plain: Unscheduled, memory: Mapping[str, tuple[dtype, Any]], machine: Machine) -> list[Candidate]:
    """The different schedules of a kernel, the default first. memory: dtype and bytes of its buffers."""
    places = call_places(memory)
    found: list[Candidate] = []
    known: set[tuple[Any, ...]] = set()
    for choice in _choices(plain, machine):
        candidate = Candidate(choice, *plain.scheduled(choice))
        printed = candidate.printed(places)
        text = printed.code, printed.call
        if text not in known:
            known.add(text)
            found.append(candidate)
    return found


def _choices(plain: Unscheduled, machine: Machine) -> Iterator[Choice]:
    """The default, then numbers that may matter for a kernel, each different from the default in one or two fields."""
    yield DEFAULT
    loops, _ = plain.scheduled(DEFAULT)
    with_ = DEFAULT._replace
    reduces = any(isinstance(x, Accumulate) for x in walk(loops.body))
    if machine.simd_bits == 512:
        yield with_(vector_bits=256)
    if machine.threads > 1 and _is_short(loops):
        yield from (with_(parallel_ns=ns) for ns in (8_000, 120_000, _SERIAL))
    yield from (with_(joins=n) for n in (1, 0))
    yield from (with_(streamed=n) for n in (1 << 16, 8 << 20, _SERIAL))
    if reduces:
        for size in (32, 128, 256):
            yield with_(lane_bytes=size)
        yield from (with_(column_bytes=n) for n in (1024, 2048, 4096, 16384))
        yield from (with_(groups=n) for n in (0, 2, 64))
        yield from (with_(staged=n) for n in (1 << 13, 1 << 17))
        yield from (with_(stage=n) for n in (2048, 32768))
        yield from (with_(side_by_side=n) for n in (1, 4))
        yield from (with_(scanned=n) for n in (1 << 13, 1 << 17))
        if machine.simd_bits == 512:
            yield with_(vector_bits=256, lane_bytes=128)
    else:
        yield from (with_(register_tiles=n) for n in ((8,), (16,), ()))
        yield from (with_(register_tiles=(), tile_rows=n) for n in ((), (16,), (128, 64, 32)))
        yield with_(register_tiles=(), tile_columns=(32, 16, 8))
        yield from (with_(tile_run=n) for n in (1, 4, 64))
    yield from (with_(parts=n) for n in ((), (64, 32), (512, 256)))
    yield from (with_(pieces=n) for n in (0, 12))
    yield from (with_(unmasked=n) for n in (1, 1 << 30))
    yield with_(stream_block=256)


def _is_short(loops: Kernel) -> bool:
    """Whether it is not sure that several threads are faster than one.

    Longer loops run in parallel in any case: a machine that other processes load while it measures must not decide this.
    """
    costs = [(count, each) for count, each in map(cost_of, roots_of(loops.body)[0])]
    return all(isinstance(count, int) and count * each.ns < _SHORT_NS for count, each in costs)


def description(choice: Choice) -> str:
    """The numbers that are not the default; "default" if all are."""
    parts = [f"{name}={_words(value)}" for name, value in _different(choice).items()]
    return ", ".join(parts) or "default"


def _words(value: Any) -> str:
    return "never" if value == _SERIAL else str(value)


def _different(choice: Choice) -> dict[str, Any]:
    return {name: value for name, value in choice._asdict().items() if value != getattr(DEFAULT, name)}


def _stored(choice: Choice) -> dict[str, Any]:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in _different(choice).items()}


def record(c: Candidate) -> dict[str, Any]:
    """A candidate as it is stored: the numbers that differ from the default, and the schedule as text."""
    return {"choice": _stored(c.choice), "schedule": to_text(c.steps)}


def read_candidate(found: Mapping[str, Any], plain: Unscheduled, machine: Machine) -> Choice | None:
    """The choice that `record` described, if a candidate of this version has it and it makes the same schedule."""
    for choice in _choices(plain, machine):
        if _stored(choice) == found.get("choice"):
            return choice if to_text(plain.scheduled(choice)[1]) == found.get("schedule") else None
    return None
