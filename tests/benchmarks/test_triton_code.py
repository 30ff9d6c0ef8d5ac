"""The machine code of the kernels of ops and models: it compiles, spills nothing, fits into shared memory, multiplies on the matrix unit.

A sample is compiled; FRAMEJIT_TEST_KERNELS=all compiles the kernels of every benchmark program, of every op on every sample and on larger
tensors, and of a training step and an evaluation of every model of the zoo, for both architectures.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

from benchmarks import plans, triton  # noqa: E402
from benchmarks.plans import Planned  # noqa: E402
from inductor.triton.kernel import TritonKernel  # noqa: E402

pytestmark = pytest.mark.gpu
ALL = os.environ.get("FRAMEJIT_TEST_KERNELS") == "all"
OPS = ("digamma", "cumsum", "logsumexp", "scatter_add", "topk")  # digamma has an array in local memory
LARGE = ("gather", "logcumsumexp", "erfinv")


def test_kernels_of_ops_and_models_compile_within_the_limits_of_the_target() -> None:
    if ALL:
        codes = triton.measured(sources=tuple(plans.SOURCES))
    else:
        ops = [p for op in OPS for p in list(plans.of_ops(op, (80,)))[:1]]
        ops += [p for op in LARGE for p in list(plans.of_large_ops(op, (80,)))[:1]]
        codes = triton.compiled([*ops, *plans.of_zoo("hopfield", (90,))], workers=1)
    faulty = [(c.program, c.kernel, c.capability, c.faults) for c in codes if c.faults]
    assert not faulty, f"{len(faulty)} of {len(codes)} kernels: {faulty[:5]}"
    assert {c.group for c in codes} >= {"ops", "large", "zoo"}
    assert any("backward" in c.program for c in codes) and all(c.registers for c in codes)


def kernel(body: str, stages: int = 1) -> TritonKernel:
    before = "import triton\nimport triton.language as tl\n"
    return TritonKernel("k", before, ("p0",), body, ("x",), ("x",), (), (plans.torch.float32,), 1, 4, 1, stages)


def test_equal_kernels_are_compiled_once_and_a_kernel_that_fails_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_kernel = triton.compile_kernel
    monkeypatch.setattr(triton, "compile_kernel", lambda k, sm: (compiled.append(k.body), compile_kernel(k, sm))[1])
    good, bad = kernel("    tl.store(p0, 1.0)\n"), kernel("    tl.store(p0, nothing)\n")
    made = [Planned("ops", name, 90, ((k, "title"),)) for name, k in (("a", good), ("b", good), ("c", bad))]
    a, b, c, d = triton.compiled([*made, Planned("ops", "d", 90, (), "Refused: no plan")], workers=1)
    assert len(compiled) == 2
    assert (a.program, b.program) == ("a", "b") and a.registers == b.registers > 0 and not a.faults and not b.faults
    assert c.faults and "CompilationError" in c.faults[0]
    assert d.faults == ["Refused: no plan"]
