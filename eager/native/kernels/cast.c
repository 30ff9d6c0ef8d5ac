/* Conversion between dtypes (to_dtype), row-major tensors. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

typedef struct {
    void *to;
    const void *from;
} Cast;

#define CAST(A, TA, B, TB)                                                                                  \
    CLONES static void A##_to_##B(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Cast *c = context;                                                                            \
        TB *restrict to = c->to;                                                                            \
        const TA *restrict from = c->from;                                                                  \
        for (long i = begin; i < end; i++) to[i] = (TB)from[i];                                             \
    }
CAST(bool, uint8_t, i64, int64_t)
CAST(bool, uint8_t, f32, float)
CAST(bool, uint8_t, f64, double)
CAST(i32, int32_t, i64, int64_t)
CAST(i32, int32_t, f32, float)
CAST(i32, int32_t, f64, double)
CAST(i64, int64_t, i32, int32_t)
CAST(i64, int64_t, f32, float)
CAST(i64, int64_t, f64, double)
CAST(f32, float, f64, double)
CAST(f64, double, f32, float)
CAST(u8, uint8_t, f32, float)

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

CLONES static void bf16_to_f32(void *context, long begin, long end)
{
    const Cast *c = context;
    float *restrict to = c->to;
    const uint16_t *restrict from = c->from;
    for (long i = begin; i < end; i++) to[i] = float_of((uint32_t)from[i] << 16);
}

/* To the nearest, ties to even; of NaN the sign is kept. */
CLONES static void f32_to_bf16(void *context, long begin, long end)
{
    const Cast *c = context;
    uint16_t *restrict to = c->to;
    const float *restrict from = c->from;
    for (long i = begin; i < end; i++) {
        const uint32_t bits = bits_of(from[i]), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)(from[i] != from[i] ? 0x7fc0 | (bits >> 16 & 0x8000) : rounded);
    }
}

/* The bits of a float16: subnormal ones are rounded by adding 2^-1 in units of 2^-24, normal ones by carrying in their bits. */
CLONES static void f32_to_f16(void *context, long begin, long end)
{
    const Cast *c = context;
    uint16_t *restrict to = c->to;
    const float *restrict from = c->from;
    for (long i = begin; i < end; i++) {
        const uint32_t bits = bits_of(from[i]), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
        const uint32_t tiny = bits_of(float_of(size) + 0.5f) - 0x3f000000;
        const uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        const uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
        const uint32_t large = size > 0x7f800000 ? nan : 0x7c00;
        const uint32_t finite = size < 0x38800000 ? tiny : normal;
        to[i] = (uint16_t)(sign | (size >= 0x477ff000 ? large : finite));
    }
}

CLONES static void f16_to_f32(void *context, long begin, long end)
{
    const Cast *c = context;
    float *restrict to = c->to;
    const uint16_t *restrict from = c->from;
    for (long i = begin; i < end; i++) {
        const uint32_t sign = (uint32_t)(from[i] & 0x8000) << 16, size = from[i] & 0x7fff;
        const uint32_t normal = (size << 13) + 0x38000000, special = 0x7f800000 | size << 13;
        const uint32_t tiny = bits_of((float)(int32_t)size * 0x1p-24f);
        to[i] = float_of(sign | (size >= 0x7c00 ? special : size < 0x400 ? tiny : normal));
    }
}

/* (What a float beyond an integer's range becomes is numpy's affair.) */
static const struct {
    int from, to;
    LoopFn loop;
} casts[] = {
    {EAGER_BOOL, EAGER_INT64, bool_to_i64},      {EAGER_BOOL, EAGER_FLOAT32, bool_to_f32}, {EAGER_BOOL, EAGER_FLOAT64, bool_to_f64},
    {EAGER_INT32, EAGER_INT64, i32_to_i64},      {EAGER_INT32, EAGER_FLOAT32, i32_to_f32}, {EAGER_INT32, EAGER_FLOAT64, i32_to_f64},
    {EAGER_INT64, EAGER_INT32, i64_to_i32},      {EAGER_INT64, EAGER_FLOAT32, i64_to_f32}, {EAGER_INT64, EAGER_FLOAT64, i64_to_f64},
    {EAGER_FLOAT32, EAGER_FLOAT64, f32_to_f64},  {EAGER_FLOAT64, EAGER_FLOAT32, f64_to_f32},
    {EAGER_UINT8, EAGER_FLOAT32, u8_to_f32},     {EAGER_BFLOAT16, EAGER_FLOAT32, bf16_to_f32}, {EAGER_FLOAT32, EAGER_BFLOAT16, f32_to_bf16},
    {EAGER_FLOAT16, EAGER_FLOAT32, f16_to_f32},  {EAGER_FLOAT32, EAGER_FLOAT16, f32_to_f16},
};

/* to_dtype(x, dtype): row-major tensors */
bool kernel_to_dtype(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    if (!x || !has_plain_strides(x)) return false;
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        if (casts[i].from != code_of(x) || g_dtypes[casts[i].to] != args[1]) continue;
        TensorObject *out = result_memory(results, casts[i].to, tensor_ndim(x), tensor_sizes(x));
        const long count = (long)tensor_count(x);
        if (out && count) {
            Cast c = {out->data, x->data};
            parallel(casts[i].loop, &c, count, 16384, (double)count);
        }
        return out != NULL;
    }
    return false;
}
