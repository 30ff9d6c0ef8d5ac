"""The fastest schedules of kernels on a GPU, stored on disk.

Owns the files, their keys, and the lookup of a schedule. It measures nothing. A key holds the source of the kernel's default schedule,
in which names of buffers do not occur, the device and the version of the compiler. A stored schedule that is not a candidate of this
version is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from inductor.artifact.cache import KERNEL_WINNER, PRODUCT_WINNER
from inductor.base.target import Target
from inductor.driver.gpu_candidates import Candidate, candidates, default_candidate, library_candidate, products_in
from inductor.driver.stored_winners import StoredWinners
from inductor.loops.tree import Kernel
from inductor.plan.gpu_schedule import DEFAULT, Choice, schedule_gpu
from inductor.plan.library_products import LibraryCall, library_products
from inductor.triton.kernel import Launches, Options
from inductor.triton.values import Unprintable

__all__ = ["Winners", "description", "is_fixed"]

_FORMAT: Final = 1


class Winners:
    """The schedules measured so far on one device, each read from disk at its first lookup.

    device: the text that names the device and the version of the compiler. library: the version of the library of matrix products; 0
    without one. A product of another version is ignored. descriptors: whether products with descriptors of their operands are candidates.
    """

    def __init__(self, folder: Path, device: str, library: int = 0, descriptors: bool = False) -> None:
        self._stored: StoredWinners[_Winner] = StoredWinners(folder)
        self._device, self.library, self.descriptors = device, library, descriptors

    def key(self, default: Candidate, target: Target) -> str:
        """The key of a kernel. default: its default schedule. Raises: Unprintable."""
        printed = default.printed("kernel")
        parts = [f"{_FORMAT}|{self._device}|{target.name}|{default.options}{'|descriptors' if self.descriptors else ''}"]
        parts += [f"{k.source}# {k.grid} programs of {k.num_warps} warps, {k.num_stages} stages, {[d.name for d in k.dtypes]}, {k.sizes}"
                  for k in printed.kernels]  # fmt: skip
        parts += [f"# scratch of {x.size} {x.dtype.name}" for x in printed.scratch]
        return "\n".join(parts)

    def find(self, key: str, loops: Kernel, target: Target, options: Options) -> Candidate | None:
        """The stored schedule of a kernel for `loops`; None if none is stored."""
        def candidate(found: Mapping[str, Any]) -> _Winner | None:
            if found.get("library") is not None:
                return _LibraryRecord.read(found["library"], self.library)
            for c in candidates(loops, target, options.precision, self.descriptors):
                if json.loads(json.dumps(_record(c))) == {name: found.get(name) for name in _record(c)}:
                    return c.choice, c.options
            return None

        known = self._stored.find(key, candidate, _prefix(loops))
        if known is None:
            return None
        # Made for these loops: kernels of one key may have other buffers.
        if isinstance(known, _LibraryRecord):
            call = known.call(loops, options)
            return None if call is None else library_candidate(loops, target, call)
        return Candidate(*schedule_gpu(loops, target, known[0]), known[1], known[0])

    def remember(self, key: str, loops: Kernel, chosen: Candidate, seconds: Mapping[str, float]) -> None:
        """Store a schedule, in this process and on disk. seconds: the measured times, by the candidate's description."""
        measured = {name: round(s * 1e6, 3) for name, s in seconds.items()}
        record = {**_record(chosen), "us": measured.get(description(chosen)), "measured_us": measured}
        winner = (chosen.choice, chosen.options) if chosen.library is None else _LibraryRecord.of(chosen.library)
        self._stored.remember(key, winner, record, _prefix(loops))

    def choose(self, loops: Kernel, target: Target, options: Options) -> Candidate:
        """The stored schedule of a kernel, else the default (see `inductor.driver.cuda.Choose`)."""
        default = default_candidate(loops, target, options)
        try:
            if not is_fixed(default.printed("kernel")):
                return default
            return self.find(self.key(default, target), loops, target, options) or default
        except Unprintable:
            return default

    def choose_product(self, loops: Kernel, target: Target, options: Options) -> Candidate:
        """The stored schedule of a product, else the default."""
        choose = self.choose if products_in(loops) and self._stored.folder.is_dir() else default_candidate
        return choose(loops, target, options)


class _LibraryRecord(NamedTuple):
    """A `LibraryCall` without its product. algorithm: in hex."""

    way: int
    number: int
    algorithm: str
    workspace_bytes: int
    version: int

    @staticmethod
    def of(call: LibraryCall) -> _LibraryRecord:
        return _LibraryRecord(call.way, call.number, call.algorithm.hex(), call.workspace_bytes, call.version)

    @staticmethod
    def read(found: Any, version: int) -> _LibraryRecord | None:
        """The record on disk, if it is of this version of the library."""
        try:
            made = _LibraryRecord(**found)
            bytes.fromhex(made.algorithm)
        except (TypeError, ValueError):
            return None
        numbers = (made.way, made.number, made.workspace_bytes)
        return made if made.version == version and all(isinstance(n, int) and n >= 0 for n in numbers) else None

    def call(self, loops: Kernel, options: Options) -> LibraryCall | None:
        """The call for a kernel; None if the kernel has no such product."""
        ways = library_products(loops)
        if self.way >= len(ways):
            return None
        algorithm, is_tf32 = bytes.fromhex(self.algorithm), options.precision == "tf32"
        return LibraryCall(ways[self.way], self.way, self.number, algorithm, self.workspace_bytes, self.version, is_tf32)


_Winner: TypeAlias = tuple[Choice, Options] | _LibraryRecord


def _prefix(loops: Kernel) -> str:
    return PRODUCT_WINNER if products_in(loops) else KERNEL_WINNER


def is_fixed(printed: Launches) -> bool:
    """Whether all sizes of the kernels are known: others are not measured, since they serve many sizes."""
    return all(not k.sizes and isinstance(k.grid, int) for k in printed.kernels)


def description(c: Candidate) -> str:
    """Sizes of tiles that are not the default, warps and stages; "default" if everything is. For a library: the algorithm."""
    if c.library is not None:
        return f"cuBLASLt algorithm {c.library.number}{' and a kernel' if c.kernel.body else ''}"
    parts = [f"{name}={value}" for name, value in c.choice._asdict().items() if value != getattr(DEFAULT, name)]
    parts += [f"{c.options.num_warps} warps"] if c.options.num_warps else []
    parts += [f"{c.options.num_stages} stages"] if c.options.num_stages else []
    return ", ".join(parts) or "default"


def _record(c: Candidate) -> dict[str, Any]:
    """A candidate without its loops."""
    if c.library is not None:
        return {"library": _LibraryRecord.of(c.library)._asdict()}
    return {"choice": c.choice._asdict(), "num_warps": c.options.num_warps, "num_stages": c.options.num_stages}

