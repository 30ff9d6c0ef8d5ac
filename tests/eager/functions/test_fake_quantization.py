"""Fake quantisation against values of torch 2.13, and its straight-through gradients."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch

X = [-3.0, -1.26, -0.3, 0.04, 0.05, 0.15, 1.2, 5.0, float("nan"), float("inf")]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_tensor_in_steps(compiled: bool) -> None:
    fn = torch.fake_quantize_per_tensor_affine
    fn = torch.compile(fn, fullgraph=True) if compiled else fn
    x = torch.tensor(X, requires_grad=True)
    y = fn(x, 0.1, 0, -10, 10)
    assert torch.allclose(y, torch.tensor([-1.0, -1.0, -0.3, 0.0, 0.0, 0.2, 1.0, 1.0, -1.0, 1.0]))
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    shifted = fn(x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), -10, 10)
    assert torch.allclose(shifted, torch.tensor([-1.3, -1.3, -0.3, 0.0, 0.0, 0.2, 0.7, 0.7, -1.3, 0.7]))


def test_channels_with_separate_steps() -> None:
    w = torch.tensor([[1.0, 2.0, 3.0], [-0.4, 0.5, 0.6]], requires_grad=True)
    y = torch.fake_quantize_per_channel_affine(w, torch.tensor([0.1, 0.2, 0.5]), torch.zeros(3, dtype=torch.int32), 1, -8, 7)
    assert torch.allclose(y, torch.tensor([[0.7, 1.4, 3.0], [-0.4, 0.4, 0.5]]))
    (g,) = torch.autograd.grad(y.sum(), w)
    assert g.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert torch.fake_quantize_per_tensor_affine(w.to(dtype), 0.5, 0, -8, 7).dtype is dtype


@pytest.mark.parametrize(("error", "text", "args"), [
    (RuntimeError, "quant_min", (1.0, 0, 10, -10)), (RuntimeError, "zero_point", (1.0, 20, -10, 10)),
    (TypeError, "received an invalid combination of arguments", (0.1, 0.5, -10, 10)),
])  # fmt: skip
def test_limits_that_do_not_fit(error: type[Exception], text: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(error, match=text):
        torch.fake_quantize_per_tensor_affine(torch.ones(2), *args)


def test_channels_that_do_not_fit() -> None:
    w, scale = torch.ones(2, 3), torch.ones(3)
    for error, text, zero_point, axis in ((RuntimeError, "found Long", torch.zeros(3, dtype=torch.int64), 1),
                                          (RuntimeError, "same dimensions", torch.zeros(2), 1),
                                          (IndexError, "out of range", torch.zeros(3), 5),
                                          (RuntimeError, "not consistent", torch.zeros(3), 0)):  # fmt: skip
        with pytest.raises(error, match=text):
            torch.fake_quantize_per_channel_affine(w, scale, zero_point, axis, -8, 7)
    with pytest.raises(NotImplementedError, match="Int"):
        torch.fake_quantize_per_tensor_affine(torch.ones(2, dtype=torch.int32), 1.0, 0, -8, 7)
