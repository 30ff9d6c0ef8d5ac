"""The multivariate normal distribution."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.spec import broadcast_shapes
from eager.distributions import constraints
from eager.distributions._functions import eye, randn
from eager.distributions.distribution import LOG_2PI, Distribution
from eager.distributions.utils import batch_mahalanobis, lazy_property, precision_to_scale_tril, solve_lower
from eager.optable.table import OPS

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Mean `loc` (*, d), and exactly one of `covariance_matrix`, `precision_matrix`, `scale_tril` (*, d, d).

    scale_tril: the lower-triangular Cholesky factor of the covariance; all computations use it.
    Raises: ValueError for shapes that do not fit, or unless exactly one matrix is given.
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:  # fmt: skip
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        found = {name: m for name, m in given.items() if m is not None}
        if len(found) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = found.items()
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch_shape, loc.shape[-1]))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = OPS["cholesky"](covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("loc", "covariance_matrix", "scale_tril", "precision_matrix")
        new = self._expanded(MultivariateNormal, batch_shape, names, _instance, self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        inverse = solve_lower(lower, eye(int(self._event_shape[0]), dtype=lower.dtype, device=lower.device))
        return (inverse.mT @ inverse).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        shape = (*self._batch_shape, *self._event_shape)
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        z = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half_log_det = self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)
        return -0.5 * (self._event_shape[0] * LOG_2PI + distance) - half_log_det

    def entropy(self) -> Tensor:
        half_log_det = self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)
        entropy = 0.5 * self._event_shape[0] * (1.0 + LOG_2PI) + half_log_det
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
