/* Where the results of a kernel lie: in new memory, or in the tensor that the call writes. */
#define PY_SSIZE_T_CLEAN
#include "kernels/kernel.h"

TensorObject *result_memory_strided(Results *results, int code, int ndim, const int64_t *sizes, const int64_t *strides)
{
    StorageObject *s = storage_alloc(row_major_bytes(ndim, sizes, g_itemsize[code]));
    if (!s) return NULL;
    TensorObject *t = tensor_new(g_tensor_class, s, EAGER_META(code, EAGER_CPU, 0, ndim), ndim, sizes, strides, 0);
    Py_DECREF(s);
    if (t) results->tensors[results->count++] = t;
    return t;
}

TensorObject *result_memory(Results *results, int code, int ndim, const int64_t *sizes)
{
    TensorObject *target = results->target;
    if (!target) {
        TensorObject *t = new_tensor(code, ndim, sizes);
        if (t) results->tensors[results->count++] = t;
        return t;
    }
    if (results->count || code_of(target) != code || !same_sizes(target, sizes, ndim) || !is_row_major(target)) return NULL;
    results->tensors[results->count++] = (TensorObject *)Py_NewRef((PyObject *)target);
    return target;
}

PyObject *results_take(Results *results)
{
    if (results->count == 1) return (PyObject *)results->tensors[0];
    PyObject *tuple = PyTuple_New(results->count);
    for (int i = 0; i < results->count; i++) {
        if (tuple) PyTuple_SET_ITEM(tuple, i, (PyObject *)results->tensors[i]);
        else Py_DECREF(results->tensors[i]);
    }
    return tuple;
}

void results_drop(Results *results)
{
    for (int i = 0; i < results->count; i++) Py_DECREF(results->tensors[i]);
}
