/* What hook.c and resume.c share beyond native.h: they alone see frames. */
#ifndef FRAMEJIT_HOOK_H
#define FRAMEJIT_HOOK_H

#include "frame_compat.h"

/* Evaluate a frame as if the hook were not there. */
PyObject *eval_plainly(PyThreadState *ts, Frame *frame, int throwflag);
/* Fill the fresh frame that a re-entry waited for, and run it. */
PyObject *pending_run(Pending *pending, PyThreadState *ts, Frame *frame);
#endif
