/* Tails: a continuation that runs after the frame that returns it is freed. */
#ifndef FRAMEJIT_TAIL_H
#define FRAMEJIT_TAIL_H

#include "state.h"

extern PyTypeObject TailType;
extern PyMethodDef tail_methods[];
PyObject *tail_drive(PyObject *result);     /* steals a result; while it is a Tail, runs it */
#endif
