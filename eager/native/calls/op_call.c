/* Callables that try a fast path in C first: ops (OpBase), operators and methods (FastCall).
 *
 * The fallback is the full dispatch, which defines the semantics. The fast path answers only calls for which it gives the same
 * result (pointwise.h, view_ops.c and kernel.h state which). All are method descriptors, so that `x.exp()`, `x + y` and
 * `x.view(4)` go straight to C. */
#define PY_SSIZE_T_CLEAN
#include "calls/calls.h"
#include "calls/functions.h"
#include "kernels/assign.h"
#include "kernels/pointwise.h"
#include "tensor/memory_overlap.h"
#include <structmember.h>

/* ---- OpBase ---- */

/* Whether every bool argument is a bool (a kernel reads any other object as false), and no number is given for a tensor parameter.
 * Dispatch refuses such calls. */
static bool arguments_fit_kernels(const OpBase *op, PyObject *const *args, Py_ssize_t nargs)
{
    for (int i = 0, left = op->tensors; left && i < nargs; i++, left >>= 1)
        if (left & 1 && (PyFloat_Check(args[i]) || PyLong_Check(args[i]))) return false;
    for (int i = 0, left = op->flags; left && i < nargs; i++, left >>= 1)
        if (left & 1 && args[i] != Py_True && args[i] != Py_False) return false;
    return true;
}

/* The result, without autograd and modes. */
static PyObject *run_native(const OpBase *op, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *out = NULL;
    if (op->loop >= 0 && nargs == pointwise_arity(op->loop)) out = pointwise_call(op->loop, args, nargs);
    if (!out && op->kernel >= 0 && !PyErr_Occurred() && arguments_fit_kernels(op, args, nargs)) out = kernel_call(op->kernel, args, nargs);
    return out;
}

static int give_history(OpBase *op, int wanted, PyObject *const *args, Py_ssize_t nargs, PyObject *out)
{
    if (PyTuple_Check(out))
        return record_history((PyObject *)op, op->plans, wanted, args, nargs, &PyTuple_GET_ITEM(out, 0), PyTuple_GET_SIZE(out));
    return record_history((PyObject *)op, op->plans, wanted, args, nargs, &out, 1);
}

enum { MAX_COPIED_ELEMENTS = 4096 }; /* elements up to which a copy is faster than a call of numpy (as in eager.optable) */

/* An op that writes its first argument: by a loop or kernel that writes in place, or (a small one) by copying what the kernel of
 * its base op returns. */
static PyObject *fast_write(const OpBase *op, PyObject *const *args, Py_ssize_t nargs)
{
    if ((op->loop < 0 && op->writer < 0 && op->maker < 0) || !write_is_plain(args, nargs)) return NULL;
    PyObject *out = op->loop >= 0 ? pointwise_write(op->loop, args, nargs) : NULL;
    if (out || PyErr_Occurred() || (op->writer < 0 && op->maker < 0)) return out;
    const TensorObject *target = (const TensorObject *)args[0];
    if (overlap_with(target, args + 1, nargs - 1) || !arguments_fit_kernels(op, args, nargs)) return NULL; /* dispatch may refuse the call */
    if (op->writer >= 0) out = kernel_write(op->writer, args, nargs);
    if (out || PyErr_Occurred() || op->maker < 0 || tensor_count(target) > MAX_COPIED_ELEMENTS) return out;
    PyObject *made = kernel_call(op->maker, args, nargs);
    if (made && assign_result(target, made)) out = Py_NewRef(args[0]);
    Py_XDECREF(made);
    return out;
}

static PyObject *fast_path(OpBase *op, PyObject *const *args, Py_ssize_t nargs)
{
    if (op->view >= 0) return view_call(op, op->view, args, nargs);
    if (op->inplace) return fast_write(op, args, nargs);
    if (op->loop < 0 && op->kernel < 0) return NULL;
    if (op->loop >= 0) {
        PyObject *out = pointwise_call_plain(op->loop, args, nargs);
        if (out || PyErr_Occurred() || (op->kernel < 0 && (!op->recorded || tls_grad_disabled))) return out;
    }
    if (tls_mode_depth || !record_own_classes(args, nargs)) return NULL;
    const int wanted = tls_grad_disabled ? 0 : record_wanted(args, nargs);
    if (wanted < 0 || wanted >= RECORD_PLANS || (wanted && (!op->recorded || record_needs_python()))) return NULL;
    PyObject *out = run_native(op, args, nargs);
    if (out && wanted && give_history(op, wanted, args, nargs, out) < 0) Py_CLEAR(out);
    return out;
}

static PyObject *str_call;

static PyObject *op_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    OpBase *self = (OpBase *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (!kwnames) {
        PyObject *out = fast_path(self, args, nargs);
        if (out) return out;
        if (PyErr_Occurred()) {
            filter_raised();
            return NULL;
        }
    }
    PyObject *method = PyObject_GetAttr(callable, str_call);
    if (!method) return NULL;
    PyObject *out = PyObject_Vectorcall(method, args, nargsf, kwnames);
    Py_DECREF(method);
    if (!out) filter_raised();
    return out;
}

static PyObject *op_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    OpBase *self = (OpBase *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = op_vectorcall;
    self->loop = self->view = self->kernel = self->writer = self->maker = -1;
    return (PyObject *)self;
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static int op_traverse(OpBase *self, visitproc visit, void *arg)
{
    for (int i = 0; i < RECORD_PLANS; i++) Py_VISIT(self->plans[i]);
    Py_VISIT(self->rules);
    return 0;
}

static int op_clear(OpBase *self)
{
    for (int i = 0; i < RECORD_PLANS; i++) Py_CLEAR(self->plans[i]);
    Py_CLEAR(self->rules);
    return 0;
}

static void op_dealloc(OpBase *self)
{
    PyObject_GC_UnTrack(self);
    op_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef op_members[] = {
    {"_pointwise_loop", T_INT, offsetof(OpBase, loop), READONLY, "number of the native loop that answers plain calls, or -1"},
    {"_native_view", T_INT, offsetof(OpBase, view), READONLY, "number of the native geometry of a view, or -1"},
    {"_native_kernel", T_INT, offsetof(OpBase, kernel), READONLY, "number of the native kernel over full arguments, or -1"},
    {"_inplace", T_INT, offsetof(OpBase, inplace), 0, "whether the loop writes its first argument"},
    {"_recorded", T_INT, offsetof(OpBase, recorded), 0, "whether its loop is recorded natively"},
    {"_bool_params", T_INT, offsetof(OpBase, flags), 0, "mask of the parameters that are bools"},
    {"_tensor_only_params", T_INT, offsetof(OpBase, tensors), 0, "mask of the parameters for which no number may stand"},
    {"_has_simple_vjp", T_INT, offsetof(OpBase, plain), 0, "whether it has formulas and no lists of tensors"},
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

/* bind_native_kernels(op, name): give `op` the fast paths of the op `name`; an in-place op gets its base op's */
static PyObject *py_bind_native_kernels(PyObject *Py_UNUSED(self), PyObject *args)
{
    OpBase *op;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", &OpBase_Type, &op, &name)) return NULL;
    op->loop = pointwise_find(name);
    if (op->inplace) {
        op->writer = kernel_find(name, true);
        op->maker = kernel_find(name, false);
        Py_RETURN_NONE;
    }
    if (op->loop >= 0) pointwise_refuse_numbers(op->loop, op->tensors);
    op->view = view_find(name);
    op->kernel = kernel_find(name, false);
    if (op->view >= 0) view_bind(op->view, op);
    Py_RETURN_NONE;
}

/* run_kernel(op, args): by the op's native loop or kernel, without autograd and modes; None if they do not support the arguments */
static PyObject *py_run_kernel(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyObject_TypeCheck(args[0], &OpBase_Type) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "run_kernel() takes an op and a tuple of arguments");
    PyObject *out = run_native((OpBase *)args[0], &PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_SIZE(args[1]));
    if (!out && !PyErr_Occurred()) Py_RETURN_NONE;
    return out;
}

/* ---- FastCall: an operator over an op's loop, or a method ---- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    OpBase *op;    /* the op of an operator, or NULL */
    Method method; /* the C form of a method, or NULL */
} FastCall;

static PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    FastCall *self = (FastCall *)callable;
    if (!kwnames) {
        const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
        PyObject *out = self->op ? fast_path(self->op, args, nargs) : self->method(args, nargs);
        if (out) return out;
        if (PyErr_Occurred()) {
            filter_raised();
            return NULL;
        }
    }
    PyObject *out = PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
    if (!out) filter_raised();
    return out;
}

static int fast_traverse(FastCall *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->op);
    return 0;
}

static void fast_dealloc(FastCall *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->fallback);
    Py_XDECREF(self->op);
    PyObject_GC_Del(self);
}

static PyObject *fast_attribute(FastCall *self, void *name) { return PyObject_GetAttrString(self->fallback, name); }
static int fast_set(FastCall *self, PyObject *value, void *name) { return PyObject_SetAttrString(self->fallback, name, value); }

static PyMemberDef fast_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(FastCall, fallback), READONLY, "the full dispatch"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef fast_getset[] = {
    {"__name__", (getter)fast_attribute, (setter)fast_set, NULL, "__name__"},
    {"__qualname__", (getter)fast_attribute, (setter)fast_set, NULL, "__qualname__"},
    {"__module__", (getter)fast_attribute, (setter)fast_set, NULL, "__module__"},
    {"__doc__", (getter)fast_attribute, (setter)fast_set, NULL, "__doc__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject FastCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.FastCall",
    .tp_basicsize = sizeof(FastCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(FastCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bind,
    .tp_traverse = (traverseproc)fast_traverse,
    .tp_dealloc = (destructor)fast_dealloc,
    .tp_members = fast_members,
    .tp_getset = fast_getset,
};

static PyObject *new_fast_call(PyObject *fallback, OpBase *op, Method method)
{
    FastCall *made = PyObject_GC_New(FastCall, &FastCall_Type);
    if (!made) return NULL;
    made->vectorcall = fast_call;
    made->fallback = Py_NewRef(fallback);
    made->op = op ? (OpBase *)Py_NewRef((PyObject *)op) : NULL;
    made->method = method;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* native_operator(op, fallback): the fallback itself if the op has neither a native loop nor a kernel */
static PyObject *py_native_operator(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *op, *fallback;
    if (!PyArg_ParseTuple(args, "O!O", &OpBase_Type, &op, &fallback)) return NULL;
    return ((OpBase *)op)->loop < 0 && ((OpBase *)op)->kernel < 0 ? Py_NewRef(fallback) : new_fast_call(fallback, (OpBase *)op, NULL);
}

/* native_method(name, fallback): the method `name` with its fast path in C before the fallback */
static PyObject *py_native_method(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    PyObject *fallback;
    if (!PyArg_ParseTuple(args, "sO", &name, &fallback)) return NULL;
    Method method = view_method(name);
    return method ? new_fast_call(fallback, NULL, method) : PyErr_Format(PyExc_ValueError, "native_method: there is none for %s", name);
}

int op_call_init(void)
{
    str_call = PyUnicode_InternFromString("_call");
    return str_call && PyType_Ready(&OpBase_Type) == 0 && PyType_Ready(&FastCall_Type) == 0 ? 0 : -1;
}

PyMethodDef op_call_functions[] = {
    {"native_operator", py_native_operator, METH_VARARGS, "native_operator(op, fallback)"},
    {"native_method", py_native_method, METH_VARARGS, "native_method(name, fallback)"},
    {"bind_native_kernels", py_bind_native_kernels, METH_VARARGS, "bind_native_kernels(op, name): the short ways that C has for it"},
    {"run_kernel", (PyCFunction)(void *)py_run_kernel, METH_FASTCALL, "run_kernel(op, args): by the op's native loop or kernel, or None"},
    {NULL, NULL, 0, NULL},
};
