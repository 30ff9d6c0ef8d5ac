/* Tails: a continuation that a generated function returns instead of calling it. The frame of the function is freed before the
 * continuation runs, so objects die when they would in the user's function, and chains of breaks do not grow the stack. A frame
 * object that a traceback of a callee keeps outlives its frame: it is cleared. */
#include "tail.h"
#include "frame_compat.h"

typedef struct {
    PyObject_HEAD
    PyObject *target, *args;
    PyObject *frame;            /* frame object of the function that returns the tail, or NULL */
} TailObject;

static int tail_traverse(TailObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->target);
    Py_VISIT(self->args);
    Py_VISIT(self->frame);
    return 0;
}

static int tail_clear(TailObject *self)
{
    Py_CLEAR(self->target);
    Py_CLEAR(self->args);
    Py_CLEAR(self->frame);
    return 0;
}

static void tail_dealloc(TailObject *self)
{
    PyObject_GC_UnTrack(self);
    tail_clear(self);
    PyObject_GC_Del(self);
}

PyTypeObject TailType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo._native.Tail",
    .tp_doc = "A continuation and its arguments, to be called by whoever called the function that returns it.",
    .tp_basicsize = sizeof(TailObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)tail_traverse,
    .tp_clear = (inquiry)tail_clear,
    .tp_dealloc = (destructor)tail_dealloc,
};

static void empty_frame(PyObject *frame)
{
    PyObject *done = PyObject_CallMethod(frame, "clear", NULL);
    if (!done) PyErr_WriteUnraisable(frame);
    else frame_drop_copy((PyFrameObject *)frame);
    Py_XDECREF(done);
    Py_DECREF(frame);
}

/* Objects that only the arguments hold die in the order of a frame's variables: the first one first. */
static void drop_arguments(PyObject *args)
{
    for (Py_ssize_t i = 0; Py_REFCNT(args) == 1 && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        PyTuple_SET_ITEM(args, i, Py_NewRef(Py_None));
        Py_DECREF(item);
    }
    Py_DECREF(args);
}

PyObject *tail_drive(PyObject *result)
{
    while (result && Py_IS_TYPE(result, &TailType)) {
        TailObject *tail = (TailObject *)result;
        PyObject *target = tail->target, *args = tail->args, *frame = tail->frame;
        tail->target = tail->args = tail->frame = NULL;
        Py_DECREF(tail);
        if (unlikely(frame != NULL)) empty_frame(frame);
        result = PyObject_Call(target, args, NULL);
        if (!result) tidy_error();
        Py_DECREF(target);
        drop_arguments(args);
    }
    return result;
}

static PyObject *py_tail(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs < 1) return PyErr_Format(PyExc_TypeError, "tail: no arguments; expected a continuation and its arguments");
    PyObject *rest = PyTuple_New(nargs - 1);
    if (!rest) return NULL;
    for (Py_ssize_t i = 1; i < nargs; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(args[i]));
    TailObject *self = PyObject_GC_New(TailObject, &TailType);
    if (!self) {
        Py_DECREF(rest);
        return NULL;
    }
    self->target = Py_NewRef(args[0]);
    self->args = rest;
    self->frame = Py_XNewRef(calling_frame());
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static PyObject *py_drive(PyObject *module, PyObject *tail)
{
    (void)module;
    if (!Py_IS_TYPE(tail, &TailType) || !((TailObject *)tail)->target)
        return PyErr_Format(PyExc_TypeError, "drive: given a %s; expected a Tail that has not run", Py_TYPE(tail)->tp_name);
    Py_CLEAR(((TailObject *)tail)->frame);      /* the caller's frame continues to run */
    return tail_drive(Py_NewRef(tail));
}

PyMethodDef tail_methods[] = {
    {"tail", (PyCFunction)(void (*)(void))py_tail, METH_FASTCALL, "tail(target, *args): a Tail, to be returned."},
    {"drive", py_drive, METH_O, "drive(tail): run a continuation, and those it goes on with, to the end."},
    {NULL},
};
