"""The rarer pointwise functions in the `eager` namespace; `eager.special` offers them, and more, under its own names."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes, return_types
from eager.base.dtypes import result_type, scalar_name
from eager.functions.pointwise import inplace_of
from eager.optable.declaration import composition
from eager.optable.out import write_out
from eager.optable.table import OPS
from eager.public.record import public

TensorBase = _native.TensorBase


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result)


def positive(input: Any) -> Any:
    """The input itself. Raises RuntimeError for a bool tensor."""
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """input ** exponent in double precision (complex, if either is)."""
    wide = dtypes.complex128 if result_type(input, exponent).is_complex else dtypes.float64
    base, power = (OPS["to_dtype"](v, wide) if isinstance(v, TensorBase) else v for v in (input, exponent))
    if not isinstance(base, TensorBase):
        base = OPS["full"]((), base, wide, power.device)
    if out is not None and out.dtype is not wide:
        raise RuntimeError(f"the output given to float_power has dtype {scalar_name(out.dtype)} but the operation's result requires "
                           f"dtype {scalar_name(wide)}")  # fmt: skip
    return _out(OPS["pow"](base, power), out)


def float_power_(self: Any, exponent: Any) -> Any:
    """`float_power` into self. Raises RuntimeError unless self has the double precision of the result."""
    wide = dtypes.complex128 if result_type(self, exponent).is_complex else dtypes.float64
    if self.dtype is not wide:
        raise RuntimeError(f"the base given to float_power_ has dtype {scalar_name(self.dtype)} but the operation's result requires "
                           f"dtype {scalar_name(wide)}")  # fmt: skip
    return OPS["pow_"](self, exponent)


def heaviside(input: Any, values: Any, *, out: Any = None) -> Any:
    """0 below zero, 1 above, `values` at zero. Raises RuntimeError for complex and for different dtypes."""
    if not isinstance(values, TensorBase):
        raise TypeError(f"heaviside(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")
    if input.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype or (out is not None and out.dtype is not input.dtype):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return _out(OPS["heaviside"](input, values), out)


def ldexp(input: Any, other: Any, *, out: Any = None) -> Any:
    """input * 2**other."""
    if not isinstance(other, TensorBase):
        raise TypeError(f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    return _out(_scaled_by_power(input, other), out)


@composition
def _scaled_by_power(input: Any, other: Any) -> Any:
    power = OPS["pow"](2.0, other)
    if other.dtype.is_integral and not input.dtype.is_integral:
        power = OPS["to_dtype"](power, input.dtype.to_real())
    return OPS["mul"](input, power)


@public(parsed=False)
def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """The n-th derivative of digamma. Raises RuntimeError for a negative n."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _out(OPS["digamma"](input) if n == 0 else OPS["polygamma_of"](input, n), out)


@public(name="polygamma", parsed=False)
def _polygamma_of(self: Any, n: int) -> Any:
    return polygamma(n, self)


def mvlgamma(input: Any, p: int, *, out: Any = None) -> Any:
    """The logarithm of the multivariate gamma function of dimension p; input must exceed (p - 1) / 2."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    halves = OPS["arange"](0, -p, -1, None, input.device) / 2
    x = input if not input.dtype.is_integral else OPS["to_dtype"](input, dtypes.get_default_dtype())
    halves = OPS["to_dtype"](halves, x.dtype)
    terms = OPS["lgamma"](OPS["unsqueeze"](x, x.ndim) + halves)
    return _out(OPS["sum"](terms, (x.ndim,), False, None) + p * (p - 1) / 4 * math.log(math.pi), out)


def frexp(input: Any, *, out: Any = None) -> Any:
    """Mantissa in [0.5, 1) and exponent of each value: input = mantissa * 2**exponent."""
    result = return_types.frexp(*OPS["frexp"](input))
    return result if out is None else write_out(out, result)


def logit(input: Any, eps: float | None = None, *, out: Any = None) -> Any:
    """log(x / (1 - x)), the inverse of sigmoid; with `eps`, x is first limited to [eps, 1 - eps]."""
    if isinstance(eps, complex):
        raise TypeError("logit(): argument 'eps' must be float, not complex")
    return _out(OPS["logit"](input, eps), out)


def _infinity_test(name: str) -> Callable[..., Any]:
    """The public test of infinities of one sign: its result is bool, and so must `out` be."""

    def test(input: Any, *, out: Any = None) -> Any:
        if input.dtype.is_complex:
            raise RuntimeError(f"{name} does not support complex inputs.")
        if out is not None and out.dtype is not dtypes.bool_:
            raise RuntimeError(f"{name} does not support non-boolean outputs.")
        return _out(OPS[name](input), out)

    test.__name__ = test.__qualname__ = name
    return test


_PLAIN = "fmax fmin hypot logaddexp logaddexp2 xlogy nextafter gcd lcm sinc i0 deg2rad rad2deg igamma igammac".split()
_INPLACE = "hypot xlogy nextafter gcd lcm sinc i0 deg2rad rad2deg igamma igammac".split()
FUNCTIONS: dict[str, Any] = {
    **{name: OPS[name] for name in _PLAIN}, "positive": positive, "float_power": float_power, "heaviside": heaviside, "ldexp": ldexp,
    "polygamma": polygamma, "mvlgamma": mvlgamma, "frexp": frexp, "logit": logit, "isposinf": _infinity_test("isposinf"),
    "isneginf": _infinity_test("isneginf"), "arcsinh": OPS["asinh"], "arccosh": OPS["acosh"], "arctanh": OPS["atanh"],
}  # fmt: skip
METHODS: dict[str, Any] = {
    **{name: fn for name, fn in FUNCTIONS.items() if name != "polygamma"}, "polygamma": _polygamma_of,
    **{name + "_": OPS[name + "_"] for name in _INPLACE}, "float_power_": float_power_, "heaviside_": inplace_of(heaviside),
    "ldexp_": inplace_of(ldexp),
    "arcsinh_": OPS["asinh_"], "arccosh_": OPS["acosh_"], "arctanh_": OPS["atanh_"], "mvlgamma_": inplace_of(mvlgamma),
    "polygamma_": inplace_of(lambda x, n: polygamma(n, x), "polygamma"), "logit_": inplace_of(logit), "__pos__": positive,
}  # fmt: skip
