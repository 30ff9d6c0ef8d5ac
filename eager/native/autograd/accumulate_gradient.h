/* Sums of gradients that the engine writes in place. */
#ifndef EAGER_ACCUMULATE_GRADIENT_H
#define EAGER_ACCUMULATE_GRADIENT_H

#include "calls/calls.h"

/* sum += gradient. False, with nothing written, where `sum` may be seen by others or the layouts differ. */
bool gradient_add(PyObject *sum, PyObject *gradient);

/* sum += gradient, for the gradient of a leaf, which any thread may read or add to: only for few elements, which this thread adds
 * without a release of the interpreter's lock. False, with nothing written, for many elements, and where the layouts differ. */
bool gradient_add_to_leaf(PyObject *sum, PyObject *gradient);

/* Adds the gradient of a select or slice of x to `whole`, the gradient of x so far (NULL: none yet), and returns the sum. NULL
 * without an exception where the op's gradient formula has to be called. */
PyObject *gradient_add_part(const OpBase *op, PyObject *saved, PyObject *gradient, PyObject *whole);
#endif
