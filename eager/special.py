"""`eager.special`: special functions under torch.special's names, pointwise over floating tensors."""
from __future__ import annotations

from typing import Any

from eager.functions import FUNCTIONS
from eager.nn import functional as F
from eager.optable.table import OPS
from eager.public.wrapper import publish_module as _publish_module

_SAME = "digamma erf erfc erfinv exp2 expm1 i0 log1p logit logsumexp polygamma round sinc xlogy".split()
_RENAMED = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "gammainc": "igamma", "gammaincc": "igammac",
            "multigammaln": "mvlgamma", "modified_bessel_i0": "i0"}  # fmt: skip
_OPS = (
    "entr ndtr erfcx log_ndtr ndtri i0e i1 i1e airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 zeta chebyshev_polynomial_t "
    "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
    "laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
    "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"
).split()  # fmt: skip

globals().update({name: FUNCTIONS[name] for name in _SAME})
globals().update({name: FUNCTIONS[of] for name, of in _RENAMED.items()})
globals().update({name: OPS[f"special_{name}"] for name in _OPS})
xlog1py, modified_bessel_i1 = OPS["xlog1py"], OPS["special_i1"]


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Normalised exponentials along `dim`. dtype: cast the input to it first."""
    return F.softmax(input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, computed without underflow."""
    return F.log_softmax(input, dim, dtype=dtype)


_publish_module(globals(), "special_")

__all__ = sorted([*_SAME, *_RENAMED, *_OPS, "xlog1py", "modified_bessel_i1", "softmax", "log_softmax"])
