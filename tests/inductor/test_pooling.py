"""Compiled pooling against eager: values, positions and gradients over random windows, with NaNs and infinities."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import pytest

import eager as torch
from eager.nn import functional as F


class Case(NamedTuple):
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool
    last: bool
    dtype: Any


DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def _case(seed: int) -> Case:
    pick = random.Random(seed)
    dims = pick.choice((1, 2, 2))
    kernel = tuple(pick.choice((1, 2, 3, 4)) for _ in range(dims))
    dilation = tuple(pick.choice((1, 1, 2)) for _ in range(dims))
    size = tuple(d * (k - 1) + pick.randint(1, 9) for k, d in zip(kernel, dilation, strict=True))
    return Case(size, kernel, tuple(pick.choice((1, 2, 3)) for _ in range(dims)), tuple(pick.randint(0, k // 2) for k in kernel), dilation,
                pick.random() < 0.4, pick.random() < 0.5, pick.choice(DTYPES))  # fmt: skip


CASES = [_case(seed) for seed in range(24)]


def _input(c: Case) -> Any:
    torch.manual_seed(len(str(c)))
    x = torch.randn(2, 5, *c.size, dtype=c.dtype)
    return x.contiguous(memory_format=torch.channels_last) if c.last and len(c.size) == 2 else x


def _equal(found: Any, expected: Any) -> None:
    assert found.stride() == expected.stride() and found.dtype is expected.dtype
    assert torch.allclose(found, expected, equal_nan=True)


@pytest.mark.parametrize("c", CASES, ids=str)
def test_largest_elements_and_their_positions_agree_with_eager(c: Case) -> None:
    pool = F.max_pool1d if len(c.size) == 1 else F.max_pool2d

    def f(x: Any) -> Any:
        return pool(x * 1, c.kernel, c.stride, c.padding, c.dilation, c.ceil, return_indices=True)

    x = _input(c)
    x.reshape(-1)[:: max(x.numel() // 5, 1)] = math.nan
    lowest = torch.full_like(x, -math.inf)
    call = torch.compile(f, dynamic=False)
    for given in (_input(c), x, lowest):
        for found, expected in zip(call(given), f(given), strict=True):
            _equal(found, expected)


@pytest.mark.parametrize("c", CASES[:12], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_means_agree_with_eager(c: Case, padded: bool) -> None:
    pool = F.avg_pool1d if len(c.size) == 1 else F.avg_pool2d

    def f(x: Any) -> Any:
        return pool(x * 1, c.kernel, c.stride, c.padding, c.ceil, padded)

    x = _input(c)
    _equal(torch.compile(f, dynamic=False)(x), f(x))


@pytest.mark.parametrize("c", CASES[12:18], ids=str)
def test_gradients_agree_with_eager(c: Case) -> None:
    pool = F.max_pool1d if len(c.size) == 1 else F.max_pool2d

    def f(x: Any) -> Any:
        return pool(x * 2, c.kernel, c.stride, c.padding, c.dilation, c.ceil).sin().sum()

    x = _input(c).requires_grad_()
    (found,), (expected,) = torch.autograd.grad(torch.compile(f, dynamic=False)(x), x), torch.autograd.grad(f(x), x)
    _equal(found, expected)
