/* The one convention of native kernels: a kernel reads an op's arguments and writes into memory that its caller gives.
 *
 * A kernel first decides whether it supports the arguments, then asks `Results` for the memory of each result, in the order of
 * the op's schema, and fills it. The caller decides where that memory lies: new memory, or the tensor that an in-place op
 * writes. No kernel allocates a result, records a gradient or looks at modes. */
#ifndef EAGER_KERNEL_H
#define EAGER_KERNEL_H

#include "tensor/argument_reading.h"

enum { MAX_RESULTS = 3 };

typedef struct {
    TensorObject *target;               /* borrowed: the tensor that the call writes; NULL: results lie in new memory */
    TensorObject *tensors[MAX_RESULTS]; /* owned */
    int count;
} Results;

/* args: all arguments of the op, in the order of its schema. True: every result is written. False without an exception: the
 * kernel does not support the arguments, and nothing that the caller can see has changed. */
typedef bool (*Kernel)(PyObject *const *args, Results *results);

/* results.c. Memory for the next result, borrowed; row-major, or of these strides. NULL with an exception if memory is short, and
 * without one if the target has another dtype, other sizes or another layout. */
TensorObject *result_memory(Results *results, int code, int ndim, const int64_t *sizes);
TensorObject *result_memory_strided(Results *results, int code, int ndim, const int64_t *sizes, const int64_t *strides);

/* The written results: one tensor, or a tuple. A new reference; `results` is empty afterwards. */
PyObject *results_take(Results *results);
void results_drop(Results *results);

/* kernel_registry.c. Number of the kernel of an op, or -1. `in_place`: of the kernels that write the op's first argument. */
int kernel_find(const char *op, bool in_place);

/* Runs a kernel into new memory, or into args[0], which is returned. NULL without an exception for unsupported arguments. */
PyObject *kernel_call(int number, PyObject *const *args, Py_ssize_t nargs);
PyObject *kernel_write(int number, PyObject *const *args, Py_ssize_t nargs);

#include "kernels/kernel_table.h"

#endif
