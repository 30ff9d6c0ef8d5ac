"""A differentiable relaxation of the one-hot categorical distribution."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions import constraints
from eager.distributions._functions import logsumexp, rand
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import ExpTransform
from eager.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a `RelaxedOneHotCategorical`.

    Source: Maddison, Mnih & Teh, arXiv:1611.00712; Jang, Gu & Poole, "Categorical reparameterization with Gumbel-
    Softmax", arXiv:1611.01144.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    support = constraints.real_vector  # torch's choice; the exact support is the vectors whose exponentials sum to 1
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(ExpRelaxedCategorical, batch_shape, (), _instance, self.event_shape)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - logsumexp(scores, -1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_temperature = broadcast_all(self.temperature, logits)[0].log()[..., 0]
        score = logits - value.mul(self.temperature)
        return (score - logsumexp(score, -1, keepdim=True)).sum(-1) + math.lgamma(k) + log_temperature * (k - 1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that approach its corners as `temperature` tends to 0; differentiable in `probs` or `logits`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs
