"""Second derivatives of piecewise linear functions are zeros, as in torch. They are not None and raise no error."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager
from eager.nn import functional as F  # noqa: N812

_IMAGE: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu, "leaky_relu": F.leaky_relu, "max_pool2d": lambda x: F.max_pool2d(x, 2), "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2), "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), "replication": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "nll_loss": lambda x: F.nll_loss(x, eager.tensor([[[0, 1], [1, 0]] * 2] * 1).repeat(1, 1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", _IMAGE)
def test_gradient_penalty_reaches_every_parameter(name: str) -> None:
    """The gradient penalty has a gradient of zeros for the input and the bias of the layer before the function."""
    eager.manual_seed(0)
    x = eager.randn(1, 2, 6, 6, requires_grad=True)
    weight, bias = eager.randn(2, 2, 3, 3, requires_grad=True), eager.randn(2, requires_grad=True)
    slope = eager.autograd.grad(_IMAGE[name](F.conv2d(x, weight, bias)).sum(), x, create_graph=True)[0]
    gx, gw, gb = eager.autograd.grad(slope.square().sum(), (x, weight, bias))  # would raise for an input that the graph does not contain
    assert not gx.any() and not gb.any() and gw.any()


def test_a_gradient_without_create_graph_has_no_history() -> None:
    x = eager.tensor([-1.0, 2.0], requires_grad=True)
    grad = eager.autograd.grad(F.relu(x).sum(), x)[0]
    assert grad.grad_fn is None and grad.tolist() == [0.0, 1.0]


def test_powers_of_zero_and_written_places_have_gradients() -> None:
    a = eager.ones(2, 3, 3, requires_grad=True)
    assert not eager.autograd.grad(eager.linalg.matrix_power(a, 0).sum(), a)[0].any()
    value = eager.tensor(2.0, requires_grad=True)
    y = eager.zeros(6).index_fill(0, eager.tensor([1, 1, 2]), value)
    assert eager.autograd.grad((y * eager.arange(1.0, 7.0)).sum(), value)[0].item() == 5.0  # a repeated index counts once


def test_mean_and_rstd_are_differentiable_in_group_norm_and_not_in_layer_norm() -> None:
    x = eager.randn(2, 6, 2, dtype=eager.float64, requires_grad=True)
    assert eager.autograd.gradcheck(lambda t: eager.native_group_norm(t, None, None, 2, 6, 2, 3, 1e-5), (x,))
    assert [r.requires_grad for r in eager.native_layer_norm(x, [2], None, None, 1e-5)] == [True, False, False]


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t[2:], lambda t: t.reshape(2, 6).t(), lambda t: t.reshape(3, 4)[:, ::2]])
def test_as_strided_scatter_writes_and_differentiates_by_position_in_memory(view: Callable[[Any], Any]) -> None:
    """Values and gradients equal the values and gradients of a write through as_strided into the memory of the view."""
    base = eager.arange(12, dtype=eager.float64).requires_grad_()
    src = eager.full((2, 2), -1.0, dtype=eager.float64, requires_grad=True)
    first = view(base).storage_offset() + 1
    y = view(base).as_strided_scatter(src, (2, 2), (3, 1), first)
    memory = base.detach().clone()
    memory.as_strided((2, 2), (3, 1), first).copy_(src.detach())
    assert y.tolist() == view(memory).tolist()
    weights = eager.arange(1.0, y.numel() + 1, dtype=eager.float64).reshape(y.shape)
    gbase, gsrc = eager.autograd.grad((y * weights).sum(), (base, src))
    spread = eager.zeros(12, dtype=eager.float64)
    view(spread).copy_(weights)
    assert gsrc.tolist() == spread.as_strided((2, 2), (3, 1), first).tolist()
    spread.as_strided((2, 2), (3, 1), first).fill_(0)
    assert gbase.tolist() == spread.tolist()
