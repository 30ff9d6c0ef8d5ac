"""Tuning of CUDA kernels, with a declared time for each candidate in place of a device: the fastest is chosen, stored and used again."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import eager as torch
from eager.base import logs
from eager.base.device import device
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
from inductor.artifact.cache import CUDA_WINNERS, PRODUCT_WINNER, Cache
from inductor.base.target import SM_90
from inductor.driver import cuda_machine, gpu_autotune
from inductor.driver.backend import _is_tuned
from inductor.driver.comparison import difference
from inductor.driver.cuda import lower_to_cuda
from inductor.driver.gpu_autotune import Built, jobs_of, tune
from inductor.driver.gpu_candidates import candidates
from inductor.driver.gpu_timing import Variant
from inductor.driver.gpu_winners import Winners, description
from inductor.triton.compile import Cubin, Resources
from inductor.triton.kernel import TritonKernel
from tests.triton_kernels.graphs import on_cuda

SPILLING, FAILING, GREEDY = 16, 2, 4  # warps of candidates that `partly_failing` does not compile well


def compiled(kernel: TritonKernel, capability: int, *, spilled: int = 0, shared: int = 0) -> Built:
    return Built(Cubin(kernel.name, capability, b"code", "", shared, kernel.num_warps), Resources(32, spilled, spilled))


def partly_failing(kernel: TritonKernel, capability: int) -> Built:
    if kernel.num_warps == FAILING:
        raise ValueError("no such layout\nand more lines")
    shared = 1 << 20 if kernel.num_warps == GREEDY else 0
    return compiled(kernel, capability, spilled=8 if kernel.num_warps == SPILLING else 0, shared=shared)


def slowly(kernel: TritonKernel, capability: int) -> Built:
    time.sleep(0.5)
    return compiled(kernel, capability)


class FakeTimer:
    """Declared seconds and results for each variant. Keeps the variants that it timed."""

    def __init__(self, seconds: Callable[[Variant], float], value: Callable[[Variant], float] = lambda v: 1.0) -> None:
        self.of, self.value, self.timed, self.is_released = seconds, value, list[Variant](), False

    def results(self, variant: Variant) -> dict[str, np.ndarray]:
        return {name: np.full(4, self.value(variant), np.float32) for name in variant.written.results}

    def seconds(self, variant: Variant) -> float:
        self.timed.append(variant)
        return self.of(variant)

    def release(self) -> None:
        self.is_released = True


def graph_of(fn: Callable[..., object], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Graph:
    return trace(fn, [on_cuda(torch.zeros(shape, dtype=dtype)) for shape in shapes])


def doubled(n: int = 1 << 20) -> Graph:
    return graph_of(lambda x: (x * 2,), (n,))


def winners(folder: Path, machine: str = "triton 3.6.0, some GPU") -> Winners:
    return Winners(folder, machine)


def tuned(graph: Graph, folder: Path, timer: FakeTimer, budget_s: float = 60.0, build: gpu_autotune.Build = compiled) -> Winners:
    known = winners(folder)
    plan, jobs = jobs_of(graph, SM_90, known)
    tune(plan.program, SM_90, jobs, known, timer, budget_s, build)
    return known


def by_warps(seconds: Mapping[int, float]) -> FakeTimer:
    return FakeTimer(lambda v: seconds.get(v.kernels[0].num_warps, 1.0))


def warps_of(graph: Graph, known: Winners) -> list[int]:
    return [k.num_warps for k in lower_to_cuda(graph, SM_90, choose=known.choose).kernels]


def test_the_fastest_candidate_makes_the_plan(tmp_path: Path) -> None:
    known = tuned(doubled(), tmp_path, by_warps({16: 0.5}))
    assert warps_of(doubled(), known) == [16] != warps_of(doubled(), winners(tmp_path / "empty"))


def test_the_default_stays_unless_another_is_clearly_faster(tmp_path: Path) -> None:
    timer = by_warps({16: 0.98})
    assert warps_of(doubled(), tuned(doubled(), tmp_path, timer)) == [4] and timer.is_released
    (stored,) = (json.loads(p.read_bytes())["answer"] for p in tmp_path.iterdir())
    assert stored["choice"]["block"] == 1024 and stored["num_warps"] == 0 and stored["us"] == 1e6


def test_stored_winners_are_read_by_another_process(tmp_path: Path) -> None:
    tuned(doubled(), tmp_path, by_warps({16: 0.5}))
    code = ("import sys; from pathlib import Path; from tests.triton_kernels.test_gpu_autotune import *; f = Path(sys.argv[1]); "
            "print(warps_of(doubled(), winners(f)), len(jobs_of(doubled(), SM_90, winners(f))[1]))")  # fmt: skip
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2], capture_output=True, text=True,
                         check=True)  # fmt: skip
    assert run.stdout.split() == ["[16]", "0"]


def test_a_kernel_is_measured_once_and_its_reuse_is_logged(tmp_path: Path) -> None:
    tuned(doubled(), tmp_path, by_warps({16: 0.5}))
    again = by_warps({})
    with logs.capture("autotuning") as records:
        tuned(doubled(), tmp_path, again)
    assert not again.timed and any("measured earlier" in r.message for r in records)


def test_equal_kernels_over_other_buffers_share_a_measurement(tmp_path: Path) -> None:
    timer = by_warps({16: 0.5})
    graph = graph_of(lambda x, y, z: (x - y, z - x), *[(1 << 20,)] * 3)
    plan, jobs = jobs_of(graph, SM_90, winners(tmp_path))
    known = tuned(graph, tmp_path, timer)
    made = lower_to_cuda(graph, SM_90, choose=known.choose)
    default = lower_to_cuda(graph, SM_90)
    assert len(jobs) == len(plan.kernels) and [k.num_warps for k in made.kernels] == [16] * len(jobs)
    assert [s.arguments for s in made.steps] == [s.arguments for s in default.steps]  # type: ignore[union-attr]
    swapped = graph_of(lambda x, y: (y - x,), *[(1 << 20,)] * 2)
    plain = graph_of(lambda x, y: (x - y,), *[(1 << 20,)] * 2)
    known = tuned(plain, tmp_path / "pairs", by_warps({16: 0.5}))
    for g in (plain, swapped):
        (found,), (wanted,) = (lower_to_cuda(g, SM_90, choose=c).steps for c in (known.choose, winners(tmp_path / "none").choose))
        assert found.arguments == wanted.arguments  # type: ignore[union-attr]


def test_candidates_that_fail_spill_or_need_too_much_memory_are_left_out_with_the_reason(tmp_path: Path) -> None:
    timer = by_warps({16: 0.1, 2: 0.1, 8: 0.5})
    assert warps_of(doubled(), winners(tmp_path)) == [GREEDY]  # so the default itself is left out too
    with logs.capture("autotuning") as records:
        known = tuned(doubled(), tmp_path, timer, build=partly_failing)
    text = "\n".join(r.message for r in records)
    assert "16 warps is left out: it keeps 8 bytes of a thread outside of registers; the default 0" in text
    assert "2 warps is left out: it does not compile (ValueError: no such layout)" in text
    assert "default is left out: it needs 1048576 bytes of shared memory; sm_90 has" in text
    assert {v.kernels[0].num_warps for v in timer.timed} == {8} and warps_of(doubled(), known) == [8]


def test_a_candidate_that_computes_other_values_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    timer = by_warps({16: 0.1, 8: 0.5})
    timer.value = lambda v: 1.5 if v.kernels[0].num_warps == 16 else 1.0
    known = tuned(doubled(), tmp_path, timer)
    assert warps_of(doubled(), known) == [8] and {v.kernels[0].num_warps for v in timer.timed} >= {4, 8}
    refused = [r.message for r in caplog.records if "computes other values of" in r.message]
    assert refused and all("16 warps computes" in m and m.endswith("than default; not used") for m in refused)


@pytest.mark.parametrize("precision, is_equal", [("ieee", False), ("tf32", True)])
def test_products_in_a_lower_precision_may_differ_by_its_rounding(precision: str, is_equal: bool) -> None:
    rounding = gpu_autotune.TF32_ROUNDING if precision == "tf32" else 0.0
    a, b = ({"y": np.array([1.0, x], np.float32)} for x in (0.5, 0.5 + 2.0**-10))
    assert (difference(a, b, rounding) == "") is is_equal


def test_a_candidate_that_does_not_run_is_left_out(tmp_path: Path) -> None:
    def run(variant: Variant) -> float:
        if variant.kernels[0].num_warps == 8:
            raise RuntimeError("CUDA error while launching a kernel")
        return 0.5 if variant.kernels[0].num_warps == 16 else 1.0

    with logs.capture("autotuning") as records:
        known = tuned(doubled(), tmp_path, FakeTimer(run))
    assert warps_of(doubled(), known) == [16] and any("it does not run (RuntimeError: CUDA error" in r.message for r in records)


def test_without_a_candidate_that_runs_the_default_is_used_and_nothing_is_stored(tmp_path: Path) -> None:
    def run(variant: Variant) -> float:
        raise MemoryError("out of memory")

    assert warps_of(doubled(), tuned(doubled(), tmp_path, FakeTimer(run))) == [4] and not list(tmp_path.iterdir())


def test_a_spent_budget_keeps_defaults(tmp_path: Path) -> None:
    def run(variant: Variant) -> float:
        time.sleep(1.2)
        return 1.0 / variant.kernels[0].num_warps

    graph = graph_of(lambda x, y: (x * 2, y.sum(-1)), (1 << 20,), (512, 8192))
    timer = FakeTimer(run)
    with logs.capture("autotuning") as records:
        tuned(graph, tmp_path, timer, budget_s=2.0)  # of which scheduling and the start of processes take a part
    text = "\n".join(r.message for r in records)
    assert "candidates are not timed" in text and 1 <= len(timer.timed) <= 4 and len(list(tmp_path.iterdir())) <= 2


def test_compilation_takes_at_most_half_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_autotune, "workers_for", lambda count: 1)
    timer = by_warps({})
    with logs.capture("autotuning") as records:
        tuned(doubled(), tmp_path, timer, budget_s=3.0, build=slowly)
    assert 1 <= len(timer.timed) <= 4
    assert any("not compiled within half of the budget" in r.message for r in records)


def test_no_budget_measures_nothing(tmp_path: Path) -> None:
    with logs.capture("autotuning") as records:
        choose = gpu_autotune.measured(doubled(), device("cuda"), SM_90, "ieee", winners(tmp_path), 0.0)
    assert len(lower_to_cuda(doubled(), SM_90, choose=choose).kernels) == 1 and not list(tmp_path.glob("*"))
    assert any("1 kernels keep the default" in r.message for r in records)


@pytest.mark.parametrize("damage", ["not json", '{"question": 1}', "another candidate"])
def test_a_damaged_winners_file_is_ignored_and_replaced(damage: str, tmp_path: Path) -> None:
    known = tuned(doubled(), tmp_path, by_warps({16: 0.5}))
    (path,) = tmp_path.iterdir()
    if damage == "another candidate":
        _, (job,) = jobs_of(doubled(), SM_90, winners(tmp_path / "empty"))
        chosen = candidates(job.loops)[1]
        strange = type(chosen)(chosen.kernel, chosen.steps, chosen.options, chosen.choice._replace(block=3))
        known.remember(job.key, job.loops, strange, {})
    else:
        path.write_text(damage)
    assert warps_of(doubled(), winners(tmp_path)) == [4]
    assert warps_of(doubled(), tuned(doubled(), tmp_path, by_warps({16: 0.5}))) == [16] and len(list(tmp_path.iterdir())) == 1


def test_winners_of_another_device_or_version_are_not_used(tmp_path: Path) -> None:
    tuned(doubled(), tmp_path, by_warps({16: 0.5}))
    assert warps_of(doubled(), winners(tmp_path, "triton 3.6.0, another GPU")) == [4]


def test_a_winner_holds_for_one_precision_of_products(tmp_path: Path) -> None:
    graph, known = graph_of(lambda x, y: (x @ y,), (512, 512), (512, 512)), winners(tmp_path)
    plan, jobs = jobs_of(graph, SM_90, known, "tf32")
    tune(plan.program, SM_90, jobs, known, FakeTimer(lambda v: 1.0 if v.kernels[0].num_stages == 3 else 0.5), 60, compiled)
    assert jobs and not jobs_of(graph, SM_90, known, "tf32")[1] and len(jobs_of(graph, SM_90, known, "ieee")[1]) == len(jobs)
    made = lower_to_cuda(graph, SM_90, "tf32", known.choose)
    assert any("input_precision='tf32'" in k.source for k in made.kernels)


def test_the_default_mode_uses_stored_winners_of_products_alone(tmp_path: Path) -> None:
    graph = graph_of(lambda x, y: (x @ y, x.sum(-1)), (512, 1024), (1024, 512), dtype=torch.bfloat16)
    known = tuned(graph, tmp_path, FakeTimer(lambda v: 1.0))
    default = lower_to_cuda(graph, SM_90)
    _, jobs = jobs_of(graph, SM_90, winners(tmp_path / "empty"))
    for job in jobs:
        known.remember(job.key, job.loops, candidates(job.loops)[2], {})
    kinds = sorted(p.name.split("-")[0] for p in tmp_path.iterdir())
    assert kinds.count("product") == 1 and kinds.count("kernel") == len(jobs) - 1 >= 1
    made = lower_to_cuda(graph, SM_90, choose=winners(tmp_path).choose_product)
    changed = [a.source != b.source or a.num_warps != b.num_warps for a, b in zip(made.kernels, default.kernels, strict=True)]
    assert [c for c, k in zip(changed, default.kernels, strict=True) if "tl.dot" in k.source] == [True]
    assert not any(c for c, k in zip(changed, default.kernels, strict=True) if "tl.dot" not in k.source)


def test_products_are_tuned_over_their_blocks_with_memory_of_the_right_size(tmp_path: Path) -> None:
    graph = graph_of(lambda x, y: (torch.relu(x @ y),), (2048, 512), (512, 1024), dtype=torch.bfloat16)
    timer = FakeTimer(lambda v: 1.0)
    with logs.capture("autotuning") as records:
        tuned(graph, tmp_path, timer)
    assert len(timer.timed) > 4
    for v in timer.timed:
        assert sorted(n for _, n in v.memory.values()) == sorted((2 * 2048 * 512, 2 * 512 * 1024, 2 * 2048 * 1024))
        assert all({*k.pointers} <= v.memory.keys() for k in v.kernels)
    assert "GFLOP/s" in records[-1].message and "product=(" in records[-1].message


def test_kernels_of_several_launches_are_timed_as_one(tmp_path: Path) -> None:
    timer = FakeTimer(lambda v: 1.0)
    tuned(graph_of(lambda x: (x.sum(),), (1 << 22,)), tmp_path, timer)
    several = [v for v in timer.timed if len(v.kernels) > 1]
    assert several and all(len(v.kernels) == len(v.cubins or ()) and {*v.kernels[1].pointers} <= v.memory.keys() for v in several)


def test_descriptions_differ() -> None:
    _, (job,) = jobs_of(doubled(), SM_90, winners(Path("nowhere")))
    found = [description(c) for c in candidates(job.loops)]
    assert found[0] == "default" and len({*found}) == len(found)


def test_the_cache_key_names_the_measured_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = object.__new__(cuda_machine.CudaMachine)
    machine.where, machine.is_emulated, machine.capability = device("cuda"), False, (9, 0)
    monkeypatch.setattr(cuda_machine.cuda, "get_device_name", lambda where: "some GPU")
    product, sums = graph_of(lambda x, y: (x @ y,), (64, 64), (64, 64)), doubled()
    store, folder = Cache(tmp_path, 1 << 30), tmp_path / CUDA_WINNERS

    def parts(graph: Graph, mode: str = "default") -> str:
        machine.is_tuned = _is_tuned(CompileOptions(mode=mode))
        return machine.key_parts(graph, CompileOptions(mode=mode), store)["winners"]

    before = parts(product)
    folder.mkdir(parents=True)
    (folder / f"kernel-{'0' * 40}.json").write_text("{}")
    empty = parts(product)
    (folder / f"{PRODUCT_WINNER}{'0' * 40}.json").write_text("{}")
    assert len({before, empty, parts(product)}) == 3 and parts(sums) == "" == parts(product, "max-autotune")
    os.remove(folder / f"{PRODUCT_WINNER}{'0' * 40}.json")
    assert parts(product) == empty


def test_the_mode_decides_whether_a_graph_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    machine = object.__new__(cuda_machine.CudaMachine)
    machine.where, machine.is_emulated, machine.capability = device("cuda"), False, (9, 0)
    monkeypatch.setattr(cuda_machine.cuda, "get_device_name", lambda where: "some GPU")
    timer = by_warps({16: 0.5})
    monkeypatch.setattr(gpu_autotune, "EventTimer", lambda where, target: timer)
    store, graph = Cache(tmp_path, 1 << 30), doubled(1 << 16)

    def threads(mode: str) -> list[int]:
        machine.is_tuned = _is_tuned(CompileOptions(mode=mode))
        made, library = machine.build(graph, GraphKind.INFERENCE, CompileOptions(mode=mode), store, tmp_path, lambda name: None)
        assert library is not None and library.read_bytes()[:4] == b"\x7fELF"
        return [k.threads for k in made.plan.kernels]

    plain = threads("default")
    assert not timer.timed and threads("max-autotune-no-cudagraphs") == [16 * 32] != plain and timer.timed
    measured = len(timer.timed)
    assert threads("max-autotune") == [16 * 32] and len(timer.timed) == measured
    assert threads("default") == plain  # only winners of products are used there


def test_real_candidates_compile_in_other_processes(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    timer = by_warps({16: 0.5})
    graph = doubled(1 << 16)
    tuned(graph, tmp_path, timer, build=gpu_autotune.build)
    assert all(c.code[:4] == b"\x7fELF" for v in timer.timed for c in v.cubins or ()) and len(timer.timed) > 3
