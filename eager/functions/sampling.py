"""Draws from the rarer distributions: Poisson, binomial, Cauchy, log-normal and geometric."""
from __future__ import annotations

import math
from typing import Any

from eager import dtypes
from eager.functions.random import rand, randn
from eager.ops.table import OPS


def poisson(input: Any, generator: Any = None) -> Any:
    """Counts with the means `input` (floating, not negative), in its dtype.

    The inverse of the cumulative probability Q(k + 1, mean), found by bisection in k for one uniform draw each.
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"poisson: expected a floating tensor of means, got {input.dtype}")
    mean = OPS["to_dtype"](input.detach(), dtypes.float64)
    u = rand(tuple(input.shape), generator=generator, dtype=dtypes.float64, device=input.device)
    low = OPS["full"](tuple(input.shape), -1.0, dtypes.float64, input.device)  # probability of k <= low is at most u
    high = OPS["ceil"](mean + OPS["sqrt"](mean) * 40 + 40)
    for _ in range(64):
        middle = OPS["floor"]((low + high) / 2)
        enough = OPS["gt"](OPS["igammac"](middle + 1, mean), u)
        searching = OPS["gt"](high - low, 1.0)
        high = OPS["where"](OPS["logical_and"](searching, enough), middle, high)
        low = OPS["where"](OPS["logical_and"](searching, OPS["logical_not"](enough)), middle, low)
    return OPS["to_dtype"](OPS["where"](OPS["eq"](mean, 0.0), 0.0, high), input.dtype)


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """How many of `count` trials succeed with probability `prob`; both floating, of shapes that broadcast."""
    total = count + prob * 0
    most = int(total.max().item()) if total.numel() else 0
    u = rand((most, *total.shape), generator=generator, dtype=dtypes.float64, device=total.device)
    trial = OPS["arange"](0, most, 1, dtypes.float64, total.device).reshape(-1, *([1] * total.ndim))
    hits = OPS["logical_and"](OPS["lt"](u, prob), OPS["lt"](trial, total))
    return OPS["to_dtype"](OPS["sum"](hits, (0,), False, None), total.dtype)


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
