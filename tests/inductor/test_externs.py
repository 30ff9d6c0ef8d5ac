"""Extern calls run the same kernel as eager: the native kernel if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager._tensor.tensor import Tensor
from eager.nn import functional as F
from eager.optable.table import OPS

CASES: dict[str, tuple[str, Callable[[Tensor], Any]]] = {
    "max_pool": ("max_pool", lambda x: F.max_pool2d(x, 6)),
    "max_pool, indices": ("max_pool", lambda x: F.max_pool2d(x, 6, return_indices=True)),
    "topk": ("topk", lambda x: torch.topk(x, 3)),
    "topk, values": ("topk", lambda x: torch.topk(x, 3)[0] + 1),
    "convolution": ("convolution", lambda x: F.conv3d(x[:, :, None], torch.ones(2, 3, 1, 3, 3))),
}


@pytest.mark.parametrize("name", CASES)
def test_an_extern_call_runs_the_native_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op, fn = CASES[name]
    torch.manual_seed(0)
    x = torch.randn(2, 3, 12, 12)
    want = fn(x)
    compiled = torch.compile(fn, fullgraph=True)
    compiled(x)

    def slow(*args: Any) -> None:
        raise AssertionError(f"the numpy kernel of {op} ran")

    monkeypatch.setattr(OPS[op], "kernel", slow)
    got = compiled(x)
    for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)
