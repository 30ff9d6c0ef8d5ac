"""The multivariate normal distribution whose covariance is a low-rank matrix plus a diagonal."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.spec import broadcast_shapes
from eager.distributions import constraints
from eager.distributions._functions import randn
from eager.distributions.distribution import LOG_2PI, Distribution
from eager.distributions.utils import batch_mahalanobis, lazy_property, solve_lower
from eager.optable.table import OPS

__all__ = ["LowRankMultivariateNormal"]


def _capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor (r, r) of I + W^T D^-1 W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    k = scaled @ factor
    return OPS["cholesky"](k + OPS["diag_embed"](k.new_ones(k.shape[:-1])))


class LowRankMultivariateNormal(Distribution):
    """Mean `loc` (*, d), covariance W W^T + D with `cov_factor` W (*, d, r) and `cov_diag` the diagonal of D (*, d).

    Densities cost r^3 instead of d^3, by Woodbury's identity and the matrix determinant lemma.
    Raises: ValueError for shapes that do not fit.
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = tuple(loc.shape[-1:])
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if tuple(cov_factor.shape[-2:-1]) != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if tuple(cov_diag.shape[-1:]) != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        batch_shape = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc = loc.expand((*batch_shape, *event_shape))
        self.cov_factor = cov_factor.expand((*batch_shape, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch_shape, *event_shape))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LowRankMultivariateNormal, batch_shape, ("loc", "cov_diag", "cov_factor"), _instance, self.event_shape)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        diagonal = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return diagonal.expand((*self._batch_shape, *self._event_shape))

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        # sqrt(D) chol(I + D^-1/2 W W^T D^-1/2) is well conditioned
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        k = scaled @ scaled.mT
        return (root * OPS["cholesky"](k + OPS["diag_embed"](k.new_ones(k.shape[:-1])))).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        w = self._unbroadcasted_cov_factor
        return (w @ w.mT + OPS["diag_embed"](self._unbroadcasted_cov_diag)).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        a = solve_lower(self._capacitance_tril, scaled)
        precision = OPS["diag_embed"](self._unbroadcasted_cov_diag.reciprocal()) - a.mT @ a
        return precision.expand(self._matrix_shape())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank_shape = (*shape[:-1], self.cov_factor.shape[-1])
        low = randn(rank_shape, dtype=self.loc.dtype, device=self.loc.device)
        diagonal_noise = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        spread = (self._unbroadcasted_cov_factor @ low.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * diagonal_noise

    def _log_det(self) -> Tensor:
        of_rank = 2 * self._capacitance_tril.diagonal(0, -2, -1).log().sum(-1)
        return of_rank + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        difference, d = value - self.loc, self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
        projected = (scaled @ difference.unsqueeze(-1)).squeeze(-1)
        distance = (difference.pow(2) / d).sum(-1) - batch_mahalanobis(self._capacitance_tril, projected)
        return -0.5 * (self._event_shape[0] * LOG_2PI + self._log_det() + distance)

    def entropy(self) -> Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + LOG_2PI) + self._log_det())
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
