"""Threads and matrix products of the native runtime: every element once, no thread left spinning, right without BLAS."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager import _native
from eager.base import machine as host
from inductor.artifact.format import Allocation, ArtifactPlan, NativeSegment, NewOutput
from tests.inductor.helpers_runtime import affine_plan, make, spec

ROOT = Path(__file__).resolve().parents[2]


# --------------------------------------------------------------------------- threads

LOOP = """
typedef struct { const float *x; float *y; long calls; } Work;
static void body(void *ctx, long begin, long end) {
  Work *w = (Work *)ctx; __atomic_fetch_add(&w->calls, 1, 5);
  for (long i = begin; i < end; i++) w->y[i] += w->x[i] * 2; }
static void nested(void *ctx, long begin, long end) {
  const Runtime *rt = *(const Runtime **)((Work *)ctx + 1);
  for (long i = begin; i < end; i++) {
    Work part = {((Work *)ctx)->x + i * 100, ((Work *)ctx)->y + i * 100, 0};
    rt->parallel_for(rt, body, &part, 100, 10); } }
EXPORT void segment(char **bufs, const Runtime *rt) {
  struct { Work w; const Runtime *rt; } c = {{(const float *)bufs[0], (float *)bufs[1], 0}, rt};
  for (long i = 0; i < %(n)d; i++) c.w.y[i] = 1;
  if (%(nested)d) rt->parallel_for(rt, nested, &c, %(n)d / 100, 1);
  else rt->parallel_for(rt, body, &c.w, %(n)d, %(grain)d); }"""


def looping(folder: Path, n: int, grain: int = 1, nested: bool = False, cost_ns: int = 10**6) -> Any:
    source = LOOP % {"n": n, "grain": grain, "nested": nested}
    return make(folder, affine_plan(n, cost_ns=cost_ns), source, single=True)


@pytest.fixture
def four_threads() -> Iterator[None]:
    with eager.base.settings.scope(cpu_threads=4):
        yield
    host.configure()


@pytest.mark.parametrize(
    "n, grain, nested", [(1, 1, False), (7, 3, False), (1000, 1, False), (1000, 5000, False), (1000, 1, True)]
)
def test_parallel_loop_covers_every_element_once(
    tmp_path: Path, four_threads: None, n: int, grain: int, nested: bool
) -> None:
    graph, x = looping(tmp_path, n, grain, nested), eager.arange(n, dtype=eager.float32)
    assert _native.threads() == 4
    want = 2.0 * np.arange(n) + 1
    for _ in range(200):
        assert np.array_equal(graph(x).numpy(), want)


def test_one_graph_runs_on_many_python_threads_at_once(tmp_path: Path, four_threads: None) -> None:
    n = 100_000
    graph, failures = looping(tmp_path, n, 1000), []

    def work(k: int) -> None:
        x = eager.full((n,), float(k))
        for _ in range(100):
            failures.extend([k] * (not (graph(x).numpy() == 2.0 * k + 1).all()))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures


def test_kept_outputs_are_not_shared_between_threads(tmp_path: Path, four_threads: None) -> None:
    n = 100_000
    source = LOOP % {"n": n, "grain": 1000, "nested": 0}
    graph, failures = make(tmp_path, affine_plan(n, cost_ns=10**6), source, single=True, keep_outputs=True), []

    def work(k: int) -> None:
        x = eager.full((n,), float(k))
        for _ in range(100):
            failures.extend([k] * (not (graph(x).numpy() == 2.0 * k + 1).all()))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures


def test_lock_is_released_during_a_long_segment(tmp_path: Path) -> None:
    source = """EXPORT void segment(char **bufs, const Runtime *rt) {
      volatile int *flag = (volatile int *)bufs[0]; for (long i = 0; i < 20000000000 && !*flag; i++) ;
      ((float *)bufs[1])[0] = *flag; }"""
    plan = ArtifactPlan((spec(1, dtype="int32"),), (NewOutput(0, spec(1)),), (Allocation(4),),
                        steps=(NativeSegment("segment", 10**6),))  # fmt: skip
    graph, flag, seen = make(tmp_path, plan, source, single=True), eager.zeros(1, dtype=eager.int32), []
    worker = threading.Thread(target=lambda: seen.append(graph(flag).tolist()))
    worker.start()
    flag.fill_(1)  # could not run if the worker held the lock
    worker.join(timeout=60)
    assert seen == [[1.0]]


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forked_child_can_run_parallel_loops(tmp_path: Path, four_threads: None) -> None:
    n = 10_000
    graph, x = looping(tmp_path, n, 10), eager.ones(n)
    for _ in range(10):
        graph(x)
    pid = os.fork()
    if pid == 0:
        try:
            ok = all(bool((graph(x).numpy() == 3.0).all()) for _ in range(50))
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (graph(x).numpy() == 3.0).all()


def test_workers_sleep_when_no_graph_runs(tmp_path: Path) -> None:
    code = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
import eager
from tests.inductor.test_native_threads import looping
with eager.base.settings.scope(cpu_threads=4):
    graph = looping(Path({str(tmp_path)!r}), 100_000, 1000)
x = eager.ones(100_000)
for _ in range(50): graph(x)
time.sleep(0.1)
start = time.process_time(); time.sleep(1.0); print(time.process_time() - start)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1


# --------------------------------------------------------------------------- matrix products

GEMM = """EXPORT void segment(char **bufs, const Runtime *rt) {
  GemmCall g = {%(dtype)d, %(ta)d, %(tb)d, %(b)d, %(m)d, %(n)d, %(k)d, %(lda)d, %(ldb)d, %(n)d,
    %(sa)d, %(sb)d, %(m)d * %(n)d, 1.0, 0.0, bufs[0], bufs[1], bufs[2]};
  rt->gemm(rt, &g, rt->threads); }"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ta, tb", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    "b, m, n, k", [(1, 5, 7, 3), (3, 4, 33, 8), (1, 300, 200, 130), (1, 130, 400, 100), (8, 64, 64, 64), (1, 3, 4, 0)]
)
def test_gemm_of_the_runtime_agrees_with_numpy(
    tmp_path: Path, four_threads: None, dtype: str, ta: int, tb: int, b: int, m: int, n: int, k: int
) -> None:
    assert _check_gemm(tmp_path, dtype, ta, tb, b, m, n, k)


def _check_gemm(folder: Path, dtype: str, ta: int, tb: int, b: int, m: int, n: int, k: int) -> bool:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((b, k, m) if ta else (b, m, k)).astype(dtype)
    w = rng.standard_normal((b, n, k) if tb else (b, k, n)).astype(dtype)
    fields = {"dtype": int(dtype == "float64"), "ta": ta, "tb": tb, "b": b, "m": m, "n": n, "k": k,
              "lda": max(a.shape[2], 1), "ldb": max(w.shape[2], 1), "sa": m * k, "sb": k * n}  # fmt: skip
    plan = ArtifactPlan(
        (spec(*a.shape, dtype=dtype), spec(*w.shape, dtype=dtype)), (NewOutput(0, spec(b, m, n, dtype=dtype)),),
        (Allocation(b * m * n * a.itemsize),), steps=(NativeSegment("segment", 10**6),),
    )  # fmt: skip
    graph = make(folder, plan, GEMM % fields, single=True)
    y = graph(eager.from_numpy(a), eager.from_numpy(w)).numpy()
    want = (a.swapaxes(1, 2) if ta else a) @ (w.swapaxes(1, 2) if tb else w)
    return bool(np.allclose(y, want, rtol=1e-4, atol=1e-4))


def test_gemm_without_a_blas_is_slow_but_right(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from eager import _native
from tests.inductor.test_native_threads import _check_gemm
for dtype in ("float32", "float64"):
    for ta, tb in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert _check_gemm(Path({str(tmp_path)!r}), dtype, ta, tb, 2, 5, 7, 9), (dtype, ta, tb)
assert not _native.has_blas()
"""
    environment = {**os.environ, "FRAMEJIT_BLAS": "none"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr


def test_blas_of_numpy_gets_its_threads_back(tmp_path: Path, four_threads: None) -> None:
    path = host.blas_path()
    if path is None:
        pytest.skip("numpy brings no OpenBLAS")
    library = ctypes.CDLL(str(path))
    get = next((getattr(library, n) for n in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_")
                if hasattr(library, n)), None)  # fmt: skip
    if get is None:
        pytest.skip("this OpenBLAS does not report its number of threads")
    before = get()
    assert _check_gemm(tmp_path, "float32", 0, 0, 1, 300, 200, 130)
    assert get() == before


def test_library_that_is_not_blas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no BLAS"):
        _native.load_blas(str(tmp_path / "none.so"))
