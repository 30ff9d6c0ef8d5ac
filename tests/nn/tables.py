"""Checks that hold for every op record: what the tests of the nn families generate their cases with."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager
from eager._native import TensorBase
from eager.base.spec import fake_like
from eager.optable.table import OPS, Op

TensorOp = Op


class Make:
    """Sample tensors in one dtype, from a seeded numpy stream."""

    def __init__(self, dtype: Any = eager.float64, seed: int = 0) -> None:
        self.d = dtype
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
        t = eager.tensor(self.rng.uniform(low, high, shape)).to(self.d)
        return t.requires_grad_(self.d.is_floating_point)

    def int(self, *shape: int, high: int = 10, low: int = 0) -> Any:
        return eager.tensor(self.rng.integers(low, high, shape))

    def bool(self, *shape: int) -> Any:
        return eager.tensor(self.rng.integers(0, 2, shape).astype(bool))

    def state(self) -> Any:
        return eager.tensor([int(self.rng.integers(1 << 40)), 16])

    def dtype(self, name: str) -> Any:
        return getattr(eager, name)


def flat(result: Any) -> tuple[Any, ...]:
    return (result,) if isinstance(result, TensorBase) else tuple(result)


def detached(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.detach() if isinstance(a, TensorBase) else a for a in args)


def check_against_decomposition(op: Op, args: tuple[Any, ...], tolerance: float) -> None:
    args = detached(args)
    assert op.decompose is not None
    for got, want in zip(flat(op(*args)), flat(op.decompose(*args)), strict=True):
        assert got.dtype is want.dtype and tuple(got.shape) == tuple(want.shape), (got.dtype, want.dtype, got.shape, want.shape)
        np.testing.assert_allclose(as_float(got), as_float(want), rtol=tolerance, atol=tolerance)


def as_float(t: Any) -> Any:
    return np.asarray(t.detach().to(eager.float64)._array)


def check_meta(op: Op, args: tuple[Any, ...]) -> None:
    args = detached(args)
    fakes = tuple(fake_like(a) if isinstance(a, TensorBase) else a for a in args)
    for got, want in zip(flat(op(*fakes)), flat(op(*args)), strict=True):
        assert got.is_fake
        assert (tuple(got.shape), got.dtype, got.stride()) == (tuple(want.shape), want.dtype, want.stride())


def check_gradient(fn: Callable[..., Any], args: tuple[Any, ...], eps: float = 1e-6, tolerance: float = 2e-5) -> None:
    """Reverse gradients of a random projection of `fn`'s differentiable outputs against central differences."""
    rng = np.random.default_rng(3)
    leaves = [a for a in args if isinstance(a, TensorBase) and a.requires_grad]
    outputs = [y for y in flat(fn(*args)) if y.requires_grad]
    cotangents = [eager.tensor(rng.uniform(-1, 1, tuple(y.shape))) for y in outputs]
    grads = eager.autograd.grad(outputs, leaves, cotangents, allow_unused=True)

    def value() -> float:
        with eager.no_grad():
            ys = [y for y in flat(fn(*args)) if y.dtype.is_floating_point][: len(outputs)]
            return sum(float((y * c).sum()) for y, c in zip(ys, cotangents, strict=True))

    for leaf, g in zip(leaves, grads, strict=True):
        expected = np.zeros(leaf.shape)
        data = leaf.detach()._array
        for i in np.ndindex(*leaf.shape):
            before = data[i]
            data[i] = before + eps
            high = value()
            data[i] = before - eps
            low = value()
            data[i] = before
            expected[i] = (high - low) / (2 * eps)
        got = np.zeros(leaf.shape) if g is None else as_float(g)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def second_order(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a fixed projection of `fn`, as a function that is differentiable again."""

    def gradient(*args: Any) -> tuple[Any, ...]:
        leaves = [a for a in args if isinstance(a, TensorBase) and a.requires_grad]
        with eager.enable_grad():
            outputs = [y for y in flat(fn(*args)) if y.requires_grad]
            total = sum((y * y).sum() if y.ndim else y * y for y in outputs)
            grads = eager.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradient


__all__ = ["OPS", "Make", "TensorBase", "TensorOp", "as_float", "check_against_decomposition", "check_gradient",
           "check_meta", "flat", "second_order"]  # fmt: skip
