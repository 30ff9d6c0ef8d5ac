"""Pointwise ops: one scalar rule each, applied to broadcast inputs in a promoted dtype."""
from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from eager import _native
from eager.base import float8
from eager.base.scalars import check_element
from eager.base.spec import SpecLike, TensorSpec, broadcast_shapes, preserve_strides, strides_like
from eager.optable.declaration import cast_to
from eager.optable.gradient_strides import elementwise_over
from eager.optable.loop_api import NUMPY
from eager.optable.memory import cuda_loop
from eager.optable.piecewise import piecewise_linear
from eager.optable.precision import FLOAT32_ON_CUDA, LOWER, PROMOTE_ON_CUDA
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op, declare

Rule = Callable[..., Any]


def _unary_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield (make(3, 5, low=0.2, high=0.8),)
    yield (make(4, 3, low=0.2, high=0.8).t(),)
    yield (make(0, 4, low=0.2, high=0.8),)
    yield (make(low=0.2, high=0.8),)


def _binary_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5, low=0.3, high=2.0), make(3, 5, low=0.4, high=1.9)
    yield make(3, 1, low=0.3, high=2.0), make(4, low=0.4, high=1.9)
    yield make(5, 3, low=0.3, high=2.0).t(), make(low=0.3, high=2.0)
    yield make(0, 4, low=0.3, high=2.0), make(1, 4, low=0.3, high=2.0)


def _number_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield from _binary_samples(make)
    yield make(5, 3, low=0.3, high=2.0).t(), 1.5


def _int_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.int(3, 5, high=20), make.int(3, 5, high=7)
    yield make.int(3, 1, high=20), make.int(4, high=7)


def unary(name: str, scalar: Rule | None, vjp: Rule | None = None, *, ufunc: str | None = None, promotion: str = "float",
          params: str = "", **more: Any) -> Op:  # fmt: skip
    """Declare `name(Tensor x, ...)`; without `vjp` its gradient is zero almost everywhere."""
    more.setdefault("samples", _unary_samples)
    if vjp is not None:
        more["vjp"] = {"x": vjp}
    else:
        more["nondifferentiable"] = True
    return declare(f"{name}(Tensor x{params}) -> Tensor", Kind.POINTWISE, scalar=scalar, ufunc=ufunc, promotion=promotion,
                   inplace=promotion != "bool", **more)  # fmt: skip


def binary(name: str, scalar: Rule | None, vjp: dict[str, Rule] | None = None, *, ufunc: str | None = None,
           promotion: str = "default", operand: str = "other", numbers: str = "", **more: Any) -> Op:  # fmt: skip
    """Declare `name(Tensor x, Tensor other)`. operand: the name of the second. numbers: the parameters that may be numbers."""
    more.setdefault("samples", _number_samples if numbers else _binary_samples)
    return declare(f"{name}(Tensor x, Tensor {operand}) -> Tensor", Kind.POINTWISE, scalar=scalar, ufunc=ufunc, vjp=vjp,
                   promotion=promotion, nondifferentiable=vjp is None and not more.get("underived"), inplace=True, numbers=numbers,
                   **more)  # fmt: skip


def _zero(g: Any) -> Any:
    return OPS["fill"](g, 0)  # of infinite ones too


# ---- arithmetic ----

ADD = binary("add", lambda k, x, y: x + y, {"x": lambda g: g, "other": lambda g: g}, ufunc="add", numbers="all")
SUB = binary("sub", lambda k, x, y: x - y, {"x": lambda g: g, "other": lambda g: -g}, ufunc="subtract", numbers="all")
MUL = binary("mul", lambda k, x, y: x * y, {"x": lambda g, other: g * other, "other": lambda g, x: g * x},
             ufunc="multiply", float8=True, numbers="all", by_one_number=True, in_opmath=False)  # fmt: skip
DIV = binary("div", lambda k, x, y: x / y,
             {"x": lambda g, other: g / other, "other": lambda g, x, other: -g * (x / other / other)},
             ufunc="true_divide", promotion="float", numbers="all", by_one_number=True)  # fmt: skip


def _whole(compute: Rule) -> Rule:
    """The kernel of a division that integers are closed under; a zero divisor raises, as in torch."""

    def kernel(xp: Any, out: Any, x: Any, y: Any) -> None:
        if out.dtype.kind in "iu" and not (np.all(y) if np.isscalar(y) else xp.all(y)):
            raise RuntimeError("ZeroDivisionError")
        compute(xp, out, x, y)

    return kernel


def _may_hold(xp: Any, condition: Any) -> bool:
    """Whether a condition, a bool or an array, may hold for an element. The host does not wait for the elements of a device's array."""
    return bool(np.any(condition)) if xp is np or isinstance(condition, (bool, np.bool_)) else True


def _floor_divide(xp: Any, out: Any, x: Any, y: Any) -> None:
    by_zero = y == 0 if out.dtype.kind == "f" else False
    if not _may_hold(xp, by_zero):
        xp.floor_divide(x, y, out=out)
    elif isinstance(by_zero, (bool, np.bool_)):  # numpy has nan where the quotient is infinite
        xp.true_divide(x, y, out=out)
    else:
        xp.copyto(out, xp.where(by_zero, xp.true_divide(x, y), xp.floor_divide(x, y)))


def _run_remainder(xp: Any, out: Any, x: Any, y: Any) -> None:
    if out.dtype.kind == "f":
        xp.copyto(out, (NUMPY if xp is np else cuda_loop()).remainder(x, y))
    else:
        xp.remainder(x, y, out=out)


_CONSTANT_STEPS: Final[dict[str, Rule]] = {"x": _zero, "other": _zero}
_floored = functools.partial(binary, scalar=lambda k, x, y: k.floordiv(x, y), kernel=_whole(_floor_divide), fallible=True, accepts="if",
                             over_input=True, numbers="all", by_one_number=True)  # fmt: skip
FLOOR_DIVIDE = _floored("floor_divide", underived=True)  # torch has no derivative of this op, but one of the next
DIV_FLOOR = _floored("div_floor", vjp=_CONSTANT_STEPS)
TRUNC_DIVIDE = binary("trunc_divide", lambda k, x, y: k.truncdiv(x, y), _CONSTANT_STEPS, fallible=True, accepts="if", numbers="all",
                      kernel=_whole(lambda xp, out, x, y: xp.copyto(out, NUMPY.truncdiv(x, y), casting="unsafe")),
                      by_one_number=True)  # fmt: skip
REMAINDER = binary("remainder", lambda k, x, y: k.remainder(x, y),
                   {"x": lambda g: g, "other": lambda g, x, other: -g * OPS["div_floor"](x, other)},
                   numbers="x other", fallible=True, accepts="if",
                   kernel=_whole(lambda xp, out, x, y: _run_remainder(xp, out, x, y)), over_input=True)  # fmt: skip
FMOD = binary("fmod", lambda k, x, y: k.fmod(x, y),
              {"x": lambda g: g, "other": lambda g, x, other: -g * OPS["trunc_divide"](x, other)},
              numbers="other", fallible=True, accepts="if",
              kernel=_whole(lambda xp, out, x, y: xp.fmod(x, y, out=out)), over_input=True)  # fmt: skip


def _pow_base(g: Any, x: Any, exponent: Any) -> Any:
    if not hasattr(exponent, "stride"):
        if exponent == 0:
            return _zero(g)
        if exponent == 2:
            return g * (x * 2)
        return g * (exponent * x ** (exponent - 1))
    return OPS["where"](exponent == 0, 0.0, g * (exponent * x ** (exponent - 1)))


def _pow_exponent(g: Any, x: Any, exponent: Any, y: Any) -> Any:
    if not hasattr(x, "stride"):
        return g * (y * _log_of_number(x, y)) if x != 0 else OPS["where"](_at_least_zero(exponent), 0.0, g * y * -math.inf)
    log = (OPS["to_dtype"](x, y.dtype) if y.dtype.is_complex else x).log()
    return OPS["where"]((x == 0) & _at_least_zero(exponent), 0.0, g * y * log)


def _at_least_zero(exponent: Any) -> Any:
    return (exponent.imag == 0) & (exponent.real >= 0) if exponent.dtype.is_complex else exponent >= 0


def _log_of_number(x: Any, y: Any) -> Any:
    """log(x) in the domain of `y`: undefined for a negative number if y is real."""
    if isinstance(x, complex) or y.dtype.is_complex:
        return cmath.log(x)
    return math.log(x) if x > 0 else math.nan




# As torch: these numbers as exponents are separate roots, products and quotients. At -0 and -inf the roots differ from `pow`;
# of complex numbers `pow` gives nan at 0 and at infinities.
_NUMBER_POWERS: Final[dict[float, Rule]] = {
    0.5: lambda k, x: k.sqrt(x), -0.5: lambda k, x: k.rsqrt(x), 2: lambda k, x: x * x, 3: lambda k, x: x * x * x,
    -1: lambda k, x: 1.0 / x, -2: lambda k, x: 1.0 / (x * x),
}  # fmt: skip


def _pow_rule(k: Any, x: Any, y: Any) -> Any:
    rule = _NUMBER_POWERS.get(y) if y.__class__ in (int, float) else None
    return k.pow(x, y) if rule is None else rule(k, x)


def _run_pow(xp: Any, out: Any, x: Any, y: Any) -> None:
    if out.dtype.kind in "fc" and y.__class__ in (int, float) and y in _NUMBER_POWERS:
        xp.copyto(out, _NUMBER_POWERS[y](NUMPY if xp is np else cuda_loop(), x))
        return
    if out.dtype.kind == "f" and y.__class__ in (int, float):
        y = xp.full((1,) * x.ndim, y, out.dtype)  # numpy special-cases another list of exponents
    elif out.dtype.kind == "f" and _may_hold(xp, root := abs(y) == 0.5):  # numpy may take roots, of -0 and -inf too
        x = xp.where(root & ((x == 0) | xp.isinf(x)), xp.abs(x), x)
    if out.dtype.kind not in "iu" or not _may_hold(xp, y < 0):
        xp.power(x, y, out=out)
        return
    # integers to negative powers: 1 stays, -1 alternates, all else is truncated to zero
    powers = xp.power(x, xp.maximum(y, 0))
    xp.copyto(out, xp.where(xp.less(y, 0), xp.where(xp.equal(x, 1), 1, xp.where(xp.equal(x, -1), 1 - 2 * (y & 1), 0)), powers))


POW = binary("pow", _pow_rule, {"x": _pow_base, "exponent": _pow_exponent}, operand="exponent", numbers="x exponent", kernel=_run_pow,
             over_input=True, accepts="ifc", numbers_as_given=True, scalars=("x", "exponent"), precision=FLOAT32_ON_CUDA)  # fmt: skip


def _pow_of_symbol(k: Any, x: Any, y: Any) -> Any:
    return k.where(y == 0.5, k.sqrt(x), k.where(y == -0.5, k.rsqrt(x), k.pow(x, y)))


# A power of a number that a compiled graph takes as a 0-d tensor: `pow` of that number.
binary("pow_of_symbol", _pow_of_symbol,
       {"x": lambda g, x, exponent: OPS["where"](exponent == 0, 0.0, g * (exponent * OPS["pow_of_symbol"](x, exponent - 1))),
        "exponent": _pow_exponent}, operand="exponent", accepts="f",
       samples=lambda make: iter([(make(3, 5, low=0.3, high=2.0), make(low=0.4, high=1.9))]))  # fmt: skip


def _share(g: Any, mine: Any, theirs: Any, loses: Any) -> Any:
    """Gradient of a maximum or minimum: halved at ties, and whole for both where one is nan."""
    g = OPS["where"](mine == theirs, g / 2, g)
    return OPS["where"](loses, 0.0, g)


MAXIMUM = binary("maximum", lambda k, x, y: k.maximum(x, y),
                 {"x": lambda g, x, other: _share(g, x, other, x < other),
                  "other": lambda g, x, other: _share(g, x, other, other < x)}, ufunc="maximum",
                 accepts="bif")  # fmt: skip
MINIMUM = binary("minimum", lambda k, x, y: k.minimum(x, y),
                 {"x": lambda g, x, other: _share(g, x, other, x > other),
                  "other": lambda g, x, other: _share(g, x, other, other > x)}, ufunc="minimum",
                 accepts="bif")  # fmt: skip
def _atan2_vjp(across: Any, x: Any, other: Any) -> Any:
    """`across` over the squared distance from the origin, where it is zero."""
    square = x * x + other * other
    return across / OPS["where"](OPS["eq"](square, 0), 1.0, square)


ATAN2 = binary("atan2", lambda k, x, y: k.atan2(x, y),
               {"x": lambda g, x, other: _atan2_vjp(g * other, x, other),
                "other": lambda g, x, other: _atan2_vjp(-g * x, x, other)}, ufunc="arctan2", promotion="float",
               accepts="bif", precision=PROMOTE_ON_CUDA)  # fmt: skip
COPYSIGN = binary("copysign", lambda k, x, y: k.copysign(x, y),
                  {"x": lambda g, x, y: g * OPS["where"](x == 0, 0, y / x), "other": _zero}, ufunc="copysign", promotion="float",
                  numbers="other", accepts="bif")  # fmt: skip

# ---- comparison and logic ----

for _name, _rule, _ufunc in (
    ("eq", lambda k, x, y: x == y, "equal"), ("ne", lambda k, x, y: x != y, "not_equal"),
):  # fmt: skip
    binary(_name, _rule, ufunc=_ufunc, promotion="bool", numbers="other", casts_result=True, float8=True)
for _name, _rule, _ufunc in (
    ("lt", lambda k, x, y: x < y, "less"), ("le", lambda k, x, y: x <= y, "less_equal"),
    ("gt", lambda k, x, y: x > y, "greater"), ("ge", lambda k, x, y: x >= y, "greater_equal"),
):  # fmt: skip
    binary(_name, _rule, ufunc=_ufunc, promotion="bool", numbers="other", casts_result=True, accepts="bif")
for _name, _rule, _ufunc in (
    ("logical_and", lambda k, x, y: k.logical_and(x, y), "logical_and"),
    ("logical_or", lambda k, x, y: k.logical_or(x, y), "logical_or"),
    ("logical_xor", lambda k, x, y: k.logical_xor(x, y), "logical_xor"),
):  # fmt: skip
    binary(_name, _rule, ufunc=_ufunc, promotion="bool", casts_result=True)
LOGICAL_NOT = unary("logical_not", lambda k, x: k.logical_not(x), ufunc="logical_not", promotion="bool")
declare("logical_not_(Tensor x) -> Tensor", Kind.INPLACE, base=LOGICAL_NOT, samples=_unary_samples)
LOGICAL_NOT.casts_result = True
for _name, _rule, _ufunc in (
    ("bitwise_and", lambda k, x, y: k.bitwise_and(x, y), "bitwise_and"),
    ("bitwise_or", lambda k, x, y: k.bitwise_or(x, y), "bitwise_or"),
    ("bitwise_xor", lambda k, x, y: k.bitwise_xor(x, y), "bitwise_xor"),
):  # fmt: skip
    binary(_name, _rule, ufunc=_ufunc, numbers="x other", samples=_int_samples, accepts="bi")
for _name, _rule, _ufunc in (
    ("left_shift", lambda k, x, y: k.left_shift(x, y), "left_shift"),
    ("right_shift", lambda k, x, y: k.right_shift(x, y), "right_shift"),
):  # fmt: skip
    binary(_name, _rule, ufunc=_ufunc, numbers="x other", samples=_int_samples, accepts="i")


def _one_int(make: Any) -> Iterator[tuple[Any, ...]]:
    yield (make.int(3, 5, high=9),)
    yield (make.bool(4),)


BITWISE_NOT = unary("bitwise_not", lambda k, x: k.bitwise_not(x), ufunc="invert", promotion="default", samples=_one_int, accepts="bi")
ISNAN = unary("isnan", lambda k, x: k.isnan(x), ufunc="isnan", promotion="bool", float8=True)
ISINF = unary("isinf", lambda k, x: k.isinf(x), ufunc="isinf", promotion="bool", float8=True)
ISFINITE = unary("isfinite", lambda k, x: k.isfinite(x), ufunc="isfinite", promotion="bool", float8=True)
SIGNBIT = unary("signbit", lambda k, x: k.signbit(x), ufunc="signbit", promotion="bool", accepts="bif")

# ---- elementary functions ----


def _through_float64(name: str) -> dict[str, Any]:
    """The kernel of a numpy function whose float32 form is off by up to 2 units in the last place, or has no subnormal results."""

    def kernel(xp: Any, out: Any, x: Any) -> None:
        if xp is np and out.dtype == np.float32:
            getattr(np, name)(x, out=out, dtype=np.float64, casting="same_kind")
        else:
            getattr(xp, name)(x, out=out)

    return {"ufunc": name, "kernel": kernel, "over_input": True}


NEG = unary("neg", lambda k, x: -x, lambda g: -g, ufunc="negative", promotion="default", accepts="ifc")
ABS = unary("abs", lambda k, x: k.abs(x), lambda g, x: g * OPS["sgn"](x), ufunc="absolute", promotion="real", float8=True, accepts="ifc")


def _run_sign(xp: Any, out: Any, x: Any) -> None:
    if x.dtype.kind == "b":
        xp.copyto(out, x)
        return
    xp.sign(x, out=out)
    if out.dtype.kind == "f":
        xp.copyto(out, 0, where=xp.isnan(x))


def _sgn_vjp(g: Any, x: Any, y: Any) -> Any:
    """Zero for real numbers; for complex ones the part of g across the direction of x, over |x|."""
    if not x.dtype.is_complex:
        return OPS["full"](tuple(x.shape), 0, g.dtype, g.device)
    size = OPS["abs"](x)
    along = OPS["real"](y * g)  # g comes conjugated, as every cotangent of an op with complex results
    return OPS["where"](OPS["eq"](size, 0), 0, (g - along * OPS["conj"](y)) / size)


def _run_sgn(xp: Any, out: Any, x: Any) -> None:
    if x.dtype.kind == "c":  # x / |x|, which has a nan in each infinite part, as torch's has
        size = xp.abs(x)
        size = xp.where(size == 0, 1, size)
        real, imag = x.real / size, x.imag / size
        out.real[...], out.imag[...] = real, imag
    else:
        _run_sign(xp, out, x)


SGN = unary("sgn", lambda k, x: k.where(x == x, k.sign(x), 0), _sgn_vjp, kernel=_run_sgn, promotion="default", over_input=True)
SIGN = unary("sign", lambda k, x: k.where(x == x, k.sign(x), 0), _zero, kernel=_run_sign, promotion="default", accepts="bif",
             over_input=True)  # fmt: skip
SQUARE = unary("square", lambda k, x: x * x, lambda g, x: g * (x * 2), ufunc="square", promotion="default", accepts="ifc")
RECIPROCAL = unary("reciprocal", lambda k, x: 1.0 / x, lambda g, y: -g * (y * y), precision=FLOAT32_ON_CUDA)
EXP = unary("exp", lambda k, x: k.exp(x), lambda g, y: g * y, ufunc="exp", precision=FLOAT32_ON_CUDA)
EXP2 = unary("exp2", lambda k, x: k.exp2(x), lambda g, y: g * (y * math.log(2)), **_through_float64("exp2"))
EXPM1 = unary("expm1", lambda k, x: k.expm1(x), lambda g, y: g * (y + 1), ufunc="expm1", precision=FLOAT32_ON_CUDA)
LOG = unary("log", lambda k, x: k.log(x), lambda g, x: g / x, ufunc="log", precision=FLOAT32_ON_CUDA)
LOG2 = unary("log2", lambda k, x: k.log2(x), lambda g, x: g / (x * math.log(2)), **_through_float64("log2"), precision=FLOAT32_ON_CUDA)
LOG10 = unary("log10", lambda k, x: k.log10(x), lambda g, x: g / (x * math.log(10)), **_through_float64("log10"), precision=FLOAT32_ON_CUDA)
LOG1P = unary("log1p", lambda k, x: k.log1p(x), lambda g, x: g / (x + 1), ufunc="log1p", precision=FLOAT32_ON_CUDA)
SQRT = unary("sqrt", lambda k, x: k.sqrt(x), lambda g, y: g / (y * 2), ufunc="sqrt")
RSQRT = unary("rsqrt", lambda k, x: k.rsqrt(x), lambda g, y: g * -0.5 * (y * y * y), precision=FLOAT32_ON_CUDA)
SIN = unary("sin", lambda k, x: k.sin(x), lambda g, x: g * x.cos(), ufunc="sin")
COS = unary("cos", lambda k, x: k.cos(x), lambda g, x: -g * x.sin(), ufunc="cos")
TAN = unary("tan", lambda k, x: k.tan(x), lambda g, y: g * (y * y + 1), **_through_float64("tan"), precision=FLOAT32_ON_CUDA)
ASIN = unary("asin", lambda k, x: k.asin(x), lambda g, x: g * (1 - x * x).rsqrt(), **_through_float64("arcsin"), precision=FLOAT32_ON_CUDA)
ACOS = unary("acos", lambda k, x: k.acos(x), lambda g, x: -g * (1 - x * x).rsqrt(), **_through_float64("arccos"), precision=FLOAT32_ON_CUDA)
ATAN = unary("atan", lambda k, x: k.atan(x), lambda g, x: g / (x * x + 1), ufunc="arctan")
SINH = unary("sinh", lambda k, x: k.sinh(x), lambda g, x: g * x.cosh(), ufunc="sinh", precision=FLOAT32_ON_CUDA)
COSH = unary("cosh", lambda k, x: k.cosh(x), lambda g, x: g * x.sinh(), ufunc="cosh", precision=FLOAT32_ON_CUDA)
TANH = unary("tanh", lambda k, x: k.tanh(x), lambda g, y: g * (1 - y * y), ufunc="tanh")
ASINH = unary("asinh", lambda k, x: k.asinh(x), lambda g, x: g * (x * x + 1).rsqrt(), ufunc="arcsinh")


def _acosh_vjp(g: Any, x: Any) -> Any:
    return g * ((x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt())


ACOSH = unary("acosh", lambda k, x: k.acosh(x), _acosh_vjp, ufunc="arccosh",
              samples=lambda make: iter([(make(3, 4, low=1.2, high=3.0),)]))  # fmt: skip
ATANH = unary("atanh", lambda k, x: k.atanh(x), lambda g, x: g / (1 - x * x), ufunc="arctanh")
ERF = unary("erf", lambda k, x: k.erf(x), lambda g, x: OPS["exp"](-x * x) * (2 / math.sqrt(math.pi)) * g, accepts="bif")
ERFC = unary("erfc", lambda k, x: k.erfc(x), lambda g, x: OPS["exp"](-x * x) * (-2 / math.sqrt(math.pi)) * g, accepts="bif")
ERFINV = unary("erfinv", lambda k, x: k.erfinv(x),
               lambda g, x: OPS["exp"](x.erfinv().square()) * (math.sqrt(math.pi) / 2) * g, accepts="bif", precision=FLOAT32_ON_CUDA)
LGAMMA = unary("lgamma", lambda k, x: k.lgamma(x), lambda g, x: g * OPS["digamma"](x), accepts="bif")


DIGAMMA = unary("digamma", lambda k, x: k.digamma(x), lambda g, x: g * OPS["polygamma_of"](x, 1), accepts="bif")
FLOOR = unary("floor", lambda k, x: k.floor(x), _zero, ufunc="floor", promotion="default", accepts="if")
CEIL = unary("ceil", lambda k, x: k.ceil(x), _zero, ufunc="ceil", promotion="default", accepts="if")
def _run_round(xp: Any, out: Any, x: Any) -> None:
    xp.copyto(out, xp.rint(x) if out.dtype.kind == "f" else x)


ROUND = unary("round", lambda k, x: k.round(x), _zero, kernel=_run_round, promotion="default", accepts="if", over_input=True)
TRUNC = unary("trunc", lambda k, x: k.trunc(x), _zero, ufunc="trunc", promotion="default", accepts="if")
FRAC = unary("frac", lambda k, x: x - k.trunc(x), lambda g: g, promotion="default", accepts="f")

# ---- activations whose rule is one expression ----

SIGMOID = unary("sigmoid", lambda k, x: 1.0 / (1.0 + k.exp(-x)), lambda g, y: g * ((1 - y) * y))
RELU = unary("relu", lambda k, x: k.maximum(x, 0), elementwise_over("y g", piecewise_linear(lambda g, y: OPS["where"](y <= 0, 0, g), "y")),
             promotion="default", accepts="if")  # fmt: skip
SILU = unary("silu", lambda k, x: x / (1.0 + k.exp(-x)), lambda g, x: _silu_vjp(g, x), accepts="fc")


def _silu_vjp(g: Any, x: Any) -> Any:
    s = x.sigmoid()
    return g * (s * (1 + x * (1 - s)))


LEAKY_RELU = unary("leaky_relu", lambda k, x, slope: k.where(x > 0, x, x * slope),
                   elementwise_over("x g", piecewise_linear(
                       lambda g, x, negative_slope: OPS["where"](x > 0, g, g * negative_slope))),
                   params=", Scalar negative_slope=0.01", promotion="default",
                   samples=lambda make: iter([(make(3, 4), 0.1)]), accepts="f")  # fmt: skip
HARDTANH = unary("hardtanh", lambda k, x, low, high: k.where((x > low) & (x < high), x, k.minimum(k.maximum(x, low), high)),
                 elementwise_over("g x", piecewise_linear(
                     lambda g, x, min_val, max_val: OPS["where"]((x > min_val) & (x < max_val), g, 0))),
                 params=", Scalar min_val=-1, Scalar max_val=1", promotion="default", accepts="f",
                 samples=lambda make: iter([(make(3, 4), -0.5, 0.25)]))  # fmt: skip
SOFTSHRINK = unary("softshrink", lambda k, x, lambd: k.where(k.abs(x) > lambd, k.where(x < 0, x + lambd, x - lambd), x * 0.0),
                   elementwise_over("g x", piecewise_linear(lambda g, x, lambd: OPS["where"](x.abs() > lambd, g, 0))),
                   params=", Scalar lambd=0.5", promotion="default", accepts="f",
                   samples=lambda make: iter([(make(3, 4), 0.5)]))  # fmt: skip
HARDSHRINK = unary("hardshrink", lambda k, x, lambd: k.where(k.abs(x) <= lambd, 0.0, x),
                   elementwise_over("g x", piecewise_linear(lambda g, x, lambd: OPS["where"](x.abs() > lambd, g, 0))),
                   params=", Scalar lambd=0.5", promotion="default", accepts="f",
                   samples=lambda make: iter([(make(3, 4), 0.5)]))  # fmt: skip
THRESHOLD = unary("threshold", lambda k, x, bound, value: k.where(x <= bound, value, x),
                  elementwise_over("x g", piecewise_linear(lambda g, x, threshold: OPS["where"](x <= threshold, 0, g))),
                  params=", Scalar threshold, Scalar value", promotion="default", accepts="f",
                  samples=lambda make: iter([(make(3, 4), 0.1, 20.0)]))  # fmt: skip
# Where x is positive an infinite one makes no nan of the weight's gradient.
PRELU = declare("prelu(Tensor x, Tensor weight) -> Tensor", Kind.POINTWISE, scalar=lambda k, x, weight: k.where(x > 0, x, x * weight),
                vjp={"x": elementwise_over("x weight g", piecewise_linear(lambda g, x, weight: OPS["where"](x > 0, g, g * weight))),
                     "weight": piecewise_linear(lambda g, x: OPS["where"](x > 0, 0, g * x), "weight")}, accepts="f",
                samples=lambda make: iter([(make(3, 4), make(4)), (make(2, 3, 2), make(3, 1))]), precision=LOWER)  # fmt: skip
ELU = unary("elu", lambda k, x, alpha: k.where(x > 0, x, alpha * k.expm1(k.where(x > 0, 0.0, x))),
            elementwise_over("g x", lambda g, x, alpha: OPS["where"](x > 0, g, g * (alpha * OPS["exp"](x)))),
            params=", Scalar alpha=1.0", samples=lambda make: iter([(make(3, 4), 1.3)]), accepts="f")  # fmt: skip
CELU = unary("celu", lambda k, x, alpha: k.where(x > 0, x, alpha * k.expm1(k.where(x > 0, 0.0, x) / alpha)),
             elementwise_over("g x", lambda g, x, alpha: OPS["where"](x > 0, g, g * OPS["exp"](x / alpha))),
             params=", Scalar alpha=1.0", samples=lambda make: iter([(make(3, 4), 1.3)]), accepts="f")  # fmt: skip
HARDSWISH = unary("hardswish", lambda k, x: x * k.minimum(k.maximum(x + 3.0, 0.0), 6.0) / 6.0,
                  elementwise_over("g x", lambda g, x: OPS["where"](x <= -3, 0, OPS["where"](x >= 3, g, g * (x / 3 + 0.5)))), accepts="f",
                  samples=lambda make: iter([(make(3, 4, low=-2.9, high=2.9),), (make(3, 4, low=3.1, high=5.0),)]))  # fmt: skip
HARDSIGMOID = unary("hardsigmoid", lambda k, x: k.minimum(k.maximum(x + 3.0, 0.0), 6.0) / 6.0,
                    elementwise_over("g x", piecewise_linear(lambda g, x: OPS["where"]((x > -3) & (x < 3), g / 6, 0))), accepts="f",
                    samples=lambda make: iter([(make(3, 4, low=-2.9, high=2.9),), (make(3, 4, low=3.1, high=5.0),)]))  # fmt: skip


def _mish_vjp(g: Any, x: Any) -> Any:
    t = OPS["tanh"](OPS["softplus"](x, 1.0, 20.0))
    return g * (t + x * x.sigmoid() * (1 - t * t))


MISH = unary("mish", lambda k, x: x * k.tanh(k.log1p(k.exp(k.minimum(x, 20.0)))), _mish_vjp, accepts="f")
SOFTPLUS = unary("softplus",
                 lambda k, x, beta, threshold: k.where(x * beta > threshold, x,
                                                       k.log1p(k.exp(k.minimum(x * beta, threshold))) / beta),
                 elementwise_over("g x", lambda g, x, beta, threshold: OPS["where"](x * beta > threshold, g, g * (x * beta).sigmoid())),
                 params=", Scalar beta=1.0, Scalar threshold=20.0",
                 samples=lambda make: iter([(make(3, 4), 1.5, 20.0)]), accepts="f", precision=FLOAT32_ON_CUDA)  # fmt: skip
LOG_SIGMOID = unary("log_sigmoid", lambda k, x: k.minimum(x, 0) - k.log1p(k.exp(-k.abs(x))),
                    elementwise_over("x g", lambda g, x: g * (-x).sigmoid()), accepts="f")

_SQRT_HALF, _INV_SQRT_2PI = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
_TANH_COEF, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def _gelu_erf_vjp(g: Any, x: Any) -> Any:
    cdf = (OPS["erf"](x * _SQRT_HALF) + 1) * 0.5
    return g * (cdf + x * (OPS["exp"](x * x * -0.5) * _INV_SQRT_2PI))


# The argument of the sigmoid in the same order of operations as in the kernel: a fused loop then computes its exponential once.
def _gelu_tanh_vjp(g: Any, x: Any) -> Any:
    s = ((x + x * x * x * _TANH_CUBE) * (2 * _TANH_COEF)).sigmoid()
    return g * (s + x * ((1 - s) * s) * ((x * x * (3 * _TANH_CUBE) + 1) * (2 * _TANH_COEF)))


GELU_ERF = unary("gelu_erf", lambda k, x: 0.5 * x * (1.0 + k.erf(x * _SQRT_HALF)), _gelu_erf_vjp, accepts="f")
# (1 + tanh(u)) / 2 is the sigmoid of 2u, which does not cancel where tanh is near -1.
GELU_TANH = unary("gelu_tanh", lambda k, x: x / (1.0 + k.exp(-((x + x * x * x * _TANH_CUBE) * (2 * _TANH_COEF)))), _gelu_tanh_vjp,
                  accepts="f")

# ---- selection, casts, copies ----



def _where_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.bool(3, 5), make(3, 5), make(3, 5)
    yield make.bool(5), make(3, 1), 2.0
    yield make.bool(3, 5), 0.0, make(3, 5)


def _run_where(xp: Any, out: Any, condition: Any, x: Any, other: Any) -> None:
    float8.store(xp, out, xp.where(condition, x, other))


WHERE = declare("where(Tensor condition, Tensor x, Tensor other) -> Tensor", Kind.POINTWISE, promotion="select", numbers="x other",
                scalar=lambda k, c, x, y: k.where(c, x, y), kernel=_run_where,
                vjp={"x": lambda g, condition: OPS["where"](condition, g, 0),
                     "other": lambda g, condition: OPS["where"](condition, 0, g)}, float8=True, samples=_where_samples)  # fmt: skip


def _clamp_rule(k: Any, x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = k.maximum(x, low)
    return x if high is None else k.minimum(x, high)


def _clamp_vjp(g: Any, x: Any, min: Any, max: Any) -> Any:  # noqa: A002 - torch's names
    if min is not None:
        g = OPS["where"](x >= min, g, 0)
    return g if max is None else OPS["where"](x <= max, g, 0)


def _clamp_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), -0.5, 0.5
    yield make(3, 5), None, 0.1
    yield make(3, 5), make(5, low=-1.0, high=-0.5), make(3, 1, low=0.1, high=0.5)


CLAMP = declare("clamp(Tensor x, Tensor? min=None, Tensor? max=None) -> Tensor", Kind.POINTWISE, numbers="min max", scalar=_clamp_rule,
                vjp={"x": _clamp_vjp,
                     "min": lambda g, x, min, max: OPS["where"](
                         (x < min) if max is None else (x < min) & (min < max), g, 0),
                     "max": lambda g, x, min, max: OPS["where"](
                         (x > max) if min is None else (x > max) | (max < min), g, 0)},
                inplace=True, samples=_clamp_samples, accepts="bif", scalars=("min", "max"))  # fmt: skip


def _cast_meta(x: SpecLike, dtype: Any) -> TensorSpec:
    return TensorSpec(tuple(x.shape), dtype, preserve_strides(x), x.device)


def _cast_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for name in ("float64", "float32", "int64", "bool", "bfloat16"):
        yield make(3, 4, low=-3.0, high=3.0), make.dtype(name)
    yield make.int(4, 3, high=5).t(), make.dtype("float32")


def _cast_vjp(g: Any, x_spec: SpecLike) -> Any:
    return cast_to(g, x_spec.dtype)


TO_DTYPE = declare("to_dtype(Tensor x, dtype dtype) -> Tensor", Kind.POINTWISE, promotion="raw",
                   scalar=lambda k, x, dtype: k.cast(x, dtype), meta=_cast_meta,
                   vjp={"x": _cast_vjp}, float8=True, samples=_cast_samples, linear_in=("x",))  # fmt: skip


def _clone_meta(x: SpecLike, memory_format: str | None) -> TensorSpec:
    return TensorSpec(tuple(x.shape), x.dtype, strides_like(x, memory_format), x.device)


def _move(xp: Any, out: Any, x: Any) -> None:
    """out = x, cast and broadcast. Large copies that change the order of elements go by tiles, over the threads."""
    if xp is np and out.size >= _LARGE_COPY and isinstance(x, np.ndarray) and out.shape == x.shape and out.dtype is x.dtype:
        bits = _BITS.get(x.dtype.itemsize)
        if bits is not None and not np.may_share_memory(out, x) and _native.copy_array(out.view(bits), x.view(bits)):
            return
    float8.store(xp, out, x)


_LARGE_COPY: Final = 4096  # elements
_BITS: Final = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}

CLONE = declare("clone(Tensor x, str? memory_format=None) -> Tensor", Kind.POINTWISE, promotion="raw",
                scalar=lambda k, x, memory_format: x, kernel=lambda xp, out, x, memory_format: _move(xp, out, x),
                meta=_clone_meta, vjp={"x": lambda g: g}, float8=True,
                samples=lambda make: iter([(make(3, 4).t(), None), (make(3, 4).t(), "contiguous")]),
                batch="as_clone", linear_in=("x",))  # fmt: skip


def _copy_meta(x: SpecLike, src: Any) -> TensorSpec:
    if hasattr(src, "stride") and broadcast_shapes(x.shape, src.shape) != tuple(x.shape):
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape "
                           f"{list(broadcast_shapes(x.shape, src.shape))}")  # fmt: skip
    return TensorSpec(tuple(x.shape), x.dtype, preserve_strides(x), x.device)


def _copy_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), make(4)
    yield make(4, 3).t(), make.int(3, 4, high=5)


# The functional form of `copy_`: the values of `src`, in the shape, dtype and layout of `x`.
COPY = declare("copy(Tensor x, Tensor src) -> Tensor", Kind.POINTWISE, promotion="raw", numbers="src",
               scalar=lambda k, x, src: src, kernel=lambda xp, out, x, src: _move(xp, out, src), over_input=True, meta=_copy_meta,
               vjp={"x": _zero, "src": lambda g: g}, casts_result=True, inplace=True, float8=True,
               samples=_copy_samples, batch="shaped_by_first")  # fmt: skip


def _fill_meta(x: SpecLike, value: Any) -> TensorSpec:
    check_element(value, x.dtype)
    return TensorSpec(tuple(x.shape), x.dtype, preserve_strides(x), x.device)


FILL = declare("fill(Tensor x, Scalar value) -> Tensor", Kind.POINTWISE, promotion="raw",
               scalar=lambda k, x, value: value, meta=_fill_meta, vjp={"x": _zero}, float8=True,
               kernel=lambda xp, out, x, value: float8.fill(out, value), casts_result=True, inplace=True, over_input=True,
               samples=lambda make: iter([(make(3, 4), 2.5), (make.int(3, high=4), 2)]), batch="shaped_by_first")  # fmt: skip
