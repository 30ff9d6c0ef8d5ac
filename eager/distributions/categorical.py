"""The categorical distribution: an index with given probabilities."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Size, Tensor
from eager.autograd.grad_mode import no_grad
from eager.base.spec import broadcast_shapes
from eager.distributions import constraints
from eager.distributions._functions import arange, finfo, full, logsumexp, multinomial
from eager.distributions.distribution import Distribution
from eager.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index 0..k-1 with probabilities `probs` (*, k), which are normalised, or unnormalised log probabilities `logits`.

    Raises: ValueError unless exactly one of them is given, with at least one dim.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            if probs.ndim < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.ndim < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logsumexp(logits, -1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = int(self._param.shape[-1])
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Categorical, batch_shape, ("probs", "logits", "_param"), _instance)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    def _nan(self) -> Tensor:
        return full(tuple(self._batch_shape), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> Tensor:
        return self._nan()  # indices have no mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._nan()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = multinomial(rows, sample_shape.numel(), True).T if sample_shape.numel() else rows.new_zeros(0).long()
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        shape = broadcast_shapes(tuple(index.shape[:-1]), tuple(self.logits.shape[:-1]))
        index, logits = index.expand((*shape, 1)), self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self._param.device).view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
