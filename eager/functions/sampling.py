"""Draws from the rarer distributions: Poisson, binomial, Cauchy, log-normal and geometric."""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.base.spec import broadcast_shapes
from eager.functions.random import rand, randn
from eager.optable.table import OPS
from eager.random import state_for


def poisson(input: Any, generator: Any = None) -> Any:
    """Counts with the means `input` (floating, not negative), in its dtype."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"poisson: expected a floating tensor of means, got {input.dtype}")
    return OPS["poisson"](state_for(input.numel(), generator, input.device), input)


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """How many of `count` trials succeed with probability `prob`; both floating, of shapes that broadcast."""
    n = math.prod(broadcast_shapes(tuple(count.shape), tuple(prob.shape)))
    return OPS["binomial"](state_for(n, generator, count.device), count, prob)


def _floating(who: str, x: Any) -> None:
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"{who}" not implemented for \'{x.dtype.name}\': only floating tensors are filled')


def cauchy_(self: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    """Fill with Cauchy draws. Raises RuntimeError unless sigma > 0."""
    _floating("cauchy", self)
    if sigma <= 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    u = rand(tuple(self.shape), generator=generator, dtype=dtypes.float64, device=self.device)
    return OPS["copy_"](self, OPS["tan"]((u - 0.5) * math.pi) * sigma + median)


def log_normal_(self: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Any:
    """Fill with exponentials of normal draws. Raises RuntimeError unless std > 0."""
    _floating("log_normal", self)
    if std <= 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    z = randn(tuple(self.shape), generator=generator, dtype=self.dtype, device=self.device)
    return OPS["copy_"](self, OPS["exp"](z * std + mean))


def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Fill with the number of the first success (from 1) in trials of probability p in (0, 1)."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    u = rand(tuple(self.shape), generator=generator, dtype=dtypes.float64, device=self.device)
    return OPS["copy_"](self, OPS["clamp"](OPS["ceil"](OPS["log1p"](-u) / math.log1p(-p)), 1, None))


FUNCTIONS: dict[str, Any] = {"poisson": poisson, "binomial": binomial}
METHODS: dict[str, Any] = {"cauchy_": cauchy_, "log_normal_": log_normal_, "geometric_": geometric_}
