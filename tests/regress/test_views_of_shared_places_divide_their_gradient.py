"""`as_strided` of a tensor whose elements share places: they divide the gradient of a place, so that their base receives it once."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

# gradients of (view * [1, 2, ..]).sum(), as torch 2.13 gives them
CASES: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "unfold": (lambda x: x.unfold(0, 2, 1).as_strided((2,), (2,), 1), [0, 1, 0, 2]),
    "expand": (lambda x: x.expand(3, 4).as_strided((4,), (1,), 0), [1, 2, 3, 4]),
    "both overlap": (lambda x: x.expand(3, 4).as_strided((2, 2), (1, 1), 1), [0, 1, 5, 4]),
}


@pytest.mark.parametrize("run", [lambda f: f, torch.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_each_place_passes_its_gradient_once(name: str, run: Any) -> None:
    view, wanted = CASES[name]
    x = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    y = run(lambda x: view(x * 1.0))(x)
    (y * torch.arange(1.0, 1 + y.numel()).reshape(y.shape)).sum().backward()
    assert x.grad.tolist() == wanted
