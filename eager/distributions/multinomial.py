"""The multinomial distribution: counts of outcomes among independent trials."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Size, Tensor
from eager.distributions import constraints
from eager.distributions._functions import arange, zeros_like
from eager.distributions.binomial import Binomial
from eager.distributions.categorical import Categorical
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Counts (*, k) of `total_count` draws from a Categorical; one int for the whole batch.

    Raises: NotImplementedError for a tensor of total counts.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    total_count: int

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Multinomial, batch_shape, (), _instance, self.event_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(tuple(batch_shape) + tuple(self.event_shape))
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(Size((self.total_count, *sample_shape)))
        drawn = drawn.permute((*range(1, drawn.ndim), 0))  # move the trials to the last dim
        counts = drawn.new_zeros(self._extended_shape(sample_shape)).scatter_add_(-1, drawn, drawn.new_ones(drawn.shape))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        """The entropy, by enumeration of the binomial marginals."""
        n = self.total_count
        categorical = self._categorical.entropy()
        counts = arange(n + 1, dtype=self.probs.dtype, device=self.probs.device).view((-1, *(1,) * self.probs.ndim))[1:]
        weights = self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()
        log_factorial = self.probs.new_full((), n + 1.0).lgamma()
        return n * categorical - log_factorial + weights.sum((0, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        powers = value * logits
        powers = zeros_like(powers).where((value == 0) & (logits == -float("inf")), powers)  # impossible, count 0: no contribution
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + powers.sum(-1)
