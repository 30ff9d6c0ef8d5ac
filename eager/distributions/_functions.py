"""The public functions that the distributions call, with types for the checker. Defines no behaviour."""
from __future__ import annotations

from typing import Any

from eager.base import dtypes
from eager.base.limits import finfo as finfo
from eager.functions import FUNCTIONS
from eager.optable.table import OPS
from eager.random import state_for

arange: Any = FUNCTIONS["arange"]
bernoulli: Any = FUNCTIONS["bernoulli"]
binomial: Any = FUNCTIONS["binomial"]
broadcast_tensors: Any = FUNCTIONS["broadcast_tensors"]
cat: Any = FUNCTIONS["cat"]
diag_embed: Any = FUNCTIONS["diag_embed"]
empty: Any = FUNCTIONS["empty"]
eye: Any = FUNCTIONS["eye"]
full: Any = FUNCTIONS["full"]
full_like: Any = FUNCTIONS["full_like"]
i0: Any = FUNCTIONS["i0"]
logsumexp: Any = FUNCTIONS["logsumexp"]
maximum: Any = FUNCTIONS["maximum"]
multinomial: Any = FUNCTIONS["multinomial"]
mvlgamma: Any = FUNCTIONS["mvlgamma"]
ones: Any = FUNCTIONS["ones"]
poisson: Any = FUNCTIONS["poisson"]
rand: Any = FUNCTIONS["rand"]
randn: Any = FUNCTIONS["randn"]
stack: Any = FUNCTIONS["stack"]
tensor: Any = FUNCTIONS["tensor"]
tril_indices: Any = FUNCTIONS["tril_indices"]
where: Any = FUNCTIONS["where"]
xlogy: Any = FUNCTIONS["xlogy"]
zeros: Any = FUNCTIONS["zeros"]
zeros_like: Any = FUNCTIONS["zeros_like"]
ones_like: Any = FUNCTIONS["ones_like"]
get_default_dtype = dtypes.get_default_dtype


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma at `x`, elementwise."""
    return FUNCTIONS["polygamma"](n, x)


def standard_gamma(concentration: Any) -> Any:
    """Gamma(concentration, 1) variates of the shape of `concentration`, differentiable in it."""
    return OPS["standard_gamma"](state_for(concentration.numel(), None, concentration.device), concentration)


def softplus(x: Any) -> Any:
    """log(1 + e^x), elementwise."""
    return OPS["softplus"](x, 1.0, 20.0)


def logsigmoid(x: Any) -> Any:
    """log(1 / (1 + e^-x)), elementwise."""
    return OPS["log_sigmoid"](x)
