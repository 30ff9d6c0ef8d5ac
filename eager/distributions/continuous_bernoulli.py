"""The continuous Bernoulli distribution on the unit interval."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import ones_like, rand, where, zeros_like
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ExponentialFamily):
    """Density C(p) p^x (1-p)^(1-x) with `probs` p or log odds `logits`. Within `lims` of p = 1/2 a Taylor expansion is used.

    Raises: ValueError unless exactly one of `probs` and `logits` is given.
    Source: Loaiza-Ganem & Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders",
    arXiv:1907.06845.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if (validate_args if validate_args is not None else self._validate_args) and not bool(
                    self.arg_constraints["probs"].check(self.probs).all()):  # fmt: skip
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(ContinuousBernoulli, batch_shape, ("probs", "logits", "_param"), _instance)
        new._lims = self._lims
        return new

    def _outside(self) -> Tensor:
        """Mask of the parameters away from 1/2, for which the closed forms are stable."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        return where(self._outside(), self.probs, self._lims[0] * ones_like(self.probs))

    def _log_constant(self) -> Tensor:
        """log C(p)."""
        cut = self._cut_probs()
        below = where(cut <= 0.5, cut, zeros_like(cut))
        above = where(cut >= 0.5, cut, ones_like(cut))
        log_norm = ((-cut).log1p() - cut.log()).abs().log() - where(cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        x = (self.probs - 0.5).pow(2)
        return where(self._outside(), log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mus = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = self.probs - 0.5
        return where(self._outside(), mus, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        found = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return where(self._outside(), found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        from_logits = value * logits - (-logits.abs()).exp().log1p() - logits.clamp(min=0)
        return from_logits + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        cdfs = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = where(self._outside(), cdfs, value)
        return where(value <= 0.0, zeros_like(inside), where(value >= 1.0, ones_like(inside), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        found = ((-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()) / (cut.log() - (-cut).log1p())
        return where(self._outside(), found, value)

    def entropy(self) -> Tensor:
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._log_constant() - log0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = ((x.sigmoid() <= self._lims[0]) | (x.sigmoid() > self._lims[1]))
        cut = where(outside, x, (self._lims[0] - 0.5) * ones_like(x))
        log_norm = ((cut.exp() - 1).abs()).log() - cut.abs().log()
        return where(outside, log_norm, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
