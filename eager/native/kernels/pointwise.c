/* Pointwise ops over row-major floats: shapes, broadcasting and threads around the loops of pointwise_loops.h. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/pointwise.h"
#include "kernels/pointwise_loop.h"
#include "tensor/memory_overlap.h"
#include "kernels/vector_math.h"
#include <string.h>

enum { GRAIN = 16384 };

/* loops[mask][double]: mask has a bit for each argument that is a tensor. */
typedef struct {
    const char *name;
    int arity, truth;
    Loop loops[1 << MAX_OPERANDS][2];
} PointwiseOp;

#include "kernels/pointwise_loops.h"

enum { NUM_OPS = sizeof pointwise_ops / sizeof *pointwise_ops };

int pointwise_find(const char *name)
{
    for (int i = 0; i < NUM_OPS; i++)
        if (!strcmp(pointwise_ops[i].name, name)) return i;
    return -1;
}

int pointwise_arity(int op) { return pointwise_ops[op].arity; }

/* ---- which calls ---- */

static bool is_plain(const TensorObject *t, bool recorded)
{
    const uint64_t refused = EAGER_FAKE | ((uint64_t)0xff << 8);
    int code = EAGER_META_DTYPE(t->meta);
    if ((t->meta & refused) || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64)) return false;
    if (recorded) return true;
    return Py_TYPE(t) == g_tensor_class && (!tensor_may_require_grad(t) || tls_grad_disabled);
}

static bool row_major(const TensorObject *t)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        int64_t size = tensor_sizes(t)[i];
        if (size == 0 || (size != 1 && tensor_strides(t)[i] != expected)) return false;
        expected *= size;
    }
    return true;
}

/* One element broadcast to a shape, as in the gradient of a sum. */
static bool spread(const TensorObject *t)
{
    bool larger = false;
    for (int i = 0; i < tensor_ndim(t); i++) {
        int64_t size = tensor_sizes(t)[i];
        if (size == 0 || (size != 1 && tensor_strides(t)[i] != 0)) return false;
        larger = larger || size != 1;
    }
    return larger;
}

static bool as_number(PyObject *o, double *value)
{
    if (PyFloat_CheckExact(o)) {
        *value = PyFloat_AS_DOUBLE(o);
        return true;
    }
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
    *value = (double)whole;
    return !overflow && whole <= (1LL << 53) && whole >= -(1LL << 53);
}

/* ---- broadcasting: rows of `columns` elements ---- */

/* How a loop reads an operand. WHOLE: element for element. LINE: the same row for each row of the result (its shape is a tail of
 * the result's). STEM: one element for each row (its trailing dims are 1). NUMBER: one value. */
enum shape_kind { WHOLE, LINE, STEM, NUMBER };

typedef struct {
    int ndim;
    int64_t sizes[EAGER_MAX_NDIM];
    long count, columns;
} Shape;

static bool broadcast(Shape *r, const TensorObject *t)
{
    int n = tensor_ndim(t);
    if (n > r->ndim) {
        memmove(r->sizes + (n - r->ndim), r->sizes, sizeof(int64_t) * (size_t)r->ndim);
        for (int i = 0; i < n - r->ndim; i++) r->sizes[i] = 1;
        r->ndim = n;
    }
    for (int i = 0; i < n; i++) {
        int64_t mine = tensor_sizes(t)[i], *size = &r->sizes[r->ndim - n + i];
        if (*size == 1) *size = mine;
        else if (mine != 1 && mine != *size) return false;
    }
    return true;
}

/* The operand's kind, and in *columns how long its rows are (0: any length will do); -1 for any other broadcast. */
static int kind_of(const Shape *r, const TensorObject *t, long *columns)
{
    int lead = r->ndim - tensor_ndim(t), first_one = r->ndim, last_one = -1;
    for (int i = 0; i < r->ndim; i++) {
        int64_t mine = i < lead ? 1 : tensor_sizes(t)[i - lead];
        if (mine == r->sizes[i]) continue; /* a size of 1 on both sides is spread nowhere */
        if (i < first_one) first_one = i;
        last_one = i;
    }
    *columns = 0;
    if (last_one < 0) return WHOLE;
    int kind = -1;
    long tail = 1;
    bool line = true, stem = true;
    for (int i = 0; i < r->ndim; i++) {
        int64_t mine = i < lead ? 1 : tensor_sizes(t)[i - lead];
        if (i <= last_one && mine != 1) line = false;
        if (i >= first_one && mine != 1) stem = false;
    }
    if (line) {
        kind = LINE;
        for (int i = last_one + 1; i < r->ndim; i++) tail *= (long)r->sizes[i];
    }
    else if (stem) {
        kind = STEM;
        for (int i = first_one; i < r->ndim; i++) tail *= (long)r->sizes[i];
    }
    *columns = tail;
    return kind;
}

/* Whether an operand's layout leaves the result row-major. An operand of the result's shape does. Beside a broadcast, the strides
 * of all dims order the result's strides; dims of size 1 count unless they are spread (`elementwise_strides` in
 * eager/base/spec.py). */
static bool keeps_rows(const Shape *r, const TensorObject *t)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        int64_t size = tensor_sizes(t)[i];
        if (size == 1 && r->sizes[r->ndim - tensor_ndim(t) + i] == 1 && tensor_strides(t)[i] != expected) return false;
        expected *= size;
    }
    return true;
}

static bool is_whole(const Shape *r, const TensorObject *t)
{
    return tensor_ndim(t) == r->ndim && !memcmp(tensor_sizes(t), r->sizes, sizeof(int64_t) * (size_t)r->ndim) && !spread(t);
}

typedef struct {
    Loop loop;
    Pointwise ctx;
    int kinds[MAX_OPERANDS], arity, itemsize, out_itemsize, is_double;
    long columns;
    int tensors; /* mask of the operands that must be tensors */
} Rows;

CLONES static void run_rows(void *context, long begin, long end)
{
    const Rows *rows = context;
    Pointwise ctx = rows->ctx;
    for (long r = begin; r < end; r++) {
        ctx.out = (char *)rows->ctx.out + r * rows->columns * rows->out_itemsize;
        for (int i = 0; i < rows->arity; i++) {
            if (rows->kinds[i] == WHOLE) ctx.in[i] = (const char *)rows->ctx.in[i] + r * rows->columns * rows->itemsize;
            else if (rows->kinds[i] == STEM)
                ctx.number[i] = rows->is_double ? ((const double *)rows->ctx.in[i])[r] : ((const float *)rows->ctx.in[i])[r];
        }
        rows->loop(&ctx, 0, rows->columns);
    }
}

static void run_elements(void *context, long begin, long end)
{
    const Rows *rows = context;
    rows->loop(&rows->ctx, begin, end);
}

/* ---- one call ---- */

/* By loop: the mask of the operands that must be tensors. Dispatch refuses a number there. */
static int tensors_only[NUM_OPS];

void pointwise_refuse_numbers(int op, int operands) { tensors_only[op] = operands; }

/* Reads the arguments as operands; false if the loops do not support them. */
static bool read_operands(PyObject *const *args, Rows *rows, const TensorObject **tensors, Shape *shape, bool recorded)
{
    const TensorObject *first = NULL;
    for (int i = 0; i < rows->arity; i++) {
        tensors[i] = NULL;
        if (as_number(args[i], &rows->ctx.number[i])) {
            if (rows->tensors >> i & 1) return false;
            continue;
        }
        if (!PyObject_TypeCheck(args[i], &TensorBase_Type)) return false;
        const TensorObject *t = tensors[i] = (const TensorObject *)args[i];
        if (!is_plain(t, recorded) || !(row_major(t) || spread(t))) return false;
        if (first && EAGER_META_DTYPE(first->meta) != EAGER_META_DTYPE(t->meta)) return false;
        if (!first) {
            first = t;
            rows->is_double = EAGER_META_DTYPE(t->meta) == EAGER_FLOAT64;
        }
        if (!broadcast(shape, t)) return false;
    }
    if (!first) return false;
    bool whole = true, rows_kept = true; /* a number counts as a 0-d tensor, which is spread */
    for (int i = 0; i < rows->arity; i++) {
        if (!tensors[i]) {
            whole = false;
            continue;
        }
        whole = whole && is_whole(shape, tensors[i]);
        rows_kept = rows_kept && keeps_rows(shape, tensors[i]);
    }
    if (!whole && !rows_kept) return false;
    shape->count = 1;
    for (int i = 0; i < shape->ndim; i++) shape->count *= (long)shape->sizes[i];
    return true;
}

/* How each operand is read, one length of rows for all; the mask of those read as arrays, or -1. */
static int plan_rows(Rows *rows, const TensorObject *const *tensors, const Shape *shape)
{
    int mask = 0;
    rows->columns = 0;
    for (int i = 0; i < rows->arity; i++) {
        rows->kinds[i] = NUMBER;
        if (!tensors[i]) continue;
        if (spread(tensors[i])) {
            rows->ctx.number[i] = rows->is_double ? *(const double *)tensors[i]->data : *(const float *)tensors[i]->data;
            continue;
        }
        long columns;
        int kind = kind_of(shape, tensors[i], &columns);
        if (kind < 0 || (columns && rows->columns && columns != rows->columns)) return -1;
        if (columns) rows->columns = columns;
        rows->kinds[i] = kind;
        rows->ctx.in[i] = tensors[i]->data;
        if (kind != STEM) mask |= 1 << i;
    }
    if (!rows->columns) rows->columns = shape->count;
    return mask;
}

/* Plans a call except for its result memory; false if the loops do not support the arguments. */
static bool prepare(int op, PyObject *const *args, Py_ssize_t nargs, bool recorded, Rows *rows, Shape *shape,
                    const TensorObject **tensors)
{
    const PointwiseOp *p = &pointwise_ops[op];
    rows->arity = p->arity;
    rows->tensors = tensors_only[op];
    shape->ndim = 0;
    if (nargs != p->arity || !read_operands(args, rows, tensors, shape, recorded)) return false;
    int mask = plan_rows(rows, tensors, shape);
    if (mask <= 0 || !(rows->loop = p->loops[mask][rows->is_double])) return false;
    rows->itemsize = rows->is_double ? 8 : 4;
    rows->out_itemsize = p->truth ? 1 : rows->itemsize;
    return true;
}

static void run_into(Rows *rows, const Shape *shape, void *out)
{
    rows->ctx.out = out;
    long count = shape->count / rows->columns;
    if (count == 1) parallel(run_elements, rows, rows->columns, GRAIN, (double)shape->count);
    else parallel(run_rows, rows, count, 1 + GRAIN / rows->columns, (double)shape->count);
}

/* Whether the first operand may be overwritten element by element: each other operand lies apart from it, or is the same tensor. */
static bool may_overwrite(const Rows *rows, const TensorObject *const *tensors, const Shape *shape)
{
    const char *low = tensors[0]->data, *high = low + shape->count * rows->itemsize;
    for (int i = 1; i < rows->arity; i++) {
        if (!tensors[i]) continue;
        if (rows->kinds[i] == NUMBER) { /* its value is already read */
            if (overlap_of(tensors[0], tensors[i]) == OVERLAP_PARTIAL) return false;
            continue;
        }
        const char *begin = tensors[i]->data, *end = begin;
        int64_t count = 1;
        for (int d = 0; d < tensor_ndim(tensors[i]); d++) count *= tensor_sizes(tensors[i])[d];
        end += count * rows->itemsize;
        bool apart = end <= low || begin >= high;
        if (!apart && !(begin == low && rows->kinds[i] == WHOLE)) return false;
    }
    return true;
}

/* The loop of an op by the convention of kernels. */
static inline __attribute__((always_inline)) bool run_loop(int op, PyObject *const *args, Py_ssize_t nargs, bool beneath_autograd, Results *results)
{
    Rows rows;
    Shape shape;
    const TensorObject *tensors[MAX_OPERANDS];
    if (!prepare(op, args, nargs, beneath_autograd, &rows, &shape, tensors)) return false;
    TensorObject *out = result_memory(results, pointwise_ops[op].truth ? EAGER_BOOL : rows.is_double ? EAGER_FLOAT64 : EAGER_FLOAT32, shape.ndim, shape.sizes);
    if (!out) return false;
    if (results->target && (out != tensors[0] || rows.kinds[0] != WHOLE || !may_overwrite(&rows, tensors, &shape))) return false;
    run_into(&rows, &shape, out->data);
    return true;
}

static inline __attribute__((always_inline)) PyObject *run(int op, PyObject *const *args, Py_ssize_t nargs, bool beneath_autograd, TensorObject *target)
{
    Results results = {.target = target};
    if (run_loop(op, args, nargs, beneath_autograd, &results)) return results_take(&results);
    results_drop(&results);
    return NULL;
}

PyObject *pointwise_call_plain(int op, PyObject *const *args, Py_ssize_t nargs)
{
    return tls_mode_depth ? NULL : run(op, args, nargs, false, NULL);
}

PyObject *pointwise_call(int op, PyObject *const *args, Py_ssize_t nargs) { return run(op, args, nargs, true, NULL); }

PyObject *pointwise_write(int op, PyObject *const *args, Py_ssize_t nargs)
{
    TensorObject *target = cpu_tensor(args[0]);
    PyObject *out = target ? run(op, args, nargs, true, target) : NULL;
    if (out) storage_written(target->storage);
    return out;
}

/* run_pointwise_loop(op, args) -> the result, or None where no loop fits */
static PyObject *py_run_pointwise_loop(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyLong_Check(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "run_pointwise_loop() takes an op's number and a tuple of arguments");
    long op = PyLong_AsLong(args[0]);
    if (op < 0 || op >= NUM_OPS) return PyErr_Format(PyExc_ValueError, "run_pointwise_loop: there is no op %ld", op);
    PyObject *out = pointwise_call((int)op, &PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_SIZE(args[1]));
    if (!out && !PyErr_Occurred()) Py_RETURN_NONE;
    return out;
}

/* pointwise_loop_number(name) -> number of the op, or -1 */
static PyObject *py_pointwise_loop_number(PyObject *Py_UNUSED(self), PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    return text ? PyLong_FromLong(pointwise_find(text)) : NULL;
}

/* uniform_float_tensor(args): the first tensor of a tuple in which all tensors are row-major, on one device (the CPU or a CUDA
 * device), of one shape, and of one dtype (float32 or float64), and all else are Python floats, and ints of 64 bits; otherwise None.
 * Beside a number the strides of dims of size 1 must be row-major too, as they order the result's (`elementwise_strides` in
 * eager/base/spec.py). */
static PyObject *py_uniform_float_tensor(PyObject *Py_UNUSED(self), PyObject *args)
{
    TensorObject *first = NULL;
    bool numbers = false;
    if (!PyTuple_CheckExact(args)) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *a = PyTuple_GET_ITEM(args, i);
        int overflow = 0;
        if (PyLong_CheckExact(a)) (void)PyLong_AsLongLongAndOverflow(a, &overflow);
        if (overflow) Py_RETURN_NONE;
        if (PyFloat_CheckExact(a) || PyLong_CheckExact(a)) {
            numbers = true;
            continue;
        }
        TensorObject *t = (TensorObject *)a;
        if (!PyObject_TypeCheck(a, &TensorBase_Type)) Py_RETURN_NONE;
        int code = EAGER_META_DTYPE(t->meta);
        if (t->meta & EAGER_FAKE || EAGER_META_DEVICE(t->meta) == EAGER_META || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64))
            Py_RETURN_NONE;
        if (!first) {
            if (!row_major(t)) Py_RETURN_NONE;
            first = t;
            continue;
        }
        if ((first->meta ^ t->meta) & 0xffffffff || memcmp(first->dims, t->dims, sizeof(int64_t) * 2 * (size_t)tensor_ndim(t)))
            Py_RETURN_NONE;
    }
    if (first && numbers && !has_plain_strides(first)) Py_RETURN_NONE;
    return Py_NewRef(first ? (PyObject *)first : Py_None);
}

PyMethodDef pointwise_functions[] = {
    {"run_pointwise_loop", (PyCFunction)(void *)py_run_pointwise_loop, METH_FASTCALL, "run_pointwise_loop(op, args): by the op's native loop, or None"},
    {"pointwise_loop_number", py_pointwise_loop_number, METH_O, "pointwise_loop_number(name): of the op among those with loops, or -1"},
    {"uniform_float_tensor", py_uniform_float_tensor, METH_O, "the first tensor, if all are alike and plain"},
    {NULL, NULL, 0, NULL},
};
