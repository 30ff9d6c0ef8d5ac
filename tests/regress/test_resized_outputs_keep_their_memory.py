"""`out=` of another shape is resized over its own memory if that suffices, so that all views of the memory see the result."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

pytestmark = pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
ONES = torch.ones(3)
WRITES: dict[str, Callable[[Any], Any]] = {
    "add": lambda o: torch.add(ONES, 1, out=o), "exp": lambda o: torch.exp(ONES, out=o),
    "sum": lambda o: torch.sum(torch.ones(3, 3), 1, out=o),
    "amax": lambda o: torch.amax(torch.ones(3, 3), 1, out=o), "cat": lambda o: torch.cat([ONES, ONES[:1]], out=o),
    "matmul": lambda o: torch.matmul(torch.ones(2, 2), torch.ones(2, 2), out=o), "cumsum": lambda o: torch.cumsum(ONES, 0, out=o),
    "index_select": lambda o: torch.index_select(ONES, 0, torch.tensor([0, 1, 2]), out=o), "arange": lambda o: torch.arange(3, out=o),
    "softmax": lambda o: torch.softmax(ONES, 0, out=o), "log_softmax": lambda o: torch.log_softmax(ONES, 0, out=o),
    "logspace": lambda o: torch.logspace(0, 1, 3, out=o),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("length", [0, 2])
def test_an_output_is_resized_over_its_own_memory(name: str, start: int, length: int) -> None:
    whole = torch.full((6,), -1.0)
    part = whole[start : start + length]
    fresh = torch.empty(0)
    WRITES[name](fresh)
    assert WRITES[name](part) is part and torch.equal(part, fresh)
    end = start + part.numel()
    assert torch.equal(whole[start:end], fresh.flatten()) and (whole[:start] == -1).all() and (whole[end:] == -1).all()


def test_an_output_that_the_memory_does_not_suffice_for_gets_its_own() -> None:
    whole = torch.zeros(3)
    part = whole[1:]
    torch.add(ONES, 1, out=part)
    assert part.tolist() == [2.0, 2.0, 2.0] and whole.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("make", [lambda o: torch.arange(3, out=o), lambda o: torch.linspace(0, 2, 3, out=o)])
def test_a_range_keeps_the_shape_of_an_output_with_as_many_elements(make: Any) -> None:
    out = torch.zeros(1, 3)
    assert make(out).tolist() == [[0.0, 1.0, 2.0]] and out.shape == (1, 3)
