/* Assignment: copy_ and fill_, and the writes behind x[...] = value. */
#define PY_SSIZE_T_CLEAN
#include "kernels/assign.h"

void part_of(const TensorObject *t, Part *p)
{
    p->data = t->data;
    p->ndim = tensor_ndim(t);
    p->code = code_of(t);
    memcpy(p->sizes, tensor_sizes(t), sizeof(int64_t) * (size_t)p->ndim);
    memcpy(p->strides, tensor_strides(t), sizeof(int64_t) * (size_t)p->ndim);
}

/* The first byte of a part, and the byte after its last. */
static void span_of(const Part *p, const char **low, const char **high)
{
    int64_t last = 0;
    for (int d = 0; d < p->ndim; d++) last += p->sizes[d] ? (p->sizes[d] - 1) * p->strides[d] : 0;
    *low = p->data;
    *high = p->data + (last + 1) * g_itemsize[p->code];
}

/* Whether the strides are positive, so that no two elements share memory. */
static bool is_target(const Part *p)
{
    for (int d = 0; d < p->ndim; d++)
        if (p->sizes[d] > 1 && p->strides[d] <= 0) return false;
    return g_itemsize[p->code] <= 8;
}

/* ---- values ---- */

/* The bytes of a number as an element of dtype `code`; false if the number does not fit, or needs the full conversion rules. */
static bool element_of(PyObject *value, int code, uint64_t *bytes)
{
    double real;
    int64_t whole;
    const bool truth = PyBool_Check(value);
    if (!truth && !PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) return false;
    *bytes = 0;
    if (code == EAGER_FLOAT32 || code == EAGER_FLOAT64) {
        if (truth) real = value == Py_True;
        else if (!read_real(value, &real) || beyond(real, code)) return false;
        const float single = (float)real;
        memcpy(bytes, code == EAGER_FLOAT64 ? (const void *)&real : (const void *)&single, (size_t)g_itemsize[code]);
        return true;
    }
    if (truth) whole = value == Py_True;
    else if (!read_int(value, &whole)) return false;
    if (code == EAGER_BOOL) whole = whole != 0;
    else if (code == EAGER_INT32 ? whole < INT32_MIN || whole > INT32_MAX : code != EAGER_INT64) return false;
    memcpy(bytes, &whole, (size_t)g_itemsize[code]); /* of a little-endian number, the low bytes */
    return true;
}

/* See assign.h. */
bool assign_value(const Part *target, PyObject *value)
{
    int64_t steps[EAGER_MAX_NDIM] = {0};
    uint64_t element;
    const TensorObject *t = cpu_tensor(value);
    if (!is_target(target)) return false;
    if (!t) {
        if (!element_of(value, target->code, &element)) return false;
        copy_elements(target->data, target->strides, &element, steps, target->sizes, target->ndim, g_itemsize[target->code]);
        return true;
    }
    Part from;
    part_of(t, &from);
    const int lead = target->ndim - from.ndim;
    if (from.code != target->code || lead < 0) return false;
    for (int d = 0; d < from.ndim; d++) {
        if (from.sizes[d] != target->sizes[lead + d] && from.sizes[d] != 1) return false;
        steps[lead + d] = from.sizes[d] == 1 ? 0 : from.strides[d];
    }
    const char *low, *high, *begin, *end;
    span_of(target, &low, &high);
    span_of(&from, &begin, &end);
    if (begin < high && low < end) return false;
    copy_elements(target->data, target->strides, from.data, steps, target->sizes, target->ndim, g_itemsize[target->code]);
    return true;
}

bool assign_result(const TensorObject *target, PyObject *made)
{
    const TensorObject *t = cpu_tensor(made);
    Part all;
    if (!t || !cpu_tensor((PyObject *)target) || !same_sizes(t, tensor_sizes(target), tensor_ndim(target))) return false;
    part_of(target, &all);
    if (!assign_value(&all, made)) return false;
    storage_written(target->storage);
    return true;
}

/* ---- copy_(x, src), fill_(x, value): they write a target of any layout ---- */

static bool assign_to_target(PyObject *value, Results *results)
{
    Part all;
    if (!results->target) return false;
    part_of(results->target, &all);
    if (!assign_value(&all, value)) return false;
    results->tensors[results->count++] = (TensorObject *)Py_NewRef((PyObject *)results->target);
    return true;
}

bool kernel_copy(PyObject *const *args, Results *results) { return cpu_tensor(args[1]) && assign_to_target(args[1], results); }

bool kernel_fill(PyObject *const *args, Results *results)
{
    return !PyObject_TypeCheck(args[1], &TensorBase_Type) && assign_to_target(args[1], results);
}
