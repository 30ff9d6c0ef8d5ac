"""Student's t distribution."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import randn
from eager.distributions.chi2 import Chi2
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Degrees of freedom `df`, `loc` and `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(StudentT, batch_shape, ("df", "loc", "scale"), _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        z = randn(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * z * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + (0.5 * self.df).lgamma()
                      - (0.5 * (self.df + 1.0)).lgamma())  # fmt: skip
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
