"""`view.data` returned beside the view's base: compiled code returns it without history, and over the base's memory."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch


def of_row(x: Any) -> Any:
    y = x * 2
    return y, y[0].data


def of_row_of_data(x: Any) -> Any:
    y = x * 2
    return y, y[:2].data[0], y[0].data[1:]


def of_view_of_input(x: Any) -> Any:
    return x.t(), x[0].data


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", [of_row, of_row_of_data, of_view_of_input])
def test_data_requires_no_gradient_and_shares_memory(f: Callable[[Any], Any], backend: str) -> None:
    x = torch.arange(9.0).view(3, 3).requires_grad_()
    whole, *parts = torch.compile(f, backend=backend)(x)
    assert whole.requires_grad
    for part, expected in zip(parts, f(x)[1:], strict=True):
        assert not part.requires_grad and torch.equal(part, expected)
    for part in parts:
        before = whole.detach().clone()
        part.add_(1)
        assert not torch.equal(whole, before)
