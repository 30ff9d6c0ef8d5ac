"""The Wishart distribution of random covariance matrices."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.spec import broadcast_shapes
from eager.distributions import constraints
from eager.distributions._functions import arange, eye, mvlgamma, randn, standard_gamma
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.utils import lazy_property, precision_to_scale_tril, solve_lower
from eager.optable.table import OPS

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Covariance matrices (*, d, d) with `df` > d - 1 degrees of freedom.

    Exactly one of `covariance_matrix`, `precision_matrix`, `scale_tril` (*, d, d) gives the scale.
    For integer df a draw is the scatter matrix of df normal vectors. Sampling uses Bartlett's decomposition.
    Raises: ValueError unless exactly one matrix is given, or if df <= d - 1.
    """

    arg_constraints = {  # noqa: RUF012
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:  # fmt: skip
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        found = {name: m for name, m in given.items() if m is not None}
        if len(found) != 1:
            raise ValueError("Expected exactly one of covariance_matrix, precision_matrix, scale_tril to be specified.")
        ((name, matrix),) = found.items()
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, Tensor) else matrix.new_full((), float(df))
        batch_shape = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        d = int(matrix.shape[-1])
        self.df = df.expand(batch_shape)
        if bool(self.df.le(d - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {d - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, d, d)))
        super().__init__(batch_shape, (d, d), validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix) if name == "precision_matrix" else OPS["cholesky"](matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("df", "covariance_matrix", "scale_tril", "precision_matrix")
        new = self._expanded(Wishart, batch_shape, names, _instance, self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape)

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
        inverse = solve_lower(lower, eye(int(self._event_shape[-1]), dtype=lower.dtype, device=lower.device))
        return (inverse.mT @ inverse).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = (self.df - self.covariance_matrix.shape[-1] - 1).view((*self._batch_shape, 1, 1))
        return factor.masked_fill(factor <= 0, float("nan")) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(0, -2, -1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Tensor:
        d = int(self._event_shape[-1])
        shape = self._extended_shape(sample_shape)
        degrees = (self.df.unsqueeze(-1) - arange(d, dtype=self.df.dtype, device=self.df.device)).expand((*shape[:-1],))
        diagonal = (2 * standard_gamma(degrees / 2)).sqrt()  # chi variates with decreasing degrees of freedom
        below = randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + OPS["diag_embed"](diagonal))
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, int(self._event_shape[-1])
        lower = self._unbroadcasted_scale_tril
        whitened = solve_lower(lower, value)
        trace = solve_lower(lower, whitened.mT).diagonal(0, -2, -1).sum(-1)
        log_det_value = 2 * OPS["cholesky"](value).diagonal(0, -2, -1).log().sum(-1)
        half_log_det = lower.diagonal(0, -2, -1).log().sum(-1)
        return (-nu * (p * math.log(2) / 2 + half_log_det) - mvlgamma(nu / 2, p) + (nu - p - 1) / 2 * log_det_value - trace / 2)

    def entropy(self) -> Tensor:
        nu, p = self.df, int(self._event_shape[-1])
        half_log_det = self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)
        return ((p + 1) * (p * math.log(2) / 2 + half_log_det) + mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * mvdigamma(nu / 2, p)
                + nu * p / 2)  # fmt: skip


def mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the log of the multivariate gamma function of dimension p."""
    return (x.unsqueeze(-1) - arange(p, dtype=x.dtype, device=x.device) / 2).digamma().sum(-1)
