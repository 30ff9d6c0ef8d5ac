"""Rows of an accuracy table: their fields, the limit on their errors, and their printed form.

This module does not depend on the functions that are measured. It reads only figures of torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

ROOT: Final = Path(__file__).parents[2]
STORED: Final = ROOT / "tests" / "data" / "accuracy_torch.json"
MODES: Final = ("eager", "compiled")
SEPARATOR: Final = " | "  # between the labels of a key
ALLOWED: Final = 2.0  # times torch's error

Figures = dict[str, float]  # key of a row -> error


class Half(Protocol):
    """One table. HEADERS: names of the labels that a key joins with `SEPARATOR`. UNIT: unit of the errors.
    FLOOR: errors up to this limit always pass. measure: errors of the module `torch` in `mode`, "eager" or "compiled"."""

    TITLE: str
    HEADERS: tuple[str, ...]
    UNIT: str
    FLOOR: float

    def measure(self, torch: Any, mode: str) -> Figures: ...


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the labels, our error in one mode, torch's error if it is known."""

    labels: tuple[str, ...]
    mode: str
    error: float
    torch: float | None

    def is_worse(self, floor: float) -> bool:
        """Whether the error is more than twice torch's and more than `floor`. A nan is always worse."""
        limit = floor if self.torch is None or self.torch != self.torch else max(floor, ALLOWED * self.torch)
        return not self.error <= limit and self.torch is not None


def rows(ours: Mapping[str, Figures], torch: Figures) -> list[Row]:
    """Rows of all modes, grouped by key. ours: figures by mode."""
    keys = list(dict.fromkeys(key for figures in ours.values() for key in figures))
    return [Row(tuple(key.split(SEPARATOR)), mode, ours[mode][key], torch.get(key))
            for key in keys for mode in ours if key in ours[mode]]  # fmt: skip


def print_table(half: Half, table: Sequence[Row]) -> int:
    """Print the table; returns how many rows are worse than allowed."""
    headers = [*half.HEADERS, "mode", f"error ({half.UNIT})", "torch", ""]
    lines = [[*row.labels, row.mode, f"{row.error:.3g}", "-" if row.torch is None else f"{row.torch:.3g}",
              "WORSE" if row.is_worse(half.FLOOR) else ""] for row in table]  # fmt: skip
    widths = [max(len(line[k]) for line in [headers, *lines]) for k in range(len(headers))]
    print(f"\n{half.TITLE}")
    for line in [headers, ["-" * w for w in widths], *lines]:
        print("  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip())
    worse = sum(row.is_worse(half.FLOOR) for row in table)
    print(f"{worse} of {len(table)} rows are worse than {ALLOWED:g} times torch's error (floor {half.FLOOR:g} {half.UNIT})")
    return worse


def torch_figures(python: str, modules: Iterable[str]) -> dict[str, Figures]:
    """The errors of torch itself, by module of this package, measured by another Python."""
    program = ("import importlib, json, sys, torch\n"
               f"sys.path.insert(0, {str(ROOT)!r})\n"
               f"names = {list(modules)!r}\n"
               "halves = {n: importlib.import_module('tests.accuracy.' + n).measure(torch, 'eager') for n in names}\n"
               "print(json.dumps(halves))")  # fmt: skip
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd="/", check=False)
    if done.returncode:
        sys.exit(f"tests.accuracy: {python} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def stored_figures() -> dict[str, Figures]:
    """The errors of torch that are stored with the tests, by module."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def store_figures(figures: Mapping[str, Figures]) -> None:
    """Write torch's errors with two digits each. Tables that were not measured keep their stored figures."""
    rounded = {name: {key: float(f"{error:.2g}") for key, error in half.items()} for name, half in figures.items()}
    STORED.write_text(json.dumps({**stored_figures(), **rounded}, indent=0, sort_keys=True) + "\n")
