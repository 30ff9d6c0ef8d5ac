"""The search for the fastest schedule of each kernel of a graph on a GPU, within a time budget.

Owns which candidates are compiled and timed, and in which order. How a candidate is timed is a parameter (`inductor.driver.gpu_timing`),
and so is its compilation. At most half of the budget goes to compilation. A candidate is left out, with a line in the log, if it
does not compile, spills more than the default, needs more shared memory than the device has, does not run, or computes other values.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import field
from multiprocessing import get_context
from typing import Final, TypeAlias

import numpy as np

from eager.base import logs
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.ir.graph import Graph
from inductor.base.target import Target
from inductor.driver.comparison import difference, written_by
from inductor.driver.cuda import Choose, CudaPlan, Launch, lower_to_cuda
from inductor.driver.cuda_artifact import capability_of, workers_for
from inductor.driver.gpu_candidates import Candidate, candidates, default_candidate, products_in
from inductor.driver.gpu_library import Cublas, Library, library_candidates
from inductor.driver.gpu_timing import EventTimer, Timer, Variant
from inductor.driver.gpu_winners import Winners, description, is_fixed
from inductor.driver.timing import Budget, clearly_fastest
from inductor.driver.tuning_report import Bar, table
from inductor.ir import definitions as ir
from inductor.ir.sizes import fixed, nominal, product
from inductor.loops.tree import Kernel
from inductor.plan.gpu_schedule import sizes_of
from inductor.triton.compile import Cubin, Resources, compile_kernel, prepare, resources
from inductor.triton.kernel import CHECKS_POINTER, Launches, Options, TritonKernel
from inductor.triton.values import Unprintable

__all__ = ["Built", "Job", "build", "jobs_of", "measured", "memory_of", "tune"]

_LOG: Final = logs.artifact("autotuning")
_COMPONENT: Final = logs.component("inductor")
TF32_ROUNDING: Final = 2.0**-11  # relative error of an operand of a product in tf32


@dataclass(frozen=True, slots=True)
class Built:
    """The machine code of a kernel and its resources."""

    cubin: Cubin
    resources: Resources


Build: TypeAlias = Callable[[TritonKernel, int], Built]  # a kernel for a compute capability, in another process


def build(kernel: TritonKernel, capability: int) -> Built:
    """Compile one kernel. Raises: the compiler's errors."""
    cubin = compile_kernel(kernel, capability)
    return Built(cubin, resources(cubin))


@dataclass(slots=True)
class Job:
    """One kernel to tune. found: its candidates and their printed kernels, by the candidate's number; 0 is the default.

    title: the user's calls that it computes.
    """

    key: str
    loops: Kernel
    options: Options
    title: str = ""
    found: dict[int, tuple[Candidate, Launches]] = field(default_factory=dict)


def measured(graph: Graph, where: device, target: Target, precision: str, winners: Winners, budget_s: float) -> Choose:
    """The fastest schedules of a graph's kernels on a device, of which those without a stored schedule are measured now.

    precision: of products of float32, as in `Options`.
    Raises: as `lower_to_cuda`; TritonUnavailable.
    """
    plan, jobs = jobs_of(graph, target, winners, precision)
    if jobs and budget_s > 0:
        prepare()
        library = Cublas(where) if winners.library else None
        tune(plan.program, target, jobs, winners, EventTimer(where, target), budget_s, library=library)
    elif jobs:
        _LOG.log(f"the budget is {budget_s} s; {len(jobs)} kernels keep the default")
    return winners.choose


def jobs_of(graph: Graph, target: Target, winners: Winners, precision: str = "ieee") -> tuple[CudaPlan, list[Job]]:
    """The plan of a graph with default schedules, and its different kernels that have no stored schedule."""
    jobs: dict[str, Job] = {}
    skipped = 0

    def collect(loops: Kernel, target: Target, options: Options) -> Candidate:
        nonlocal skipped
        default = default_candidate(loops, target, options)
        printed = default.printed("kernel")
        if not is_fixed(printed):
            skipped += 1
            return default
        key = winners.key(default, target)
        if key in jobs:
            return default
        known = winners.find(key, loops, target, options)
        if known is None:
            jobs[key] = Job(key, loops, options, found={0: (default, printed)})
        else:
            _LOG.log(f"the kernel over {', '.join(loops.dtypes)}: {description(known)} (measured earlier)")
        return default

    plan = lower_to_cuda(graph, target, precision, collect)
    if skipped:
        _LOG.log(f"{skipped} kernels of symbolic sizes keep the default: they serve many sizes")
    titles = {plan.kernels[s.kernel].code: s.title for s in plan.steps if isinstance(s, Launch)}
    for job in jobs.values():
        job.title = next((titles[k.code] for k in job.found[0][1].kernels if k.code in titles), "kernel")
    return plan, [job for job in jobs.values() if any(k.pointers for k in job.found[0][1].kernels)]


def tune(program: ir.Program, target: Target, jobs: Sequence[Job], winners: Winners, timer: Timer, budget_s: float,
         build: Build = build, library: Library | None = None) -> None:  # fmt: skip
    """Measure the candidates of each job and store the fastest, until the budget is spent. The others keep the default.

    library: of matrix products, whose algorithms are candidates too.
    """
    budget = Budget(budget_s)
    for job in jobs:
        _print(job, target, library, winners.descriptors)
    built = _compiled(jobs, capability_of(target), build, budget.compile_deadline)
    try:
        with Bar("kernels", len(jobs)) as bar:
            for number, job in enumerate(jobs):
                if budget.is_spent:
                    _LOG.log(f"the budget of {budget_s} s is spent; {len(jobs) - number} kernels keep the default")
                    break
                bar.step(job.title)
                variants = dict(_variants(job, built, program, target))
                _measure(job, variants, winners, timer, budget.share(1 / (len(jobs) - number)))
                bar.done()
    finally:
        timer.release()


def _print(job: Job, target: Target, library: Library | None, descriptors: bool) -> None:
    """Schedule and print the candidates of a job. The library's come first, since they take little to compile."""
    precision = job.options.precision
    own = candidates(job.loops, target, precision, descriptors)[1:]
    found = [*(library_candidates(job.loops, target, precision, library) if library else ()), *own]
    for i, candidate in enumerate(found, 1):
        try:
            job.found[i] = candidate, candidate.printed("kernel")
        except Unprintable as error:
            _left_out(job, candidate, str(error))


def _left_out(job: Job, candidate: Candidate, reason: str) -> None:
    _LOG.log(f"{job.title}: {description(candidate)} is left out: {reason}")


# --------------------------------------------------------------------------- compilation


def _compiled(jobs: Sequence[Job], capability: int, build: Build, deadline: float) -> dict[tuple[object, ...], Built | str]:
    """Machine code of each different kernel, or the reason why it was left out.

    Defaults come first, then the likely candidates of every job. Those that are not done at the deadline are given up; defaults are not.
    """
    ranked = sorted(((i, n) for n, job in enumerate(jobs) for i in job.found))
    kernels = {k.code: (k, i) for i, n in reversed(ranked) for k in jobs[n].found[i][1].kernels}
    order = sorted(kernels, key=lambda code: kernels[code][1])
    done: dict[tuple[object, ...], Built | str] = {}
    with ProcessPoolExecutor(max(1, workers_for(len(order))), mp_context=get_context("fork")) as pool:
        futures = {code: pool.submit(build, kernels[code][0], capability) for code in order}
        for code, future in futures.items():
            done[code] = _result(future, None if kernels[code][1] == 0 else deadline)
        pool.shutdown(cancel_futures=True)
    return done


def _result(future: Future[Built], deadline: float | None) -> Built | str:
    try:
        return future.result(None if deadline is None else max(0.0, deadline - time.perf_counter()))
    except NotInTime:
        future.cancel()
        return "it was not compiled within half of the budget"
    except Exception as error:  # noqa: BLE001 - any error of Triton's compiler, or the end of its process
        return f"it does not compile ({type(error).__name__}: {_first_line(error)})"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")


# --------------------------------------------------------------------------- timing


def _variants(
    job: Job, built: Mapping[tuple[object, ...], Built | str], program: ir.Program, target: Target
) -> Iterator[tuple[int, Variant]]:
    """The candidates that may be timed, by number."""
    most_spilled = sum(_spilled(built[k.code]) for k in job.found[0][1].kernels)
    for i, (candidate, launches) in job.found.items():
        found = [built[k.code] for k in launches.kernels]
        reason = _reason(found, most_spilled if i else None, target)
        if reason:
            _left_out(job, candidate, reason)
            continue
        cubins = tuple(b.cubin for b in found if isinstance(b, Built))
        memory, written = memory_of(candidate, launches, program), written_by([job.loops])
        yield i, Variant(launches.kernels, cubins, memory, len(program.checks), candidate.library, written)


def _reason(found: Sequence[Built | str], most_spilled: int | None, target: Target) -> str:
    """Why a candidate is left out; "" if it is not. most_spilled: bytes of a thread; None for the default, which may spill."""
    for b in found:
        if isinstance(b, str):
            return b
        if b.cubin.shared_bytes > target.shared_bytes:
            return f"it needs {b.cubin.shared_bytes} bytes of shared memory; {target.name} has {target.shared_bytes}"
    spilled = sum(map(_spilled, found))
    if most_spilled is not None and spilled > most_spilled:
        return f"it keeps {spilled} bytes of a thread outside of registers; the default {most_spilled}"
    return ""


def _spilled(b: Built | str) -> int:
    return b.resources.spilled_bytes if isinstance(b, Built) else 0


def memory_of(candidate: Candidate, launches: Launches, program: ir.Program) -> dict[str, tuple[dtype, int]]:
    """The buffers of a candidate."""
    scratch = {x.name: fixed((x.size,), "scratch")[0] * x.dtype.itemsize for x in launches.scratch}
    named = {name: of for k in launches.kernels for name, of in zip(k.pointers, k.dtypes, strict=True) if name != CHECKS_POINTER}
    if candidate.library is not None:
        named |= candidate.library.buffers
    return {name: (of, scratch[name] if name in scratch else fixed((program.buffers[name].layout.nbytes,), "a buffer")[0])
            for name, of in named.items()}  # fmt: skip


def _measure(job: Job, variants: Mapping[int, Variant], winners: Winners, timer: Timer, deadline: float) -> None:
    """Time the variants of a job until the deadline, at least one, and store the fastest.

    A variant whose results differ from the first variant's, usually the default's, is not used.
    """
    seconds: dict[str, float] = {}
    wanted: dict[str, np.ndarray] = {}
    rounding = TF32_ROUNDING if job.options.precision == "tf32" else 0.0
    for i, variant in variants.items():
        if seconds and time.perf_counter() > deadline:
            _LOG.log(f"{job.title}: {len(variants) - len(seconds)} candidates are not timed: the kernel's part of the budget is spent")
            break
        try:
            found = timer.results(variant)
            different = difference(wanted, found, rounding)
            if different:
                _COMPONENT.warning(f"{job.title}: {description(job.found[i][0])} computes other values of {different} than "
                                   f"{description(job.found[int(next(iter(seconds)))][0])}; not used")  # fmt: skip
                continue
            seconds[str(i)] = timer.seconds(variant)
            wanted = wanted or found
        except Exception as error:  # noqa: BLE001 - the driver's errors, and exhausted memory; the default is not affected
            _left_out(job, job.found[i][0], f"it does not run ({type(error).__name__}: {_first_line(error)})")
    if not seconds:
        _LOG.log(f"{job.title}: no candidate can be timed; the default is used")
        return
    chosen = job.found[int(clearly_fastest(seconds))][0]
    described = {name: description(job.found[int(name)][0]) for name in seconds}
    winners.remember(job.key, job.loops, chosen, {described[name]: s for name, s in seconds.items()})
    if _LOG.enabled:
        title = f"{job.title}: {len(seconds)} of {len(job.found)} candidates"
        _LOG.log(table(title, seconds, described, clearly_fastest(seconds), _flops(job.loops)))


def _flops(loops: Kernel) -> float:
    """Operations of the products of a kernel."""
    return sum(2.0 * nominal(product(n for _, n in x.axes.batch)) * math.prod(sizes_of(x)) for x in products_in(loops))
