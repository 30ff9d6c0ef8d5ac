/* Filling a fresh frame for a re-entry: its locals, its stack, and where it starts. */
#ifndef FRAMEJIT_FRAME_FILL_H
#define FRAMEJIT_FRAME_FILL_H

#include "frame_compat.h"

extern PyObject *null_sentinel;             /* NULL in Python: an empty slot */
static inline PyObject *value_or_null(PyObject *value) { return value == null_sentinel ? NULL : value; }

struct Pending {
    PyObject *function;
    PyCodeObject *code;
    PyObject *locals, *stack, *exc, *shown;
    int unit;
};

/* Fill the fresh frame that a re-entry waits for. Returns the throwflag of its evaluation: 1 if an exception is set. */
int frame_fill(Pending *pending, PyThreadState *ts, Frame *frame);
int frame_fill_init(PyObject *module);
extern PyMethodDef frame_fill_methods[];
#endif
