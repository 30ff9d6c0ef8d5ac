/* Writes of a value into part of a tensor: x[...] = value. */
#ifndef EAGER_ASSIGN_H
#define EAGER_ASSIGN_H

#include "kernels/kernel.h"

/* Part of a tensor; strides in elements. */
typedef struct {
    char *data;
    int ndim, code;
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
} Part;

/* All of a tensor. */
void part_of(const TensorObject *t, Part *part);

/* target[...] = value: a number, or a tensor of the target's dtype that broadcasts to it and shares no memory with it. False, with
 * nothing written, for any other value. */
bool assign_value(const Part *target, PyObject *value);

/* target[...] = made, of the same sizes, and counts the write. False, with nothing written, for other sizes or dtypes. */
bool assign_result(const TensorObject *target, PyObject *made);

#endif
