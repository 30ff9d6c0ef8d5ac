"""Half precision: losses, statistics and gradients of activations compute in float32 and round once, at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F

EPSILON = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # half a unit in the last place of 1
SAMPLES = np.random.default_rng(0).standard_normal(2000)
LARGE: dict[str, Callable[[Any], Any]] = {  # functions whose intermediate sums exceed the range of float16
    "mean": lambda x: x.mean(), "mean of columns": lambda x: x.mean(0), "mean to a dtype": lambda x: x.mean(0, dtype=x.dtype),
    "var": lambda x: (x * SIGNS.to(x.dtype)).var(), "std": lambda x: (x * SIGNS.to(x.dtype)).std(0),
    "norm": lambda x: x.norm(), "norm 3": lambda x: torch.linalg.vector_norm(x, 3), "logsumexp": lambda x: x.logsumexp(0),
    "mse_loss": lambda x: F.mse_loss(x, x * 0), "l1_loss": lambda x: F.l1_loss(x, x * 0),
    "huber_loss": lambda x: F.huber_loss(x, x * 0), "bce": lambda x: F.binary_cross_entropy_with_logits(x, x * 0),
}  # fmt: skip
SIGNS = torch.tensor([1.0, -1.0]).repeat(300).unsqueeze(1)
FORMULAS = ["gelu", "silu", "mish", "softplus", "elu", "selu", "celu", "hardswish", "leaky_relu", "logsigmoid"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_results_are_finite_where_sums_are_not(name: str, compiled: bool) -> None:
    fn = LARGE[name]
    x = torch.full((600, 500), 60.0)
    found, exact = (torch.compile(fn) if compiled else fn)(x.half()), fn(x.double())
    assert found.dtype is torch.float16
    assert np.abs(found.double().numpy() / exact.numpy() - 1).max() <= 2 * EPSILON[torch.float16]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", list(EPSILON))
@pytest.mark.parametrize("name", FORMULAS)
def test_gradient_formulas_round_once(name: str, dtype: Any, compiled: bool) -> None:
    def gradient(to: Any, fn: Callable[[Any], Any]) -> np.ndarray:
        x = torch.from_numpy(SAMPLES).to(dtype).to(to).requires_grad_()
        fn(x).backward(torch.ones(len(SAMPLES), dtype=to))
        assert x.grad.dtype is to
        return x.grad.double().numpy()

    fn = getattr(F, name)
    found, exact = gradient(dtype, torch.compile(fn) if compiled else fn), gradient(torch.float64, fn)
    allowed = np.maximum(1.01 * EPSILON[dtype] * np.abs(exact), 3e-4 * EPSILON[dtype] / EPSILON[torch.float16])
    rounded_output = name in ("elu", "selu", "celu", "softplus")  # their formulas read the result, which is rounded as in torch
    assert (np.abs(found - exact) <= allowed * (3 if rounded_output else 1)).all()
