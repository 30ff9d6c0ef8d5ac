/* Elementary functions for loops that the compiler turns into vector code: no branches, no calls, no tables.
 *
 * NAME_f32 are written out: range reduction, a polynomial fitted to the reduced range (weighted least squares, weights
 * turned until the error is level), and selects for the special cases. Errors against the exact value, over all
 * of the range: exp 1, log 1, tanh 2, expm1 3, log1p 2, erf 6 units in the last place. NAME_f64 call libm.
 * NaN goes through everywhere. To become vectors they need -fno-math-errno and
 * -fno-trapping-math. */
#ifndef EAGER_VECMATH_H
#define EAGER_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VM_INLINE static inline __attribute__((always_inline, unused))

VM_INLINE int32_t vm_bits(float x) { int32_t i; memcpy(&i, &x, 4); return i; }
VM_INLINE float vm_float(int32_t i) { float x; memcpy(&x, &i, 4); return x; }

/* 2^n for |n| <= 252 as a product of two, so that results may be subnormal. */
VM_INLINE float vm_scale(float x, int32_t n)
{
    int32_t half = n >> 1;
    return x * vm_float((int32_t)((uint32_t)(half + 127) << 23)) * vm_float((int32_t)((uint32_t)(n - half + 127) << 23)); /* of NaN, any n */
}

VM_INLINE float exp_f32(float x)
{
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float shifted = c * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: its last bits are the rounded quotient */
    int32_t n = vm_bits(shifted) - vm_bits(12582912.0f);
    float quotient = shifted - 12582912.0f;
    float r = (c - quotient * 0.693145752f) - quotient * 1.42860677e-6f;
    float p = 0.00138145984f;
    p = p * r + 0.0083687169f;
    p = p * r + 0.0416683881f;
    p = p * r + 0.166665206f;
    p = p * r + 0.499999934f;
    p = p * (r * r) + r + 1.0f;
    return vm_scale(p, n);
}

VM_INLINE float log_f32(float x)
{
    int32_t tiny = x < 1.17549435e-38f;
    float y = tiny ? x * 8388608.0f : x;
    int32_t i = vm_bits(y) - 0x3f3504f3; /* sqrt(1/2): the mantissa lies in [sqrt(1/2), sqrt(2)) */
    int32_t e = (i >> 23) - (tiny ? 23 : 0);
    float f = vm_float((i & 0x007fffff) + 0x3f3504f3) - 1.0f;
    float p = 0.0674663819f;
    p = p * f - 0.116756512f;
    p = p * f + 0.11888163f;
    p = p * f - 0.124055891f;
    p = p * f + 0.142195523f;
    p = p * f - 0.166679958f;
    p = p * f + 0.200021187f;
    p = p * f - 0.250000096f;
    p = p * f + 0.333333126f;
    float n = (float)e, z = f * f;
    float r = p * (f * z) + n * 1.42860677e-6f;
    r = r - 0.5f * z + f + n * 0.693145752f;
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    return (x == INFINITY) | (x != x) ? x : r;
}

VM_INLINE float expm1_f32(float x)
{
    float p = 2.49702607e-05f;
    p = p * x + 0.000199740198f;
    p = p * x + 0.00138885434f;
    p = p * x + 0.00833314075f;
    p = p * x + 0.0416666693f;
    p = p * x + 0.166666675f;
    p = p * x + 0.5f;
    float near = p * (x * x) + x;
    return fabsf(x) < 0.5f ? near : exp_f32(x) - 1.0f;
}

VM_INLINE float tanh_f32(float x)
{
    float a = fabsf(x), z = x * x;
    float p = -0.0057170445f;
    p = p * z + 0.0206505868f;
    p = p * z - 0.0537434979f;
    p = p * z + 0.133314913f;
    p = p * z - 0.333332839f;
    float near = p * (z * x) + x;
    float far = copysignf(1.0f - 2.0f / (exp_f32(a + a) + 1.0f), x);
    return a < 0.625f ? near : (x != x ? x : far);
}

/* log(1 + x) = log(u) * x / (u - 1) with u = 1 + x rounded (D. Goldberg, 1991, theorem 4). */
VM_INLINE float log1p_f32(float x)
{
    float u = 1.0f + x, d = u - 1.0f;
    float r = log_f32(u) * (x / d);
    r = d == 0.0f ? x : r;
    return u == INFINITY ? u : r;
}

/* x * P(x^2) / Q(x^2) up to where the result rounds to one. */
VM_INLINE float erf_f32(float x)
{
    float c = x < -3.9f ? -3.9f : x;
    c = c > 3.9f ? 3.9f : c;
    float z = c * c;
    float p = 1.91113691e-08f;
    p = p * z - 1.94208151e-06f;
    p = p * z + 0.000147234889f;
    p = p * z + 0.00398851226f;
    p = p * z + 0.0515184075f;
    p = p * z + 0.207077732f;
    p = p * z + 1.12837909f;
    float q = 0.00102060666f;
    q = q * z + 0.0149539106f;
    q = q * z + 0.117950938f;
    q = q * z + 0.516849119f;
    q = q * z + 1.0f;
    return c * p / q;
}

VM_INLINE float sqrt_f32(float x) { return sqrtf(x); }
VM_INLINE float rsqrt_f32(float x) { return 1.0f / sqrtf(x); }
VM_INLINE float abs_f32(float x) { return fabsf(x); }
VM_INLINE float floor_f32(float x) { return floorf(x); }
VM_INLINE float ceil_f32(float x) { return ceilf(x); }
VM_INLINE float trunc_f32(float x) { return truncf(x); }
VM_INLINE float round_f32(float x) { return rintf(x); }
VM_INLINE float copysign_f32(float x, float y) { return copysignf(x, y); }

VM_INLINE double exp_f64(double x) { return exp(x); }
VM_INLINE double log_f64(double x) { return log(x); }
VM_INLINE double expm1_f64(double x) { return expm1(x); }
VM_INLINE double tanh_f64(double x) { return tanh(x); }
VM_INLINE double log1p_f64(double x) { return log1p(x); }
VM_INLINE double erf_f64(double x) { return erf(x); }
VM_INLINE double sqrt_f64(double x) { return sqrt(x); }
VM_INLINE double rsqrt_f64(double x) { return 1.0 / sqrt(x); }
VM_INLINE double abs_f64(double x) { return fabs(x); }
VM_INLINE double floor_f64(double x) { return floor(x); }
VM_INLINE double ceil_f64(double x) { return ceil(x); }
VM_INLINE double trunc_f64(double x) { return trunc(x); }
VM_INLINE double round_f64(double x) { return rint(x); }
VM_INLINE double copysign_f64(double x, double y) { return copysign(x, y); }

/* A NaN on either side wins; of two equal values, the second. */
#define VM_BOTH(S, T)                                                                              \
    VM_INLINE T minimum_##S(T x, T y) { return (x < y) | (x != x) ? x : y; }                       \
    VM_INLINE T maximum_##S(T x, T y) { return (x > y) | (x != x) ? x : y; }                       \
    VM_INLINE T sign_##S(T x) { return (x != x) ? x : (T)((x > 0) - (x < 0)); }                    \
    VM_INLINE int isnan_##S(T x) { return x != x; }
VM_BOTH(f32, float)
VM_BOTH(f64, double)
VM_INLINE int isinf_f32(float x) { return fabsf(x) == INFINITY; }
VM_INLINE int isinf_f64(double x) { return fabs(x) == (double)INFINITY; }
VM_INLINE int isfinite_f32(float x) { return fabsf(x) < INFINITY; }
VM_INLINE int isfinite_f64(double x) { return fabs(x) < (double)INFINITY; }
VM_INLINE int signbit_f32(float x) { return vm_bits(x) < 0; }
VM_INLINE int signbit_f64(double x) { return !!signbit(x); }
#endif
