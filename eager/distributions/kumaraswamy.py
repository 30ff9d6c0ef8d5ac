"""The Kumaraswamy distribution on the unit interval."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import full_like
from eager.distributions.gumbel import EULER
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, PowerTransform
from eager.distributions.uniform import Uniform
from eager.distributions.utils import broadcast_all

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Parameters `concentration1` (a) and `concentration0` (b): similar to Beta, with a closed-form cdf."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}  # noqa: RUF012
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(full_like(self.concentration0, 0), full_like(self.concentration0, 1), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        """The transforms u -> (1 - u ** (1 / b)) ** (1 / a) of a uniform variate."""
        return [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                PowerTransform(exponent=self.concentration1.reciprocal())]  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1, new.concentration0 = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        new = super().expand(batch_shape, new)
        new.transforms = new._steps()
        return new

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        arg = 1 + n / a
        return (arg.lgamma() + b.lgamma() - (arg + b).lgamma() + b.log()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = a.reciprocal() * ((a - 1) / (a * b - 1)).log()
        return inside.exp().masked_fill((a < 1) | (b < 1), float("nan"))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
