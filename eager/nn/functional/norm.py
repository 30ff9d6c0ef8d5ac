"""Normalisation as functions. Each keeps the shape and dtype of its input."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import is_channels_last, size_at
from eager.base.symint import times_ratio
from eager.optable.declaration import cast_to, composition
from eager.optable.gradient_strides import with_gradient
from eager.optable.nn import accumulator, batch_norm_strides, check_parameter_dtypes, require_floating
from eager.optable.precision import FLOAT32_ON_CUDA
from eager.optable.shape import in_suggested_format, laid_out
from eager.optable.table import OPS
from eager.public.record import public

Tensor = Any
_EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@public(autocast=FLOAT32_ON_CUDA)
def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalise the trailing dims to zero mean and unit variance, then apply weight and bias.

    input: (*, *normalized_shape); weight, bias: normalized_shape or None. Raises: RuntimeError for other shapes.
    """
    return OPS["native_layer_norm"](input, tuple(normalized_shape), weight, bias, eps)[0]


@public(autocast=FLOAT32_ON_CUDA)
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x divided by its root mean square over the trailing dims, times weight. eps: the dtype's epsilon by default.

    input: (*, *normalized_shape); weight: normalized_shape or None. Raises: ValueError for too few dims.
    """
    if len(normalized_shape) > input.ndim:
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got {input.ndim}")
    if input.dtype.is_integral:
        raise dtypes.no_kernel("rms_norm", input.dtype)
    if eps is None:
        eps = _EPS[accumulator(input.dtype).to_real().name]
    return OPS["rms_norm"](input, tuple(normalized_shape), weight, eps)


def _affine(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    shape, d = (1, -1, *(1,) * (y.ndim - 2)), y.dtype
    if weight is not None:
        y = y * weight.view(shape)
    y = y if bias is None else y + bias.view(shape)
    return y if y.dtype is d else y.to(d)  # a half-precision input keeps its dtype beside float32 weights


def _check_channels(input: Tensor, channels: int, **parameters: Tensor | None) -> None:
    """Raise RuntimeError for a parameter of another dtype, or whose shape is not (channels,)."""
    for name, t in parameters.items():
        if t is not None and (t.ndim != 1 or t.shape[0] != channels):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                               f"{list(t.shape)} and input of shape {list(input.shape)}")  # fmt: skip
    check_parameter_dtypes(input.dtype, *parameters.values())


@public(autocast=FLOAT32_ON_CUDA, composed=True)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalise each of num_groups groups of channels to zero mean and unit variance.

    input: (n, c, *); weight, bias: (c,) or None.
    Raises: RuntimeError unless num_groups divides c; ValueError for groups of a single value.
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    _more_than_one_value(input, input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:]))
    return normalize_groups(input, num_groups, weight, bias, eps)


def normalize_groups(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """`group_norm` without the check for groups of a single value."""
    n, c = size_at(input.shape, 0), size_at(input.shape, 1)
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(input.shape)} and num_groups={num_groups}")  # fmt: skip
    _check_channels(input, c, weight=weight, bias=bias)
    width = input.numel() // max(n * num_groups, 1)
    grouped = with_gradient("format", input).reshape(n, num_groups, width)
    y = OPS["native_layer_norm"](grouped, (width,), None, None, eps)[0].view(tuple(input.shape))
    return in_suggested_format(_affine(y, weight, bias), input)


def _more_than_one_value(input: Tensor, count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")


def _fit_channels(input: Tensor, **per_channel: Tensor | None) -> None:
    """Raise RuntimeError unless every given tensor has one element per channel."""
    if input.ndim < 2 and all(t is None or t.numel() == input.ndim for t in per_channel.values()):
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    channels = input.shape[1] if input.ndim > 1 else input.ndim
    for name, t in per_channel.items():
        if t is not None and t.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")


def _check_statistics(input: Tensor, *given: Tensor | None) -> None:
    """Raise RuntimeError unless weight, bias and statistics have the input's dtype, or float32 beside a half-precision input.

    As in torch, the first given tensor decides whether mixed dtypes are allowed.
    """
    tensors = [t for t in given if t is not None]
    if all(t.dtype is input.dtype for t in tensors):
        return
    if tensors[0].dtype is input.dtype:
        other = next(t.dtype for t in tensors if t.dtype is not input.dtype)
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other)}")
    if any(t.dtype is not dtypes.float32 for t in tensors):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if input.dtype.itemsize != 2:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalise each channel with the statistics of the batch (training) or the running statistics.

    input: (n, c, *); the others (c,). In training the running statistics move by `momentum` towards the
    batch's mean and unbiased variance. Raises: ValueError for eps < 0, and in training for eps = 0 or one value per channel.
    """
    _check_batch(input, weight, bias, running_mean, running_var)
    if eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    if training:
        _more_than_one_value(input, _values_per_channel(input))
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def unchecked_batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                         bias: Tensor | None, training: bool, momentum: float, eps: float) -> Tensor:  # fmt: skip
    """`batch_norm` for any eps and any number of values per channel, as torch's top-level function."""
    _check_batch(input, weight, bias, running_mean, running_var)
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _check_batch(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                 running_var: Tensor | None) -> None:  # fmt: skip
    _fit_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if input.dtype.is_floating_point and input.numel():
        _check_statistics(input, weight, bias, running_mean, running_var)


def _batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
                training: bool, momentum: float, eps: float) -> Tensor:  # fmt: skip
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
        return _batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    return batch_norm_with_moments(input, running_mean, running_var, weight, bias, momentum, eps)[0]


def _values_per_channel(input: Tensor) -> int:
    return input.numel() // max(input.shape[1], 1) if input.ndim > 1 else 1


def _variance(rstd: Tensor, eps: float) -> Tensor:
    """The variance that corresponds to `rstd` = 1 / std; for eps = 0, a value of 0 means a variance of 0."""
    variance = OPS["reciprocal"](rstd * rstd) - eps * 1.0  # eps may be True, which counts as 1
    return variance if eps else OPS["where"](rstd == 0, 0, variance)


def batch_norm_with_moments(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                            bias: Tensor | None, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """`batch_norm` in training: y, and each channel's mean and reciprocal standard deviation in this batch."""
    count = _values_per_channel(input)
    y, mean, rstd = OPS["batch_norm_train"](input, weight, bias, eps)
    if running_mean is not None or running_var is not None:
        before = _native.set_grad_enabled(False)
        try:
            if running_mean is not None:
                _move(running_mean, mean, momentum)
            if running_var is not None:
                _move(running_var, times_ratio(_variance(rstd, eps), count, max(count - 1, 1)), momentum)
        finally:
            _native.set_grad_enabled(before)
    return y, mean, rstd


def _move(running: Tensor, towards: Tensor, momentum: float) -> None:
    """running += momentum * (towards - running), in place."""
    OPS["mul_"](running, 1 - momentum)
    OPS["add_"](running, cast_to(towards * momentum, running.dtype))


@composition
def _batch_norm_eval(input: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """x * scale + shift, both computed per channel first.

    Raises: NotImplementedError for a dtype that is not floating.
    """
    require_floating("batch_norm", input.dtype)
    scale = OPS["rsqrt"](var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    shape = (1, -1, *(1,) * (input.ndim - 2))
    strides = batch_norm_strides(input)
    if not is_channels_last(input):  # channels-last is the only other layout of the result
        input = input.contiguous()
    y = cast_to(input, scale.dtype) * scale.view(shape) + shift.view(shape)
    return laid_out(cast_to(y, input.dtype), strides)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalise each channel of each sample with its own statistics, or with the running ones. input: (n, c, *).

    Raises: ValueError for a single spatial element with use_input_stats.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return unchecked_instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def unchecked_instance_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                            bias: Tensor | None, use_input_stats: bool, momentum: float, eps: float) -> Tensor:  # fmt: skip
    """`instance_norm` for any number of spatial elements, as torch's top-level function."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return _batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    spatial = math.prod(input.shape[2:])
    n, c = input.shape[:2]
    if eps:
        y, mean, rstd = OPS["native_layer_norm"](input.reshape(n, c, spatial), (spatial,), None, None, eps)
    else:  # for a constant channel layer_norm returns nan, batch_norm 0
        y, mean, rstd = OPS["batch_norm_train"](input.reshape(1, n * c, spatial), None, None, eps)
        mean, rstd = (OPS["view"](t, (n, c, 1)) for t in (mean, rstd))
    if running_mean is not None and running_var is not None:
        before = _native.set_grad_enabled(False)
        try:
            variance = times_ratio(_variance(rstd, eps), spatial, max(spatial - 1, 1))
            _move(running_mean, mean.mean((0, 2)), momentum)
            _move(running_var, variance.mean((0, 2)), momentum)
        finally:
            _native.set_grad_enabled(before)
    return _affine(y.view(tuple(input.shape)), weight, bias)


def local_response_norm(input: Tensor, size: int, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0) -> Tensor:
    """x / (k + alpha * mean square of `size` neighbouring channels) ** beta. input: (n, c, *).

    Raises: ValueError for fewer than 3 dims.
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)")
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    if input.numel() == 0:
        return input
    if input.dtype.is_integral and input.dtype is not dtypes.int64:
        raise dtypes.no_kernel("avg_pool2d" if input.ndim == 3 else "avg_pool3d", input.dtype)
    squares = (input * input).reshape(input.shape[0], input.shape[1], -1)
    padded = OPS["constant_pad_nd"](squares, (0, 0, size // 2, (size - 1) // 2), 0)
    windows = padded.unfold(1, size, 1)
    mean = (windows.sum(-1) // size if input.dtype.is_integral else windows.mean(-1)).reshape(tuple(input.shape))
    return input / OPS["pow"](mean * alpha + k, beta)
