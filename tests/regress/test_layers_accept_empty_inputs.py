"""Layers accept inputs without elements, such as an empty batch, and give results of torch's shape; eager and compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager import nn
from eager.nn import functional as F


def no(*shape: int) -> Any:
    return torch.zeros(shape, requires_grad=True)


def indices(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int64)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "attention, no items": (lambda x: nn.MultiheadAttention(4, 2)(x, x, x)[0], (no(3, 0, 4),), (3, 0, 4)),
    "attention, no steps": (lambda x: nn.MultiheadAttention(4, 2)(x, x, x, need_weights=False)[0], (no(0, 2, 4),), (0, 2, 4)),
    "attention, padding": (lambda x, p: nn.MultiheadAttention(4, 2)(x, x, x, p)[0], (no(3, 0, 4), indices(0, 3) > 0), (3, 0, 4)),
    "attention, mask of heads": (lambda x, m: nn.MultiheadAttention(4, 2)(x, x, x, attn_mask=m)[0],
                                 (no(3, 0, 4), indices(0, 3, 3) > 0), (3, 0, 4)),
    "encoder": (lambda x: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)(x), (no(0, 3, 4),), (0, 3, 4)),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), (no(0, 1, 3, 4), no(0, 2, 2, 2)), (0, 1, 2, 2)),
    "grid_sample, no channels": (lambda x, g: F.grid_sample(x, g, align_corners=False), (no(2, 0, 3, 4), no(2, 2, 2, 2)), (2, 0, 2, 2)),
    "grid_sample, cubic": (lambda x, g: F.grid_sample(x, g, "bicubic"), (no(0, 1, 3, 4), no(0, 2, 2, 2)), (0, 1, 2, 2)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (no(0, 3, 5, 5),), (0, 3, 2, 2)),
    "max_unpool2d": (lambda x, i: F.max_unpool2d(x, i, 2), (no(0, 1, 2, 2), indices(0, 1, 2, 2)), (0, 1, 4, 4)),
    "linear, no features": (F.linear, (no(2, 0), no(3, 0), no(3)), (2, 3)),
    "conv2d, no channels": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (no(2, 0, 4, 4), no(2, 0, 3, 3), no(2)), (2, 2, 4, 4)),
    "cross_entropy, no classes": (F.cross_entropy, (no(0, 0, 0), indices(0, 0)), ()),
}  # fmt: skip


@pytest.mark.parametrize("run", [lambda f: f, torch.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_the_result_has_a_shape_and_gradients(name: str, run: Any) -> None:
    f, args, shape = CASES[name]
    y = run(f)(*args)
    assert tuple(y.shape) == shape
    gradients = torch.autograd.grad(y.sum(), [x for x in args if x.requires_grad], allow_unused=True)
    assert [g.shape for g in gradients] == [x.shape for x in args if x.requires_grad]
