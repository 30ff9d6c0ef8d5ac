"""`torch.fx.wrap` returns the function that it marks, and refuses misuse with torch's errors."""

from __future__ import annotations

import pytest

import eager as torch
from fxir.ir.leaves import LEAVES


def helper(x: int) -> int:
    return x + 1


marked = torch.fx.wrap(helper)
torch.fx.wrap("len")


def test_marks_are_kept_and_functions_given_back() -> None:
    assert marked is helper
    assert {(__name__, "helper"), (__name__, "len")} <= LEAVES


def test_misuse_raises_as_in_torch() -> None:
    with pytest.raises(NotImplementedError, match="top level of a module"):
        torch.fx.wrap(helper)
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        torch.fx.wrap(3)
