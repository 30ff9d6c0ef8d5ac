"""`python -m benchmarks overhead`: the costs of the compiler itself, framejit's beside torch's.

Owns import time, the cold compile of `x * 2 + 1`, its warm call, and the time until a second process is ready from the
artifacts on disk. Each is measured in a new process: a compiler that has already run, or a library that is already loaded,
would make the figure too small. The same worker code runs under both libraries.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import numpy as np

import eager
from benchmarks.harness import Figure, call_us
from eager.base.spec import fake_like
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph

_NATIVE_ENTRY = 0.8  # limit in units of numpy's addition: 0.4 us on a machine where that takes 0.5

# Runs as `python -c WORKER library`; prints one JSON object. Times are wall seconds.
_WORKER = r"""
import sys, time, json
t0 = time.perf_counter()
library = __import__(sys.argv[1])
imported = time.perf_counter() - t0
def f(x):
    return x * 2 + 1
def g(x):
    return (x - 3) / 5
x = library.ones(8)
first = library.compile(f)
t0 = time.perf_counter()
first(x)
cold = time.perf_counter() - t0
second = library.compile(g)
t0 = time.perf_counter()
second(x)
another = time.perf_counter() - t0
def call_us(fn, number=20000 if sys.argv[1] == "eager" else 4000, repeats=7):
    times = []
    for _ in range(repeats):
        t0 = time.perf_counter()
        for _ in range(number):
            fn(x)
        times.append((time.perf_counter() - t0) / number)
    return sorted(times)[repeats // 2] * 1e6
for _ in range(100):
    first(x), f(x)
print(json.dumps({"import_s": imported, "cold_s": cold, "another_s": another,
                  "warm_us": call_us(first), "eager_us": call_us(f)}))
"""
_IMPORT = "import sys, time; t0 = time.perf_counter(); __import__(sys.argv[1]); print(time.perf_counter() - t0)"


def torch_python(given: str | None) -> str | None:
    """The interpreter whose torch to measure: the given interpreter, else this interpreter if it has torch, else None."""
    if given is not None:
        return given
    return sys.executable if importlib.util.find_spec("torch") is not None else None


def _child(python: str, code: str, library: str, cache: Path) -> str:
    ours: Mapping[str, str] = {"FRAMEJIT_CACHE_DIR": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    # Without its .pyc files a library is compiled from source at every import, unlike an installed library.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [python, "-c", code, library],
        env={**kept, **ours},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"overhead: {python} could not measure {library}:\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def _measure(python: str, library: str, rounds: int) -> dict[str, float]:
    runs: list[dict[str, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            cold = json.loads(_child(python, _WORKER, library, cache))
            warm = json.loads(_child(python, _WORKER, library, cache))
            runs.append({**cold, "from_disk_s": warm["cold_s"]})
            imports = [float(_child(python, _IMPORT, library, cache)) for _ in range(2)]
            runs[-1]["import_s"] = min(*imports, warm["import_s"])
    return {name: median(run[name] for run in runs) for name in runs[0]}


def _native_entry_us() -> tuple[float, float]:
    """(microseconds of a native call of a compiled graph, without capture's entry; of numpy's addition), in turn."""
    x, array = eager.ones(8), np.ones(8, np.float32)
    graph = trace(lambda x: (x * 2 + 1,), [fake_like(x)])
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    pairs = [(call_us(lambda: run(x)), call_us(lambda: array + array)) for _ in range(5)]
    return median(ours for ours, _ in pairs), median(numpys for _, numpys in pairs)


def figures(*, rounds: int, torch_at: str | None) -> list[Figure]:
    """Measure everything. torch_at: an interpreter that has torch, or None to omit the column."""
    own = _measure(sys.executable, "eager", rounds)
    peer = _measure(torch_at, "torch", 1) if torch_at is not None else {}
    rows = (
        ("import", "import_s", "s", 0.25),
        ("cold compile of x*2+1, first in the process", "cold_s", "s", 0.3),
        ("cold compile of the next function", "another_s", "s", 0.3),
        ("a second process, ready from disk after imports", "from_disk_s", "s", 0.1),
        ("warm call of compiled x*2+1, 8 elements", "warm_us", "us", 2.0),
        ("the same, eager", "eager_us", "us", None),
    )
    found = [Figure(name, own[key], unit, limit, peer.get(key)) for name, key, unit, limit in rows]
    native, numpys = _native_entry_us()
    limit = _NATIVE_ENTRY * numpys
    return [*found, Figure("native call of x*2+1 alone", native, "us", limit, note=f"numpy's x+y beside it {numpys:.2f}")]
