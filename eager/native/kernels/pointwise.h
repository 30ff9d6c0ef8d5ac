/* The native loops of pointwise ops over floats. */
#ifndef EAGER_POINTWISE_H
#define EAGER_POINTWISE_H

#include "kernels/kernel.h"

/* Number of the op `name` among the ops with loops, or -1; how many arguments it takes. */
int pointwise_find(const char *name);
int pointwise_arity(int op);

/* `operands`: a mask of the operands that must be tensors; dispatch refuses a number there. */
void pointwise_refuse_numbers(int op, int operands);

/* Runs the loop of an op by the convention of kernels. Supports tensors of one dtype, float32 or float64, row-major or one spread
 * element, with data on the CPU, whose sizes broadcast, beside Python numbers. Unless `beneath_autograd`, the tensors must be of
 * class eager.Tensor and need no gradient. */
bool pointwise_run(int op, PyObject *const *args, Py_ssize_t nargs, bool beneath_autograd, Results *results);

/* The result in new memory; NULL without an exception where the full dispatch has to decide. `plain`: a call that neither a mode
 * nor autograd has to see. */
PyObject *pointwise_call_plain(int op, PyObject *const *args, Py_ssize_t nargs);
PyObject *pointwise_call(int op, PyObject *const *args, Py_ssize_t nargs);

/* The result written into args[0], which is returned. */
PyObject *pointwise_write(int op, PyObject *const *args, Py_ssize_t nargs);

#endif
