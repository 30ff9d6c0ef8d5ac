/* The native loops of pointwise ops. */
#ifndef EAGER_POINTWISE_H
#define EAGER_POINTWISE_H

#include "internal.h"

/* Number of the op called `name` among those with loops, or -1. */
int pointwise_find(const char *name);

/* How many arguments it takes. */
int pointwise_arity(int op);

/* From now on, the loop takes no number for the operands in that mask. */
void pointwise_refuse_numbers(int op, int operands);

/* The result of a call whose tensors are plain: of class eager.Tensor, float32 or float64, row-major, with data on the
 * CPU, and recorded by nobody (no dispatch mode, no gradient asked for). The rest of the arguments are Python numbers.
 * NULL without an exception where that does not hold or the shapes do not fit: the full dispatch decides then. */
PyObject *pointwise_call(int op, PyObject *const *args, Py_ssize_t nargs);

/* The same written into the first argument, which is returned. */
PyObject *pointwise_inplace(int op, PyObject *const *args, Py_ssize_t nargs);

/* The same beneath autograd and modes: for any class of tensor, whether or not gradients are asked for. */
PyObject *pointwise_run(int op, PyObject *const *args, Py_ssize_t nargs);

#endif
