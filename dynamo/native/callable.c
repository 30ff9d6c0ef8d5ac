/* The C callables: CompiledFunction (what @compile returns) and Dispatcher (continuations, hooked frames).
 * Both hold an entry table, and differ in how a call becomes slots and what runs when nothing matches. */
#include "native.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    EntryTable table;
    Signature signature;
    PyObject *code;             /* keeps signature.code alive, so that its address stays its own */
    PyFunctionObject *fn;
    PyObject *miss, *region;    /* region: RegionObject or None */
    PyObject *dict, *weakrefs;
    uint64_t hits, misses;
} CompiledObject;

static void refresh_signature(CompiledObject *self)
{
    Py_XSETREF(self->code, Py_NewRef(self->fn->func_code));
    signature_of(&self->signature, (PyCodeObject *)self->code);
    entry_table_clear(&self->table);
}

static PyObject *run_original(CompiledObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    RegionObject *region = Py_IS_TYPE(self->region, &RegionType) ? (RegionObject *)self->region : NULL;
    return call_original(region, (PyObject *)self->fn, args, nargsf, kwnames);
}

/* miss(self, slots) with the thread's mode off. */
static PyObject *call_miss(PyObject *miss, PyObject *self, PyObject **slots, int n)
{
    PyObject *tuple = slots_tuple(slots, n);
    if (!tuple) return NULL;
    PyObject *args[3] = {NULL, self, tuple};
    PyObject *callback = Py_NewRef(miss);
    PyObject *outcome = target_call(callback, args + 1, 2);
    Py_DECREF(callback);
    Py_DECREF(tuple);
    return outcome;
}

/* slots hold the arguments; the function slot is filled here. */
static PyObject *compiled_dispatch(CompiledObject *self, SlotBuffer *buffer, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    PyObject **slots = buffer->slots, *fn = (PyObject *)self->fn;
    int n = self->signature.n_slots;
    slots[n] = fn;
    EntryObject *entry = entry_table_find(&self->table, slots, n + 1, buffer->capacity);
    if (likely(entry != NULL)) {
        self->hits++;
        PyObject *result = likely(entry->target != NULL) ? entry_call(entry, slots, n, fn)
                                                         : run_original(self, args, nargsf, kwnames);
        Py_DECREF(entry);
        return tail_drive(result);
    }
    if (PyErr_Occurred()) return NULL;
    self->misses++;
    if (stance == STANCE_RUN_ONLY) return run_original(self, args, nargsf, kwnames);
    PyObject *outcome = call_miss(self->miss, (PyObject *)self, slots, n);
    if (!outcome) return NULL;
    bool original;
    PyObject *result = tail_drive(outcome_call(outcome, slots, n, fn, &original));
    return original ? run_original(self, args, nargsf, kwnames) : result;
}

static PyObject *compiled_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    CompiledObject *self = (CompiledObject *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (unlikely(stance == STANCE_EAGER || thread_state.disabled))
        return PyObject_Vectorcall((PyObject *)self->fn, args, nargsf, kwnames);
    if (unlikely(self->fn->func_code != self->code)) refresh_signature(self);
    int n = self->signature.n_slots;
    SlotBuffer buffer;
    if (unlikely(slot_buffer_init(&buffer, n + 1) < 0)) return NULL;
    PyObject *result;
    if (likely(self->signature.simple && nargs == n && !kwnames)) {
        for (int i = 0; i < n; i++) buffer.slots[i] = args[i];
        result = compiled_dispatch(self, &buffer, args, nargsf, kwnames);
    } else {
        BoundExtras extras = {NULL, NULL, NULL, NULL};
        int bound = bind_arguments(&self->signature, self->fn, args, nargs, kwnames, buffer.slots, &extras);
        /* Arguments that do not fit: Python's own TypeError, from the function itself. */
        result = bound < 0    ? NULL
                 : bound == 0 ? PyObject_Vectorcall((PyObject *)self->fn, args, nargsf, kwnames)
                              : compiled_dispatch(self, &buffer, args, nargsf, kwnames);
        bound_extras_free(&extras);
    }
    slot_buffer_free(&buffer);
    return result;
}

static PyObject *compiled_bind(CompiledObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (self->fn->func_code != self->code) refresh_signature(self);
    SlotBuffer buffer;
    if (slot_buffer_init(&buffer, self->signature.n_slots) < 0) return NULL;
    BoundExtras extras = {NULL, NULL, NULL, NULL};
    int bound = bind_arguments(&self->signature, self->fn, args, nargs, kwnames, buffer.slots, &extras);
    PyObject *result = bound == 1 ? slots_tuple(buffer.slots, self->signature.n_slots) : NULL;
    if (bound == 0)
        PyErr_Format(PyExc_TypeError, "%U(): the arguments do not fit the signature: %zd positional, keywords %R",
                     self->fn->func_qualname, nargs, kwnames ? kwnames : Py_None);
    bound_extras_free(&extras);
    slot_buffer_free(&buffer);
    return result;
}

/* --- construction and collection ------------------------------------------------------------- */
static int check_callable_or_none(PyObject *value, const char *who, const char *what, bool none)
{
    if (PyCallable_Check(value) || (none && value == Py_None)) return 0;
    PyErr_Format(PyExc_TypeError, "%s: %s is a %s; expected a callable%s", who, what, Py_TYPE(value)->tp_name,
                 none ? " or None" : "");
    return -1;
}

static int check_region(PyObject *value)
{
    if (value == Py_None || Py_IS_TYPE(value, &RegionType)) return 0;
    PyErr_Format(PyExc_TypeError, "CompiledFunction: region is a %s; expected a Region or None", Py_TYPE(value)->tp_name);
    return -1;
}

static PyObject *compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "miss", "region", NULL};
    PyObject *fn, *miss, *region = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:CompiledFunction", names, &fn, &miss, &region)) return NULL;
    if (!PyFunction_Check(fn))
        return PyErr_Format(PyExc_TypeError,
                            "CompiledFunction: fn is a %s; expected a plain Python function (pass __func__ of a method, "
                            "type(x).__call__ of a callable object)",
                            Py_TYPE(fn)->tp_name);
    if (check_callable_or_none(miss, "CompiledFunction", "miss", false) < 0 || check_region(region) < 0) return NULL;
    CompiledObject *self = (CompiledObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = compiled_vectorcall;
    self->fn = (PyFunctionObject *)Py_NewRef(fn);
    self->miss = Py_NewRef(miss);
    self->region = Py_NewRef(region);
    refresh_signature(self);
    return (PyObject *)self;
}

static int compiled_traverse(CompiledObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fn);
    Py_VISIT(self->code);
    Py_VISIT(self->miss);
    Py_VISIT(self->region);
    Py_VISIT(self->dict);
    return entry_table_traverse(&self->table, visit, arg);
}

static int compiled_clear(CompiledObject *self)
{
    /* fn, miss and region stay until the end: a destructor in the same cycle may still call this object. */
    entry_table_clear(&self->table);
    Py_CLEAR(self->dict);
    Py_XSETREF(self->miss, Py_NewRef(Py_None));
    Py_XSETREF(self->region, Py_NewRef(Py_None));
    return 0;
}

static void compiled_dealloc(CompiledObject *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    compiled_clear(self);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->region);
    Py_CLEAR(self->fn);
    Py_CLEAR(self->code);
    Py_TYPE(self)->tp_free(self);
}

/* --- behaving as the function ---------------------------------------------------------------- */
static PyObject *compiled_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    (void)owner;
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static PyObject *compiled_getattr(CompiledObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr((PyObject *)self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    PyErr_Clear();
    return PyObject_GetAttr((PyObject *)self->fn, name);
}

/* What a call reads from the function is written to it; the rest is this object's own. */
static int compiled_setattr(CompiledObject *self, PyObject *name, PyObject *value)
{
    static const char *const of_function[] = {"__code__", "__defaults__", "__kwdefaults__"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(of_function); i++)
        if (PyUnicode_CompareWithASCIIString(name, of_function[i]) == 0)
            return PyObject_SetAttr((PyObject *)self->fn, name, value);
    return PyObject_GenericSetAttr((PyObject *)self, name, value);
}

static PyObject *compiled_doc(CompiledObject *self, void *closure)
{
    (void)closure;
    PyObject *own = self->dict ? PyDict_GetItemString(self->dict, "__doc__") : NULL;
    return own ? Py_NewRef(own) : PyObject_GetAttrString((PyObject *)self->fn, "__doc__");
}

static int compiled_set_doc(CompiledObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (!self->dict && !(self->dict = PyDict_New())) return -1;
    return PyDict_SetItemString(self->dict, "__doc__", value ? value : Py_None);
}

static PyObject *compiled_wrapped(CompiledObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef((PyObject *)self->fn);
}

static PyObject *compiled_get_miss(CompiledObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->miss);
}

static int compiled_set_miss(CompiledObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (check_callable_or_none(value ? value : Py_None, "CompiledFunction", "miss", false) < 0) return -1;
    Py_XSETREF(self->miss, Py_NewRef(value));
    return 0;
}

static PyObject *compiled_get_region(CompiledObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->region);
}

static int compiled_set_region(CompiledObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (!value) value = Py_None;
    if (check_region(value) < 0) return -1;
    Py_XSETREF(self->region, Py_NewRef(value));
    return 0;
}

static PyObject *compiled_repr(CompiledObject *self)
{
    return PyUnicode_FromFormat("<compiled function %U at %p>", self->fn->func_qualname, self);
}

static PyObject *compiled_reduce(CompiledObject *self, PyObject *unused)
{
    (void)unused;               /* as functions: by qualified name */
    return PyObject_GetAttrString((PyObject *)self, "__qualname__");
}

/* --- methods of both types: each finds its table through its own struct ---------------------- */
static EntryTable *table_of(PyObject *self)
{
    return Py_IS_TYPE(self, &DispatcherType) ? &((DispatcherObject *)self)->table : &((CompiledObject *)self)->table;
}

static PyObject *method_add_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    int n_inputs = -1;
    if (!Py_IS_TYPE(self, &DispatcherType)) {
        CompiledObject *compiled = (CompiledObject *)self;
        if (compiled->fn->func_code != compiled->code) refresh_signature(compiled);
        n_inputs = compiled->signature.n_slots + 1;
    }
    return parse_add_entry(table_of(self), args, nargs, kwnames, n_inputs);
}

static PyObject *method_entries(PyObject *self, PyObject *unused)
{
    (void)unused;
    return entry_table_list(table_of(self));
}

static PyObject *method_remove_entry(PyObject *self, PyObject *entry)
{
    return PyBool_FromLong(entry_table_remove(table_of(self), entry));
}

static PyObject *method_clear_entries(PyObject *self, PyObject *unused)
{
    (void)unused;
    entry_table_clear(table_of(self));
    Py_RETURN_NONE;
}

#define FASTCALL_KEYWORDS(f) (PyCFunction)(void (*)(void))(f)
#define ENTRY_METHODS                                                                                          \
    {"add_entry", FASTCALL_KEYWORDS(method_add_entry), METH_FASTCALL | METH_KEYWORDS,                          \
     "add_entry(program, target, *, pass_function=False) -> Entry, in front."},                                \
    {"entries", method_entries, METH_NOARGS, "Entries in the order they are tried."},                          \
    {"remove_entry", method_remove_entry, METH_O, "Whether the entry was there."},                             \
    {"clear_entries", method_clear_entries, METH_NOARGS, "Drop all entries."}

static PyMethodDef compiled_methods[] = {
    ENTRY_METHODS,
    {"bind", FASTCALL_KEYWORDS(compiled_bind), METH_FASTCALL | METH_KEYWORDS, "The slots of a call."},
    {"__reduce__", (PyCFunction)compiled_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef compiled_getset[] = {
    {"__wrapped__", (getter)compiled_wrapped, NULL, NULL, NULL},
    {"__doc__", (getter)compiled_doc, (setter)compiled_set_doc, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"miss", (getter)compiled_get_miss, (setter)compiled_set_miss, NULL, NULL},
    {"region", (getter)compiled_get_region, (setter)compiled_set_region, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef compiled_members[] = {
    {"hits", T_ULONGLONG, offsetof(CompiledObject, hits), READONLY, NULL},
    {"misses", T_ULONGLONG, offsetof(CompiledObject, misses), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject CompiledFunctionType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.CompiledFunction",
    .tp_basicsize = sizeof(CompiledObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(CompiledObject, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = compiled_new,
    .tp_dealloc = (destructor)compiled_dealloc,
    .tp_traverse = (traverseproc)compiled_traverse,
    .tp_clear = (inquiry)compiled_clear,
    .tp_free = PyObject_GC_Del,
    .tp_dictoffset = offsetof(CompiledObject, dict),
    .tp_weaklistoffset = offsetof(CompiledObject, weakrefs),
    .tp_descr_get = compiled_get,
    .tp_getattro = (getattrofunc)compiled_getattr,
    .tp_setattro = (setattrofunc)compiled_setattr,
    .tp_repr = (reprfunc)compiled_repr,
    .tp_methods = compiled_methods,
    .tp_getset = compiled_getset,
    .tp_members = compiled_members,
};

/* --- Dispatcher ------------------------------------------------------------------------------ */
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
    /* A trace function is to see every line from here on. */
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
    PyObject *outcome = call_miss(self->miss, (PyObject *)self, buffer->slots, n);
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
    if (check_callable_or_none(miss, "Dispatcher", "miss", true) < 0 ||
        check_callable_or_none(fallback, "Dispatcher", "fallback", true) < 0)
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
    if (check_callable_or_none(value, "Dispatcher", what, true) < 0) return -1;
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

static PyMethodDef dispatcher_methods[] = {ENTRY_METHODS, {NULL, NULL, 0, NULL}};
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
