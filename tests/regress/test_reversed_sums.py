"""Sums over reversed dims. GCC 12 reads wrong elements in short unrolled loops of this kind (see `inductor.cpp.loops`)."""

from __future__ import annotations

import pytest

import eager as torch

_SUMS = {
    "all": lambda x: x.flip(2).sum(),
    "two dims": lambda x: x.flip(2).sum((1, 2)),
    "squares in float64": lambda x: (x * x).flip(1, 2).double().sum((1, 2)),
}


@pytest.mark.parametrize("shape", [(1, 4, 2), (3, 40, 2), (3, 16, 3), (2, 8, 4)], ids=str)
@pytest.mark.parametrize("name", _SUMS)
def test_sums_over_reversed_dims(name: str, shape: tuple[int, int, int]) -> None:
    x = torch.arange(float(shape[0] * shape[1] * shape[2])).view(shape)
    torch.testing.assert_close(torch.compile(_SUMS[name], fullgraph=True)(x), _SUMS[name](x))
