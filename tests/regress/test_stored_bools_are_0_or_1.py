"""Bools that compiled code stores are 0 or 1 in memory: a sum of bools stored the count, which numpy shows as True and `&` does not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch

A, B = torch.tensor([[True, True, False], [True, True, True]]), torch.tensor([[True, False, False], [True, True, True]])
I = torch.tensor([[1, 1, 0], [0, 0, 0]])  # noqa: E741 - an index
CALLS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, b: torch.sum(a, 1, dtype=torch.bool), "sum all": lambda a, b: torch.sum(a, dtype=torch.bool),
    "sum of floats": lambda a, b: torch.sum(a.float() * 3, 1, dtype=torch.bool),
    "prod": lambda a, b: (a.int() * 2).prod(1, dtype=torch.bool),
    "+": lambda a, b: a + b, "*": lambda a, b: a * b, "+=": lambda a, b: a.clone().add_(b), "max": lambda a, b: torch.maximum(a, b),
    "to": lambda a, b: (a.int() * 7).to(torch.bool), "to of halves": lambda a, b: (a.half() * 0.5).bool(), "amax": lambda a, b: a.amax(1),
    "scatter_add": lambda a, b: a.scatter_add(1, I, b), "index_add": lambda a, b: a.index_add(1, torch.tensor([0, 0, 1]), b),
    "index_put": lambda a, b: a.index_put((torch.tensor([0, 0]),), b, accumulate=True), "where": lambda a, b: torch.where(a, b, a),
    "scatter_reduce": lambda a, b: a.scatter_reduce(1, I, b, "sum"), "copy_": lambda a, b: a.clone().copy_(b.int() * 5),
    "cumsum": lambda a, b: torch.cumsum(a, 1, dtype=torch.bool), "masked_fill": lambda a, b: a.masked_fill(b, 3),
    "pow": lambda a, b: a ** b,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_bools_are_0_or_1(name: str) -> None:
    try:
        expected = CALLS[name](A, B)
    except (RuntimeError, NotImplementedError):
        pytest.skip("not defined on bools")
    found = dynamo.compile(CALLS[name])(A, B)
    assert found.dtype is torch.bool is expected.dtype
    assert _numbers(found.tolist()) == _numbers(expected.tolist())
    assert _numbers(found.tolist()) == found.view(torch.uint8).tolist() == expected.view(torch.uint8).tolist()


def _numbers(x: Any) -> Any:
    return [*map(_numbers, x)] if isinstance(x, list) else int(x)
