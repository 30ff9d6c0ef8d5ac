"""The Weibull distribution."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import ones_like
from eager.distributions.exponential import Exponential
from eager.distributions.gumbel import EULER
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, PowerTransform
from eager.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """`scale` and shape `concentration`: scale * x ** (1 / concentration) for an exponential variate x."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}  # noqa: RUF012
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal = self.concentration.reciprocal()
        return [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new = super().expand(batch_shape, new)
        new.transforms = new._steps()
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration_reciprocal) + (self.scale * self.concentration_reciprocal).log() + 1
