/* The functions of `eager._native` that this layer defines, by file. */
#ifndef EAGER_RUNTIME_FUNCTIONS_H
#define EAGER_RUNTIME_FUNCTIONS_H

#include <Python.h>

extern PyMethodDef thread_state_functions[];
extern PyMethodDef runtime_functions[];
extern PyMethodDef caching_allocator_functions[];
#endif
