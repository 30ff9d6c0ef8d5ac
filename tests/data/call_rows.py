"""Rows of calls: pointwise functions, operators and reductions. Read by calls.py."""
from __future__ import annotations

from dataclasses import dataclass

DTYPES = {"b1": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f2": "float16",
          "bf": "bfloat16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"}  # fmt: skip
ALL, INTS, FLOATS = " ".join(DTYPES), "u1 i1 i2 i4 i8", "f2 bf f4 f8"
FEW, REAL, FAST = "b1 u1 i4 i8 f2 f4 f8 c8", "b1 u1 i4 i8 f2 bf f4 f8", "i8 f4"


@dataclass(frozen=True)
class Row:
    """Names of functions, codes of dtypes and templates of calls."""

    functions: str
    dtypes: str
    templates: str


UNARY = """
T.{f}(t('{d}', 3, 4)) | T.{f}(special('{d}')) | t('{d}', 2, 3).{f}()
"""
UNARY_ONCE = """
T.{f}(t('f4', 4, 3).t()) | T.{f}(t('f4', 3, 8)[:, ::2]) | T.{f}(t('f4', 3, 1).expand(3, 4)) | T.{f}(t('f4', 0, 4)) | T.{f}(t('f4'))
T.{f}(t('f4', 2, 3, 4).permute(2, 0, 1)) | T.{f}(t('f4', 2, 3, 4, 5)[:, 1:].transpose(0, 3)) | T.{f}(t('f4', 4, 3).t()[1:, ::2])
T.{f}(t('f4', 3), out=T.empty(3)) | T.{f}(t('f4', 3), out=T.empty(0)) | T.{f}(t('f4', 3), out=T.empty(3, dtype=T.float64))
T.{f}(t('f4', 3), out=T.empty(3, dtype=T.int64)) | T.{f}(t('i8', 3), out=T.empty(3, dtype=T.int64)) | T.{f}(t('f4', 3, 4), out=T.empty(4, 3).t())
T.{f}(3.0) | T.{f}() | T.{f}('a') | T.{f}(None) | T.{f}(t('f4', 3), 1, 2, 3, 4, 5, 6, 7)
"""
UNARY_INPLACE = """
t('f4', 3, 4).{f}() | t('i8', 3, 4).{f}() | t('b1', 3).{f}() | t('f2', 3).{f}() | t('c8', 3).{f}() | t('f4', 1).expand(3).{f}() | t('f4', 4, 3).t()[1:].{f}()
"""
BINARY = """
T.{f}(t('{d}', 3, 4), t('{d}', 3, 4, seed=0.7)) | T.{f}(t('{d}', 3, 4), t('{d}', 4, seed=0.7)) | T.{f}(special('{d}'), special('{d}').flip(0))
T.{f}(t('{d}', 3), t('f4')) | T.{f}(t('{d}', 3), t('i8')) | T.{f}(t('{d}'), t('i4', 3)) | T.{f}(t('{d}', 2, 3), t('f8', 3, seed=0.7)) | T.{f}(t('u1', 3), t('{d}', 3))
T.{f}(t('f2', 3), t('{d}', 3, seed=0.6))
"""
BINARY_NUMBER = """
T.{f}(t('{d}', 3, 4), 2) | T.{f}(t('{d}', 3, 4), 2.5) | T.{f}(t('{d}', 3), True) | T.{f}(t('{d}'), 2) | T.{f}(t('{d}', 3), -3) | T.{f}(t('{d}', 3), 0) | T.{f}(t('{d}', 3), 1j)
"""
BINARY_REVERSED = """
T.{f}(2, t('{d}', 3)) | T.{f}(2.5, t('{d}', 3, 4)) | T.{f}(-3, t('{d}', 3))
"""
BINARY_ONCE = """
T.{f}(t('f4', 4, 3).t(), t('f4', 4, 3).t()) | T.{f}(t('f4', 4, 3).t(), t('f4', 3, 4)) | T.{f}(t('f4', 3, 4), t('f4', 4, 3).t()) | T.{f}(t('f4', 4, 3).t(), t('f4', 4))
T.{f}(t('f4', 3, 1), t('f4', 1, 4)) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), t('f4', 3, 4)) | T.{f}(t('f4', 0, 4), t('f4', 1, 4)) | T.{f}(t('f4', 3, 0), t('f4', 3, 1))
T.{f}(t('f4', 3, 8)[:, ::2], t('f4', 3, 1).expand(3, 4)) | T.{f}(t('f4', 3), t('f4', 4)) | T.{f}(t('f4', 2, 3), t('f4', 2)) | T.{f}(t('f4', 3, 4), t('f4', 3, 4), out=T.empty(3, 4))
T.{f}(t('f4', 3, 4), t('f4', 3, 4), out=T.empty(0)) | T.{f}(t('f4', 3), t('f4', 3), out=T.empty(3, dtype=T.int32)) | T.{f}(t('f4', 3), t('f4', 3), out=T.empty(3, dtype=T.float64))
T.{f}(t('f4', 3)) | T.{f}(t('f4', 3), 'a') | T.{f}(t('f4', 3), None) | T.{f}(t('f4', 3), [1, 2, 3]) | t('f4', 3).{f}(t('f4', 3, seed=2.))
"""
BINARY_INPLACE = """
t('f4', 3, 4).{f}(t('f4', 4, seed=0.7)) | t('f4', 3).{f}(t('i8', 3)) | t('i8', 3).{f}(t('f4', 3)) | t('i8', 3).{f}(t('i4', 3)) | t('f4', 3).{f}(t('f8', 3)) | t('f4', 3).{f}(t('f4', 2, 3)) | t('i4', 3).{f}(2)
t('i4', 3).{f}(2.5) | t('f2', 3).{f}(2.5) | t('u1', 3).{f}(2) | t('b1', 3).{f}(t('b1', 3)) | t('f4', 3).{f}(t('c8', 3)) | t('f4', 4, 3).t().{f}(t('f4', 4)) | t('f4', 1).expand(3).{f}(t('f4', 3)) | t('b1', 3).{f}(True)
"""
OPERATOR = """
t('{d}', 3, 4) {f} t('{d}', 3, 4, seed=0.7) | t('{d}', 3) {f} 2 | t('{d}', 3) {f} 2.5 | 2 {f} t('{d}', 3) | 2.5 {f} t('{d}', 3) | t('{d}', 3) {f} t('f4') | True {f} t('{d}', 3) | t('{d}', 3) {f} -2
t('{d}') {f} t('i8', 2) | t('f4', 3) {f} t('{d}', 3) | t('{d}') {f} 2.5
"""
REDUCTION = """
T.{f}(t('{d}', 3, 4)) | T.{f}(t('{d}', 3, 4), 0) | T.{f}(t('{d}', 2, 3, 4), -1, True) | T.{f}(special('{d}')) | T.{f}(special('{d}'), 0) | t('{d}', 3, 4).{f}(dim=1) | T.{f}(t('{d}'))
"""
REDUCTION_ONCE = """
T.{f}(t('f4', 4, 3).t(), 0) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), 1) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), 0, keepdim=True) | T.{f}(t('f4', 3, 8)[:, ::2], 1) | T.{f}(t('f4', 3, 1).expand(3, 4), 1)
T.{f}(t('f4', 0, 4)) | T.{f}(t('f4', 0, 4), 0) | T.{f}(t('f4', 0, 4), 1) | T.{f}(t('f4'), 0) | T.{f}(t('f4'), -1, True) | T.{f}(t('f4', 3, 4), 2) | T.{f}(t('f4', 3, 4), -3) | T.{f}(t('f4', 3), 'a') | T.{f}(t('f4', 3), 0.5)
T.{f}(t('f4', 2, 3, 4), dim=1, keepdim=True) | T.{f}([1.0]) | T.{f}()
"""
REDUCTION_DIMS = """
T.{f}(t('f4', 2, 3, 4), (0, 2)) | T.{f}(t('f4', 2, 3, 4), [-1, 0], keepdim=True) | T.{f}(t('f4', 2, 3, 4), dim=()) | T.{f}(t('f4', 2, 3), (0, 0)) | T.{f}(t('f4', 2, 3), (0, -2)) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), (0, 1))
T.{f}(t('f4', 2, 3, 4), (0, 1, 2)) | T.{f}(t('f4', 2, 3), (0, 5))
"""
SCAN = """
T.{f}(t('{d}', 3, 4), 0) | T.{f}(t('{d}', 2, 3, 4), -1) | T.{f}(special('{d}'), 0) | t('{d}', 3, 4).{f}(1) | T.{f}(t('{d}'), 0)
"""
SCAN_ONCE = """
T.{f}(t('f4', 4, 3).t(), 0) | T.{f}(t('f4', 3, 8)[:, ::2], 1) | T.{f}(t('f4', 0, 4), 0) | T.{f}(t('f4', 0, 4), 1) | T.{f}(t('f4', 3), 1) | T.{f}(t('f4', 3)) | T.{f}(t('f4', 3), -2) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), dim=1)
"""

_FLOAT_UNARY = ("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
                "erfinv lgamma digamma sigmoid reciprocal logit i0 sinc deg2rad rad2deg")  # fmt: skip
_SAME_UNARY = "neg abs sign square floor ceil trunc frac round relu positive sgn conj_physical angle"
_TEST_UNARY = "isnan isinf isfinite signbit logical_not bitwise_not isposinf isneginf isreal"
_ALIASED = "absolute negative arccos arcsin arctan arcsinh arccosh arctanh fix special.expit special.erf special.gammaln special.psi"
_BINARY = "add sub mul div true_divide floor_divide remainder fmod maximum minimum atan2 copysign pow fmax fmin hypot logaddexp logaddexp2 xlogy heaviside nextafter gcd lcm ldexp float_power"
_COMPARE = "eq ne lt le gt ge logical_and logical_or logical_xor"
_BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
_NO_NUMBER = "maximum minimum fmax fmin hypot logaddexp logaddexp2 heaviside nextafter gcd lcm atan2 logical_and logical_or logical_xor"

ROWS: dict[str, list[Row]] = {
    "unary": [
        Row(f"{_FLOAT_UNARY} {_SAME_UNARY} {_TEST_UNARY}", ALL, UNARY), Row(f"{_FLOAT_UNARY} {_SAME_UNARY} {_TEST_UNARY}", "", UNARY_ONCE),
        Row("absolute negative arccos arcsin arctan arcsinh arccosh arctanh fix", FAST, UNARY),
        Row(" ".join(n + "_" for n in f"{_FLOAT_UNARY} neg abs sign square floor ceil trunc frac round relu sgn logical_not bitwise_not".split()),
            "", UNARY_INPLACE),
        Row("special.expit special.erf special.gammaln special.psi special.entr special.erfcx special.ndtr special.log_ndtr special.ndtri special.i0e special.i1 special.i1e special.digamma special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.modified_bessel_i0 special.modified_bessel_k0 special.modified_bessel_k1 special.modified_bessel_i1 special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.airy_ai",
            "i8 b1 f4 f8 c8 f2", "T.{f}(t('{d}', 3, 4)) | T.{f}(special('{d}')) | T.{f}(t('{d}', 0))"),
        Row("round", "f4 f8 f2 i8", "T.round(t('{d}', 3), decimals=1) | T.round(t('{d}', 3) * 100, decimals=-1) | t('{d}', 3).round(decimals=2) | t('{d}', 3).round_(decimals=1)"),
        Row("nan_to_num", ALL, "T.nan_to_num(special('{d}')) | special('{d}').nan_to_num(nan=1, posinf=2, neginf=-2) | special('{d}').nan_to_num_(0.5)"),
        Row("clamp clip", ALL, "T.{f}(t('{d}', 3, 4), -1, 1) | T.{f}(t('{d}', 3), min=0.5) | T.{f}(t('{d}', 3), max=2) | T.{f}(special('{d}'), 0, 3) | T.{f}(t('{d}', 3), t('f4', 3), t('f4')) | T.{f}(t('{d}', 3), max=t('i8', 2, 3)) | T.{f}(t('{d}', 3), 1, -1) | t('{d}', 3).{f}_(0, 1)"),
        Row("clamp", "", "T.clamp(t('f4', 3)) | T.clamp(t('f4', 3), t('f4', 3), 1) | T.clamp(t('f4', 3), nan, 1) | T.clamp(t('f4', 3), t('f4', 2)) | T.clamp(t('f4', 4, 3).t(), 0) | T.clamp(t('f4', 3), 0, 1, out=T.empty(3)) | T.clamp(t('i8', 3), 0, out=T.empty(3)) | t('i8', 3).clamp_(0.5) | t('f4', 3).clamp_(t('f8', 3)) | T.clamp(T.tensor([nan, 1.]), T.tensor([0., nan]))"),
        Row("clamp_min clamp_max", REAL, "T.{f}(t('{d}', 3, 4), 1) | T.{f}(t('{d}', 3), 0.5) | T.{f}(t('{d}', 3), t('f4', 3)) | t('{d}', 3).{f}_(1)"),
        Row("polygamma", "f4 f8 i8", "T.polygamma(0, t('{d}', 3).abs() + 1) | T.polygamma(1, t('{d}', 3)) | T.polygamma(2, t('{d}', 3).abs() + 1) | t('{d}', 3).polygamma(1) | T.polygamma(-1, t('{d}', 3))"),
        Row("mvlgamma", "f4 f8 i8", "T.mvlgamma(t('{d}', 3).abs() + 3, 2) | T.mvlgamma(t('{d}', 3), 3)"),
        Row("frexp", "f4 f8 f2 i8", "T.frexp(t('{d}', 3, 4)) | T.frexp(special('{d}')[3:])"),
        Row("special.zeta special.xlog1py special.xlogy special.gammainc special.gammaincc", "f4 f8 i8", "T.{f}(t('{d}', 3, 4).abs() + 1, t('{d}', 3, 4, seed=0.7).abs() + 1) | T.{f}(special('{d}'), special('{d}').flip(0)) | T.{f}(t('{d}', 3).abs() + 1, t('f4', 3).abs())"),
        Row("special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w", "f4 f8", "T.{f}(t('{d}', 4), T.tensor([0, 1, 2, 5])) | T.{f}(t('{d}', 4), 3) | T.{f}(t('{d}', 4) / 3, 8)"),
    ],
    "binary": [
        Row(f"{_BINARY} {_COMPARE} {_BITS}", ALL, BINARY), Row(f"{_BINARY} {_COMPARE} {_BITS}", "", BINARY_ONCE),
        Row("add sub mul div true_divide floor_divide remainder fmod pow copysign xlogy float_power ldexp eq ne lt le gt ge " + _BITS, ALL, BINARY_NUMBER),
        Row("pow remainder xlogy float_power bitwise_and bitwise_or bitwise_left_shift", ALL, BINARY_REVERSED),
        Row(_NO_NUMBER, "", "T.{f}(t('f4', 3), 2) | T.{f}(2, t('f4', 3))"),
        Row(" ".join(n + "_" for n in "add sub mul div true_divide floor_divide remainder fmod atan2 copysign pow xlogy heaviside nextafter gcd lcm ldexp float_power hypot eq lt logical_and bitwise_and bitwise_xor".split()),
            "", BINARY_INPLACE),
        Row("add sub", ALL, "T.{f}(t('{d}', 3), t('{d}', 3, seed=.7), alpha=2) | T.{f}(t('{d}', 3), 1, alpha=2) | T.{f}(t('{d}', 3), t('{d}', 3), alpha=1.5) | T.{f}(t('{d}', 3), t('{d}', 3), alpha=True) | T.rsub(t('{d}', 3), 2) | t('{d}', 3).{f}_(t('{d}', 3), alpha=2)"),
        Row("div", ALL, "T.div(t('{d}', 3, 4), t('{d}', 3, 4, seed=.7), rounding_mode='floor') | T.div(t('{d}', 3, 4), t('{d}', 3, 4, seed=.7), rounding_mode='trunc') | T.div(t('{d}', 3, 4), 2, rounding_mode='floor') | T.div(t('{d}', 3, 4), -2, rounding_mode='trunc') | T.div(special('{d}'), special('{d}').flip(0), rounding_mode='floor') | T.div(special('{d}'), special('{d}').flip(0), rounding_mode='trunc') | T.div(t('{d}', 3), 1.5, rounding_mode='floor') | t('{d}', 3).div_(2, rounding_mode='floor')"),
        Row("div", "", "T.div(t('f4', 3), 2, rounding_mode='up') | T.div(t('i8', 3), 0, rounding_mode='floor') | t('i8', 3) // 0 | t('i8', 3) % 0 | t('i8', 3).div_(2) | t('f4', 3) // 0 | t('f4', 3) % 0 | T.tensor([-7, 7]) % T.tensor([3, -3]) | T.tensor([-7., 7.]) % 3 | T.fmod(T.tensor([-7, 7]), 3) | T.tensor(-7) // 2"),
        Row("+ - * / // % ** & | ^ << >> == != < <= > >=", ALL, OPERATOR),
        Row("float_power", ALL, "T.float_power(t('{d}', 3), 2) | T.float_power(2, t('{d}', 3)) | T.float_power(t('{d}', 3), t('f4', 3))"),
        Row("lerp", "f4 f8 f2 bf i8 c8", "T.lerp(t('{d}', 3), t('{d}', 3, seed=.7), 0.5) | T.lerp(t('{d}', 3), t('{d}', 3, seed=.7), t('{d}', 3)) | T.lerp(t('{d}', 3, 1), t('{d}', 4), 0.3) | t('{d}', 3).lerp_(t('{d}', 3, seed=.7), 0.7) | T.lerp(t('{d}', 3), t('f4', 3), 0.5)"),
        Row("addcmul addcdiv", FEW, "T.{f}(t('{d}', 3), t('{d}', 3, seed=.7), t('{d}', 3, seed=.6)) | T.{f}(t('{d}', 3), t('{d}', 2, 3), t('{d}', 2, 1), value=2) | T.{f}(t('{d}', 3), t('f4', 3), t('f4', 3), value=0.5) | t('{d}', 3).{f}_(t('{d}', 3), t('{d}', 3, seed=.7), value=2) | T.{f}(t('{d}', 3), t('{d}', 3), t('{d}', 3), value=1.5)"),
        Row("where", ALL, "T.where(t('b1', 3, 4), t('{d}', 3, 4), t('{d}', 4)) | T.where(t('b1', 3), t('{d}', 3), 2.5) | T.where(t('b1', 3), 1, t('{d}', 3)) | t('{d}', 3).where(t('b1', 3), 0) | T.where(t('b1', 3), t('{d}', 3), t('f4')) | T.where(t('{d}', 3), t('f4', 3), t('f4', 3))"),
        Row("where", "", "T.where(t('b1', 3), 1, 2) | T.where(t('b1', 3), 1.5, 2) | T.where(t('b1', 3, 4)) | T.where(t('b1', 3), t('f4', 4), 1) | T.where(t('u1', 3), 1, 0) | T.where(True, t('f4', 3), 1) | T.where(t('b1', 4, 3).t(), t('f4', 4, 3).t(), 0.)"),
        Row("isclose", ALL, "T.isclose(t('{d}', 3), t('{d}', 3)) | T.isclose(special('{d}'), special('{d}')) | T.isclose(special('{d}'), special('{d}'), equal_nan=True) | T.allclose(t('{d}', 3), t('{d}', 3, seed=.7)) | T.equal(t('{d}', 3), t('{d}', 3)) | T.isclose(t('{d}', 3), t('f4', 3))"),
        Row("isclose", "", "T.isclose(t('f4', 3), t('f4', 3), rtol=-1) | T.equal(t('f4', 3), t('f4', 4)) | T.equal(t('f4', 3), t('f8', 3)) | T.allclose(t('f4', 3), t('f8', 3)) | T.allclose(t('f4', 3), t('f4', 2, 3))"),
    ],
    "reductions": [
        Row("sum mean prod amax amin any all argmax argmin max min var std nansum nanmean median nanmedian mode norm count_nonzero logsumexp", ALL, REDUCTION),
        Row("sum mean prod amax amin any all argmax argmin max min var std nansum nanmean median nanmedian mode norm logsumexp", "", REDUCTION_ONCE),
        Row("sum mean amax amin any all var std nansum nanmean logsumexp count_nonzero norm", "", REDUCTION_DIMS),
        Row("sum prod mean nansum", ALL, "T.{f}(t('f4', 3), dtype=T.float64) | T.{f}(t('{d}', 3, 4), 0, dtype=T.float32) | T.{f}(t('{d}', 3), dtype=T.int64)"),
        Row("sum mean amax amin any all prod", "", "T.{f}(t('f4', 3, 4), 0, out=T.empty(4)) | T.{f}(t('f4', 3, 4), 0, out=T.empty(0)) | T.{f}(t('f4', 3, 4), 0, out=T.empty(4, dtype=T.float64)) | T.{f}(t('f4', 3, 4), axis=0)"),
        Row("max min median mode nanmedian", REAL, "T.{f}(t('{d}', 3, 4), 1) | T.{f}(t('{d}', 3, 4), 0, True) | T.{f}(special('{d}'), 0)"),
        Row("max min", REAL, "T.{f}(t('{d}', 3), t('f4', 3, seed=.7)) | T.{f}(t('f4', 3, 4), 1, out=(T.empty(3), T.empty(3, dtype=T.long))) | T.{f}(t('f4', 3), other=t('f4', 3, seed=.7))"),
        Row("var std", "f4 f8 f2 c8 i8", "T.{f}(t('{d}', 3, 4), 1, False) | T.{f}(t('{d}', 3, 4), unbiased=False) | T.{f}(t('{d}', 3, 4), False) | T.{f}(t('{d}', 3, 4), dim=1, correction=0) | T.{f}(t('{d}', 3, 4), correction=2, keepdim=True, dim=0) | T.{f}(t('{d}', 1)) | T.{f}_mean(t('{d}', 3, 4), 1) | T.{f}_mean(t('{d}', 3, 4)) | T.{f}(t('{d}', 3), correction=5) | T.{f}_mean(t('{d}', 3, 4), 0, True, True)"),
        Row("aminmax", REAL, "T.aminmax(t('{d}', 3, 4)) | T.aminmax(t('{d}', 3, 4), dim=1) | t('{d}', 3, 4).aminmax(dim=0, keepdim=True) | T.aminmax(special('{d}'))"),
        Row("norm", "f4 f8 f2 c8", "T.norm(t('{d}', 3, 4), 1) | T.norm(t('{d}', 3, 4), inf, 1) | T.norm(t('{d}', 3, 4), -inf, 0) | T.norm(t('{d}', 3, 4), 0, 1) | T.norm(t('{d}', 3, 4), 3, (0, 1)) | T.norm(t('{d}', 3, 4), 'fro', 1, True) | t('{d}', 3, 4).norm(2.5) | T.dist(t('{d}', 3), t('{d}', 3, seed=.7)) | T.dist(t('{d}', 3), t('{d}', 3, seed=.7), 1) | T.dist(t('{d}', 3), t('{d}', 3, seed=.7), inf)"),
        Row("quantile nanquantile", "f4 f8", "T.{f}(t('{d}', 3, 4), 0.3) | T.{f}(t('{d}', 3, 4), 0.5, dim=1) | T.{f}(t('{d}', 3, 4), T.tensor([0.1, 0.9], dtype=t('{d}').dtype), dim=0) | T.{f}(t('{d}', 3, 4), 0.3, dim=1, keepdim=True) | T.{f}(t('{d}', 5), 0.33, interpolation='lower') | T.{f}(t('{d}', 5), 0.33, interpolation='higher') | T.{f}(t('{d}', 5), 0.33, interpolation='nearest') | T.{f}(t('{d}', 5), 0.33, interpolation='midpoint') | T.{f}(special('{d}'), 0.5) | T.{f}(t('{d}', 5), 1.5) | T.{f}(t('{d}', 0), 0.5) | T.{f}(t('i8', 3), 0.5) | T.{f}(t('{d}', 3), 0.5, interpolation='x')"),
        Row("kthvalue", REAL, "T.kthvalue(t('{d}', 3, 4), 2) | T.kthvalue(t('{d}', 3, 4), 1, 0, True) | T.kthvalue(t('{d}', 3), 4) | T.kthvalue(t('{d}', 3), 0)"),
        Row("topk", REAL, "T.topk(t('{d}', 3, 4), 2) | T.topk(t('{d}', 3, 4), 2, 0, False) | T.topk(special('{d}'), 3)[0] | T.topk(t('{d}', 3), 4) | T.topk(t('{d}', 3), 0) | t('{d}', 3).topk(k=1) | T.topk(t('{d}'), 1)"),
        Row("sort argsort", REAL, "T.{f}(t('{d}', 3, 4)) | T.{f}(t('{d}', 3, 4), 0) | T.{f}(t('{d}', 3, 4), dim=1, descending=True, stable=True) | T.{f}(special('{d}'), stable=True) | T.{f}(t('{d}'))"),
        Row("sort argsort", "", "T.{f}(t('f4', 4, 3).t(), 0) | T.{f}(t('f4', 3, 8)[:, ::2], 0) | T.{f}(t('f4', 0)) | T.{f}(t('f4', 3), 1) | T.{f}(special('f4'), descending=True, stable=True) | T.{f}(t('f4', 3, 4), -1, True) | T.{f}(t('f4', 4, 2, 3).permute(1, 2, 0), 1)"),
        Row("unique", REAL, "T.unique(t('{d}', 12)) | T.unique(t('{d}', 12), return_inverse=True, return_counts=True) | T.unique(t('{d}', 3, 4), dim=0) | T.unique_consecutive(t('{d}', 12) > 0, return_counts=True) | t('{d}', 3, 4).unique(sorted=False).sort()[0]"),
        Row("cumsum cumprod cummax cummin logcumsumexp", ALL, SCAN), Row("cumsum cumprod cummax cummin logcumsumexp", "", SCAN_ONCE),
        Row("cumsum cumprod", FEW, "T.{f}(t('{d}', 3), 0, dtype=T.float64) | T.{f}(t('{d}', 3), 0, dtype=T.int32) | t('{d}', 3).{f}_(0)"),
        Row("histc", "f4 f8 f2 i8", "T.histc(t('{d}', 12), 4) | T.histc(t('{d}', 12), 4, -1, 1) | T.histc(t('{d}', 12)) | T.histc(t('{d}', 12), 4, 1, -1) | T.histc(t('{d}', 12), 0)"),
        Row("histogram", "f4 f8", "T.histogram(t('{d}', 12), 4) | T.histogram(t('{d}', 12), 3, range=(-1., 1.)) | T.histogram(t('{d}', 12), t('{d}', 4).sort()[0]) | T.histogram(t('{d}', 12), 4, weight=t('{d}', 12).abs(), density=True) | t('{d}', 12).histogram(2)"),
        Row("bincount", INTS, "T.bincount(t('{d}', 8).abs()) | T.bincount(t('{d}', 8).abs(), minlength=20) | T.bincount(t('{d}', 8).abs(), t('f4', 8)) | T.bincount(t('{d}', 8).abs(), t('f8', 8)) | T.bincount(t('{d}', 0)) | T.bincount(t('{d}', 8).abs(), t('i8', 8))"),
        Row("bincount", "", "T.bincount(t('f4', 3)) | T.bincount(t('i8', 3) - 9) | T.bincount(t('i8', 2, 3).abs()) | T.bincount(t('i8', 3).abs(), t('f4', 4))"),
        Row("searchsorted", "f4 f8 i4 i8", "T.searchsorted(t('{d}', 6).sort()[0], t('{d}', 4)) | T.searchsorted(t('{d}', 6).sort()[0], 1) | T.searchsorted(t('{d}', 2, 6).sort()[0], t('{d}', 2, 3), right=True) | T.searchsorted(t('{d}', 6).sort()[0], t('{d}', 2, 3), side='right', out_int32=True) | T.bucketize(t('{d}', 3, 4), t('{d}', 5).sort()[0]) | T.bucketize(t('{d}', 3), t('{d}', 5).sort()[0], right=True, out_int32=True) | T.bucketize(0.5, t('{d}', 5).sort()[0]) | T.searchsorted(t('{d}', 6), t('{d}', 3), sorter=t('{d}', 6).argsort()) | T.searchsorted(t('{d}', 2, 6), t('{d}', 3, 2))"),
        Row("isin", REAL, "T.isin(t('{d}', 3, 4), t('{d}', 3)) | T.isin(t('{d}', 3), t('{d}', 2), invert=True) | T.isin(t('{d}', 3), 1) | T.isin(t('{d}', 3), t('{d}', 0)) | T.isin(1, t('{d}', 4))"),
        Row("diff", ALL, "T.diff(t('{d}', 3, 4)) | T.diff(t('{d}', 3, 4), 2, 0) | T.diff(t('{d}', 3), prepend=t('{d}', 1), append=t('{d}', 2)) | T.diff(t('{d}', 3), 5)"),
        Row("trapezoid cumulative_trapezoid trapz", "f4 f8 i8 c8", "T.{f}(t('{d}', 3, 4)) | T.{f}(t('{d}', 3, 4), dx=2., dim=0) | T.{f}(t('{d}', 4), t('{d}', 4, seed=.7)) | T.{f}(t('{d}', 3, 4), t('{d}', 4, seed=.7))"),
        Row("gradient", "f4 f8 i8", "T.gradient(t('{d}', 5)) | T.gradient(t('{d}', 5), spacing=2.) | T.gradient(t('{d}', 3, 4)) | T.gradient(t('{d}', 3, 4), dim=1) | T.gradient(t('{d}', 4), spacing=(T.tensor([0., 1., 3., 4.]),)) | T.gradient(t('{d}', 5), edge_order=2) | T.gradient(t('{d}', 3, 4), spacing=(2., 3.))"),
        Row("cov corrcoef", "f4 f8 c8", "T.{f}(t('{d}', 3, 4)) | T.{f}(t('{d}', 5)) | T.cov(t('{d}', 3, 4), correction=0) | T.cov(t('{d}', 3, 4), fweights=at(3, 4)) | T.cov(t('{d}', 3, 4), aweights=t('f4', 4).abs())"),
    ],
}
