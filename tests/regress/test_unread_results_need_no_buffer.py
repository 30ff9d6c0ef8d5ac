"""Unread results of an extern call have no buffer, and the compiled graph runs without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import eager as torch
from eager.nn import functional as F


@pytest.mark.parametrize("fn", [
    lambda x: F.max_pool2d(x[None], 2), lambda x: x.sort(dim=1)[0], lambda x: x.sort(dim=1)[1],
    lambda x: x.topk(2, dim=-1).values + 1, lambda x: x.median(dim=2)[1], lambda x: F.max_pool2d(x[None], 2, return_indices=True)[1],
])  # fmt: skip
def test_compiled_as_eager(fn: Callable[[torch.Tensor], torch.Tensor], capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(fn, fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(x), fn(x))
    assert not torch._dynamo.explain(fn, x).breaks
    assert "failed where eager does not" not in capfd.readouterr().err


def test_a_value_after_a_product_that_only_its_own_loop_reads() -> None:
    """The loop after the product keeps such a value in registers: it has no place that the product could share."""

    def fn(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        h = F.linear(x, w)
        return F.linear(0.5 * h * (1.0 + torch.tanh(0.79 * (h + 0.044 * torch.pow(h, 3.0)))), v)

    draw = torch.Generator().manual_seed(0)
    leaves = [torch.randn(*shape, generator=draw).requires_grad_() for shape in ((20, 16), (64, 16), (16, 64))]
    expected = torch.autograd.grad(fn(*leaves).sum(), leaves)
    found = torch.autograd.grad(torch.compile(fn, fullgraph=True)(*leaves).sum(), leaves)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(found, expected, strict=True))
