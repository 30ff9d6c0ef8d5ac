/* Results of kernels: strided memory, and tuples. */
#define PY_SSIZE_T_CLEAN
#include "kernels/results.h"

TensorObject *result_memory_strided(Results *results, int code, int ndim, const int64_t *sizes, const int64_t *strides)
{
    if (results->target) return NULL;
    StorageObject *s = storage_alloc(row_major_bytes(ndim, sizes, g_itemsize[code]));
    if (!s) return NULL;
    TensorObject *t = tensor_new(g_tensor_class, s, EAGER_META(code, EAGER_CPU, 0, ndim), ndim, sizes, strides, 0);
    Py_DECREF(s);
    if (t) results->tensors[results->count++] = t;
    return t;
}

/* Whether the elements of `x`, which is not row-major, fill their span with no gap and no overlap. */
static bool fills_its_span(const TensorObject *x)
{
    int64_t expected = 1;
    for (int64_t last = 0;;) { /* dims in the order of their strides */
        int next = -1;
        for (int i = 0; i < tensor_ndim(x); i++) {
            const int64_t stride = tensor_strides(x)[i];
            if (tensor_sizes(x)[i] != 1 && stride > last && (next < 0 || stride < tensor_strides(x)[next])) next = i;
        }
        if (next < 0) return expected == tensor_count(x);
        if (tensor_strides(x)[next] != expected) return false;
        last = expected;
        expected *= tensor_sizes(x)[next];
    }
}

/* As torch's TensorIterator orders dims: 1 if dim `inner` should lie outside of `outer`, -1 if not, 0 if either will do. */
static int compare_dims(const TensorObject *x, int inner, int outer)
{
    const int64_t a = tensor_strides(x)[inner], b = tensor_strides(x)[outer];
    if (a == 0 || b == 0) return 0;
    if (a != b) return a < b ? -1 : 1;
    return tensor_sizes(x)[inner] > tensor_sizes(x)[outer];
}

/* Strides of dense memory, with the dims in the order of the strides of `x`. */
static void strides_in_order(const TensorObject *x, int64_t *strides)
{
    const int ndim = tensor_ndim(x);
    int order[EAGER_MAX_NDIM]; /* from the innermost */
    for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
    for (int i = 1; i < ndim; i++)
        for (int at = i, j = i - 1; j >= 0; j--) {
            const int outside = compare_dims(x, order[j], order[at]);
            if (outside < 0) break;
            if (outside == 0) continue;
            const int dim = order[j];
            order[j] = order[at];
            order[at] = dim;
            at = j;
        }
    int64_t step = 1;
    for (int i = 0; i < ndim; i++) {
        strides[order[i]] = step;
        step *= tensor_sizes(x)[order[i]];
    }
}

TensorObject *result_memory_like(Results *results, const TensorObject *x)
{
    if (has_plain_strides(x)) return result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (is_row_major(x) || fills_its_span(x))
        return result_memory_strided(results, code_of(x), tensor_ndim(x), tensor_sizes(x), tensor_strides(x));
    int64_t strides[EAGER_MAX_NDIM];
    strides_in_order(x, strides);
    return result_memory_strided(results, code_of(x), tensor_ndim(x), tensor_sizes(x), strides);
}

PyObject *results_tuple(Results *results)
{
    PyObject *tuple = PyTuple_New(results->count);
    for (int i = 0; i < results->count; i++) {
        if (tuple) PyTuple_SET_ITEM(tuple, i, (PyObject *)results->tensors[i]);
        else Py_DECREF(results->tensors[i]);
    }
    return tuple;
}
