"""Integers that become floats under capture take the default dtype of the call, not of the capture."""
from __future__ import annotations

import eager as torch


def test_promoted_integers_follow_the_default_dtype():
    @torch.compile(backend="eager")
    def f(x):
        return x * 2.5, x / 2, x.float() * 2

    x = torch.arange(3)
    try:
        assert [t.dtype for t in f(x)] == [torch.float32] * 3
        torch.set_default_dtype(torch.float64)
        assert [t.dtype for t in f(x)] == [torch.float64, torch.float64, torch.float32]
    finally:
        torch.set_default_dtype(torch.float32)
