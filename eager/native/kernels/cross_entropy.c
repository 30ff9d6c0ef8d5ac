/* Cross entropy of rows of scores against class indices, and its gradient: one pass over a row while it is in the cache. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include "kernels/vector_math.h"

enum { LANES = 16 };

typedef struct {
    const void *x, *weight, *g;
    const int64_t *target;
    void *out, *lse;
    long rows, n;
    int64_t ignored;
} Job;

#define LOSSES(S, T)                                                                                        \
    CLONES static void forward_##S(void *context, long begin, long end)                                     \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)job->x + r * n;                                                         \
            const int64_t t = job->target[r];                                                               \
            T top = x[0], total = 0, lanes[LANES];                                                          \
            long j = 0;                                                                                     \
            for (int l = 0; l < LANES; l++) lanes[l] = top;                                                 \
            for (; j + LANES <= n; j += LANES)                                                              \
                for (int l = 0; l < LANES; l++) lanes[l] = maximum_##S(lanes[l], x[j + l]);                 \
            for (int l = 0; l < LANES; l++) top = maximum_##S(top, lanes[l]);                               \
            for (; j < n; j++) top = maximum_##S(top, x[j]);                                                \
            for (int l = 0; l < LANES; l++) lanes[l] = 0;                                                   \
            for (j = 0; j + LANES <= n; j += LANES)                                                         \
                for (int l = 0; l < LANES; l++) lanes[l] += exp_##S(x[j + l] - top);                        \
            for (int l = 0; l < LANES; l++) total += lanes[l];                                              \
            for (; j < n; j++) total += exp_##S(x[j] - top);                                                \
            const T log_total = log_##S(total);                                                             \
            ((T *)job->lse)[r] = log_total + top;                                                           \
            T loss = 0;                                                                                     \
            if (t != job->ignored) loss = (log_total - (x[t] - top)) * (job->weight ? ((const T *)job->weight)[t] : 1); \
            ((T *)job->out)[r] = loss;                                                                      \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void backward_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const long n = job->n;                                                                              \
        for (long r = begin; r < end; r++) {                                                                \
            const T *restrict x = (const T *)job->x + r * n;                                                \
            T *restrict out = (T *)job->out + r * n;                                                        \
            const int64_t t = job->target[r];                                                               \
            if (t == job->ignored) {                                                                        \
                for (long j = 0; j < n; j++) out[j] = 0;                                                    \
                continue;                                                                                   \
            }                                                                                               \
            const T lse = ((const T *)job->lse)[r];                                                         \
            const T scale = ((const T *)job->g)[r] * (job->weight ? ((const T *)job->weight)[t] : 1);       \
            for (long j = 0; j < n; j++) out[j] = exp_##S(x[j] - lse) * scale;                              \
            out[t] = (exp_##S(x[t] - lse) - 1) * scale;                                                     \
        }                                                                                                   \
    }
LOSSES(f32, float)
LOSSES(f64, double)

/* Scores (rows, n), none empty, and int64 targets that are classes or ignored; a weight of n or None. x comes back
 * row-major, as a new reference. */
static bool read_rows(Job *job, TensorObject **x, PyObject *scores, PyObject *target, PyObject *weight, PyObject *ignored)
{
    TensorObject *w, *t = cpu_tensor(target);
    *x = float_tensor(scores);
    if (!*x || tensor_ndim(*x) != 2 || !tensor_count(*x) || !t || code_of(t) != EAGER_INT64 || tensor_ndim(t) != 1 || !is_row_major(t)) return false;
    job->rows = (long)tensor_sizes(*x)[0];
    job->n = (long)tensor_sizes(*x)[1];
    if (tensor_sizes(t)[0] != job->rows || !read_int(ignored, &job->ignored) || !optional_float(weight, code_of(*x), &w)) return false;
    if (w && (tensor_ndim(w) != 1 || tensor_sizes(w)[0] != job->n || !is_row_major(w))) return false;
    job->target = (const int64_t *)t->data;
    for (long r = 0; r < job->rows; r++)
        if (job->target[r] != job->ignored && (job->target[r] < 0 || job->target[r] >= job->n)) return false;
    job->weight = w ? w->data : NULL;
    if (!(*x = as_row_major(*x))) return false;
    job->x = (*x)->data;
    return true;
}

static void run(LoopFn loop, Job *job) { parallel(loop, job, job->rows, 1 + 8192 / job->n, 4.0 * (double)job->rows * (double)job->n); }

/* cross_entropy(x, target, weight, ignore_index): losses and log normalisers by row */
bool kernel_cross_entropy(PyObject *const *args, Results *results)
{
    Job job = {.rows = 0};
    TensorObject *x;
    if (!read_rows(&job, &x, args[0], args[1], args[2], args[3])) return false;
    const int code = code_of(x);
    const int64_t sizes[2] = {job.rows, 1};
    TensorObject *losses = result_memory(results, code, 1, sizes), *lse = losses ? result_memory(results, code, 2, sizes) : NULL;
    if (lse) {
        job.out = losses->data;
        job.lse = lse->data;
        run(code == EAGER_FLOAT64 ? forward_f64 : forward_f32, &job);
    }
    Py_DECREF(x);
    return lse != NULL;
}

/* cross_entropy_backward(g, x, target, weight, lse, ignore_index) */
bool kernel_cross_entropy_backward(PyObject *const *args, Results *results)
{
    Job job = {.rows = 0};
    TensorObject *x, *g = float_tensor(args[0]), *lse = float_tensor(args[4]);
    if (!g || !lse || !read_rows(&job, &x, args[1], args[2], args[3], args[5])) return false;
    const bool able = code_of(g) == code_of(x) && code_of(lse) == code_of(x) && tensor_ndim(g) == 1 && tensor_count(g) == job.rows &&
                      tensor_count(lse) == job.rows && is_row_major(lse);
    TensorObject *dense = able ? as_row_major(g) : NULL, *out = dense ? result_memory(results, code_of(x), 2, tensor_sizes(x)) : NULL;
    if (out) {
        job.g = dense->data;
        job.lse = lse->data;
        job.out = out->data;
        run(code_of(x) == EAGER_FLOAT64 ? backward_f64 : backward_f32, &job);
    }
    Py_XDECREF(dense);
    Py_DECREF(x);
    return out != NULL;
}
