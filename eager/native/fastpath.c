/* The short way of the commonest calls: contiguous float operands on the CPU, nothing recorded.
 *
 * `fast_operator(name, fallback)` is a callable and method descriptor. Where both operands are float32
 * or float64 tensors of one dtype and shape, row-major, on the CPU, with data, with no dispatch mode on
 * and no gradient asked for (or the second is a Python float or int), it computes here in a plain loop;
 * in every other case it calls `fallback`, the full dispatch, which defines the semantics. */
#define PY_SSIZE_T_CLEAN
#include "internal.h"
#include <string.h>
#include <structmember.h>

enum { ADD, SUB, MUL, DIV, NUM_FAST };
static const char *const names[NUM_FAST] = {"add", "sub", "mul", "div"};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    int op;
} FastOp;

static PyTypeObject FastOp_Type;

static inline bool plain(const TensorObject *t)
{
    const uint64_t refused = EAGER_FAKE | ((uint64_t)0xff << 8);
    int code = EAGER_META_DTYPE(t->meta);
    if (Py_TYPE(t) != g_tensor_class || (t->meta & refused) || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64))
        return false;
    return !(t->meta & EAGER_REQUIRES_GRAD) || tls_grad_disabled;
}

static inline bool row_major(const TensorObject *t, int64_t *count)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        int64_t size = tensor_sizes(t)[i];
        if (size == 0 || (size != 1 && tensor_strides(t)[i] != expected)) return false;
        expected *= size;
    }
    *count = expected;
    return true;
}

#define LOOPS(T)                                                                               \
    static void run_##T(int op, const T *x, const T *y, T *out, int64_t n)                     \
    {                                                                                          \
        switch (op) {                                                                          \
        case ADD: for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i]; break;                 \
        case SUB: for (int64_t i = 0; i < n; i++) out[i] = x[i] - y[i]; break;                 \
        case MUL: for (int64_t i = 0; i < n; i++) out[i] = x[i] * y[i]; break;                 \
        default: for (int64_t i = 0; i < n; i++) out[i] = x[i] / y[i]; break;                  \
        }                                                                                      \
    }                                                                                          \
    static void run_scalar_##T(int op, const T *x, T y, T *out, int64_t n)                     \
    {                                                                                          \
        switch (op) {                                                                          \
        case ADD: for (int64_t i = 0; i < n; i++) out[i] = x[i] + y; break;                    \
        case SUB: for (int64_t i = 0; i < n; i++) out[i] = x[i] - y; break;                    \
        case MUL: for (int64_t i = 0; i < n; i++) out[i] = x[i] * y; break;                    \
        default: for (int64_t i = 0; i < n; i++) out[i] = x[i] / y; break;                     \
        }                                                                                      \
    }
LOOPS(float)
LOOPS(double)

#define RELEASE_ABOVE 65536

static void run(int op, const TensorObject *x, const TensorObject *y, double scalar, TensorObject *out, int64_t n)
{
    PyThreadState *saved = n > RELEASE_ABOVE ? PyEval_SaveThread() : NULL;
    bool single = EAGER_META_DTYPE(x->meta) == EAGER_FLOAT32;
    if (y && single) run_float(op, (float *)x->data, (float *)y->data, (float *)out->data, n);
    else if (y) run_double(op, (double *)x->data, (double *)y->data, (double *)out->data, n);
    else if (single) run_scalar_float(op, (float *)x->data, (float)scalar, (float *)out->data, n);
    else run_scalar_double(op, (double *)x->data, scalar, (double *)out->data, n);
    if (saved) PyEval_RestoreThread(saved);
}

/* The result, or NULL with no exception set where the short way does not apply. */
static PyObject *try_fast(FastOp *self, PyObject *a, PyObject *b)
{
    TensorObject *x = (TensorObject *)a, *y = NULL;
    int64_t n, m;
    double scalar = 0.0;
    if (!PyObject_TypeCheck(a, &TensorBase_Type) || tls_mode_depth || !plain(x) || !row_major(x, &n)) return NULL;
    if (PyFloat_CheckExact(b)) scalar = PyFloat_AS_DOUBLE(b);
    else if (PyLong_CheckExact(b)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(b, &overflow);
        if (overflow || value > (1LL << 53) || value < -(1LL << 53)) return NULL;
        scalar = (double)value;
    }
    else {
        y = (TensorObject *)b;
        if (!PyObject_TypeCheck(b, &TensorBase_Type) || !plain(y) || ((x->meta ^ y->meta) & 0xff0000ff) ||
            !row_major(y, &m) || n != m)
            return NULL;
        for (int i = 0; i < tensor_ndim(x); i++)
            if (tensor_sizes(x)[i] != tensor_sizes(y)[i]) return NULL;
    }
    PyObject *out = py_empty_row_major(NULL, a);
    if (!out) return NULL;
    run(self->op, x, y, scalar, (TensorObject *)out, n);
    return out;
}

/* uniform_floats(args): the first tensor of a tuple in which all tensors are row-major CPU tensors of one
 * shape and one of float32 and float64, and all else are Python floats and ints; otherwise None. */
PyObject *py_uniform_floats(PyObject *Py_UNUSED(self), PyObject *args)
{
    TensorObject *first = NULL;
    int64_t n;
    if (!PyTuple_CheckExact(args)) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *a = PyTuple_GET_ITEM(args, i);
        if (PyFloat_CheckExact(a) || PyLong_CheckExact(a)) continue;
        TensorObject *t = (TensorObject *)a;
        if (!PyObject_TypeCheck(a, &TensorBase_Type)) Py_RETURN_NONE;
        int code = EAGER_META_DTYPE(t->meta);
        if (t->meta & (EAGER_FAKE | ((uint64_t)0xff << 8)) || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64))
            Py_RETURN_NONE;
        if (!first) {
            if (!row_major(t, &n)) Py_RETURN_NONE;
            first = t;
            continue;
        }
        if ((first->meta ^ t->meta) & 0xff0000ff || memcmp(first->dims, t->dims, sizeof(int64_t) * 2 * (size_t)tensor_ndim(t)))
            Py_RETURN_NONE;
    }
    return Py_NewRef(first ? (PyObject *)first : Py_None);
}

static PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    FastOp *self = (FastOp *)callable;
    if (PyVectorcall_NARGS(nargsf) == 2 && !kwnames) {
        PyObject *out = try_fast(self, args[0], args[1]);
        if (out || PyErr_Occurred()) return out;
    }
    return PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
}

static PyObject *fast_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static int fast_traverse(FastOp *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    return 0;
}

static void fast_dealloc(FastOp *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->fallback);
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
    .tp_descr_get = fast_get,
    .tp_traverse = (traverseproc)fast_traverse,
    .tp_dealloc = (destructor)fast_dealloc,
    .tp_members = fast_members,
};

/* fast_operator(name, fallback) */
PyObject *py_fast_operator(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    PyObject *fallback;
    if (!PyArg_ParseTuple(args, "sO", &name, &fallback)) return NULL;
    int op = 0;
    while (op < NUM_FAST && strcmp(names[op], name)) op++;
    if (op == NUM_FAST) {
        PyErr_Format(PyExc_ValueError, "fast_operator: no fast form of %s; allowed: add, sub, mul, div", name);
        return NULL;
    }
    if (PyType_Ready(&FastOp_Type) < 0) return NULL;
    FastOp *made = PyObject_GC_New(FastOp, &FastOp_Type);
    if (!made) return NULL;
    made->vectorcall = fast_call;
    made->fallback = Py_NewRef(fallback);
    made->op = op;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}
