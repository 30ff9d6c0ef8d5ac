"""Sums of products in one instruction: kernels that compute one value round it equally, and not by the readers of its products."""
from __future__ import annotations

import re
from typing import Any

import pytest

import eager as torch
from inductor.driver.cuda import CudaPlan
from tests.triton_kernels.graphs import plan_of


def first(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """The product a * b has two readers."""
    p = a * b
    return (p + c * d).amax(1), p.sum(1)


def second(a: Any, b: Any, c: Any, d: Any, y: Any) -> tuple[Any, ...]:
    return (((a * b + c * d) == y[:, None]).sum(1),)


def plans() -> tuple[CudaPlan, CudaPlan]:
    x = torch.zeros(64, 512)
    return plan_of(first, (x,) * 4), plan_of(second, (*(x,) * 4, torch.zeros(64)))


def loaded(source: str) -> dict[str, str]:
    """The pointer that each value is loaded from."""
    return dict(re.findall(r"(t\d+) = tl\.load\((p\d+) ", source))


def test_a_sum_of_products_is_rounded_equally_in_every_kernel() -> None:
    found = []
    for plan in plans():
        (kernel,) = plan.kernels
        named = dict(zip(kernel.parameters, kernel.pointers, strict=True))
        values = {t: named[p] for t, p in loaded(kernel.source).items()}
        products = {t: (values[a], values[b]) for t, a, b in re.findall(r"(t\d+) = (t\d+) \* (t\d+)$", kernel.source, re.MULTILINE)
                    if a in values and b in values}  # fmt: skip
        sums = re.findall(r"tl\.fma\((t\d+), (t\d+), (t\d+)\)", kernel.source)
        found += [(values[a], values[b], products[c]) for a, b, c in sums]
    assert found == [("in0", "in1", ("in2", "in3"))] * 2


@pytest.mark.gpu
def test_machine_code_multiplies_and_adds_as_printed() -> None:
    pytest.importorskip("triton", reason="compiles: needs the gpu extra")
    from inductor.triton.compile import compile_kernel

    for plan in plans():
        (kernel,) = plan.kernels
        ptx = compile_kernel(kernel).ptx
        products = dict(re.findall(r"mul\.f32\s+(%r\d+), (%r\d+),", ptx))
        fused = re.findall(r"fma\.rn\.f32\s+%r\d+, (%r\d+), %r\d+, (%r\d+);", ptx)
        loads = [re.findall(r"%r\d+", m) for m in re.findall(r"ld\.global\.v4\.b32 \{([^}]*)\}", ptx)]
        at = {r: k for k, names in enumerate(loads) for r in names}
        assert fused and all(at[a] < at[products[c]] for a, c in fused if c in products)
        assert any(c in products for _, c in fused)


@pytest.mark.parametrize(("fn", "text"), [
    (lambda x, y, z: (x * y + z,), r"tl\.fma\(t\d+, t\d+, t\d+\)"),
    (lambda x, y, z: (z + x * y,), r"tl\.fma\(t\d+, t\d+, t\d+\)"),
    (lambda x, y, z: (x * y - z,), r"tl\.fma\(t\d+, t\d+, t\d+ \* -1\.0\)"),
    (lambda x, y, z: (z - x * y,), r"tl\.fma\(t\d+ \* -1\.0, t\d+, t\d+\)"),
    (lambda x, y, z: (z - x * 0.1,), r"tl\.fma\(t\d+ \* -1\.0, tl\.full\(\[\], 0\.1\d*, tl\.float\d+\), t\d+\)"),
])  # fmt: skip
@pytest.mark.parametrize("of", [torch.float32, torch.float64])
def test_sums_and_differences_with_a_product(fn: Any, text: str, of: torch.dtype) -> None:
    (kernel,) = plan_of(fn, tuple(torch.zeros(64, dtype=of) for _ in range(3))).kernels
    assert re.search(text, kernel.source), kernel.source
