/* Ops with a bool mask: nonzero, masked_select, masked_fill, where. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include "tensor/memory_overlap.h"

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
bool kernel_nonzero(PyObject *const *args, Results *results)
{
    const TensorObject *x = mask_of(args[0]);
    if (!x || !tensor_ndim(x)) return false;
    const int ndim = tensor_ndim(x);
    const int64_t count = tensor_count(x), *sizes = tensor_sizes(x);
    const uint8_t *mask = (const uint8_t *)x->data;
    const int64_t found = count_true(mask, count), shape[] = {found, ndim}, strides[] = {1, found};
    TensorObject *out = result_memory_strided(results, EAGER_INT64, 2, shape, strides);
    if (!out) return false;
    int64_t *to = (int64_t *)out->data, at = 0;
    for (int64_t i = 0; at < found; i++) {
        if (!mask[i]) continue;
        for (int64_t d = ndim - 1, rest = i; d >= 0; rest /= sizes[d--]) to[d * found + at] = d ? rest % sizes[d] : rest;
        at++;
    }
    return true;
}

#define TAKE(T)                                                                                             \
    for (int64_t i = 0; at < found; i++) {                                                                  \
        ((T *)out->data)[at] = ((const T *)x->data)[i];                                                     \
        at += mask[i] != 0;                                                                                 \
    }

/* masked_select(x, mask) of one shape */
bool kernel_masked_select(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]), *m = mask_of(args[1]);
    if (!x || !m || !is_row_major(x) || !same_sizes(x, tensor_sizes(m), tensor_ndim(m)) || g_itemsize[code_of(x)] > 8) return false;
    const uint8_t *mask = (const uint8_t *)m->data;
    const int64_t found = count_true(mask, tensor_count(m));
    TensorObject *out = result_memory(results, code_of(x), 1, &found);
    int64_t at = 0;
    if (!out) return false;
    switch (g_itemsize[code_of(x)]) {
    case 1: TAKE(uint8_t) break;
    case 2: TAKE(uint16_t) break;
    case 4: TAKE(uint32_t) break;
    default: TAKE(uint64_t)
    }
    return out != NULL;
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

/* masked_fill(x, mask, value) of one shape. The result may lie over x. */
bool kernel_masked_fill(PyObject *const *args, Results *results)
{
    TensorObject *x = float_tensor(args[0]);
    const TensorObject *m = mask_of(args[1]);
    Filling f;
    if (!x || !m || !is_row_major(x) || !same_sizes(x, tensor_sizes(m), tensor_ndim(m)) || !read_filling(args[2], code_of(x), &f.number))
        return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (!out || same_allocation(out, m)) return false;
    f.out = out->data;
    f.x = x->data;
    f.mask = (const uint8_t *)m->data;
    parallel(code_of(x) == EAGER_FLOAT64 ? filled_f64 : filled_f32, &f, (long)tensor_count(x), 16384, (double)tensor_count(x));
    return true;
}

/* ---- where ---- */

typedef struct {
    void *out;
    const uint8_t *condition;
    const void *x, *y; /* NULL for a number */
    double x_number, y_number;
} Choice;

#define CHOOSE(S, T)                                                                                        \
    CLONES static void choose_##S(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Choice *c = context;                                                                          \
        T *restrict out = c->out;                                                                           \
        const uint8_t *restrict at = c->condition;                                                          \
        const T *restrict x = c->x, *restrict y = c->y;                                                     \
        const T a = (T)c->x_number, b = (T)c->y_number;                                                     \
        if (x && y) for (long i = begin; i < end; i++) out[i] = at[i] ? x[i] : y[i];                        \
        else if (x) for (long i = begin; i < end; i++) out[i] = at[i] ? x[i] : b;                           \
        else for (long i = begin; i < end; i++) out[i] = at[i] ? a : y[i];                                  \
    }
CHOOSE(f32, float)
CHOOSE(f64, double)

/* An operand of the condition's sizes, as a new row-major reference, or a number. A row-major condition makes the result so;
 * where it has dims of size 1, all operands must be tensors and row-major (`elementwise_strides` in eager/base/spec.py). */
static bool read_operand(PyObject *o, const TensorObject *condition, int *code, TensorObject **t, double *number)
{
    if (!PyObject_TypeCheck(o, &TensorBase_Type)) return read_real(o, number) && (has_plain_strides(condition) || !has_unit_dim(condition));
    TensorObject *given = float_tensor(o);
    if (given && !is_row_major(given) && has_unit_dim(condition)) return false;
    if (!given || (*code >= 0 && code_of(given) != *code) || !same_sizes(given, tensor_sizes(condition), tensor_ndim(condition))) return false;
    *code = code_of(given);
    return (*t = as_row_major(given)) != NULL;
}

/* where(condition, x, other): of one shape, or a number on one side */
bool kernel_where(PyObject *const *args, Results *results)
{
    TensorObject *condition = cpu_tensor(args[0]), *x = NULL, *y = NULL, *out = NULL;
    Choice c = {.out = NULL};
    int code = -1;
    if (!condition || code_of(condition) != EAGER_BOOL || !is_row_major(condition) || !tensor_count(condition)) return false;
    if (read_operand(args[1], condition, &code, &x, &c.x_number) && read_operand(args[2], condition, &code, &y, &c.y_number) && code >= 0 &&
        (out = result_memory(results, code, tensor_ndim(condition), tensor_sizes(condition)))) {
        c.out = out->data;
        c.condition = (const uint8_t *)condition->data;
        c.x = x ? x->data : NULL;
        c.y = y ? y->data : NULL;
        const long count = (long)tensor_count(condition);
        parallel(code == EAGER_FLOAT64 ? choose_f64 : choose_f32, &c, count, 16384, (double)count);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return out != NULL;
}
