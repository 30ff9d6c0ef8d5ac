/* Sums and extremes of row-major floats, over the last dims (rows) or over the first (columns); sums of integers.
 *
 * A sum of many elements is a sum of block sums in double precision, so that its error grows with the number of blocks, not of
 * elements. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/numpy_buffers.h"
#include "kernels/kernel.h"
#include "kernels/vector_math.h"

enum { LANES = 32, STEPS = 16, BLOCK = LANES * STEPS, COLUMNS = 512 }; /* a lane adds STEPS numbers */
enum { SUM, MAX, MIN, NUM_KINDS };

typedef struct {
    void *out;
    const void *x;
    long rows, n;
    double scale;
    double *parts; /* one row in blocks: a partial result each */
} Job;

#define FOLD(T, combine, from, count, result)                                                               \
    {                                                                                                       \
        T lanes[LANES];                                                                                     \
        long i = 0;                                                                                         \
        if ((count) < LANES) {                                                                              \
            result = (from)[0];                                                                             \
            for (i = 1; i < (count); i++) result = combine(result, (from)[i]);                              \
        }                                                                                                   \
        else {                                                                                              \
            for (int l = 0; l < LANES; l++) lanes[l] = (from)[l];                                           \
            for (i = LANES; i + LANES <= (count); i += LANES)                                               \
                for (int l = 0; l < LANES; l++) lanes[l] = combine(lanes[l], (from)[i + l]);                \
            for (int half = LANES / 2; half; half /= 2)                                                     \
                for (int l = 0; l < half; l++) lanes[l] = combine(lanes[l], lanes[l + half]);               \
            result = lanes[0];                                                                              \
            for (; i < (count); i++) result = combine(result, (from)[i]);                                   \
        }                                                                                                   \
    }
#define PLUS(x, y) ((x) + (y))

#define REDUCTIONS(S, T)                                                                                    \
    CLONES static void sum_rows_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        for (long r = begin; r < end; r++) {                                                                \
            double total = 0;                                                                               \
            for (long at = 0; at < job->n; at += BLOCK) {                                                   \
                const T *x = (const T *)job->x + r * job->n + at;                                           \
                const long count = job->n - at < BLOCK ? job->n - at : BLOCK;                               \
                T part;                                                                                     \
                FOLD(T, PLUS, x, count, part)                                                               \
                total += (double)part;                                                                      \
            }                                                                                               \
            ((T *)job->out)[r] = (T)(total * job->scale);                                                   \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void sum_parts_##S(void *context, long begin, long end)                                   \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        for (long b = begin; b < end; b++) {                                                                \
            const T *x = (const T *)job->x + b * BLOCK;                                                     \
            const long left = job->n - b * BLOCK, count = left < BLOCK ? left : BLOCK;                      \
            T part;                                                                                         \
            FOLD(T, PLUS, x, count, part)                                                                   \
            job->parts[b] = (double)part;                                                                   \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void max_rows_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->x + r * job->n;                                                    \
            T top;                                                                                          \
            FOLD(T, maximum_##S, x, job->n, top)                                                            \
            ((T *)job->out)[r] = top;                                                                       \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void min_rows_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->x + r * job->n;                                                    \
            T low;                                                                                          \
            FOLD(T, minimum_##S, x, job->n, low)                                                            \
            ((T *)job->out)[r] = low;                                                                       \
        }                                                                                                   \
    }                                                                                                       \
    /* Columns [begin, end), COLUMNS of them at once: every row is read in order. */                        \
    CLONES static void sum_columns_##S(void *context, long begin, long end)                                 \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        for (long at = begin; at < end; at += COLUMNS) {                                                    \
            const long width = end - at < COLUMNS ? end - at : COLUMNS;                                     \
            double total[COLUMNS];                                                                          \
            for (long c = 0; c < width; c++) total[c] = 0;                                                  \
            for (long first = 0; first < job->rows; first += STEPS) {                                       \
                const long last = first + STEPS < job->rows ? first + STEPS : job->rows;                    \
                T part[COLUMNS];                                                                            \
                for (long c = 0; c < width; c++) part[c] = 0;                                               \
                for (long r = first; r < last; r++) {                                                       \
                    const T *restrict x = (const T *)job->x + r * job->n + at;                              \
                    for (long c = 0; c < width; c++) part[c] += x[c];                                       \
                }                                                                                           \
                for (long c = 0; c < width; c++) total[c] += (double)part[c];                               \
            }                                                                                               \
            for (long c = 0; c < width; c++) ((T *)job->out)[at + c] = (T)(total[c] * job->scale);          \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void max_columns_##S(void *context, long begin, long end)                                 \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        T *restrict out = job->out;                                                                         \
        for (long c = begin; c < end; c++) out[c] = ((const T *)job->x)[c];                                 \
        for (long r = 1; r < job->rows; r++) {                                                              \
            const T *restrict x = (const T *)job->x + r * job->n;                                           \
            for (long c = begin; c < end; c++) out[c] = maximum_##S(out[c], x[c]);                          \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void min_columns_##S(void *context, long begin, long end)                                 \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        T *restrict out = job->out;                                                                         \
        for (long c = begin; c < end; c++) out[c] = ((const T *)job->x)[c];                                 \
        for (long r = 1; r < job->rows; r++) {                                                              \
            const T *restrict x = (const T *)job->x + r * job->n;                                           \
            for (long c = begin; c < end; c++) out[c] = minimum_##S(out[c], x[c]);                          \
        }                                                                                                   \
    }
REDUCTIONS(f32, float)
REDUCTIONS(f64, double)

static const LoopFn over_rows[NUM_KINDS][2] = {
    {sum_rows_f32, sum_rows_f64}, {max_rows_f32, max_rows_f64}, {min_rows_f32, min_rows_f64}};
static const LoopFn over_columns[NUM_KINDS][2] = {
    {sum_columns_f32, sum_columns_f64}, {max_columns_f32, max_columns_f64}, {min_columns_f32, min_columns_f64}};

/* One long row: blocks over the threads, then their results in order. False if out of memory. */
static bool sum_one_row(bool is_double, Job *job)
{
    long blocks = (job->n + BLOCK - 1) / BLOCK;
    job->parts = PyMem_RawMalloc((size_t)blocks * sizeof(double));
    if (!job->parts) return false;
    parallel(is_double ? sum_parts_f64 : sum_parts_f32, job, blocks, 32, (double)job->n);
    double total = 0;
    for (long b = 0; b < blocks; b++) total += job->parts[b];
    PyMem_RawFree(job->parts);
    if (is_double) *(double *)job->out = total * job->scale;
    else *(float *)job->out = (float)(total * job->scale);
    return true;
}

/* `outputs` results of `other` elements each, rows or columns of x. False if out of memory. */
static bool reduce(int kind, bool is_double, bool columns, void *out, const void *x, long outputs, long other, double scale)
{
    Job job = {out, x, columns ? other : outputs, columns ? outputs : other, scale, NULL};
    const double elements = (double)outputs * (double)other;
    if (columns) parallel(over_columns[kind][is_double], &job, outputs, 64, elements);
    else if (kind == SUM && outputs == 1 && elements >= PARALLEL_ELEMENTS) return sum_one_row(is_double, &job);
    else parallel(over_rows[kind][is_double], &job, outputs, 1 + 8192 / other, elements);
    return true;
}

/* reduce_array(out, x, kind, columns, scale): x as (out.size, n) summed over n, or with `columns` as (n, out.size) over n.
 * kind: 0 sum, times scale; 1 maximum; 2 minimum. False for arrays it cannot work on. */
static PyObject *py_reduce_array(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5) return PyErr_Format(PyExc_TypeError, "reduce_array() takes out, x, kind, columns and scale");
    long kind = PyLong_AsLong(args[2]);
    bool columns = PyObject_IsTrue(args[3]) == 1;
    double scale = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    if (kind < 0 || kind >= NUM_KINDS) return PyErr_Format(PyExc_ValueError, "reduce_array: kind is %ld; allowed: 0, 1, 2", kind);
    Arrays a;
    int opened = arrays_open(&a, args, 2, 1);
    if (opened < 0) return NULL;
    if (!opened) Py_RETURN_FALSE;
    long outputs = a.sizes[0], elements = a.sizes[1];
    bool able = outputs > 0 && elements > 0 && elements % outputs == 0;
    able = able && reduce((int)kind, a.is_double, columns, a.data[0], a.data[1], outputs, elements / outputs, scale);
    arrays_close(&a);
    return PyBool_FromLong(able);
}

/* ---- of tensors, over any dims ---- */

typedef struct {
    int64_t size;
    bool reduced;
} Run; /* neighbouring dims that are reduced, or kept, together */

static int runs_of(const TensorObject *x, uint64_t reduced, Run *runs)
{
    int count = 0;
    for (int d = 0; d < tensor_ndim(x); d++) {
        const bool now = reduced >> d & 1;
        const int64_t size = tensor_sizes(x)[d];
        if (size == 1) continue;
        if (count && runs[count - 1].reduced == now) runs[count - 1].size *= size;
        else runs[count++] = (Run){size, now};
    }
    return count;
}

static int64_t product_of(const Run *runs, int from, int to)
{
    int64_t count = 1;
    for (int i = from; i < to; i++) count *= runs[i].size;
    return count;
}

/* Reduces one run after another, the last run first; each intermediate result lies in temporary memory. False if out of memory. */
static bool reduce_runs(int kind, bool is_double, const char *x, char *out, Run *runs, int count, double scale)
{
    const int itemsize = is_double ? 8 : 4;
    char *held = NULL;
    bool ok = true;
    int left = 0;
    for (int i = 0; i < count; i++) left += runs[i].reduced;
    if (!left) { /* only dims of size one: each element is its own result */
        const long total = (long)product_of(runs, 0, count);
        return reduce(kind, is_double, false, out, x, total, 1, scale);
    }
    for (int i = count - 1; ok && i >= 0; i--) {
        if (!runs[i].reduced) continue;
        const int64_t outer = product_of(runs, 0, i), inner = product_of(runs, i + 1, count), size = runs[i].size;
        const bool last = --left == 0;
        char *to = last ? out : PyMem_RawMalloc((size_t)(outer * inner * itemsize));
        ok = to != NULL;
        if (ok && inner == 1) ok = reduce(kind, is_double, false, to, x, (long)outer, (long)size, last ? scale : 1.0);
        else
            for (int64_t o = 0; ok && o < outer; o++)
                ok = reduce(kind, is_double, true, to + o * inner * itemsize, x + o * inner * size * itemsize, (long)inner, (long)size,
                            last ? scale : 1.0);
        PyMem_RawFree(held);
        held = last ? NULL : to;
        x = to;
        runs[i].size = 1;
    }
    PyMem_RawFree(held);
    return ok;
}

/* args: x, dims, keepdim; with `mean` each sum is divided by its number of terms. */
static bool reduce_tensor(int kind, PyObject *const *args, bool mean, Results *results)
{
    TensorObject *x = float_tensor(args[0]);
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM], terms = 1;
    const int count = x ? read_ints(args[1], dims, EAGER_MAX_NDIM) : -1;
    if (count < 1 || !tensor_count(x) || !PyBool_Check(args[2])) return false;
    uint64_t reduced = 0;
    for (int i = 0; i < count; i++) {
        if (dims[i] < 0 || dims[i] >= tensor_ndim(x)) return false;
        reduced |= 1ull << dims[i];
    }
    int ndim = 0;
    for (int d = 0; d < tensor_ndim(x); d++) {
        const bool now = reduced >> d & 1;
        if (now) terms *= tensor_sizes(x)[d];
        if (!now || args[2] == Py_True) sizes[ndim++] = now ? 1 : tensor_sizes(x)[d];
    }
    if (!(x = as_row_major(x))) return false;
    TensorObject *out = result_memory(results, code_of(x), ndim, sizes);
    Run runs[EAGER_MAX_NDIM];
    const int number = runs_of(x, reduced, runs);
    if (out && !reduce_runs(kind, code_of(x) == EAGER_FLOAT64, x->data, out->data, runs, number, mean ? 1.0 / (double)terms : 1.0)) {
        PyErr_NoMemory();
        out = NULL;
    }
    Py_DECREF(x);
    return out != NULL;
}

/* sum(x, dims, keepdim, dtype) of bools or int64, over all dims */
static bool sum_integers(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    int64_t dims[EAGER_MAX_NDIM], ones[EAGER_MAX_NDIM];
    if (!x || (code_of(x) != EAGER_BOOL && code_of(x) != EAGER_INT64) || !is_row_major(x) || args[3] != Py_None) return false;
    const int ndim = tensor_ndim(x);
    if (!ndim || read_ints(args[1], dims, EAGER_MAX_NDIM) != ndim) return false; /* dims come sorted, none twice */
    for (int d = 0; d < ndim; d++) ones[d] = 1;
    TensorObject *out = result_memory(results, EAGER_INT64, args[2] == Py_True ? ndim : 0, ones);
    if (!out) return false;
    const int64_t count = tensor_count(x);
    uint64_t total = 0; /* wraps, as numpy's does */
    if (code_of(x) == EAGER_BOOL) for (int64_t i = 0; i < count; i++) total += (uint8_t)x->data[i] != 0;
    else for (int64_t i = 0; i < count; i++) total += (uint64_t)((const int64_t *)x->data)[i];
    memcpy(out->data, &total, sizeof total);
    return out != NULL;
}

bool kernel_sum(PyObject *const *args, Results *results)
{
    if (args[3] != Py_None) return false;
    return reduce_tensor(SUM, args, false, results) || (!PyErr_Occurred() && sum_integers(args, results));
}

bool kernel_mean(PyObject *const *args, Results *results) { return args[3] == Py_None && reduce_tensor(SUM, args, true, results); }
bool kernel_amax(PyObject *const *args, Results *results) { return reduce_tensor(MAX, args, false, results); }
bool kernel_amin(PyObject *const *args, Results *results) { return reduce_tensor(MIN, args, false, results); }

PyMethodDef reduce_functions[] = {
    {"reduce_array", (PyCFunction)(void *)py_reduce_array, METH_FASTCALL, "reduce_array(out, x, kind, columns, scale) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
