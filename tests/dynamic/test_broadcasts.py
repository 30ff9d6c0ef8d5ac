"""A computed size that may equal 1 broadcasts at run time. The compiler must prove that it is not 1, not assume it."""

from __future__ import annotations

import pytest

import eager as torch
import eager.nn.functional as F

WEIGHT = torch.linspace(-1, 1, 75).reshape(3, 1, 5, 5)


def squeeze_and_excite(x):
    y = F.conv2d(x, WEIGHT, None, 2, 0, 1, 3)  # sizes (n - 3) // 2, known only to be at least 1
    return F.adaptive_avg_pool2d(y, 1) * y


def rest_of_a_slice(x):
    return x[3:] * x[:1] + x[3:]


def by_halves(x):
    half = x.shape[0] // 2
    return x[:half] * x[half : half + 1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(("f", "shape"), [(squeeze_and_excite, (2, 3, "n", "n")), (rest_of_a_slice, ("n", 4)), (by_halves, ("n", 4))])
def test_a_size_that_may_be_one(f, shape, backend):
    compiled = torch.compile(f, dynamic=True, backend=backend)
    for n in (16, 9, 7, 5, 6, 21, 5):
        x = torch.linspace(0, 1, 2 * 3 * n * n)[: n * 4] if len(shape) == 2 else torch.linspace(0, 1, 2 * 3 * n * n)
        x = x.reshape([n if s == "n" else s for s in shape])
        torch.testing.assert_close(compiled(x), f(x))
