/* Matrix products of arrays: from strides to the calls that BLAS understands. */
#define PY_SSIZE_T_CLEAN
#include "internal.h"
#include <stdbool.h>
#include <string.h>

enum { RELEASE_FLOPS = 200000 }; /* about 5 us: above it other Python threads may run meanwhile */

/* One operand: `batch` matrices of rows x columns. `pitch` and `transposed` as BLAS has them. */
typedef struct {
    Py_buffer view;
    long batch, rows, columns, pitch, step;
    int transposed;
} Operand;

static bool element(const Py_buffer *view, char *code)
{
    const char *format = view->format ? view->format : "B";
    *code = *format;
    return (*code == 'f' || *code == 'd') && !format[1];
}

/* The stride in elements of a dim, or -1 where it is no whole number of them or runs backwards. */
static long stride_of(const Py_buffer *view, int dim)
{
    Py_ssize_t bytes = view->strides[dim];
    return bytes < 0 || bytes % view->itemsize ? -1 : (long)(bytes / view->itemsize);
}

/* All dims before the last two as one, if one stride walks through them. */
static bool merge_batch(Operand *o)
{
    long batch = 1, step = 0;
    for (int d = o->view.ndim - 3; d >= 0; d--) {
        long size = (long)o->view.shape[d], stride = stride_of(&o->view, d);
        if (size == 1) continue;
        if (stride < 0 || (batch > 1 && stride != step * batch)) return false;
        if (batch == 1) step = stride;
        batch *= size;
    }
    o->batch = batch;
    o->step = step;
    return true;
}

static bool describe(Operand *o)
{
    int n = o->view.ndim;
    o->rows = (long)o->view.shape[n - 2];
    o->columns = (long)o->view.shape[n - 1];
    long row = stride_of(&o->view, n - 2), column = stride_of(&o->view, n - 1);
    if (!merge_batch(o) || row < 0 || column < 0) return false;
    if ((column == 1 || o->columns <= 1) && (row >= o->columns || o->rows <= 1)) {
        o->transposed = 0;
        o->pitch = o->rows <= 1 ? o->columns : row;
    }
    else if ((row == 1 || o->rows <= 1) && (column >= o->rows || o->columns <= 1)) {
        o->transposed = 1;
        o->pitch = o->columns <= 1 ? o->rows : column;
    }
    else
        return false;
    if (o->pitch < 1) o->pitch = 1;
    return true;
}

/* c (+)= a @ b, or its transpose c' (+)= b' @ a' where c lies by columns. */
static void run(const Operand *c, const Operand *a, const Operand *b, char code, bool accumulate)
{
    bool turned = c->transposed;
    const Operand *left = turned ? b : a, *right = turned ? a : b;
    GemmCall call = {
        .dtype = code == 'd', .trans_a = left->transposed ^ turned, .trans_b = right->transposed ^ turned,
        .batch = c->batch, .m = turned ? c->columns : c->rows, .n = turned ? c->rows : c->columns, .k = a->columns,
        .lda = left->pitch, .ldb = right->pitch, .ldc = c->pitch,
        .stride_a = left->batch == 1 ? 0 : left->step, .stride_b = right->batch == 1 ? 0 : right->step, .stride_c = c->step,
        .alpha = 1.0, .beta = accumulate ? 1.0 : 0.0, .a = left->view.buf, .b = right->view.buf, .c = c->view.buf,
    };
    double flops = 2.0 * (double)call.batch * (double)call.m * (double)call.n * (double)call.k;
    PyThreadState *saved = flops > RELEASE_FLOPS ? PyEval_SaveThread() : NULL;
    blas_gemm(&g_runtime, &call, g_runtime.threads);
    if (saved) PyEval_RestoreThread(saved);
}

static bool can_run(Operand *c, Operand *a, Operand *b, char *code)
{
    char second, third;
    if (c->view.ndim < 2 || a->view.ndim < 2 || b->view.ndim < 2) return false;
    if (!element(&c->view, code) || !element(&a->view, &second) || !element(&b->view, &third)) return false;
    if (*code != second || *code != third || !describe(c) || !describe(a) || !describe(b)) return false;
    if (a->rows != c->rows || b->columns != c->columns || a->columns != b->rows) return false;
    return (a->batch == c->batch || a->batch == 1) && (b->batch == c->batch || b->batch == 1) &&
           (c->batch == 1 || c->step > 0);
}

/* product(out, a, b, accumulate=False): out = a @ b, or out += a @ b, for float32 or float64 arrays of at least two
 * dims; the dims before the last two match those of out or are 1. Returns False, with out unchanged, where the
 * strides are none that BLAS can read. */
PyObject *py_product(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3 && nargs != 4)
        return PyErr_Format(PyExc_TypeError, "product() takes out, a, b and accumulate; got %zd arguments", nargs);
    int accumulate = nargs == 4 ? PyObject_IsTrue(args[3]) : 0;
    if (accumulate < 0) return NULL;
    Operand o[3];
    for (int i = 0; i < 3; i++) {
        int flags = PyBUF_STRIDES | PyBUF_FORMAT | (i == 0 ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(args[i], &o[i].view, flags) < 0) {
            while (i--) PyBuffer_Release(&o[i].view);
            return NULL;
        }
    }
    char code;
    bool able = can_run(&o[0], &o[1], &o[2], &code);
    if (able) run(&o[0], &o[1], &o[2], code, accumulate);
    for (int i = 0; i < 3; i++) PyBuffer_Release(&o[i].view);
    return PyBool_FromLong(able);
}
