"""The times of the kernels of a CUDA graph, with a declared time for each kernel in place of a device."""

from __future__ import annotations

import pytest

import eager as torch
from eager.nn import functional as F
from fxir.trace.trace import trace
from inductor.driver.cuda import CudaPlan, lower_to_cuda
from inductor.driver.gpu_profile import KernelTime, profiled, table
from inductor.driver.gpu_timing import Variant
from tests.triton_kernels.graphs import on_cuda


class Declared:
    """A timer by declaration: a microsecond for each pointer of a product. Other kernels cannot run."""

    def __init__(self) -> None:
        self.released = 0
        self.timed: list[Variant] = []

    def seconds(self, variant: Variant) -> float:
        self.timed.append(variant)
        (kernel,) = variant.kernels
        if "tl.dot" not in kernel.source:
            raise MemoryError("no memory for the inputs\na second line")
        return 1e-6 * len(kernel.pointers)

    def release(self) -> None:
        self.released += 1


def _plan() -> CudaPlan:
    """Three equal layers, and a softmax before them."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.softmax(x, -1).to(w.dtype)
        for _ in range(3):
            y = torch.relu(y @ w)
        return (y,)

    inputs = (torch.zeros(1024, 256), torch.zeros(256, 256, dtype=torch.bfloat16))
    return lower_to_cuda(trace(fn, [on_cuda(t) for t in inputs]))


def test_equal_kernels_are_timed_once_and_counted() -> None:
    timer = Declared()
    found = profiled(_plan(), None, timer)
    layer = found[0]
    assert layer.runs == 3 and layer.seconds == pytest.approx(3e-6) and layer.total == pytest.approx(9e-6)
    assert layer.nbytes == (2 * 1024 + 256) * 256 * 2
    assert len(timer.timed) == len(found) == 2 and timer.released == 1


def test_a_kernel_that_does_not_run_has_its_reason() -> None:
    failed = profiled(_plan(), None, Declared())[-1]
    assert failed.error == "MemoryError: no memory for the inputs" and failed.total == 0
    assert table([failed._replace(title="buf0: amax#1")]).splitlines()[-1].split() == ["1", *f"buf0: amax#1: {failed.error}".split()]


def test_the_table_has_shares_and_rates() -> None:
    lines = table([KernelTime("buf0: softmax#3", 2, 3e-6, 24_000), KernelTime("buf1: relu#4", 1, 4e-6, 8_000)]).splitlines()
    assert lines[0] == "3 launches of 2 kernels, 10.0 us one after another"
    assert lines[-2].split()[:6] == ["2", "3.0", "60.0%", "0.02", "8", "buf0:"]
    assert lines[-1].split()[:5] == ["1", "4.0", "40.0%", "0.01", "2"]
