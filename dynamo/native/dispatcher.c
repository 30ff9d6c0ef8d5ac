/* Dispatcher: an entry table over flat slots, for continuations and for hooked frames. With no match it calls the miss callback, then
 * the fallback. */
#include "dispatcher.h"
#include "tail.h"
#include <structmember.h>

static PyObject *dispatcher_fallback(DispatcherObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (self->fallback == Py_None)
        return PyErr_Format(PyExc_RuntimeError,
                            "Dispatcher %R: no entry matches its %zd slots, miss gave no target, and there is no fallback",
                            self->key, nargs);
    PyObject *fallback = Py_NewRef(self->fallback);
    PyObject *result = PyObject_Vectorcall(fallback, args, (size_t)nargs, NULL);
    Py_DECREF(fallback);
    return result;
}

static PyObject *dispatcher_dispatch(DispatcherObject *self, SlotBuffer *buffer, PyObject *const *args, int n)
{
    /* Under a trace function the fallback runs, so that the function gets every line. */
    if (unlikely(thread_is_traced(PyThreadState_Get())) && self->fallback != Py_None)
        return dispatcher_fallback(self, args, n);
    EntryObject *entry = entry_table_find(&self->table, buffer->slots, n, buffer->capacity);
    if (likely(entry != NULL)) {
        self->hits++;
        PyObject *result = likely(entry->target != NULL) ? entry_call(entry, buffer->slots, n, NULL)
                                                         : dispatcher_fallback(self, args, n);
        Py_DECREF(entry);
        return result;
    }
    if (PyErr_Occurred()) return NULL;
    self->misses++;
    if (self->miss == Py_None || stance == STANCE_RUN_ONLY) return dispatcher_fallback(self, args, n);
    PyObject *outcome = miss_call(self->miss, (PyObject *)self, buffer->slots, n);
    if (!outcome) return NULL;
    bool fallback;
    PyObject *result = outcome_call(outcome, buffer->slots, n, NULL, &fallback);
    return fallback ? dispatcher_fallback(self, args, n) : result;
}

static PyObject *dispatcher_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (kwnames && PyTuple_GET_SIZE(kwnames))
        return PyErr_Format(PyExc_TypeError, "Dispatcher: takes no keyword arguments, given %R", kwnames);
    SlotBuffer buffer;
    if (slot_buffer_init(&buffer, n) < 0) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) buffer.slots[i] = args[i];
    PyObject *result = dispatcher_dispatch((DispatcherObject *)callable, &buffer, args, (int)n);
    slot_buffer_free(&buffer);
    return result;
}

DispatcherObject *dispatcher_new(PyObject *miss, PyObject *fallback, PyObject *key)
{
    DispatcherObject *self = (DispatcherObject *)DispatcherType.tp_alloc(&DispatcherType, 0);
    if (!self) return NULL;
    self->vectorcall = dispatcher_vectorcall;
    self->miss = Py_NewRef(miss);
    self->fallback = Py_NewRef(fallback);
    self->key = Py_NewRef(key);
    return self;
}

static PyObject *dispatcher_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"miss", "fallback", "key", NULL};
    PyObject *miss, *fallback = Py_None, *key = Py_None;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Dispatcher", names, &miss, &fallback, &key)) return NULL;
    if (require_callable(miss, "Dispatcher", "miss", true) < 0 ||
        require_callable(fallback, "Dispatcher", "fallback", true) < 0)
        return NULL;
    return (PyObject *)dispatcher_new(miss, fallback, key);
}

static int dispatcher_traverse(DispatcherObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->miss);
    Py_VISIT(self->fallback);
    Py_VISIT(self->key);
    return entry_table_traverse(&self->table, visit, arg);
}

static int dispatcher_clear(DispatcherObject *self)
{
    entry_table_clear(&self->table);
    Py_XSETREF(self->miss, Py_NewRef(Py_None));
    Py_XSETREF(self->fallback, Py_NewRef(Py_None));
    Py_XSETREF(self->key, Py_NewRef(Py_None));
    return 0;
}

static void dispatcher_dealloc(DispatcherObject *self)
{
    PyObject_GC_UnTrack(self);
    entry_table_clear(&self->table);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->fallback);
    Py_CLEAR(self->key);
    Py_TYPE(self)->tp_free(self);
}

static int dispatcher_set_callable(PyObject **field, PyObject *value, const char *what)
{
    if (!value) value = Py_None;
    if (require_callable(value, "Dispatcher", what, true) < 0) return -1;
    Py_XSETREF(*field, Py_NewRef(value));
    return 0;
}

static PyObject *dispatcher_get_miss(DispatcherObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->miss);
}
static int dispatcher_set_miss(DispatcherObject *self, PyObject *value, void *closure)
{
    (void)closure;
    return dispatcher_set_callable(&self->miss, value, "miss");
}
static PyObject *dispatcher_get_fallback(DispatcherObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->fallback);
}
static int dispatcher_set_fallback(DispatcherObject *self, PyObject *value, void *closure)
{
    (void)closure;
    return dispatcher_set_callable(&self->fallback, value, "fallback");
}

DEFINE_TABLE_METHODS(DispatcherObject)

static PyObject *dispatcher_add_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return parse_add_entry(&((DispatcherObject *)self)->table, args, nargs, kwnames, -1);
}

static PyMethodDef dispatcher_methods[] = {TABLE_METHODS(dispatcher_add_entry), {NULL, NULL, 0, NULL}};
static PyGetSetDef dispatcher_getset[] = {
    {"miss", (getter)dispatcher_get_miss, (setter)dispatcher_set_miss, NULL, NULL},
    {"fallback", (getter)dispatcher_get_fallback, (setter)dispatcher_set_fallback, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef dispatcher_members[] = {
    {"key", T_OBJECT, offsetof(DispatcherObject, key), 0, NULL},
    {"hits", T_ULONGLONG, offsetof(DispatcherObject, hits), READONLY, NULL},
    {"misses", T_ULONGLONG, offsetof(DispatcherObject, misses), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject DispatcherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.Dispatcher",
    .tp_basicsize = sizeof(DispatcherObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Dispatcher(miss, fallback=None, key=None): entries over flat slots.",
    .tp_vectorcall_offset = offsetof(DispatcherObject, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = dispatcher_tp_new,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_traverse = (traverseproc)dispatcher_traverse,
    .tp_clear = (inquiry)dispatcher_clear,
    .tp_free = PyObject_GC_Del,
    .tp_methods = dispatcher_methods,
    .tp_getset = dispatcher_getset,
    .tp_members = dispatcher_members,
};
