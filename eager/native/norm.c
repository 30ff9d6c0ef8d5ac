/* Euclidean norms and variances of row-major floats over their last dims, squares summed in double precision: none of float32
 * overflows. */
#define PY_SSIZE_T_CLEAN
#include "kernels.h"
KERNEL_FILE
#include "direct.h"
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
static bool norm_of_all(bool is_double, Norms *job)
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
PyObject *kernel_vector_norm(PyObject *const *args)
{
    TensorObject *x = float_tensor(args[0]);
    double p;
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    const int count = x ? read_ints(args[2], dims, EAGER_MAX_NDIM) : -1;
    if (count < 1 || count > tensor_ndim(x) || !read_real(args[1], &p) || p != 2 || !PyBool_Check(args[3])) return NULL;
    const int kept = tensor_ndim(x) - count;
    for (int i = 0; i < count; i++)
        if (dims[i] != kept + i) return NULL;
    const int64_t n = count_elements(tensor_sizes(x) + kept, count), rows = count_elements(tensor_sizes(x), kept);
    if (!n || !rows || !is_row_major(x)) return NULL;
    const int ndim = args[3] == Py_True ? tensor_ndim(x) : kept;
    for (int d = 0; d < ndim; d++) sizes[d] = d < kept ? tensor_sizes(x)[d] : 1;
    TensorObject *out = new_tensor(code_of(x), ndim, sizes);
    if (!out) return NULL;
    const bool is_double = code_of(x) == EAGER_FLOAT64;
    Norms job = {out->data, x->data, (long)n, NULL};
    if (rows > 1) parallel(is_double ? rows_f64 : rows_f32, &job, (long)rows, 1 + BLOCK / n, (double)n * (double)rows);
    else if (!norm_of_all(is_double, &job)) {
        PyErr_NoMemory();
        Py_CLEAR(out);
    }
    return (PyObject *)out;
}

/* ---- var, std ---- */

typedef struct {
    void *out;
    const void *x;
    long n;
    double scale; /* what squared deviations are multiplied by: 1 / (n - correction), or infinity */
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
static PyObject *variance(PyObject *const *args, bool root)
{
    TensorObject *x = float_tensor(args[0]);
    double correction;
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    const int count = x ? read_ints(args[1], dims, EAGER_MAX_NDIM) : -1;
    if (count < 1 || count > tensor_ndim(x) || !read_real(args[2], &correction) || !PyBool_Check(args[3]) || !is_row_major(x)) return NULL;
    const int kept = tensor_ndim(x) - count;
    for (int i = 0; i < count; i++)
        if (dims[i] != kept + i) return NULL;
    const int64_t n = count_elements(tensor_sizes(x) + kept, count), rows = count_elements(tensor_sizes(x), kept);
    if (!n || !rows || (rows == 1 && n >= PARALLEL_ELEMENTS)) return NULL;
    const int ndim = args[3] == Py_True ? tensor_ndim(x) : kept;
    for (int d = 0; d < ndim; d++) sizes[d] = d < kept ? tensor_sizes(x)[d] : 1;
    TensorObject *out = new_tensor(code_of(x), ndim, sizes);
    if (!out) return NULL;
    Variances job = {out->data, x->data, (long)n, (double)n > correction ? 1 / ((double)n - correction) : (double)INFINITY, root};
    parallel(code_of(x) == EAGER_FLOAT64 ? variances_f64 : variances_f32, &job, (long)rows, 1 + BLOCK / n, (double)n * (double)rows);
    return (PyObject *)out;
}

PyObject *kernel_var(PyObject *const *args) { return variance(args, false); }
PyObject *kernel_std(PyObject *const *args) { return variance(args, true); }
