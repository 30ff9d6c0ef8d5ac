"""The Dirichlet distribution over points of the simplex."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.distributions import constraints
from eager.distributions._functions import finfo, standard_gamma, xlogy, zeros_like
from eager.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of the simplex with k components, `concentration` (*, k). Samples are normalised gamma variates.

    Gradients of samples reach the concentration. Raises: ValueError for a concentration without dims.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Dirichlet, batch_shape, ("concentration",), _instance, self.event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        parts = standard_gamma(concentration.to(dtypes.float64))  # small concentrations underflow in float32
        parts = parts.clamp(min=finfo(dtypes.float64).tiny)
        return (parts / parts.sum(-1, keepdim=True)).to(concentration.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        flat = (self.concentration < 1).all(-1, keepdim=True)  # the density is infinite at every corner; torch returns the first one
        corner = zeros_like(mode)
        corner[..., 0] = 1
        return corner.where(flat, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
