"""Special functions over large tensors need memory in proportion to the result alone."""

from __future__ import annotations

import tracemalloc

import pytest

import eager as torch
from eager.optable import special_kernels

NAMES = ("airy_ai", "bessel_j0", "bessel_j1", "modified_bessel_k0", "scaled_modified_bessel_k1")


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_of_integration_works_on_blocks(name: str) -> None:
    n = 4 * special_kernels._BLOCK + 3
    x = torch.linspace(0.1, 20, 2 * n, dtype=torch.float64)[::2]
    fn = getattr(torch.special, name)
    parts = torch.cat([fn(x[i : i + 100]) for i in range(0, n, 1000)])
    tracemalloc.start()
    y = fn(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert torch.equal(torch.cat([y[i : i + 100] for i in range(0, n, 1000)]), parts)
    assert peak < 80e6
