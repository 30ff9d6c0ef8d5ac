"""Initialisers: fill a tensor in place with values from the default generator, and return the tensor.

fan_in and fan_out of a weight (out, in, *kernel) are in and out times the number of kernel elements.
"""
from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.random import Generator as _Generator


def _without_grad(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(fn)
    def fill(*args: Any, **kwargs: Any) -> Tensor:
        before = _native.set_grad_enabled(False)
        try:
            return fn(*args, **kwargs)
        finally:
            _native.set_grad_enabled(before)

    return fill


_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
          "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended factor by which to scale the weights before `nonlinearity`.

    Raises: ValueError for an unknown name.
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


@_without_grad
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: _Generator | None = None) -> Tensor:
    """Fill with samples of the uniform distribution on [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_without_grad
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: _Generator | None = None) -> Tensor:
    """Fill with samples of the normal distribution with the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@_without_grad
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: _Generator | None = None) -> Tensor:  # fmt: skip
    """Fill with samples of the normal distribution restricted to [a, b].

    The samples are the inverse distribution function of uniform draws.
    """

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
                      "incorrect.", stacklevel=3)  # fmt: skip
    low, high = below((a - mean) / std), below((b - mean) / std)
    tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
    OPS["erfinv_"](tensor)
    OPS["mul_"](tensor, std * math.sqrt(2.0))
    OPS["add_"](tensor, mean)
    return OPS["clamp_"](tensor, a, b)


@_without_grad
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return tensor.fill_(val)


@_without_grad
def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return tensor.fill_(1.0)


@_without_grad
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return tensor.zero_()


@_without_grad
def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix. Raises: ValueError unless the tensor has 2 dims."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    tensor.zero_()
    OPS["diagonal"](tensor, 0, 0, 1).fill_(1.0)
    return tensor


@_without_grad
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution weight so that the convolution copies its input channels, within each group.

    Raises: ValueError unless the tensor has 3, 4 or 5 dims and `groups` divides its first size.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out_per_group = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    for g in range(groups):
        for d in range(min(out_per_group, tensor.shape[1])):
            tensor[(g * out_per_group + d, d, *centre)] = 1.0
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: _Generator | None = None) -> Tensor:
    """Fill with uniform samples of variance gain^2 * 2 / (fan_in + fan_out). Source: Glorot & Bengio, 2010."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: _Generator | None = None) -> Tensor:
    """Fill with normal samples of variance gain^2 * 2 / (fan_in + fan_out). Source: Glorot & Bengio, 2010."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=4)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: _Generator | None = None) -> Tensor:  # fmt: skip
    """Fill with uniform samples of variance gain^2 / fan. Source: He et al., 2015.

    mode: "fan_in" or "fan_out". a: the negative slope, for nonlinearity="leaky_relu".
    Raises: ValueError for another mode or nonlinearity, or fewer than 2 dims.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: _Generator | None = None) -> Tensor:  # fmt: skip
    """Fill with normal samples of variance gain^2 / fan; arguments and errors as `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


@_without_grad
def orthogonal_(tensor: Tensor, gain: float = 1, generator: _Generator | None = None) -> Tensor:
    """Fill with gain times a (semi-)orthogonal matrix; trailing dims count as one. Source: Saxe et al., 2013.

    The matrix is Q of the QR decomposition of a normal draw, with the signs made unique.
    Raises: ValueError for fewer than 2 dims.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    draw = Tensor(max(rows, columns), min(rows, columns)).normal_(0, 1, generator=generator)
    q = _orthonormal(draw)
    if rows < columns:
        q = q.t()
    tensor.copy_(q.reshape(tuple(tensor.shape)))
    return OPS["mul_"](tensor, gain)


def _orthonormal(matrix: Tensor) -> Tensor:
    """Orthonormal basis of the column space of `matrix` (m, n), m >= n. Gram-Schmidt is applied twice for accuracy."""
    columns: list[Tensor] = []
    basis: Tensor | None = None
    wide = matrix.double()
    for j in range(matrix.shape[1]):
        v = wide[:, j]
        for _ in range(2):
            if basis is not None:
                v = v - basis @ (basis.t() @ v)
        v = v / v.norm()
        columns.append(v)
        basis = OPS["stack"](columns, 1)
    assert basis is not None
    return basis.to(matrix.dtype)


@_without_grad
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: _Generator | None = None) -> Tensor:
    """Fill with normal samples of deviation `std`, and set a fraction `sparsity` of each column to zero.

    Raises: ValueError unless the tensor has 2 dims.
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    keys = Tensor(rows, columns).uniform_(generator=generator)
    rank = OPS["argsort"](OPS["argsort"](keys, 0, False, True), 0, False, True)
    return tensor.copy_(OPS["where"](rank < zeros, 0.0, tensor))


def _deprecated(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    old, new = fn.__name__.removesuffix("_"), fn.__name__

    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return fn(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"Deprecated name of {new}."
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
