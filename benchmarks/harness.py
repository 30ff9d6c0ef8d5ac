"""Timing: interleaved runs, medians, and a check that the machine was calm.

Owns timing loops, the record of one measurement, JSON and tables. It does not depend on the measured code.

Two variants are always compared inside one process and in turn (A B A B ...), so that a busy neighbour slows both; on a loaded
machine, compare the ratio of their medians.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

CALM_NUMPY_ADD_US = 0.5
CALM_GXX_S = 0.05
_WIDTH = 170  # of a table in a file
_CALM_FACTOR = 1.6  # above this factor a figure depends more on other load than on the code

_KERNEL = """
extern "C" void kernel(float *__restrict__ y, const float *__restrict__ x, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] * 2.0f + 1.0f;
}
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity. limit: the largest value that passes (None: no limit). peer: torch's, if measured."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    peer: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the value is within the limit; None without a limit."""
        return None if self.limit is None else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Calm:
    """The two reference times of a calm machine, measured now."""

    numpy_add_us: float
    gxx_s: float | None

    @property
    def factor(self) -> float:
        """The slowdown against a calm machine: 1 is calm; the larger of the two ratios."""
        ratios = [self.numpy_add_us / CALM_NUMPY_ADD_US]
        if self.gxx_s is not None:
            ratios.append(self.gxx_s / CALM_GXX_S)
        return max(ratios)

    def __str__(self) -> str:
        gxx = "no g++" if self.gxx_s is None else f"g++ of an include-free kernel {self.gxx_s:.3f} s"
        verdict = "calm" if self.factor <= _CALM_FACTOR else f"loaded or slow, {self.factor:.1f}x: read the ratios"
        return f"machine: numpy x+y of 8 elements {self.numpy_add_us:.2f} us, {gxx} ({verdict})"


def call_us(fn: Callable[[], Any], *, repeats: int = 9, target_s: float = 0.01) -> float:
    """Median microseconds of one `fn()`, over `repeats` runs of about `target_s` each."""
    fn()
    number = 1
    while True:
        elapsed = _run(fn, number)
        if elapsed >= target_s / 4:
            break
        number *= 4
    number = max(1, round(number * target_s / elapsed))
    return median(_run(fn, number) / number for _ in range(repeats)) * 1e6


def _run(fn: Callable[[], Any], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        fn()
    return time.perf_counter() - start


def interleaved_ms(variants: dict[str, Callable[[], Any]], *, rounds: int, warmup: int = 1) -> dict[str, float]:
    """Median milliseconds of each variant, run in turn `rounds` times after `warmup` unmeasured rounds."""
    for _ in range(warmup):
        for fn in variants.values():
            fn()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, fn in variants.items():
            start = time.perf_counter()
            fn()
            times[name].append(time.perf_counter() - start)
    return {name: median(values) * 1e3 for name, values in times.items()}


def calm() -> Calm:
    """Measure the reference times."""
    x = np.ones(8, dtype=np.float32)
    gxx = shutil.which("g++")
    return Calm(call_us(lambda: x + x), None if gxx is None else _gxx_s(gxx))


def _gxx_s(gxx: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(_KERNEL)
        command = [gxx, "-O2", "-nostdlib", "-shared", "-fPIC", "-o", str(source.with_suffix(".so")), str(source)]
        times = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            times.append(time.perf_counter() - start)
        return median(times)


def fmt(value: float) -> str:
    """Three significant figures, without an exponent for the sizes that occur here."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


class Progress:
    """Names the row that is measured, on standard error: in one line of a terminal, else a line each. total: rows."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._status = Console(stderr=True).status("")

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def step(self, text: str) -> None:
        """Begin the next row."""
        self._done += 1
        line = f"{self._done} of {self._total}: {text}"
        if sys.stderr.isatty():
            self._status.update(line)
        else:
            print(line, file=sys.stderr, flush=True)


def show(title: str, table: Table, figures: Sequence[Any], conditions: Calm, json_path: Path | None) -> None:
    """Print a table of figures (dataclasses), and write them as JSON."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(str(conditions), highlight=False)
    console.print(table)
    if json_path is not None:
        data = {"title": title, "machine": asdict(conditions), "figures": [asdict(f) for f in figures]}
        json_path.write_text(json.dumps(data, indent=1) + "\n")
        console.print(f"written to {json_path}", highlight=False)


def report(title: str, figures: Sequence[Figure], conditions: Calm, json_path: Path | None) -> None:
    """Print one table, with torch's column if it was measured, and write it as JSON."""
    with_peer = any(figure.peer is not None for figure in figures)
    table = Table(title=title, title_justify="left")
    for heading in ("what", "framejit", *(["torch"] if with_peer else []), "unit", "at most", ""):
        table.add_column(heading, justify="left" if heading in ("what", "unit", "") else "right")
    marks = {None: "", True: "[green]holds[/green]", False: "[red]missed[/red]"}
    for f in figures:
        peer = [fmt(f.peer) if f.peer is not None else ""] if with_peer else []
        limit = fmt(f.limit) if f.limit is not None else ""
        table.add_row(f.name, fmt(f.value), *peer, f.unit, limit, " ".join(filter(None, (marks[f.holds], f.note))))
    show(title, table, figures, conditions, json_path)
