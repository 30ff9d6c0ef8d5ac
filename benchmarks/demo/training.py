"""Part b: train the small GPT eager and compiled from one seed, a step of each in turn.

Owns the run, and the check that both learn the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median

import eager as torch
from benchmarks.demo import gpt, text
from benchmarks.demo.counters import Counts, counting
from benchmarks.demo.rows import Row

SEED = 7
EARLY_STEPS, EARLY_TOLERANCE = 20, 1e-3  # steps before rounding differences have had time to grow
LATE_STEPS, LATE_TOLERANCE = 20, 0.02  # largest difference of the mean loss at the end
REACHED = 2.65  # nats a byte, from ln 256 = 5.5; torch reaches 2.47 from this seed


@dataclass(frozen=True, slots=True)
class Result:
    """Rows for the table and the two loss curves, in nats a byte."""

    rows: list[Row]
    eager: list[float]
    compiled: list[float]
    warnings: list[str]

    @property
    def early_difference(self) -> float:
        """The largest difference of the losses of the first steps."""
        return max(abs(a - b) for a, b in zip(self.eager[:EARLY_STEPS], self.compiled, strict=False))

    @property
    def final(self) -> tuple[float, float]:
        """Mean loss of the last steps, eager and compiled."""
        return fmean(self.eager[-LATE_STEPS:]), fmean(self.compiled[-LATE_STEPS:])

    @property
    def agrees(self) -> bool:
        """Whether the curves are equal within the effect of rounding."""
        a, b = self.final
        return self.early_difference <= EARLY_TOLERANCE and abs(a - b) <= LATE_TOLERANCE

    @property
    def learns(self) -> bool:
        """Whether the loss fell to a value that the model can reach in these steps."""
        return max(self.final) <= REACHED


def run(advance: Callable[[str], None], config: gpt.Config) -> Result:
    """Train both for config.steps; the warm time is the median over every step but the first few."""
    tokens = text.as_bytes()
    plain = gpt.Trainer(config, tokens, SEED)
    compiled = gpt.Trainer(config, tokens, SEED, compile=torch.compile)
    times: tuple[list[float], list[float]] = ([], [])
    with counting() as counts:
        for step in range(config.steps):
            for trainer, taken in ((plain, times[0]), (compiled, times[1])):
                start = time.perf_counter()
                trainer.step()
                taken.append(time.perf_counter() - start)
            advance(f"GPT: step {step + 1}, loss {compiled.losses[-1]:.3f}")
    rows = _rows(times, counts)
    return Result(rows, plain.losses, compiled.losses, counts.warnings)


def _rows(times: tuple[list[float], list[float]], counts: Counts) -> list[Row]:
    skip = min(3, len(times[0]) - 1)
    eager_ms, compiled_ms = (median(taken[skip:]) * 1e3 for taken in times)
    return [
        Row("GPT step eager", times[0][0], eager_ms),
        Row("  compiled", times[1][0], compiled_ms, eager_ms, counts),
    ]
