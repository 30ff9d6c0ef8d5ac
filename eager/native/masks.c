/* Elements that a mask chooses, and elements kept between bounds. */
#define PY_SSIZE_T_CLEAN
#include "kernels.h"
KERNEL_FILE
#include "calls.h"
#include "direct.h"
#include <math.h>

/* Row-major bools with at least one element. */
static const TensorObject *mask_of(PyObject *o)
{
    const TensorObject *t = cpu_tensor(o);
    return t && code_of(t) == EAGER_BOOL && is_row_major(t) && tensor_count(t) ? t : NULL;
}

static int64_t count_true(const uint8_t *mask, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += mask[i] != 0;
    return found;
}

/* nonzero(x) of bools: (n, ndim), whose columns are contiguous */
PyObject *kernel_nonzero(PyObject *const *args)
{
    const TensorObject *x = mask_of(args[0]);
    if (!x || !tensor_ndim(x)) return NULL;
    const int ndim = tensor_ndim(x);
    const int64_t count = tensor_count(x), *sizes = tensor_sizes(x);
    const uint8_t *mask = (const uint8_t *)x->data;
    const int64_t found = count_true(mask, count), turned[] = {ndim, found}, shape[] = {found, ndim}, strides[] = {1, found};
    TensorObject *memory = new_tensor(EAGER_INT64, 2, turned);
    if (!memory) return NULL;
    TensorObject *out = tensor_new(g_tensor_class, memory->storage, EAGER_META(EAGER_INT64, EAGER_CPU, 0, 2), 2, shape, strides, 0);
    int64_t *to = (int64_t *)memory->data, at = 0;
    for (int64_t i = 0; out && at < found; i++) {
        if (!mask[i]) continue;
        for (int64_t d = ndim - 1, rest = i; d >= 0; rest /= sizes[d--]) to[d * found + at] = d ? rest % sizes[d] : rest;
        at++;
    }
    Py_DECREF(memory);
    return (PyObject *)out;
}

#define TAKE(T)                                                                                             \
    for (int64_t i = 0; at < found; i++) {                                                                  \
        ((T *)out->data)[at] = ((const T *)x->data)[i];                                                     \
        at += mask[i] != 0;                                                                                 \
    }

/* masked_select(x, mask) of one shape */
PyObject *kernel_masked_select(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]), *m = mask_of(args[1]);
    if (!x || !m || !is_row_major(x) || !same_sizes(x, tensor_sizes(m), tensor_ndim(m)) || g_itemsize[code_of(x)] > 8) return NULL;
    const uint8_t *mask = (const uint8_t *)m->data;
    const int64_t found = count_true(mask, tensor_count(m));
    TensorObject *out = new_tensor(code_of(x), 1, &found);
    int64_t at = 0;
    if (!out) return NULL;
    switch (g_itemsize[code_of(x)]) {
    case 1: TAKE(uint8_t) break;
    case 2: TAKE(uint16_t) break;
    case 4: TAKE(uint32_t) break;
    default: TAKE(uint64_t)
    }
    return (PyObject *)out;
}

/* ---- masked_fill ---- */

typedef struct {
    void *out;
    const void *x;
    const uint8_t *mask;
    double number;
} Filling;

#define FILLED(S, T)                                                                                        \
    CLONES static void filled_##S(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Filling *f = context;                                                                         \
        T *out = f->out;                                                                                    \
        const T *x = f->x;                                                                                  \
        const uint8_t *restrict mask = f->mask;                                                             \
        const T number = (T)f->number;                                                                      \
        LOOP_APART for (long i = begin; i < end; i++) out[i] = mask[i] ? number : x[i];                     \
    }
FILLED(f32, float)
FILLED(f64, double)

/* The value of masked_fill: a number, or a tensor of one element and of the floats of x. */
static bool read_filling(PyObject *o, int code, double *number)
{
    const TensorObject *t = float_tensor(o);
    if (!t) return !PyBool_Check(o) && read_real(o, number) && !beyond(*number, code);
    if (tensor_ndim(t) || code_of(t) != code) return false;
    *number = code == EAGER_FLOAT64 ? *(const double *)t->data : *(const float *)t->data;
    return true;
}

/* masked_fill(x, mask, value) of one shape; within x itself, or into new memory */
static PyObject *fill_masked(PyObject *const *args, bool within)
{
    TensorObject *x = float_tensor(args[0]);
    const TensorObject *m = mask_of(args[1]);
    Filling f;
    if (!x || !m || !is_row_major(x) || !same_sizes(x, tensor_sizes(m), tensor_ndim(m)) || !read_filling(args[2], code_of(x), &f.number))
        return NULL;
    if (within && x->storage == m->storage) return NULL;
    TensorObject *out = within ? (TensorObject *)Py_NewRef((PyObject *)x) : new_tensor(code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (!out) return NULL;
    f.out = out->data;
    f.x = x->data;
    f.mask = (const uint8_t *)m->data;
    parallel(code_of(x) == EAGER_FLOAT64 ? filled_f64 : filled_f32, &f, (long)tensor_count(x), 16384, (double)tensor_count(x));
    if (within) storage_written(x->storage);
    return (PyObject *)out;
}

PyObject *kernel_masked_fill(PyObject *const *args) { return fill_masked(args, false); }
PyObject *write_masked_fill(PyObject *const *args) { return fill_masked(args, true); }

/* ---- clamp ---- */

typedef struct {
    void *out;
    const void *x;
    double low, high;
    int64_t whole_low, whole_high;
} Bounds;

#define CLAMPED(S, T)                                                                                       \
    CLONES static void clamped_##S(void *context, long begin, long end)                                     \
    {                                                                                                       \
        const Bounds *b = context;                                                                          \
        T *out = b->out;                                                                                    \
        const T *x = b->x, low = (T)b->low, high = (T)b->high;                                              \
        LOOP_APART for (long i = begin; i < end; i++) {                                                     \
            const T raised = x[i] < low ? low : x[i]; /* NaN stays: no bound is one */                      \
            out[i] = raised > high ? high : raised;                                                         \
        }                                                                                                   \
    }
CLAMPED(f32, float)
CLAMPED(f64, double)

CLONES static void clamped_i64(void *context, long begin, long end)
{
    const Bounds *b = context;
    int64_t *out = b->out;
    const int64_t *x = b->x;
    LOOP_APART for (long i = begin; i < end; i++) {
        const int64_t raised = x[i] < b->whole_low ? b->whole_low : x[i];
        out[i] = raised > b->whole_high ? b->whole_high : raised;
    }
}

static bool read_bounds(PyObject *const *args, int code, Bounds *b)
{
    b->whole_low = INT64_MIN;
    b->whole_high = INT64_MAX;
    if (code == EAGER_INT64) return (args[1] == Py_None || read_int(args[1], &b->whole_low)) && (args[2] == Py_None || read_int(args[2], &b->whole_high));
    b->low = -INFINITY;
    b->high = INFINITY;
    return (args[1] == Py_None || (read_real(args[1], &b->low) && !beyond(b->low, code) && b->low == b->low)) &&
           (args[2] == Py_None || (read_real(args[2], &b->high) && !beyond(b->high, code) && b->high == b->high));
}

/* clamp(x, min, max): floats or int64, between numbers; within x itself, or into new memory */
static PyObject *clamp(PyObject *const *args, bool within)
{
    TensorObject *x = cpu_tensor(args[0]);
    const int code = x ? code_of(x) : -1;
    Bounds b;
    if (!x || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64 && code != EAGER_INT64) || !is_row_major(x) || !read_bounds(args, code, &b)) return NULL;
    TensorObject *out = within ? (TensorObject *)Py_NewRef((PyObject *)x) : new_tensor(code, tensor_ndim(x), tensor_sizes(x));
    if (!out) return NULL;
    b.out = out->data;
    b.x = x->data;
    const long count = (long)tensor_count(x);
    if (count) parallel(code == EAGER_INT64 ? clamped_i64 : code == EAGER_FLOAT64 ? clamped_f64 : clamped_f32, &b, count, 16384, (double)count);
    if (within) storage_written(x->storage);
    return (PyObject *)out;
}

PyObject *kernel_clamp(PyObject *const *args) { return clamp(args, false); }
PyObject *write_clamp(PyObject *const *args) { return clamp(args, true); }
