"""`torch.Tensor(x)`, `torch.FloatTensor(x)` and `y.new(x)` are x over the same memory, with its history; eager and compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

MAKERS: dict[str, Callable[[Any], Any]] = {
    "Tensor": lambda x: torch.Tensor(x),
    "FloatTensor": lambda x: torch.FloatTensor(x),
    "new": lambda x: x.new(x),
}


@pytest.mark.parametrize("run", [lambda f: f, torch.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_tensor_of_a_tensor_has_its_gradient(name: str, run: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = run(lambda x: MAKERS[name](x) * 3)(x)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", MAKERS)
def test_a_tensor_of_a_tensor_shares_its_memory(name: str) -> None:
    x = torch.ones(2)
    y = MAKERS[name](x)
    assert y is not x and y.data_ptr() == x.data_ptr() and not y.requires_grad


def test_a_tensor_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got a torch\.DoubleTensor"):
        torch.ones(2).new(torch.ones(2, dtype=torch.float64))
