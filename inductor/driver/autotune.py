"""Measuring variants: the matrix kernel for a shape, the knobs for a graph. The fastest are stored on disk.

Owns timing, the files of winners, and the search under a time budget. It does not depend on the loop IR; the function that
compiles a graph is a parameter.

Measuring needs little memory: a product is cut to operands of about 16 MiB, with the blocking of the whole product; packed
operands are shared by the variants that read the same panels; the inputs of a graph share one pool; of a graph's variants two are
in memory at once.

All measured variants compute the same values, so a wrong measurement costs time but changes no result. This is checked: a
matrix kernel whose product differs from the default's is never chosen, and a stored winner that is not a candidate of this
version is ignored.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from eager import _native as eager_native
from eager._tensor.tensor import Tensor
from eager.base import dtypes, logs
from eager.base import machine as host
from eager.base.records import dataclass
from eager.random import get_rng_state, set_rng_state
from inductor.artifact.format import (
    RUNTIME_ABI,
    Allocation,
    ArtifactPlan,
    NativeSegment,
    NewOutput,
    SourceUnit,
    Spec,
)
from inductor.base import records
from inductor.base.request import Knobs
from inductor.base.toolchain import CompileError, Toolchain, build, compile_workers
from inductor.cpp import gemm
from inductor.cpp.gemm import GemmChoice, Request
from inductor.cpp.gemm_problem import REAL, GemmProblem, pack_function
from inductor.cpp.units import RUN, Functions, joined
from inductor.driver.tuning_report import Bar, table
from inductor.runtime import loader

__all__ = ["Winners", "clearly_fastest", "in_parallel", "knob_variants", "measure", "synthetic_inputs", "tune_gemms", "tune_knobs"]

T = TypeVar("T")

_LOG = logs.artifact("autotuning")
_COMPONENT = logs.component("inductor")
_ROUNDS = 7
_SLICE_S = 0.004  # seconds of one timing of one variant: long against the clock's resolution, short against a scheduler's slice
_MARGIN = 0.97  # a variant must be this much faster than the default to replace it: smaller gains are noise
_FORMAT = 4
_MOST_BYTES = 16 << 20  # of an operand of a measured product: larger than the private caches of a core
_POOL_BYTES = 128 << 20  # of the inputs of a measured graph, unless one is larger: larger than the caches
_LEAST_COLUMNS, _LEAST_ROWS = 1024, 256  # of a product that is cut: several blocks
_PITCH = 1024  # elements: rows whose distance has the same remainder map to the same sets of a first-level cache


# --------------------------------------------------------------------------- timing


def measure(variants: Mapping[str, Callable[[], object]], deadline: float) -> dict[str, float]:
    """Seconds of one call of each variant: the least of several rounds, taken in turn.

    In turn, because the machine's speed drifts; the least, because every disturbance makes a call slower.
    deadline: `time.perf_counter()` after which no further variant and no further round starts (at least one round runs).
    """
    repeats: dict[str, int] = {}
    best: dict[str, float] = {}
    for name, run in variants.items():
        if best and time.perf_counter() > deadline:
            break
        run()
        start = time.perf_counter()
        run()
        elapsed = time.perf_counter() - start
        repeats[name] = max(1, int(_SLICE_S / max(elapsed, 1e-7)))
        best[name] = elapsed
    for _ in range(_ROUNDS):
        for name, count in repeats.items():
            run = variants[name]
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
        if time.perf_counter() > deadline:
            break
    return best


def synthetic_inputs(specs: Sequence[Spec], written: Sequence[int] = (), seed: int = 0) -> list[Tensor]:
    """Tensors of these layouts: normal numbers, and zeros for integers (they may be indices).

    Those of one dtype lie in a common pool, one after the other, and from its start again when it is full. written: positions of
    tensors with separate memory.
    """
    pools: dict[str, _Pool] = {}
    made = []
    for i, s in enumerate(specs):
        shape, strides = s.fixed()
        span = _span(s)
        if i in written:
            made.append(eager_native.alias(_filled(s.dtype, span, seed + i), shape, strides, 0))
            continue
        if s.dtype not in pools:
            pools[s.dtype] = _Pool(s.dtype, [t for j, t in enumerate(specs) if t.dtype == s.dtype and j not in written], seed)
        made.append(pools[s.dtype].take(span, shape, strides))
    return made


def _span(spec: Spec) -> int:
    """Elements from the first to the last of a layout."""
    shape, strides = spec.fixed()
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else 0


class _Pool:
    """Memory that inputs of one dtype share."""

    def __init__(self, dtype: str, specs: Sequence[Spec], seed: int) -> None:
        spans = [_span(s) for s in specs]
        most = _POOL_BYTES // dtypes.by_name(dtype).itemsize
        self._size = max(max(spans, default=0), min(sum(spans), most))
        self._flat = _filled(dtype, self._size, seed)
        self._next = 0

    def take(self, span: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        if self._next + span > self._size:
            self._next = 0
        start, self._next = self._next, self._next + span
        return eager_native.alias(self._flat, shape, strides, start)


def _filled(dtype: str, count: int, seed: int) -> Tensor:
    d = dtypes.by_name(dtype)
    flat: Tensor = eager_native.empty(d.code, (max(count, 0),), (1,))
    real = d.is_floating_point or d.is_complex
    flat._array[...] = np.random.default_rng(seed).standard_normal(max(count, 0), dtype=np.float32) if real else 0
    return flat


# --------------------------------------------------------------------------- winners on disk


@dataclass(frozen=True, slots=True)
class _Question:
    """The key of a stored winner: the problem, and the properties of the machine that decide."""

    request: Request
    tools: str
    threads: int

    def text(self) -> str:
        core = hashlib.sha256((Path(gemm.__file__).parent / "gemm_core.py").read_bytes()).hexdigest()[:16]
        return f"{_FORMAT}|{self.request!r}|{self.tools}|{self.threads}|{core}"


class Winners(Mapping[Request, GemmChoice]):
    """The matrix kernels measured so far on this machine, read from disk at their first lookup."""

    def __init__(self, folder: Path, tools: Toolchain, threads: int) -> None:
        self._folder = folder
        self._tools = tools
        self._threads = threads
        self._known: dict[Request, GemmChoice | None] = {}

    def __getitem__(self, request: Request) -> GemmChoice:
        if request not in self._known:
            self._known[request] = self._read(request)
        choice = self._known[request]
        if choice is None:
            raise KeyError(request)
        return choice

    def __iter__(self) -> Iterator[Request]:
        return (r for r, choice in self._known.items() if choice is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def remember(self, request: Request, choice: GemmChoice) -> None:
        """Store a winner, in this process and on disk."""
        self._known[request] = choice
        text, path = self._place(request)
        records.write(path, text, asdict(choice))

    def _place(self, request: Request) -> tuple[str, Path]:
        text = _Question(request, self._tools.key(), self._threads).text()
        return text, self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"

    def _read(self, request: Request) -> GemmChoice | None:
        text, path = self._place(request)
        found = records.read(path, text)
        if found is None:
            return None
        for choice in gemm.candidates(request, self._tools, host.has_blas()):
            if asdict(choice) == found:
                return choice
        _COMPONENT.log(f"{path}: {found} is not a candidate of this version for {_describe(request)}; it is measured again")
        return None


def clearly_fastest(seconds: Mapping[str, float]) -> str:
    """The fastest variant, or variant "0", the default, if that was measured and no variant is clearly faster."""
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if "0" not in seconds or seconds[fastest] < _MARGIN * seconds["0"] else "0"


# --------------------------------------------------------------------------- matrix kernels


def tune_gemms(requests: Sequence[Request], tools: Toolchain, winners: Winners, objects: Path, budget_s: float) -> None:
    """Measure the candidates of every request that has no winner yet, until the budget is spent.

    All candidates are compiled first, in parallel.
    """
    deadline = time.perf_counter() + budget_s
    wanted = [r for r in requests if r not in winners]
    for request in requests:
        if request not in wanted:
            _LOG.log(f"{_describe(request)}: {winners[request]} (measured earlier)")
    with tempfile.TemporaryDirectory(prefix="framejit-tune-") as folder, Bar("products", len(wanted)) as bar:
        libraries = _libraries(wanted, tools, Path(folder), objects) if budget_s > 0 else {}
        for number, request in enumerate(wanted):
            now = time.perf_counter()
            if now > deadline:
                _LOG.log(f"the budget of {budget_s} s is spent; {len(wanted) - number} products keep the rule of thumb")
                return
            if request in libraries:
                bar.step(_describe(request))
                share = now + (deadline - now) / (len(wanted) - number)
                winners.remember(request, _fastest_gemm(request, number, libraries[request], tools, share))
            bar.done()


def _libraries(requests: Sequence[Request], tools: Toolchain, folder: Path, objects: Path) -> dict[Request, Path]:
    """The candidates of each request, compiled: in one library, or in one for each request if that does not compile."""
    units = [_gemm_units(request, number, tools) for number, request in enumerate(requests)]
    together = {unit.name: unit for each in units for unit in each}
    if not together:
        return {}
    try:
        build(list(together.values()), folder / "variants.so", tools, objects)
        return dict.fromkeys(requests, folder / "variants.so")
    except CompileError as error:
        _LOG.log(f"the variants of {len(requests)} products did not compile together: {error}")
    found = {}
    for number, request in enumerate(requests):
        library = folder / f"variants{number}.so"
        try:
            build(units[number], library, tools, objects)
            found[request] = library
        except CompileError as error:
            _LOG.log(f"{_describe(request)}: not measured, the variants did not compile: {error}")
    return found


def _describe(request: Request) -> str:
    p = request.problem
    return f"{p.dtype} {p.batch}x[{p.m},{p.n},{p.k}]{' packed' if request.packed else ''}"


def _fastest_gemm(request: Request, number: int, library: Path, tools: Toolchain, deadline: float) -> GemmChoice:
    choices = gemm.candidates(request, tools, host.has_blas())
    problem = _bounded(request.problem)
    specs = _operand_specs(problem)
    a, b = synthetic_inputs(specs[:2])
    packs: dict[int, Tensor] = {}
    variants: dict[str, Callable[[], object]] = {}
    default: np.ndarray | None = None
    for i, choice in enumerate(choices):
        right = b
        if request.packed and choice.kernel != "blas":
            columns = gemm.tile_of(choice, problem, tools).columns
            if columns not in packs:
                packing = _pack_plan(problem, choice, f"pack{number}_{i}", specs[1], tools)
                (packs[columns],) = loader.load(packing, library, {}, name=f"pack of {choice}")(b)
            right = packs[columns]
        run = loader.load(_gemm_plan(problem, f"run{number}_{i}", specs, right), library, {}, name=f"variant {choice}")
        product = run(a, right)[0]._array
        same = default is None or _same_product(default, product, problem.k)
        if default is None:
            default = product.copy()
        product.fill(np.nan)  # the next variant may get this memory, and must not find the right answer in it
        if not same:
            _COMPONENT.warning(f"{_describe(request)}: {choice} computes a product that differs from {choices[0]}'s; not used")
            continue
        variants[str(i)] = partial(run, a, right)
    seconds = measure(variants, deadline)
    chosen = clearly_fastest(seconds)
    if _LOG.enabled:
        words = {name: str(choices[int(name)]) for name in seconds}
        whole = request.problem
        is_whole = (problem.batch, problem.m, problem.n) == (whole.batch, whole.m, whole.n)
        cut = "" if is_whole else f", measured as {problem.batch}x[{problem.m},{problem.n},{problem.k}]"
        title = f"{_describe(request)}{cut}: {len(seconds)} of {len(choices)} variants"
        _LOG.log(table(title, seconds, words, chosen, 2.0 * problem.batch * problem.m * problem.n * problem.k))
    return choices[int(chosen)]


def _bounded(p: GemmProblem) -> GemmProblem:
    """The problem with fewer products, rows and columns, so that no operand has much more than `_MOST_BYTES`.

    The depth stays. The pitch of an operand keeps its remainder by 1024 elements, so that its rows map to the same cache sets.
    """
    most = _MOST_BYTES // dtypes.by_name(p.dtype).itemsize
    if p.batch == 1:
        p = replace(p, batch_strides=(0, 0, 0))
    else:
        largest = max(p.m * p.k, p.k * p.n, p.m * p.n)
        p = replace(p, batch=max(1, min(p.batch, most // max(1, largest))))
    n = min(p.n, max(_LEAST_COLUMNS, most // max(p.k, _LEAST_ROWS) // 64 * 64))
    m = min(p.m, max(_LEAST_ROWS, min(most // p.k, most // n)))
    if (m, n) == (p.m, p.n):
        return p
    (a_row, a_col), (b_row, b_col) = p.a_strides, p.b_strides
    if a_row == 1 and a_col >= p.m:
        a_col = _pitch(a_col, m)
    if b_col == 1 and b_row >= p.n:
        b_row = _pitch(b_row, n)
    return GemmProblem(p.dtype, p.batch, m, n, p.k, (a_row, a_col), (b_row, b_col), _pitch(p.ldc, n), p.batch_strides)


def _pitch(pitch: int, size: int) -> int:
    """The least pitch of at least `size` with the remainder of `pitch`."""
    return size + (pitch - size) % _PITCH


def _same_product(a: np.ndarray, b: np.ndarray, k: int) -> bool:
    """Whether two results differ by no more than sums of `k` products of normal numbers may, added in another order."""
    return bool(np.abs(a - b).max(initial=0) <= 32 * k * np.finfo(a.dtype).eps)


def _operand_specs(p: GemmProblem) -> tuple[Spec, Spec, Spec]:
    a_step, b_step, c_step = p.batch_strides
    c_step = c_step or p.m * p.ldc
    return (
        Spec((p.batch, p.m, p.k), (a_step, *p.a_strides), p.dtype),
        Spec((p.batch, p.k, p.n), (b_step, *p.b_strides), p.dtype),
        Spec((p.batch, p.m, p.n), (c_step, p.ldc, 1), p.dtype),
    )


_HEAD = 'extern "C" __attribute__((visibility("default"))) void'


def _gemm_units(request: Request, number: int, tools: Toolchain) -> list[SourceUnit]:
    """The candidates of a request as functions runNUMBER_I(bufs of a, b, c) and packNUMBER_I(bufs of b, packed b)."""
    p = _bounded(request.problem)
    real, functions, cores = REAL[p.dtype], Functions(), {}
    text = []
    for i, choice in enumerate(gemm.candidates(request, tools, host.has_blas())):
        head = f"{_HEAD} run{number}_{i}(char **bufs, const Runtime *rt)"
        if choice.kernel == "blas":
            text.append(f"{head} {{ {_blas_call(p)} {_pass_over(p, real) if request.fused else ''} }}")
            continue
        code = gemm.render(p, tools, choice, request.packed)
        cores[code.unit.name] = code.unit
        name = functions.add("product", code.function(RUN), str(choice))
        text.append(f"{head} {{ {name}::{RUN}(({real} *)bufs[0], ({real} *)bufs[1], ({real} *)bufs[2], bufs, rt); }}\n")
        if code.pack is not None:
            weight = functions.add("weight", code.pack, str(choice))
            text.append(pack_function(f"pack{number}_{i}", weight, "bufs[0]", 1))
    whole = joined(functions.codes)
    return [SourceUnit(f"variants{number}", "\n".join([RUNTIME_ABI, _PASS, *whole.outside, whole.text, *text])), *cores.values()]


def _blas_call(p: GemmProblem) -> str:
    trans_a, trans_b = int(p.a_strides[1] != 1), int(p.b_strides[1] != 1)
    lda, ldb = p.a_strides[1 - (1 - trans_a)], p.b_strides[1 - (1 - trans_b)]
    fields = [
        0 if p.dtype == "float32" else 1, trans_a, trans_b, p.batch, p.m, p.n, p.k, lda, ldb, p.ldc,
        p.batch_strides[0], p.batch_strides[1], p.batch_strides[2], 1.0, 0.0, "bufs[0]", "bufs[1]", "bufs[2]",
    ]  # fmt: skip
    return f"GemmCall call = {{{', '.join(map(str, fields))}}}; rt->gemm(rt, &call, rt->threads);"


# The cost of an epilogue after a separate product: it reads and writes the result once more.
_PASS = """
typedef struct { char *c; long row, pitch; } Pass;
static void again(void *ctx, long begin, long end) {
  Pass *p = (Pass *)ctx;
  for (long i = begin; i < end; i++) {
    volatile char *line = p->c + i * p->pitch;
    for (long j = 0; j < p->row; j += 64) line[j] = line[j];  // a store to each line of the cache moves all of it
  }
}
"""


def _pass_over(p: GemmProblem, real: str) -> str:
    return (f"Pass pass = {{bufs[2], {p.n}L * (long)sizeof({real}), {p.ldc}L * (long)sizeof({real})}}; "
            f"rt->parallel_for(rt, again, &pass, {p.batch * p.m}, 16);")  # fmt: skip


def _gemm_plan(p: GemmProblem, symbol: str, specs: tuple[Spec, Spec, Spec], right: Tensor) -> ArtifactPlan:
    itemsize = dtypes.by_name(p.dtype).itemsize
    return ArtifactPlan(
        (specs[0], Spec(tuple(right.shape), tuple(right.stride()), p.dtype)),
        (NewOutput(0, specs[2]),),
        (Allocation(_span(specs[2]) * itemsize),),
        steps=(NativeSegment(symbol, 1_000_000),),
    )


def _pack_plan(p: GemmProblem, choice: GemmChoice, symbol: str, b: Spec, tools: Toolchain) -> ArtifactPlan:
    nbytes = gemm.packed_bytes(gemm.tile_of(choice, p, tools), p)
    packed = Spec((nbytes // dtypes.by_name(p.dtype).itemsize,), (1,), p.dtype)
    return ArtifactPlan((b,), (NewOutput(0, packed),), (Allocation(nbytes),), steps=(NativeSegment(symbol, 1_000_000),))


# --------------------------------------------------------------------------- knobs of a graph


def in_parallel(calls: Sequence[Callable[[], T]]) -> list[Future[T]]:
    """Run the calls, as many at once as compilers may run; their results or errors."""
    with ThreadPoolExecutor(max(1, min(len(calls), compile_workers()))) as pool:
        return [pool.submit(call) for call in calls]


def knob_variants(tools: Toolchain, threads: int) -> list[Knobs]:
    """The knobs to try, the default first."""
    found = [Knobs()]
    if tools.simd_bits == 512:
        found.append(Knobs(vector_bits=256))  # 512-bit code lowers the clock of some CPUs
    if threads > 1:
        found += [Knobs(parallel_ns=8_000), Knobs(parallel_ns=120_000), Knobs(parallel_ns=1 << 60)]
    return found


def tune_knobs(
    variants: Sequence[Knobs],
    load: Callable[[Knobs], Callable[..., object] | None],
    inputs: Sequence[Tensor],
    budget_s: float,
) -> Knobs:
    """The fastest of `variants` for one graph; an earlier variant unless a later one is clearly faster.

    load: makes the graph with these knobs callable; None if the knobs do not change its code. Two variants are loaded at once.
    """
    deadline = time.perf_counter() + budget_s
    chosen = variants[0]
    best = load(chosen)
    assert best is not None
    seconds: dict[str, float] = {}
    state = get_rng_state()
    try:
        with Bar("graph", len(variants) - 1) as bar:
            for i, knobs in enumerate(variants[1:], 1):
                bar.step(f"graph, {knobs}")
                now = time.perf_counter()
                if now > deadline:
                    _LOG.log(f"the budget of {budget_s} s is spent; {len(variants) - i} variants of the graph are not measured")
                    break
                graph = load(knobs)
                if graph is not None:
                    pair = {"0": partial(best, *inputs), "1": partial(graph, *inputs)}
                    found = measure(pair, now + (deadline - now) / (len(variants) - i))
                    seconds |= {str(variants.index(chosen)): found["0"]} | ({str(i): found["1"]} if "1" in found else {})
                    if clearly_fastest(found) == "1":
                        chosen, best = knobs, graph
                bar.done()
    except Exception as error:  # noqa: BLE001 - an op may raise for generated inputs; the graph itself is valid
        _LOG.log(f"the graph cannot be measured on generated inputs ({type(error).__name__}: {error}); default knobs")
        return variants[0]
    finally:
        set_rng_state(state)  # a measurement of a graph with random draws must not change the program's draws
        eager_native.empty_cache()
    if _LOG.enabled:
        words = {name: str(variants[int(name)]) for name in seconds}
        title = f"{max(1, len(seconds))} different variants of the graph; chosen: {chosen}"
        _LOG.log(table(title, seconds, words, str(variants.index(chosen))) if seconds else title)
    return chosen
