"""Special functions over numpy arrays, in double precision: the kernels of optable/special.py.

Each function takes float64 arrays and returns one; each cites the source of its method.
"""
from __future__ import annotations

import math
from functools import wraps
from typing import Any

import numpy as np

from eager.optable.loop_api import NUMPY, native_unary

_EULER = 0.57721566490153286

_BLOCK = 1024  # arguments that a rule of integration works on at once: each needs a number per point of the rule, 38 kB for Airy's


def _in_blocks(fn: Any) -> Any:
    """`fn` of one array and options, which computes each element separately, over blocks of bounded size."""

    @wraps(fn)
    def run(x: Any, *options: Any) -> Any:
        given = np.asarray(x, np.float64)
        if given.size <= _BLOCK:
            return fn(given, *options)
        out, flat = np.empty(given.shape), given.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            out.reshape(-1)[start : start + _BLOCK] = fn(flat[start : start + _BLOCK], *options)
        return out

    return run


def i0e(x: Any) -> Any:
    """exp(-|x|) * I0(x)."""
    return _modified_first(np.abs(x), 0)


def i1e(x: Any) -> Any:
    """exp(-|x|) * I1(x)."""
    value = _modified_first(np.abs(x), 1)
    return np.where(x < 0, -value, value)


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0."""
    return i0e(x) * np.exp(np.abs(x))


def i1(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1."""
    return i1e(x) * np.exp(np.abs(x))


def _modified_first(x: Any, order: int) -> Any:
    """exp(-x) * I_n(x) for x >= 0: the power series, whose terms are all positive, and the asymptotic one from 30 on.

    Source: Abramowitz & Stegun, 9.6.10 and 9.7.1.
    """
    near = np.minimum(x, 30.0)
    quarter = near * near / 4
    term = np.ones_like(near) if order == 0 else near / 2
    total = term.copy()
    for k in range(1, 80):
        term = term * quarter / (k * (k + order))
        total += term
    far = np.maximum(x, 30.0)
    mu, term, series = 4.0 * order * order, np.ones_like(far), np.ones_like(far)
    for k in range(1, 20):
        term = -term * (mu - (2 * k - 1) ** 2) / (k * 8 * far)
        series += term
    result = np.where(x < 30.0, total * np.exp(-near), series / np.sqrt(2 * np.pi * far))
    return np.where(np.isinf(x), 0.0, np.where(np.isnan(x), np.nan, result))


@_in_blocks
def modified_bessel_second(x: Any, order: int, scaled: bool) -> Any:
    """K_n(x), or exp(x) * K_n(x) for n = 0, 1: the power series below 1, above it the integral of exp(-x cosh t) cosh(nt).

    The integrand falls doubly exponentially, so that the trapezoidal rule converges faster than any power of the step.
    Source: Abramowitz & Stegun, 9.6.10, 9.6.11, 9.6.24.
    """
    with np.errstate(all="ignore"):
        far = np.where(x > 1, x, 1.0)
        end = np.arccosh(1 + 745.0 / far)
        t = np.linspace(0.0, 1.0, 400)
        weights = np.full(400, 1 / 399.0)
        weights[0] = weights[-1] = 0.5 / 399.0
        angle = end[..., None] * t
        value = np.sum(np.exp(-2 * far[..., None] * np.sinh(angle / 2) ** 2) * np.cosh(order * angle) * weights, -1) * end
        near = np.where((x > 0) & (x < 1), x, 0.5)
        small = _modified_second_series(near, order)
        value = np.where(x < 1, small * np.exp(near), value) if scaled else np.where(x < 1, small, value * np.exp(-far))
        value = np.where(np.isposinf(x), 0.0, value)
    return np.where(x == 0, np.inf, np.where(x > 0, value, np.nan))


def _modified_second_series(x: Any, order: int) -> Any:
    """K_n(x) for 0 < x < 1 and n = 0, 1."""
    quarter, logarithm = x * x / 4, np.log(x) - math.log(2.0)
    term, total, digamma = np.ones_like(x) if order == 0 else x / 2, np.zeros_like(x), -_EULER if order == 0 else 0.5 - _EULER
    for k in range(14):
        total = total + (digamma - logarithm) * term if order == 0 else total + (logarithm - digamma) * term
        digamma += 1 / (k + 1) if order == 0 else (1 / (k + 1) + 1 / (k + 2)) / 2
        term = term * quarter / ((k + 1) * (k + 1 + order))
    return total if order == 0 else 1 / x + total


def bessel_first(x: Any, order: int) -> Any:
    """J_0(x) or J_1(x), from libm; nan at infinity, as torch's."""
    return np.where(np.isfinite(x), native_unary(f"j{order}", x), np.nan)


def bessel_second(x: Any, order: int) -> Any:
    """Y_0(x) or Y_1(x), from libm: -inf at zero, nan below it and at infinity."""
    value = native_unary(f"y{order}", np.where(x > 0, x, 1.0))
    return np.where(x == 0, -np.inf, np.where((x > 0) & np.isfinite(x), value, np.nan))


_AIRY_ANGLES = np.linspace(0.0, 1.0, 1200)


@_in_blocks
def airy_ai(x: Any) -> Any:
    """Airy's function Ai: the integral of exp(i (t^3 / 3 + x t)) along a line above the real axis, by the trapezoidal rule.

    Through the saddle point for x > 0, so that nothing cancels; close to the axis below, and the asymptotic series before -9.
    nan at infinity. Source: Abramowitz & Stegun, 10.4.32 and 10.4.60.
    """
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        z = np.where(np.isfinite(x), np.maximum(x, -9.0), 0.0)
        height = np.where(z > 1.0, np.sqrt(np.abs(z)), 1 / np.sqrt(np.maximum(1.0, -z)))
        t = np.sqrt(40.0 / height)[..., None] * _AIRY_ANGLES
        values = np.exp(-height[..., None] * t * t) * np.cos(t**3 / 3 + (z - height * height)[..., None] * t)
        total = (np.sum(values, -1) - 0.5 * (values[..., 0] + values[..., -1])) * t[..., 1]
        near = np.exp(height**3 / 3 - z * height) * total / np.pi
        size = np.where(np.isfinite(x), np.maximum(-x, 9.0), 9.0)
        zeta = 2 / 3 * size**1.5
        term, p, q = np.ones_like(zeta), np.ones_like(zeta), np.zeros_like(zeta)
        for k in range(1, 24):
            term = term * (6 * k - 5) * (6 * k - 1) / (72 * k * zeta)
            sign = -1.0 if k % 4 in (2, 3) else 1.0
            p, q = (p, q + sign * term) if k % 2 else (p + sign * term, q)
        angle = zeta + np.pi / 4
        far = (p * np.sin(angle) - q * np.cos(angle)) / (np.sqrt(np.pi) * size**0.25)
        return np.where(np.isfinite(x), np.where(x < -9.0, far, near), np.nan)


def erfcx(x: Any) -> Any:
    """exp(x^2) * erfc(x), with x^2 in two parts; from 10 on its asymptotic series (A&S 7.1.23)."""
    with np.errstate(all="ignore"):
        near = np.minimum(x, 10.0)
        head = np.rint(near * 2.0**20) / 2.0**20
        head = np.where(np.abs(near) < 30, head, near)
        direct = np.exp(head * head) * (NUMPY.erfc(near) * np.exp((near - head) * (near + head)))
        far = np.maximum(x, 10.0)
        r = 1 / (2 * far * far)
        series = np.ones_like(far)
        for k in range(15, 0, -1):
            series = 1 - (2 * k - 1) * r * series
        return np.where(np.isneginf(x), np.inf, np.where(x < 10.0, direct, series / (far * math.sqrt(math.pi))))


def log_ndtr(x: Any) -> Any:
    """The logarithm of the normal distribution's cumulative probability, accurate in both tails."""
    with np.errstate(all="ignore"):
        low = np.log(erfcx(np.maximum(-x, 0.0) / math.sqrt(2)) / 2) - x * x / 2
        high = np.log1p(-NUMPY.erfc(x / math.sqrt(2)) / 2)
        return np.where(np.isneginf(x), -np.inf, np.where(x < -1.0, low, high))


def ndtri(p: Any) -> Any:
    """The normal quantile of probability p: Newton's method on the logarithm, from the tail's leading term; between the
    quartiles through erfinv, which loses no digits near one half."""
    with np.errstate(all="ignore"):
        upper = p > 0.5
        q = np.where(upper, 1 - p, p)
        inside = np.where((q > 0) & (q <= 0.5), q, 0.5)
        target = np.log(inside)
        x = -np.sqrt(np.maximum(-2 * target - np.log(np.maximum(-4 * np.pi * target, 1.0)), 0.0))
        for _ in range(30):
            level = log_ndtr(x)
            slope = np.exp(-x * x / 2 - level) / math.sqrt(2 * math.pi)
            x = x - (level - target) / slope
        x = np.where(q == 0.5, 0.0, np.where(q == 0, -np.inf, np.where(q < 0, np.nan, x)))
        x = np.where(np.abs(p - 0.5) <= 0.25, math.sqrt(2) * NUMPY.erfinv(2 * p - 1), np.where(upper, -x, x))
        return np.where(np.isnan(p), np.nan, x)


# B_2k / (2k)! of the Euler-Maclaurin formula
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_CORRECTIONS = tuple(b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1))


def zeta(s: Any, q: Any) -> Any:
    """Hurwitz's zeta function: a sum of ten terms and the Euler-Maclaurin formula for the rest.

    nan for s < 1, for q < 0 where s is not an integer, and at q = inf, as torch's; inf at s = 1 and at the poles
    q = 0, -1, -2, ...; at s = inf the largest term decides.
    Source: Abramowitz & Stegun, 23.1.30, applied to 23.2.
    """
    with np.errstate(all="ignore"):
        s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
        # q below zero: the terms up to it are summed one by one, as for q in [0, 1)
        shift = np.where((q < 0) & np.isfinite(q), np.minimum(-np.floor(q), 1000.0), 0.0)
        total = np.zeros(s.shape)
        for k in range(int(shift.max(initial=0))):
            total = total + np.where(k < shift, (q + k) ** -s, 0.0)
        base = q + shift
        for k in range(10):
            total = total + (base + k) ** -s
        w = base + 10
        total = total + w ** (1 - s) / (s - 1) + 0.5 * w**-s
        factor, power = s, w ** (-s - 1)
        for k, c in enumerate(_CORRECTIONS, 1):
            total = total + c * factor * power
            factor = factor * (s + 2 * k - 1) * (s + 2 * k)
            power = power / (w * w)
        nearest = np.abs(base)
        nearest = np.where(q < 0, np.minimum(nearest, 1 - nearest), nearest)
        total = np.where(np.isinf(s), np.where(nearest < 1, np.inf, np.where(nearest == 1, 1.0, np.nan)), total)
        total = np.where(np.isposinf(q) | np.isnan(s) | np.isnan(q) | ((q < 0) & (s != np.floor(s))), np.nan, total)
        pole = (q <= 0) & (q == np.floor(q))
        return np.where(s == 1, np.inf, np.where(s < 1, np.nan, np.where(pole, np.inf, total)))


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma, n >= 1, through zeta; trigamma of x < 0 by reflection."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        if n == 1:
            reflected = x < 0
            value = zeta(2.0, np.where(reflected, 1 - x, x))
            value = np.where(reflected, (np.pi / np.sin(np.pi * (x - np.rint(x)))) ** 2 - value, value)
            return np.where(np.isposinf(x), 0.0, value)
        return (-1.0) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, x)


def gammainc(a: Any, x: Any, upper: bool) -> Any:
    """The regularised incomplete gamma function P(a, x), or Q(a, x) if `upper`.

    The series below a + 1 and Legendre's continued fraction (modified Lentz) above.
    Source: Abramowitz & Stegun, 6.5.29 and 6.5.31; Press et al., Numerical Recipes, 6.2.
    """
    with np.errstate(all="ignore"):
        a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
        valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        b, y = np.where(valid, a, 1.0), np.where(valid, x, 1.0)
        small = (b < 30) & (y < 600)  # there nothing overflows; the exponent of the other form is rounded
        direct = np.power(y, b) * np.exp(-y) / native_unary("tgamma", np.where(small, b, 1.0))
        scale = np.where(small, direct, np.exp(-y + b * np.log(y) - NUMPY.lgamma(b)))
        term = 1 / b
        series, k = term.copy(), b.copy()
        for _ in range(2000):
            k = k + 1
            term = term * y / k
            series = series + term
            if not np.any((np.abs(term) > np.abs(series) * 1e-17) & (y < b + 1)):
                break
        fraction = _gamma_fraction(b, y)
        below = y < b + 1
        q = np.where(below, 1 - series * scale, fraction * scale)
        p = np.where(below, series * scale, 1 - fraction * scale)
        result = q if upper else p
        zero, one = (1.0, 0.0) if upper else (0.0, 1.0)
        result = np.where(valid, result, np.nan)
        result = np.where(np.isposinf(x), one, result)  # torch's order of questions: a nan beside an infinity or a zero may not matter
        result = np.where(np.isposinf(a), np.where(np.isposinf(x), np.nan, zero), result)
        result = np.where(x == 0, zero, result)
        result = np.where(a == 0, np.where(x > 0, one, np.nan), result)
        return np.where((x < 0) | (a < 0), np.nan, result)


def _gamma_fraction(a: Any, x: Any) -> Any:
    """The continued fraction of Q(a, x) / (x^a exp(-x) / Gamma(a)), for x >= a + 1."""
    tiny = 1e-300
    b = np.maximum(x, a + 1) + 1 - a
    c, d = np.full_like(b, 1 / tiny), 1 / b
    h = d.copy()
    done = np.zeros(h.shape, bool)
    for i in range(1, 2000):
        an = -i * (i - a)
        b = b + 2
        d = an * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + an / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        factor = d * c
        h = np.where(done, h, h * factor)
        done |= ~(np.abs(factor - 1) > 5e-16)  # further factors are ones and a rounding: their product would drift
        if done.all():
            break
    return h


def _recurrence(first: Any, second: Any, step: Any) -> Any:
    """Values of polynomials of degrees n (an array) from degrees 0 and 1 by a three-term recurrence."""

    def evaluate(x: Any, n: Any) -> Any:
        n = np.asarray(n, np.float64)
        x, n = np.broadcast_arrays(np.asarray(x, np.float64), np.where(np.isfinite(n), np.trunc(n), -1.0))
        before, now = first(x), second(x)
        result = np.where(n < 0, 0.0, np.where(n == 0, before, now))
        for k in range(1, int(np.max(n, initial=0))):
            before, now = now, step(k, x, now, before)
            result = np.where(n == k + 1, now, result)
        return result

    return evaluate


def _shifted(kind: int) -> Any:
    """Chebyshev polynomials of the first to the fourth kind at 2x - 1, which is in [-1, 1] for x in [0, 1]."""
    at_one = (lambda z: z, lambda z: 2 * z, lambda z: 2 * z - 1, lambda z: 2 * z + 1)[kind]
    evaluate = _recurrence(np.ones_like, at_one, lambda k, z, a, b: 2 * z * a - b)
    return lambda x, n: evaluate(2 * np.asarray(x, np.float64) - 1, n)


POLYNOMIALS: dict[str, Any] = {
    "chebyshev_polynomial_t": _recurrence(np.ones_like, lambda x: x, lambda k, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_u": _recurrence(np.ones_like, lambda x: 2 * x, lambda k, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_v": _recurrence(np.ones_like, lambda x: 2 * x - 1, lambda k, x, a, b: 2 * x * a - b),
    "chebyshev_polynomial_w": _recurrence(np.ones_like, lambda x: 2 * x + 1, lambda k, x, a, b: 2 * x * a - b),
    "hermite_polynomial_h": _recurrence(np.ones_like, lambda x: 2 * x, lambda k, x, a, b: 2 * x * a - 2 * k * b),
    "hermite_polynomial_he": _recurrence(np.ones_like, lambda x: x, lambda k, x, a, b: x * a - k * b),
    "laguerre_polynomial_l": _recurrence(np.ones_like, lambda x: 1 - x, lambda k, x, a, b: ((2 * k + 1 - x) * a - k * b) / (k + 1)),
    "shifted_chebyshev_polynomial_t": _shifted(0), "shifted_chebyshev_polynomial_u": _shifted(1),
    "shifted_chebyshev_polynomial_v": _shifted(2), "shifted_chebyshev_polynomial_w": _shifted(3),
    "legendre_polynomial_p": _recurrence(np.ones_like, lambda x: x, lambda k, x, a, b: ((2 * k + 1) * x * a - k * b) / (k + 1)),
}  # fmt: skip
