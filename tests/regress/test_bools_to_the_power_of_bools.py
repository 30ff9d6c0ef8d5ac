"""A bool tensor to the power of a Python bool is a bool tensor, as in torch; eager and compiled."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch


@pytest.mark.parametrize("run", [lambda f: f, torch.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize(("exponent", "wanted"), [(True, [True, False]), (False, [True, True])])
def test_the_power_is_a_bool_tensor(exponent: bool, wanted: list[bool], run: Any) -> None:
    y = run(lambda x: x**exponent)(torch.tensor([True, False]))
    assert y.dtype is torch.bool and y.tolist() == wanted


@pytest.mark.parametrize("name", ["mH", "H"])
def test_a_number_has_an_adjoint(name: str) -> None:
    assert getattr(torch.tensor(1 + 2j), name).item() == 1 - 2j
