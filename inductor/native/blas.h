/* Products of matrices by cuBLASLt. The library is opened when Python names it: no CUDA header is needed. */
#ifndef INDUCTOR_BLAS_H
#define INDUCTOR_BLAS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

extern PyTypeObject MatrixProduct_Type;
extern PyMethodDef blas_functions[];

/* Puts the product, a MatrixProduct with a chosen algorithm, on the stream. bias: NULL without one. The caller has selected
 * the device. */
int blas_run(PyObject *product, const void *a, const void *b, void *result, const void *bias, void *workspace, int64_t workspace_bytes,
             void *stream);

#endif
