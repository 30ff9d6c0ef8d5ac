"""`python -m benchmarks gpu`: programs on a CUDA device, beside torch eager and torch.compile where torch is installed.

Owns the order of measurements, the time budget and the table. Each library has one process; both compile a row at the same time, and
are measured in turn. The figures are written after each row, so that a run that is cut keeps them.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks.harness import Progress
from benchmarks.rows import chosen

__all__ = ["Measured", "measured", "table"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_ROUNDS: Final = 3
_OURS, _THEIRS = "eager", "torch"
_NAMES: Final = {_OURS: "framejit", _THEIRS: "torch"}


@dataclass(slots=True)
class Measured:
    """One row. us, cpu_us: time of a run, and of its calls alone, by "library mode". first_s: of the first run, compilation included.

    gbps, tflops: of framejit's default mode, for rows with known bytes or operations. errors: by "library mode".
    """

    name: str
    group: str
    us: dict[str, float] = field(default_factory=dict)
    cpu_us: dict[str, float] = field(default_factory=dict)
    first_s: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    gbps: float = 0.0
    tflops: float = 0.0

    def ratio(self, mode: str) -> float | None:
        """torch.compile's time over ours in a mode."""
        ours, theirs = self.us.get(f"framejit {mode}"), self.us.get(f"torch {mode}")
        return theirs / ours if ours and theirs else None


class _Process:
    """One process of `benchmarks.gpu_worker`."""

    def __init__(self, python: str, library: str, scale: int, log: Path) -> None:
        self._errors = log.open("w")
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.gpu_worker", library, str(scale)], cwd=_ROOT, env=os.environ | {"PYTHONPATH": _path()},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip

    def send(self, do: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `receive` reports that it has ended
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"its process has ended with status {self._process.poll()}"}

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()


def _path() -> str:
    return os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def measured(
    *, python: str, torch_at: str | None, text: str | None, seconds: float, scale: int, out: Path | None, rows: Sequence[Any],
    modes: Sequence[str],
) -> list[Measured]:
    """Measure the rows within about `seconds`.

    python: the interpreter for framejit. torch_at: an interpreter with torch, None to measure framejit alone. scale: divisor of the
    sizes. modes: of compile, the measured ones among each row's. out: a folder for the figures and the logs of the processes.
    """
    until = time.monotonic() + seconds
    folder = out or Path(".")
    libraries = {_OURS: python} | ({_THEIRS: torch_at} if torch_at else {})
    processes = {name: _Process(at, name, scale, folder / f"gpu-{_NAMES[name]}.log") for name, at in libraries.items()}
    found: list[Measured] = []
    try:
        wanted = chosen(rows, text)
        with Progress(len(wanted)) as progress:
            for row in wanted:
                if time.monotonic() > until:
                    break
                progress.step(row.name)
                found.append(_row(row, [m for m in row.modes if m in (*modes, "eager")], processes, scale))
                if out is not None:
                    (out / "gpu.json").write_text(json.dumps([asdict(m) for m in found], indent=1))
    finally:
        for p in processes.values():
            p.close()
    return found


def _row(row: Any, measured_modes: Sequence[str], processes: dict[str, _Process], scale: int) -> Measured:
    made = Measured(row.name, row.group)
    modes = {_OURS: measured_modes, _THEIRS: measured_modes if row.group == "memory" else ("eager", *measured_modes)}
    ready = [(library, mode) for mode in dict.fromkeys((*measured_modes, "eager")) for library in processes if mode in modes[library]]
    for mode in dict.fromkeys(m for _, m in ready):
        asked = [library for library, m in ready if m == mode]
        for library in asked:
            processes[library].send("warm", row=row.name, mode=mode)
        for library in asked:
            answer = processes[library].receive()
            key = f"{_NAMES[library]} {mode}"
            made.first_s[key] = answer.get("s", 0.0)
            if "error" in answer:
                made.errors[key] = answer["error"]
    timings: dict[str, list[dict[str, float]]] = {}
    for _ in range(_ROUNDS):
        for library, mode in ready:
            key = f"{_NAMES[library]} {mode}"
            if key in made.errors:
                continue
            processes[library].send("time", row=row.name, mode=mode, seconds=0.05)
            answer = processes[library].receive()
            if "error" in answer:
                made.errors[key] = answer["error"]
            else:
                timings.setdefault(key, []).append(answer)
    for p in processes.values():
        p.send("drop")
        p.receive()
    for key, answers in timings.items():
        made.us[key], made.cpu_us[key] = (median(a[what] for a in answers) for what in ("us", "cpu_us"))
    ours_us = made.us.get("framejit default", made.us.get("framejit eager", 0.0))
    if ours_us:
        made.gbps, made.tflops = row.nbytes / scale / ours_us / 1e3, row.flops / ours_us / 1e6 if scale == 1 else 0.0
    return made


def table(rows: Sequence[Measured]) -> Table:
    """A line for each row: times in microseconds, torch.compile's time over ours in each mode."""
    made = Table("row", "us", "GB/s", "TFLOP/s", "torch eager", "torch default", "ratio", "other mode", "us ", "ratio ", "cpu us", "errors")
    for m in rows:
        other = next((key.removeprefix("framejit ") for key in m.us if key.startswith("framejit ") and key != "framejit default"), "")
        made.add_row(
            m.name,
            *(_number(m.us.get("framejit default")), _number(m.gbps), _number(m.tflops), _number(m.us.get("torch eager"))),
            *(_number(m.us.get("torch default")), _ratio(m.ratio("default")), other, _number(m.us.get(f"framejit {other}"))),
            *(_ratio(m.ratio(other)), _number(m.cpu_us.get(f"framejit {other or 'default'}"))),
            "; ".join(f"{k}: {v[:160]}" for k, v in m.errors.items()),
        )
    return made


def _number(x: float | None) -> str:
    return "" if not x else f"{x:.0f}" if x >= 100 else f"{x:.1f}"


def _ratio(x: float | None) -> str:
    return "" if x is None else f"{x:.2f}"
