/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_AUTOGRAD_FUNCTIONS_H
#define EAGER_AUTOGRAD_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef backward_engine_functions[];
#endif
