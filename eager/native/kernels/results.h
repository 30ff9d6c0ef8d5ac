/* Where the results of a kernel lie: in new memory, or in the tensor that the call writes. The caller of a kernel decides. */
#ifndef EAGER_RESULTS_H
#define EAGER_RESULTS_H

#include "tensor/argument_reading.h"

enum { MAX_RESULTS = 3 };

typedef struct {
    TensorObject *target;               /* borrowed: the tensor that the call writes; NULL: results lie in new memory */
    TensorObject *tensors[MAX_RESULTS]; /* owned */
    int count;
} Results;

/* The target as memory for a result: a new reference, or NULL if it has another dtype, other sizes or another layout. */
static inline TensorObject *target_memory(const Results *results, int code, int ndim, const int64_t *sizes)
{
    TensorObject *target = results->target;
    if (results->count || code_of(target) != code || !same_sizes(target, sizes, ndim) || !is_row_major(target)) return NULL;
    return (TensorObject *)Py_NewRef((PyObject *)target);
}

/* Memory for the next result, row-major; borrowed. NULL with an exception if memory is short, and without one if the target does
 * not fit. Inline: it is a tenth of a small op's time. */
static inline TensorObject *result_memory(Results *results, int code, int ndim, const int64_t *sizes)
{
    TensorObject *t = results->target ? target_memory(results, code, ndim, sizes) : new_tensor(code, ndim, sizes);
    if (t) results->tensors[results->count++] = t;
    return t;
}

/* The same with strides of the kernel's choice; never in a target. */
TensorObject *result_memory_strided(Results *results, int code, int ndim, const int64_t *sizes, const int64_t *strides);

/* The same with the sizes, the dtype and the memory layout of `x` (`preserve_strides` in eager/base/spec.py). */
TensorObject *result_memory_like(Results *results, const TensorObject *x);

/* Several results as a tuple: a new reference; `results` is empty afterwards. */
PyObject *results_tuple(Results *results);

/* The written results: one tensor, or a tuple. A new reference; `results` is empty afterwards. */
static inline PyObject *results_take(Results *results)
{
    return results->count == 1 ? (PyObject *)results->tensors[0] : results_tuple(results);
}

static inline void results_drop(Results *results)
{
    for (int i = 0; i < results->count; i++) Py_DECREF(results->tensors[i]);
}
#endif
