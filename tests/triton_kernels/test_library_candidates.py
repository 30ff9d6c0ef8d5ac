"""Algorithms of a library of matrix products as candidates, with a declared library and declared times in place of a device."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import eager as torch
from eager.base import logs
from eager.base.device import device
from eager.nn import functional as F
from fxir.base.options import CompileOptions
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
from inductor.artifact.cache import CUDA_WINNERS, PRODUCT_WINNER, Cache
from inductor.base.target import SM_90
from inductor.driver import cuda_machine
from inductor.driver.cuda import CudaPlan, Product, lower_to_cuda
from inductor.driver.gpu_autotune import jobs_of, tune
from inductor.driver.gpu_profile import profiled
from inductor.driver.gpu_winners import Winners
from inductor.plan.library_products import LibraryProduct
from tests.cuda.library_products import chooser
from tests.inductor.helpers_symbolic import symbolic_graph
from tests.triton_kernels.graphs import on_cuda
from tests.triton_kernels.test_gpu_autotune import FakeTimer, compiled

VERSION = 130000
FIRST, SECOND = b"\1" * 64, b"\2" * 64


class Declared:
    """A library with two algorithms for products of halves, the second with a workspace."""

    version = VERSION

    def __init__(self) -> None:
        self.asked: list[LibraryProduct] = []

    def suggestions(self, product: LibraryProduct, is_tf32: bool) -> list[tuple[bytes, int]]:
        self.asked.append(product)
        return [(FIRST, 0), (SECOND, 4096)] if product.multiplied.itemsize == 2 else []


def graph_of(fn: Callable[..., object], *inputs: torch.Tensor) -> Graph:
    return trace(fn, [on_cuda(x) for x in inputs])


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def linear() -> Graph:
    return graph_of(lambda x, w, b: (F.linear(x, w, b),), half(256, 64), half(128, 64), half(128))


def prefers(algorithm: bytes) -> FakeTimer:
    return FakeTimer(lambda v: 0.1 if v.product is not None and v.product.algorithm == algorithm else 1.0)


def winners(folder: Path, version: int = VERSION) -> Winners:
    return Winners(folder, "triton 3.6.0, some GPU", version)


def tuned(graph: Graph, folder: Path, timer: FakeTimer, library: Declared | None = None) -> Winners:
    known = winners(folder)
    plan, jobs = jobs_of(graph, SM_90, known)
    tune(plan.program, SM_90, jobs, known, timer, 60.0, compiled, library or Declared())
    return known


def products_of(graph: Graph, known: Winners) -> list[Product]:
    return [s for s in lower_to_cuda(graph, SM_90, choose=known.choose).steps if isinstance(s, Product)]


def test_the_fastest_algorithm_makes_the_plan(tmp_path: Path) -> None:
    with logs.capture("autotuning") as records:
        known = tuned(linear(), tmp_path, prefers(SECOND))
    plan = lower_to_cuda(linear(), SM_90, choose=known.choose)
    (step,) = plan.steps
    assert isinstance(step, Product) and step.call.algorithm == SECOND and plan.kernels == ()
    assert plan.arena_bytes == 4096 == plan.memory[step.call.workspace].nbytes
    assert "in0 @ in1.T + in2, 1x256x128x64, cuBLASLt algorithm 1" in str(plan)
    assert any("cuBLASLt algorithm 1" in r.message and "cuBLASLt algorithm 0" in r.message for r in records)


def test_a_workspace_begins_at_a_multiple_of_256_bytes() -> None:
    """The product's operand, of 9 * 128 bytes, is in the arena beside the workspace."""
    graph = graph_of(lambda x, w: (torch.exp(x) @ w,), half(24, 24), half(24, 40))
    plan = lower_to_cuda(graph, SM_90, choose=chooser(0, 64))
    (step,) = [s for s in plan.steps if isinstance(s, Product)]
    workspace = plan.memory[step.call.workspace]
    assert workspace.nbytes == 64 and isinstance(workspace.at, int) and workspace.at % 256 == 0 < workspace.at


def test_the_library_loses_to_a_faster_kernel(tmp_path: Path) -> None:
    timer = FakeTimer(lambda v: 1.0 if v.product is not None else 0.1)
    known = tuned(linear(), tmp_path, timer)
    assert products_of(linear(), known) == [] and sum(v.product is not None for v in timer.timed) == 2


def test_a_stored_algorithm_is_used_again_by_every_mode(tmp_path: Path) -> None:
    tuned(linear(), tmp_path, prefers(FIRST))
    again = winners(tmp_path)
    assert not jobs_of(linear(), SM_90, again)[1] and len(products_of(linear(), again)) == 1
    default = lower_to_cuda(linear(), SM_90, choose=winners(tmp_path).choose_product)
    assert [type(s) for s in default.steps] == [Product]


def test_algorithms_of_another_version_are_ignored(tmp_path: Path) -> None:
    tuned(linear(), tmp_path, prefers(FIRST))
    for version in (0, VERSION + 1):
        other = winners(tmp_path, version)
        assert products_of(linear(), other) == [] and len(jobs_of(linear(), SM_90, winners(tmp_path, version))[1]) == 1


@pytest.mark.parametrize("change", [{"way": 9}, {"way": -1}, {"algorithm": "xyz"}, {"workspace_bytes": "many"}, {"more": 1}])
def test_a_damaged_record_is_ignored(change: dict[str, object], tmp_path: Path) -> None:
    tuned(linear(), tmp_path, prefers(FIRST))
    (path,) = tmp_path.iterdir()
    stored = json.loads(path.read_bytes())
    stored["answer"]["library"] |= change
    path.write_text(json.dumps(stored))
    assert products_of(linear(), winners(tmp_path)) == []


def test_a_product_with_an_epilogue_is_timed_with_its_kernel(tmp_path: Path) -> None:
    graph = graph_of(lambda x, w: (F.gelu(x @ w),), half(256, 64), half(64, 128))
    timer = prefers(FIRST)
    known = tuned(graph, tmp_path, timer)
    first = next(v for v in timer.timed if v.product is not None)
    assert len(first.kernels) == 1 and first.product is not None and first.product.product.is_temporary
    assert first.memory[first.product.product.result.buffer][1] == 256 * 128 * 2
    plan = lower_to_cuda(graph, SM_90, choose=known.choose)
    assert [type(s).__name__ for s in plan.steps] == ["Product", "Launch"] and "tl.dot" not in plan.kernels[0].source


def test_a_product_that_overwrites_its_operand_is_copied_there(tmp_path: Path) -> None:
    """A product that overwrites an input writes it by a copy: the library's result may not overlap its operands."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.copy_(x @ w)
        return (x,)

    graph = graph_of(fn, half(64, 64), half(64, 64))
    (step,) = products_of(graph, tuned(graph, tmp_path, prefers(FIRST)))
    p = step.call.product
    assert p.result.buffer not in (p.a.buffer, p.b.buffer)


def test_only_products_need_the_library(tmp_path: Path) -> None:
    library = Declared()
    tuned(graph_of(lambda x: (x * 2, x.sum(-1)), half(256, 640)), tmp_path, prefers(FIRST), library)
    assert library.asked == []
    tuned(graph_of(lambda x, y: (x @ y,), torch.zeros(64, 64), torch.zeros(64, 64)), tmp_path, prefers(FIRST), library)
    assert {p.multiplied for p in library.asked} == {torch.float32}


def test_products_of_symbolic_sizes_keep_the_default(tmp_path: Path) -> None:
    graph = symbolic_graph(lambda x, y: (x @ y,), (("n", 64), "bfloat16"), ((64, 128), "bfloat16"))
    library = Declared()
    assert products_of(graph, tuned(graph, tmp_path, prefers(FIRST), library)) == [] and library.asked == []


def test_the_time_of_a_library_product_is_in_the_table_of_kernels(tmp_path: Path) -> None:
    plan: CudaPlan = lower_to_cuda(linear(), SM_90, choose=tuned(linear(), tmp_path, prefers(SECOND)).choose)
    (found,) = profiled(plan, (), prefers(SECOND))
    assert found.title.startswith("cuBLASLt: ") and found.seconds == 0.1
    assert found.nbytes == 2 * (256 * 64 + 128 * 64 + 128 + 256 * 128) + 4096


def test_the_cache_key_names_the_library_where_it_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = object.__new__(cuda_machine.CudaMachine)
    machine.where, machine.is_emulated, machine.capability, machine.is_tuned = device("cuda"), False, (9, 0), False
    monkeypatch.setattr(cuda_machine.cuda, "get_device_name", lambda where: "some GPU")
    opened = []
    monkeypatch.setattr(cuda_machine.blas, "version", lambda: opened.append(1) or VERSION)
    store = Cache(tmp_path, 1 << 30)

    def part(graph: Graph) -> str:
        return machine.key_parts(graph, CompileOptions(), store)["cuBLASLt"]

    sums = graph_of(lambda x: (x.sum(),), half(64))
    assert part(linear()) == part(sums) == "" and not opened  # without measured products the library is not even opened
    (tmp_path / CUDA_WINNERS).mkdir(parents=True)
    (tmp_path / CUDA_WINNERS / f"{PRODUCT_WINNER}{'0' * 40}.json").write_text("{}")
    assert part(linear()) == str(VERSION) and part(sums) == ""
    machine.is_tuned = True
    assert part(linear()) == str(VERSION) and part(sums) == ""
