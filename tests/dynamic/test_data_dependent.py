"""The graph breaks at a size or number that depends on data and states the reason. Results are eager's for any data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from tests.dynamic.support import assert_same

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: (x > 0).nonzero() * 2,
    "mask": lambda x: x[x > 0] * 2,
    "rows by mask": lambda x: x[x.sum(1) > 0] @ x.t(),
    "unique": lambda x: torch.unique((x * 2).long()) + 1,
    "item": lambda x: x * x.sum().item(),
    "item as a size": lambda x: x[: int((x[:, 0] > 0).sum().item())] * 2,
    "repeat_interleave": lambda x: torch.repeat_interleave(x, (x[:, 0] > 0).long() * 2, 0) + 1,
    "where": lambda x: torch.where(x > 0)[0] + 1,
    "masked_select": lambda x: (x.clone().masked_fill_(x > 0, 0.0), x.masked_select(x > 0)),
    "branch": lambda x: x + 1 if x.sum() > 0 else x - 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_eagers_for_any_data(name: str) -> None:
    fn = PROGRAMS[name]
    made = torch.compile(fn, backend="aot_eager")
    for n in (3, 4, 0, 1, 2, 5, 5, 7):
        for sign in (1, -1):
            x = torch.arange(3.0 * n).view(n, 3).cos() * sign
            assert_same(made(x), fn(x))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_break_states_its_cause_and_a_hint(name: str) -> None:
    found = dynamo.explain(PROGRAMS[name])(torch.arange(9.0).view(3, 3).cos())
    assert found.breaks and all(b.cause.hint for b in found.breaks)
    assert found.breaks[0].cause.id in ("data-dependent-value", "data-dependent-branch")
