/* Region: the dispatchers of the frames that the hook meets on behalf of one compiled function. Codes are keyed
 * by identity (a code object's own == compares contents), and held. */
#include "region.h"
#include "code_state.h"
#include "ptrmap.h"
#include <structmember.h>

RegionObject *default_region;

struct RegionObject {
    PyObject_HEAD
    PtrMap frames;              /* code -> DispatcherObject, or None: skip; both strong */
    PyObject *miss;
    PyObject *weakrefs;
};

PyObject *region_miss(RegionObject *region) { return region->miss == Py_None ? NULL : region->miss; }

DispatcherObject *region_find(RegionObject *region, PyCodeObject *code, bool *skipped)
{
    PtrMapItem *item = ptrmap_find(&region->frames, code);
    *skipped = item && item->value == Py_None;
    return item && item->value != Py_None ? item->value : NULL;
}

static RegionObject *region_new(void)
{
    RegionObject *self = (RegionObject *)RegionType.tp_alloc(&RegionType, 0);
    if (self) self->miss = Py_NewRef(Py_None);
    return self;
}

static int set_miss(RegionObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (!value) value = Py_None;
    if (value != Py_None && !PyCallable_Check(value)) {
        PyErr_Format(PyExc_TypeError, "Region: miss is a %s; expected a callable or None", Py_TYPE(value)->tp_name);
        return -1;
    }
    Py_XSETREF(self->miss, Py_NewRef(value));
    return 0;
}

static PyObject *get_miss(RegionObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->miss);
}

static PyObject *tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"miss", NULL};
    PyObject *miss = Py_None;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Region", names, &miss)) return NULL;
    RegionObject *self = region_new();
    if (self && set_miss(self, miss, NULL) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static void drop_frames(RegionObject *self)
{
    PtrMap frames = self->frames;
    self->frames = (PtrMap){NULL, 0, 0};
    for (size_t i = 0; i < frames.size; i++)
        if (frames.items[i].key) {
            Py_DECREF((PyObject *)frames.items[i].value);
            Py_DECREF((PyObject *)frames.items[i].key);
        }
    ptrmap_free(&frames);
}

static int traverse(RegionObject *self, visitproc visit, void *arg)
{
    for (size_t i = 0; i < self->frames.size; i++)
        if (self->frames.items[i].key) Py_VISIT((PyObject *)self->frames.items[i].value);
    Py_VISIT(self->miss);
    return 0;
}

static int gc_clear(RegionObject *self)
{
    drop_frames(self);
    Py_XSETREF(self->miss, Py_NewRef(Py_None));
    return 0;
}

static void dealloc(RegionObject *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    drop_frames(self);
    Py_CLEAR(self->miss);
    Py_TYPE(self)->tp_free(self);
}

static bool check_code(PyObject *code)
{
    if (PyCode_Check(code)) return true;
    PyErr_Format(PyExc_TypeError, "Region: expected a code object, given a %s", Py_TYPE(code)->tp_name);
    return false;
}

static int place(RegionObject *self, PyObject *code, PyObject *value)
{
    PtrMapItem *item = ptrmap_find(&self->frames, code);
    if (item) {
        PyObject *old = item->value;
        item->value = Py_NewRef(value);
        Py_DECREF(old);
        return 0;
    }
    if (ptrmap_add(&self->frames, code, value) < 0) return -1;
    Py_INCREF(code);
    Py_INCREF(value);
    return 0;
}

static PyObject *dispatcher(RegionObject *self, PyObject *code)
{
    bool skipped;
    if (!check_code(code)) return NULL;
    DispatcherObject *found = region_find(self, (PyCodeObject *)code, &skipped);
    if (found) return Py_NewRef((PyObject *)found);
    PyObject *made = (PyObject *)dispatcher_new(Py_None, Py_None, code);
    if (made && place(self, code, made) < 0) Py_CLEAR(made);
    return made;
}

static PyObject *get(RegionObject *self, PyObject *code)
{
    bool skipped;
    if (!check_code(code)) return NULL;
    DispatcherObject *found = region_find(self, (PyCodeObject *)code, &skipped);
    return Py_NewRef(found ? (PyObject *)found : Py_None);
}

static PyObject *skip(RegionObject *self, PyObject *code)
{
    if (!check_code(code) || place(self, code, Py_None) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *skipped(RegionObject *self, PyObject *code)
{
    bool is_skipped;
    if (!check_code(code)) return NULL;
    region_find(self, (PyCodeObject *)code, &is_skipped);
    return PyBool_FromLong(is_skipped);
}

static PyObject *clear(RegionObject *self, PyObject *args)
{
    PyObject *code = Py_None;
    if (!PyArg_ParseTuple(args, "|O:clear", &code)) return NULL;
    if (code == Py_None) {
        drop_frames(self);
        Py_RETURN_NONE;
    }
    if (!check_code(code)) return NULL;
    PtrMapItem *item = ptrmap_find(&self->frames, code);
    if (item) {
        PyObject *value = item->value;
        ptrmap_remove(&self->frames, item);
        Py_DECREF(value);
        Py_DECREF(code);
    }
    Py_RETURN_NONE;
}

static Py_ssize_t length(RegionObject *self) { return (Py_ssize_t)self->frames.used; }

/* An empty region is true. */
static int truth(RegionObject *self)
{
    (void)self;
    return 1;
}

static PyMethodDef methods[] = {
    {"dispatcher", (PyCFunction)dispatcher, METH_O, "The dispatcher of a code's frames, made if absent."},
    {"get", (PyCFunction)get, METH_O, "The dispatcher of a code's frames, or None."},
    {"skip", (PyCFunction)skip, METH_O, "Run frames of the code plainly in this region."},
    {"skipped", (PyCFunction)skipped, METH_O, "Whether the code has a skip mark in this region."},
    {"clear", (PyCFunction)clear, METH_VARARGS, "Forget one code, or all."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"miss", (getter)get_miss, (setter)set_miss, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PySequenceMethods as_sequence = {.sq_length = (lenfunc)length};
static PyNumberMethods as_number = {.nb_bool = (inquiry)truth};

PyTypeObject RegionType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.Region",
    .tp_basicsize = sizeof(RegionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Region(miss=None): dispatchers of the frames met inside one compiled function.",
    .tp_new = tp_new,
    .tp_dealloc = (destructor)dealloc,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)gc_clear,
    .tp_free = PyObject_GC_Del,
    .tp_weaklistoffset = offsetof(RegionObject, weakrefs),
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_as_sequence = &as_sequence,
    .tp_as_number = &as_number,
};

/* --- Python functions ------------------------------------------------------------------------ */
static PyObject *py_set_miss_callback(PyObject *module, PyObject *callback)
{
    (void)module;
    if (PyObject_SetAttrString((PyObject *)default_region, "miss", callback) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_skip(PyObject *code, bool skip)
{
    if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "expected a code object, given a %s", Py_TYPE(code)->tp_name);
    CodeState *state = code_state((PyCodeObject *)code, true);
    if (!state) return NULL;
    state->skip = skip;
    Py_RETURN_NONE;
}

static PyObject *py_mark_skip(PyObject *module, PyObject *code)
{
    (void)module;
    return set_skip(code, true);
}

static PyObject *py_clear_code(PyObject *module, PyObject *code)
{
    (void)module;
    PyObject *done = set_skip(code, false);
    if (!done) return NULL;
    Py_DECREF(done);
    return PyObject_CallMethod((PyObject *)default_region, "clear", "O", code);
}

static PyObject *py_is_skipped(PyObject *module, PyObject *code)
{
    (void)module;
    if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "expected a code object, given a %s", Py_TYPE(code)->tp_name);
    CodeState *state = code_state((PyCodeObject *)code, false);
    return PyBool_FromLong(state && state->skip);
}

PyMethodDef region_methods[] = {
    {"set_miss_callback", py_set_miss_callback, METH_O, "Set the miss of the default region."},
    {"mark_skip", py_mark_skip, METH_O, "Run frames of the code plainly in every region."},
    {"clear_code", py_clear_code, METH_O, "Undo mark_skip, and forget the code in the default region."},
    {"is_skipped", py_is_skipped, METH_O, "Whether mark_skip holds for the code."},
    {NULL, NULL, 0, NULL},
};

int region_init(void)
{
    if (PyType_Ready(&RegionType) < 0) return -1;
    default_region = region_new();
    return default_region ? 0 : -1;
}
