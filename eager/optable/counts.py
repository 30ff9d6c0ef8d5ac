"""Random counts: Poisson and binomial variates, as functions of a generator state."""
from __future__ import annotations

from typing import Any

import numpy as np

from eager.base.spec import TensorSpec, broadcast_shapes, common_device
from eager.optable.gamma import generator, on_host
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _like_rate(state: Any, rate: Any) -> TensorSpec:
    return TensorSpec.contiguous(tuple(rate.shape), rate.dtype, rate.device)


def _poisson(xp: Any, out: Any, state: Any, rate: Any) -> None:
    """Raises: RuntimeError for a negative rate. NaN stays NaN, infinity stays infinite."""
    means = on_host(rate)
    if (means < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    finite = np.isfinite(means)
    large = finite & (means > 1e15)  # numpy draws 64-bit counts; above this mean, the normal limit is exact in float64
    drawn = np.asarray(generator(state).poisson(np.where(finite & ~large, means, 0.0)), np.float64)
    if large.any():
        normal = generator(state).standard_normal(means.shape)
        drawn = np.where(large, np.rint(means + np.sqrt(np.where(large, means, 0.0)) * normal), drawn)
    out[...] = xp.asarray(np.where(finite, drawn, means))


def _broadcast(state: Any, count: Any, prob: Any) -> TensorSpec:
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    return TensorSpec.contiguous(shape, count.dtype, common_device("binomial", (count, prob)))


def _binomial(xp: Any, out: Any, state: Any, count: Any, prob: Any) -> None:
    """NaN where the count is negative or the probability lies outside [0, 1]."""
    trials, chance = np.broadcast_arrays(on_host(count), on_host(prob))
    valid = (trials >= 0) & (chance >= 0) & (chance <= 1) & np.isfinite(trials)
    drawn = generator(state).binomial(np.where(valid, trials, 0).astype(np.int64), np.where(valid, chance, 0.0))
    out[...] = xp.asarray(np.where(valid, drawn, np.nan))


POISSON = declare("poisson(Tensor state, Tensor rate) -> Tensor", Kind.RANDOM, fallible=True,
                  meta=_like_rate, kernel=_poisson, vjp={"rate": lambda g: OPS["fill"](g, 0)}, samples=lambda make: iter([
                      (make.state(), make(3, 4, low=0.2, high=30.0)), (make.state(), make(low=2.0, high=3.0)),
                      (make.state(), make(0, low=1.0, high=2.0))]))  # fmt: skip

BINOMIAL = declare("binomial(Tensor state, Tensor count, Tensor prob) -> Tensor", Kind.RANDOM, meta=_broadcast, kernel=_binomial,
                   underived=True, samples=lambda make: iter([
                       (make.state(), make(3, 1, low=5.0, high=5.0), make(1, 4, low=0.1, high=0.9))]))  # fmt: skip
