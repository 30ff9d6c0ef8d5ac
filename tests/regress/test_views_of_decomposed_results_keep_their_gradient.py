"""Two views of a result whose op is traced through a decomposition that ends in a view: both keep their gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import eager as torch
from eager.nn import functional as F

W = torch.linspace(-1, 1, 24, dtype=torch.float64).view(8, 3)


@pytest.mark.parametrize("make", [
    lambda x: F.linear(x, W), lambda x: F.linear(x, W).view(2, 4, 2, 4).permute(2, 0, 1, 3), lambda x: x @ W.t(),
    lambda x: F.layer_norm(x, (3,)), lambda x: F.conv1d(x, W.view(2, 4, 3)),
])  # fmt: skip
@pytest.mark.parametrize("breaks", [False, True])
def test_views_of_one_result_keep_their_gradient(make: Callable[[torch.Tensor], torch.Tensor], breaks: bool) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        a, b = make(x)
        if breaks:
            torch._dynamo.graph_break()
        return a * b.sin(), a, b

    x = torch.linspace(-2, 2, 24, dtype=torch.float64).view(2, 4, 3).requires_grad_()
    results = fn(x), torch.compile(fn, backend="aot_eager")(x)
    grads = [torch.autograd.grad(sum((y * y).sum() for y in ys), x)[0] for ys in results]
    assert all(torch.allclose(e, c) and c.requires_grad for e, c in zip(*results, strict=True))
    assert torch.allclose(*grads)
