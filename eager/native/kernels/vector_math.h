/* Elementary functions for loops that the compiler turns into vector code: no branches, no calls, no tables.
 *
 * NAME_f32 are written out: range reduction, a polynomial fitted to the reduced range (weighted least squares, weights
 * turned until the error is level), and selects for the special cases. Errors against the exact value, over all of the
 * range, in units in the last place: exp 1.0, log 1.0, expm1 1.2, log1p 1.0, tanh 1.1, erf 1.2. NAME_f64 call libm.
 * NaN goes through everywhere. Loops over them need -fno-math-errno and -fno-trapping-math to become vector code. */
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

/* log(1 + f) + n log(2) for f in [-1/4, 1/2]. */
VM_INLINE float vm_log_of(float f, float n)
{
    float p = -0.04490958f;
    p = p * f + 0.104483284f;
    p = p * f - 0.13162231f;
    p = p * f + 0.14482062f;
    p = p * f - 0.16647767f;
    p = p * f + 0.19990607f;
    p = p * f - 0.25000054f;
    p = p * f + 0.33333454f;
    p = p * f - 0.5f;
    float r = p * (f * f) + n * 1.42860677e-6f + f;
    return n * 0.693145752f + r;
}

VM_INLINE float log_f32(float x)
{
    int32_t tiny = x < 1.17549435e-38f;
    float y = tiny ? x * 8388608.0f : x;
    int32_t i = (int32_t)((uint32_t)vm_bits(y) - 0x3f400000u); /* 3/4: the mantissa lies in [3/4, 3/2) */
    float r = vm_log_of(vm_float((i & 0x007fffff) + 0x3f400000) - 1.0f, (float)((i >> 23) - (tiny ? 23 : 0)));
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    return (x == INFINITY) | (x != x) ? x : r;
}

/* expm1(x) = 2^n expm1(r) + (2^n - 1), halved so that 2^n may exceed the largest float. */
VM_INLINE float expm1_f32(float x)
{
    float c = x < -18.0f ? -18.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float shifted = c * 1.44269504f + 12582912.0f;
    int32_t n = vm_bits(shifted) - vm_bits(12582912.0f);
    float quotient = shifted - 12582912.0f;
    float r = (c - quotient * 0.693145752f) - quotient * 1.42860677e-6f;
    float p = 0.0001984591f;
    p = p * r + 0.0013941042f;
    p = p * r + 0.008333391f;
    p = p * r + 0.041666355f;
    p = p * r + 0.16666666f;
    p = p * r + 0.5f;
    float s = vm_float((int32_t)((uint32_t)(n + 126) << 23)); /* 2^(n-1) */
    float few = (p * (r * r)) * s + (r * s + (s - 0.5f));
    float many = ((p * (r * r) + r) * s - 0.5f) + s; /* here s - 0.5 would be rounded */
    float half = n > 6 ? many : few;
    return fabsf(x) < 2.98023224e-8f ? x : half + half;
}

VM_INLINE float tanh_f32(float x)
{
    float a = fabsf(x), z = x * x;
    float p = -0.00035845183f;
    p = p * z + 0.002301364f;
    p = p * z - 0.007946106f;
    p = p * z + 0.021486657f;
    p = p * z - 0.0538798f;
    p = p * z + 0.13332345f;
    p = p * z - 0.33333296f;
    float near = p * (z * a) + a, far = 1.0f - 2.0f / (exp_f32(a + a) + 1.0f);
    return x != x ? x : copysignf(a < 1.0f ? near : far, x);
}

/* 1 + x = 2^e (1 + f), where f is rounded once: s = 4 * 2^-e is never subnormal. */
VM_INLINE float log1p_f32(float x)
{
    float u = 1.0f + x;
    int32_t k = (int32_t)((uint32_t)vm_bits(u) - 0x3f400000u) & (int32_t)0xff800000;
    float s = vm_float((int32_t)(0x40800000u - (uint32_t)k)); /* 2^(2 - e) */
    float f = (x * 0.25f) * s + (s * 0.25f - 1.0f);
    float r = vm_log_of(f, (float)(k >> 23));
    r = x == -1.0f ? -INFINITY : r;
    r = x < -1.0f ? NAN : r;
    return (fabsf(x) < 2.98023224e-8f) | (x == INFINITY) | (x != x) ? x : r;
}

/* x + x P(x^2) near zero; 1 - exp(P(|x|)) farther out, which never exceeds one. Coefficients: N. Juffa, 2015. */
VM_INLINE float erf_f32(float x)
{
    float t = fabsf(x), s = x * x;
    float r = -1.72853470e-5f * t + 3.83197126e-4f;
    float u = -3.88396438e-3f * t + 2.42546219e-2f;
    r = r * s + u;
    r = r * t - 1.06777877e-1f;
    r = r * t - 6.34846687e-1f;
    r = r * t - 1.28717512e-1f;
    r = r * t - t;
    float far = copysignf(1.0f - exp_f32(r), x);
    float p = -5.96761703e-4f;
    p = p * s + 4.99119423e-3f;
    p = p * s - 2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s - 3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    p = p * x + x;
    return t > 0.921875f ? far : p;
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
VM_INLINE double tanh_f64(double x) { return fabs(x) < 7.450580596923828e-9 ? x : tanh(x); } /* libm's is off by one there */
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
