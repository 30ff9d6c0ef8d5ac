"""Part a: search Python's documentation with MiniLM, eager and compiled in each mode.

Owns the run over the text, the check that all variants give the same embeddings, and the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import eager as torch
from benchmarks.demo import minilm, text
from benchmarks.demo.counters import Counts, counting
from benchmarks.demo.rows import Row
from benchmarks.harness import interleaved_ms

MODES = ("default", "reduce-overhead", "max-autotune")
QUESTIONS = (
    "How do I make sure a file is closed even if an error happens?",
    "What does a function give back when it has no return statement?",
    "How can a class decide what the plus sign does?",
    "How do I write a function that takes any number of arguments?",
)
BATCH, LENGTH, PARAGRAPHS = 8, 128, 156
ROUNDS = 7
TOLERANCE = 1e-5  # largest 1 - cosine between eager and compiled

Encode = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Advance = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The best paragraph for one question, and its cosine."""

    question: str
    paragraph: text.Paragraph
    score: float


@dataclass(frozen=True, slots=True)
class Result:
    """Rows for the table, the answers, the largest 1 - cosine between eager and each mode."""

    rows: list[Row]
    answers: list[Answer]
    disagreement: dict[str, float]

    @property
    def agrees(self) -> bool:
        """Whether every mode gave eager's embeddings."""
        return all(value <= TOLERANCE for value in self.disagreement.values())


def steps() -> int:
    """The number of steps of `run`, for its progress bar."""
    return (1 + len(MODES)) * (_batches() + 1) + 1


def _batches() -> int:
    return -(-(PARAGRAPHS + len(QUESTIONS)) // BATCH)


def run(advance: Advance) -> Result:
    """Encode questions and text eager and in each mode, then time one batch in all of them by turns."""
    found = text.paragraphs(PARAGRAPHS)
    model = minilm.load()
    texts = [*QUESTIONS, *(p.text for p in found)]
    texts += [""] * (-len(texts) % BATCH)  # one shape for every batch gives one graph
    ids, mask = minilm.Tokenizer(LENGTH)(texts)
    variants: dict[str, Encode] = {"eager": model}
    variants |= {mode: torch.compile(model, mode=mode) for mode in MODES}
    vectors, first_s, counted = {}, {}, {}
    with torch.no_grad():
        for name, encode in variants.items():
            with counting() as counts:
                vectors[name], first_s[name] = _encode(name, encode, ids, mask, advance)
            counted[name] = counts
        batch = torch.from_numpy(ids[:BATCH]), torch.from_numpy(mask[:BATCH])
        calls: dict[str, Callable[[], Any]] = {n: partial(e, *batch) for n, e in variants.items()}
        warm_ms = interleaved_ms(calls, rounds=ROUNDS)
        advance("MiniLM: timing")
    vectors = {name: v[: len(QUESTIONS) + len(found)] for name, v in vectors.items()}
    disagreement = {m: float(1 - (vectors[m] * vectors["eager"]).sum(axis=1).min()) for m in MODES}
    return Result(_rows(first_s, warm_ms, counted), _answers(found, vectors["default"]), disagreement)


def _encode(
    name: str, encode: Encode, ids: NDArray[np.int64], mask: NDArray[np.int64], advance: Advance
) -> tuple[NDArray[np.float64], float]:
    """Vectors of every text, (n, d), and the seconds that the first batch took."""
    done: list[NDArray[np.float64]] = []
    first_s = 0.0
    for begin in range(0, len(ids), BATCH):
        batch = torch.from_numpy(ids[begin : begin + BATCH]), torch.from_numpy(mask[begin : begin + BATCH])
        start = time.perf_counter()
        y = encode(*batch)
        # float64 for the comparison, and a copy: under reduce-overhead the next call reuses the output
        done.append(y.numpy().astype(np.float64))
        first_s = first_s or time.perf_counter() - start
        advance(f"MiniLM {name}: encoding the text")
    advance(f"MiniLM {name}: done")
    return np.concatenate(done), first_s


def _rows(first_s: dict[str, float], warm_ms: dict[str, float], counted: dict[str, Counts]) -> list[Row]:
    eager = Row("MiniLM eager", first_s["eager"], warm_ms["eager"])
    return [eager, *(Row(f"  {m}", first_s[m], warm_ms[m], warm_ms["eager"], counted[m]) for m in MODES)]


def _answers(found: list[text.Paragraph], vectors: NDArray[np.float64]) -> list[Answer]:
    questions, texts = vectors[: len(QUESTIONS)], vectors[len(QUESTIONS) :]
    scores = questions @ texts.T
    best = scores.argmax(axis=1)
    return [Answer(q, found[i], float(s[i])) for q, i, s in zip(QUESTIONS, best, scores, strict=True)]
