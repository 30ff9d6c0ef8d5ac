"""Writes tests/data/functions_reference.xz: exact values of the functions of tests/accuracy, and torch's special values.

Run with a Python that has torch 2.13 and mpmath: `python -m tests.data.make_functions_reference`.
"""
# ruff: noqa: E501 - tables
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import torch

from tests.accuracy import functions
from tests.accuracy.function_table import FUNCTIONS, Function

mp.mp.dps = 60
M = Any


def _phi(x: M) -> M:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _ndtri(p: M) -> M:
    """Newton's method from scipy's value."""
    from scipy.special import ndtri

    if not 0 < p < 1:
        return mp.inf * (1 if p == 1 else -1) if p in (0, 1) else mp.nan
    if p == mp.mpf(1) / 2:
        return mp.mpf(0)
    x = mp.mpf(float(ndtri(float(p))))
    for _ in range(6):
        x -= (_phi(x) - p) / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
    return x


def _erfinv(x: M) -> M:
    from scipy.special import erfinv

    if abs(x) >= 1:
        return mp.sign(x) * mp.inf if abs(x) == 1 else mp.nan
    y = mp.mpf(float(erfinv(float(x))))
    for _ in range(5):
        error = mp.erf(y) - x if abs(y) < 1 else (mp.erfc(-y) - (1 + x) if y < 0 else (1 - x) - mp.erfc(y))
        y -= error / (2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
    return y


def _positive(f: Callable[[M], M], at_zero: M = mp.inf) -> Callable[[M], M]:
    return lambda x: f(x) if x > 0 else at_zero if x == 0 else mp.nan


def _softplus(x: M) -> M:
    return x if x > 20 else mp.log1p(mp.exp(x))


def _elu(x: M) -> M:
    return x if x > 0 else mp.expm1(x)


_SCALE, _ALPHA = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")


def _remainder(a: M, b: M) -> M:
    return mp.mpf(float(np.remainder(float(a), float(b)))) if abs(a / b) < 1e15 else mp.nan


def _polynomial(first: Any, second: Any, step: Any) -> Any:
    def value(x: M, n: M) -> M:
        before, now = first(x), second(x)
        if n < 0:
            return mp.mpf(0)
        if n == 0:
            return before
        for k in range(1, int(n)):
            before, now = now, step(k, x, now, before)
        return now

    return value


def _one(x: M) -> M:
    return mp.mpf(1)


EXACT: dict[str, Callable[..., M]] = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": _positive(mp.log, -mp.inf),
    "log2": _positive(lambda x: mp.log(x) / mp.log(2), -mp.inf), "log10": _positive(mp.log10, -mp.inf),
    "log1p": lambda x: mp.log1p(x) if x > -1 else -mp.inf if x == -1 else mp.nan, "sqrt": _positive(mp.sqrt, 0),
    "rsqrt": _positive(lambda x: 1 / mp.sqrt(x)), "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
    "asin": lambda x: mp.asin(x) if abs(x) <= 1 else mp.nan, "acos": lambda x: mp.acos(x) if abs(x) <= 1 else mp.nan, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": lambda x: mp.acosh(x) if x >= 1 else mp.nan,
    "atanh": lambda x: mp.atanh(x) if abs(x) < 1 else mp.nan, "erf": mp.erf, "erfc": mp.erfc, "erfinv": _erfinv,
    "lgamma": lambda x: mp.re(mp.loggamma(x)) if x > 0 or x != mp.floor(x) else mp.inf,
    "digamma": lambda x: mp.digamma(x) if x > 0 or x != mp.floor(x) else mp.nan, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "logit": lambda x: mp.log(x / (1 - x)) if 0 < x < 1 else mp.nan, "sinc": mp.sincpi, "reciprocal": lambda x: 1 / x if x else mp.nan,
    "square": lambda x: x * x, "i0": lambda x: mp.besseli(0, x), "deg2rad": lambda x: x * mp.pi / 180, "rad2deg": lambda x: x * 180 / mp.pi,
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), "i1": lambda x: mp.besseli(1, x), "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "bessel_j0": lambda x: mp.besselj(0, x), "bessel_j1": lambda x: mp.besselj(1, x), "bessel_y0": _positive(lambda x: mp.bessely(0, x), -mp.inf),
    "bessel_y1": _positive(lambda x: mp.bessely(1, x), -mp.inf), "modified_bessel_k0": _positive(lambda x: mp.besselk(0, x)),
    "modified_bessel_k1": _positive(lambda x: mp.besselk(1, x)),
    "scaled_modified_bessel_k0": _positive(lambda x: mp.besselk(0, x) * mp.exp(x)),
    "scaled_modified_bessel_k1": _positive(lambda x: mp.besselk(1, x) * mp.exp(x)), "spherical_bessel_j0": mp.sinc, "airy_ai": mp.airyai,
    "entr": lambda x: -x * mp.log(x) if x > 0 else mp.mpf(0) if x == 0 else -mp.inf, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x), "ndtr": _phi,
    "log_ndtr": lambda x: mp.log(_phi(x)) if x < 5 else mp.log1p(-_phi(-x)), "ndtri": _ndtri,
    "polygamma(1)": lambda x: mp.polygamma(1, x) if x > 0 or x != mp.floor(x) else mp.inf, "polygamma(2)": _positive(lambda x: mp.polygamma(2, x), mp.nan),
    "polygamma(3)": _positive(lambda x: mp.polygamma(3, x), mp.nan), "gelu": lambda x: x * _phi(x),
    "gelu_tanh": lambda x: x / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))), "silu": lambda x: x / (1 + mp.exp(-x)),
    "mish": lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), "softplus": _softplus, "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)), "elu": _elu,
    "selu": lambda x: _SCALE * (x if x > 0 else _ALPHA * mp.expm1(x)), "celu": _elu, "hardswish": lambda x: x * min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6,
    "softsign": lambda x: x / (1 + abs(x)), "tanhshrink": lambda x: x - mp.tanh(x), "pow(0.5)": _positive(mp.sqrt, 0),
    "pow(-0.5)": _positive(lambda x: 1 / mp.sqrt(x)), "pow(0.333333)": _positive(lambda x: x ** mp.mpf(1 / 3), 0), "pow(2)": lambda x: x * x,
    "pow(3)": lambda x: x**3, "pow(-1)": lambda x: 1 / x if x else mp.nan, "pow(-2)": lambda x: 1 / (x * x) if x else mp.inf,
    "pow(4)": lambda x: x**4, "pow(2.5)": _positive(lambda x: x ** mp.mpf(2.5), 0), "2**x": lambda x: mp.mpf(2) ** x,
    "atan2": mp.atan2, "pow": lambda x, y: x**y if x > 0 or y == mp.floor(y) else mp.nan, "hypot": mp.hypot,
    "fmod": lambda x, y: mp.mpf(math.fmod(float(x), float(y))), "remainder": _remainder, "div": lambda x, y: x / y,
    "floor_divide": lambda x, y: mp.floor(x / y), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "logaddexp2": lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y) / mp.log(2), "xlogy": lambda x, y: x * mp.log(y) if y > 0 else mp.nan,
    "xlog1py": lambda x, y: x * mp.log1p(y) if y > -1 else mp.nan, "zeta": lambda s, q: mp.zeta(s, q) if s > 1 and q > 0 else mp.nan,
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True) if a > 0 and x >= 0 else mp.nan,
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True) if a > 0 and x >= 0 else mp.nan,
    "chebyshev_polynomial_t": _polynomial(_one, lambda x: x, lambda k, x, a, b: 2 * x * a - b),
    "hermite_polynomial_h": _polynomial(_one, lambda x: 2 * x, lambda k, x, a, b: 2 * x * a - 2 * k * b),
    "legendre_polynomial_p": _polynomial(_one, lambda x: x, lambda k, x, a, b: ((2 * k + 1) * x * a - k * b) / (k + 1)),
    "laguerre_polynomial_l": _polynomial(_one, lambda x: 1 - x, lambda k, x, a, b: ((2 * k + 1 - x) * a - k * b) / (k + 1)),
}  # fmt: skip
_NOT_PADDED = ("zeta", "gammainc", "gammaincc", "airy_ai", "lgamma", "digamma")


def _exact(f: Function) -> np.ndarray:
    """The function's value, rounded to float64; nan where an argument is not finite or the function is undefined."""
    formula = EXACT[f.name]
    values = np.full(len(f.inputs[0]), np.nan)
    for i, args in enumerate(zip(*f.inputs, strict=True)):
        if not all(map(math.isfinite, args)):
            continue
        mp.mp.dps = 60 if max(map(abs, args)) < 1e4 and (min(map(abs, args)) > 1e-6 or f.name in _NOT_PADDED) else 700
        try:
            values[i] = float(formula(*map(mp.mpf, args)))
        except (ZeroDivisionError, OverflowError, ValueError, mp.libmp.NoConvergence):
            continue
    return values


def main() -> None:
    """Compute everything and write the file."""
    parts: dict[str, np.ndarray] = {}
    for name, f in FUNCTIONS.items():
        if name in EXACT:
            parts[name] = _exact(f)
        for dtype in functions.DTYPES:
            keep = functions.representable(f, dtype)
            parts[f"{name}:{dtype}"] = functions.classes(functions.values(torch, f, dtype, "eager", keep))
        print(name, len(f.inputs[0]), file=sys.stderr, flush=True)
    functions.store(parts)
    print(functions.PATH.stat().st_size)


if __name__ == "__main__":
    main()
