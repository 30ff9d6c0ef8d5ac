/* Matrix products: from strides to calls of BLAS. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "kernels/kernel.h"
#include <stdbool.h>
#include <string.h>

enum { RELEASE_FLOPS = 200000 }; /* about 5 us: above it other Python threads may run meanwhile */

/* One operand: `batch` matrices of rows x columns. `pitch` and `transposed` as BLAS has them. */
typedef struct {
    void *data;
    int ndim;
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM]; /* in elements; -1 for none that BLAS could use */
    long batch, rows, columns, pitch, step;
    int transposed;
} Operand;

/* All dims before the last two as one, if one stride walks through them. */
static bool merge_batch(Operand *o)
{
    long batch = 1, step = 0;
    for (int d = o->ndim - 3; d >= 0; d--) {
        long size = (long)o->sizes[d], stride = (long)o->strides[d];
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
    int n = o->ndim;
    if (n < 2) return false;
    o->rows = (long)o->sizes[n - 2];
    o->columns = (long)o->sizes[n - 1];
    long row = (long)o->strides[n - 2], column = (long)o->strides[n - 1];
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
static void run(const Operand *c, const Operand *a, const Operand *b, bool is_double, bool accumulate)
{
    bool by_columns = c->transposed;
    const Operand *left = by_columns ? b : a, *right = by_columns ? a : b;
    GemmCall call = {
        .dtype = is_double, .trans_a = left->transposed ^ by_columns, .trans_b = right->transposed ^ by_columns,
        .batch = c->batch, .m = by_columns ? c->columns : c->rows, .n = by_columns ? c->rows : c->columns, .k = a->columns,
        .lda = left->pitch, .ldb = right->pitch, .ldc = c->pitch,
        .stride_a = left->batch == 1 ? 0 : left->step, .stride_b = right->batch == 1 ? 0 : right->step, .stride_c = c->step,
        .alpha = 1.0, .beta = accumulate ? 1.0 : 0.0, .a = left->data, .b = right->data, .c = c->data,
    };
    double flops = 2.0 * (double)call.batch * (double)call.m * (double)call.n * (double)call.k;
    PyThreadState *saved = flops > RELEASE_FLOPS ? PyEval_SaveThread() : NULL;
    blas_gemm(&g_runtime, &call, g_runtime.threads);
    if (saved) PyEval_RestoreThread(saved);
}

static bool can_run(Operand *c, Operand *a, Operand *b)
{
    if (!describe(c) || !describe(a) || !describe(b)) return false;
    if (a->rows != c->rows || b->columns != c->columns || a->columns != b->rows) return false;
    return (a->batch == c->batch || a->batch == 1) && (b->batch == c->batch || b->batch == 1) &&
           (c->batch == 1 || c->step > 0);
}

/* ---- of arrays ---- */

static char floating_code(const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    return (*format == 'f' || *format == 'd') && !format[1] ? *format : 0;
}

static void operand_of_buffer(Operand *o, const Py_buffer *view)
{
    o->data = view->buf;
    o->ndim = view->ndim;
    for (int d = 0; d < view->ndim; d++) {
        Py_ssize_t bytes = view->strides[d];
        o->sizes[d] = view->shape[d];
        o->strides[d] = bytes < 0 || bytes % view->itemsize ? -1 : bytes / view->itemsize;
    }
}

/* gemm(out, a, b, accumulate=False): out = a @ b, or out += a @ b, for float32 or float64 arrays of at least two dims; the leading
 * dims of a and b match out's, or are 1. False, with out unchanged, if BLAS cannot read the strides or is absent: numpy's product
 * is then faster than plain loops. */
static PyObject *py_gemm(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3 && nargs != 4)
        return PyErr_Format(PyExc_TypeError, "gemm() takes out, a, b and accumulate; got %zd arguments", nargs);
    int accumulate = nargs == 4 ? PyObject_IsTrue(args[3]) : 0;
    if (accumulate < 0) return NULL;
    Py_buffer views[3];
    for (int i = 0; i < 3; i++) {
        int flags = PyBUF_STRIDES | PyBUF_FORMAT | (i == 0 ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(args[i], &views[i], flags) < 0) {
            while (i--) PyBuffer_Release(&views[i]);
            return NULL;
        }
    }
    Operand o[3];
    char code = floating_code(&views[0]);
    bool able = blas_loaded() && code && floating_code(&views[1]) == code && floating_code(&views[2]) == code;
    for (int i = 0; i < 3; i++) operand_of_buffer(&o[i], &views[i]);
    able = able && can_run(&o[0], &o[1], &o[2]);
    if (able) run(&o[0], &o[1], &o[2], code == 'd', accumulate);
    for (int i = 0; i < 3; i++) PyBuffer_Release(&views[i]);
    return PyBool_FromLong(able);
}

/* ---- of tensors ---- */

static bool operand_of_tensor(Operand *o, PyObject *object, int *dtype)
{
    if (!PyObject_TypeCheck(object, &TensorBase_Type)) return false;
    const TensorObject *t = (const TensorObject *)object;
    const int code = EAGER_META_DTYPE(t->meta);
    if ((t->meta & (EAGER_FAKE | ((uint64_t)0xff << 8))) || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64)) return false;
    if (*dtype >= 0 && code != *dtype) return false;
    *dtype = code;
    o->data = t->data;
    o->ndim = tensor_ndim(t);
    memcpy(o->sizes, tensor_sizes(t), sizeof(int64_t) * (size_t)o->ndim);
    memcpy(o->strides, tensor_strides(t), sizeof(int64_t) * (size_t)o->ndim);
    return true;
}

static void transpose_operand(Operand *o)
{
    int64_t size = o->sizes[o->ndim - 1], stride = o->strides[o->ndim - 1];
    o->sizes[o->ndim - 1] = o->sizes[o->ndim - 2];
    o->strides[o->ndim - 1] = o->strides[o->ndim - 2];
    o->sizes[o->ndim - 2] = size;
    o->strides[o->ndim - 2] = stride;
}

/* Rows of `out` become the bias. */
static bool broadcast_bias(const Operand *out, PyObject *object, int dtype)
{
    Operand bias;
    if (!operand_of_tensor(&bias, object, &dtype) || bias.ndim != 1 || bias.sizes[0] != out->sizes[out->ndim - 1] ||
        (bias.sizes[0] > 1 && bias.strides[0] != 1))
        return false;
    const size_t bytes = (size_t)out->columns * (size_t)g_itemsize[dtype];
    for (long r = 0; r < out->batch * out->rows; r++) memcpy((char *)out->data + (size_t)r * bytes, bias.data, bytes);
    return true;
}

static bool is_matrix(PyObject *o) { return PyObject_TypeCheck(o, &TensorBase_Type) && tensor_ndim((TensorObject *)o) >= 2; }

/* The operand of a tensor, over a row-major copy of it (a new reference in *copy) where BLAS cannot read its strides. */
static bool readable_operand(Operand *o, PyObject *object, PyObject **copy, int *dtype)
{
    *copy = NULL;
    if (!is_matrix(object) || !operand_of_tensor(o, object, dtype)) return false;
    Operand tried = *o;
    if (!o->data || describe(&tried)) return o->data != NULL;
    *copy = (PyObject *)as_row_major((TensorObject *)object);
    return *copy && operand_of_tensor(o, *copy, dtype);
}

/* a @ b of float32 or float64 tensors on the CPU, b of two dims, or of as many as a with the same leading ones; with
 * `transposed_b` b lies the other way round. A new row-major tensor, plus the bias on each row; NULL without an exception where
 * that does not hold, and the shapes are left for the op to judge. */
static bool multiply(Operand a, Operand b, bool transposed_b, PyObject *bias, int dtype, Results *results)
{
    Operand c = {.ndim = a.ndim};
    if (transposed_b) transpose_operand(&b);
    if (b.ndim != 2 && (b.ndim != a.ndim || memcmp(a.sizes, b.sizes, sizeof(int64_t) * (size_t)(a.ndim - 2)))) return false;
    if (a.sizes[a.ndim - 1] != b.sizes[b.ndim - 2]) return false;
    memcpy(c.sizes, a.sizes, sizeof(int64_t) * (size_t)a.ndim);
    c.sizes[c.ndim - 1] = b.sizes[b.ndim - 1];
    int64_t step = 1;
    for (int d = c.ndim - 1; d >= 0; d--) {
        if (c.sizes[d] == 0) return false;
        c.strides[d] = step;
        step *= c.sizes[d];
    }
    if (!can_run(&c, &a, &b)) return false;
    TensorObject *out = result_memory(results, dtype, c.ndim, c.sizes);
    if (!out) return false;
    c.data = out->data;
    const bool biased = bias != Py_None;
    if (biased && !broadcast_bias(&c, bias, dtype)) return false;
    if (b.batch == 1 && !a.transposed && !c.transposed && a.batch > 1 && a.step == a.rows * a.pitch) { /* one large product */
        a.rows *= a.batch;
        c.rows *= c.batch;
        a.batch = c.batch = 1;
    }
    run(&c, &a, &b, dtype == EAGER_FLOAT64, biased);
    return true;
}

static bool multiply_tensors(PyObject *x, PyObject *y, bool transposed_b, PyObject *bias, Results *results)
{
    Operand a, b;
    PyObject *copies[2] = {NULL, NULL};
    int dtype = -1;
    bool able = blas_loaded() && readable_operand(&a, x, &copies[0], &dtype) && readable_operand(&b, y, &copies[1], &dtype);
    able = able && multiply(a, b, transposed_b, bias, dtype, results);
    Py_XDECREF(copies[0]);
    Py_XDECREF(copies[1]);
    return able;
}

bool kernel_matmul(PyObject *const *args, Results *results) { return multiply_tensors(args[0], args[1], false, Py_None, results); }

static bool multiply_of_ndim(PyObject *const *args, int ndim, Results *results)
{
    for (int i = 0; i < 2; i++)
        if (!is_matrix(args[i]) || tensor_ndim((TensorObject *)args[i]) != ndim) return false;
    return kernel_matmul(args, results);
}

bool kernel_mm(PyObject *const *args, Results *results) { return multiply_of_ndim(args, 2, results); }
bool kernel_bmm(PyObject *const *args, Results *results) { return multiply_of_ndim(args, 3, results); }

/* linear(x, weight, bias) */
bool kernel_linear(PyObject *const *args, Results *results)
{
    return is_matrix(args[1]) && tensor_ndim((TensorObject *)args[1]) == 2 && multiply_tensors(args[0], args[1], true, args[2], results);
}

PyMethodDef matmul_functions[] = {
    {"gemm", (PyCFunction)(void *)py_gemm, METH_FASTCALL, "gemm(out, a, b, accumulate=False): out (+)= a @ b; False where it cannot"},
    {NULL, NULL, 0, NULL},
};
