"""The von Mises distribution of angles."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.distributions import constraints
from eager.distributions._functions import empty, rand
from eager.distributions.distribution import Distribution
from eager.distributions.utils import broadcast_all, lazy_property
from eager.optable.table import OPS

__all__ = ["VonMises"]


def _i1_over_i0(x: Tensor) -> Tensor:
    return OPS["special_i1e"](x) / OPS["special_i0e"](x)


class VonMises(Distribution):
    """Angles in [-pi, pi) around `loc`, with the given `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(VonMises, batch_shape, ("loc", "concentration"), _instance)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # log I0(k) = log(exp(-k) I0(k)) + k, finite for large k
        log_i0 = OPS["special_i0e"](k).log() + k
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - log_i0

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy proposal; in float64 because of cancellation.

        For small concentrations this is its Taylor expansion.
        """
        k = self.concentration.detach().double()
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        r = (1 + rho**2) / (2 * rho)
        return (1 / k + k).where(k < 1e-5, r)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples by rejection. Source: Best & Fisher, "Efficient simulation of the von Mises distribution", 1979."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            r, k = self._proposal_r.expand(shape), self.concentration.double().expand(shape)
            x = empty(shape, dtype=r.dtype, device=r.device)
            done = empty(shape, dtype=r.dtype, device=r.device).fill_(0).bool()
            while not bool(done.all()):
                u1, u2, u3 = rand((3, *shape), dtype=r.dtype, device=r.device).unbind()
                f = (math.pi * u1).cos()
                f = (1 + r * f) / (r + f)
                c = k * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = ((u3 - 0.5).sign() * f.clamp(-1, 1).acos()).where(accept & ~done, x)
                done = done | accept
            return ((x + math.pi + self.loc.double()) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(k) / I0(k)."""
        return 1 - _i1_over_i0(self.concentration)

    def entropy(self) -> Tensor:
        """-k I1(k) / I0(k) + log(2 pi I0(k))."""
        k = self.concentration
        log_i0 = OPS["special_i0e"](k).log() + k
        return -k * _i1_over_i0(k) + math.log(2 * math.pi) + log_i0
