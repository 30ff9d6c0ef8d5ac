"""Exponential families: densities exp(<t(x), eta> - F(eta) + k(x)) with natural parameters eta."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.overriding import open_parameters
from eager.distributions.distribution import Distribution
from eager.tape.engine import grad

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base class that derives the entropy from the parts of the density.

    Subclasses define `_natural_params` (eta), `_log_normalizer` (F) and `_mean_carrier_measure` (E[k(x)]).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__}._natural_params")

    @open_parameters
    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}._log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._mean_carrier_measure")

    def entropy(self) -> Tensor:
        """F(eta) - <eta, grad F(eta)> - E[k(x)], by automatic differentiation. Result: batch_shape.

        Source: Nielsen & Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
        """
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result
