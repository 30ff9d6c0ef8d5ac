/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_TAPE_FUNCTIONS_H
#define EAGER_TAPE_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef record_op_functions[];
#endif
