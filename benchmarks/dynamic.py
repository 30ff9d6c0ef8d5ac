"""`python -m benchmarks dynamic`: code for all sizes against code for one size, and the time saved by compiling once.

Owns the comparison of kernels compiled with `dynamic=True` and `dynamic=False`, at the same sizes, in turn; and the time until
results for a number of sizes are ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import eager as torch
from benchmarks.harness import Figure, interleaved_ms
from eager.base import settings
from eager.nn import functional as F

RATIO = 1.15  # limit of the ratio if the inner dim is static


def _attention(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(q @ k.transpose(-1, -2) / 8.0, -1) @ v


def _rows(n: int, m: int) -> list[Any]:
    return [torch.randn(n, m)]


# (name, function, inputs, the symbolic dims, the limit of the ratio)
CASES: tuple[tuple[str, Callable[..., Any], list[Any], list[tuple[int, ...]], float | None], ...] = (
    ("x * 2 + 1, 8 elements", lambda x: x * 2 + 1, [torch.ones(8)], [(0,)], None),
    ("gelu, n x 3072", lambda x: F.gelu(x), _rows(512, 3072), [(0,)], RATIO),
    ("layer_norm, n x 768", lambda x: F.layer_norm(x, (768,)), _rows(2048, 768), [(0,)], RATIO),
    ("softmax, n x 512", lambda x: F.softmax(x, -1), _rows(2048, 512), [(0,)], RATIO),
    ("softmax, n x m", lambda x: F.softmax(x, -1), _rows(2048, 512), [(0, 1)], None),
    ("sum of rows, n x m", lambda x: x.sum(-1), _rows(2048, 1024), [(0, 1)], None),
    ("sum of columns, n x m", lambda x: x.sum(0), _rows(2048, 1024), [(0, 1)], None),
    ("sum of everything, n x m", lambda x: x.sum(), _rows(2048, 1024), [(0, 1)], None),
    ("linear and gelu, n x 768 -> 3072", lambda x, w, b: F.gelu(F.linear(x, w, b)),
     [torch.randn(512, 768), torch.randn(3072, 768), torch.randn(3072)], [(0,), (), ()], RATIO),
    ("attention, b x 12 x t x 64", _attention, [torch.randn(4, 12, 128, 64) for _ in range(3)], [(0, 2)] * 3, None),
)  # fmt: skip


SIZES = (24, 40, 56, 72, 88, 104)


def figures(rounds: int = 15) -> list[Figure]:
    """Milliseconds of each case for all sizes, with its ratio to code for one size; then the time to compile for several sizes."""
    return [*(f for case in CASES for f in _kernel(*case, rounds)), *_compiling()]


def _kernel(name: str, fn: Callable[..., Any], inputs: list[Any], dims: list[tuple[int, ...]], limit: float | None,
            rounds: int) -> list[Figure]:  # fmt: skip
    fixed, every = torch.compile(fn, dynamic=False), torch.compile(fn)
    marked = [x.clone() for x in inputs]
    for x, chosen in zip(marked, dims, strict=True):
        for d in chosen:
            torch._dynamo.mark_dynamic(x, d)
    number = 2000 if inputs[0].numel() < 1000 else 1  # a call of a microsecond is timed in batches

    def repeated(run: Callable[..., Any], args: list[Any]) -> Callable[[], None]:
        def call() -> None:
            for _ in range(number):
                run(*args)

        return call

    times = interleaved_ms({"fixed": repeated(fixed, inputs), "every": repeated(every, marked)}, rounds=rounds, warmup=3)
    ratio = times["every"] / times["fixed"]
    unit, scale = ("us", 1e3 / number) if number > 1 else ("ms", 1.0)
    return [Figure(name, times["every"] * scale, unit, note=f"{times['fixed'] * scale:.3g} for one size"),
            Figure(f"{name}, all sizes / one size", ratio, "x", limit)]  # fmt: skip


def _compiling() -> list[Figure]:
    """Seconds until a small attention layer has run for every one of `SIZES`, with an empty disk cache."""

    def fn(x: Any, w: Any) -> Any:
        q = F.linear(x, w).view(x.shape[0], x.shape[1], 4, 16).transpose(1, 2)
        return F.layer_norm(_attention(q, q, q).transpose(1, 2).reshape(x.shape), (64,))

    w = torch.randn(64, 64)
    found = []
    for dynamic, what in ((False, "one by one"), (True, "as symbols")):
        with TemporaryDirectory() as folder, settings.scope(cache_dir=Path(folder), capture_recompile_limit=len(SIZES) + 1):
            run = torch.compile(fn, dynamic=dynamic)
            start = time.perf_counter()
            for n in SIZES:
                run(torch.randn(2, n, 64), w)
            found.append(Figure(f"first results for {len(SIZES)} sizes, compiled {what}", time.perf_counter() - start, "s"))
    return found
