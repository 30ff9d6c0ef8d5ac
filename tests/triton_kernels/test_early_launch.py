"""Programmatic dependent launch: `options={"triton.enable_pdl": True}` on devices from sm_90 on."""
from __future__ import annotations

import pytest

import eager as torch
from eager.base.device import device
from fxir.trace.trace import trace
from inductor.artifact.format import ArtifactPlan
from inductor.base.options import check_options, launches_early
from inductor.base.target import SM_80, SM_90, Target
from inductor.driver.cuda_artifact import CompiledForCuda, compile_for_cuda
from tests.triton_kernels.graphs import on_cuda


def compiled(target: Target, early: bool, is_emulated: bool = False) -> CompiledForCuda:
    graph = trace(lambda x: (torch.softmax(x @ x, -1),), [on_cuda(torch.zeros(64, 64, dtype=torch.bfloat16))])
    return compile_for_cuda(graph, device("cuda:0"), target, is_emulated=is_emulated, launches_early=early)


@pytest.mark.gpu
@pytest.mark.parametrize(("target", "early", "waits"), [(SM_90, True, True), (SM_90, False, False), (SM_80, True, False)])
def test_kernels_wait_for_the_kernel_in_front(target: Target, early: bool, waits: bool) -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    made = compiled(target, early)
    plan = ArtifactPlan.from_json(made.compiled.plan.to_json())
    assert len(plan.kernels) > 1 and {k.waits for k in plan.kernels} == {waits}
    for cubin in made.cubins or ():
        wait, memory = cubin.ptx.find("griddepcontrol.wait"), cubin.ptx.find("ld.global")
        assert (0 < wait < memory) if waits else wait == -1
        assert ("griddepcontrol.launch_dependents" in cubin.ptx) == waits


def test_an_emulated_device_runs_kernels_in_order() -> None:
    assert not any(k.waits for k in compiled(SM_90, early=True, is_emulated=True).compiled.plan.kernels)


def test_the_option_is_checked() -> None:
    check_options({"triton.enable_pdl": True})
    with pytest.raises(RuntimeError, match=r"Unexpected type of attr triton\.enable_pdl"):
        check_options({"triton.enable_pdl": "yes"})
    assert launches_early({"triton.enable-pdl": True}) and not launches_early({"triton.enable_pdl": False}) and not launches_early({})
