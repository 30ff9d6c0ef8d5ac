/* The state of threads and of the process, and the Python functions that read and set it. */
#include "state.h"

_Thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
int stance = STANCE_DEFAULT;

PyObject *slots_tuple(PyObject **slots, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(slots[i]));
    return tuple;
}

static PyObject *error_callback;

void tidy_error(void)
{
    if (!error_callback) return;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    Py_XDECREF(traceback);
    PyObject *done = PyObject_CallOneArg(error_callback, error);
    /* At the recursion limit the callback has no room: frames further out call it again. */
    if (!done && PyErr_ExceptionMatches(PyExc_RecursionError)) PyErr_Clear();
    else if (!done) PyErr_WriteUnraisable(error_callback);
    Py_XDECREF(done);
    PyErr_Restore(type, error, PyException_GetTraceback(error));
}

static PyObject *py_set_error_callback(PyObject *module, PyObject *callback)
{
    (void)module;
    Py_XSETREF(error_callback, callback == Py_None ? NULL : Py_NewRef(callback));
    Py_RETURN_NONE;
}

/* --- Python functions ------------------------------------------------------------------------ */
static PyObject *py_call_disabled(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)module;
    if (nargs < 1) return PyErr_Format(PyExc_TypeError, "call_disabled: expected a callable, then its arguments");
    bool saved = thread_state.disabled;
    thread_state.disabled = true;
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(nargs - 1), kwnames);
    thread_state.disabled = saved;
    return result;
}

static PyObject *py_set_disabled(PyObject *module, PyObject *value)
{
    (void)module;
    int disabled = PyObject_IsTrue(value);
    if (disabled < 0) return NULL;
    bool saved = thread_state.disabled;
    thread_state.disabled = disabled;
    return PyBool_FromLong(saved);
}

static PyObject *py_set_stance(PyObject *module, PyObject *value)
{
    (void)module;
    long n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < STANCE_DEFAULT || n > STANCE_RUN_ONLY)
        return PyErr_Format(PyExc_ValueError, "set_stance: given %ld; expected STANCE_DEFAULT, STANCE_EAGER or STANCE_RUN_ONLY", n);
    int saved = stance;
    stance = (int)n;
    return PyLong_FromLong(saved);
}

static PyObject *py_thread_mode(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(thread_state.mode);
}

PyMethodDef state_methods[] = {
    {"call_disabled", (PyCFunction)(void (*)(void))py_call_disabled, METH_FASTCALL | METH_KEYWORDS,
     "call_disabled(fn, /, *args, **kwargs): compiled functions run their originals."},
    {"set_disabled", py_set_disabled, METH_O, "Disable this thread; returns the old value."},
    {"set_stance", py_set_stance, METH_O, "Set the process's stance; returns the old one."},
    {"set_error_callback", py_set_error_callback, METH_O, "Set what sees an exception that leaves a target."},
    {"thread_mode", py_thread_mode, METH_NOARGS, "This thread's mode."},
    {NULL, NULL, 0, NULL},
};
