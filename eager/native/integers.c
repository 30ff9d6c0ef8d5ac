/* What goes on beside the floats of a model: comparing indices, counting, changing dtypes. */
#define PY_SSIZE_T_CLEAN
#include "kernels.h"
KERNEL_FILE
#include "direct.h"

/* ---- comparisons of int64: with a number, or with a tensor of the same sizes ---- */

enum { EQ, NE, LT, LE, GT, GE };

#define COMPARED(op) for (int64_t i = 0; i < count; i++) to[i] = x[i] op (y ? y[i] : number)

static PyObject *compare(int kind, PyObject *const *args)
{
    const TensorObject *a = cpu_tensor(args[0]), *b = cpu_tensor(args[1]);
    int64_t number = 0;
    if (!a || code_of(a) != EAGER_INT64 || !is_row_major(a)) return NULL;
    if (b ? code_of(b) != EAGER_INT64 || !is_row_major(b) || !same_sizes(b, tensor_sizes(a), tensor_ndim(a)) : !read_int(args[1], &number)) return NULL;
    TensorObject *out = new_tensor(EAGER_BOOL, tensor_ndim(a), tensor_sizes(a));
    if (!out) return NULL;
    const int64_t count = tensor_count(a), *x = (const int64_t *)a->data, *y = b ? (const int64_t *)b->data : NULL;
    uint8_t *to = (uint8_t *)out->data;
    switch (kind) {
    case EQ: COMPARED(==); break;
    case NE: COMPARED(!=); break;
    case LT: COMPARED(<); break;
    case LE: COMPARED(<=); break;
    case GT: COMPARED(>); break;
    default: COMPARED(>=);
    }
    return (PyObject *)out;
}

PyObject *kernel_eq(PyObject *const *args) { return compare(EQ, args); }
PyObject *kernel_ne(PyObject *const *args) { return compare(NE, args); }
PyObject *kernel_lt(PyObject *const *args) { return compare(LT, args); }
PyObject *kernel_le(PyObject *const *args) { return compare(LE, args); }
PyObject *kernel_gt(PyObject *const *args) { return compare(GT, args); }
PyObject *kernel_ge(PyObject *const *args) { return compare(GE, args); }

/* sum(x, dims, keepdim, dtype) of bools or int64, over all dims */
PyObject *count_all(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]);
    int64_t dims[EAGER_MAX_NDIM], ones[EAGER_MAX_NDIM];
    if (!x || (code_of(x) != EAGER_BOOL && code_of(x) != EAGER_INT64) || !is_row_major(x) || args[3] != Py_None) return NULL;
    const int ndim = tensor_ndim(x);
    if (!ndim || read_ints(args[1], dims, EAGER_MAX_NDIM) != ndim) return NULL; /* dims come sorted, none twice */
    for (int d = 0; d < ndim; d++) ones[d] = 1;
    TensorObject *out = new_tensor(EAGER_INT64, args[2] == Py_True ? ndim : 0, ones);
    if (!out) return NULL;
    const int64_t count = tensor_count(x);
    uint64_t total = 0; /* wraps, as numpy's does */
    if (code_of(x) == EAGER_BOOL) for (int64_t i = 0; i < count; i++) total += (uint8_t)x->data[i] != 0;
    else for (int64_t i = 0; i < count; i++) total += (uint64_t)((const int64_t *)x->data)[i];
    memcpy(out->data, &total, sizeof total);
    return (PyObject *)out;
}

/* ---- dtypes ---- */

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

/* (What a float beyond an integer's range becomes is numpy's affair.) */
static const struct {
    int from, to;
    LoopFn loop;
} casts[] = {
    {EAGER_BOOL, EAGER_INT64, bool_to_i64},      {EAGER_BOOL, EAGER_FLOAT32, bool_to_f32}, {EAGER_BOOL, EAGER_FLOAT64, bool_to_f64},
    {EAGER_INT32, EAGER_INT64, i32_to_i64},      {EAGER_INT32, EAGER_FLOAT32, i32_to_f32}, {EAGER_INT32, EAGER_FLOAT64, i32_to_f64},
    {EAGER_INT64, EAGER_INT32, i64_to_i32},      {EAGER_INT64, EAGER_FLOAT32, i64_to_f32}, {EAGER_INT64, EAGER_FLOAT64, i64_to_f64},
    {EAGER_FLOAT32, EAGER_FLOAT64, f32_to_f64},  {EAGER_FLOAT64, EAGER_FLOAT32, f64_to_f32},
};

/* to_dtype(x, dtype): row-major tensors */
PyObject *kernel_to_dtype(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]);
    if (!x || !is_row_major(x)) return NULL;
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        if (casts[i].from != code_of(x) || g_dtypes[casts[i].to] != args[1]) continue;
        TensorObject *out = new_tensor(casts[i].to, tensor_ndim(x), tensor_sizes(x));
        const long count = (long)tensor_count(x);
        if (out && count) {
            Cast c = {out->data, x->data};
            parallel(casts[i].loop, &c, count, 16384, (double)count);
        }
        return (PyObject *)out;
    }
    return NULL;
}
