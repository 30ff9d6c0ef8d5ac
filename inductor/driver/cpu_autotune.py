"""The search for the fastest schedule of each kernel of a graph on the CPU, within a time budget.

Owns which kernels and candidates are compiled and timed, in which order, and the keys of winners. Kernels of equal loops are measured
once. First the defaults are timed: a kernel that takes less than `LEAST_PART` of the graph's time keeps its default, and the others
share the budget in proportion to their time. Candidates are compiled in parallel, in at most half of the budget. A candidate is left out,
with a line in the log, if it does not compile in time. A candidate whose results differ from the default's is never chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from eager import _native as eager_native
from eager.base import logs
from eager.base.records import dataclass
from fxir.ir.graph import Graph
from inductor.artifact.cache import KERNEL_WINNER
from inductor.base.choice import DEFAULT, Choice, Choose
from inductor.base.request import Request
from inductor.base.toolchain import CompileError, Toolchain, compile_workers
from inductor.driver.comparison import difference
from inductor.driver.compile import Tunable, tunable_kernels
from inductor.driver.cpu_candidates import (
    Candidate,
    Machine,
    call_places,
    candidates,
    description,
    read_candidate,
    record,
    used_by,
)
from inductor.driver.cpu_timing import Memory, Run, compile_candidates, load_candidate
from inductor.driver.stored_winners import StoredWinners
from inductor.driver.timing import Budget, clearly_fastest, measure
from inductor.driver.tuning_report import Bar, table
from inductor.loops.steps import to_text
from inductor.plan.kernels import Unscheduled

__all__ = ["Job", "jobs_of", "measured", "tune"]

_LOG: Final = logs.artifact("autotuning")
_COMPONENT: Final = logs.component("inductor")
_FORMAT: Final = 1
LEAST_PART: Final = 0.02  # of a graph's time: the search costs more than a kernel of less can gain
_LEAST_ESTIMATE: Final = 0.002  # of a graph's estimated time: the estimate may be wrong by a factor of several
_FINALISTS: Final = 3  # candidates that are measured again beside the default
_FIRST_ROUNDS: Final = 2  # of all candidates


@dataclass(slots=True)
class Job:
    """One kernel to tune. plain: its equal kernels. runs: how often the graph runs it. found: its candidates; 0 is the default.

    seconds: of one run with the default schedule, once it was measured.
    """

    key: str
    plain: list[Unscheduled]
    memory: Memory
    title: str
    checks: int
    runs: int
    cost_ns: float
    found: list[Candidate] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def used(self) -> Memory:
        """The memory of the candidates."""
        return used_by(self.found, self.memory)


class Winners:
    """The schedules measured so far on one machine. machine: the text that names the processor and the compiler."""

    def __init__(self, folder: Path, machine: str) -> None:
        self._stored: StoredWinners[Choice] = StoredWinners(folder)
        self._machine = machine

    def key(self, kernel: Tunable, memory: Memory, threads: int) -> str:
        """The key of a kernel: the text of its default schedule and the sizes of its buffers."""
        default = Candidate(DEFAULT, *kernel.plain.scheduled(DEFAULT)).printed(call_places(memory))
        sizes = ", ".join(f"{of.name} {nbytes}" for of, nbytes in memory.values())
        return f"{_FORMAT}|{self._machine}|{threads} threads|{sizes}\n{default.code.text}{default.call}"

    def find(self, key: str, plain: Unscheduled, machine: Machine) -> Choice | None:
        """The stored choice for a kernel; None if none is stored."""
        return self._stored.find(key, lambda found: read_candidate(found, plain, machine), KERNEL_WINNER)

    def remember(self, key: str, chosen: Candidate, seconds: Mapping[str, float]) -> None:
        """Store a choice, in this process and on disk. seconds: the measured times, by the candidate's description."""
        measured_us = {name: round(s * 1e6, 3) for name, s in seconds.items()}
        answer: dict[str, Any] = {**record(chosen), "us": measured_us.get(description(chosen.choice)), "measured_us": measured_us}
        self._stored.remember(key, chosen.choice, answer, KERNEL_WINNER)


def measured(graph: Graph, request: Request, folder: Path, budget_s: float) -> Choose:
    """The fastest choice for each kernel of a graph, of which those without a stored winner are measured now.

    request: with default choices. folder: of the winners.
    """
    winners, machine = Winners(folder, request.tools.key()), Machine(request.tools.simd_bits, request.threads)
    kernels, other_ns = tunable_kernels(graph, request)
    chosen, jobs = jobs_of(kernels, winners, machine)
    if jobs and budget_s > 0:
        chosen |= tune(jobs, other_ns, winners, machine, request.tools, budget_s)
    elif jobs:
        _LOG.log(f"the budget is {budget_s:.1f} s; {len(jobs)} kernels keep the default")
    return lambda plain: chosen.get(plain, DEFAULT)


def jobs_of(kernels: Sequence[Tunable], winners: Winners, machine: Machine) -> tuple[dict[Unscheduled, Choice], list[Job]]:
    """The stored choices of kernels, and the different kernels without a stored choice."""
    chosen: dict[Unscheduled, Choice] = {}
    jobs: dict[str, Job] = {}
    skipped = 0
    for k in kernels:
        memory = {name: (of, nbytes) for name, (of, nbytes) in k.memory.items() if isinstance(nbytes, int)}
        if len(memory) < len(k.memory):
            skipped += 1
            continue
        if not k.cost_ns:  # it computes no element
            continue
        key = winners.key(k, memory, machine.threads)
        stored = None if key in jobs else winners.find(key, k.plain, machine)
        if stored is not None:
            chosen[k.plain] = stored
            _LOG.log(f"{k.title}: {description(stored)} (measured earlier)")
        elif key in jobs:
            jobs[key].plain.append(k.plain)
            jobs[key].runs += k.runs
        else:
            jobs[key] = Job(key, [k.plain], memory, k.title, k.checks, k.runs, k.cost_ns)
    if skipped:
        _LOG.log(f"{skipped} kernels of symbolic sizes keep the default: they serve many sizes")
    return chosen, list(jobs.values())


def tune(jobs: Sequence[Job], other_ns: float, winners: Winners, machine: Machine, tools: Toolchain,
         budget_s: float) -> dict[Unscheduled, Choice]:  # fmt: skip
    """Measure the candidates of each job, and store the fastest, until the budget is spent. The others keep the default.

    other_ns: estimated time of the graph outside of these jobs.
    """
    budget = Budget(budget_s)
    chosen: dict[Unscheduled, Choice] = {}
    with TemporaryDirectory(prefix="framejit-tune-") as name, Bar("kernels", len(jobs)) as bar:
        folder = Path(name)
        bar.step("defaults")
        wanted = _worthwhile(jobs, other_ns, machine, tools, folder, budget)
        for _ in range(len(jobs) - len(wanted)):
            bar.done()
        bar.step("compilation")
        libraries = _compiled(wanted, machine, tools, folder, budget)
        total = sum(job.runs * job.seconds for job in wanted)
        for number, job in enumerate(wanted):
            if budget.is_spent:
                _LOG.log(f"the budget of {budget_s:.1f} s is spent; {len(wanted) - number} kernels keep the default")
                break
            bar.step(job.title)
            part = job.runs * job.seconds / total
            total -= job.runs * job.seconds
            best = _fastest(job, libraries[job.key], winners, budget.share(part))
            chosen |= dict.fromkeys(job.plain, best)
            bar.done()
    eager_native.empty_cache()
    return chosen


# --------------------------------------------------------------------------- which kernels


def _worthwhile(jobs: Sequence[Job], other_ns: float, machine: Machine, tools: Toolchain, folder: Path, budget: Budget) -> list[Job]:
    """The jobs that take a part of the graph's time, the longest first. Their defaults are compiled together and timed."""
    whole_ns = other_ns + sum(job.runs * job.cost_ns for job in jobs)
    likely = [job for job in jobs if job.runs * job.cost_ns >= _LEAST_ESTIMATE * whole_ns]
    likely.sort(key=lambda job: -job.runs * job.cost_ns)
    for job in likely:
        job.found = [Candidate(DEFAULT, *job.plain[0].scheduled(DEFAULT))]
    made = [(job, [0], folder / f"default{k}.so") for k, job in enumerate(likely)]
    for job, library in zip(likely, _built(made, tools, budget), strict=True):
        if library is not None and not budget.is_spent:
            run = Run(job.found, job.used)
            default = run.bind(load_candidate(0, job.used, job.checks, library))
            job.seconds = measure({"0": default}, budget.deadline, 1, run.before)["0"]
    whole_s = other_ns * 1e-9 / machine.threads + sum(job.runs * job.seconds for job in jobs)
    found = [job for job in likely if job.seconds and job.runs * job.seconds >= LEAST_PART * whole_s]
    if len(found) < len(jobs):
        _LOG.log(f"{len(jobs) - len(found)} of {len(jobs)} kernels keep the default: each takes less than {LEAST_PART:.0%} of the "
                 f"graph's {whole_s * 1e3:.3g} ms")  # fmt: skip
    return sorted(found, key=lambda job: -job.runs * job.seconds)


# --------------------------------------------------------------------------- compilation


def _in_parallel(calls: Sequence[Callable[[], None]]) -> list[Future[None]]:
    """Run the calls, as many at once as compilers may run; their errors."""
    with ThreadPoolExecutor(max(1, min(len(calls), compile_workers()))) as pool:
        return [pool.submit(call) for call in calls]


def _compilation(job: Job, numbers: Sequence[int], library: Path, tools: Toolchain, deadline: float) -> Callable[[], None]:
    def run() -> None:
        left_s = deadline - time.perf_counter()
        if left_s <= 0:
            raise NotInTime
        compile_candidates({i: job.found[i] for i in numbers}, job.used, job.checks, tools, library, left_s)

    return run


def _built(wanted: Sequence[tuple[Job, Sequence[int], Path]], tools: Toolchain, budget: Budget) -> list[Path | None]:
    """The libraries of candidates, by their numbers. Those that are not done in half of the budget are given up: None."""
    libraries: list[Path | None] = []
    futures = _in_parallel([_compilation(*each, tools=tools, deadline=budget.compile_deadline) for each in wanted])
    for (job, numbers, library), future in zip(wanted, futures, strict=True):
        try:
            future.result()
            libraries.append(library)
        except (NotInTime, CompileError) as error:
            is_late = time.perf_counter() > budget.compile_deadline
            reason = "not compiled within half of the budget" if is_late else f"no code: {error}"
            _LOG.log(f"{job.title}: left out: {'; '.join(description(job.found[i].choice) for i in numbers)}: {reason}")
            libraries.append(None)
    return libraries


def _compiled(jobs: Sequence[Job], machine: Machine, tools: Toolchain, folder: Path, budget: Budget) -> dict[str, dict[int, Path]]:
    """The library of each candidate, by the job's key and the candidate's number. Those that are not done in time are given up."""
    made: list[tuple[Job, Sequence[int], Path]] = []
    for k, job in enumerate(jobs):
        if time.perf_counter() < budget.compile_deadline:
            job.found = candidates(job.plain[0], job.memory, machine)
        for bits in sorted({c.choice.vector_bits for c in job.found}):
            of_width = [i for i, c in enumerate(job.found) if c.choice.vector_bits == bits]
            made.append((job, of_width, folder / f"kernel{k}_{bits}.so"))
    libraries: dict[str, dict[int, Path]] = {job.key: {} for job in jobs}
    for (job, numbers, _), library in zip(made, _built(made, tools, budget), strict=True):
        if library is not None:
            libraries[job.key] |= dict.fromkeys(numbers, library)
    return libraries


# --------------------------------------------------------------------------- timing


def _fastest(job: Job, libraries: Mapping[int, Path], winners: Winners, deadline: float) -> Choice:
    """Time the candidates of a job until the deadline, at least the default, and store the fastest."""
    if 0 not in libraries:
        return DEFAULT
    run = Run(job.found, job.used)
    runs = {i: load_candidate(i, job.used, job.checks, library) for i, library in libraries.items()}
    wanted = run.results(runs[0])
    variants = {}
    for i, call in runs.items():
        if i and time.perf_counter() > deadline:
            break
        different = difference(wanted, run.results(call)) if i else ""
        if different:
            _COMPONENT.warning(f"{job.title}: {description(job.found[i].choice)} computes other values of {different} than the default; "
                               "not used")  # fmt: skip
        else:
            variants[str(i)] = run.bind(call)
    seconds = measure(variants, deadline, _FIRST_ROUNDS, run.before)
    finalists = sorted(seconds, key=lambda name: seconds[name] if name != "0" else 0.0)[: 1 + _FINALISTS]
    times = seconds | _confirmed({name: variants[name] for name in finalists}, deadline, run)
    chosen = clearly_fastest({name: times[name] for name in finalists})
    described = {name: description(job.found[int(name)].choice) for name in seconds}
    best = job.found[int(chosen)]
    if len(seconds) > 1 or len(job.found) == 1:  # else the budget was too small, and a later one may be larger
        winners.remember(job.key, best, {described[name]: s for name, s in times.items()})
    if _LOG.enabled:
        often = f", run {job.runs} times" if job.runs > 1 else ""
        title = f"{job.title}{often}: {len(seconds)} of {len(job.found)} schedules"
        _LOG.log(f"{table(title, times, described, chosen)}\n* {to_text(best.steps) or 'no step'}")
    return best.choice


def _confirmed(variants: Mapping[str, Callable[[], object]], deadline: float, run: Run) -> dict[str, float]:
    """Seconds of each variant in two measurements: the less of the default, and the more of each other variant.

    So a variant that was fast once does not replace the default.
    """
    first, second = (measure(variants, deadline, before=run.before) for _ in range(2))
    return {name: (min if name == "0" else max)(first[name], second[name]) for name in first if name in second}
