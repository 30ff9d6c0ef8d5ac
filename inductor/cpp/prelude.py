"""The text that every generated unit starts with: types, scalar functions, libmvec declarations, random bits.

Generated code includes nothing: parsing headers would cost more than compiling a kernel. Every function here is a scalar,
branch-free inline that vectorises under `#pragma omp simd`; overloads and templates give one name per operation of
`inductor.ir.definitions.OPS`, `fj_<operation>`, over float, double and the integers. The text is independent of loops and
graphs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from inductor.artifact.format import RUNTIME_ABI
from inductor.cpp.random_bits import DECLARATIONS as RANDOM_BITS
from inductor.cpp.vector_math import LIBM, LIBM_BINARY, declaration, has_forms

# libmvec is off by up to 4 units in the last place, torch by at most 1. The operations in this list stay below 1.7; the other
# operations on f32 compute in f64 and round, and on f64 call libm itself.
_VECTORS_OF_F32: Final = frozenset({"exp2", "pow", "atan2", "fmod"})
_VECTORS_OF_F64: Final = frozenset({"exp2", "log", "log10", "pow", "atan2", "fmod"})
_OWN: Final = frozenset({  # defined below
    ("tanh", "f64"), *((f, "f32") for f in ("erf", "expm1", "hypot", "log", "log1p", "tanh")),
})  # fmt: skip

_SUFFIXES: Final = (("f32", "f"), ("f64", ""))  # of the compiler's functions and libm's

_TYPES: Final = """\
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned int u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64; typedef u16 f16; typedef u16 bf16; typedef u8 b8;
#define FI static inline __attribute__((always_inline))
#define RESTRICT __restrict__
"""

_BITS: Final = """\
FI u32 fj_bits(f32 x) { u32 b; __builtin_memcpy(&b, &x, 4); return b; }
FI f32 fj_float(u32 b) { f32 x; __builtin_memcpy(&x, &b, 4); return x; }
/* bfloat16 is the upper half of a float; rounding to nearest even, nan stays nan */
FI f32 fj_from_bf16(bf16 h) { return fj_float((u32)h << 16); }
FI bf16 fj_to_bf16(f32 x) {
  u32 b = fj_bits(x), rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return (bf16)(x != x ? 0x7fc0 : rounded);
}
/* half: 2^112 moves the exponent's bias; the largest exponent means inf or nan in both */
FI f32 fj_from_f16(f16 h) {
  u32 magnitude = (u32)(h & 0x7fff) << 13;
  u32 b = fj_bits(fj_float(magnitude) * fj_float(0x77800000u));
  b |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return fj_float(b | (u32)(h & 0x8000) << 16);
}
FI f16 fj_to_f16(f32 x) {
  u32 b = fj_bits(x), sign = b & 0x80000000u, m = b ^ sign;
  u32 normal = (m + 0xc8000fffu + ((m >> 13) & 1)) >> 13;
  u32 tiny = fj_bits(fj_float(m) + 0.5f) - 0x3f000000u;
  u32 huge = m > 0x7f800000u ? 0x7e00u : 0x7c00u;
  u32 r = m >= 0x47800000u ? huge : m < 0x38800000u ? tiny : normal;
  return (f16)(r | sign >> 16);
}
"""

# libmvec's exp takes a slow path for every vector with an element outside the normal range, and masked softmax has many such
# elements. Here only subnormal results cost more. exp(x) = 2^k exp(r), |r| <= ln(2)/2, exp(r) = 1 + r + r^2 q(r); q by Lawson's
# reweighted least squares: relative error 3.1e-9 and 3.6e-18 before rounding. The lower bound of x is a comparison and the upper
# bound of k a minimum of integers: GCC joins two comparisons of one value into a chain of masked ones, which takes twice the time.
_EXP: Final = """\
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
FI f32 fj_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
FI f64 fj_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#else
FI f32 fj_fma(f32 a, f32 b, f32 c) { return a * b + c; }
FI f64 fj_fma(f64 a, f64 b, f64 c) { return a * b + c; }
#endif
FI u64 fj_bits(f64 x) { u64 b; __builtin_memcpy(&b, &x, 8); return b; }
FI f64 fj_double(u64 b) { f64 x; __builtin_memcpy(&x, &b, 8); return x; }
/* exp(r) - 1 */
FI f32 fj_exp_rest(f32 n, f32 x) {
  f32 r = fj_fma(n, 2.12194440e-4f, fj_fma(n, -0.693359375f, x));
  f32 q = fj_fma(fj_fma(1.381453517141824e-3f, r, 8.368745580669393e-3f), r, 4.1668390888259584e-2f);
  q = fj_fma(fj_fma(q, r, 1.6666520393966203e-1f), r, 4.999999343160758e-1f);
  return fj_fma(q, r * r, r);
}
FI f64 fj_exp_rest(f64 n, f64 x) {
  f64 r = fj_fma(n, -1.90821492927058770002e-10, fj_fma(n, -6.93147180369123816490e-01, x));
  f64 q = fj_fma(fj_fma(2.500003601884289e-8, r, 2.7630308460697616e-7), r, 2.7557586761798467e-6);
  q = fj_fma(fj_fma(q, r, 2.4801492943021588e-5), r, 1.984126950580184e-4);
  q = fj_fma(fj_fma(q, r, 1.3888888943766802e-3), r, 8.333333333494976e-3);
  q = fj_fma(fj_fma(q, r, 4.16666666665297e-2), r, 1.666666666666641e-1);
  return fj_fma(fj_fma(q, r, 5.000000000000011e-1), r * r, r);
}
/* Results vanish below the lower bound. Above the upper bound of k the rest overflows. A nan stays one: it reaches the rest. Adding
   1.5 * 2^23 rounds to an integer, which the low bits hold. The power of two is two factors, so that subnormal results round once. */
FI f32 fj_exp(f32 x) {
  f32 c = x < -104.0f ? -104.0f : x;
  i32 shifted = (i32)fj_bits(fj_fma(c, 1.44269504f, 12582912.0f));
  shifted = shifted < 0x4b400080 ? shifted : 0x4b400080;
  u32 k = (u32)shifted << 23, half = (u32)((i32)k >> 1) & 0xff800000u;
  f32 rest = fj_exp_rest(fj_float((u32)shifted) - 12582912.0f, c), scale = fj_float(half + 0x3f800000u);
  return fj_fma(rest, scale, scale) * fj_float(k - half + 0x3f800000u);
}
FI f64 fj_exp(f64 x) {
  f64 c = x < -745.2 ? -745.2 : x;
  i64 shifted = (i64)fj_bits(fj_fma(c, 1.4426950408889634, 6755399441055744.0));
  shifted = shifted < 0x4338000000000400ll ? shifted : 0x4338000000000400ll;
  u64 k = (u64)shifted << 52, half = (u64)((i64)k >> 1) & 0xfff0000000000000ull;
  f64 rest = fj_exp_rest(fj_double((u64)shifted) - 6755399441055744.0, c), scale = fj_double(half + 0x3ff0000000000000ull);
  return fj_fma(rest, scale, scale) * fj_double(k - half + 0x3ff0000000000000ull);
}
/* for arguments in [-87, 88], where results are normal numbers */
FI f32 fj_exp_normal(f32 x) {
  f32 shifted = fj_fma(x, 1.44269504f, 12582912.0f);
  return fj_float(fj_bits(fj_exp_rest(shifted - 12582912.0f, x) + 1.0f) + (fj_bits(shifted) << 23));
}
/* the smaller of x >= 0 and a bound; the bound for nan */
FI f32 fj_bounded(f32 x, f32 bound) {
  i32 a = (i32)fj_bits(x), b = (i32)fj_bits(bound);
  return fj_float((u32)(a < b ? a : b));
}
"""

# The functions of eager/native/kernels/vector_math.h with explicit fused products: at most 1.2 units in the last place off.
_ELEMENTARY: Final = """\
FI f32 fj_expm1(f32 x) { /* 2^n expm1(r) + (2^n - 1), halved */
  f32 c = x < -18.0f ? -18.0f : x > 89.0f ? 89.0f : x;
  f32 shifted = fj_fma(c, 1.44269504f, 12582912.0f), quotient = shifted - 12582912.0f;
  i32 n = (i32)(fj_bits(shifted) - 0x4b400000u);
  f32 r = fj_fma(quotient, -1.42860677e-6f, fj_fma(quotient, -0.693145752f, c));
  f32 p = fj_fma(fj_fma(0.0001984591f, r, 0.0013941042f), r, 0.008333391f);
  p = fj_fma(fj_fma(fj_fma(p, r, 0.041666355f), r, 0.16666666f), r, 0.5f);
  f32 s = fj_float((u32)(n + 126) << 23);
  f32 few = fj_fma(p * (r * r), s, fj_fma(r, s, s - 0.5f)), many = fj_fma(fj_fma(p, r * r, r), s, -0.5f) + s;
  f32 half = n > 6 ? many : few;
  return __builtin_fabsf(x) < 2.98023224e-8f ? x : half + half;
}
FI f32 fj_log_of(f32 f, f32 n) { /* log(1 + f) + n log(2) for f in [-1/4, 1/2] */
  f32 p = fj_fma(fj_fma(-0.04490958f, f, 0.104483284f), f, -0.13162231f);
  p = fj_fma(fj_fma(fj_fma(p, f, 0.14482062f), f, -0.16647767f), f, 0.19990607f);
  p = fj_fma(fj_fma(fj_fma(p, f, -0.25000054f), f, 0.33333454f), f, -0.5f);
  return fj_fma(n, 0.693145752f, fj_fma(p, f * f, n * 1.42860677e-6f) + f);
}
FI f32 fj_log(f32 x) {
  b8 tiny = x < 1.17549435e-38f;
  f32 y = tiny ? x * 8388608.0f : x;
  i32 i = (i32)(fj_bits(y) - 0x3f400000u);
  f32 r = fj_log_of(fj_float((i & 0x007fffff) + 0x3f400000) - 1.0f, (f32)((i >> 23) - (tiny ? 23 : 0)));
  r = x == 0.0f ? -__builtin_inff() : x < 0.0f ? __builtin_nanf("") : r;
  return (x == __builtin_inff()) | (x != x) ? x : r;
}
FI f32 fj_log1p(f32 x) { /* 1 + x = 2^e (1 + f), f rounded once; s = 4 * 2^-e */
  i32 k = (i32)(fj_bits(1.0f + x) - 0x3f400000u) & (i32)0xff800000;
  f32 s = fj_float(0x40800000u - (u32)k), r = fj_log_of(fj_fma(x * 0.25f, s, fj_fma(s, 0.25f, -1.0f)), (f32)(k >> 23));
  r = x == -1.0f ? -__builtin_inff() : x < -1.0f ? __builtin_nanf("") : r;
  return (__builtin_fabsf(x) < 2.98023224e-8f) | (x == __builtin_inff()) | (x != x) ? x : r;
}
FI f32 fj_tanh(f32 x) {
  f32 a = __builtin_fabsf(x), z = x * x, p = fj_fma(fj_fma(-0.00035845183f, z, 0.002301364f), z, -0.007946106f);
  p = fj_fma(fj_fma(fj_fma(fj_fma(p, z, 0.021486657f), z, -0.0538798f), z, 0.13332345f), z, -0.33333296f);
  f32 b = fj_bounded(a, 16.0f), far = 1.0f - 2.0f / (fj_exp_normal(b + b) + 1.0f);
  far = x != x ? x : far;
  return __builtin_copysignf(a < 1.0f ? fj_fma(p, z * a, a) : far, x);
}
FI f32 fj_erf(f32 x) { /* x + x P(x^2) near zero, 1 - exp(P(|x|)) farther out (coefficients: N. Juffa, 2015) */
  f32 a = __builtin_fabsf(x), s = x * x, t = fj_bounded(a, 4.0f), u = t * t;
  f32 r = fj_fma(fj_fma(-1.72853470e-5f, t, 3.83197126e-4f), u, fj_fma(-3.88396438e-3f, t, 2.42546219e-2f));
  r = fj_fma(fj_fma(fj_fma(fj_fma(r, t, -1.06777877e-1f), t, -6.34846687e-1f), t, -1.28717512e-1f), t, -t);
  f32 p = fj_fma(fj_fma(fj_fma(-5.96761703e-4f, s, 4.99119423e-3f), s, -2.67681349e-2f), s, 1.12819925e-1f);
  p = fj_fma(fj_fma(p, s, -3.76125336e-1f), s, 1.28379166e-1f);
  return a > 0.921875f ? __builtin_copysignf(1.0f - fj_exp_normal(r), x) : fj_fma(p, x, x);
}
"""

# `fj_divide`: by a constant whose inverse is high + low; `cpp.division` decides for which constants the result equals a division's.
# Conversions to integers go towards zero; a value outside the range gives the lowest number, as x86's conversions do, in vectors and
# scalars alike. Integers: division by zero gives 0, as in numpy, and the lowest integer divided by -1 wraps: both must not trap.
_ARITHMETIC: Final = """\
template <class T> constexpr bool fj_is_float = (T)0.5 != 0;
/* the unsigned type in which arithmetic of the integers T wraps */
template <int bytes> struct fj_word { typedef u32 type; };
template <> struct fj_word<8> { typedef u64 type; };
#define FJ_WORD typename fj_word<sizeof(T)>::type
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
template <class T> FI T fj_divide(T x, T c, T high, T low) { return fj_fma(x, high, x * low); }
#else
template <class T> FI T fj_divide(T x, T c, T high, T low) { return x / c; }
#endif
template <class T> FI i32 fj_to_i32(T x) { /* -2147483649 as a float is -2147483648, which fits */
  return (sizeof(x) == 8 ? x > (T)-2147483649.0 : x >= (T)-2147483648.0) & (x < (T)2147483648.0) ? (i32)x : -2147483647 - 1;
}
template <class T> FI i64 fj_to_i64(T x) {
  return (x >= (T)-9223372036854775808.0) & (x < (T)9223372036854775808.0) ? (i64)x : -9223372036854775807LL - 1;
}
template <class T> FI u64 fj_to_u64(T x) {
  const T half = (T)9223372036854775808.0;
  return (u64)fj_to_i64(x >= half ? x - half : x) ^ (x >= half ? 0x8000000000000000ull : 0);
}
template <class T> FI T fj_rsqrt(T x) { return (T)1 / fj_sqrt(x); }
template <class T> FI b8 fj_isnan(T x) { return x != x; }
template <class T> FI b8 fj_isinf(T x) { return fj_abs(x) == (T)__builtin_inf(); }
template <class T> FI b8 fj_isfinite(T x) { return fj_abs(x) < (T)__builtin_inf(); }
template <class T> FI T fj_abs(T x) { return x < 0 ? (T)(0 - (FJ_WORD)x) : x; }
template <class T> FI T fj_floor(T x) { return x; }
template <class T> FI T fj_ceil(T x) { return x; }
template <class T> FI T fj_round(T x) { return x; }
template <class T> FI T fj_trunc(T x) { return x; }
template <class T> FI T fj_fmod(T a, T b) { return b == 0 || (b == (T)-1 && (T)-1 < 0) ? 0 : (T)(a % (b == 0 ? 1 : b)); }
template <class T> FI T fj_left_shift(T a, T b) { return (FJ_WORD)b >= sizeof(T) * 8 ? 0 : (T)((FJ_WORD)a << (FJ_WORD)b); }
template <class T> FI T fj_right_shift(T a, T b) { return (FJ_WORD)b >= sizeof(T) * 8 ? (T)(a < 0 ? -1 : 0) : (T)(a >> (FJ_WORD)b); }
template <class T> FI T fj_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
/* One comparison where b is known to be a number. Else the processor's maximum, which is b if one of both is nan. */
template <class T> FI T fj_maximum(T a, T b) {
  const T larger = a > b ? a : b;
  return __builtin_constant_p(b) && b == b ? !(a <= b) ? a : b : a != a ? a : larger;
}
template <class T> FI T fj_minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return __builtin_constant_p(b) && b == b ? !(a >= b) ? a : b : a != a ? a : smaller;
}
template <class T> FI T fj_neg(T x) {
  if constexpr (fj_is_float<T>) return -x;
  else return (T)(0 - (FJ_WORD)x);
}
template <class T> FI b8 fj_signbit(T x) {
  if constexpr (fj_is_float<T>) return fj_copysign((T)1, x) < 0;
  else return x < 0;
}
template <class T> FI T fj_truncdiv(T a, T b) {
  if constexpr (fj_is_float<T>) return fj_trunc(a / b);
  else return b == 0 ? 0 : b == (T)-1 && (T)-1 < 0 ? (T)(0 - (FJ_WORD)a) : (T)(a / (b == 0 ? 1 : b));
}
template <class T> FI T fj_remainder(T a, T b) {
  T m = fj_fmod(a, b);
  if constexpr (fj_is_float<T>) return (m != 0) & ((b < 0) != (m < 0)) ? m + b : m;
  else return m != 0 && (m < 0) != (b < 0) ? (T)(m + b) : m; /* GCC 12 needs twice the time for & here */
}
template <class T> FI T fj_floordiv(T a, T b) {
  if constexpr (fj_is_float<T>) {
    T m = fj_fmod(a, b), q = (a - m) / b;
    q = (m != 0) & ((b < 0) != (m < 0)) ? q - 1 : q;
    T f = fj_floor(q);
    f = q - f > (T)0.5 ? f + 1 : f;
    f = q == 0 ? fj_copysign((T)0, a / b) : f;
    return b == 0 ? a / b : f;
  } else {
    T q = fj_truncdiv(a, b);
    return fj_fmod(a, b) != 0 && (a < 0) != (b < 0) ? (T)(q - 1) : q;
  }
}
template <class T> FI T fj_pow(T x, T y) {
  if constexpr (fj_is_float<T>) {
    /* GCC's vectoriser replaces pow(x, 0.5) by sqrt(x), which differs at -0 and -inf. */
    if (__builtin_constant_p(y) && y == (T)0.5) return x == -(T)__builtin_inf() ? (T)__builtin_inf() : fj_sqrt(x) + (T)0;
    return fj_general_pow(x, y);
  } else {
    T r = 1;
    if (y < 0) return x == 1 ? 1 : x == (T)-1 ? (y & 1 ? (T)-1 : 1) : 0;
    for (FJ_WORD n = (FJ_WORD)y; n; n >>= 1) {
      r = n & 1 ? (T)((FJ_WORD)r * (FJ_WORD)x) : r;
      x = (T)((FJ_WORD)x * (FJ_WORD)x);
    }
    return r;
  }
}
"""

_SPECIAL: Final = """\
FI f64 fj_tanh(f64 x) { return __builtin_fabs(x) < 7.450580596923828e-9 ? x : tanh(x); } /* libm's is off by one there */
FI f32 fj_hypot(f32 x, f32 y) { /* squares of f32 neither overflow nor vanish in f64 */
  return fj_isinf(x) | fj_isinf(y) ? __builtin_inff() : (f32)__builtin_sqrt((f64)x * (f64)x + (f64)y * (f64)y);
}
FI i64 fj_floormod(i64 a, i64 b) { return fj_remainder(a, b); }
/* A position out of range is recorded in `failed` and replaced by 0. */
FI i64 fj_check_index(i64 i, i64 n, i64 check, i64* failed) {
  if (__builtin_expect((u64)i >= (u64)n, 0)) { failed[1] = i; failed[0] = check + 1; i = 0; }
  return i;
}
FI i64 fj_wrap_index(i64 i, i64 n, i64 check, i64* failed) {
  if (__builtin_expect(i >= n || i < -n, 0)) { failed[1] = i; failed[0] = check + 1; i = 0; }
  return i < 0 ? i + n : i;
}
FI i64 fj_min(i64 a, i64 b) { return a < b ? a : b; }
FI i64 fj_max(i64 a, i64 b) { return a > b ? a : b; }
/* Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), then three Newton steps, above one half on 1 - x. */
FI f64 fj_erfinv(f64 x) {
  f64 w = -fj_log((1.0 - x) * (1.0 + x)), a, p, y, big = __builtin_fabs(x);
  b8 near = w < 5.0;
  a = near ? w - 2.5 : __builtin_sqrt(fj_maximum(w, 5.0)) - 3.0;
  p = near ? 2.81022636e-08 : -0.000200214257;
  p = (near ? 3.43273939e-07 : 0.000100950558) + p * a;
  p = (near ? -3.5233877e-06 : 0.00134934322) + p * a;
  p = (near ? -4.39150654e-06 : -0.00367342844) + p * a;
  p = (near ? 0.00021858087 : 0.00573950773) + p * a;
  p = (near ? -0.00125372503 : -0.0076224613) + p * a;
  p = (near ? -0.00417768164 : 0.00943887047) + p * a;
  p = (near ? 0.246640727 : 1.00167406) + p * a;
  p = (near ? 1.50140941 : 2.83297682) + p * a;
  f64 far = w + 0.6931471805599453, square = far; /* erfc's leading term at 1 - |x| */
  for (int i = 0; i < 2; i++) square = far - 0.5 * fj_log(3.141592653589793 * fj_maximum(square, 1.0));
  y = w < 16.0 ? p * big : __builtin_sqrt(fj_maximum(square, 0.0));
  for (int i = 0; i < 3; i++) y = y - (big < 0.5 ? fj_erf(y) - big : (1.0 - big) - fj_erfc(y)) / (1.1283791670955126 * fj_exp(-y * y));
  y = __builtin_copysign(y, x);
  return big == 1.0 ? __builtin_copysign(__builtin_inf(), x) : big > 1.0 ? __builtin_nan("") : y;
}
FI f32 fj_erfinv(f32 x) { return (f32)fj_erfinv((f64)x); }
/* Recurrence up to 8, then the asymptotic series (Abramowitz & Stegun 6.3.18); reflection below 0, by the distance to the
   nearest pole. */
FI f64 fj_digamma(f64 z) {
  b8 reflect = z < 0.0;
  f64 w = reflect ? 1.0 - z : z, s = 0.0, f = z - __builtin_rint(z);
  for (int i = 0; i < 8; i++) { b8 small = w < 8.0; s -= small ? 1.0 / w : 0.0; w += small ? 1.0 : 0.0; }
  f64 r = 1.0 / (w * w);
  f64 t = r * (1.0/12 - r * (1.0/120 - r * (1.0/252 - r * (1.0/240 - r * (5.0/660 - r * (691.0/32760 - r / 12))))));
  s += fj_log(w) - 0.5 / w - t;
  s = reflect ? s - 3.141592653589793 / fj_tan(3.141592653589793 * f) : s;
  return z == 0.0 ? __builtin_copysign(__builtin_inf(), -z) : f == 0.0 && z < 0 ? __builtin_nan("") : s;
}
FI f32 fj_digamma(f32 x) { return (f32)fj_digamma((f64)x); }
"""


# Sums of floats: `carry` holds the rounding errors of the additions to `total` (Knuth's exact sum of two numbers). Once the
# total is infinite or nan the carry is nan, and the total alone is the result. Lanes are joined in float64. The `lanes` running
# results of a reduction are joined by halves: log2(lanes) vector operations.
_FOLDS: Final = """\
template <class T> FI void fj_add_to(T& total, T& carry, T x) {
  T sum = total + x, part = sum - total;
  carry += (total - (sum - part)) + (x - part);
  total = sum;
}
template <class T> FI f64 fj_total(T total, T carry) { f64 sum = (f64)total + carry; return sum != sum ? (f64)total : sum; }
template <class T, int lanes> FI void fj_fill(T (&a)[lanes], T x) { for (int i = 0; i < lanes; i++) a[i] = x; }
template <int lanes, class T, class F> FI T fj_fold(const T* a, F f) {
  if constexpr (lanes == 2) return f(a[0], a[1]);
  else {
    typedef T V __attribute__((vector_size(lanes / 2 * sizeof(T)), aligned(sizeof(T)), may_alias));
    alignas(64) T half[lanes / 2];
    *(V*)half = f(*(const V*)a, *(const V*)(a + lanes / 2));
    return fj_fold<lanes / 2>(half, f);
  }
}
""" + "".join(
    f"template <int lanes, class T> FI T fj_fold_{name}(const T* a) {{\n"
    f"  return fj_fold<lanes>(a, [](auto x, auto y) {{ return (decltype(x))({form}); }});\n}}\n"
    for name, form in {"any": "x | y", "all": "x & y", "max": "(x > y) | (x != x) ? x : y", "min": "(x < y) | (x != x) ? x : y"}.items()
) + """\
/* sums and products of integers wrap */
template <class T> struct fj_wrapping { typedef T type; };
template <> struct fj_wrapping<i64> { typedef u64 type; };
template <> struct fj_wrapping<i32> { typedef u32 type; };
""" + "".join(
    f"template <int lanes, class T> FI T fj_fold_{name}(const T* a) {{\n"
    f"  const auto join = [](auto x, auto y) {{ return (decltype(x))(x {sign} y); }};\n"
    f"  return (T)fj_fold<lanes>((const typename fj_wrapping<T>::type*)a, join);\n}}\n"
    for name, sign in {"sum": "+", "prod": "*"}.items()
) + """\
template <int lanes, class T> FI f64 fj_total(const T* total, const T* carry) {
  constexpr int n = lanes / 2;
  typedef T V __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef f64 W __attribute__((vector_size(n * sizeof(f64))));
  W sums = __builtin_convertvector(*(const V*)total, W) + __builtin_convertvector(*(const V*)(total + n), W);
  W rests = __builtin_convertvector(*(const V*)carry + *(const V*)(carry + n), W);
  alignas(64) f64 parts[n];
  *(W*)parts = sums + rests;
  f64 sum = fj_fold_sum<n>(parts);
  if (sum == sum) return sum;
  *(W*)parts = sums;
  return fj_fold_sum<n>(parts);
}
"""  # fmt: skip


# Two rows exchange halves of their columns: in the lanes of 128 bits, then whole lanes. Source: the unpack and shuffle
# instructions of AVX-512, each of which is one of these patterns for two rows of 16 floats.
_UNPACKED: Final = tuple(tuple(4 * q + x for q in range(4) for x in lanes) for lanes in ((0, 16, 1, 17), (2, 18, 3, 19)))
_PAIRED: Final = tuple(tuple(4 * q + x for q in range(4) for x in lanes) for lanes in ((0, 1, 16, 17), (2, 3, 18, 19)))
_QUARTERS: Final = tuple(tuple(4 * q + x for q in quarters for x in range(4)) for quarters in ((0, 2, 4, 6), (1, 3, 5, 7)))


def _transposes() -> str:
    """`fj_transpose<rows, columns>`: to[r * to_step + c] = from[c * from_step + r], in blocks of n by n in n vector registers.

    is_streamed: the stores go past the caches where they fill whole lines. The function that calls it ends with `fj_fence`, so that
    threads that wait for it see them.
    """
    return "".join(_transpose(n) for n in (2, 4, 8)) + _transpose_16() + """\
#if defined(__AVX512F__)
FI void fj_fence() { __builtin_ia32_sfence(); }
#else
FI void fj_fence() {}
#endif
template <class T> FI void fj_stream(T* RESTRICT to, const T* RESTRICT from, int count) {
#if defined(__AVX512F__)
  typedef f32 V __attribute__((vector_size(64), aligned(1), may_alias));
  constexpr int n = 64 / sizeof(T);
  if (count % n == 0 && (u64)to % 64 == 0) {
    for (int i = 0; i < count; i += n) __builtin_ia32_movntps512((f32*)(to + i), *(const V*)(from + i));
    return;
  }
#endif
  __builtin_memcpy(to, from, count * sizeof(T));
}
template <int rows, int columns, bool is_streamed = false, class T> FI void fj_transpose(T* to, i64 to_step, const T* from, i64 from_step) {
#if defined(__AVX512F__)
  constexpr int widest = 64 / sizeof(T);
#elif defined(__AVX__)
  constexpr int widest = 32 / sizeof(T);
#else
  constexpr int widest = 16 / sizeof(T);
#endif
  constexpr int n = rows % widest || columns % widest ? widest / 2 : widest;
  const bool is_aligned = !(((u64)to | (u64)to_step * sizeof(T)) % 64);
  for (int c = 0; c < columns; c += n) /* a row of `from` is read whole before the next one, which may share its cache sets */
    for (int r = 0; r < rows; r += n) {
      T* a = to + r * to_step + c;
      const T* b = from + c * from_step + r;
      if constexpr (n == 16) {
        if (is_streamed && is_aligned) fj_transpose_16<true>(a, to_step, b, from_step);
        else fj_transpose_16<false>(a, to_step, b, from_step);
      } else if constexpr (n == 8) fj_transpose_8(a, to_step, b, from_step);
      else if constexpr (n == 4) fj_transpose_4(a, to_step, b, from_step);
      else fj_transpose_2(a, to_step, b, from_step);
    }
}
"""


def _transpose_16() -> str:
    """One block of elements of four bytes in vectors of 64 bytes."""
    lines = [f"const V r0_{k} = *(const V*)(from + {k} * from_step);" for k in range(16)]

    def stage(number: int, pairs: list[tuple[int, int]], patterns: tuple[tuple[int, ...], ...]) -> None:
        for low, high in pairs:
            for row, pattern in zip((low, high), patterns, strict=True):
                shuffled = f"__builtin_shufflevector(r{number}_{low}, r{number}_{high}, {', '.join(map(str, pattern))})"
                lines.append(f"const V r{number + 1}_{row} = {shuffled};")

    for number, (distance, patterns) in enumerate(((1, _UNPACKED), (2, _PAIRED), (4, _QUARTERS), (8, _QUARTERS))):
        stage(number, [(k, k + distance) for k in range(16) if not k & distance], patterns)
    registers = [(k & 12) | (k & 1) << 1 | (k >> 1) & 1 for k in range(16)]  # the first two stages leave columns in the order 0, 2, 1, 3
    lines += [f"fj_put<is_streamed>(to + {k} * to_step, r4_{register});" for k, register in enumerate(registers)]
    return """\
template <bool is_streamed, class T, class V> FI void fj_put(T* to, V x) {
#if defined(__AVX512F__)
  typedef f32 F __attribute__((vector_size(64)));
  if constexpr (is_streamed) { __builtin_ia32_movntps512((f32*)to, (F)x); return; }
#endif
  *(V*)to = x;
}
template <bool is_streamed, class T> FI void fj_transpose_16(T* to, i64 to_step, const T* from, i64 from_step) {
  typedef T V __attribute__((vector_size(16 * sizeof(T)), aligned(sizeof(T)), may_alias));
""" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _transpose(n: int) -> str:
    """One block: rows at a distance of 1, 2, 4 exchange the elements whose columns have that distance."""
    lines = [f"const V r0_{k} = *(const V*)(from + {k} * from_step);" for k in range(n)]
    stages = n.bit_length() - 1
    for stage in range(stages):
        d = 1 << stage
        for k in [k for k in range(n) if not k & d]:
            for row, odd in ((k, 0), (k + d, d)):
                lanes = ", ".join(str(lane + odd if not lane & d else n + lane - d + odd) for lane in range(n))
                pair = f"r{stage}_{k}, r{stage}_{k + d}"
                lines.append(f"const V r{stage + 1}_{row} = __builtin_shufflevector({pair}, {lanes});")
    lines += [f"*(V*)(to + {k} * to_step) = r{stages}_{k};" for k in range(n)]
    head = f"template <class T> FI void fj_transpose_{n}(T* to, i64 to_step, const T* from, i64 from_step) {{\n"
    vector = f"  typedef T V __attribute__((vector_size({n} * sizeof(T)), aligned(sizeof(T)), may_alias));\n"
    return head + vector + "".join(f"  {line}\n" for line in lines) + "}\n"


def _declarations(vector_functions: frozenset[str]) -> str:
    """libm's functions, their vector forms and the wrappers."""
    lines = ['extern "C" {']
    wrappers = []
    for table, arity in ((LIBM, 1), (LIBM_BINARY, 2)):
        for op in table:
            vectors = {t: has_forms(vector_functions, op, t == "f64", arity) for t in ("f32", "f64")}
            for t, symbol in (("f32", op + "f"), ("f64", op)):
                lines.append(f"{t} {symbol}({', '.join([t] * arity)}) noexcept;")
                if vectors[t]:
                    lines.append(declaration(t, symbol, arity))
            for t in ("f32", "f64"):
                if (op, t) in _OWN:
                    continue
                wrappers.append(_wrapper(op, t, arity, vectors))
    return "\n".join([*lines, "}", *wrappers]) + "\n"


def _wrapper(op: str, t: str, arity: int, vectors: dict[str, bool]) -> str:
    """`fj_<op>` over libm, or over its vector forms if these are accurate. vectors: the types that have such forms."""
    names = "xy"[:arity]
    if t == "f32" and op not in _VECTORS_OF_F32:
        call = f"(f32){'fjv_' if vectors['f64'] else ''}{op}({', '.join(f'(f64){x}' for x in names)})"
    else:
        accurate = op in (_VECTORS_OF_F32 if t == "f32" else _VECTORS_OF_F64)
        call = f"{'fjv_' if vectors[t] and accurate else ''}{op}{'f' if t == 'f32' else ''}({', '.join(names)})"
    own = "general_pow" if op == "pow" else op
    return f"FI {t} fj_{own}({', '.join(f'{t} {x}' for x in names)}) {{ return {call}; }}"


def _builtins() -> str:
    """The operations on floats that the compiler has a function for. On integers they are templates."""
    unary = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}
    lines = [f"FI {t} fj_{op}({t} x) {{ return __builtin_{name}{suffix}(x); }}\n"
             for op, name in unary.items() for t, suffix in _SUFFIXES]  # fmt: skip
    lines += [f"FI {t} fj_copysign({t} x, {t} y) {{ return __builtin_copysign{suffix}(x, y); }}\n" for t, suffix in _SUFFIXES]
    return "".join(lines)


@lru_cache(maxsize=4)
def prelude(vector_functions: tuple[str, ...] | frozenset[str] = ()) -> str:
    """The prelude for a machine whose libmvec exports `vector_functions` (see `Toolchain.vector_functions`)."""
    declared = _declarations(frozenset(vector_functions))
    vectors = RANDOM_BITS + _FOLDS + _transposes()
    return _TYPES + RUNTIME_ABI + _BITS + _EXP + _ELEMENTARY + declared + _builtins() + _ARITHMETIC + _SPECIAL + vectors
