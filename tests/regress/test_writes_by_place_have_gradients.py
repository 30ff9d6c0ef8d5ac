"""In-place writes through views that name places in memory (fill_diagonal_, as_strided): the arriving gradient has other
strides, and the places were looked up in it. Expanded gradients failed; transposed gradients gave gradients of other elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch

Program = Callable[[Any], Any]
DIAGONAL = torch.eye(3, 4) > 0
SECOND = torch.arange(12).reshape(3, 4) % 5 == 1  # of the elements, every fifth from the first on


def _written(x: Any) -> Any:
    return x * 1


def _by_place(y: Any) -> Any:
    return y.as_strided((3,), (5,), y.storage_offset() + 1).mul_(3.0)


# Each write, and an equal expression without a write.
WRITES: dict[str, tuple[Program, Program]] = {
    "fill_diagonal": (lambda y: y.fill_diagonal_(2.0), lambda y: torch.where(DIAGONAL, 2.0, y)),
    "as_strided": (lambda y: [_by_place(y), y][1], lambda y: torch.where(SECOND, y * 3.0, y)),
    "through_views": (lambda y: [y.view(3, 1, 4).squeeze(1).fill_diagonal_(2.0), y][1], lambda y: torch.where(DIAGONAL, 2.0, y)),
    "of_a_transposed": (lambda y: [y.t().as_strided((3,), (5,), 1).mul_(3.0), y][1], lambda y: torch.where(SECOND, y * 3.0, y)),
    "twice": (
        lambda y: [y.fill_diagonal_(2.0), _by_place(y), y][2],
        lambda y: torch.where(SECOND, 3.0 * y, torch.where(DIAGONAL, 2.0, y)),
    ),
}
WEIGHTS = torch.arange(12.0).sin()
LOSSES: dict[str, Program] = {
    "expanded": lambda y: y.sum(),
    "transposed": lambda y: (y.t() * WEIGHTS.reshape(4, 3)).sum(),
    "dense": lambda y: (y * y * WEIGHTS.reshape(3, 4)).sum(),
    "of_columns": lambda y: y[:, 1].sum() + y.expand(2, 3, 4).mean(),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", WRITES)
def test_the_gradient_is_of_the_elements_written(name: str, loss: str, compiled: bool) -> None:
    found = []
    for change in WRITES[name]:
        x = torch.arange(12.0).reshape(3, 4).requires_grad_()
        run = dynamo.compile(lambda x, change=change: LOSSES[loss](change(_written(x))), backend="aot_eager") if compiled else None
        y = run(x) if run is not None else LOSSES[loss](change(_written(x)))
        y.backward()
        found.append((y.detach(), x.grad))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_a_base_that_does_not_begin_its_memory() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.zeros(4, 3)[1:].detach()
    y.as_strided((2, 3), (3, 1), 3).copy_(x * 3)  # its first two rows
    (y.t() * torch.arange(9.0).reshape(3, 3)).sum().backward()
    torch.testing.assert_close(x.grad, 3 * torch.arange(9.0).reshape(3, 3).t()[:2])


def test_second_derivatives() -> None:
    def gradient(change: Program) -> Any:
        x = torch.arange(12.0).reshape(3, 4).div(7).requires_grad_()
        (g,) = torch.autograd.grad(LOSSES["transposed"](change(_written(x))) ** 3, x, create_graph=True)
        return torch.autograd.grad((g * x).sum(), x)[0]

    for write, without in WRITES.values():
        torch.testing.assert_close(gradient(write), gradient(without))
