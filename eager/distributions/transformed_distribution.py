"""TransformedDistribution: the distribution of a transformed variate, such as exp of a normal."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Size, Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.independent import Independent
from eager.distributions.transforms import ComposeTransform, Transform
from eager.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x) for x drawn from `base_distribution`. transforms: one or a list, applied first to last.

    Raises: ValueError for other types, or a base with too few dims.
    """

    arg_constraints = {}  # noqa: RUF012

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.base_dist, batch_shape, event_shape = self._fit(base_distribution)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _fit(self, base: Distribution) -> tuple[Distribution, Size, Size]:
        """The base with the batch and event dims that the transforms need, and the batch and event shape of the result."""
        base_shape = tuple(base.batch_shape) + tuple(base.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got "
                             f"{Size(base_shape)}.")  # fmt: skip
        forward_shape = transform.forward_shape(Size(base_shape))
        expanded = transform.inverse_shape(forward_shape)
        if tuple(base_shape) != tuple(expanded):
            base = base.expand(expanded[: len(expanded) - len(base.event_shape)])
        more = transform.domain.event_dim - len(base.event_shape)
        if more > 0:
            base = Independent(base, more)
        event_dim = transform.codomain.event_dim + max(len(base.event_shape) - transform.domain.event_dim, 0)
        cut = len(forward_shape) - event_dim
        return base, Size(forward_shape[:cut]), Size(forward_shape[cut:])

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(TransformedDistribution, batch_shape, (), _instance, self.event_shape)
        shape = tuple(batch_shape) + tuple(self.event_shape)
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """The base's log density at the inverse image of `value`, minus the log-determinants of the transforms."""
        if self._validate_args:
            self._validate_sample(value)
        event_dim, total, y = len(self.event_shape), None, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            total = -term if total is None else total - term
            y = x
        at_base = sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))
        return at_base if total is None else total + at_base

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Convert a cdf of x into a cdf of y: 1 - value if the transforms are decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value
