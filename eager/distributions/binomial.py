"""The binomial distribution: the number of successes among independent trials."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions._functions import arange, binomial, softplus, xlogy
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Binomial"]


class Binomial(Distribution):
    """Number of successes among `total_count` trials with probability `probs`, or log odds `logits`.

    Raises: ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
        self._param = self.probs if probs is not None else self.logits
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Binomial, batch_shape, ("total_count", "probs", "logits", "_param"), _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_choose = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # value * log p + (n - value) * log(1 - p), in logits
        return log_choose + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy, by enumeration. Raises: NotImplementedError for different total counts in one batch."""
        n = int(self.total_count.max())
        if not int(self.total_count.min()) == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -xlogy(log_prob.exp(), log_prob.exp()).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The values 0..total_count along a new first dim.

        Raises: NotImplementedError for different total counts in one batch.
        """
        n = int(self.total_count.max())
        if not int(self.total_count.min()) == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = arange(n + 1, dtype=self._param.dtype, device=self._param.device).view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
