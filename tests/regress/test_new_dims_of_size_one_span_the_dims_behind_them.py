"""expand gave a new leading dim of size 1 the stride 0, so that `w[None] = w` was refused as a write to overlapping memory.

torch's stride of such a dim is the size times the stride of the next dim.
"""

from __future__ import annotations

import pytest

import eager as torch
from eager.base.spec import spec_of
from eager.optable.table import OPS

STRIDES = [((2,), (1, 1, 2), (2, 2, 1)), ((3, 1), (1, 3, 4), (3, 1, 0)), ((1,), (1, 4), (0, 0)), ((), (1, 1), (0, 0)),
           ((1,), (1, 0), (0, 0)), ((1, 3), (1, 2, 3), (0, 0, 1)), ((1,), (1, 1), (1, 1)),
           ((4, 2), (2, 1, 4, 2), (0, 8, 2, 1))]  # fmt: skip


@pytest.mark.parametrize("shape, size, strides", STRIDES)
def test_strides_of_expanded_tensors(shape, size, strides) -> None:
    x = torch.ones(shape)
    assert x.expand(size).stride() == torch.broadcast_to(x, size).stride() == strides
    assert OPS["expand"].view(spec_of(x), size)[1] == strides
    assert torch.compile(lambda t: t.expand(size))(x).stride() == strides


def test_a_tensor_is_assigned_to_a_view_of_its_whole() -> None:
    w = torch.ones(1, 2)
    w[None] = w
    assert w.tolist() == [[1.0, 1.0]]
