"""`python -m benchmarks models`: networks beside torch's best mode, ONNX Runtime and OpenVINO; time and memory.

Owns the order of measurements, the table and its verdicts. `model_rows` has the programs. Each row and library has its own process,
whose largest resident memory includes compilation.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from rich.table import Table

from benchmarks import model_rows
from benchmarks.harness import Progress, fmt
from benchmarks.peers import PeerError, Variant, Worker, agreement, interleave
from benchmarks.rows import Row, chosen

__all__ = ["Model", "measured", "table"]

ENGINES: Final = ("onnxruntime", "openvino")
_OURS: Final = "framejit"
_NO_PEERS: Final = (_OURS, "eager", "torch eager")  # variants that the required ratio does not refer to
_ROOT: Final = Path(__file__).resolve().parent.parent
_EXPORT_S: Final = 600
_SLICES: Final = 3
_TOLERANCE: Final = 5e-3


@dataclass(frozen=True, slots=True)
class Model:
    """One row, measured. ms, peak_mb and running_mb (without compilation): by variant. ratios: a variant's time over ours, by run.

    required: least ratio to the fastest peer; eager_required: to this project's eager execution, 0 if there is no requirement.
    """

    name: str
    group: str
    threads: int
    ms: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    running_mb: dict[str, float] = field(default_factory=dict)
    first_s: dict[str, float] = field(default_factory=dict)
    required: float = 0.0
    eager_required: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The fastest peer's time over ours: the middle run. None without peers."""
        return min((median(r) for name, r in self.ratios.items() if name not in _NO_PEERS), default=None)

    @property
    def memory(self) -> float | None:
        """Our largest memory over torch's; in training the smaller of torch's two processes counts. None without torch."""
        rivals = [self.peak_mb[n] for n in ("torch", *(["torch eager"] * (self.group == "training"))) if n in self.peak_mb]
        return self.peak_mb[_OURS] / min(rivals) if rivals and _OURS in self.peak_mb else None

    @property
    def misses(self) -> list[str]:
        """The requirements that the row does not meet."""
        found = list(self.notes)
        if _OURS not in self.ms:
            return found
        if self.ratio is not None and self.ratio < self.required:
            found.append("time")
        if self.memory is not None and self.memory > 1:
            found.append("memory")
        if "eager" in self.ratios and median(self.ratios["eager"]) < self.eager_required:
            found.append(f"less than {self.eager_required:g} x eager")
        return found


def measured(*, torch_at: str | None, threads: Sequence[int], text: str | None, runs: int, mode: str) -> list[Model]:
    """Measure the rows whose name contains `text`. torch_at: an interpreter that has torch and may have the engines.

    mode: framejit's mode of torch.compile.
    """
    rows = chosen(model_rows.ROWS, text)
    engines = [e for e in ENGINES if torch_at is not None and _has(torch_at, e)]
    with tempfile.TemporaryDirectory() as name, Progress(len(rows) * len(threads)) as progress:
        found = []
        for i, row in enumerate(rows):
            folder = Path(name) / str(i)
            folder.mkdir()
            note = ""
            if engines and row.group == "inference" and torch_at is not None:
                note = _export(torch_at, row, folder)
            usable = engines if row.group == "inference" and not note else []
            for count in threads:
                progress.step(f"{row.name}, {count} thread{'s' * (count > 1)}")
                found.append(_measure(row, count, torch_at, usable, folder, runs, mode, note))
        return found


def _has(python: str, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def _export(python: str, row: Row, folder: Path) -> str:
    """Write the row's model as ONNX; a note if it cannot be exported."""
    command = [python, "-m", "benchmarks.onnx_export", row.name, str(folder)]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_EXPORT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no ONNX export in {_EXPORT_S} s"
    return "" if done.returncode == 0 else f"no ONNX export: {done.stderr.strip().splitlines()[-1][:80]}"


def _measure(
    row: Row, threads: int, torch_at: str | None, engines: Sequence[str], folder: Path, runs: int, mode: str, note: str
) -> Model:
    notes = [note] if note else []
    eager_required = model_rows.EAGER_REQUIRED.get(row.name, 0.0)
    with ExitStack() as stack:
        variants: dict[str, Variant] = {}
        first_s: dict[str, float] = {}

        def begin(name: str, python: str, library: str, variant: str, target: str, mode: str) -> None:
            place = folder / f"{name.replace(' ', '-')}-{threads}"
            place.mkdir(exist_ok=True)
            worker = stack.enter_context(Worker(python, library, threads, place))
            try:
                worker.request("open", row=target, suite="model_rows", mode=mode)
                first_s[name] = worker.request("warm", variant=variant)["s"]
            except PeerError as error:
                notes.append(f"{name}: {error}"[:160])
                return
            variants[name] = Variant(worker, variant)

        begin(_OURS, sys.executable, "eager", "compiled", row.name, mode)
        if eager_required:
            begin("eager", sys.executable, "eager", "eager", row.name, "default")
        if torch_at is not None:
            begin("torch", torch_at, "torch", "compiled", row.name, "best")
            begin("torch eager", torch_at, "torch", "eager", row.name, "default")
        for engine in engines:
            begin(engine, str(torch_at), engine, "compiled", str(folder / "model.onnx"), mode)
        notes += _differences(variants)
        times = interleave(variants, runs=runs, slices=_SLICES)
        peaks = {name: v.worker.request("peak") for name, v in variants.items()}
    ours = _OURS in variants
    return Model(
        row.name, row.group, threads,
        {name: times.ms(name) for name in variants},
        {name: times.ratios(name, _OURS) for name in variants if ours and name != _OURS},
        {name: peak["mb"] for name, peak in peaks.items()},
        {name: peak["running_mb"] for name, peak in peaks.items()},
        first_s, model_rows.required(row), eager_required, tuple(notes),
    )  # fmt: skip


def _differences(variants: dict[str, Variant]) -> list[str]:
    """Notes on results of ours, or of an engine, that differ from torch's eager kernels."""
    samples = {name: v.worker.request("sample", variant=v.name)["values"] for name, v in variants.items()}
    if "torch eager" not in samples:
        return []
    notes = {name: agreement(values, samples["torch eager"], _TOLERANCE) for name, values in samples.items()}
    return [f"{name}: {note}" for name, note in notes.items() if note]


def table(found: Sequence[Model]) -> Table:
    """The measured rows; what misses a requirement is red."""
    made = Table(title="models, ms", title_justify="left")
    headings = ("model", "threads", _OURS, "eager", "torch", "torch eager", *ENGINES, "ratio", "required", "MB", "torch MB", "first, s")
    for heading in headings:
        made.add_column(heading, justify="left" if heading == "model" else "right")
    made.add_column("")
    for m in found:
        times = (fmt(m.ms[v]) if v in m.ms else "" for v in (_OURS, "eager", "torch", "torch eager", *ENGINES))
        memory = (f"{m.peak_mb[v]:.0f}" if v in m.peak_mb else "" for v in (_OURS, "torch"))
        ratio = "" if m.ratio is None else f"{m.ratio:.2f}"
        first = f"{m.first_s[_OURS]:.1f}" if _OURS in m.first_s else ""
        verdict = f"[red]missed: {'; '.join(m.misses)}[/red]" if m.misses else "" if m.ratio is None else "[green]holds[/green]"
        made.add_row(m.name, str(m.threads), *times, ratio, f"{m.required:g}", *memory, first, verdict)
    return made
