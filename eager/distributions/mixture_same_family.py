"""Mixtures whose components belong to one family."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions._functions import logsumexp
from eager.distributions.categorical import Categorical
from eager.distributions.constraints import MixtureSameFamilyConstraint
from eager.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The last batch dim of `component_distribution` holds k components, chosen by the Categorical `mixture_distribution`.

    Raises: ValueError for other types, or batch shapes that do not fit.
    """

    arg_constraints = {}  # noqa: RUF012
    has_rsample = False

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        mixture_batch, component_batch = tuple(mixture_distribution.batch_shape), tuple(component_distribution.batch_shape)[:-1]
        for a, b in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                                 f"`component_distribution.batch_shape`({component_batch})")  # fmt: skip
        km, kc = int(mixture_distribution.logits.shape[-1]), int(component_distribution.batch_shape[-1])
        if km != kc:
            raise ValueError(f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})")
        self._num_component = km
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(component_batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(MixtureSameFamily, batch_shape, (), _instance, self.event_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    def _weights(self) -> Tensor:
        """Probabilities of the components, with dims of size 1 for the event."""
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    def _pad(self, x: Tensor) -> Tensor:
        """`x` with a dim for the components before the event dims."""
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances plus the variance of their means."""
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self.component_distribution.variance).sum(dim)
        between = (weights * (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)).sum(dim)
        return within + between

    def cdf(self, x: Tensor) -> Tensor:
        x = self._pad(x)
        return (self.component_distribution.cdf(x) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        logits = self.mixture_distribution.logits
        of_mixture = logits - logsumexp(logits, -1, keepdim=True)
        return logsumexp(self.component_distribution.log_prob(self._pad(x)) + of_mixture, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            gather_dim = len(tuple(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            shape = (*tuple(sample_shape), *self.batch_shape, 1, *self.event_shape)
            return drawn.gather(gather_dim, index.expand(shape)).squeeze(gather_dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
