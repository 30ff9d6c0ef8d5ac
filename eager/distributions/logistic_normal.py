"""The logistic-normal distribution over points of the simplex."""
from __future__ import annotations

from typing import Any, cast

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.independent import Independent
from eager.distributions.normal import Normal
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """A normal vector of n elements (mean `loc`, deviation `scale`) mapped to n + 1 proportions by stick breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.simplex
    base_dist: Independent

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        return cast(Normal, self.base_dist.base_dist).loc

    @property
    def scale(self) -> Tensor:
        return cast(Normal, self.base_dist.base_dist).scale
