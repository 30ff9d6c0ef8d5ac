"""The geometric distribution: the number of failures before the first success."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions._functions import finfo, rand, softplus, zeros_like
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Geometric"]


class Geometric(Distribution):
    """Number of failures before the first success of trials with probability `probs`, or log odds `logits`.

    Raises: ValueError unless exactly one of them is given, and if `probs` is 0.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        given = self.probs if probs is not None else self.logits
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution "
                             f"{self!r} to be positive but found invalid values:\n{self.probs[self.probs <= 0]}")  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Geometric, batch_shape, ("probs", "logits"), _instance)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            u = u.clamp(min=finfo(u.dtype).tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)  # 0 * log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        # the entropy of a Bernoulli trial, divided by the success probability
        return (softplus(self.logits) - self.logits * self.probs) / self.probs
