"""The generalised Pareto distribution of values above a threshold."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import rand
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all
from eager.optable.table import OPS

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Threshold `loc`, `scale` and shape `concentration`: 0 is exponential, a negative one has an upper bound."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}  # noqa: RUF012
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, ("loc", "scale", "concentration"), _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.concentration < 0
        upper = OPS["where"](bounded, self.loc - self.scale / OPS["where"](bounded, self.concentration, -1.0), math.inf)
        return constraints.interval(self.loc, upper)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return OPS["where"](c < 1, self.loc + self.scale / (1 - OPS["where"](c < 1, c, 0.0)), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        safe = OPS["where"](c < 0.5, c, 0.0)
        return OPS["where"](c < 0.5, self.scale.pow(2) / ((1 - safe).pow(2) * (1 - 2 * safe)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def _log_survival(self, value: Tensor) -> Tensor:
        """log P(X > value); for a concentration of 0 the exponential limit."""
        z = (value - self.loc) / self.scale
        flat = self.concentration == 0
        c = OPS["where"](flat, 1.0, self.concentration)
        return OPS["where"](flat, -z, -OPS["log1p"](c * z) / c)

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._log_survival(value) * (1 + self.concentration) - self.scale.log()

    def cdf(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -OPS["expm1"](self._log_survival(value))

    def icdf(self, value: Any) -> Tensor:
        flat = self.concentration == 0
        c = OPS["where"](flat, 1.0, self.concentration)
        rate = -OPS["log1p"](-value)
        return self.loc + self.scale * OPS["where"](flat, rate, OPS["expm1"](c * rate) / c)
