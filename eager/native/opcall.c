/* Callables that try the native loops first: ops (OpBase) and operators (FastOperator).
 *
 * Both know one fallback, the full dispatch, which defines the semantics; the short way answers only calls that it
 * would answer the same (pointwise.h says which). Both are method descriptors, so that `x.exp()` and `x + y` go
 * straight to C. */
#define PY_SSIZE_T_CLEAN
#include "pointwise.h"
#include <structmember.h>

/* ---- OpBase: what eager.ops.table.Op is made of ---- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int loop;    /* number of the native loop, or -1 */
    int inplace; /* whether it writes its first argument */
    int recorded; /* whether calls that ask for gradients are recorded here as well */
    PyObject *plans[RECORD_PLANS];
} OpBase;

static PyObject *short_way(OpBase *op, PyObject *const *args, Py_ssize_t nargs)
{
    if (op->loop < 0) return NULL;
    if (op->inplace) return pointwise_inplace(op->loop, args, nargs);
    PyObject *out = pointwise_call(op->loop, args, nargs);
    if (out || !op->recorded || PyErr_Occurred()) return out;
    return record_pointwise((PyObject *)op, op->loop, op->plans, args, nargs);
}

static PyObject *str_call;

static PyObject *op_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    OpBase *self = (OpBase *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (!kwnames) {
        PyObject *out = short_way(self, args, nargs);
        if (out || PyErr_Occurred()) return out;
    }
    PyObject *method = PyObject_GetAttr(callable, str_call);
    if (!method) return NULL;
    PyObject *out = PyObject_Vectorcall(method, args, nargsf, kwnames);
    Py_DECREF(method);
    return out;
}

static PyObject *op_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    OpBase *self = (OpBase *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = op_vectorcall;
    self->loop = -1;
    return (PyObject *)self;
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static int op_traverse(OpBase *self, visitproc visit, void *arg)
{
    for (int i = 0; i < RECORD_PLANS; i++) Py_VISIT(self->plans[i]);
    return 0;
}

static int op_clear(OpBase *self)
{
    for (int i = 0; i < RECORD_PLANS; i++) Py_CLEAR(self->plans[i]);
    return 0;
}

static void op_dealloc(OpBase *self)
{
    PyObject_GC_UnTrack(self);
    op_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef op_members[] = {
    {"_loop", T_INT, offsetof(OpBase, loop), 0, "number of the native loop that answers plain calls, or -1"},
    {"_inplace", T_INT, offsetof(OpBase, inplace), 0, "whether the loop writes its first argument"},
    {"_recorded", T_INT, offsetof(OpBase, recorded), 0, "whether its loop is recorded natively"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject OpBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.OpBase",
    .tp_doc = "A callable that tries its native loop, then `_call`.",
    .tp_basicsize = sizeof(OpBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(OpBase, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bind,
    .tp_new = op_new,
    .tp_traverse = (traverseproc)op_traverse,
    .tp_clear = (inquiry)op_clear,
    .tp_dealloc = (destructor)op_dealloc,
    .tp_members = op_members,
};

/* ---- FastOperator ---- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    OpBase *op;
} FastOp;

static PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    FastOp *self = (FastOp *)callable;
    if (!kwnames) {
        PyObject *out = short_way(self->op, args, PyVectorcall_NARGS(nargsf));
        if (out || PyErr_Occurred()) return out;
    }
    return PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
}

static int fast_traverse(FastOp *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->op);
    return 0;
}

static void fast_dealloc(FastOp *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->fallback);
    Py_XDECREF(self->op);
    PyObject_GC_Del(self);
}

static PyMemberDef fast_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(FastOp, fallback), READONLY, "the full dispatch"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject FastOp_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.FastOperator",
    .tp_basicsize = sizeof(FastOp),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(FastOp, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bind,
    .tp_traverse = (traverseproc)fast_traverse,
    .tp_dealloc = (destructor)fast_dealloc,
    .tp_members = fast_members,
};

/* fast_operator(op, fallback): the fallback itself where the op has no native loop */
PyObject *py_fast_operator(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *op, *fallback;
    if (!PyArg_ParseTuple(args, "O!O", &OpBase_Type, &op, &fallback)) return NULL;
    if (((OpBase *)op)->loop < 0) return Py_NewRef(fallback);
    FastOp *made = PyObject_GC_New(FastOp, &FastOp_Type);
    if (!made) return NULL;
    made->vectorcall = fast_call;
    made->fallback = Py_NewRef(fallback);
    made->op = (OpBase *)Py_NewRef(op);
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

int opcall_init(void)
{
    str_call = PyUnicode_InternFromString("_call");
    return str_call && PyType_Ready(&OpBase_Type) == 0 && PyType_Ready(&FastOp_Type) == 0 ? 0 : -1;
}
