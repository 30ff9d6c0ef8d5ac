/* Softmax and layer norm over rows: one pass over each row while the row is in the nearest cache, rows spread over the threads.
 *
 * The functions over arrays take row-major arrays of one float dtype and return whether they could run; their callers in
 * eager.optable.nn use numpy otherwise. Sums run in several vectors of lanes; their totals are in double precision. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/numpy_buffers.h"
#include "kernels/kernel.h"
#include "kernels/vector_math.h"

enum { LANES = 32, STEPS = 16 };      /* several vectors of lanes, so that no addition waits for the one before */
enum { COLUMNS = 256, ROWS = 32 };    /* of a tile of a sum over rows */

typedef struct {
    void *out, *second, *third;
    const void *a, *b, *c, *d, *e;
    long n, rows;
    double eps;
} Job;

/* The sum of `expression` over at < count, as a double. A lane adds STEPS numbers, then they go to its total. */
#define SUM_OF(T, acc, count, expression)                                                                   \
    double acc = 0;                                                                                         \
    {                                                                                                       \
        long i = 0;                                                                                         \
        if ((count) >= LANES) {                                                                             \
            double totals[LANES] = {0};                                                                     \
            while (i + LANES <= (count)) {                                                                  \
                const long left = (count) - i, end = i + (left < LANES * STEPS ? left / LANES * LANES : LANES * STEPS); \
                T lanes[LANES] = {0};                                                                       \
                for (; i < end; i += LANES)                                                                 \
                    for (int l = 0; l < LANES; l++) { const long at = i + l; lanes[l] += (expression); }    \
                for (int l = 0; l < LANES; l++) totals[l] += (double)lanes[l];                              \
            }                                                                                               \
            for (int l = 0; l < LANES; l++) acc += totals[l];                                               \
        }                                                                                                   \
        for (long at = i; at < (count); at++) acc += (double)(expression);                                  \
    }

#define ROW_KERNELS(S, T)                                                                                   \
    VM_INLINE T row_max_##S(const T *x, long n)                                                             \
    {                                                                                                       \
        T top = x[0];                                                                                       \
        long i = 0;                                                                                         \
        if (n >= LANES) {                                                                                   \
            T lanes[LANES];                                                                                 \
            for (int l = 0; l < LANES; l++) lanes[l] = x[l];                                                \
            for (i = LANES; i + LANES <= n; i += LANES)                                                     \
                for (int l = 0; l < LANES; l++) lanes[l] = maximum_##S(lanes[l], x[i + l]);                 \
            for (int l = 0; l < LANES; l++) top = maximum_##S(top, lanes[l]);                               \
        }                                                                                                   \
        for (; i < n; i++) top = maximum_##S(top, x[i]);                                                    \
        return top;                                                                                         \
    }                                                                                                       \
    CLONES static void softmax_##S(void *context, long begin, long end)                                     \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->a + r * n;                                                         \
            T *restrict out = (T *)job->out + r * n;                                                        \
            const T top = row_max_##S(x, n);                                                                \
            for (long i = 0; i < n; i++) out[i] = exp_##S(x[i] - top);                                      \
            SUM_OF(T, total, n, out[at])                                                                    \
            const T share = (T)(1 / total);                                                                 \
            for (long i = 0; i < n; i++) out[i] *= share;                                                   \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void log_softmax_##S(void *context, long begin, long end)                                 \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->a + r * n;                                                         \
            T *restrict out = (T *)job->out + r * n;                                                        \
            const T top = row_max_##S(x, n);                                                                \
            SUM_OF(T, total, n, exp_##S(x[at] - top))                                                       \
            const T shift = log_##S((T)total);                                                               \
            for (long i = 0; i < n; i++) out[i] = x[i] - top - shift;                                       \
        }                                                                                                   \
    }                                                                                                       \
    /* a: cotangent, b: softmax */                                                                          \
    CLONES static void softmax_backward_##S(void *context, long begin, long end)                            \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *g = (const T *)job->a + r * n, *y = (const T *)job->b + r * n;                         \
            T *restrict out = (T *)job->out + r * n;                                                        \
            SUM_OF(T, dot, n, g[at] * y[at])                                                                \
            for (long i = 0; i < n; i++) out[i] = y[i] * (g[i] - (T)dot);                                   \
        }                                                                                                   \
    }                                                                                                       \
    /* a: cotangent, b: log_softmax */                                                                      \
    CLONES static void log_softmax_backward_##S(void *context, long begin, long end)                        \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *g = (const T *)job->a + r * n, *y = (const T *)job->b + r * n;                         \
            T *restrict out = (T *)job->out + r * n;                                                        \
            SUM_OF(T, total, n, g[at])                                                                      \
            for (long i = 0; i < n; i++) out[i] = g[i] - exp_##S(y[i]) * (T)total;                          \
        }                                                                                                   \
    }                                                                                                       \
    /* a: x, b: weight, c: bias; second: means, third: reciprocal deviations */                             \
    CLONES static void layer_norm_##S(void *context, long begin, long end)                                  \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        const T *w = job->b, *b = job->c;                                                                   \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->a + r * n;                                                         \
            T *restrict out = (T *)job->out + r * n;                                                        \
            SUM_OF(T, total, n, x[at])                                                                      \
            const T mean = (T)(total / (double)n);                                                          \
            SUM_OF(T, squares, n, (x[at] - mean) * (x[at] - mean))                                          \
            const T rstd = (T)(1 / sqrt(squares / (double)n + job->eps));                                     \
            ((T *)job->second)[r] = mean;                                                                   \
            ((T *)job->third)[r] = rstd;                                                                    \
            if (w && b) for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];           \
            else if (w) for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];                  \
            else if (b) for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];                  \
            else for (long i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;                                \
        }                                                                                                   \
    }                                                                                                       \
    /* a: cotangent, b: x, c: means, d: reciprocal deviations, e: weight */                                 \
    CLONES static void layer_norm_backward_##S(void *context, long begin, long end)                         \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        const T *w = job->e;                                                                                \
        for (long r = begin; r < end; r++) {                                                                \
            const T *g = (const T *)job->a + r * n, *x = (const T *)job->b + r * n;                         \
            const T mean = ((const T *)job->c)[r], rstd = ((const T *)job->d)[r];                           \
            T *restrict out = (T *)job->out + r * n;                                                        \
            if (w) for (long i = 0; i < n; i++) out[i] = g[i] * w[i];                                       \
            else for (long i = 0; i < n; i++) out[i] = g[i];                                                \
            SUM_OF(T, total, n, out[at])                                                                    \
            SUM_OF(T, projection, n, out[at] * ((x[at] - mean) * rstd))                                     \
            const T p = (T)(projection / (double)n), m = (T)(total / (double)n);                               \
            for (long i = 0; i < n; i++) out[i] = rstd * (out[i] - m - (x[i] - mean) * rstd * p);           \
        }                                                                                                   \
    }                                                                                                       \
    /* Columns [begin, end) of the sum over rows of g * normalised x; a to d as above. */                   \
    CLONES static void layer_norm_backward_weight_##S(void *context, long begin, long end)                  \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long from = begin; from < end; from += COLUMNS) {                                              \
            const long width = end - from < COLUMNS ? end - from : COLUMNS;                                 \
            double totals[COLUMNS] = {0};                                                                   \
            for (long first = 0; first < job->rows; first += ROWS) {                                       \
                const long last = first + ROWS < job->rows ? first + ROWS : job->rows;                    \
                T part[COLUMNS] = {0};                                                                      \
                for (long r = first; r < last; r++) {                                                       \
                    const T *restrict g = (const T *)job->a + r * n + from, *restrict x = (const T *)job->b + r * n + from; \
                    const T mean = ((const T *)job->c)[r], rstd = ((const T *)job->d)[r];                   \
                    for (long i = 0; i < width; i++) part[i] += g[i] * ((x[i] - mean) * rstd);              \
                }                                                                                           \
                for (long i = 0; i < width; i++) totals[i] += (double)part[i];                              \
            }                                                                                               \
            for (long i = 0; i < width; i++) ((T *)job->out)[from + i] = (T)totals[i];                      \
        }                                                                                                   \
    }
ROW_KERNELS(f32, float)
ROW_KERNELS(f64, double)

/* Runs a kernel over rows; `n` is the length of one. */
static void run_rows(LoopFn loop, Job *job)
{
    long grain = 1 + 8192 / (job->n ? job->n : 1);
    parallel(loop, job, job->rows, grain, 4.0 * (double)job->rows * (double)job->n);
}

static PyObject *finish_arrays(Arrays *a, LoopFn single, LoopFn wide, Job *job)
{
    run_rows(a->is_double ? wide : single, job);
    arrays_close(a);
    Py_RETURN_TRUE;
}

static PyObject *refuse(Arrays *a)
{
    arrays_close(a);
    Py_RETURN_FALSE;
}

#define OPEN(who, wanted, written)                                                                          \
    Arrays a;                                                                                               \
    if (nargs < (wanted)) return PyErr_Format(PyExc_TypeError, who "() takes at least %d arguments", wanted); \
    int opened = arrays_open(&a, args, wanted, written);                                                    \
    if (opened < 0) return NULL;                                                                            \
    if (!opened) Py_RETURN_FALSE;

static long last_size(const Arrays *a, int i)
{
    return a->views[i].ndim ? (long)a->views[i].shape[a->views[i].ndim - 1] : 1;
}

/* softmax(out, x, log): along the last dim */
static PyObject *py_softmax(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    OPEN("softmax", 2, 1)
    Job job = {.out = a.data[0], .a = a.data[1], .n = last_size(&a, 1)};
    if (nargs != 3 || !a.sizes[1] || a.sizes[0] != a.sizes[1]) return refuse(&a);
    job.rows = a.sizes[1] / job.n;
    bool log = PyObject_IsTrue(args[2]) == 1;
    return finish_arrays(&a, log ? log_softmax_f32 : softmax_f32, log ? log_softmax_f64 : softmax_f64, &job);
}

/* softmax_backward(out, g, y, log): along the last dim */
static PyObject *py_softmax_backward(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    OPEN("softmax_backward", 3, 1)
    Job job = {.out = a.data[0], .a = a.data[1], .b = a.data[2], .n = last_size(&a, 2)};
    if (nargs != 4 || !a.sizes[2] || a.sizes[0] != a.sizes[2] || a.sizes[1] != a.sizes[2]) return refuse(&a);
    job.rows = a.sizes[2] / job.n;
    bool log = PyObject_IsTrue(args[3]) == 1;
    return finish_arrays(&a, log ? log_softmax_backward_f32 : softmax_backward_f32,
                     log ? log_softmax_backward_f64 : softmax_backward_f64, &job);
}

/* layer_norm(out, mean, rstd, x, weight, bias, eps): rows of as many elements as out has for each of mean */
static PyObject *py_layer_norm(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    OPEN("layer_norm", 6, 3)
    long rows = a.sizes[1];
    if (nargs != 7 || !rows || !a.sizes[0] || a.sizes[2] != rows || a.sizes[3] != a.sizes[0]) return refuse(&a);
    Job job = {.out = a.data[0], .second = a.data[1], .third = a.data[2], .a = a.data[3], .b = a.data[4], .c = a.data[5],
               .n = a.sizes[0] / rows, .rows = rows, .eps = PyFloat_AsDouble(args[6])};
    if (PyErr_Occurred()) {
        arrays_close(&a);
        return NULL;
    }
    if ((job.b && a.sizes[4] != job.n) || (job.c && a.sizes[5] != job.n)) return refuse(&a);
    return finish_arrays(&a, layer_norm_f32, layer_norm_f64, &job);
}

/* layer_norm_backward(out, g, x, mean, rstd, weight) */
static PyObject *py_layer_norm_backward(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    OPEN("layer_norm_backward", 6, 1)
    long rows = a.sizes[3];
    if (!rows || !a.sizes[0] || a.sizes[4] != rows || a.sizes[1] != a.sizes[0] || a.sizes[2] != a.sizes[0]) return refuse(&a);
    Job job = {.out = a.data[0], .a = a.data[1], .b = a.data[2], .c = a.data[3], .d = a.data[4], .e = a.data[5],
               .n = a.sizes[0] / rows, .rows = rows};
    if (job.e && a.sizes[5] != job.n) return refuse(&a);
    return finish_arrays(&a, layer_norm_backward_f32, layer_norm_backward_f64, &job);
}

/* layer_norm_backward_weight(out, g, x, mean, rstd) */
static PyObject *py_layer_norm_backward_weight(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    OPEN("layer_norm_backward_weight", 5, 1)
    long rows = a.sizes[3], n = a.sizes[0];
    if (!rows || !n || a.sizes[4] != rows || a.sizes[1] != rows * n || a.sizes[2] != rows * n) return refuse(&a);
    Job job = {.out = a.data[0], .a = a.data[1], .b = a.data[2], .c = a.data[3], .d = a.data[4], .n = n, .rows = rows};
    parallel(a.is_double ? layer_norm_backward_weight_f64 : layer_norm_backward_weight_f32, &job, n, 64, (double)rows * (double)n);
    arrays_close(&a);
    Py_RETURN_TRUE;
}

/* ---- of tensors ---- */

/* Whether `dim` is the last of a tensor that has elements. */
static bool is_last_dim(const TensorObject *x, PyObject *dim)
{
    int64_t d;
    return read_int(dim, &d) && tensor_ndim(x) && (d == -1 || d == tensor_ndim(x) - 1) && tensor_count(x);
}

static bool map_rows(PyObject *const *args, LoopFn single, LoopFn wide, Results *results)
{
    TensorObject *x = float_tensor(args[0]);
    if (!x || !is_last_dim(x, args[1]) || !(x = as_row_major(x))) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        Job job = {.out = out->data, .a = x->data, .n = (long)tensor_sizes(x)[tensor_ndim(x) - 1]};
        job.rows = (long)tensor_count(x) / job.n;
        run_rows(code_of(x) == EAGER_FLOAT64 ? wide : single, &job);
    }
    Py_DECREF(x);
    return out != NULL;
}

static bool map_row_pairs(PyObject *const *args, LoopFn single, LoopFn wide, Results *results)
{
    TensorObject *g = float_tensor(args[0]), *y = float_tensor(args[1]);
    if (!g || !y || code_of(g) != code_of(y) || !same_sizes(g, tensor_sizes(y), tensor_ndim(y)) || !is_last_dim(y, args[2])) return false;
    g = as_row_major(g);
    y = as_row_major(y);
    TensorObject *out = g && y ? result_memory(results, code_of(y), tensor_ndim(y), tensor_sizes(y)) : NULL;
    if (out) {
        Job job = {.out = out->data, .a = g->data, .b = y->data, .n = (long)tensor_sizes(y)[tensor_ndim(y) - 1]};
        job.rows = (long)tensor_count(y) / job.n;
        run_rows(code_of(y) == EAGER_FLOAT64 ? wide : single, &job);
    }
    Py_XDECREF(g);
    Py_XDECREF(y);
    return out != NULL;
}

bool kernel_softmax(PyObject *const *args, Results *results) { return map_rows(args, softmax_f32, softmax_f64, results); }
bool kernel_log_softmax(PyObject *const *args, Results *results) { return map_rows(args, log_softmax_f32, log_softmax_f64, results); }
bool kernel_softmax_backward(PyObject *const *args, Results *results) { return map_row_pairs(args, softmax_backward_f32, softmax_backward_f64, results); }
bool kernel_log_softmax_backward(PyObject *const *args, Results *results)
{
    return map_row_pairs(args, log_softmax_backward_f32, log_softmax_backward_f64, results);
}

/* Whether the last `count` sizes of x are `sizes`, and the number of elements in a row of them. */
static bool match_trailing(const TensorObject *x, const int64_t *sizes, int count, long *n)
{
    if (count < 1 || count > tensor_ndim(x) || !tensor_count(x)) return false;
    if (memcmp(tensor_sizes(x) + tensor_ndim(x) - count, sizes, sizeof(int64_t) * (size_t)count)) return false;
    *n = (long)count_elements(sizes, count);
    return true;
}

/* A weight or bias of `count` dims: absent, or row-major of these sizes. */
static bool read_affine(PyObject *o, int code, const int64_t *sizes, int count, TensorObject **t)
{
    return optional_float(o, code, t) && (!*t || (same_sizes(*t, sizes, count) && is_row_major(*t)));
}

/* native_layer_norm(x, normalized_shape, weight, bias, eps): y, mean, 1 / std */
bool kernel_layer_norm(PyObject *const *args, Results *results)
{
    TensorObject *x = float_tensor(args[0]), *weight, *bias;
    int64_t sizes[EAGER_MAX_NDIM], stat[EAGER_MAX_NDIM];
    Job job = {.out = NULL};
    const int count = x ? read_ints(args[1], sizes, EAGER_MAX_NDIM) : -1;
    if (count < 0 || !match_trailing(x, sizes, count, &job.n) || !read_real(args[4], &job.eps)) return false;
    const int code = code_of(x), ndim = tensor_ndim(x);
    if (!read_affine(args[2], code, sizes, count, &weight) || !read_affine(args[3], code, sizes, count, &bias) || !(x = as_row_major(x))) return false;
    for (int d = 0; d < ndim; d++) stat[d] = d < ndim - count ? tensor_sizes(x)[d] : 1;
    TensorObject *y = result_memory(results, code, ndim, tensor_sizes(x)), *mean = y ? result_memory(results, code, ndim, stat) : NULL;
    TensorObject *rstd = mean ? result_memory(results, code, ndim, stat) : NULL;
    if (rstd) {
        job.out = y->data;
        job.second = mean->data;
        job.third = rstd->data;
        job.a = x->data;
        job.b = weight ? weight->data : NULL;
        job.c = bias ? bias->data : NULL;
        job.rows = (long)tensor_count(x) / job.n;
        run_rows(code == EAGER_FLOAT64 ? layer_norm_f64 : layer_norm_f32, &job);
    }
    Py_DECREF(x);
    return rstd != NULL;
}

/* Reads the arguments that both backward kernels share: g, x, mean, 1 / std at args[0..3], over the last `count` dims. g and x are
 * returned row-major, as new references. */
static bool read_backward(PyObject *const *args, PyObject *number, Job *job, TensorObject **g, TensorObject **x, int *count)
{
    int64_t n;
    TensorObject *mean = float_tensor(args[2]), *rstd = float_tensor(args[3]);
    *g = float_tensor(args[0]);
    *x = float_tensor(args[1]);
    if (!*g || !*x || !mean || !rstd || !read_int(number, &n) || n < 1 || n > tensor_ndim(*x)) return false;
    *count = (int)n;
    const int code = code_of(*x);
    if (code_of(*g) != code || code_of(mean) != code || code_of(rstd) != code || !tensor_count(*x)) return false;
    if (!same_sizes(*g, tensor_sizes(*x), tensor_ndim(*x)) || !is_row_major(mean) || !is_row_major(rstd)) return false;
    job->n = (long)count_elements(tensor_sizes(*x) + tensor_ndim(*x) - n, (int)n);
    job->rows = (long)tensor_count(*x) / job->n;
    if (tensor_count(mean) != job->rows || tensor_count(rstd) != job->rows) return false;
    job->c = mean->data;
    job->d = rstd->data;
    *g = as_row_major(*g);
    *x = as_row_major(*x);
    if (*g && *x) {
        job->a = (*g)->data;
        job->b = (*x)->data;
        return true;
    }
    Py_XDECREF(*g);
    Py_XDECREF(*x);
    return false;
}

/* layer_norm_backward(g, x, mean, rstd, weight, count) */
bool kernel_layer_norm_backward(PyObject *const *args, Results *results)
{
    TensorObject *g, *x, *weight;
    Job job = {.out = NULL};
    int count;
    if (!read_backward(args, args[5], &job, &g, &x, &count)) return false;
    const bool able = read_affine(args[4], code_of(x), tensor_sizes(x) + tensor_ndim(x) - count, count, &weight);
    TensorObject *out = able ? result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x)) : NULL;
    if (out) {
        job.out = out->data;
        job.e = weight ? weight->data : NULL;
        run_rows(code_of(x) == EAGER_FLOAT64 ? layer_norm_backward_f64 : layer_norm_backward_f32, &job);
    }
    Py_DECREF(g);
    Py_DECREF(x);
    return out != NULL;
}

/* layer_norm_backward_weight(g, x, mean, rstd, count) */
bool kernel_layer_norm_backward_weight(PyObject *const *args, Results *results)
{
    TensorObject *g, *x;
    Job job = {.out = NULL};
    int count;
    if (!read_backward(args, args[4], &job, &g, &x, &count)) return false;
    TensorObject *out = result_memory(results, code_of(x), count, tensor_sizes(x) + tensor_ndim(x) - count);
    if (out) {
        job.out = out->data;
        parallel(code_of(x) == EAGER_FLOAT64 ? layer_norm_backward_weight_f64 : layer_norm_backward_weight_f32, &job, job.n, 64,
                 (double)job.rows * (double)job.n);
    }
    Py_DECREF(g);
    Py_DECREF(x);
    return out != NULL;
}

PyMethodDef softmax_layer_norm_functions[] = {
    {"softmax", (PyCFunction)(void *)py_softmax, METH_FASTCALL, "softmax(out, x, log) -> whether it could run"},
    {"softmax_backward", (PyCFunction)(void *)py_softmax_backward, METH_FASTCALL, "softmax_backward(out, g, y, log) -> whether it could run"},
    {"layer_norm", (PyCFunction)(void *)py_layer_norm, METH_FASTCALL, "layer_norm(out, mean, rstd, x, weight, bias, eps) -> whether it could run"},
    {"layer_norm_backward", (PyCFunction)(void *)py_layer_norm_backward, METH_FASTCALL, "layer_norm_backward(out, g, x, mean, rstd, weight) -> whether it could run"},
    {"layer_norm_backward_weight", (PyCFunction)(void *)py_layer_norm_backward_weight, METH_FASTCALL, "layer_norm_backward_weight(out, g, x, mean, rstd) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
