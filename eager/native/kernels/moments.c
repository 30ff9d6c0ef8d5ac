/* Euclidean norms, variances and channel moments of row-major floats. Squares are summed in double precision: float32 never
 * overflows. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/numpy_buffers.h"
#include "kernels/kernel.h"
#include <math.h>

enum { LANES = 16, BLOCK = 8192 };

typedef struct {
    void *out;
    const void *x;
    long n;
    double *parts; /* one long row in blocks: the sum of each */
} Norms;

#define SQUARES(S, T)                                                                                       \
    CLONES static double squares_##S(const T *x, long n)                                                    \
    {                                                                                                       \
        double lanes[LANES] = {0}, total = 0;                                                               \
        long i = 0;                                                                                         \
        for (; i + LANES <= n; i += LANES)                                                                  \
            for (int l = 0; l < LANES; l++) lanes[l] += (double)x[i + l] * (double)x[i + l];                \
        for (; i < n; i++) total += (double)x[i] * (double)x[i];                                            \
        for (int l = 0; l < LANES; l++) total += lanes[l];                                                  \
        return total;                                                                                       \
    }                                                                                                       \
    static void rows_##S(void *context, long begin, long end)                                               \
    {                                                                                                       \
        const Norms *job = context;                                                                         \
        for (long r = begin; r < end; r++)                                                                  \
            ((T *)job->out)[r] = (T)sqrt(squares_##S((const T *)job->x + r * job->n, job->n));              \
    }                                                                                                       \
    static void blocks_##S(void *context, long begin, long end)                                             \
    {                                                                                                       \
        const Norms *job = context;                                                                         \
        for (long b = begin; b < end; b++) {                                                                \
            const long left = job->n - b * BLOCK;                                                           \
            job->parts[b] = squares_##S((const T *)job->x + b * BLOCK, left < BLOCK ? left : BLOCK);        \
        }                                                                                                   \
    }
SQUARES(f32, float)
SQUARES(f64, double)

/* The norm of one row, its blocks over the threads, added in their order. False if out of memory. */
static bool norm_of_one_row(bool is_double, Norms *job)
{
    const long blocks = (job->n + BLOCK - 1) / BLOCK;
    job->parts = PyMem_RawMalloc((size_t)blocks * sizeof(double));
    if (!job->parts) return false;
    parallel(is_double ? blocks_f64 : blocks_f32, job, blocks, 2, (double)job->n);
    double total = 0;
    for (long b = 0; b < blocks; b++) total += job->parts[b];
    PyMem_RawFree(job->parts);
    if (is_double) *(double *)job->out = sqrt(total);
    else *(float *)job->out = (float)sqrt(total);
    return true;
}

/* vector_norm(x, p, dims, keepdim), where p is 2 and dims are the last ones of a row-major x, in their order */
bool kernel_vector_norm(PyObject *const *args, Results *results)
{
    TensorObject *x = float_tensor(args[0]);
    double p;
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    const int count = x ? read_ints(args[2], dims, EAGER_MAX_NDIM) : -1;
    if (count < 1 || count > tensor_ndim(x) || !read_real(args[1], &p) || p != 2 || !PyBool_Check(args[3])) return false;
    const int kept = tensor_ndim(x) - count;
    for (int i = 0; i < count; i++)
        if (dims[i] != kept + i) return false;
    const int64_t n = count_elements(tensor_sizes(x) + kept, count), rows = count_elements(tensor_sizes(x), kept);
    if (!n || !rows || !is_row_major(x)) return false;
    const int ndim = args[3] == Py_True ? tensor_ndim(x) : kept;
    for (int d = 0; d < ndim; d++) sizes[d] = d < kept ? tensor_sizes(x)[d] : 1;
    TensorObject *out = result_memory(results, code_of(x), ndim, sizes);
    if (!out) return false;
    const bool is_double = code_of(x) == EAGER_FLOAT64;
    Norms job = {out->data, x->data, (long)n, NULL};
    if (rows > 1) parallel(is_double ? rows_f64 : rows_f32, &job, (long)rows, 1 + BLOCK / n, (double)n * (double)rows);
    else if (!norm_of_one_row(is_double, &job)) {
        PyErr_NoMemory();
        out = NULL;
    }
    return out != NULL;
}

/* ---- var, std ---- */

typedef struct {
    void *out;
    const void *x;
    long n;
    double scale; /* factor of the sum of squared deviations: 1 / (n - correction), or infinity */
    bool root;
} Variances;

/* In two passes, in double precision. */
#define VARIANCES(S, T)                                                                                     \
    CLONES static void variances_##S(void *context, long begin, long end)                                   \
    {                                                                                                       \
        const Variances *job = context;                                                                     \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->x + r * job->n;                                                    \
            double lanes[LANES] = {0}, mean = 0, total = 0;                                                 \
            long i = 0;                                                                                     \
            for (; i + LANES <= job->n; i += LANES)                                                         \
                for (int l = 0; l < LANES; l++) lanes[l] += (double)x[i + l];                               \
            for (; i < job->n; i++) mean += (double)x[i];                                                   \
            for (int l = 0; l < LANES; l++) {                                                               \
                mean += lanes[l];                                                                           \
                lanes[l] = 0;                                                                               \
            }                                                                                               \
            mean /= (double)job->n;                                                                         \
            for (i = 0; i + LANES <= job->n; i += LANES)                                                    \
                for (int l = 0; l < LANES; l++) lanes[l] += ((double)x[i + l] - mean) * ((double)x[i + l] - mean); \
            for (; i < job->n; i++) total += ((double)x[i] - mean) * ((double)x[i] - mean);                 \
            for (int l = 0; l < LANES; l++) total += lanes[l];                                              \
            total *= job->scale;                                                                            \
            ((T *)job->out)[r] = (T)(job->root ? sqrt(total) : total);                                      \
        }                                                                                                   \
    }
VARIANCES(f32, float)
VARIANCES(f64, double)

/* Over the last dims of a row-major x, in their order; one long row is left to others, which spread it over threads. */
static bool variance(PyObject *const *args, bool root, Results *results)
{
    TensorObject *x = float_tensor(args[0]);
    double correction;
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    const int count = x ? read_ints(args[1], dims, EAGER_MAX_NDIM) : -1;
    if (count < 1 || count > tensor_ndim(x) || !read_real(args[2], &correction) || !PyBool_Check(args[3]) || !is_row_major(x)) return false;
    const int kept = tensor_ndim(x) - count;
    for (int i = 0; i < count; i++)
        if (dims[i] != kept + i) return false;
    const int64_t n = count_elements(tensor_sizes(x) + kept, count), rows = count_elements(tensor_sizes(x), kept);
    if (!n || !rows || (rows == 1 && n >= PARALLEL_ELEMENTS)) return false;
    const int ndim = args[3] == Py_True ? tensor_ndim(x) : kept;
    for (int d = 0; d < ndim; d++) sizes[d] = d < kept ? tensor_sizes(x)[d] : 1;
    TensorObject *out = result_memory(results, code_of(x), ndim, sizes);
    if (!out) return false;
    Variances job = {out->data, x->data, (long)n, (double)n > correction ? 1 / ((double)n - correction) : (double)INFINITY, root};
    parallel(code_of(x) == EAGER_FLOAT64 ? variances_f64 : variances_f32, &job, (long)rows, 1 + BLOCK / n, (double)n * (double)rows);
    return out != NULL;
}

bool kernel_var(PyObject *const *args, Results *results) { return variance(args, false, results); }
bool kernel_std(PyObject *const *args, Results *results) { return variance(args, true, results); }

/* ---- moments of channels ---- */

typedef struct {
    void *mean, *var;
    const void *x;
    long outer, channels, inner;
} Moments;

enum { COLUMNS = 128 };

/* x is (outer, channels, inner): mean and variance of each channel, in two passes, in double precision. */
#define MOMENTS(S, T)                                                                                       \
    CLONES static void channel_moments_##S(void *context, long begin, long end)                             \
    {                                                                                                       \
        const Moments *job = context;                                                                       \
        const double count = (double)job->outer * (double)job->inner;                                       \
        for (long c = begin; c < end; c++) {                                                                \
            double center = 0, total = 0;                                                                   \
            for (int pass = 0; pass < 2; pass++) {                                                          \
                double lanes[LANES] = {0}, rest = 0;                                                        \
                for (long o = 0; o < job->outer; o++) {                                                     \
                    const T *x = (const T *)job->x + (o * job->channels + c) * job->inner;                  \
                    long i = 0;                                                                             \
                    if (!pass) {                                                                            \
                        for (; i + LANES <= job->inner; i += LANES)                                         \
                            for (int l = 0; l < LANES; l++) lanes[l] += (double)x[i + l];                   \
                        for (; i < job->inner; i++) rest += (double)x[i];                                   \
                    }                                                                                       \
                    else {                                                                                  \
                        for (; i + LANES <= job->inner; i += LANES)                                         \
                            for (int l = 0; l < LANES; l++) lanes[l] += ((double)x[i + l] - center) * ((double)x[i + l] - center); \
                        for (; i < job->inner; i++) rest += ((double)x[i] - center) * ((double)x[i] - center); \
                    }                                                                                       \
                }                                                                                           \
                for (int l = 0; l < LANES; l++) rest += lanes[l];                                           \
                if (!pass) center = rest / count;                                                           \
                else total = rest / count;                                                                  \
            }                                                                                               \
            ((T *)job->mean)[c] = (T)center;                                                                \
            ((T *)job->var)[c] = (T)total;                                                                  \
        }                                                                                                   \
    }                                                                                                       \
    /* The same for inner == 1: COLUMNS channels at once, so that rows are read in order. */                \
    CLONES static void column_moments_##S(void *context, long begin, long end)                              \
    {                                                                                                       \
        const Moments *job = context;                                                                       \
        for (long at = begin; at < end; at += COLUMNS) {                                                    \
            const long width = end - at < COLUMNS ? end - at : COLUMNS;                                     \
            double center[COLUMNS] = {0}, total[COLUMNS] = {0};                                             \
            for (long o = 0; o < job->outer; o++) {                                                         \
                const T *restrict x = (const T *)job->x + o * job->channels + at;                           \
                for (long c = 0; c < width; c++) center[c] += (double)x[c];                                 \
            }                                                                                               \
            for (long c = 0; c < width; c++) center[c] /= (double)job->outer;                               \
            for (long o = 0; o < job->outer; o++) {                                                         \
                const T *restrict x = (const T *)job->x + o * job->channels + at;                           \
                for (long c = 0; c < width; c++) total[c] += ((double)x[c] - center[c]) * ((double)x[c] - center[c]); \
            }                                                                                               \
            for (long c = 0; c < width; c++) {                                                              \
                ((T *)job->mean)[at + c] = (T)center[c];                                                    \
                ((T *)job->var)[at + c] = (T)(total[c] / (double)job->outer);                               \
            }                                                                                               \
        }                                                                                                   \
    }
MOMENTS(f32, float)
MOMENTS(f64, double)

/* channel_moments(mean, var, x, outer, inner): of each channel of x as (outer, mean.size, inner). False for arrays it cannot work on. */
static PyObject *py_channel_moments(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5) return PyErr_Format(PyExc_TypeError, "channel_moments() takes mean, var, x, outer and inner");
    const long outer = PyLong_AsLong(args[3]), inner = PyLong_AsLong(args[4]);
    if (PyErr_Occurred()) return NULL;
    Arrays a;
    const int opened = arrays_open(&a, args, 3, 2);
    if (opened < 0) return NULL;
    if (!opened) Py_RETURN_FALSE;
    const long channels = a.sizes[0];
    const bool able = channels > 0 && outer > 0 && inner > 0 && a.sizes[1] == channels && a.sizes[2] == outer * channels * inner;
    if (able) {
        Moments job = {a.data[0], a.data[1], a.data[2], outer, channels, inner};
        const double work = 2.0 * (double)a.sizes[2];
        if (inner == 1) parallel(a.is_double ? column_moments_f64 : column_moments_f32, &job, channels, 32, work);
        else parallel(a.is_double ? channel_moments_f64 : channel_moments_f32, &job, channels, 1 + BLOCK / (outer * inner), work);
    }
    arrays_close(&a);
    return PyBool_FromLong(able);
}

PyMethodDef moments_functions[] = {
    {"channel_moments", (PyCFunction)(void *)py_channel_moments, METH_FASTCALL, "channel_moments(mean, var, x, outer, inner) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
