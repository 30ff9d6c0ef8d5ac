/* Reading an op's arguments: tensors and their layouts, ints, real numbers. A reader returns false or NULL without an exception
 * for an argument that kernels do not support. */
#ifndef EAGER_ARGUMENT_READING_H
#define EAGER_ARGUMENT_READING_H

#include "tensor/internal.h"
#include <string.h>

/* A tensor with data on the CPU; NULL for anything else. */
static inline TensorObject *cpu_tensor(PyObject *o)
{
    if (!PyObject_TypeCheck(o, &TensorBase_Type)) return NULL;
    TensorObject *t = (TensorObject *)o;
    return t->meta & (EAGER_FAKE | ((uint64_t)0xff << 8)) ? NULL : t;
}

/* A float32 or float64 tensor with data on the CPU, or NULL. */
static inline TensorObject *float_tensor(PyObject *o)
{
    TensorObject *t = cpu_tensor(o);
    const int code = t ? EAGER_META_DTYPE(t->meta) : -1;
    return code == EAGER_FLOAT32 || code == EAGER_FLOAT64 ? t : NULL;
}

/* Whether an argument that may be None is None, or a float tensor of the dtype `code`. */
static inline bool optional_float(PyObject *o, int code, TensorObject **t)
{
    *t = NULL;
    return o == Py_None || ((*t = float_tensor(o)) && EAGER_META_DTYPE((*t)->meta) == code);
}

static inline int code_of(const TensorObject *t) { return EAGER_META_DTYPE(t->meta); }

static inline int64_t count_elements(const int64_t *sizes, int ndim)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= sizes[i];
    return count;
}

static inline int64_t tensor_count(const TensorObject *t) { return count_elements(tensor_sizes(t), tensor_ndim(t)); }

static inline bool is_row_major(const TensorObject *t)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        if (tensor_sizes(t)[i] != 1 && tensor_strides(t)[i] != expected) return false;
        expected *= tensor_sizes(t)[i];
    }
    return true;
}

/* Whether the strides suggest a channels-last format: `eager.base.spec.suggested_format`, which states the rule. */
static inline bool suggests_channels_last(const TensorObject *t)
{
    const int ndim = tensor_ndim(t);
    const int64_t *sizes = tensor_sizes(t), *strides = tensor_strides(t);
    if ((ndim != 4 && ndim != 5) || strides[1] == 0) return false;
    int64_t extent = 0;
    for (int i = 0; i < ndim; i++) {
        const int d = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
        if (strides[d] < extent || sizes[d] == 0 || (d == 0 && extent == strides[1])) return false;
        extent = sizes[d] > 1 ? strides[d] * sizes[d] : strides[d];
    }
    return true;
}

/* Row-major and not channels-last. (Strides of dims of size one may match both layouts.) */
static inline bool is_plain_image(const TensorObject *t) { return is_row_major(t) && !suggests_channels_last(t); }

/* Row-major in every stride, of dims of size one too: the strides that a copy would have. */
static inline bool has_plain_strides(const TensorObject *t)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        if (tensor_strides(t)[i] != expected) return false;
        expected *= tensor_sizes(t)[i] > 1 ? tensor_sizes(t)[i] : 1;
    }
    return true;
}

static inline bool has_unit_dim(const TensorObject *t)
{
    for (int i = 0; i < tensor_ndim(t); i++)
        if (tensor_sizes(t)[i] == 1) return true;
    return false;
}

/* is_plain_image for convolutions and pooling: they read a sequence (n, c, length) as an image of one row. */
static inline bool is_plain_signal(const TensorObject *t)
{
    if (!is_plain_image(t)) return false;
    if (tensor_ndim(t) != 3) return true;
    if (tensor_sizes(t)[2] == 1) return has_plain_strides(t);
    return tensor_sizes(t)[1] != 1 || tensor_strides(t)[1] > tensor_strides(t)[2];
}

static inline bool same_sizes(const TensorObject *t, const int64_t *sizes, int ndim)
{
    return tensor_ndim(t) == ndim && !memcmp(tensor_sizes(t), sizes, sizeof(int64_t) * (size_t)ndim);
}

/* An int argument, and a list of ints. */
static inline bool read_int(PyObject *o, int64_t *value)
{
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static inline int read_ints(PyObject *o, int64_t *values, int most) /* their number; -1 if it is not a list of at most `most` ints */
{
    if (!PyTuple_Check(o) && !PyList_Check(o)) return -1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n > most) return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!read_int(PySequence_Fast_GET_ITEM(o, i), &values[i])) return -1;
    return (int)n;
}

static inline bool read_real(PyObject *o, double *value)
{
    if (PyFloat_Check(o)) {
        *value = PyFloat_AS_DOUBLE(o);
        return true;
    }
    int64_t whole;
    if (!read_int(o, &whole)) return false; /* not a number, or an int beyond 64 bits */
    *value = (double)whole;
    return true;
}

/* Whether a finite number is beyond the range of dtype `code`; ops that store a number refuse it. */
static inline bool beyond(double value, int code)
{
    return code == EAGER_FLOAT32 && (value > 3.4e38 || value < -3.4e38) && value - value == 0;
}

/* New row-major memory of eager.Tensor; contents undefined. */
static inline TensorObject *new_tensor(int code, int ndim, const int64_t *sizes)
{
    int64_t strides[EAGER_MAX_NDIM], step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    StorageObject *s = storage_alloc(row_major_bytes(ndim, sizes, g_itemsize[code]));
    if (!s) return NULL;
    TensorObject *t = tensor_new(g_tensor_class, s, EAGER_META(code, EAGER_CPU, 0, ndim), ndim, sizes, strides, 0);
    Py_DECREF(s);
    return t;
}

/* argument_reading.c: the code of a dtype object, or -1; whether a device argument is None or the CPU */
int code_of_dtype(PyObject *dtype);
bool is_cpu_device(PyObject *device);

/* strided_copy.c: copies elements between tensors of the same sizes. They must not overlap, and the strides of `to` must be
 * positive. */
void copy_elements(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, const int64_t *sizes,
                   int ndim, int itemsize);

/* The tensor itself, or a row-major copy of it: a new reference. */
TensorObject *as_row_major(TensorObject *t);

#endif
