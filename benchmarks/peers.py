"""Measuring processes, and runs of their variants in turn.

Owns the processes of `benchmarks.worker`, the order of timings and the statistics. It does not depend on the rows.

A timing takes one slice of each variant in turn (A B C A B C ...), so that other load slows all of them. A ratio is the median
over the slices of one run; of three runs, two decide.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Final

__all__ = ["PeerError", "Runs", "Variant", "Worker", "agreement", "interleave"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_PAUSE_S: Final = 0.004  # threads of a library may spin for this time after a call
_SLICE_S: Final = 0.03


class PeerError(RuntimeError):
    """A measuring process reports an error, or has ended."""


class Worker:
    """One process of `benchmarks.worker`. library: "eager" (framejit), "torch", "onnxruntime" or "openvino".

    cache: the folder of code that the library compiles.
    """

    def __init__(self, python: str, library: str, threads: int, cache: Path) -> None:
        self.library = library
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        folders = {"FRAMEJIT_CACHE_DIR": str(cache / "framejit"), "TORCHINDUCTOR_CACHE_DIR": str(cache / "torch")}
        self._errors = cache / f"{library}-{threads}.log"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.worker", library, str(threads)],
                cwd=_ROOT,
                env={**kept, **folders, "OMP_NUM_THREADS": str(threads)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def request(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request. Raises: PeerError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            last = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
            raise PeerError(f"the process of {self.library} has ended: {' '.join(last)}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.library}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the open row of a worker."""

    worker: Worker
    name: str


@dataclass(slots=True)
class Runs:
    """Timings of several variants: seconds of one call, by variant, run and slice."""

    seconds: dict[str, list[list[float]]] = field(default_factory=dict)

    def ms(self, variant: str) -> float:
        """Median over all slices."""
        return median(s for run in self.seconds[variant] for s in run) * 1e3

    def ratios(self, slower: str, faster: str) -> list[float]:
        """How often `faster` fits into the time of `slower`, by run: the median over pairs of neighbouring slices."""
        pairs = zip(self.seconds[slower], self.seconds[faster], strict=True)
        return [median(a / b for a, b in zip(*pair, strict=True)) for pair in pairs]


def interleave(variants: dict[str, Variant], *, runs: int, slices: int) -> Runs:
    """Time warm variants in turn. A slice holds as many calls as fit into 30 ms, at least one."""
    counts = {}
    for name, variant in variants.items():
        once = min(variant.worker.request("time", variant=variant.name, count=1)["s"] for _ in range(2))
        counts[name] = max(1, round(_SLICE_S / max(once, 1e-7)))
    found = Runs({name: [] for name in variants})
    for _ in range(runs):
        run: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(slices):
            for name, variant in variants.items():
                time.sleep(_PAUSE_S)
                answer = variant.worker.request("time", variant=variant.name, count=counts[name])
                run[name].append(answer["s"] / counts[name])
        for name, times in run.items():
            found.seconds[name].append(times)
    return found


def agreement(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], tolerance: float) -> str:
    """"" if samples of all results agree within `tolerance` of their largest element, else a note."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, peer {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if len(a) != len(b):
            return f"result {i} has another size"
        scale = max((abs(x) for x in b), default=0.0) or 1.0
        worst = max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)
        if not worst <= tolerance * scale:
            return f"result {i} differs by {worst / scale:.1e}"
    return ""
