"""Measuring variants: the matrix kernel for a shape, the knobs for a graph. The fastest are stored on disk.

Owns timing, the files of winners, and the search under a time budget. It does not depend on the loop IR; the function that
compiles a graph is a parameter.

All measured variants compute the same values, so a wrong measurement costs time but changes no result. This is checked: a
matrix kernel whose product differs from the default's is never chosen, and a stored winner that is not a candidate of this
version is ignored.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from eager import _native as eager_native
from eager._tensor.tensor import Tensor
from eager.base import dtypes, logs
from eager.base import machine as host
from eager.random import get_rng_state, set_rng_state
from inductor.artifact.format import (
    RUNTIME_ABI,
    Allocation,
    ArtifactPlan,
    NativeSegment,
    NewOutput,
    Pack,
    SourceUnit,
    Spec,
)
from inductor.base import records
from inductor.base.build import build
from inductor.base.request import Knobs
from inductor.base.toolchain import CompileError, Toolchain
from inductor.cpp import gemm
from inductor.cpp.gemm import GemmChoice, Request
from inductor.cpp.gemm_problem import GemmProblem, pack_function
from inductor.runtime import loader

__all__ = ["Winners", "knob_variants", "measure", "synthetic_inputs", "tune_gemms", "tune_knobs"]

_LOG = logs.artifact("autotuning")
_COMPONENT = logs.component("inductor")
_ROUNDS = 7
_SLICE_S = 0.004  # seconds of one timing of one variant: long against the clock's resolution, short against a scheduler's slice
_MARGIN = 0.97  # a variant must be this much faster than the default to replace it: smaller gains are noise
_FORMAT = 3


# --------------------------------------------------------------------------- timing


def measure(variants: Mapping[str, Callable[[], object]], deadline: float) -> dict[str, float]:
    """Seconds of one call of each variant: the least of several rounds, taken in turn.

    In turn, because the machine's speed drifts; the least, because every disturbance makes a call slower.
    deadline: `time.perf_counter()` after which no further round starts (at least one round runs).
    """
    repeats, best = {}, {}
    for name, run in variants.items():
        run()
        start = time.perf_counter()
        run()
        elapsed = time.perf_counter() - start
        repeats[name] = max(1, int(_SLICE_S / max(elapsed, 1e-7)))
        best[name] = elapsed
    for _ in range(_ROUNDS):
        for name, run in variants.items():
            count = repeats[name]
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
        if time.perf_counter() > deadline:
            break
    return best


def synthetic_inputs(specs: Sequence[Spec], seed: int = 0) -> list[Tensor]:
    """Tensors of these layouts: normal numbers, and zeros for integers (they may be indices)."""
    rng = np.random.default_rng(seed)
    made = []
    for s in specs:
        d = dtypes.by_name(s.dtype)
        shape, strides = s.fixed()
        span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else 0
        flat = eager_native.empty(d.code, (max(span, 0),), (1,))
        flat._array[...] = rng.standard_normal(max(span, 0)) if d.is_floating_point or d.is_complex else 0
        made.append(eager_native.alias(flat, shape, strides, 0))
    return made


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


def _clearly_fastest(seconds: Mapping[str, float]) -> str:
    """The fastest variant if it is clearly faster than variant "0", the default; else variant "0"."""
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if seconds[fastest] < _MARGIN * seconds["0"] else "0"


# --------------------------------------------------------------------------- matrix kernels


def tune_gemms(requests: Sequence[Request], tools: Toolchain, winners: Winners, objects: Path, budget_s: float) -> None:
    """Measure the candidates of every request that has no winner yet, until the budget is spent."""
    deadline = time.perf_counter() + budget_s
    for number, request in enumerate(requests):
        if request in winners:
            _LOG.log(f"{_describe(request)}: {winners[request]} (measured earlier)")
            continue
        if time.perf_counter() > deadline:
            _LOG.log(f"the budget of {budget_s} s is spent; {len(requests) - number} products keep the rule of thumb")
            return
        try:
            _tune_gemm(request, tools, winners, objects, deadline)
        except CompileError as error:
            _LOG.log(f"{_describe(request)}: not measured, the variants did not compile: {error}")


def _describe(request: Request) -> str:
    p = request.problem
    return f"{p.dtype} {p.batch}x[{p.m},{p.n},{p.k}]{' packed' if request.packed else ''}"


def _tune_gemm(request: Request, tools: Toolchain, winners: Winners, objects: Path, deadline: float) -> None:
    choices = gemm.candidates(request, tools, host.has_blas())
    with tempfile.TemporaryDirectory(prefix="framejit-tune-") as folder:
        library = Path(folder) / "variants.so"
        build(_gemm_units(request, choices, tools), library, tools, objects)
        specs = _operand_specs(request.problem)
        inputs = synthetic_inputs(specs[:2])
        variants: dict[str, Callable[[], object]] = {}
        default: np.ndarray | None = None
        for i, choice in enumerate(choices):
            graph = loader.load(_gemm_plan(request, choice, i, specs, tools), library, {}, name=f"variant {choice}")
            product = graph(*inputs)[0]._array
            same = default is None or _same_product(default, product, request.problem.k)
            if default is None:
                default = product.copy()
            product.fill(np.nan)  # the next variant may get this memory, and must not find the right answer in it
            if not same:
                _COMPONENT.warning(f"{_describe(request)}: {choice} computes a product that differs from {choices[0]}'s; not used")
                continue
            variants[str(i)] = partial(graph, *inputs)
        seconds = measure(variants, deadline)
    order = sorted(map(int, seconds), key=lambda i: seconds[str(i)])
    winners.remember(request, choices[int(_clearly_fastest(seconds))])
    if _LOG.enabled:
        p = request.problem
        flops = 2.0 * p.batch * p.m * p.n * p.k
        lines = [f"{_describe(request)}: {len(choices)} variants"]
        for i in order:
            t = seconds[str(i)]
            lines.append(f"  {t * 1e6:10.1f} us {flops / t / 1e9:7.1f} GFLOP/s  {choices[i]}")
        _LOG.log("\n".join(lines))


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


def _gemm_units(request: Request, choices: Sequence[GemmChoice], tools: Toolchain) -> list[SourceUnit]:
    p = request.problem
    real = {"float32": "float", "float64": "double"}[p.dtype]
    text, cores = [RUNTIME_ABI], {}
    for i, choice in enumerate(choices):
        head = f'extern "C" __attribute__((visibility("default"))) void run{i}(char **bufs, const Runtime *rt)'
        if choice.kernel == "blas":
            text.append(f"{_PASS}{head} {{ {_blas_call(p)} {_pass_over(p, real) if request.fused else ''} }}")
            continue
        code = gemm.render(p, f"product{i}", None, tools, choice, request.packed)
        cores[code.unit.name] = code.unit
        b = 3 if request.packed else 1
        text += [code.text, code.pack_text]
        if request.packed:
            text.append(pack_function(f"pack{i}", f"product{i}_pack", "bufs[1]", 3))
        text.append(f"{head} {{ product{i}(({real} *)bufs[0], ({real} *)bufs[{b}], ({real} *)bufs[2], 0, bufs, rt); }}")
    return [SourceUnit("variants", "\n".join(text)), *cores.values()]


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


def _gemm_plan(
    request: Request, choice: GemmChoice, number: int, specs: tuple[Spec, Spec, Spec], tools: Toolchain
) -> ArtifactPlan:
    p = request.problem
    itemsize = dtypes.by_name(p.dtype).itemsize
    packs: tuple[Pack, ...] = ()
    if request.packed:
        packed = choice.kernel != "blas"
        tile = gemm.tile_of(choice, p, tools) if packed else None
        packs = (Pack(f"pack{number}", (1,), gemm.packed_bytes(tile, p)),) if tile is not None else ()
    return ArtifactPlan(
        specs[:2],
        (NewOutput(0, specs[2]),),
        (Allocation(specs[2].strides[0] * p.batch * itemsize),),
        packs=packs,
        steps=(NativeSegment(f"run{number}", 1_000_000),),
    )


# --------------------------------------------------------------------------- knobs of a graph


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
    """The fastest of `variants` for one graph; the first unless another is clearly faster.

    load: compiles the graph with these knobs and makes it callable; None if the knobs do not change its code.
    """
    deadline = time.perf_counter() + budget_s
    runs: dict[str, Callable[[], object]] = {}
    for i, knobs in enumerate(variants):
        if i and time.perf_counter() > deadline - budget_s / 2:
            break  # half of the budget is for measuring
        try:
            graph = load(knobs)
        except CompileError as error:
            if i == 0:
                raise
            _LOG.log(f"{knobs}: not measured, since they did not compile: {error}")
            continue
        if graph is None:
            continue
        runs[str(i)] = partial(graph, *inputs)
    state = get_rng_state()
    try:
        seconds = measure(runs, deadline)
    except Exception as error:  # noqa: BLE001 - an op may raise for generated inputs; the graph itself is valid
        _LOG.log(f"the graph cannot be measured on generated inputs ({type(error).__name__}: {error}); default knobs")
        return variants[0]
    finally:
        set_rng_state(state)  # a measurement of a graph with random draws must not change the program's draws
    chosen = int(_clearly_fastest(seconds))
    if _LOG.enabled:
        lines = [f"{len(runs)} different variants of the graph; chosen: {variants[chosen]}"]
        lines += [
            f"  {seconds[i] * 1e6:10.1f} us  {variants[int(i)]}" for i in sorted(seconds, key=seconds.__getitem__)
        ]
        _LOG.log("\n".join(lines))
    return variants[chosen]
