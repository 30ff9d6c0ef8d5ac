"""`_scaled_mm`: products of matrices of 8-bit floats with scales, eager and compiled."""
from __future__ import annotations

import pytest

import eager as torch
from inductor.base.target import SM_80, SM_90
from tests.triton_kernels.graphs import plan_of

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
ONE = torch.ones(())


def operands(rows: int = 5, columns: int = 6, depth: int = 32, first: torch.dtype = E4M3,
             second: torch.dtype = E4M3) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return torch.randn(rows, depth).to(first), torch.randn(columns, depth).to(second).t()


@pytest.mark.parametrize(("first", "second"), [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E5M2)])
@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16, torch.float16, E5M2, None])
def test_the_result_is_the_scaled_product(first: torch.dtype, second: torch.dtype, out_dtype: torch.dtype | None) -> None:
    a, b = operands(first=first, second=second)
    bias = torch.randn(6).bfloat16()
    wanted = ((a.float() @ b.float()) * (2.0 * 0.125) + bias.float()).to(out_dtype or first)

    def scaled(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(a, b, ONE * 2, ONE * 0.125, bias=bias, out_dtype=out_dtype)

    for fn in (scaled, torch.compile(scaled, fullgraph=True)):
        found = fn(a, b, bias)
        assert found.dtype is wanted.dtype and found.is_contiguous()
        torch.testing.assert_close(found.float(), wanted.float(), rtol=1e-2 if wanted.dtype.itemsize > 1 else 0.25, atol=1e-5)


def test_scales_of_rows_and_columns() -> None:
    a, b = operands()
    rows, columns = torch.rand(5, 1), torch.rand(1, 6)
    found = torch._scaled_mm(a, b, rows, columns, out_dtype=torch.float32)
    torch.testing.assert_close(found, (a.float() @ b.float()) * rows * columns)


def test_the_function_itself_can_be_compiled() -> None:
    a, b = operands()
    found = torch.compile(torch._scaled_mm, fullgraph=True)(a, b, ONE, ONE, out_dtype=torch.float32)
    torch.testing.assert_close(found, a.float() @ b.float())


def test_bad_arguments() -> None:
    a, b = operands()
    with pytest.raises(RuntimeError, match="mat1 must be a matrix"):
        torch._scaled_mm(a[0], b, ONE, ONE)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch._scaled_mm(a, b[:8], ONE, ONE)
    with pytest.raises(RuntimeError, match="mat2 is float32; allowed: float8_e4m3fn or float8_e5m2"):
        torch._scaled_mm(a, b.float(), ONE, ONE)
    for scales in ((ONE.double(), ONE), (torch.ones(3), ONE), (torch.ones(5, 1), ONE)):
        with pytest.raises(ValueError, match="Invalid scaling configuration"):
            torch._scaled_mm(a, b, *scales)
    with pytest.raises(RuntimeError, match="Bias must be size 6 but got 5"):
        torch._scaled_mm(a, b, ONE, ONE, bias=torch.ones(5))
    with pytest.raises(NotImplementedError, match="scale_result"):
        torch._scaled_mm(a, b, ONE, ONE, scale_result=ONE)


def test_devices_with_a_unit_for_8_bits_run_one_kernel() -> None:
    def fn(a: torch.Tensor, b: torch.Tensor, s: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.relu(torch._scaled_mm(a, b, s, s, bias, out_dtype=torch.bfloat16)),)

    inputs = (*operands(2048, 1024, 512), ONE, torch.zeros(1024).bfloat16())
    plan = plan_of(fn, inputs, SM_90)
    (kernel,) = plan.kernels
    assert len(plan.steps) == 1 and " += tl.dot(" in kernel.source and ".to(tl.float32)" not in kernel.source.split("tl.dot(")[0]
    assert [type(s).__name__ for s in plan_of(fn, inputs, SM_80).steps] == ["Call", "Launch"]
