/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_TENSOR_FUNCTIONS_H
#define EAGER_TENSOR_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef registration_functions[];
extern PyMethodDef tensor_functions[];
extern PyMethodDef storage_functions[];
extern PyMethodDef numpy_array_functions[];
extern PyMethodDef strided_copy_functions[];
extern PyMethodDef memory_overlap_functions[];
extern PyMethodDef random_stream_functions[];
#endif
