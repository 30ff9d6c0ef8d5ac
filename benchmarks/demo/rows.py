"""The demo's table.

Owns a row and its text. It does not depend on the models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich import box
from rich.table import Table

from benchmarks.demo.counters import Counts
from benchmarks.harness import fmt

HEADINGS = (
    "",
    "first\ncall, s",
    "warm\ncall, ms",
    "speed-\nup",
    "graphs",
    "graph\nbreaks",
    "recom-\npiles",
    "cache\nhits",
    "break-\neven",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One variant. counts and eager_ms are None for the eager row itself; missing: the reason why it was not measured."""

    name: str
    first_s: float = math.nan
    warm_ms: float = math.nan
    eager_ms: float | None = None
    counts: Counts | None = None
    missing: str | None = None

    @property
    def speedup(self) -> float | None:
        """Eager's time divided by this variant's."""
        return None if self.eager_ms is None else self.eager_ms / self.warm_ms

    @property
    def break_even(self) -> float | None:
        """The number of calls after which the time saved exceeds the compile time; infinite if no time is saved."""
        if self.eager_ms is None:
            return None
        saved_ms = self.eager_ms - self.warm_ms
        return math.inf if saved_ms <= 0 else max(0.0, self.first_s * 1e3 - self.warm_ms) / saved_ms

    def cells(self) -> list[str]:
        """The row's text, in the order of HEADINGS."""
        if self.missing is not None:
            return [self.name, "left out"]
        timed = [self.name, f"{self.first_s:.2f}", fmt(self.warm_ms)]
        if self.counts is None or self.speedup is None or self.break_even is None:
            return [*timed, "", "", "", "", "", ""]
        calls = "never" if math.isinf(self.break_even) else f"{math.ceil(self.break_even)}"
        c = self.counts
        counted = [str(n) for n in (c.graphs, c.breaks, c.recompiles, c.cache_hits)]
        return [*timed, f"{self.speedup:.2f}x", *counted, calls]


def table(rows: list[Row], caption: str) -> Table:
    """The table, within 80 columns; the caption names the rows that were left out, and why."""
    reasons = [f"{row.name} was left out: {row.missing}." for row in rows if row.missing is not None]
    caption = " ".join([*reasons, caption])
    shown = Table(caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for i, heading in enumerate(HEADINGS):
        shown.add_column(heading, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        shown.add_row(*row.cells())
    return shown
