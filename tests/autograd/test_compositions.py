"""Every order of transforms of random functions computes the Jacobian and the Hessian that plain autograd computes."""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.func import hessian, jacfwd, jacrev, linearize, vmap
from eager.transforms import functional

F = torch.nn.functional


def _write_products(x: Any) -> Any:
    y = x.clone()
    y[:2] = x[2:] * x[:2]
    return y


STEPS: list[Callable[[Any], Any]] = [
    lambda x: x.sin(), lambda x: x * x, lambda x: (x * 0.3).exp(), lambda x: torch.softmax(x, -1), lambda x: x.cumsum(-1),
    lambda x: x.flip(-1), lambda x: torch.cat([x[1:], x[:1]]), lambda x: x.sort().values, lambda x: torch.outer(x, x).sum(0),
    lambda x: x - x.mean(), lambda x: x / (1 + x.norm()), lambda x: torch.where(x > 0, x, x * 0.1),
    lambda x: x.reshape(2, 2).t().reshape(-1), lambda x: x[torch.tensor([3, 1, 1, 0])], lambda x: torch.logsumexp(x, 0) + x,
    lambda x: F.gelu(x), lambda x: F.layer_norm(x, (4,)), lambda x: x.clamp(-1, 1) + x, _write_products,
    lambda x: torch.linalg.solve(torch.eye(4, dtype=x.dtype) * 3 + torch.outer(x, x) * 0.1, x),
    lambda x: F.conv1d(x[None, None], torch.ones(1, 1, 3, dtype=x.dtype), padding=1)[0, 0],
    lambda x: x.clone().mul_(x.sum() * 0.2), lambda x: torch.stack([x, x * 2]).max(0).values,
    lambda x: F.scaled_dot_product_attention(*[x.view(1, 2, 2)] * 3).reshape(-1),
    lambda x: F.cross_entropy(x[None], torch.tensor([1])) + x, lambda x: torch.tril(torch.outer(x, x)).sum(1) * 0.3,
    lambda x: F.max_pool1d(x[None, None], 2)[0, 0].repeat(2), lambda x: x.index_add(0, torch.tensor([0, 2]), x[:2]),
    lambda x: torch.zeros_like(x).copy_(x * 1.5), lambda x: torch.einsum("i,j->ij", x, x).diagonal(),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(45))
def test_every_order_of_transforms_agrees_with_autograd(seed: int) -> None:
    r = random.Random(seed)
    chosen = [STEPS[(seed + k * r.randrange(1, 29)) % len(STEPS)] for k in range(r.randint(1, 3))]

    def f(x: Any) -> Any:
        for step in chosen:
            x = step(x)
        return x

    def square(x: Any) -> Any:
        return (f(x) ** 2).sum()

    x = torch.tensor([r.uniform(-1.5, 1.5) for _ in range(4)], dtype=torch.float64)
    batch = torch.stack([x, x.flip(0)])
    first = functional.jacobian(f, x).numpy()
    found = {"jacrev": jacrev(f)(x), "jacfwd": jacfwd(f)(x), "vmap(jacrev)": vmap(jacrev(f))(batch)[0],
             "vmap(jacfwd)": vmap(jacfwd(f))(batch)[0],
             "linearize": torch.stack([linearize(f, x)[1](e) for e in torch.eye(4, dtype=x.dtype)], 1)}  # fmt: skip
    for name, value in found.items():
        np.testing.assert_allclose(value.numpy(), first, rtol=1e-7, atol=1e-9, err_msg=name)
    second = functional.hessian(square, x).numpy()
    found = {f"{a.__name__}({b.__name__})": a(b(square))(x) for a in (jacrev, jacfwd) for b in (jacrev, jacfwd)}
    found["vmap(hessian)"] = vmap(hessian(square))(batch)[0]
    for name, value in found.items():
        np.testing.assert_allclose(value.numpy(), second, rtol=1e-6, atol=1e-8, err_msg=name)
