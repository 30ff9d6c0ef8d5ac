"""The Lewandowski-Kurowicka-Joe distribution of correlation matrices, represented by their Cholesky factors."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.limits import finfo
from eager.distributions import constraints
from eager.distributions._functions import arange, mvlgamma, randn
from eager.distributions.beta import Beta
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all
from eager.optable.table import OPS

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors L of dim x dim correlation matrices L L^T, with density proportional to det(L L^T) ** (concentration - 1).

    concentration 1 is uniform over correlation matrices. Raises: ValueError for a dim below 2.
    Source: Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and extended onion
    method", J. Multivariate Analysis 100 (2009), section 3.2.
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # distribution of the squared length of each row's part left of the diagonal
        row = OPS["clamp"](self._counted(dim) - 1, 0, None)
        self._beta = Beta(row + 0.5, (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * row)
        super().__init__(tuple(self.concentration.shape), (dim, dim), validate_args=validate_args)

    def _counted(self, n: int) -> Tensor:
        return arange(n, dtype=self.concentration.dtype, device=self.concentration.device)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = tuple(batch_shape)
        new.dim, new.concentration = self.dim, self.concentration.expand(batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        super(LKJCholesky, new).__init__(batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples drawn row by row, each row a point of the unit ball in a random direction."""
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        directions = randn(self._extended_shape(sample_shape), dtype=squared.dtype, device=squared.device).tril(-1)
        directions = directions / directions.norm(dim=-1, keepdim=True)
        directions[..., 0, :] = 0.0
        lower = squared.sqrt() * directions
        rest = OPS["clamp"](1 - (lower * lower).sum(-1), finfo(lower.dtype).tiny, None)
        return lower + rest.sqrt().diag_embed()

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        left = self.dim - 1
        order = self.dim - 1 - self._counted(left) - 1 + 2 * (self.concentration - 1).unsqueeze(-1)
        logs = value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()
        alpha = self.concentration + 0.5 * left
        normaliser = 0.5 * left * math.log(math.pi) + mvlgamma(alpha - 0.5, left) - OPS["lgamma"](alpha) * left
        return (order * logs).sum(-1) - normaliser
