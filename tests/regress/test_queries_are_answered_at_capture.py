"""Capture evaluates the queries of models about devices, modes and the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch


@pytest.mark.parametrize("query", [
    lambda x: torch.jit.is_scripting(), lambda x: torch.jit.is_tracing(), lambda x: torch.cuda.is_available(),
    lambda x: torch.cuda.device_count(), lambda x: torch.distributed.is_available(), lambda x: torch.distributed.is_initialized(),
    lambda x: torch.backends.mps.is_available(), lambda x: torch.result_type(x, 1.5), lambda x: torch._check(x.shape[0] > 1),
])  # fmt: skip
def test_queries_do_not_break_the_graph(query: Callable[[torch.Tensor], Any]) -> None:
    def fn(x: torch.Tensor) -> Any:
        return x + 1, query(x)

    x = torch.ones(2, dtype=torch.int32)
    (y, answer), (expected, known) = torch.compile(fn, backend="eager", fullgraph=True)(x), fn(x)
    assert torch.equal(y, expected)
    assert answer == known
