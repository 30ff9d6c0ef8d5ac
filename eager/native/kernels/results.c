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

PyObject *results_tuple(Results *results)
{
    PyObject *tuple = PyTuple_New(results->count);
    for (int i = 0; i < results->count; i++) {
        if (tuple) PyTuple_SET_ITEM(tuple, i, (PyObject *)results->tensors[i]);
        else Py_DECREF(results->tensors[i]);
    }
    return tuple;
}
