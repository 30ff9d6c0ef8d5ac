/* The native loops of pointwise ops over floats. */
#ifndef EAGER_POINTWISE_H
#define EAGER_POINTWISE_H

#include "kernels/kernel.h"

/* Number of the op `name` among the ops with loops, or -1; how many arguments it takes. */
int pointwise_find(const char *name);
int pointwise_arity(int op);

/* `operands`: a mask of the operands that must be tensors; dispatch refuses a number there. */
void pointwise_refuse_numbers(int op, int operands);

/* The result in new memory; NULL without an exception where the full dispatch has to decide. The loops support tensors of one
 * dtype, float32 or float64, row-major or one spread element, with data on the CPU, whose sizes broadcast, beside Python numbers.
 * `plain`: only tensors of class eager.Tensor that need no gradient, outside of modes. */
PyObject *pointwise_call_plain(int op, PyObject *const *args, Py_ssize_t nargs);
PyObject *pointwise_call(int op, PyObject *const *args, Py_ssize_t nargs);

/* The result written into args[0], which is returned. */
PyObject *pointwise_write(int op, PyObject *const *args, Py_ssize_t nargs);

#endif
