"""The Gumbel distribution of extreme values."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import finfo, full_like, ones_like
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import AffineTransform, ExpTransform
from eager.distributions.uniform import Uniform
from eager.distributions.utils import broadcast_all

__all__ = ["Gumbel"]

EULER = 0.57721566490153286060  # the Euler-Mascheroni constant


class Gumbel(TransformedDistribution):
    """Mode `loc` and `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, info.tiny), full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        super().__init__(base, _steps(self.loc, self.scale), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        new = super().expand(batch_shape, new)
        new.transforms = _steps(new.loc, new.scale)
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


def _steps(loc: Tensor, scale: Tensor) -> list[Any]:
    """The transforms u -> loc - scale * log(-log(u)) of a uniform variate."""
    return [ExpTransform().inv, AffineTransform(0, -ones_like(scale)), ExpTransform().inv, AffineTransform(loc, -scale)]
