/* Tracebacks with the user's frames only.
 *
 * An exception that leaves a function of this library is filtered before the caller's frame sees it: by the calls of ops and
 * methods (filter_raised), and by the handler that eager.base.tracebacks adds to the public Python functions
 * (drop_library_frames). A call that raises nothing pays nothing.
 *
 * An entry stays if its code is the user's. An entry of the standard library or of numpy stays if the user's code called it, and
 * is dropped if this library did. */
#define PY_SSIZE_T_CLEAN
#include "calls/calls.h"
#include "calls/functions.h"
#include <frameobject.h>

enum { THEIRS, OURS, SUPPORT }; /* owner of a file; SUPPORT: the standard library and the packages that this library calls */
enum { MOST_LINKED = 64 };      /* exceptions that are followed through __cause__ and __context__ */

static PyObject *owner_of; /* callable: file name -> one of the numbers above */
static PyObject *shows_all; /* callable: whether the user wants all frames */
static PyObject *owners;   /* dict: file name -> owner, for the files seen so far */
static PyObject *str_generated;

static int owner_of_code(PyObject *filename)
{
    PyObject *found = PyDict_GetItemWithError(owners, filename);
    if (found) return (int)PyLong_AsLong(found);
    if (PyErr_Occurred() || !(found = PyObject_CallOneArg(owner_of, filename))) return -1;
    const int owner = PyDict_SetItem(owners, filename, found) < 0 ? -1 : (int)PyLong_AsLong(found);
    Py_DECREF(found);
    return owner;
}

static int owner_of_entry(PyTracebackObject *entry)
{
    PyObject *globals = PyFrame_GetGlobals(entry->tb_frame); /* generated code: the compiler filters its frames */
    const int generated = PyDict_Contains(globals, str_generated);
    Py_DECREF(globals);
    if (generated) return generated < 0 ? -1 : THEIRS;
    PyCodeObject *code = PyFrame_GetCode(entry->tb_frame);
    const int owner = owner_of_code(code->co_filename);
    Py_DECREF(code);
    return owner;
}

/* The entries to keep, in order: a new reference; NULL with `*failed` if an owner cannot be found. */
static PyObject *kept_entries(PyObject *traceback, bool *failed)
{
    PyObject *first = NULL;
    PyTracebackObject *last = NULL;
    bool after_ours = true;
    for (PyObject *at = traceback; at && at != Py_None;) {
        PyTracebackObject *entry = (PyTracebackObject *)at;
        PyObject *next = (PyObject *)entry->tb_next;
        const int owner = owner_of_entry(entry);
        if ((*failed = owner < 0)) {
            Py_CLEAR(first);
            return NULL;
        }
        if (owner != SUPPORT) after_ours = owner == OURS;
        if (!after_ours) {
            if (!last) first = Py_NewRef(at);
            else if ((PyObject *)last->tb_next != at) {
                PyTracebackObject *skipped = last->tb_next;
                last->tb_next = (PyTracebackObject *)Py_NewRef(at);
                Py_XDECREF(skipped);
            }
            last = entry;
        }
        at = next;
    }
    if (last && last->tb_next) { /* entries after the last entry that stays */
        PyTracebackObject *rest = last->tb_next;
        last->tb_next = NULL;
        Py_DECREF(rest);
    }
    return first;
}

/* Filter one exception. 1 if entries of the user's remain, 0 if not, -1 with an exception. */
static int filter_one(PyObject *error)
{
    PyObject *traceback = PyException_GetTraceback(error);
    if (!traceback) return 0;
    bool failed = false;
    PyObject *kept = kept_entries(traceback, &failed);
    if (!failed && kept != traceback) PyException_SetTraceback(error, kept ? kept : Py_None);
    Py_DECREF(traceback);
    const int any = failed ? -1 : kept != NULL;
    Py_XDECREF(kept);
    return any;
}

/* Filter `error` and its chain of causes and contexts. An exception that was raised and caught inside this library leaves
 * __context__. */
static int filter_chain(PyObject *error)
{
    if (filter_one(error) < 0) return -1;
    PyObject *pending[MOST_LINKED] = {error};
    for (int i = 0, count = 1; i < count; i++) {
        PyObject *cause = PyException_GetCause(pending[i]), *context;
        for (int most = MOST_LINKED; (context = PyException_GetContext(pending[i])) && context != cause && most; most--) {
            const int theirs = filter_one(context);
            if (theirs < 0) {
                Py_DECREF(context);
                Py_XDECREF(cause);
                return -1;
            }
            if (theirs) break;
            PyObject *before = PyException_GetContext(context);
            Py_DECREF(context);
            PyException_SetContext(pending[i], before); /* takes the reference */
        }
        PyObject *linked[2] = {cause, context == cause ? NULL : context};
        for (int k = 0; k < 2; k++) {
            bool seen = !linked[k];
            for (int j = 0; !seen && j < count; j++) seen = pending[j] == linked[k];
            if (!seen && count < MOST_LINKED) {
                pending[count++] = linked[k]; /* the exception that refers to it keeps it alive */
                if (k == 0 && filter_one(cause) < 0) i = MOST_LINKED;
            }
        }
        Py_XDECREF(context);
        Py_XDECREF(cause);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether the user has requested all frames; -1 with an exception. */
static int keeps_frames(void)
{
    PyObject *all = shows_all ? PyObject_CallNoArgs(shows_all) : Py_NewRef(Py_True);
    const int keeps = all ? PyObject_IsTrue(all) : -1;
    Py_XDECREF(all);
    return keeps;
}

/* drop_library_frames(error=None): filter the traceback of `error`, or of the exception that is being handled */
static PyObject *py_drop_library_frames(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *error = nargs ? Py_NewRef(args[0]) : PyErr_GetHandledException();
    if (error && PyExceptionInstance_Check(error)) {
        const int keeps = keeps_frames();
        /* At the recursion limit there is no room for a call: the functions further out filter. */
        if (keeps < 0 || (!keeps && filter_chain(error) < 0)) PyErr_Clear();
    }
    Py_XDECREF(error);
    Py_RETURN_NONE;
}

/* Filter the exception that is being raised. */
void filter_raised(void)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (!traceback) {
        PyErr_Restore(type, error, traceback);
        return;
    }
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    Py_XDECREF(traceback);
    PyObject *done = py_drop_library_frames(NULL, &error, 1);
    Py_XDECREF(done);
    PyErr_Restore(type, error, PyException_GetTraceback(error));
}

/* set_frame_filter(owner_of, shows_all) */
static PyObject *py_set_frame_filter(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *owner, *all;
    if (!PyArg_ParseTuple(args, "OO", &owner, &all)) return NULL;
    if (!owners && !(owners = PyDict_New())) return NULL;
    if (!str_generated && !(str_generated = PyUnicode_InternFromString("__framejit_generated__"))) return NULL;
    Py_XSETREF(owner_of, Py_NewRef(owner));
    Py_XSETREF(shows_all, Py_NewRef(all));
    PyDict_Clear(owners);
    Py_RETURN_NONE;
}

PyMethodDef traceback_filter_functions[] = {
    {"drop_library_frames", (PyCFunction)(void *)py_drop_library_frames, METH_FASTCALL, "drop_library_frames(error=the one being handled)"},
    {"set_frame_filter", py_set_frame_filter, METH_VARARGS, "set_frame_filter(owner_of, shows_all)"},
    {NULL, NULL, 0, NULL},
};
