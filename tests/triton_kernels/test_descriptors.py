"""Products whose operands are copied by descriptors of matrices: `options={"triton.enable_persistent_tma_matmul": True}`."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import eager as torch
from eager.base.device import device
from fxir.trace.trace import trace
from inductor.artifact.format import KernelLaunch
from inductor.base.options import check_options, tries_descriptors
from inductor.base.target import SM_80, SM_90, Target
from inductor.driver.cuda import CudaPlan, Launch, lower_to_cuda
from inductor.driver.cuda_artifact import CompiledForCuda, compile_for_cuda
from inductor.driver.gpu_candidates import Candidate, candidates
from inductor.driver.gpu_winners import Winners
from inductor.loops.steps import Descriptors, Persistent
from inductor.loops.tree import Kernel
from inductor.plan.gpu_schedule import Choice, schedule_gpu
from inductor.triton.compile import instructions, resources
from inductor.triton.kernel import DESCRIPTOR_BYTES, Options
from tests.triton_kernels.graphs import on_cuda
from tests.triton_kernels.test_candidates import product

Product = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor]]
LAYOUTS: dict[str, Product] = {
    "rows, rows": lambda x, w: (torch.relu(x @ w),),
    "rows, columns": lambda x, w: (torch.relu(x @ w.t()),),
    "columns, rows": lambda x, w: (torch.relu(x.t() @ w),),
    "columns, columns": lambda x, w: (torch.relu(x.t() @ w.t()),),
    "part of a matrix": lambda x, w: (torch.relu(x[8:, 8:] @ w[8:]),),
}


def inputs(name: str, rows: int, depth: int, columns: int) -> tuple[torch.Tensor, ...]:
    """Small whole numbers, whose sums are exact in any order."""
    first, second = name.split(", ") if ", " in name else ("rows", "rows")
    if name == "part of a matrix":
        rows, depth = rows + 8, depth + 8
    shapes = (rows, depth) if first == "rows" else (depth, rows), (depth, columns) if second == "rows" else (columns, depth)
    return tuple(torch.randint(-4, 5, shape).bfloat16() for shape in shapes)


def with_descriptors(size: tuple[int, int, int], resident: int, cores: int) -> Callable[[Kernel, Target, Options], Candidate]:
    choice = Choice(product=size, resident=resident, descriptors=True)

    def choose(loops: Kernel, target: Target, options: Options) -> Candidate:
        kernel, steps = schedule_gpu(loops, target._replace(cores=cores), choice)
        assert any(isinstance(s, Descriptors) for s in steps) and any(isinstance(s, Persistent) for s in steps) == bool(resident)
        return Candidate(kernel, steps, options, choice)

    return choose


def plan_of(name: str, given: tuple[torch.Tensor, ...], size: tuple[int, int, int], resident: int = 1, cores: int = 3) -> CudaPlan:
    return lower_to_cuda(trace(LAYOUTS[name], [on_cuda(t) for t in given]), SM_90, choose=with_descriptors(size, resident, cores))


def every_layout() -> None:
    """Run in Triton's interpreter: sizes that blocks do not divide."""
    from tests.triton_kernels import run_plan

    for name, fn in LAYOUTS.items():
        given = inputs(name, 72, 80, 56)
        for resident in (0, 1):
            plan = plan_of(name, given, (32, 16, 32), resident)
            assert [k.descriptors for k in plan.kernels] == [2]
            (found,), (wanted,) = run_plan.run(plan, list(given)), fn(*given)
            assert np.array_equal(np.asarray(found, np.float32), wanted.float().numpy()), name


def test_products_with_descriptors_are_not_joined_in_one_launch() -> None:
    given = [on_cuda(torch.zeros(256, 256).bfloat16()) for _ in range(4)]
    plan = lower_to_cuda(trace(lambda a, b, c, d: (a @ b, c @ d), given), SM_90, choose=with_descriptors((64, 64, 64), 0, 3))
    assert [k.descriptors for k in plan.kernels] == [2] and len(plan.steps) == 2
    assert len({plan.memory[s.arguments[-1]].at for s in plan.steps if isinstance(s, Launch)}) == 1  # of descriptors


@pytest.mark.gpu
def test_values_of_every_layout() -> None:
    from tests.cuda.conftest import check_emulated

    check_emulated("tests.triton_kernels.test_descriptors", "every_layout", TRITON_INTERPRET="1")


def compiled(name: str) -> CompiledForCuda:
    graph = trace(LAYOUTS[name], [on_cuda(t) for t in inputs(name, 2000, 1024, 1000)])
    return compile_for_cuda(graph, device("cuda:0"), SM_90, choose=with_descriptors((128, 128, 64), 1, 64), is_emulated=False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", LAYOUTS)
def test_blocks_are_copied_by_the_device(name: str) -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    made = compiled(name)
    (cubin,) = made.cubins or ()
    found, used = instructions(cubin), resources(cubin)
    assert used.spilled_bytes == 0 and cubin.shared_bytes <= SM_90.shared_bytes
    assert any(i.startswith("HGMMA") for i in found) and any(i.startswith("UTMALDG") for i in found)
    assert not any(i.startswith("LDG") for i in found), sorted(set(found))  # neither plain loads nor copies by threads


@pytest.mark.gpu
def test_the_memory_of_descriptors_is_the_argument_behind_the_pointers() -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    made = compiled("rows, columns")
    (kernel,), (cubin,) = made.plan.kernels, made.cubins or ()
    (launch,) = (s for s in made.compiled.plan.steps if isinstance(s, KernelLaunch))
    assert cubin.ptx.split(".entry")[1].split(")")[0].count(".param") == len(launch.buffers) + 1 == len(kernel.parameters) + 2
    assert not launch.sizes and launch.buffers[-1][0] == made.compiled.plan.arena_buffer
    where = made.plan.memory[kernel.pointers[-1]]
    assert where.at % DESCRIPTOR_BYTES == 0 and where.nbytes == 2 * DESCRIPTOR_BYTES * int(launch.grid) <= made.plan.arena_bytes


def test_they_are_candidates_where_the_option_and_the_target_have_them() -> None:
    large = product(4096, 4096, 4096)
    assert any(c.choice.descriptors for c in candidates(large, SM_90, descriptors=True))
    assert not any(c.choice.descriptors for c in (*candidates(large, SM_90), *candidates(large, SM_80, descriptors=True)))


def test_a_winner_holds_for_one_value_of_the_option(tmp_path) -> None:
    loops = product(4096, 4096, 4096)
    default, *others = candidates(loops, SM_90, descriptors=True)
    best = next(c for c in others if c.choice.descriptors)
    own = Winners(tmp_path, "some GPU", descriptors=True)
    own.remember(own.key(default, SM_90), loops, best, {})
    again, without = Winners(tmp_path, "some GPU", descriptors=True), Winners(tmp_path, "some GPU")
    assert again.choose(loops, SM_90, default.options).choice == best.choice
    assert without.choose(loops, SM_90, default.options).choice == default.choice


def test_the_option_is_checked() -> None:
    name = "triton.enable_persistent_tma_matmul"
    check_options({name: True})
    with pytest.raises(RuntimeError, match=r"Unexpected type of attr triton\.enable_persistent_tma_matmul"):
        check_options({name: 1.5})
    assert tries_descriptors({name: True}) and not tries_descriptors({name: False}) and not tries_descriptors({})


if __name__ == "__main__":
    every_layout()
