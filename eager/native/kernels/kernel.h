/* The convention of native kernels: a kernel reads an op's arguments and writes into memory that its caller gives.
 *
 * A kernel first decides whether it supports the arguments, then takes the memory of each result from `Results`, in the order of
 * the op's schema, and fills it. The caller decides where that memory lies: new memory, or the tensor that an in-place op writes.
 * A kernel never allocates a result, records a gradient or reads the mode stack. */
#ifndef EAGER_KERNEL_H
#define EAGER_KERNEL_H

#include "kernels/results.h"

/* args: all arguments of the op, in the order of its schema. True: every result is written. False without an exception: the
 * kernel does not support the arguments, and nothing that the caller can see has changed. */
typedef bool (*Kernel)(PyObject *const *args, Results *results);

/* kernel_registry.c. Number of the kernel of an op, or -1. `in_place`: of the kernels that write the op's first argument. */
int kernel_find(const char *op, bool in_place);

/* Runs a kernel into new memory, or into args[0], which is returned. NULL without an exception for unsupported arguments. */
PyObject *kernel_call(int number, PyObject *const *args, Py_ssize_t nargs);
PyObject *kernel_write(int number, PyObject *const *args, Py_ssize_t nargs);

#include "kernels/kernel_table.h"

#endif
