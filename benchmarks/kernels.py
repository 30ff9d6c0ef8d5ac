"""`python -m benchmarks kernels`: graphs of a few ops, compiled, beside torch.compile and numpy's copy.

Owns the order of measurements, the table and its verdicts. `kernel_rows` has the programs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from rich.table import Table

from benchmarks import kernel_rows
from benchmarks.harness import Progress, fmt
from benchmarks.peers import PeerError, Runs, Variant, Worker, agreement, interleave
from benchmarks.rows import Row, chosen

__all__ = ["Kernel", "measured", "table"]

COPY_AT_MOST: Final = 1.3  # least time of a memory-bound row, in copies of the same bytes
_TOLERANCE: Final = {"reduction": 1e-4, "product": 1e-4}
_SLICES: Final = 5


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row, measured. ms: by variant. ratios: torch.compile's time over ours, by run; likewise eager_ratios, torch's eager.

    copies: our time in copies of the same bytes, None unless memory bounds the row. gflops: None unless arithmetic does.
    """

    name: str
    group: str
    threads: int
    ms: dict[str, float]
    ratios: list[float] = field(default_factory=list)
    eager_ratios: list[float] = field(default_factory=list)
    required: float = 0.0
    copies: float | None = None
    gflops: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Torch.compile's time over ours: the middle run."""
        return median(self.ratios) if self.ratios else None

    @property
    def holds(self) -> bool | None:
        """Whether two of three runs reach the required ratio; None if there is no peer."""
        if self.note:
            return False
        return None if self.ratio is None else self.ratio >= self.required


def measured(*, torch_at: str | None, threads: Sequence[int], text: str | None, runs: int, mode: str) -> list[Kernel]:
    """Measure the rows whose name contains `text`. torch_at: an interpreter that has torch; None omits its columns.

    mode: framejit's mode of torch.compile; torch runs its default.
    """
    rows = chosen(kernel_rows.ROWS, text)
    with tempfile.TemporaryDirectory() as folder, Progress(len(rows) * len(threads)) as progress:
        return [k for n in threads for k in _with_threads(rows, n, torch_at, Path(folder), runs, mode, progress)]


def _with_threads(
    rows: Sequence[Row], threads: int, torch_at: str | None, folder: Path, runs: int, mode: str, progress: Progress
) -> Iterator[Kernel]:
    with ExitStack() as stack:
        ours = stack.enter_context(Worker(sys.executable, "eager", threads, folder))
        peer = None if torch_at is None else stack.enter_context(Worker(torch_at, "torch", threads, folder))
        for row in rows:
            progress.step(f"{row.name}, {threads} thread{'s' * (threads > 1)}")
            try:
                yield _measure(row, threads, ours, peer, runs, mode)
            except PeerError as error:
                yield Kernel(row.name, row.group, threads, {}, note=str(error))


def _measure(row: Row, threads: int, ours: Worker, peer: Worker | None, runs: int, mode: str) -> Kernel:
    variants = {"framejit": Variant(ours, "compiled")}
    if row.nbytes:
        variants["copy"] = Variant(ours, "copy")
    if peer is not None:
        variants |= {"torch.compile": Variant(peer, "compiled"), "torch eager": Variant(peer, "eager")}
    ours.request("open", row=row.name, suite="kernel_rows", mode=mode)
    if peer is not None:
        peer.request("open", row=row.name, suite="kernel_rows", mode="default")
    for variant in variants.values():
        variant.worker.request("warm", variant=variant.name)
    note = _difference(row, variants)
    return _kernel(row, threads, interleave(variants, runs=runs, slices=_SLICES), note)


def _difference(row: Row, variants: dict[str, Variant]) -> str:
    if "torch eager" not in variants:
        return ""
    ours, theirs = (
        variants[name].worker.request("sample", variant=variants[name].name)["values"] for name in ("framejit", "torch eager")
    )
    return agreement(ours, theirs, 2e-2 if "bfloat16" in row.name else _TOLERANCE.get(row.group, 2e-4))


def _kernel(row: Row, threads: int, times: Runs, note: str) -> Kernel:
    ms = {name: times.ms(name) for name in times.seconds}
    with_peer = "torch.compile" in ms
    return Kernel(
        row.name,
        row.group,
        threads,
        ms,
        times.ratios("torch.compile", "framejit") if with_peer else [],
        times.ratios("torch eager", "framejit") if with_peer else [],
        kernel_rows.REQUIRED[row.group],
        median(times.ratios("framejit", "copy")) if row.nbytes else None,
        row.flops / ms["framejit"] / 1e6 if row.flops else None,
        note,
    )


def table(found: Sequence[Kernel]) -> Table:
    """The measured rows; red where a requirement is missed."""
    made = Table(title="kernels", title_justify="left")
    for heading in ("kernel", "threads", "framejit, ms", "torch.compile", "eager", "ratio", "of eager", "required", "copies", "GFLOP/s"):
        made.add_column(heading, justify="left" if heading == "kernel" else "right")
    made.add_column("")
    for k in found:
        ratio = "" if k.ratio is None else f"{k.ratio:.2f}"
        eager = f"{median(k.eager_ratios):.2f}" if k.eager_ratios else ""
        copies = "" if k.copies is None else f"{k.copies:.2f}"
        marks = {None: "", True: "[green]holds[/green]", False: "[red]missed[/red]"}
        made.add_row(
            k.name, str(k.threads), *(fmt(k.ms[v]) if v in k.ms else "" for v in ("framejit", "torch.compile", "torch eager")),
            ratio, eager, f"{k.required:g}", f"[red]{copies}[/red]" if (k.copies or 0) > COPY_AT_MOST else copies,
            "" if k.gflops is None else f"{k.gflops:.0f}", " ".join(filter(None, (marks[k.holds], k.note))),
        )  # fmt: skip
    return made
