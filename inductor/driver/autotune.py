"""The fastest matrix kernel for each product, measured within a time budget and stored on disk.

Owns the search and the keys of winners. It does not depend on the loop IR.

Measuring needs little memory: a product is cut to operands of about 16 MiB, with the blocking of the whole product, and packed operands
are shared by the variants that read the same panels.

All measured variants compute the same values, so a wrong measurement costs time but changes no result. This is checked: a
matrix kernel whose product differs from the default's is never chosen, and a stored winner that is not a candidate of this
version is ignored.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base import dtypes, logs
from eager.base import machine as host
from eager.base.records import dataclass
from inductor.artifact.format import (
    RUNTIME_ABI,
    Allocation,
    ArtifactPlan,
    NativeSegment,
    NewOutput,
    SourceUnit,
    Spec,
)
from inductor.base.toolchain import CompileError, Toolchain, build
from inductor.cpp import gemm
from inductor.cpp.gemm import GemmChoice, Request
from inductor.cpp.gemm_problem import REAL, GemmProblem, pack_function
from inductor.cpp.units import RUN, Functions, joined
from inductor.driver.stored_winners import StoredWinners
from inductor.driver.timing import Budget, clearly_fastest, measure, span_of, synthetic_inputs
from inductor.driver.tuning_report import Bar, table
from inductor.runtime import loader

__all__ = ["Winners", "tune_gemms"]

_LOG = logs.artifact("autotuning")
_COMPONENT = logs.component("inductor")
_FORMAT = 4
_MOST_BYTES = 16 << 20  # of an operand of a measured product: larger than the private caches of a core
_LEAST_COLUMNS, _LEAST_ROWS = 1024, 256  # of a product that is cut: several blocks
_PITCH = 1024  # elements: rows whose distance has the same remainder map to the same sets of a first-level cache


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
        self._stored: StoredWinners[GemmChoice] = StoredWinners(folder)
        self._tools = tools
        self._threads = threads
        self._requests: set[Request] = set()

    def __getitem__(self, request: Request) -> GemmChoice:
        choice = self._find(request)
        if choice is None:
            raise KeyError(request)
        return choice

    def __iter__(self) -> Iterator[Request]:
        return (r for r in list(self._requests) if self._find(r) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def remember(self, request: Request, choice: GemmChoice) -> None:
        """Store a winner, in this process and on disk."""
        self._requests.add(request)
        self._stored.remember(self._key(request), choice, asdict(choice))

    def _key(self, request: Request) -> str:
        return _Question(request, self._tools.key(), self._threads).text()

    def _find(self, request: Request) -> GemmChoice | None:
        def candidate(found: Mapping[str, Any]) -> GemmChoice | None:
            return next((c for c in gemm.candidates(request, self._tools, host.has_blas()) if asdict(c) == found), None)

        self._requests.add(request)
        return self._stored.find(self._key(request), candidate)


# --------------------------------------------------------------------------- matrix kernels


def tune_gemms(requests: Sequence[Request], tools: Toolchain, winners: Winners, objects: Path, budget_s: float) -> None:
    """Measure the candidates of every request that has no winner yet, until the budget is spent.

    All candidates are compiled first, in parallel.
    """
    budget = Budget(budget_s)
    wanted = [r for r in requests if r not in winners]
    for request in requests:
        if request not in wanted:
            _LOG.log(f"{_describe(request)}: {winners[request]} (measured earlier)")
    with tempfile.TemporaryDirectory(prefix="framejit-tune-") as folder, Bar("products", len(wanted)) as bar:
        libraries = _libraries(wanted, tools, Path(folder), objects) if budget_s > 0 else {}
        for number, request in enumerate(wanted):
            if budget.is_spent:
                _LOG.log(f"the budget of {budget_s} s is spent; {len(wanted) - number} products keep the rule of thumb")
                return
            if request in libraries:
                bar.step(_describe(request))
                share = budget.share(1 / (len(wanted) - number))
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
        (Allocation(span_of(specs[2]) * itemsize),),
        steps=(NativeSegment(symbol, 1_000_000),),
    )


def _pack_plan(p: GemmProblem, choice: GemmChoice, symbol: str, b: Spec, tools: Toolchain) -> ArtifactPlan:
    nbytes = gemm.packed_bytes(gemm.tile_of(choice, p, tools), p)
    packed = Spec((nbytes // dtypes.by_name(p.dtype).itemsize,), (1,), p.dtype)
    return ArtifactPlan((b,), (NewOutput(0, packed),), (Allocation(nbytes),), steps=(NativeSegment(symbol, 1_000_000),))
