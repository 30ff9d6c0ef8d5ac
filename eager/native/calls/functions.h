/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_CALLS_FUNCTIONS_H
#define EAGER_CALLS_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef op_call_functions[];
extern PyMethodDef traceback_filter_functions[];
extern PyMethodDef exception_table_functions[];
#endif
