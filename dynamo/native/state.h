/* The thread's state, the stance of the process, and the buffer for the slots of one call. The lowest layer of dynamo._native. */
#ifndef FRAMEJIT_STATE_H
#define FRAMEJIT_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include "tensor/tensor.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

extern const EagerAPI *eager_api;

/* --- thread state ---------------------------------------------------------------------------- */
enum { MODE_OFF = 0, MODE_ON = 1, MODE_RUN_ONLY = 2 };
enum { STANCE_DEFAULT = 0, STANCE_EAGER = 1, STANCE_RUN_ONLY = 2 };

typedef struct RegionObject RegionObject;
typedef struct Pending Pending;

typedef struct {
    int mode;
    bool disabled;
    RegionObject *region;       /* strong; NULL is the default region */
    PyCodeObject *plain;        /* the next fresh frame of this code runs unchanged */
    Pending *pending;           /* a re-entry waiting for its frame */
} ThreadState;

/* initial-exec: a plain offset from the thread pointer instead of a call per access. */
extern _Thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
extern int stance;

/* Called when the current error leaves generated code: the callback may remove the frames of generated code from its
 * traceback. */
void tidy_error(void);

/* Whether the thread runs under a trace or profile function, or inside a tracing callback. */
static inline bool thread_is_traced(PyThreadState *ts)
{
    return ts->c_tracefunc || ts->c_profilefunc || ts->tracing;
}

/* --- slots of one call ----------------------------------------------------------------------- */
#define INLINE_SLOTS 64
typedef struct {
    PyObject **slots;           /* slots[-1] exists */
    int capacity;
    PyObject *inline_slots[INLINE_SLOTS + 1];
} SlotBuffer;

static inline int slot_buffer_init(SlotBuffer *b, Py_ssize_t n)
{
    if (likely(n <= INLINE_SLOTS - 16)) {
        b->slots = b->inline_slots + 1;
        b->capacity = INLINE_SLOTS;
        return 0;
    }
    PyObject **heap = PyMem_New(PyObject *, n + 17);
    if (!heap) {
        PyErr_NoMemory();
        return -1;
    }
    b->slots = heap + 1;
    b->capacity = (int)n + 16;
    return 0;
}
static inline void slot_buffer_free(SlotBuffer *b)
{
    if (unlikely(b->slots != b->inline_slots + 1)) PyMem_Free(b->slots - 1);
}
PyObject *slots_tuple(PyObject **slots, int n);

extern PyMethodDef state_methods[];
#endif
