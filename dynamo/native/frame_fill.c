/* Fills the fresh frame of a re-entry, and owns the sentinel of an empty slot. */
#include "frame_fill.h"

PyObject *null_sentinel;
PyCodeObject *return_none_code;

static PyObject *adopt_callback;

/* Exceptions passed through the frame while generated code replaced it: the callback gives their tracebacks the frame. */
static void adopt_exceptions(PyThreadState *ts, Frame *frame, PyObject *shown)
{
    PyFrameObject *object = frame_object(ts, frame);
    bool disabled = thread_state.disabled;
    thread_state.disabled = true;
    PyObject *done = object ? PyObject_CallFunctionObjArgs(adopt_callback, object, shown, NULL) : NULL;
    thread_state.disabled = disabled;
    if (!done) PyErr_WriteUnraisable(adopt_callback);
    Py_XDECREF(done);
    Py_XDECREF(object);
}

static PyObject *py_set_adopt_callback(PyObject *module, PyObject *callback)
{
    (void)module;
    Py_XSETREF(adopt_callback, callback == Py_None ? NULL : Py_NewRef(callback));
    Py_RETURN_NONE;
}

int frame_fill(Pending *p, PyThreadState *ts, Frame *frame)
{
    PyCodeObject *code = p->code;
    int n_locals = code->co_nlocalsplus, depth = (int)PyTuple_GET_SIZE(p->stack);
    for (int i = 0; i < n_locals; i++) frame_slot_set(frame, i, value_or_null(PyTuple_GET_ITEM(p->locals, i)));
    for (int i = 0; i < depth; i++) frame_slot_init(frame, n_locals + i, value_or_null(PyTuple_GET_ITEM(p->stack, i)));
    frame_set_stack_size(frame, n_locals + depth);
    if (p->exc) frame_set_throwing(frame, code, p->unit);
    else frame_set_next(frame, code, p->unit);
    if (p->shown && PyTuple_GET_SIZE(p->shown) && adopt_callback) adopt_exceptions(ts, frame, p->shown);
    Py_CLEAR(p->locals);        /* the frame holds the only reference now */
    Py_CLEAR(p->stack);
    Py_CLEAR(p->shown);
    if (!p->exc) return 0;
    /* Restored, not raised: the exception keeps its context and its traceback, and this frame adds its line. */
    PyObject *exc = p->exc;
    p->exc = NULL;
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exc)), exc, PyException_GetTraceback(exc));
    return 1;
}

PyMethodDef frame_fill_methods[] = {
    {"set_adopt_callback", py_set_adopt_callback, METH_O, "Set what sees a re-entered frame and what was `shown`."},
    {NULL, NULL, 0, NULL},
};

/* --- NULL in Python -------------------------------------------------------------------------- */
static PyObject *null_repr(PyObject *self)
{
    (void)self;
    return PyUnicode_FromString("NULL");
}

static PyObject *null_reduce(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("NULL");    /* copies and pickles to itself */
}

static PyMethodDef null_methods[] = {{"__reduce__", null_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyTypeObject NullType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.NullType",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Type of NULL: an empty slot.",
    .tp_repr = null_repr,
    .tp_methods = null_methods,
};

int frame_fill_init(PyObject *module)
{
    if (frame_compat_init() < 0 || PyType_Ready(&NullType) < 0) return -1;
    null_sentinel = PyObject_New(PyObject, &NullType);
    if (!null_sentinel || PyModule_AddObjectRef(module, "NULL", null_sentinel) < 0) return -1;
    return PyModule_AddObjectRef(module, "NullType", (PyObject *)&NullType);
}
