"""The loop protocol, and numpy's implementation of it.

A pointwise op states its arithmetic once, as a scalar rule `rule(k, *values)`: values take Python's
operators, and `k` offers the functions below. Code generators implement the same names over their
own expressions; this implementation over arrays is the reference, and the eager kernel of every op
that does not name a faster one.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager import _native
from eager.base import float8
from eager.base.dtypes import dtype

NAMES = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 "
    "erf erfc erfinv lgamma digamma floor ceil round trunc abs sign minimum maximum fmod remainder floordiv truncdiv pow hypot "
    "where cast isnan isinf isfinite signbit copysign logical_and logical_or logical_not logical_xor bitwise_and "
    "bitwise_or bitwise_xor bitwise_not left_shift right_shift const"
).split()


def _erfinv(x: Any) -> Any:
    """Inverse error function: Giles' starting value, then Newton steps in double precision, above one half on 1 - x.

    Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011.
    """
    x64 = np.asarray(x, np.float64)
    w = -np.log((1.0 - x64) * (1.0 + x64))
    near = w < 5.0
    a = np.where(near, w - 2.5, np.sqrt(np.maximum(w, 5.0)) - 3.0)
    central = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
               -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
    tail = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
            0.00943887047, 1.00167406, 2.83297682)  # fmt: skip
    p = np.where(near, central[0], tail[0])
    for c, t in zip(central[1:], tail[1:], strict=True):
        p = np.where(near, c, t) + p * a
    size = np.abs(x64)
    far = w + math.log(2.0)  # -log(1 - |x|) where |x| is close to one: erfc's leading term starts there
    square = far
    for _ in range(2):
        square = far - 0.5 * np.log(np.pi * np.maximum(square, 1.0))
    y = np.where(w < 16.0, p * size, np.sqrt(np.maximum(square, 0.0)))
    for _ in range(3):
        excess = np.where(size < 0.5, native_unary("erf", y) - size, (1.0 - size) - native_unary("erfc", y))
        y = y - excess / (2.0 / math.sqrt(math.pi) * np.exp(-y * y))
    y = np.copysign(y, x64)
    y = np.where(np.abs(x64) == 1.0, np.copysign(np.inf, x64), np.where(np.abs(x64) > 1.0, np.nan, y))
    return y.astype(np.asarray(x).dtype)


def _digamma(x: Any) -> Any:
    """Logarithmic derivative of gamma: recurrence up to 8, then the asymptotic series (A&S 6.3.18); reflection below 0.

    The reflection takes the distance to the nearest pole, which is exact. Poles give nan, zeros an infinity.
    """
    z = np.asarray(x, np.float64)
    reflect = z < 0.0
    w = np.where(reflect, 1.0 - z, z)
    result = np.zeros_like(w)
    for _ in range(8):
        small = w < 8.0
        result = result - np.where(small, 1.0 / w, 0.0)
        w = np.where(small, w + 1.0, w)
    r = 1.0 / (w * w)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (5 / 660 - r * (691 / 32760 - r / 12))))))
    result = result + np.log(w) - 0.5 / w - series
    f = z - np.rint(z)
    result = np.where(reflect, result - np.pi / np.tan(np.pi * f), result)
    result = np.where(z == 0.0, np.copysign(np.inf, -z), np.where((f == 0.0) & (z < 0), np.nan, result))
    return result.astype(np.asarray(x).dtype)


def native_unary(name: str, x: Any) -> Any:
    """A libm function over an array, computed in float64: libm's float32 forms are off by up to 2 units in the last place."""
    x = np.asarray(x)
    source = np.ascontiguousarray(x, np.float64)
    out = np.empty(x.shape, np.float64)
    _native.libm_unary(name, out, source)
    return out.astype(x.dtype, copy=False)


def _kind(x: Any) -> str:
    """The kind of dtype of an array of either device, or of a number."""
    return str(x.dtype.kind if hasattr(x, "dtype") else np.asarray(x).dtype.kind)


def _of_truth(ufunc: Any) -> Any:
    """A logical ufunc of CuPy for every dtype. CuPy refuses complex numbers: it gets `x != 0`."""
    return lambda *xs: ufunc(*[x != 0 if _kind(x) == "c" else x for x in xs])


class ArrayLoop:
    """The protocol over numpy or CuPy arrays: `xp` is the module, `special` its scipy.special, if any."""

    def __init__(self, xp: Any, special: Any = None) -> None:
        self.xp, self.special = xp, special
        for name in ("exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc sign minimum "
                     "maximum fmod hypot isnan isinf isfinite signbit copysign bitwise_and bitwise_or bitwise_xor left_shift "
                     "right_shift").split():  # fmt: skip
            setattr(self, name, getattr(xp, name))
        for name in "logical_and logical_or logical_not logical_xor".split():
            setattr(self, name, getattr(xp, name) if xp is np else _of_truth(getattr(xp, name)))
        renamed = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
                   "atanh": "arctanh", "atan2": "arctan2", "round": "rint", "abs": "absolute", "pow": "power",
                   "floordiv": "floor_divide", "bitwise_not": "invert"}  # fmt: skip
        for name, theirs in renamed.items():
            setattr(self, name, getattr(xp, theirs))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return self.xp.where(condition if hasattr(condition, "dtype") else self.xp.asarray(condition), x, y)

    def rsqrt(self, x: Any) -> Any:
        return 1.0 / self.xp.sqrt(x)

    def remainder(self, x: Any, y: Any) -> Any:
        """x modulo y with the sign of y; of floats, a zero has the sign of x, as torch's."""
        if _kind(x) != "f" and _kind(y) != "f":
            return self.xp.remainder(x, y)
        m = self.xp.fmod(x, y)
        return self.xp.where((m != 0) & ((m < 0) != (y < 0)), m + y, m)

    def truncdiv(self, x: Any, y: Any) -> Any:
        return self.xp.trunc(x / y) if _kind(x) == "f" else (x - self.xp.fmod(x, y)) // y

    def cast(self, x: Any, to: dtype) -> Any:
        return float8.cast(np.asarray(x), to.numpy) if self.xp is np else x.astype(to.numpy)

    def const(self, value: Any, of: dtype) -> Any:
        return np.asarray(value).astype(of.numpy)[()]

    def _special(self, name: str, x: Any) -> Any:
        if self.xp is np:
            return native_unary(name, x)
        if self.special is None:
            raise NotImplementedError(f"{name}: no special functions for {self.xp.__name__} arrays")
        return getattr(self.special, {"lgamma": "gammaln"}.get(name, name))(x)

    def erf(self, x: Any) -> Any:
        return self._special("erf", x)

    def erfc(self, x: Any) -> Any:
        return self._special("erfc", x)

    def lgamma(self, x: Any) -> Any:
        return self._special("lgamma", x)

    def digamma(self, x: Any) -> Any:
        return _digamma(x) if self.xp is np else self._special("digamma", x)

    def erfinv(self, x: Any) -> Any:
        return _erfinv(x) if self.xp is np else self._special("erfinv", x)


NUMPY = ArrayLoop(np)
