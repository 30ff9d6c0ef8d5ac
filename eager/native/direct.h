/* What kernels over an op's full arguments share: reading them, and making results. */
#ifndef EAGER_DIRECT_H
#define EAGER_DIRECT_H

#include "internal.h"
#include <string.h>

/* A kernel gets the op's arguments in the order of its schema. It returns a new tensor, or a tuple of them; NULL without an
 * exception where the arguments are none that it works on. It heeds neither autograd nor modes. */
typedef PyObject *(*Kernel)(PyObject *const *args);

/* A tensor with data on the CPU; NULL for anything else. */
static inline TensorObject *cpu_tensor(PyObject *o)
{
    if (!PyObject_TypeCheck(o, &TensorBase_Type)) return NULL;
    TensorObject *t = (TensorObject *)o;
    return t->meta & (EAGER_FAKE | ((uint64_t)0xff << 8)) ? NULL : t;
}

/* The same of float32 or float64. */
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

/* Row-major, and no layout of an image with its channels innermost, as which strides of dims of size one may pass too. */
static inline bool is_plain_image(const TensorObject *t) { return is_row_major(t) && !suggests_channels_last(t); }

/* Row-major in every stride, those of dims of size one as well: what a copy of it would have. */
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

/* The same for what convolutions and pooling read: they take a sequence (n, c, length) for an image of one row. */
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

/* A plain int argument, and a list of them. */
static inline bool read_int(PyObject *o, int64_t *value)
{
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static inline int read_ints(PyObject *o, int64_t *values, int most) /* how many; -1 if it is no such list */
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
    if (!read_int(o, &whole)) return false; /* no number, or an int that no dtype holds */
    *value = (double)whole;
    return true;
}

/* Whether a finite number is beyond the floats of dtype `code`: it is refused where such a one is stored. */
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

/* move.c: the code of a dtype object, or -1; whether a device argument is None or the CPU */
int code_of_dtype(PyObject *dtype);
bool is_cpu_device(PyObject *device);

/* copy.c: elements of `from`, of the same sizes, into `to`; the two do not overlap, and `to` runs forwards */
void copy_elements(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, const int64_t *sizes,
                   int ndim, int itemsize);

/* The tensor itself, or a row-major copy of it: a new reference. */
TensorObject *as_row_major(TensorObject *t);

/* The kernels, by file. */
PyObject *kernel_sum(PyObject *const *args); /* reduce.c */
PyObject *kernel_mean(PyObject *const *args);
PyObject *kernel_amax(PyObject *const *args);
PyObject *kernel_amin(PyObject *const *args);
PyObject *kernel_vector_norm(PyObject *const *args); /* norm.c */
PyObject *kernel_softmax(PyObject *const *args); /* normalize.c */
PyObject *kernel_log_softmax(PyObject *const *args);
PyObject *kernel_softmax_backward(PyObject *const *args);
PyObject *kernel_log_softmax_backward(PyObject *const *args);
PyObject *kernel_layer_norm(PyObject *const *args);
PyObject *kernel_layer_norm_backward(PyObject *const *args);
PyObject *kernel_layer_norm_backward_weight(PyObject *const *args);
PyObject *kernel_mm(PyObject *const *args); /* products.c */
PyObject *kernel_bmm(PyObject *const *args);
PyObject *kernel_matmul(PyObject *const *args);
PyObject *kernel_linear(PyObject *const *args);
PyObject *kernel_convolution(PyObject *const *args); /* conv.c */
PyObject *kernel_conv_weight(PyObject *const *args);
PyObject *kernel_attention(PyObject *const *args); /* attention.c */
PyObject *kernel_attention_backward(PyObject *const *args);
PyObject *kernel_cross_entropy(PyObject *const *args); /* loss.c */
PyObject *kernel_cross_entropy_backward(PyObject *const *args);
PyObject *kernel_eq(PyObject *const *args); /* whole.c */
PyObject *kernel_ne(PyObject *const *args);
PyObject *kernel_lt(PyObject *const *args);
PyObject *kernel_le(PyObject *const *args);
PyObject *kernel_gt(PyObject *const *args);
PyObject *kernel_ge(PyObject *const *args);
PyObject *kernel_logical_and(PyObject *const *args);
PyObject *kernel_logical_or(PyObject *const *args);
PyObject *kernel_logical_xor(PyObject *const *args);
PyObject *kernel_bitwise_and(PyObject *const *args);
PyObject *kernel_bitwise_or(PyObject *const *args);
PyObject *kernel_bitwise_xor(PyObject *const *args);
PyObject *kernel_maximum(PyObject *const *args);
PyObject *kernel_minimum(PyObject *const *args);
PyObject *kernel_add(PyObject *const *args);
PyObject *kernel_sub(PyObject *const *args);
PyObject *kernel_mul(PyObject *const *args);
PyObject *kernel_floor_divide(PyObject *const *args);
PyObject *kernel_remainder(PyObject *const *args);
PyObject *kernel_bitwise_not(PyObject *const *args);
PyObject *kernel_logical_not(PyObject *const *args);
PyObject *kernel_all(PyObject *const *args);
PyObject *kernel_any(PyObject *const *args);
PyObject *kernel_to_dtype(PyObject *const *args); /* integers.c */
PyObject *count_all(PyObject *const *args); /* for kernel_sum */
PyObject *kernel_max_pool(PyObject *const *args); /* pool.c */
PyObject *kernel_avg_pool(PyObject *const *args);
PyObject *kernel_avg_pool_backward(PyObject *const *args);
PyObject *kernel_adaptive_avg_pool(PyObject *const *args);
PyObject *kernel_adaptive_avg_pool_backward(PyObject *const *args);
PyObject *kernel_full(PyObject *const *args); /* move.c */
PyObject *kernel_empty(PyObject *const *args);
PyObject *kernel_int_table(PyObject *const *args);
PyObject *kernel_float_table(PyObject *const *args);
PyObject *kernel_clone(PyObject *const *args);
PyObject *kernel_cat(PyObject *const *args);
PyObject *kernel_index_select(PyObject *const *args);
PyObject *kernel_embedding(PyObject *const *args);
PyObject *kernel_embedding_backward(PyObject *const *args);
PyObject *kernel_gather(PyObject *const *args);
PyObject *kernel_scatter_add(PyObject *const *args);
PyObject *kernel_where(PyObject *const *args);
PyObject *kernel_scatter(PyObject *const *args);
PyObject *kernel_flip(PyObject *const *args); /* place.c */
PyObject *kernel_roll(PyObject *const *args);
PyObject *kernel_tril(PyObject *const *args);
PyObject *kernel_triu(PyObject *const *args);
PyObject *kernel_stack(PyObject *const *args);
PyObject *kernel_constant_pad_nd(PyObject *const *args);
PyObject *kernel_arange(PyObject *const *args);
PyObject *kernel_argmax(PyObject *const *args); /* order.c */
PyObject *kernel_argmin(PyObject *const *args);
PyObject *kernel_topk(PyObject *const *args);
PyObject *kernel_sort(PyObject *const *args);
PyObject *kernel_cumsum(PyObject *const *args);
PyObject *kernel_var(PyObject *const *args); /* norm.c */
PyObject *kernel_std(PyObject *const *args);
PyObject *kernel_philox_uniform(PyObject *const *args); /* philox.c */
PyObject *kernel_philox_normal(PyObject *const *args);
PyObject *kernel_philox_randint(PyObject *const *args);
PyObject *kernel_index(PyObject *const *args); /* positions.c */
PyObject *kernel_index_put(PyObject *const *args);
PyObject *kernel_index_add(PyObject *const *args);
PyObject *kernel_nonzero(PyObject *const *args); /* masks.c */
PyObject *kernel_masked_select(PyObject *const *args);
PyObject *kernel_masked_fill(PyObject *const *args);
PyObject *kernel_clamp(PyObject *const *args);
PyObject *kernel_rng_state(PyObject *const *args); /* stream.c */

#endif
