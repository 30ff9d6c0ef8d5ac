"""Norms with eps = 0: a constant channel gives 0, as in torch, and only nn.functional's functions check their arguments."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name


def _batch_norm(x: Any, eps: float, mean: Any = None, var: Any = None) -> Any:
    return torch.batch_norm(x, None, None, mean, var, True, 0.5, eps, False)


def _instance_norm(x: Any, eps: float, mean: Any = None, var: Any = None) -> Any:
    return torch.instance_norm(x, None, None, mean, var, True, 0.5, eps, False)


CONSTANT: dict[str, Callable[[Any], Any]] = {
    "instance_norm": lambda x: F.instance_norm(x, eps=0),
    "InstanceNorm1d": lambda x: torch.nn.InstanceNorm1d(3, eps=0)(x),
    "top-level instance_norm": lambda x: _instance_norm(x, 0.0),
    "top-level batch_norm": lambda x: _batch_norm(x, 0.0),
    "native_batch_norm": lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CONSTANT)
def test_constant_channels_give_zeros(name: str, compiled: bool) -> None:
    x = torch.full((2, 3, 4), 5.0, requires_grad=True)
    y = (torch.compile(CONSTANT[name]) if compiled else CONSTANT[name])(x)
    assert y.count_nonzero() == 0
    y.sum().backward()
    assert x.grad.count_nonzero() == 0


@pytest.mark.parametrize("norm", [_batch_norm, _instance_norm])
def test_the_running_variance_of_constant_channels_goes_to_zero(norm: Callable[..., Any]) -> None:
    mean, var = torch.zeros(3), torch.ones(3)
    norm(torch.full((2, 3, 4), 5.0), 0.0, mean, var)
    assert mean.tolist() == [2.5] * 3
    assert var.tolist() == [0.5] * 3


def test_other_channels_are_normalised_as_ever() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    wide = x.double()
    for norm, dims in ((_batch_norm, (0, 2)), (_instance_norm, (2,))):
        expected = (wide - wide.mean(dims, keepdim=True)) / wide.var(dims, correction=0, keepdim=True).sqrt()
        assert torch.allclose(norm(x, 0.0).double(), expected, atol=1e-6)
        assert norm(x, -1e9).isnan().all()
    assert _batch_norm(torch.ones(1, 3), 1e-5).tolist() == [[0.0] * 3]
    assert _instance_norm(torch.ones(1, 3, 1), 1e-5).count_nonzero() == 0


@pytest.mark.parametrize("call", [
    lambda: F.batch_norm(torch.ones(2, 3), None, None, training=True, eps=0),
    lambda: F.batch_norm(torch.ones(1, 3), None, None, training=True),
    lambda: F.instance_norm(torch.ones(2, 3, 1)),
])  # fmt: skip
def test_the_functional_forms_check(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError):
        call()
