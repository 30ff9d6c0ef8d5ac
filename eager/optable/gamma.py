"""Gamma variates with a gradient in their concentration: ground of the Gamma, Beta, Dirichlet and Student distributions.

A sample x of Gamma(a, 1) keeps its place u = P(a, x) in the distribution when a changes, so dx/da = -(dP/da) / p(x).
Source: Figurnov, Mohamed & Mnih, "Implicit Reparameterization Gradients", arXiv:1805.08498.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import result_type
from eager.base.spec import TensorSpec, broadcast_shapes
from eager.optable import loop_api
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

# Above it the expansion in 1/sqrt(a) is exact to 1e-7, below it the series needs a few hundred terms.
_LARGE = 60.0
_MOST_TERMS = 2000


def _like_alpha(state: Any, alpha: Any) -> TensorSpec:
    return TensorSpec.contiguous(tuple(alpha.shape), alpha.dtype, alpha.device)


def generator(state: Any) -> np.random.Generator:
    """numpy's generator over Philox, with a separate key for every (seed, offset)."""
    seed, offset = (int(v) for v in state.tolist())
    return np.random.Generator(np.random.Philox(key=(seed & 0xFFFFFFFFFFFFFFFF) | (offset & 0xFFFFFFFFFFFFFFFF) << 64))


def on_host(a: Any) -> Any:
    """An array of either device as numpy's, in float64."""
    return np.asarray(a.get() if hasattr(a, "get") else a).astype(np.float64)


def _sample(xp: Any, out: Any, state: Any, alpha: Any) -> None:
    """Draws by Marsaglia & Tsang's method."""
    concentration = on_host(alpha)
    drawn = generator(state).standard_gamma(np.where(concentration > 0, concentration, 1.0))
    drawn = np.where(concentration > 0, drawn, np.where(concentration == 0, 0.0, np.nan))
    out[...] = xp.asarray(drawn)


def _series(a: Any, x: Any) -> Any:
    """dx/da through P(a, x) = x^a e^-x / Gamma(a + 1) * sum t_n with t_n = x^n / ((a + 1) ... (a + n)).

    Its logarithmic derivative has the terms H_n = 1/(a + 1) + ... + 1/(a + n); the density divides out to x / a.
    """
    term, harmonic = np.ones_like(a), np.zeros_like(a)
    total, weighted = np.ones_like(a), np.zeros_like(a)
    for n in range(1, _MOST_TERMS):
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        total += term
        weighted += term * harmonic
        if np.all(term * harmonic <= 1e-17 * weighted):
            break
    return -x / a * (total * (np.log(x) - loop_api.NUMPY.digamma(a + 1)) - weighted)


def _expansion(a: Any, x: Any) -> Any:
    """dx/da for large a, through the Cornish-Fisher expansion of x in the standard normal z that has its place.

    Source: Goldberg & Levine, "Approximate formulas for the percentage points and normalization of t and chi-square", 1946.
    """
    r = np.sqrt(a)
    # z of x: Wilson & Hilferty's cube root, then Newton on the expansion itself
    z = (np.cbrt(x / a) - 1 + 1 / (9 * a)) * 3 * r
    for _ in range(4):
        z2 = z * z
        value = (a + r * z + (z2 - 1) / 3 + z * (z2 - 7) / (36 * r) - ((3 * z2 + 7) * z2 - 16) / (810 * a)
                 + z * ((9 * z2 + 256) * z2 - 433) / (38880 * a * r))  # fmt: skip
        slope = (r + 2 * z / 3 + (3 * z2 - 7) / (36 * r) - (12 * z2 + 14) * z / (810 * a)
                 + ((45 * z2 + 768) * z2 - 433) / (38880 * a * r))  # fmt: skip
        z = z - (value - x) / slope
    z2 = z * z
    return (1 + z / (2 * r) - z * (z2 - 7) / (72 * a * r) + ((3 * z2 + 7) * z2 - 16) / (810 * a * a)
            - z * ((9 * z2 + 256) * z2 - 433) / (25920 * a * a * r))  # fmt: skip


def _sample_slope(xp: Any, out: Any, alpha: Any, sample: Any) -> None:
    a, x = np.broadcast_arrays(on_host(alpha), on_host(sample))
    result = np.zeros(a.shape)
    result[~((a > 0) & (x >= 0) & np.isfinite(x))] = np.nan
    small = (a > 0) & (a <= _LARGE) & (x > 0) & np.isfinite(x)
    large = (a > _LARGE) & (x > 0) & np.isfinite(x)
    if small.any():
        result[small] = _series(a[small], x[small])
    if large.any():
        result[large] = _expansion(a[large], x[large])
    out[...] = xp.asarray(result)


def _slope_meta(alpha: Any, sample: Any) -> TensorSpec:
    d = result_type(alpha, sample)
    shape = broadcast_shapes(tuple(alpha.shape), tuple(sample.shape))
    return TensorSpec.contiguous(shape, dtypes.get_default_dtype() if d.is_integral else d, alpha.device)


def _samples(make: Any) -> Any:
    yield make.state(), make(3, 4, low=0.2, high=3.0)
    yield make.state(), make(5, low=70.0, high=90.0)
    yield make.state(), make(0, 2, low=0.5, high=1.0)


def _slope_samples(make: Any) -> Any:
    # integers, which have no gradients: the derivative in this argument does not exist
    yield make.int(3, 4, low=1, high=5), make.int(3, 4, low=1, high=8)
    yield make.int(5, low=70, high=90), make.int(1, low=60, high=100)


STANDARD_GAMMA_GRAD = declare("standard_gamma_grad(Tensor alpha, Tensor sample) -> Tensor", Kind.OPAQUE, meta=_slope_meta,
                              kernel=_sample_slope, underived=True, samples=_slope_samples)  # fmt: skip


def _vjp(g: Any, alpha: Any, y: Any) -> Any:
    return OPS["mul"](g, STANDARD_GAMMA_GRAD(alpha, y))


STANDARD_GAMMA = declare("standard_gamma(Tensor state, Tensor alpha) -> Tensor", Kind.RANDOM, meta=_like_alpha, kernel=_sample,
                         vjp={"alpha": _vjp}, samples=_samples)  # fmt: skip
