"""Dropout functions. The mask is drawn from the default generator of the input's device.

All keep the input's shape and raise ValueError for p outside [0, 1].
"""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import TensorSpec, contiguous_strides, elementwise_strides, preserve_strides
from eager.optable.shape import laid_out
from eager.optable.table import OPS
from eager.random import state_for

Tensor = Any


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _keep(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Bool mask of `shape`, True with probability 1 - p, in the memory layout of `like`."""
    state = state_for(math.prod(shape), None, like.device)
    if like.is_contiguous():
        return OPS["philox_uniform"](state, shape, dtypes.float32) >= p
    strides = preserve_strides(like)
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d]))
    drawn = OPS["philox_uniform"](state, tuple(shape[d] for d in order), dtypes.float32) >= p
    return OPS["permute"](drawn, tuple(order.index(d) for d in range(len(shape))))


def _products(input: Tensor, shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Strides of the result of `count` elementwise operations between noise of `shape` and the input."""
    full = tuple(input.shape)
    x: Any = input
    noise = TensorSpec(shape, input.dtype, preserve_strides(input) if shape == full else contiguous_strides(shape))
    for _ in range(count):
        x = TensorSpec(full, input.dtype, elementwise_strides(full, [x, noise]))
    return tuple(x.stride())


def _drop(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        result = input * 0.0
    else:
        if input.dtype.is_integral:
            raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(input.dtype)}")
        result = OPS["where"](_keep(input, shape, p), input * (1.0 / (1.0 - p)), 0)
        if any(n == 1 for n in input.shape):
            result = laid_out(result, _products(input, shape, 1))
    return OPS["copy_"](input, result) if inplace else result


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p); the identity outside training.

    Raises: ValueError for p outside [0, 1].
    """
    return _drop(input, tuple(input.shape), p, training, inplace)


def _per_channel(input: Tensor, batched: bool) -> tuple[int, ...]:
    lead = 2 if batched else 1
    return tuple(input.shape[:lead]) + (1,) * (input.ndim - lead)


def _check_channels(input: Tensor) -> None:
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels. input: (n, c, l) or (c, l). Raises: RuntimeError for other ranks."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists "
                           "to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an "
                           "optional batch dimension (i.e. 2D or 3D inputs).")  # fmt: skip
    return _drop(input, _per_channel(input, input.ndim == 3), p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels. input: (n, c, h, w); torch treats (n, c, l) as batched too."""
    _check_channels(input)
    return _drop(input, _per_channel(input, True), p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels. input: (n, c, d, h, w) or (c, d, h, w)."""
    _check_channels(input)
    return _drop(input, _per_channel(input, input.ndim != 4), p, training, inplace)


_ALPHA_PRIME = -1.7580993408473766  # SELU's limit for -inf: -scale * alpha


def _alpha_drop(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        result = input * 0.0
    else:
        a = 1.0 / math.sqrt((_ALPHA_PRIME**2 * p + 1.0) * (1.0 - p))
        b = -a * _ALPHA_PRIME * p
        result = OPS["where"](_keep(input, shape, p), input, _ALPHA_PRIME) * a + b
        if any(n == 1 for n in input.shape):
            result = laid_out(result, _products(input, shape, 2))
    return OPS["copy_"](input, result) if inplace else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of SELU activations. Source: Klambauer et al., 2017."""
    return _alpha_drop(input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. input: (n, c, *)."""
    return _alpha_drop(input, _per_channel(input, True), p, training, inplace)
