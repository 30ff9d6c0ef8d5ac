"""Products by a cuBLASLt that computes on the host (fake_blas.c), on the driver of fake_driver.c: `python -m tests.cuda.fake_blas NAME`.

The library and the driver are chosen once in a process. Each scenario prints nothing, or raises.
"""
from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.cuda import backend as cuda
from fxir.trace.trace import trace
from inductor._native import MatrixProduct, open_blas
from inductor.artifact.format import ArtifactPlan
from inductor.base.target import SM_90
from inductor.driver.cuda import CudaPlan
from inductor.driver.gpu_autotune import Job, jobs_of, memory_of
from inductor.driver.gpu_library import Cublas, library_candidates
from inductor.driver.gpu_timing import EventTimer, Variant
from inductor.driver.gpu_winners import Winners, description
from inductor.plan.library_products import library_products
from inductor.runtime import blas, loader
from tests.cuda.fake_driver import Driver
from tests.cuda.library_products import FORMS, T, half, plan_of, products_of, whole
from tests.triton_kernels.graphs import on_cuda

PLAIN, WITH_WORKSPACE, ALIGNED, UNKNOWN = ((100 + k).to_bytes(8, "little") + bytes(56) for k in range(4))


class Library:
    """The fake library's counters."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="framejit-fake-blas-")  # removed at the end of the process
        path = f"{self.folder.name}/libcublasLt.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", path, str(Path(__file__).with_suffix(".c"))], check=True)
        assert open_blas(path) == open_blas("a second path is ignored") == 130000
        self.library = ctypes.CDLL(path)
        for name in ("workspace", "stream"):
            getattr(self.library, f"fake_{name}").restype = ctypes.c_void_p

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, f"fake_{name}")


def on_driver(*inputs: T) -> tuple[T, ...]:
    """The inputs in memory of the emulated device, which is memory of the host. From here on steps run on the fake driver."""
    made = tuple(x.cuda() for x in inputs)
    cuda.backend().is_emulated = False
    return made


def with_algorithm(plan: ArtifactPlan, algorithm: bytes, **changes: Any) -> ArtifactPlan:
    steps = tuple(replace(s, algorithm=algorithm.hex(), **changes) if s in products_of(plan) else s for s in plan.steps)
    return replace(plan, steps=steps)


def values(t: T) -> Any:
    """The numbers of a tensor on the fake device."""
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    memory = (ctypes.c_char * (span * t.element_size())).from_address(t.data_ptr())
    strides = [s * t.element_size() for s in t.stride()]
    return np.ndarray(tuple(t.shape), t.dtype.numpy, memory, strides=strides).astype(np.float64)


def job_of(fn: Any, *inputs: T) -> tuple[CudaPlan, Job]:
    """The plan of a function with one kernel, and the kernel as a job of the tuner. From here on steps run on the fake driver."""
    plan, (job,) = jobs_of(trace(fn, [on_cuda(x) for x in inputs]), SM_90, Winners(Path("nowhere"), "a device"))
    on_driver()
    return plan, job


def every_form_is_described_to_the_library(d: Driver, b: Library) -> None:
    forms = [(fn, make()) for _, fn, make, kernels in FORMS if kernels == 0]
    plans = [plan_of(fn, inputs, 0) for fn, inputs in forms]
    wanted = [fn(*inputs)[0].double().numpy() for fn, inputs in forms]
    given = [on_driver(*inputs) for _, inputs in forms]
    for plan, inputs, numbers in zip(plans, given, wanted, strict=True):
        (found,) = loader.load(with_algorithm(plan, PLAIN), None, {}, name="g")(*inputs)
        np.testing.assert_array_equal(values(found), numbers)
    assert b.products() == len(forms) > 12 and b.stream() is None and b.live() == 0


def an_algorithm_gets_its_workspace(d: Driver, b: Library) -> None:
    inputs = half(5, 7), half(7, 6)
    plan = with_algorithm(plan_of(lambda x, y: (x @ y,), inputs, 0, workspace_bytes=4096), WITH_WORKSPACE)
    assert plan.arena_bytes >= 4096
    given = on_driver(*inputs)
    loader.load(plan, None, {}, name="g")(*given)
    assert b.workspace_bytes() == 4096 and b.workspace() % 16 == 0


def a_product_is_recorded_with_the_other_steps(d: Driver, b: Library) -> None:
    x, y, bias = half(5, 8), half(8, 6), half(6)
    plan = with_algorithm(plan_of(lambda x, y, bias: (x @ y + bias,), (x, y, bias), 0), PLAIN)
    given = on_driver(x, y, bias)
    g = loader.load(plan, None, {}, name="g", single=True, keep_outputs=True, recording=1)
    for call in range(4):
        out = g(*given)
        del out
        assert b.products() == (1 if call == 0 else 2) and d.count("graph_launches") == call
    assert b.stream() == 77 and d.count("recordings") == 1


def suggestions_are_candidates_and_are_timed(d: Driver, b: Library) -> None:

    plan, job = job_of(lambda x, w, b: (x @ w + b,), half(40, 64), half(64, 48), half(48))
    library = Cublas(torch.device("cuda"))
    found = list(library_candidates(job.loops, SM_90, "ieee", library))
    assert library.version == 130000 and [c.library.algorithm for c in found] == [PLAIN, WITH_WORKSPACE, ALIGNED]
    assert [description(c) for c in found] == [f"cuBLASLt algorithm {k}" for k in range(3)] and b.reductions() == 2
    timer = EventTimer(torch.device("cuda"), SM_90._replace(caches=(1 << 10,)))
    for c in found:
        before = b.products()
        memory = memory_of(c, c.printed("kernel"), plan.program)
        assert 0 < timer.seconds(Variant((), (), memory, 0, c.library)) < 0.1 and b.products() > before + 9
        assert (c.library.workspace in memory) == (c.library.algorithm == WITH_WORKSPACE)
    timer.release()


def alignments_are_those_of_the_first_elements(d: Driver, b: Library) -> None:

    _, job = job_of(lambda x, w: (x[:, 2:] @ w,), half(40, 66), half(64, 48))
    found = list(library_candidates(job.loops, SM_90, "ieee", Cublas(torch.device("cuda"))))
    assert [c.library.algorithm for c in found] == [PLAIN, WITH_WORKSPACE]  # the other needs operands at multiples of 16 bytes
    assert [b.alignment(k) for k in range(4)] == [16, 4, 16, 16]  # the library's first operand is w


def float64_with_a_bias_is_a_product_and_a_kernel(d: Driver, b: Library) -> None:
    """The library has no bias for float64, so the next way is taken."""

    _, job = job_of(lambda x, w, b: (x @ w + b,), whole(40, 64).double(), whole(64, 48).double(), whole(48).double())
    assert library_products(job.loops)[0].bias is not None
    found = list(library_candidates(job.loops, SM_90, "ieee", Cublas(torch.device("cuda"))))
    assert {c.library.way for c in found} == {1} and description(found[0]) == "cuBLASLt algorithm 0 and a kernel"


def precision_of_float32_is_passed(d: Driver, b: Library) -> None:
    inputs = whole(5, 7), whole(7, 6)
    plan = with_algorithm(plan_of(lambda x, y: (x @ y,), inputs, 0), PLAIN)
    given = on_driver(*inputs)
    for is_tf32, compute in ((False, 68), (True, 77)):
        loader.load(with_algorithm(plan, PLAIN, is_tf32=is_tf32), None, {}, name="g")(*given)
        assert b.compute() == compute


def errors_name_the_library(d: Driver, b: Library) -> None:
    inputs = half(5, 7), half(7, 6)
    plan = plan_of(lambda x, y: (x @ y,), inputs, 0)
    given = on_driver(*inputs)
    with pytest.raises(LookupError, match=r"cuBLASLt error while checking an algorithm: the fake library refuses \(status 15\)"):
        loader.load(with_algorithm(plan, UNKNOWN), None, {}, name="g")
    with pytest.raises(LookupError, match="non-hexadecimal"):  # a damaged plan
        loader.load(replace(plan, steps=(replace(products_of(plan)[0], algorithm="xyz"),)), None, {}, name="g")
    with pytest.raises(LookupError, match="needs 4096 bytes of workspace; its plan has 0"):
        loader.load(with_algorithm(plan, WITH_WORKSPACE), None, {}, name="g")
    g = loader.load(with_algorithm(plan, PLAIN), None, {}, name="g")
    b.fail_next_product(14)
    with pytest.raises(RuntimeError, match=r"starting a product of matrices: an internal operation failed \(status 14\)"):
        g(*given)
    g(*given)  # the graph can still be called
    (step,) = products_of(plan)
    with pytest.raises(RuntimeError, match="describing a matrix"):
        blas.suggestions(replace(step, a=replace(step.a, pitch=3)), 0, 1, 0)
    with pytest.raises(TypeError, match="dtype code"):
        MatrixProduct(0, torch.int32.code, torch.int32.code, False, (1, 1, 1, 1), (False, 1, 0), (False, 1, 0), (1, 0), 0)
    with pytest.raises(ValueError, match="allowed: positive sizes"):
        MatrixProduct(0, torch.float32.code, torch.float32.code, False, (1, 0, 1, 1), (False, 1, 0), (False, 1, 0), (1, 0), 0)
    del g
    assert b.live() == 0


SCENARIOS = (
    every_form_is_described_to_the_library, an_algorithm_gets_its_workspace, a_product_is_recorded_with_the_other_steps,
    suggestions_are_candidates_and_are_timed, alignments_are_those_of_the_first_elements, float64_with_a_bias_is_a_product_and_a_kernel,
    precision_of_float32_is_passed, errors_name_the_library,
)  # fmt: skip

if __name__ == "__main__":
    torch.manual_seed(0)
    {s.__name__: s for s in SCENARIOS}[sys.argv[1]](Driver(), Library())
