/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_KERNELS_FUNCTIONS_H
#define EAGER_KERNELS_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef softmax_layer_norm_functions[];
extern PyMethodDef philox_functions[];
extern PyMethodDef adam_functions[];
extern PyMethodDef moments_functions[];
extern PyMethodDef reduce_functions[];
extern PyMethodDef pointwise_functions[];
extern PyMethodDef libm_unary_functions[];
extern PyMethodDef matmul_functions[];
#endif
