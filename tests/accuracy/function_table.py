"""The functions whose accuracy is measured: how they are called, and where they are sampled.

A function is called through the module it is given, torch or ours.
"""
# ruff: noqa: E501 - tables
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from tests.accuracy import points

Range = tuple[float, float, int]


@dataclass(frozen=True)
class Function:
    """One function. call(torch, x, ...) -> Tensor. ranges, near: see `points.unary`. limit: no points beyond it.

    box, whole: see `points.pairs`. amplitude: errors near a zero of the function are measured in units of this number.
    """

    name: str
    call: Callable[..., Any]
    ranges: tuple[Range, ...] = ()
    near: tuple[float, ...] = ()
    limit: float = float("inf")
    box: tuple[tuple[float, float], tuple[float, float]] | None = None
    whole: str = ""
    amplitude: float = 0.0

    @cached_property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The points, one array an argument."""
        if self.box is not None:
            return points.pairs(*self.box, whole=self.whole)
        x = points.unary(self.ranges, self.near)
        return (x[~(np.isfinite(x) & (np.abs(x) > self.limit))],)


def _of(path: str) -> Callable[..., Any]:
    """Calls the function at a dotted path of the module."""

    def call(torch: Any, *args: Any) -> Any:
        found = torch
        for part in path.split("."):
            found = getattr(found, part)
        return found(*args)

    return call


def _unary(path: str, *ranges: Range, near: tuple[float, ...] = (), limit: float = float("inf"), amplitude: float = 0.0) -> Function:
    return Function(path.rpartition(".")[2], _of(path), ranges, near, limit, amplitude=amplitude)


def _activation(name: str, *ranges: Range, near: tuple[float, ...] = (), **options: Any) -> Function:
    label = name + "".join(f"_{v}" for v in options.values())
    return Function(label, lambda torch, x: getattr(torch.nn.functional, name)(x, **options), ranges, near)


def _power(exponent: float) -> Function:
    return Function(f"pow({exponent:g})", lambda torch, x: x**exponent)



def _binary(path: str, a: tuple[float, float], b: tuple[float, float], whole: str = "") -> Function:
    return Function(path.rpartition(".")[2], _of(path), box=(a, b), whole=whole)


_POLES: Final = (-1.0, -2.0, -3.0, -7.0, -20.0)
_BESSEL: Final = ((0, 12, 60), (12, 60, 40), (60, 400, 12))

UNARY: Final = (
    _unary("exp", (-110, 95, 60), (-750, 715, 60), near=(88.7228317, -87.3365, -103.97, 709.782712, 1e-8)),
    _unary("exp2", (-150, 130, 40), near=(127.9999, -126.0, -149.5)),
    _unary("expm1", (-2, 2, 40), (-50, 95, 40), near=(0.5, -0.5, 1e-5)),
    _unary("log", (0.5, 2, 60), near=(1.0, 0.70710678, 2.0)),
    _unary("log2", (0.5, 2, 60), near=(1.0, 0.70710678, 2.0)),
    _unary("log10", (0.5, 2, 60), near=(1.0, 10.0, 100.0)),
    _unary("log1p", (-1, 2, 60), near=(-1.0, 1e-6, 0.41421356, -0.29289322)),
    _unary("sqrt", (0, 4, 20)), _unary("rsqrt", (0, 4, 20)),
    _unary("sin", (-10, 10, 60), (-1e4, 1e4, 30), near=(3.14159274, 6.2831853, 1.57079633, 314.159265)),
    _unary("cos", (-10, 10, 60), (-1e4, 1e4, 30), near=(3.14159274, 4.71238898, 1.57079633, 7.85398163)),
    _unary("tan", (-10, 10, 60), (-1e4, 1e4, 30), near=(3.14159274, 4.71238898, 1.57079633)),
    _unary("asin", (-1, 1, 60), near=(1.0, -1.0, 0.5, -0.5)), _unary("acos", (-1, 1, 60), near=(1.0, -1.0, 0.5, -0.5)),
    _unary("atan", (-4, 4, 40), near=(1.0, 0.4142)),
    _unary("sinh", (-2, 2, 40), (-95, 95, 40), near=(89.0, 710.0)), _unary("cosh", (-2, 2, 40), (-95, 95, 40), near=(89.0, 710.0)),
    _unary("tanh", (-1, 1, 40), (-20, 20, 40), near=(0.625, 9.01, 0.35)),
    _unary("asinh", (-2, 2, 40), near=(1e-4,)), _unary("acosh", (1, 10, 50), near=(1.0, 2.0)), _unary("atanh", (-1, 1, 60), near=(1.0, -1.0, 0.5)),
    _unary("erf", (-6, 6, 80), (3.5, 4.1, 40), near=(0.0, 1.0, 3.9, 3.7)), _unary("erfc", (-6, 6, 60), (0, 28, 60), near=(0.5, 10.0, 26.5)),
    _unary("erfinv", (-1, 1, 80), near=(1.0, -1.0)),
    _unary("lgamma", (-10, 10, 80), (0, 100, 20), near=(1.0, 2.0, *_POLES, -2.4570247), limit=1e300, amplitude=0.0625),
    _unary("digamma", (-10, 10, 80), (0, 100, 20), near=(1.4616321, *_POLES), amplitude=0.0625),
    _unary("sigmoid", (-20, 20, 40), (-110, 90, 30)), _unary("logit", (0, 1, 60), near=(0.5, 1.0)), _unary("sinc", (-8, 8, 60), near=(1.0, 2.0)),
    _unary("reciprocal"), _unary("square"), _unary("i0", (-20, 20, 40), (-90, 90, 20), limit=1e4), _unary("deg2rad"), _unary("rad2deg"),
    _unary("special.i0e", (-20, 20, 40), limit=1e8), _unary("special.i1", (-20, 20, 40), (-90, 90, 20), limit=1e4),
    _unary("special.i1e", (-20, 20, 40), limit=1e8),
    _unary("special.bessel_j0", *_BESSEL, near=(2.404825557695773, 5.0), limit=1e4, amplitude=0.0625),
    _unary("special.bessel_j1", *_BESSEL, near=(3.8317059702075125, 5.0), limit=1e4, amplitude=0.0625),
    _unary("special.bessel_y0", *_BESSEL, near=(0.8935769662791675,), limit=1e4, amplitude=0.0625),
    _unary("special.bessel_y1", *_BESSEL, near=(2.197141326031017,), limit=1e4, amplitude=0.0625),
    _unary("special.modified_bessel_k0", (0, 4, 40), (4, 100, 20), limit=1e4),
    _unary("special.modified_bessel_k1", (0, 4, 40), (4, 100, 20), limit=1e4),
    _unary("special.scaled_modified_bessel_k0", (0, 4, 40), (4, 100, 20), limit=1e8),
    _unary("special.scaled_modified_bessel_k1", (0, 4, 40), (4, 100, 20), limit=1e8),
    _unary("special.spherical_bessel_j0", (-10, 10, 40), limit=1e6), _unary("special.airy_ai", (-12, 12, 80), limit=100.0, amplitude=0.0625),
    _unary("special.entr", (0, 2, 30)), _unary("special.erfcx", (-5, 30, 60), limit=1e15), _unary("special.ndtr", (-10, 10, 60), (-38, 0, 20)),
    _unary("special.log_ndtr", (-40, 9, 60)), _unary("special.ndtri", (0, 1, 60), near=(0.5, 1.0, 0.1353352832)),
    Function("polygamma(1)", lambda torch, x: torch.special.polygamma(1, x), ((-5, 10, 40),), (-1.0,), 1e15),
    Function("polygamma(2)", lambda torch, x: torch.special.polygamma(2, x), ((0, 10, 40),), (), 1e15),
    Function("polygamma(3)", lambda torch, x: torch.special.polygamma(3, x), ((0, 10, 40),), (), 1e15),
    _activation("gelu", (-6, 6, 80), (-14, 0, 40)), _activation("gelu", (-6, 6, 60), approximate="tanh"), _activation("silu", (-20, 20, 60)),
    _activation("mish", (-20, 20, 60)), _activation("softplus", (-20, 30, 60)), _activation("logsigmoid", (-20, 20, 60)),
    _activation("elu", (-5, 2, 40)), _activation("selu", (-5, 2, 40)), _activation("celu", (-5, 2, 40)), _activation("hardswish", (-4, 4, 40)),
    _activation("softsign"), _activation("tanhshrink", (-3, 3, 40)),
    _power(0.5), _power(-0.5), _power(1 / 3), _power(2), _power(3), _power(-1), _power(-2), _power(4), _power(2.5),
    Function("2**x", lambda torch, x: 2.0**x, ((-150, 130, 40),)),
)  # fmt: skip
BINARY: Final = (
    _binary("atan2", (-5, 5), (-5, 5)), _binary("pow", (0, 12), (-9, 9)), _binary("hypot", (-9, 9), (-9, 9)), _binary("fmod", (-99, 99), (-9, 9)),
    _binary("remainder", (-99, 99), (-9, 9)), _binary("floor_divide", (-99, 99), (-9, 9)), _binary("div", (-9, 9), (-9, 9)),
    _binary("logaddexp", (-9, 9), (-9, 9)), _binary("logaddexp2", (-9, 9), (-9, 9)), _binary("xlogy", (-9, 9), (0, 9)),
    _binary("special.xlog1py", (-9, 9), (-1, 9)), _binary("special.zeta", (1, 9), (0, 9)), _binary("special.gammainc", (0, 20), (0, 30)),
    _binary("special.gammaincc", (0, 20), (0, 30)), _binary("special.chebyshev_polynomial_t", (-1, 1), (0, 9), "b"),
    _binary("special.hermite_polynomial_h", (-3, 3), (0, 9), "b"), _binary("special.legendre_polynomial_p", (-1, 1), (0, 9), "b"),
    _binary("special.laguerre_polynomial_l", (0, 5), (0, 9), "b"), _binary("maximum", (-9, 9), (-9, 9)), _binary("minimum", (-9, 9), (-9, 9)),
    _binary("fmax", (-9, 9), (-9, 9)), _binary("fmin", (-9, 9), (-9, 9)), _binary("copysign", (-9, 9), (-9, 9)),
    _binary("heaviside", (-9, 9), (-9, 9)), _binary("ldexp", (-9, 9), (-9, 9), "b"),
)  # fmt: skip
FUNCTIONS: Final = {f.name: f for f in (*UNARY, *BINARY)}
