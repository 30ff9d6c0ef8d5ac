"""`python -m benchmarks.gpu_worker LIBRARY SCALE`: a measuring process on a CUDA device, under framejit ("eager") or torch.

Reads one JSON request a line, answers one JSON line each. `eager` means torch in a process of torch, so that both run the same rows.

    warm    row, mode              build the program and run it three times -> s, of the first run
    time    row, mode, seconds     -> us, of a run: the median of timings by events; cpu_us: of the calls alone
    drop                           free the programs
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from benchmarks import worker

_MODE_OF_EAGER: Final = "eager"
_MOST: Final = 50  # timings of a row
# Names of this benchmark for options that no mode sets; both libraries have them.
_OPTIONS: Final = {"max-autotune-tma": {"max_autotune": True, "triton.enable_persistent_tma_matmul": True}}


class GpuWorker:
    """Answers requests about the rows of `benchmarks.gpu_rows`."""

    def __init__(self, library: str, scale: int) -> None:
        worker.alias(library)
        self._torch: Any = importlib.import_module("eager")
        self._rows = {r.name: r for r in importlib.import_module("benchmarks.gpu_rows").ROWS}
        self._scale = scale
        self._runs: dict[tuple[str, str], Callable[[], Any]] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do one request; the method of its name."""
        arguments = {k: v for k, v in request.items() if k != "do"}
        answer: dict[str, Any] = getattr(self, request["do"])(**arguments)
        return answer

    def warm(self, row: str, mode: str) -> dict[str, Any]:
        start = time.perf_counter()
        self._torch.manual_seed(0)
        run = self._runs[row, mode] = self._rows[row].make(self._scale, self._compiler(mode))
        run()
        self._torch.cuda.synchronize()
        first_s = time.perf_counter() - start
        for _ in range(3):
            run()
        self._torch.cuda.synchronize()
        return {"s": first_s}

    def _compiler(self, mode: str) -> Callable[[Any], Any]:
        if mode == _MODE_OF_EAGER:
            return lambda fn: fn
        how: dict[str, Any] = {"options": _OPTIONS[mode]} if mode in _OPTIONS else {"mode": mode}
        return lambda fn: self._torch.compile(fn, dynamic=False, **how)

    def time(self, row: str, mode: str, seconds: float) -> dict[str, Any]:
        run, inner = self._runs[row, mode], self._rows[row].inner
        times: list[float] = []
        calls: list[float] = []
        until = time.perf_counter() + seconds
        while len(times) < 3 or (time.perf_counter() < until and len(times) < _MOST):
            start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            before = time.perf_counter()
            start.record()
            for _ in range(inner):
                run()
            end.record()
            calls.append((time.perf_counter() - before) / inner)
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / inner)
        return {"us": median(times), "cpu_us": median(calls) * 1e6}

    def drop(self) -> dict[str, Any]:
        self._runs.clear()
        gc.collect()
        self._torch.cuda.empty_cache()
        return {}


if __name__ == "__main__":
    worker.serve(lambda: GpuWorker(sys.argv[1], int(sys.argv[2])))
