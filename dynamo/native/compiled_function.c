/* CompiledFunction, which @compile returns for a Python function: binds the arguments of a call to slots, and calls the target of the
 * first entry whose guards hold. With no match it calls the miss callback, then the original function. */
#include "compiled_function.h"
#include "binder.h"
#include "hook.h"
#include "tail.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    EntryTable table;
    Signature signature;
    PyObject *code;             /* keeps signature.code alive, so that no other code object gets its address */
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

/* The first n slots hold the arguments; this function fills the function slot. */
static PyObject *compiled_dispatch(CompiledObject *self, SlotBuffer *buffer, int n, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    PyObject **slots = buffer->slots, *fn = (PyObject *)self->fn;
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
    PyObject *outcome = miss_call(self->miss, (PyObject *)self, slots, n);
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
        result = compiled_dispatch(self, &buffer, n, args, nargsf, kwnames);
    } else {
        BoundExtras extras = {NULL, NULL, NULL, NULL};
        /* A keyword of a subclass of str compares by Python code, which may give the function other code. */
        Signature signature = self->signature;
        PyObject *code = Py_NewRef(self->code);
        int bound = bind_arguments(&signature, self->fn, args, nargs, kwnames, buffer.slots, &extras);
        /* Arguments that do not fit: the call of the function itself raises Python's TypeError. */
        result = bound < 0    ? NULL
                 : bound == 0 ? PyObject_Vectorcall((PyObject *)self->fn, args, nargsf, kwnames)
                              : compiled_dispatch(self, &buffer, n, args, nargsf, kwnames);
        Py_DECREF(code);
        bound_extras_free(&extras);
    }
    slot_buffer_free(&buffer);
    return result;
}

static PyObject *compiled_bind(CompiledObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (self->fn->func_code != self->code) refresh_signature(self);
    Signature signature = self->signature; /* as in a call */
    SlotBuffer buffer;
    if (slot_buffer_init(&buffer, signature.n_slots) < 0) return NULL;
    BoundExtras extras = {NULL, NULL, NULL, NULL};
    PyObject *code = Py_NewRef(self->code);
    int bound = bind_arguments(&signature, self->fn, args, nargs, kwnames, buffer.slots, &extras);
    Py_DECREF(code);
    PyObject *result = bound == 1 ? slots_tuple(buffer.slots, signature.n_slots) : NULL;
    if (bound == 0)
        PyErr_Format(PyExc_TypeError, "%U(): the arguments do not fit the signature: %zd positional, keywords %R",
                     self->fn->func_qualname, nargs, kwnames ? kwnames : Py_None);
    bound_extras_free(&extras);
    slot_buffer_free(&buffer);
    return result;
}

/* --- construction and collection ------------------------------------------------------------- */
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
    if (require_callable(miss, "CompiledFunction", "miss", false) < 0 || check_region(region) < 0) return NULL;
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

/* --- the attributes of the function ---------------------------------------------------------------- */
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

/* Attributes that a call reads from the function are written to the function; other attributes belong to this object. */
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
    if (require_callable(value ? value : Py_None, "CompiledFunction", "miss", false) < 0) return -1;
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

DEFINE_TABLE_METHODS(CompiledObject)

static PyObject *compiled_add_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    CompiledObject *compiled = (CompiledObject *)self;
    if (compiled->fn->func_code != compiled->code) refresh_signature(compiled);
    return parse_add_entry(&compiled->table, args, nargs, kwnames, compiled->signature.n_slots + 1);
}

static PyMethodDef compiled_methods[] = {
    TABLE_METHODS(compiled_add_entry),
    {"bind", (PyCFunction)(void (*)(void))compiled_bind, METH_FASTCALL | METH_KEYWORDS, "The slots of a call."},
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
