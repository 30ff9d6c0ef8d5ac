"""Inside a `dual_level` autograd records operations on dual tensors, as in torch."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch
from eager.autograd import forward_ad

V = torch.tensor([1.0, 1.0])


@pytest.fixture
def p() -> Any:
    return torch.nn.Parameter(torch.tensor([2.0, 3.0]))


def test_a_dual_times_a_parameter_requires_grad(p: Any) -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(torch.tensor([1.0, 2.0]), V)
        y = d * p
        assert not d.requires_grad and d.is_leaf
        assert y.requires_grad and y.grad_fn is not None and not y.is_leaf
        assert not (d * 2).requires_grad and not y.detach().requires_grad


def test_gradients_of_the_primal_and_of_the_tangent(p: Any) -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(torch.tensor([1.0, 2.0]), V)
        primal, tangent = forward_ad.unpack_dual(d * d * p)
        assert torch.autograd.grad(tangent.sum(), p)[0].tolist() == [2.0, 4.0]
        primal.sum().backward()
        assert p.grad.tolist() == [1.0, 4.0]


def test_a_parameter_made_dual(p: Any) -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(p, V)
        assert d.requires_grad
        primal, tangent = forward_ad.unpack_dual(d * d * p)
        assert torch.autograd.grad(tangent.sum(), p, retain_graph=True)[0].tolist() == [8.0, 12.0]
        assert torch.autograd.grad(primal.sum(), p)[0].tolist() == [12.0, 27.0]


def test_the_gradient_of_a_dual_tensor_is_refused_because_it_would_lose_the_tangent(p: Any) -> None:
    with forward_ad.dual_level():
        y = (forward_ad.make_dual(p, V) ** 3).sum()
        with pytest.raises(NotImplementedError, match="unpack_dual"):
            torch.autograd.grad(y, p)
