"""An int that neither int64 nor uint64 holds is refused as an operand, as in torch, and never wraps in compiled code."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

CALLS: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda x, f, n: x + n, "add to floats": lambda x, f, n: f + n, "eq": lambda x, f, n: x == n,
    "clamp": lambda x, f, n: x.clamp(0, n), "clamp of floats": lambda x, f, n: f.clamp(0, n), "rsub": lambda x, f, n: n - x,
    "where": lambda x, f, n: torch.where(x > 0, x, n), "pow": lambda x, f, n: f**n, "in place": lambda x, f, n: x.clone().add_(n),
    "scalar": lambda x, f, n: torch.nn.functional.leaky_relu(f, n),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_ints_that_no_dtype_holds_are_refused(name: str, compiled: bool) -> None:
    for n in (2**64, 2**70, -(2**63) - 1):
        def call(x: Any, f: Any, n: int = n) -> Any:
            return CALLS[name](x, f, n)

        with pytest.raises(OverflowError, match="int too big to convert"):
            (torch.compile(call) if compiled else call)(torch.tensor([1, -2]), torch.tensor([1.5, 2.0]))


def test_the_largest_ints_are_taken() -> None:
    x = torch.tensor([1, -2])
    assert (x + -(2**63)).tolist() == torch.compile(lambda t: t + -(2**63))(x).tolist() == [1 - 2**63, 2**63 - 2]
    assert (torch.tensor([1.0]) + 2**63).tolist() == torch.compile(lambda t: t + 2**63)(torch.tensor([1.0])).tolist() == [2.0**63]
