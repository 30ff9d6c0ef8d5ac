"""floor_divide has no derivative, as in torch; a division that rounds down has the derivative zero, and so have draws."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

ZERO: dict[str, Callable[[Any], Any]] = {
    "div, floor": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "div, floor, of a tensor": lambda x: torch.div(3.0, x, rounding_mode="floor"),
    "div_, trunc": lambda x: (x * 1).div_(2, rounding_mode="trunc"),
    "normal of a mean": lambda x: torch.normal(x, 1.0),
    "normal of a deviation": lambda x: torch.normal(0.0, x),
    "normal of both": lambda x: torch.normal(x, x),
    "bernoulli": lambda x: torch.bernoulli(x / 9),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ZERO)
def test_the_derivative_is_zero(name: str, compiled: bool) -> None:
    x = torch.tensor([1.5, 5.0], requires_grad=True)
    fn = torch.compile(ZERO[name]) if compiled else ZERO[name]
    fn(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_the_second_derivative_of_a_remainder_is_zero() -> None:
    x, y = torch.tensor(7.5, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x % y, y, create_graph=True)
    assert first.item() == -3.0
    assert torch.autograd.grad(first, (x, y)) == (torch.tensor(0.0), torch.tensor(0.0))


def test_a_draw_of_a_binomial_has_no_derivative() -> None:
    count = torch.tensor([4.0, 5.0], requires_grad=True)
    drawn = torch.binomial(count, torch.tensor([0.5, 0.5]))
    assert drawn.requires_grad
    with pytest.raises(NotImplementedError, match="not implemented"):
        drawn.sum().backward()
