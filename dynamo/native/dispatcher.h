/* Dispatcher: the compiled code of a continuation or of a hooked frame. */
#ifndef FRAMEJIT_DISPATCHER_H
#define FRAMEJIT_DISPATCHER_H

#include "entries.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    EntryTable table;
    PyObject *miss, *fallback, *key;
    uint64_t hits, misses;
} DispatcherObject;
extern PyTypeObject DispatcherType;
DispatcherObject *dispatcher_new(PyObject *miss, PyObject *fallback, PyObject *key);
#endif
