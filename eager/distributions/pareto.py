"""The Pareto distribution of type 1."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.exponential import Exponential
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, ExpTransform
from eager.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Minimum `scale` and tail index `alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}  # noqa: RUF012

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, new)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # the mean is infinite for alpha <= 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        finite = self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))
        return finite.masked_fill(a <= 2, math.inf)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
