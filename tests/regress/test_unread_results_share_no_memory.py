"""Unread results of an extern call have separate memory: they shared memory with the results that are read, and were written later."""
from __future__ import annotations

import pytest

import eager as torch

X = [[2.0, 0.0, 1.0, 3.0], [2.0, 1.0, 3.0, 0.0]]
CALLS = {
    "sort, indices": lambda x: torch.sort(x, 1)[1] * 2,
    "sort, values": lambda x: torch.sort(x, 1)[0] * 2,
    "topk, indices": lambda x: torch.topk(x, 2, 1)[1] + 1,
    "kthvalue, indices": lambda x: torch.kthvalue(x, 2, 1)[1] + 1,
    "gathered by argsort": lambda x: torch.gather(x, 1, torch.argsort(x, 1)) + 1,
    "svd, values": lambda x: torch.linalg.svd(x, full_matrices=False)[1] * 2,
    "qr, r": lambda x: torch.linalg.qr(x)[1] * 2,
}


@pytest.mark.parametrize("name", CALLS)
def test_one_result_of_several(name: str) -> None:
    x = torch.tensor(X)
    for given in (x, x + 1):
        assert torch.allclose(torch.compile(lambda t: CALLS[name](t))(given), CALLS[name](given))
