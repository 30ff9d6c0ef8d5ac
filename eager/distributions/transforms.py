"""Invertible maps with their log-determinants: they transform distributions, or reals into constrained values.

A transform has a `domain` and a `codomain` (constraints); `t(x)` maps, `t.inv(y)` maps back, and
`t.log_abs_det_jacobian(x, y)` is log |dy/dx|, summed over the event dims of the domain.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager._tensor.tensor import Size, Tensor
from eager.base.spec import broadcast_shapes
from eager.distributions import constraints
from eager.distributions._functions import cat, finfo, ones_like, softplus, stack
from eager.distributions._transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,  # noqa: F401 - libraries import it from here
    identity_transform,
)
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from eager.optable.table import OPS

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class _Univariate(Transform):
    """A strictly monotonic elementwise map without parameters; all instances of a class are equal."""

    bijective = True
    domain = constraints.real

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class ExpTransform(_Univariate):
    """y = exp(x)."""

    codomain = constraints.positive
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent for positive x."""

    bijective = True
    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return Size(broadcast_shapes(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), clamped to the smallest distance from 0 and 1 in its dtype.

    Libraries import it by this name.
    """
    info = finfo(x.dtype)
    return x.sigmoid().clamp(info.tiny, 1.0 - info.eps)


class SigmoidTransform(_Univariate):
    """y = 1 / (1 + exp(-x)), clamped to the open unit interval."""

    codomain = constraints.unit_interval
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        y = y.clamp(info.tiny, 1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Univariate):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Univariate):
    """y = tanh(x). In a `TransformedDistribution` use `cache_size=1`: the inverse is inaccurate near -1 and 1."""

    codomain = constraints.interval(-1.0, 1.0)
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))  # log(1 - tanh(x)^2) without cancellation


class AbsTransform(Transform):
    """y = |x|. Not injective; the inverse returns the positive root."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x. event_dim: number of event dims of x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, (int, float)):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        result = scale.abs().log() if isinstance(scale, Tensor) else x.new_full((), math.log(abs(scale)))
        result = result.expand(broadcast_shapes(tuple(x.shape), tuple(result.shape)))
        return sum_rightmost(result, self.event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return Size(broadcast_shapes(tuple(shape), tuple(getattr(self.loc, "shape", ())), tuple(getattr(self.scale, "shape", ()))))

    inverse_shape = forward_shape


def _same(a: Any, b: Any) -> bool:
    return bool((a == b).all()) if isinstance(a, Tensor) or isinstance(b, Tensor) else bool(a == b)


class CorrCholeskyTransform(Transform):
    """Maps a vector of n (n - 1) / 2 reals to the Cholesky factor (n, n) of a correlation matrix.

    Source: Lewandowski, Kurowicka & Joe, "Generating random correlation matrices based on vines and extended onion method", 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(-1 + eps, 1 - eps), diag=-1)
        z = r * r
        left = (1 - z).sqrt().cumprod(-1)  # the remaining length of each unit row
        r = r + _identity_like(r)
        return r * OPS["constant_pad_nd"](left[..., :-1], (1, 0), 1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = OPS["constant_pad_nd"]((1 - (y * y).cumsum(-1))[..., :-1], (1, 0), 1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_lengths = 0.5 * left.log().sum(-1)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return of_lengths + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        n = _square_size(shape)
        return Size((*shape[:-2], n * (n - 1) // 2))


def _square_size(shape: Any) -> int:
    if len(shape) < 2:
        raise ValueError("Too few dimensions on input")
    if shape[-2] != shape[-1]:
        raise ValueError("Input is not square")
    return int(shape[-1])


def _identity_like(matrix: Tensor) -> Tensor:
    return OPS["diag_embed"](ones_like(matrix[..., 0]))


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dim. Not bijective; the inverse returns the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Maps n reals to n + 1 proportions: each breaks a fraction off the remaining stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        offset = n + 1 - x.new_ones(n).cumsum(-1)  # maps 0 to equal proportions
        info = finfo(x.dtype)
        z = (x - offset.log()).sigmoid().clamp(info.tiny, 1.0 - info.eps)
        left = (1 - z).cumprod(-1)
        return OPS["constant_pad_nd"](z, (0, 1), 1) * OPS["constant_pad_nd"](left, (1, 0), 1)

    def _inverse(self, y: Tensor) -> Tensor:
        y_crop = y[..., :-1]
        offset = y.shape[-1] - y.new_ones(y_crop.shape[-1]).cumsum(-1)
        left = (1 - y_crop.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return y_crop.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - offset.log()
        return (-x + OPS["log_sigmoid"](x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Maps any square matrix to a lower-triangular one with a positive diagonal. Not injective."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + OPS["diag_embed"](x.diagonal(0, -2, -1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + OPS["diag_embed"](y.diagonal(0, -2, -1).log())


class PositiveDefiniteTransform(Transform):
    """Maps any square matrix to a positive-definite one, by way of its Cholesky factor. Not injective."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(OPS["cholesky"](y))


class CatTransform(Transform):
    """A different transform on each of consecutive parts along `dim`, of the given lengths (1 each by default)."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"{len(self.transforms)} transforms, but {len(self.lengths)} lengths")
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> list[Tensor]:
        if value.shape[self.dim] != self.length:
            raise AssertionError(f"cat transform: size {value.shape[self.dim]} along dim {self.dim}; its parts have {self.length}")
        parts, start = [], 0
        for n in self.lengths:
            parts.append(value.narrow(self.dim, start, n))
            start += n
        return parts

    def _call(self, x: Tensor) -> Tensor:
        return cat([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            terms.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return cat(terms, dim)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """A different transform on each slice along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor) -> list[Tensor]:
        if value.shape[self.dim] != len(self.transforms):
            raise AssertionError(f"stack transform: size {value.shape[self.dim]} along dim {self.dim} for {len(self.transforms)} parts")
        return [value.select(self.dim, i) for i in range(len(self.transforms))]

    def _call(self, x: Tensor) -> Tensor:
        return stack([t(part) for t, part in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a univariate distribution; maps its samples to uniform ones."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
