"""Autotuning and the modes: winners are the fastest, are remembered, and never change a result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import eager
from eager.base import logs, settings
from eager.base import machine as host
from inductor.artifact.format import Spec
from inductor.base import toolchain
from inductor.cpp import gemm
from inductor.cpp.gemm import GemmChoice, Request
from inductor.cpp.gemm_problem import GemmProblem
from inductor.driver import autotune, timing
from inductor.driver.autotune import Winners
from tests.inductor.helpers_runtime import peak_growth

SMALL = GemmProblem("float32", 1, 48, 64, 40, (40, 1), (1, 40), 64)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    with settings.scope(cache_dir=tmp_path / "cache", cpu_threads=2):
        host.configure()
        yield
    host.configure()


def winners(folder: Path) -> Winners:
    return Winners(folder, toolchain.toolchain(), 2)


class Clock:
    """`time` for `timing`: it advances by a variant's declared time, plus the time that another process takes."""

    def __init__(self) -> None:
        self.now, self.disturbance_s = 0.0, 0.0

    def perf_counter(self) -> float:
        return self.now

    def taking(self, seconds: float) -> Callable[[], None]:
        """A variant of this many seconds."""

        def run() -> None:
            self.now += seconds + self.disturbance_s
            self.disturbance_s = 0.0

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


# --------------------------------------------------------------------------- timing


def test_measure_finds_each_variants_time_through_disturbances(clock: Clock) -> None:
    slow, fast, turns = clock.taking(2e-3), clock.taking(2e-4), count()

    def disturbed() -> None:
        clock.disturbance_s = 0.05 if next(turns) < 5 else 0.0  # and then the neighbour rests
        fast()

    seconds = timing.measure({"slow": slow, "fast": disturbed}, 5.0)
    assert seconds == pytest.approx({"slow": 2e-3, "fast": 2e-4})


def test_measure_takes_the_variants_in_turn() -> None:
    order: list[str] = []
    timing.measure({name: lambda name=name: order.append(name) for name in "ab"}, time.perf_counter() + 60)  # type: ignore[misc]
    assert "".join(order).count("ba") >= 5


def test_measure_stops_at_its_deadline(clock: Clock) -> None:
    timing.measure({"slow": clock.taking(0.05)}, clock.now)
    assert clock.now == pytest.approx(3 * 0.05)  # a call unmeasured, one to learn how many fit a slice, one round


@pytest.mark.parametrize(
    "spec",
    [
        Spec((3, 4), (4, 1), "float32"),
        Spec((3, 4), (1, 5), "float64"),
        Spec((2, 0), (1, 1), "float32"),
        Spec((5,), (0,), "float32"),
        Spec((), (), "int64"),
        Spec((2, 3), (3, 1), "bool"),
        Spec((4,), (2,), "bfloat16"),
        Spec((4,), (1,), "complex64"),
    ],
)
def test_synthetic_inputs_have_the_layout_and_valid_values(spec: Spec) -> None:
    (t,) = timing.synthetic_inputs([spec])
    assert tuple(t.shape) == spec.shape and t.stride() == spec.strides and t.dtype.name == spec.dtype
    values = t._array.astype(np.complex128)
    assert np.isfinite(values).all()
    if spec.dtype in ("int64", "bool"):
        assert not values.any()  # an index of zero is in bounds wherever anything is


def test_inputs_of_a_graph_share_a_bounded_pool_and_written_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "POOL_BYTES", 4 * 1000)
    specs = [Spec((n,), (1,), "float32") for n in (400, 400, 400, 1500, 400)]
    made = timing.synthetic_inputs(specs, written=(1,))
    pooled = [t for i, t in enumerate(made) if i != 1]
    assert len({t.untyped_storage().data_ptr() for t in pooled}) == 1 and pooled[0].untyped_storage().nbytes() == 4 * 1500
    assert not np.shares_memory(made[1]._array, made[0]._array)
    assert not np.shares_memory(made[0]._array, made[2]._array)  # apart, while the pool has room
    few = timing.synthetic_inputs(specs[:2])
    assert few[0].untyped_storage().nbytes() == 4 * 800


# --------------------------------------------------------------------------- matrix kernels


_DIM = st.sampled_from([1, 7, 64, 1000, 1024, 5000, 8192, 50257])


@given(_DIM, _DIM, _DIM, st.sampled_from([1, 3, 96]), st.booleans(), st.booleans(), st.sampled_from(["float32", "float64"]))
@hypothesis_settings(max_examples=200, deadline=None)
def test_measured_products_are_small_and_laid_out_like_the_whole(
    m: int, n: int, k: int, batch: int, a_t: bool, b_t: bool, dtype: str
) -> None:
    a, b = ((1, m) if a_t else (k, 1)), ((1, k) if b_t else (n, 1))
    steps = (m * k, k * n, m * n) if batch > 1 else (1, 1, 1)
    p = GemmProblem(dtype, batch, m, n, k, a, b, n, steps)
    cut = autotune._bounded(p)
    assert (cut.k, cut.dtype) == (k, dtype) and 0 < cut.m <= m and 0 < cut.n <= n and 0 < cut.batch <= batch
    assert (p.ldc - cut.ldc) % 1024 == 0 or n <= cut.n
    assert gemm.blas_strides(cut) and cut.ldc >= cut.n
    itemsize = 4 if dtype == "float32" else 8
    assert batch > 1 or cut.batch_strides == (0, 0, 0)
    for spec in autotune._operand_specs(cut):
        span = 1 + sum((size - 1) * step for size, step in zip(*spec.fixed(), strict=True))
        assert span * itemsize <= max(2 * autotune._MOST_BYTES, 2048 * k * itemsize)


def test_the_steps_of_a_single_product_have_no_effect(tmp_path: Path) -> None:
    request, tools = Request(replace(SMALL, batch_strides=(1, 1, 1)), False, fused=True), toolchain.toolchain()
    plan = autotune._gemm_plan(autotune._bounded(request.problem), "run", autotune._operand_specs(autotune._bounded(request.problem)),
                               eager.ones(1, 40, 64))  # fmt: skip
    assert plan.allocations[0].nbytes == 48 * 64 * 4
    store = winners(tmp_path / "autotune")
    autotune.tune_gemms([request], tools, store, tmp_path / "objects", 20.0)
    assert request in store


def test_a_large_packed_product_is_measured_in_little_memory(tmp_path: Path) -> None:
    problem = GemmProblem("float32", 1, 32, 30000, 768, (768, 1), (1, 768), 30000)  # a head of 92 MB
    request, tools = Request(problem, True), toolchain.toolchain()
    libraries = autotune._libraries([request], tools, tmp_path, tmp_path / "objects")
    grown = peak_growth(lambda: autotune._fastest_gemm(request, 0, libraries[request], tools, time.perf_counter() + 1.0))
    assert grown < 150e6


def test_measured_kernel_is_remembered_by_later_processes(tmp_path: Path) -> None:
    request, tools = Request(SMALL, False), toolchain.toolchain()
    store = winners(tmp_path / "autotune")
    with logs.capture("autotuning") as records:
        autotune.tune_gemms([request], tools, store, tmp_path / "objects", 20.0)
    (table,) = [r.message for r in records]
    assert "blas" in table and "GFLOP/s" in table
    assert winners(tmp_path / "autotune")[request] == store[request]
    with logs.capture("autotuning") as records:
        autotune.tune_gemms([request], tools, winners(tmp_path / "autotune"), tmp_path / "objects", 20.0)
    assert "measured earlier" in records[0].message


def test_a_product_keeps_the_rule_of_thumb_unless_another_is_clearly_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, tools = Request(SMALL, False, fused=True), toolchain.toolchain()
    for share, taken in ((0.98, 0), (0.9, 2)):
        monkeypatch.setattr(autotune, "measure", lambda variants, _, share=share: dict.fromkeys(variants, 1.0) | {"2": share})
        store = winners(tmp_path / str(share))
        autotune.tune_gemms([request], tools, store, tmp_path / "objects", 20.0)
        assert store[request] == gemm.candidates(request, tools, True)[taken]


def test_a_kernel_that_computes_another_product_is_never_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request, tools, store = Request(SMALL, False, fused=True), toolchain.toolchain(), winners(tmp_path / "autotune")
    render, wrong = gemm.render, gemm.candidates(request, tools, True)[2]

    def shortened(p: GemmProblem, tools: Any, choice: GemmChoice, packed: bool) -> Any:
        return render(replace(p, k=p.k - 1) if choice == wrong else p, tools, choice, packed)

    monkeypatch.setattr(gemm, "render", shortened)
    monkeypatch.setattr(autotune, "measure", lambda variants, _: dict.fromkeys(variants, 1.0) | {"3": 0.9})
    autotune.tune_gemms([request], tools, store, tmp_path / "objects", 20.0)
    assert store[request] == gemm.candidates(request, tools, True)[3]
    (warning,) = [r.message for r in caplog.records if "computes a product that differs" in r.message]
    assert str(wrong) in warning


def test_a_stored_kernel_that_this_version_would_not_measure_does_not_count(tmp_path: Path) -> None:
    request, tools = Request(SMALL, False), toolchain.toolchain()
    choice = gemm.candidates(request, tools, True)[2]
    winners(tmp_path).remember(request, choice)
    assert winners(tmp_path)[request] == choice
    winners(tmp_path).remember(request, replace(choice, nc=choice.nc + 1))
    assert request not in winners(tmp_path)


def test_packed_products_are_measured_packed(tmp_path: Path) -> None:
    request, store = Request(SMALL, True), winners(tmp_path / "autotune")
    autotune.tune_gemms([request], toolchain.toolchain(), store, tmp_path / "objects", 20.0)
    assert request in store and not store[request].direct


def test_winner_on_another_machine_or_with_other_threads_does_not_count(tmp_path: Path) -> None:
    request, store = Request(SMALL, False), winners(tmp_path)
    store.remember(request, GemmChoice("blas"))
    assert request in winners(tmp_path)
    assert request not in Winners(tmp_path, toolchain.toolchain(), 3)
    with settings.scope(cpu_march="x86-64-v2"):
        assert request not in winners(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b"[]", b'{"question": "other", "choice": {}}'])
def test_damaged_winner_is_ignored_and_measured_again(tmp_path: Path, damage: bytes) -> None:
    request = Request(SMALL, False)
    winners(tmp_path).remember(request, GemmChoice("blas"))
    (path,) = tmp_path.glob("*.json")
    path.write_bytes(damage)
    assert request not in winners(tmp_path)
    winners(tmp_path).remember(request, GemmChoice("blas"))
    assert winners(tmp_path)[request] == GemmChoice("blas")


def test_winner_that_is_not_as_it_was_written_is_ignored(tmp_path: Path) -> None:
    request = Request(SMALL, False)
    found = gemm.candidates(request, toolchain.toolchain(), True)
    one, other = next((a, b) for a in found for b in found if b == replace(a, a_direct=not a.a_direct) and not a.a_direct)
    winners(tmp_path).remember(request, one)
    (path,) = tmp_path.glob("*.json")
    path.write_text(path.read_text().replace('"a_direct": false', '"a_direct": true'))
    assert json.loads(path.read_text())["answer"] == asdict(other)  # which would be taken, had it been written
    assert request not in winners(tmp_path)


def test_unwritable_folder_keeps_winners_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store, request = winners(tmp_path / "file" / "autotune"), Request(SMALL, False)
    store.remember(request, GemmChoice("blas"))
    assert store[request] == GemmChoice("blas")


def test_spent_budget_leaves_the_rule_of_thumb(tmp_path: Path) -> None:
    store = winners(tmp_path / "autotune")
    with logs.capture("autotuning") as records:
        autotune.tune_gemms([Request(SMALL, False)], toolchain.toolchain(), store, tmp_path / "objects", -1.0)
    assert not list(store) and "budget" in records[0].message


def test_winners_decide_the_emitted_kernel(tmp_path: Path) -> None:
    tools, store = toolchain.toolchain(), winners(tmp_path)
    store.remember(Request(SMALL, False), GemmChoice("blas"))
    assert gemm.emit(SMALL, False, tools) is not None
    with gemm.decided(winners(tmp_path)):
        assert gemm.emit(SMALL, False, tools) is None


# --------------------------------------------------------------------------- the backend


def test_code_for_products_misses_after_a_measurement_and_other_code_does_not(tmp_path: Path) -> None:
    x = eager.ones(4, 4)
    product, sum_ = (lambda x: x @ x), (lambda x: x + 1)

    def outcomes() -> list[str]:
        eager.compiler.reset()
        with logs.capture("cache") as records:
            for fn in (product, sum_):
                eager.compile(fn)(x)
        return [r.message.split()[0] for r in records if r.message.startswith(("hit", "miss"))]

    assert outcomes() == ["miss", "miss"] and outcomes() == ["hit", "hit"]
    winners(settings.current().cache.dir / "autotune").remember(Request(SMALL, False), GemmChoice("blas"))
    assert outcomes() == ["miss", "hit"] and outcomes() == ["hit", "hit"]


def test_the_budget_is_an_option_of_one_compilation() -> None:
    x = eager.ones(4, 4)
    with logs.capture("autotuning") as records:
        eager.compile(lambda x: x @ x, options={"max_autotune": True, "autotune_budget_s": 0})(x)
    assert any("the budget of 0.0 s is spent; 1 products" in r.message for r in records)
    with pytest.raises(RuntimeError, match="autotune_budget_s"):
        eager.compile(lambda x: x @ x, options={"autotune_budget_s": "much"})(x)
