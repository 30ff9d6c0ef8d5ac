"""Tuning of CPU kernels: the search replaces a bad default, winners are stored and used again, and no choice changes a result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.base import logs, settings
from eager.base import machine as host
from eager.base.spec import fake_like
from fxir.base.options import GraphKind
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
from inductor.artifact.cache import CPU_WINNERS
from inductor.base import toolchain
from inductor.base.choice import DEFAULT, Choice
from inductor.base.request import Request
from inductor.driver import cpu_autotune, cpu_candidates, cpu_timing
from inductor.driver.comparison import difference
from inductor.driver.compile import compile_graph, tunable_kernels
from inductor.driver.cpu_autotune import Winners, jobs_of
from inductor.driver.cpu_candidates import Machine, candidates, description
from inductor.plan import kernels
from tests.inductor.helpers_runtime import peak_growth

F = torch.nn.functional
ONE = Machine(512, 1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    with settings.scope(cache_dir=tmp_path / "cache", cpu_threads=1):
        host.configure()
        yield
    host.configure()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of winners."""
    return tmp_path / "winners"


def request() -> Request:
    return Request(toolchain.toolchain())


def machine() -> Machine:
    return Machine(toolchain.toolchain().simd_bits, 1)


def graph_of(fn: Callable[..., object], *inputs: torch.Tensor) -> Graph:
    return trace(fn, [fake_like(x) for x in inputs])


def jobs(graph: Graph, folder: Path) -> list[cpu_autotune.Job]:
    return jobs_of(tunable_kernels(graph, request())[0], winners(folder), machine())[1]


def winners(folder: Path, name: str = "some machine") -> Winners:
    return Winners(folder, name)


def added() -> Graph:
    x = torch.zeros(256, 512)
    return graph_of(lambda x, y: (x.t() + y,), x, x.t().contiguous())


def texts(graph: Graph, choose: Callable[[Any], Choice] | None) -> list[str]:
    return [u.text for u in compile_graph(graph, GraphKind.INFERENCE, replace(request(), choose=choose)).units]


def declared(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[Choice], float]) -> list[str]:
    """Replaces the clock: each candidate has a declared time. Returns the list that the timed candidates go to."""
    timed: list[str] = []
    found: list[Choice] = []
    fastest = cpu_autotune._fastest

    def fastest_(job: cpu_autotune.Job, *rest: Any) -> Choice:
        found[:] = [c.choice for c in job.found]
        return fastest(job, *rest)

    def measure(variants: Any, *rest: Any, **named: Any) -> dict[str, float]:
        timed.extend(variants if found else ())
        return {name: seconds(found[int(name)] if found else DEFAULT) for name in variants}

    monkeypatch.setattr(cpu_autotune, "_fastest", fastest_)
    monkeypatch.setattr(cpu_autotune, "measure", measure)
    return timed


def untiled(choice: Choice) -> float:
    return 0.5 if not choice.register_tiles and not choice.tile_rows else 1.0


# --------------------------------------------------------------------------- candidates

KERNELS: Sequence[tuple[Callable[..., object], Sequence[tuple[int, ...]]]] = [
    (lambda x: (torch.softmax(x, -1),), [(33, 100)]),
    (lambda x: (F.layer_norm(x, (100,)),), [(33, 100)]),
    (lambda x, y: (x.t() * 2 + y,), [(70, 90), (90, 70)]),
    (lambda x: (x.sum(0), x.amax(0)), [(600, 70)]),
    (lambda x: (x.cumsum(1),), [(16, 300)]),
    (lambda x: (torch.cat([x, x * 2, F.pad(x, (3, 3))], 1),), [(20, 50)]),
    (lambda x: (F.max_pool2d(x, 2),), [(2, 3, 12, 20)]),
    (lambda x: (x.sum(), x.argmax()), [(40, 5000)]),
]


@pytest.mark.parametrize("fn, shapes", KERNELS)
def test_every_candidate_computes_the_values_of_the_default(fn: Callable[..., object], shapes: Any, tmp_path: Path) -> None:
    graph = graph_of(fn, *(torch.zeros(shape) for shape in shapes))
    for number, job in enumerate(jobs(graph, tmp_path)):
        found = dict(enumerate(candidates(job.plain[0], job.memory, Machine(machine().simd_bits, 2))))
        assert found[0].choice == DEFAULT and len({description(c.choice) for c in found.values()}) == len(found)
        library = tmp_path / f"{number}.so"
        cpu_timing.compile_candidates({i: c for i, c in found.items() if not c.choice.vector_bits}, job.memory, job.checks,
                                      toolchain.toolchain(), library)  # fmt: skip
        run = cpu_timing.Run(list(found.values()), job.memory)
        wanted = run.results(cpu_timing.load_candidate(0, job.memory, job.checks, library))
        assert wanted
        for i, c in found.items():
            if not c.choice.vector_bits:
                got = run.results(cpu_timing.load_candidate(i, job.memory, job.checks, library))
                assert not difference(wanted, got), description(c.choice)


def test_candidates_have_different_texts_and_matter_for_their_kernel(tmp_path: Path) -> None:
    (job,) = jobs(added(), tmp_path)
    found = candidates(job.plain[0], job.memory, ONE)
    names = {name for c in found for name, value in c.choice._asdict().items() if value != getattr(DEFAULT, name)}
    assert {"vector_bits", "register_tiles", "tile_rows", "tile_run"} <= names
    assert not names & {"lane_bytes", "column_bytes", "scanned", "parts", "parallel_ns"}
    assert all(c.steps == job.plain[0].scheduled(c.choice)[1] for c in found)


# --------------------------------------------------------------------------- the search


def test_a_default_that_was_made_worse_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """With real measurements: without tiles a transpose of these sizes takes a multiple of the time."""
    bad = DEFAULT._replace(register_tiles=(), tile_rows=())
    for module in (kernels, cpu_candidates, cpu_autotune):
        monkeypatch.setattr(module, "DEFAULT", bad)
    x, y = torch.randn(1024, 1024), torch.randn(1024, 1024)
    fn = torch.compile(lambda x, y: x.t() + y, options={"max_autotune": True, "autotune_budget_s": 600}, dynamic=False)
    with logs.capture("autotuning") as records:
        assert torch.equal(fn(x, y), x.t() + y)
    log = "\n".join(r.message for r in records)
    answers = [json.loads(path.read_text())["answer"] for path in (settings.current().cache.dir / CPU_WINNERS).glob("*")]
    assert len(answers) == 1 and answers[0]["choice"].keys() & {"register_tiles", "tile_rows"}, log
    (stored,) = answers
    assert "split(" in stored["schedule"] and stored["us"] < stored["measured_us"]["default"]
    (table,) = [r.message for r in records if "schedules" in r.message]
    assert stored["schedule"] in table and "us   variant" in table


def test_the_fastest_candidate_makes_the_code_and_is_read_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed, default = declared(monkeypatch, untiled), texts(added(), None)
    choose = cpu_autotune.measured(added(), request(), folder, 60.0)
    tuned = texts(added(), choose)
    assert tuned != default and len(timed) > 5
    timed.clear()
    with logs.capture("autotuning") as records:
        again = cpu_autotune.measured(added(), request(), folder, 60.0)
    assert texts(added(), again) == tuned and not timed
    assert any("register_tiles=(), tile_rows=() (measured earlier)" in r.message for r in records)


def test_equal_kernels_are_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(lambda x: (torch.softmax(torch.softmax(x, -1).cumsum(-1), -1),), torch.zeros(256, 512))
    assert sorted(job.runs for job in jobs(graph, folder)) == [1, 2]
    declared(monkeypatch, lambda choice: 0.5 if choice.lane_bytes == 128 else 1.0)
    choose = cpu_autotune.measured(graph, request(), folder, 60.0)
    assert len(list(folder.glob("*"))) == 2 and texts(graph, choose) != texts(graph, None)


def test_the_default_stays_unless_another_is_clearly_faster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(monkeypatch, lambda choice: 0.98 if not choice.register_tiles else 1.0)
    choose = cpu_autotune.measured(added(), request(), folder, 60.0)
    (stored,) = (json.loads(p.read_text())["answer"] for p in folder.glob("*"))
    assert stored["choice"] == {} and texts(added(), choose) == texts(added(), None)


def test_a_candidate_that_computes_other_values_is_never_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load = cpu_autotune.load_candidate

    def wrong(number: int, *args: Any) -> Callable[..., object]:
        run = load(number, *args)
        return (lambda b0, *more: (run(b0, *more), b0.add_(1))) if number == 3 else run

    monkeypatch.setattr(cpu_autotune, "load_candidate", wrong)
    timed = declared(monkeypatch, lambda choice: 1.0)
    cpu_autotune.measured(added(), request(), folder, 60.0)
    assert "3" not in timed and "2" in timed
    assert any("computes other values of b0 than the default; not used" in r.message for r in caplog.records)


@pytest.mark.parametrize("values, agree", [
    ([1.0, 2.0], True), ([1.0, 2.00001], True), ([1.0, 2.1], False), ([1.0, float("nan")], False), ([float("inf"), 2.0], False),
])  # fmt: skip
def test_results_may_differ_by_the_rounding_of_sums_alone(values: list[float], agree: bool) -> None:
    a, b = ({"b0": np.array(v, np.float32)} for v in ([1.0, 2.0], values))
    assert difference(a, b) == ("" if agree else "b0")
    ints = [{"b0": np.array(v, np.int64)} for v in ([1, 2], [1, 3])]
    assert difference(*ints) == "b0"


def test_a_kernel_that_updates_its_input_has_separate_memory_with_the_same_values_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[cpu_timing.Run] = []

    class Kept(cpu_timing.Run):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            runs.append(self)

    def update(p: torch.Tensor, g: torch.Tensor) -> None:
        p.mul_(3.0).add_(g)

    monkeypatch.setattr(cpu_autotune, "Run", Kept)
    p, g = torch.randn(5000), torch.randn(5000)
    wanted = p * 3 + g
    torch.compile(update, options={"max_autotune": True, "autotune_budget_s": 5})(p, g)
    assert torch.equal(p, wanted) and runs
    for run in runs:  # 3 to the power of the number of runs would be infinite
        assert all(np.isfinite(t.numpy()).all() for t in run.buffers)
        assert len({t.untyped_storage().data_ptr() for t in run.buffers}) == len(run.buffers) == 2


@pytest.mark.parametrize("fn", [
    lambda x, i, y: (x[i] * y,), lambda x, i, y: (x.index_add(0, i, y),), lambda x, i, y: (x.index_put((i,), y),),
])  # fmt: skip
def test_positions_in_data_are_spread_over_their_range_while_a_kernel_is_measured(fn: Callable[..., object], tmp_path: Path) -> None:
    graph = graph_of(fn, torch.zeros(50, 256), torch.zeros(400, dtype=torch.int64), torch.zeros(400, 256))
    job = jobs(graph, tmp_path)[0]
    run = cpu_timing.Run(candidates(job.plain[0], job.memory, ONE), job.memory)
    ((positions),) = (t for t in run.buffers if t.dtype is torch.int64)
    assert set(positions.tolist()) == set(range(50))


def test_kernels_of_little_time_and_of_symbolic_sizes_keep_the_default(folder: Path) -> None:
    x, y = torch.zeros(1 << 20), torch.zeros(1 << 14)
    with logs.capture("autotuning") as records:
        cpu_autotune.measured(graph_of(lambda x, y: (x.cos(), y.flip(0) + 1), x, y), request(), folder, 5.0)
        fn = torch.compile(lambda x: x * 2, options={"max_autotune": True, "autotune_budget_s": 3}, dynamic=True)
        assert torch.equal(fn(x), x * 2)
    text = "\n".join(r.message for r in records)
    assert "1 of 2 kernels keep the default: each takes less than 2% of the graph's" in text and len(list(folder.glob("*"))) <= 1
    assert "1 kernels of symbolic sizes keep the default: they serve many sizes" in text


def test_without_a_budget_nothing_is_measured_and_stored_winners_are_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = declared(monkeypatch, untiled)
    with logs.capture("autotuning") as records:
        choose = cpu_autotune.measured(added(), request(), folder, 0.0)
    assert not timed and not list(folder.glob("*")) and texts(added(), choose) == texts(added(), None)
    assert any("1 kernels keep the default" in r.message for r in records)
    cpu_autotune.measured(added(), request(), folder, 60.0)
    assert texts(added(), cpu_autotune.measured(added(), request(), folder, 0.0)) != texts(added(), None)


def test_compilation_takes_at_most_half_of_the_budget(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = cpu_autotune.compile_candidates

    def slowly(found: Any, *args: Any) -> None:
        time.sleep(0.6 if len(found) > 1 else 0.0)
        compile_(found, *args)

    monkeypatch.setattr(cpu_autotune, "compile_candidates", slowly)
    monkeypatch.setattr(cpu_autotune, "compile_workers", lambda: 1)
    x = torch.zeros(512, 512)
    with logs.capture("autotuning") as records:
        cpu_autotune.measured(graph_of(lambda x, y: (x.t() + y, x.sum(0)), x, x), request(), folder, 2.0)
    assert any("not compiled within half of the budget" in r.message for r in records)


# --------------------------------------------------------------------------- winners


@pytest.mark.parametrize("damage", ["not json", '{"question": 1}', "another choice", "another schedule"])
def test_an_entry_that_names_no_candidate_is_ignored(damage: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = declared(monkeypatch, untiled)
    tuned = texts(added(), cpu_autotune.measured(added(), request(), folder, 60.0))
    (path,) = folder.glob("*")
    if damage.startswith("another"):
        known, (kernel, *_) = Winners(folder, request().tools.key()), tunable_kernels(added(), request())[0]
        memory: Any = kernel.memory
        (_, chosen, *_) = candidates(kernel.plain, memory, machine())
        strange = chosen._replace(choice=chosen.choice._replace(tile_run=3)) if damage == "another choice" else chosen._replace(steps=())
        known.remember(known.key(kernel, memory, 1), strange, {})
    else:
        path.write_text(damage)
    timed.clear()
    assert texts(added(), cpu_autotune.measured(added(), request(), folder, 60.0)) == tuned and timed
    assert len(list(folder.glob("*"))) == 1


def test_winners_hold_for_one_machine_compiler_and_number_of_threads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(monkeypatch, untiled)
    cpu_autotune.measured(added(), request(), folder, 60.0)
    (kernel, *_) = tunable_kernels(added(), request())[0]
    memory: Any = kernel.memory
    for name, threads, is_known in ((request().tools.key(), 1, True), (request().tools.key(), 2, False), ("other", 1, False)):
        known = Winners(folder, name)
        assert (known.find(known.key(kernel, memory, threads), kernel.plain, machine()) is not None) == is_known


def test_winners_change_no_other_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the default mode is the same after tuning; the tuned code is found again."""
    declared(monkeypatch, untiled)
    x, y = torch.randn(256, 512), torch.randn(512, 256)

    def outcomes() -> list[str]:
        torch.compiler.reset()
        with logs.capture("cache") as records:
            for options in ({}, {"max_autotune": True}):
                assert torch.equal(torch.compile(lambda x, y: x.t() + y, options=options, dynamic=False)(x, y), x.t() + y)
        return [r.message.split()[0] for r in records if r.message.startswith(("hit", "miss"))]

    assert outcomes() == ["miss", "miss"] and list((settings.current().cache.dir / CPU_WINNERS).iterdir())
    assert outcomes() == ["hit", "hit"]


def test_kernels_with_another_width_of_vectors_are_a_separate_unit() -> None:
    x = torch.zeros(256, 512)
    graph = graph_of(lambda x, y: (x.t() + y, x.sum(0)), x, x.t().contiguous())
    (first, _) = tunable_kernels(graph, request())[0]
    asked = replace(request(), choose=lambda plain: DEFAULT._replace(vector_bits=256 * (plain == first.plain)))
    made = compile_graph(graph, GraphKind.INFERENCE, asked)
    assert sorted(u.vector_bits for u in made.units) == [0, 256]


def test_a_large_kernel_is_measured_in_memory_of_its_size(tmp_path: Path) -> None:
    """One input and one result of 64 MB: other inputs share the memory of the first."""
    n = 16 << 20
    graph = graph_of(lambda a, b, c, d: (a * b + c * d,), *[torch.zeros(n)] * 4)
    (job,) = jobs(graph, tmp_path)
    found = candidates(job.plain[0], job.memory, ONE)[:2]
    cpu_timing.compile_candidates(dict(enumerate(found)), job.memory, job.checks, toolchain.toolchain(), tmp_path / "a.so")

    def compare() -> None:
        run = cpu_timing.Run(found, job.memory)
        results = [run.results(cpu_timing.load_candidate(i, job.memory, job.checks, tmp_path / "a.so")) for i in (0, 1)]
        assert not difference(*results)

    assert peak_growth(compare) < 300e6
