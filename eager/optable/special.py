"""Special functions and the rarer pointwise ops: those with a scalar rule compile into loops, the others are kernels."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec, preserve_strides
from eager.optable import special_kernels as sk
from eager.optable.array_functions import hosted
from eager.optable.declaration import fit, no_derivative
from eager.optable.gradient_strides import in_rows
from eager.optable.pointwise import binary, unary
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

_LN2, _SQRT2, _SQRT_PI = math.log(2), math.sqrt(2), math.sqrt(math.pi)


def _in_double(fn: Any) -> Any:
    """A kernel that computes in float64 on the host, for operands of any dtype."""

    def kernel(xp: Any, out: Any, *xs: Any) -> None:
        out[...] = fn(*(np.asarray(x, np.float64) if isinstance(x, (np.ndarray, np.generic)) else x for x in xs))

    return hosted(kernel)


# ---- extremes that ignore nan; distances and logarithms of sums ----

# Of equal numbers, such as 0 and -0, the first: `maximum` gives the second.
FMAX = binary("fmax", lambda k, x, y: k.where(x != x, y, k.where(y != y, x, k.maximum(y, x))),
              {"x": in_rows(lambda g, x, other: OPS["where"](_wins(g, x, other, "ge"), g, 0)),
               "other": in_rows(lambda g, x, other: OPS["where"](_wins(g, x, other, "ge"), 0, g))}, accepts="bif",
              kernel=lambda xp, out, x, y: xp.fmax(y, x, out=out), over_input=True)  # fmt: skip
FMIN = binary("fmin", lambda k, x, y: k.where(x != x, y, k.where(y != y, x, k.minimum(y, x))),
              {"x": in_rows(lambda g, x, other: OPS["where"](_wins(g, x, other, "le"), g, 0)),
               "other": in_rows(lambda g, x, other: OPS["where"](_wins(g, x, other, "le"), 0, g))}, accepts="bif",
              kernel=lambda xp, out, x, y: xp.fmin(y, x, out=out), over_input=True)  # fmt: skip


def _wins(g: Any, x: Any, other: Any, how: str) -> Any:
    x, other = _tensor(x, g), _tensor(other, g)
    return OPS["logical_or"](OPS[how](x, other), OPS["isnan"](other))


HYPOT = binary("hypot", lambda k, x, y: k.hypot(x, y), {"x": lambda g, x, y: g * (x / y), "other": lambda g, other, y: g * (other / y)},
               kernel=lambda xp, out, x, y: xp.hypot(x, y, out=out), accepts="f", over_input=True)  # fmt: skip


def _log_sum_rule(exp: str, unit: float) -> Any:
    def rule(k: Any, x: Any, y: Any) -> Any:
        top = k.maximum(x, y)
        spread = k.where(x == y, 0.0, -k.abs(x - y))  # equal infinities have no difference
        return top + k.log1p(getattr(k, exp)(spread)) / unit

    return rule


def _run_logaddexp(xp: Any, out: Any, x: Any, y: Any) -> None:
    if out.dtype.kind != "c":
        xp.logaddexp(x, y, out=out)
        return
    high = xp.where(x.real >= y.real, x, y)
    low = xp.where(x.real >= y.real, y, x)
    xp.copyto(out, xp.where(low == high, high + _LN2, high + xp.log1p(xp.exp(low - high))))


LOGADDEXP = binary("logaddexp", _log_sum_rule("exp", 1.0),
                   {"x": lambda g, x, other: g * OPS["sigmoid"](x - other),
                    "other": lambda g, x, other: g * OPS["sigmoid"](other - x)}, kernel=_run_logaddexp, accepts="fc")  # fmt: skip
LOGADDEXP2 = binary("logaddexp2", _log_sum_rule("exp2", _LN2),
                    {"x": lambda g, x, other: g * OPS["sigmoid"]((x - other) * _LN2),
                     "other": lambda g, x, other: g * OPS["sigmoid"]((other - x) * _LN2)}, ufunc="logaddexp2", accepts="f")  # fmt: skip


def _where_not_zero(log: str) -> Any:
    def rule(k: Any, x: Any, y: Any) -> Any:
        return k.where(y != y, y, k.where(x == 0, 0.0, x * getattr(k, log)(y)))

    return rule


def _zero_at_zero(log: str, pole: float) -> Any:
    def formula(g: Any, x: Any, other: Any) -> Any:
        x, other = _tensor(x, g), _tensor(other, g)
        return g * OPS["where"](OPS["logical_and"](OPS["eq"](x, 0), OPS["le"](other, pole)), 0.0, OPS[log](other))

    return in_rows(formula)


def _tensor(value: Any, like: Any) -> Any:
    return value if hasattr(value, "stride") else OPS["full"]((), value, like.dtype, like.device)


XLOGY = binary("xlogy", _where_not_zero("log"), {"x": _zero_at_zero("log", 0.0), "other": lambda g, x, other: g * x / other},
               promotion="float", numbers="x other", accepts="bif")  # fmt: skip
XLOG1PY = binary("xlog1py", _where_not_zero("log1p"),
                 {"x": _zero_at_zero("log1p", -1.0), "other": lambda g, x, other: g * x / (other + 1)}, promotion="float",
                 numbers="x other", accepts="bif")  # fmt: skip
HEAVISIDE = binary("heaviside", lambda k, x, y: k.where(x == 0, y, k.where(x > 0, 1, 0)), accepts="bif", underived=True,
                   kernel=lambda xp, out, x, y: xp.copyto(out, xp.where(xp.equal(x, 0), y, xp.greater(x, 0))))  # fmt: skip


def _next_after(xp: Any, out: Any, x: Any, y: Any) -> None:
    xp.nextafter(xp.asarray(x, out.dtype), xp.asarray(y, out.dtype), out=out)


def _next_meta(x: Any, other: Any) -> TensorSpec:
    return OPS["hypot"].infer(x, other)  # pointwise over floating numbers, and nothing else


# Steps of the result's own dtype: not pointwise in the table's sense, which computes half precision in float32.
NEXTAFTER = declare("nextafter(Tensor x, Tensor other) -> Tensor", Kind.OPAQUE, meta=_next_meta, kernel=_next_after, inplace=True,
                    vjp={"x": lambda g, x, other: fit(OPS["where"](OPS["eq"](x, other), 0, g), x),
                         "other": lambda g, other_spec: OPS["full"](tuple(other_spec.shape), 0, g.dtype, g.device)},
                    samples=lambda make: iter([(make(3, 5), make(3, 5)), (make(4, 3).t(), make(4))]))  # fmt: skip


def _int_pairs(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.int(3, 5, low=-20, high=20), make.int(3, 5, low=-7, high=7)
    yield make.int(3, 1, high=20), make.int(4, high=7)


GCD = binary("gcd", None, None, accepts="i", samples=_int_pairs, kernel=lambda xp, out, x, y: xp.gcd(x, y, out=out))
LCM = binary("lcm", None, None, accepts="i", samples=_int_pairs, kernel=lambda xp, out, x, y: xp.lcm(x, y, out=out))

# ---- one operand ----

ISPOSINF = unary("isposinf", lambda k, x: k.logical_and(k.isinf(x), x > 0), promotion="bool", accepts="bif")
ISNEGINF = unary("isneginf", lambda k, x: k.logical_and(k.isinf(x), x < 0), promotion="bool", accepts="bif")


def _scaled_meta(name: str) -> Callable[[SpecLike], TensorSpec]:
    """The layout of `empty_like(x)`, into which torch multiplies."""

    def meta(x: SpecLike) -> TensorSpec:
        return replace(OPS[name].infer_pointwise((x,)), strides=preserve_strides(x))

    return meta


DEG2RAD = unary("deg2rad", lambda k, x: x * (math.pi / 180), lambda g: g * (math.pi / 180), accepts="bif", meta=_scaled_meta("deg2rad"))
RAD2DEG = unary("rad2deg", lambda k, x: x * (180 / math.pi), lambda g: g * (180 / math.pi), accepts="bif", meta=_scaled_meta("rad2deg"))


def _sinc_vjp(g: Any, x: Any) -> Any:
    z = x * math.pi
    return g * OPS["where"](OPS["eq"](x, 0), 0.0, (z * OPS["cos"](z) - OPS["sin"](z)) / z / x)


SINC = unary("sinc", lambda k, x: k.where(x == 0, 1.0, k.sin(x * math.pi) / (x * math.pi)), _sinc_vjp)
LOGIT = unary("logit", lambda k, x, eps: _logit_rule(k, x, eps), lambda g, x, eps: _logit_vjp(g, x, eps), accepts="bif",
              params=", float? eps=None", samples=lambda make: iter([
                  (make(3, 5, low=0.1, high=0.9), None), (make(4, 3, low=0.0, high=1.0).t(), 0.2)]))  # fmt: skip


def _logit_rule(k: Any, x: Any, eps: float | None) -> Any:
    if eps is not None:
        x = k.minimum(k.maximum(x, eps), 1 - eps)
    return k.log(x / (1.0 - x))


def _logit_vjp(g: Any, x: Any, eps: float | None) -> Any:
    slope = g / (x * (1 - x))
    if eps is None:
        return OPS["where"](OPS["logical_or"](OPS["lt"](x, 0), OPS["gt"](x, 1)), math.nan, slope)
    return OPS["where"](OPS["logical_and"](OPS["ge"](x, eps), OPS["le"](x, 1 - eps)), slope, 0.0)


ENTR = unary("special_entr", lambda k, x: k.where(x != x, x, k.where(x > 0, -x * k.log(x), k.where(x == 0, 0.0, -math.inf))),
             lambda g, x: g * (-OPS["log"](x) - 1), accepts="bif")  # fmt: skip
NDTR = unary("special_ndtr", lambda k, x: 0.5 * k.erfc(x * (-1 / _SQRT2)),
             lambda g, x: g * (OPS["exp"](x * x * -0.5) * (1 / math.sqrt(2 * math.pi))), accepts="bif")  # fmt: skip


def _kernel_unary(name: str, fn: Any, vjp: Any = None, **more: Any) -> Any:
    return unary(name, None, vjp, kernel=_in_double(fn), accepts="bif", **more)


ERFCX = _kernel_unary("special_erfcx", sk.erfcx, lambda g, x, y: g * (y * x * 2 - 2 / _SQRT_PI))
LOG_NDTR = _kernel_unary("special_log_ndtr", sk.log_ndtr,
                         lambda g, x: g / OPS["special_erfcx"](x * (-1 / _SQRT2)) * math.sqrt(2 / math.pi))  # fmt: skip
NDTRI = _kernel_unary("special_ndtri", sk.ndtri, lambda g, y: g * (OPS["exp"](y * y * 0.5) * math.sqrt(2 * math.pi)))
I0 = _kernel_unary("i0", sk.i0, lambda g, x: g * OPS["special_i1"](x))
I0E = _kernel_unary("special_i0e", sk.i0e, lambda g, x, y: g * (OPS["special_i1e"](x) - OPS["sign"](x) * y))
I1 = _kernel_unary("special_i1", sk.i1, lambda g, x, y: g * (OPS["i0"](x) - _over(y, x)))
I1E = _kernel_unary("special_i1e", sk.i1e,
                    lambda g, x, y: g * (OPS["special_i0e"](x) - y * OPS["sign"](x) - _over(y, x)))  # fmt: skip


def _over(y: Any, x: Any) -> Any:
    """y / x, where y is odd in x and x / 2 near zero."""
    zero = OPS["eq"](x, 0)
    return OPS["where"](zero, 0.5, y / OPS["where"](zero, 1.0, x))


def _k(order: int, scaled: bool) -> Any:
    return lambda x: sk.modified_bessel_second(x, order, scaled)


_kernel_unary("special_bessel_j0", lambda x: sk.bessel_first(x, 0), lambda g, x: -g * OPS["special_bessel_j1"](x))
_kernel_unary("special_bessel_j1", lambda x: sk.bessel_first(x, 1),
              lambda g, x, y: g * (OPS["special_bessel_j0"](x) - _over(y, x)))  # fmt: skip
_kernel_unary("special_bessel_y0", lambda x: sk.bessel_second(x, 0))
_kernel_unary("special_bessel_y1", lambda x: sk.bessel_second(x, 1))
_kernel_unary("special_airy_ai", sk.airy_ai)
_kernel_unary("special_modified_bessel_k0", _k(0, False), lambda g, x: -g * OPS["special_modified_bessel_k1"](x))
_kernel_unary("special_modified_bessel_k1", _k(1, False), lambda g, x, y: -g * (OPS["special_modified_bessel_k0"](x) + y / x))
_kernel_unary("special_scaled_modified_bessel_k0", _k(0, True), lambda g, x, y: g * (
    y - OPS["special_scaled_modified_bessel_k1"](x)))  # fmt: skip
_kernel_unary("special_scaled_modified_bessel_k1", _k(1, True), lambda g, x, y: g * (
    y - OPS["special_scaled_modified_bessel_k0"](x) - y / x))  # fmt: skip
SPHERICAL_J0 = unary("special_spherical_bessel_j0", lambda k, x: k.where(x == 0, 1.0, k.where(k.isinf(x), 0.0, k.sin(x) / x)),
                     lambda g, x, y: g * OPS["where"](OPS["eq"](x, 0), 0.0, (OPS["cos"](x) - y) / x), accepts="bif")  # fmt: skip

# ---- of several parameters ----


def _run_polygamma(xp: Any, out: Any, x: Any, n: int) -> None:
    _in_double(lambda x: sk.polygamma(n, x))(xp, out, x)


POLYGAMMA = unary("polygamma_of", None, lambda g, x, n: g * OPS["polygamma_of"](x, n + 1), kernel=_run_polygamma, accepts="bif",
                  params=", int n", samples=lambda make: iter([
                      (make(3, 4, low=0.6, high=3.0), 1), (make(4, low=0.6, high=3.0), 2)]))  # fmt: skip
ZETA = binary("special_zeta", None, {"x": no_derivative("zeta's self", "x"),
                                           "other": lambda g, x, other: g * -x * OPS["special_zeta"](x + 1, other)},
              kernel=_in_double(sk.zeta), promotion="float", numbers="x other", accepts="bif", samples=lambda make: iter([
                  (make.int(3, 4, low=2, high=5), make(3, 4, low=0.5, high=3.0))]))  # fmt: skip


def _gamma_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.int(3, 5, low=1, high=5), make(3, 5, low=0.4, high=4.0)
    yield make.int(3, 1, low=1, high=5), make(4, 3, low=0.4, high=4.0).t()


def _gamma_density(x: Any, other: Any) -> Any:
    """The derivative of P(a, t) in t: t^(a-1) exp(-t) / Gamma(a)."""
    return OPS["exp"]((x - 1) * OPS["log"](other) - other - OPS["lgamma"](_tensor(x, other)))


IGAMMA = binary("igamma", None, {"x": no_derivative("igamma's self", "x"),
                                 "other": lambda g, x, other: g * _gamma_density(x, other)}, accepts="f", samples=_gamma_samples,
                kernel=_in_double(lambda a, x: sk.gammainc(a, x, False)))  # fmt: skip
IGAMMAC = binary("igammac", None, {"x": no_derivative("igammac's self", "x"),
                                   "other": lambda g, x, other: -g * _gamma_density(x, other)}, accepts="f", samples=_gamma_samples,
                 kernel=_in_double(lambda a, x: sk.gammainc(a, x, True)))  # fmt: skip


def _degrees(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), make.int(3, 5, high=7)
    yield make(4, 3).t(), 4


_HERMITE_LIMITS: Final = {4: 128, 8: 512}  # by the size of the result's elements: the degree from which torch gives nan


def _limited(kernel: Any) -> Any:
    """The kernel of a Hermite polynomial: nan for the degrees that torch does not evaluate."""

    @hosted
    def evaluate(xp: Any, out: Any, x: Any, n: Any) -> None:
        kernel(xp, out, x, n)
        limit = _HERMITE_LIMITS.get(out.dtype.itemsize, 128)
        xp.copyto(out, np.nan, where=np.isfinite(n) & (np.asarray(n) >= limit), casting="unsafe")

    return evaluate


for _name, _fn in sk.POLYNOMIALS.items():
    _kernel = _in_double(_fn)
    binary(f"special_{_name}", None, None, operand="n", numbers="x n", kernel=_limited(_kernel) if "hermite" in _name else _kernel,
           promotion="float", accepts="bif", samples=_degrees)  # fmt: skip


# ---- mantissa and exponent ----


def _frexp_meta(x: Any) -> Any:
    if not x.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    strides = preserve_strides(x)
    return TensorSpec(tuple(x.shape), x.dtype, strides, x.device), TensorSpec(tuple(x.shape), dtypes.int32, strides, x.device)


def _run_frexp(xp: Any, out: Any, x: Any) -> None:
    mantissa, exponent = xp.frexp(x.astype("f4") if x.dtype.itemsize == 2 else x)
    finite = xp.isfinite(mantissa)
    out[0][...] = mantissa
    out[1][...] = xp.where(finite, exponent, 0)


FREXP = declare("frexp(Tensor x) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_frexp_meta, kernel=_run_frexp, nondifferentiable_outputs=(1,),
                vjp={"x": lambda g, y1: g / OPS["exp2"](OPS["to_dtype"](OPS["detach"](y1), g.dtype))},
                samples=lambda make: iter([(make(3, 4),), (make(4, 3).t(),)]), batch="padded")  # fmt: skip
