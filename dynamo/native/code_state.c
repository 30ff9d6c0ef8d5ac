/* The state of a code object: whether its frames run plainly, and where a re-entry may start. */
#include "code_state.h"
#include "frame_compat.h"

static Py_ssize_t extra_index = -1;

static void code_state_free(void *extra)
{
    CodeState *state = extra;
    if (!state) return;
    PyMem_Free(state->resume_points);
    PyMem_Free(state);
}

CodeState *code_state(PyCodeObject *code, bool create)
{
    void *extra = NULL;
    if (code_extra_get((PyObject *)code, extra_index, &extra) < 0) {
        if (!create) PyErr_Clear();
        return NULL;
    }
    if (extra || !create) return extra;
    CodeState *state = PyMem_Calloc(1, sizeof *state);
    if (!state) return (CodeState *)PyErr_NoMemory();
    if (code_extra_set((PyObject *)code, extra_index, state) < 0) {
        PyMem_Free(state);
        return NULL;
    }
    return state;
}

int code_state_init(void)
{
    extra_index = code_extra_request(code_state_free);
    if (extra_index >= 0) return 0;
    PyErr_SetString(PyExc_RuntimeError, "dynamo: CPython has no free slot for per-code state");
    return -1;
}
