/* Pooling over windows of one to three spatial dims, row-major images. One unit of work is a channel of an image.
 *
 * The loops compute a row of results at once, tap by tap of the window: the positions at which a tap reads inside the input are a
 * range, over which the compiler vectorises. Fewer spatial dims are padded with dims of size one to three. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include <math.h>

typedef struct {
    long images; /* n * c */
    long in[3], out[3], k[3], stride[3], pad[3], dilation[3];
    long inputs, outputs;
    bool count_pad;
    double divisor; /* of every window, or 0 */
    int spatial;
    const void *x;
    void *y;
    int64_t *index;
} Pool;

/* Output positions [*low, *high) along dim d at which tap t reads inside the input. */
static inline void valid(const Pool *p, int d, long t, long *low, long *high)
{
    const long shift = p->pad[d] - t * p->dilation[d], s = p->stride[d], reach = p->in[d] + shift;
    *low = shift > 0 ? (shift + s - 1) / s : 0;
    *high = reach > 0 ? (reach + s - 1) / s : 0;
    if (*high > p->out[d]) *high = p->out[d];
    if (*low > *high) *low = *high;
}

static inline bool reads(const Pool *p, int d, long position, long t, long *at)
{
    *at = position * p->stride[d] - p->pad[d] + t * p->dilation[d];
    return *at >= 0 && *at < p->in[d];
}

/* The first place inside the input that the window at `position` looks at. */
static inline long first_read(const Pool *p, int d, long position)
{
    const long start = position * p->stride[d] - p->pad[d];
    return start >= 0 ? start : start + (-start + p->dilation[d] - 1) / p->dilation[d] * p->dilation[d];
}

/* Elements of the window at `position` that an average divides by. */
static inline long span(const Pool *p, int d, long position)
{
    const long start = position * p->stride[d] - p->pad[d], full = start + p->k[d];
    const long end = full < p->in[d] + p->pad[d] ? full : p->in[d] + p->pad[d];
    if (p->count_pad) return end - start;
    return (end < p->in[d] ? end : p->in[d]) - (start > 0 ? start : 0);
}

/* For each tap that row `line` of the results reads: `at`, the input element for position 0, and positions [a, b). */
#define EACH_TAP(p, line, at, a, b, body)                                                                   \
    for (long t0 = 0; t0 < (p)->k[0]; t0++) {                                                               \
        long z_, y_;                                                                                        \
        if (!reads((p), 0, (line) / (p)->out[1], t0, &z_)) continue;                                        \
        for (long t1 = 0; t1 < (p)->k[1]; t1++) {                                                           \
            if (!reads((p), 1, (line) % (p)->out[1], t1, &y_)) continue;                                    \
            for (long t2 = 0; t2 < (p)->k[2]; t2++) {                                                       \
                long a, b;                                                                                  \
                valid((p), 2, t2, &a, &b);                                                                  \
                const long at = (z_ * (p)->in[1] + y_) * (p)->in[2] + t2 * (p)->dilation[2] - (p)->pad[2];  \
                body                                                                                        \
            }                                                                                               \
        }                                                                                                   \
    }

/* The loop over positions, for the strides that nearly all pools have as constants. */
#define BY_STRIDE(s, loop)                                                                                  \
    if ((s) == 1) { enum { step = 1 }; loop }                                                               \
    else if ((s) == 2) { enum { step = 2 }; loop }                                                          \
    else { const long step = (s); loop }

#define POOLS(S, T, BITS)                                                                                   \
    CLONES static void max_pool_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Pool *p = context;                                                                            \
        BITS *at_best = threads_scratch(&g_runtime, 0, p->out[2] * (long)sizeof(BITS));                     \
        for (long image = begin; image < end; image++) {                                                    \
            const T *restrict x = (const T *)p->x + image * p->inputs;                                      \
            for (long line = 0; line < p->out[0] * p->out[1]; line++) {                                     \
                T *restrict best = (T *)p->y + image * p->outputs + line * p->out[2];                       \
                BITS *restrict where = at_best;                                                             \
                const long z = first_read(p, 0, line / p->out[1]), y = first_read(p, 1, line % p->out[1]);  \
                for (long i = 0; i < p->out[2]; i++) {                                                      \
                    best[i] = (T)-INFINITY;                                                                 \
                    where[i] = (BITS)((z * p->in[1] + y) * p->in[2] + first_read(p, 2, i));                 \
                }                                                                                           \
                EACH_TAP(p, line, at, a, b, {                                                               \
                    BY_STRIDE(p->stride[2], {                                                               \
                        for (long i = a; i < b; i++) {                                                      \
                            const T value = x[at + i * step];                                               \
                            const bool take = (value > best[i]) | (value != value);                         \
                            best[i] = take ? value : best[i];                                               \
                            where[i] = take ? (BITS)(at + i * step) : where[i];                             \
                        }                                                                                   \
                    })                                                                                      \
                })                                                                                          \
                int64_t *restrict index = p->index + image * p->outputs + line * p->out[2];                 \
                for (long i = 0; i < p->out[2]; i++) index[i] = (int64_t)where[i];                          \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    static inline void divisors_##S(const Pool *p, long line, T *to)                                        \
    {                                                                                                       \
        const double lines = (double)(span(p, 0, line / p->out[1]) * span(p, 1, line % p->out[1]));         \
        for (long i = 0; i < p->out[2]; i++) to[i] = (T)(p->divisor != 0 ? p->divisor : lines * (double)span(p, 2, i)); \
    }                                                                                                       \
    CLONES static void avg_pool_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Pool *p = context;                                                                            \
        T *by = threads_scratch(&g_runtime, 0, p->out[2] * (long)sizeof(T));                                \
        for (long image = begin; image < end; image++) {                                                    \
            const T *restrict x = (const T *)p->x + image * p->inputs;                                      \
            for (long line = 0; line < p->out[0] * p->out[1]; line++) {                                     \
                T *restrict sum = (T *)p->y + image * p->outputs + line * p->out[2];                        \
                divisors_##S(p, line, by);                                                                  \
                for (long i = 0; i < p->out[2]; i++) sum[i] = 0;                                            \
                EACH_TAP(p, line, at, a, b, {                                                               \
                    BY_STRIDE(p->stride[2], { for (long i = a; i < b; i++) sum[i] += x[at + i * step]; })   \
                })                                                                                          \
                for (long i = 0; i < p->out[2]; i++) sum[i] /= by[i];                                       \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void avg_backward_##S(void *context, long begin, long end)                                \
    {                                                                                                       \
        const Pool *p = context;                                                                            \
        T *share = threads_scratch(&g_runtime, 0, p->out[2] * (long)sizeof(T));                             \
        for (long image = begin; image < end; image++) {                                                    \
            T *restrict gx = (T *)p->y + image * p->inputs;                                                 \
            for (long i = 0; i < p->inputs; i++) gx[i] = 0;                                                 \
            for (long line = 0; line < p->out[0] * p->out[1]; line++) {                                     \
                const T *restrict g = (const T *)p->x + image * p->outputs + line * p->out[2];              \
                divisors_##S(p, line, share);                                                               \
                for (long i = 0; i < p->out[2]; i++) share[i] = g[i] / share[i];                            \
                EACH_TAP(p, line, at, a, b, {                                                               \
                    BY_STRIDE(p->stride[2], { LOOP_APART for (long i = a; i < b; i++) gx[at + i * step] += share[i]; }) \
                })                                                                                          \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* Windows as even as they can be: of `out` along a dim, window i covers [i n / out, ceil((i + 1) n / out)). */ \
    CLONES static void adaptive_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Pool *p = context;                                                                            \
        for (long image = begin; image < end; image++) {                                                    \
            const T *restrict x = (const T *)p->x + image * p->inputs;                                      \
            T *y = (T *)p->y + image * p->outputs;                                                          \
            for (long cell = 0; cell < p->outputs; cell++) {                                                \
                CELL(p, cell, low, high)                                                                    \
                double lanes[16] = {0};                                                                     \
                double sum = 0;                                                                             \
                for (long z = low[0]; z < high[0]; z++)                                                     \
                    for (long v = low[1]; v < high[1]; v++) {                                               \
                        const T *row = x + (z * p->in[1] + v) * p->in[2];                                   \
                        long i = low[2];                                                                    \
                        for (; i + 16 <= high[2]; i += 16)                                                  \
                            for (int l = 0; l < 16; l++) lanes[l] += (double)row[i + l];                    \
                        for (; i < high[2]; i++) sum += (double)row[i];                                     \
                    }                                                                                       \
                for (int l = 0; l < 16; l++) sum += lanes[l];                                               \
                y[cell] = (T)(sum / (double)((high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]))); \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void adaptive_backward_##S(void *context, long begin, long end)                           \
    {                                                                                                       \
        const Pool *p = context;                                                                            \
        for (long image = begin; image < end; image++) {                                                    \
            const T *restrict g = (const T *)p->x + image * p->outputs;                                     \
            T *restrict gx = (T *)p->y + image * p->inputs;                                                 \
            for (long i = 0; i < p->inputs; i++) gx[i] = 0;                                                 \
            for (long cell = 0; cell < p->outputs; cell++) {                                                \
                CELL(p, cell, low, high)                                                                    \
                const T share = g[cell] / (T)((high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2])); \
                for (long z = low[0]; z < high[0]; z++)                                                     \
                    for (long v = low[1]; v < high[1]; v++) {                                               \
                        T *restrict row = gx + (z * p->in[1] + v) * p->in[2];                               \
                        for (long i = low[2]; i < high[2]; i++) row[i] += share;                            \
                    }                                                                                       \
            }                                                                                               \
        }                                                                                                   \
    }

#define CELL(p, cell, low, high)                                                                            \
    const long place[3] = {(cell) / ((p)->out[1] * (p)->out[2]), (cell) / (p)->out[2] % (p)->out[1], (cell) % (p)->out[2]}; \
    long low[3], high[3];                                                                                   \
    for (int d = 0; d < 3; d++) {                                                                           \
        low[d] = place[d] * (p)->in[d] / (p)->out[d];                                                       \
        high[d] = ((place[d] + 1) * (p)->in[d] + (p)->out[d] - 1) / (p)->out[d];                            \
    }

POOLS(f32, float, int32_t)
POOLS(f64, double, int64_t)

/* ---- reading arguments ---- */

static bool read_list(PyObject *o, int spatial, int64_t least, long missing, long *values)
{
    int64_t given[3];
    if (read_ints(o, given, 3) != spatial) return false;
    for (int d = 0; d < 3; d++) {
        values[d] = d < 3 - spatial ? missing : (long)given[d - (3 - spatial)];
        if (values[d] < least || values[d] > INT32_MAX) return false;
    }
    return true;
}

/* An image of 3 to 5 dims, none empty, row-major. */
static const TensorObject *read_image(PyObject *o, Pool *p, long *sizes)
{
    const TensorObject *t = float_tensor(o);
    if (!t || tensor_ndim(t) < 3 || tensor_ndim(t) > 5 || !tensor_count(t) || !is_plain_signal(t)) return NULL;
    p->spatial = tensor_ndim(t) - 2;
    p->images = (long)(tensor_sizes(t)[0] * tensor_sizes(t)[1]);
    for (int d = 0; d < 3; d++) sizes[d] = d < 3 - p->spatial ? 1 : (long)tensor_sizes(t)[2 + d - (3 - p->spatial)];
    return t;
}

static void measure(Pool *p)
{
    p->inputs = p->in[0] * p->in[1] * p->in[2];
    p->outputs = p->out[0] * p->out[1] * p->out[2];
}

/* Reads kernel, stride, padding (and dilation, or NULL) and computes the number of windows; false for invalid windows. */
static bool read_windows(Pool *p, PyObject *const *args, PyObject *dilation, bool ceil_mode)
{
    for (int d = 0; d < 3; d++) p->dilation[d] = 1;
    if (!read_list(args[0], p->spatial, 1, 1, p->k) || !read_list(args[1], p->spatial, 1, 1, p->stride) ||
        !read_list(args[2], p->spatial, 0, 0, p->pad) || (dilation && !read_list(dilation, p->spatial, 1, 1, p->dilation)))
        return false;
    for (int d = 0; d < 3; d++) {
        const long room = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->k[d] - 1) - 1, s = p->stride[d];
        if (p->pad[d] > p->k[d] / 2 || (room < 0 && (!ceil_mode || room <= -s))) return false;
        p->out[d] = (ceil_mode && room > 0 ? (room + s - 1) / s : room / s) + 1; /* a window may reach over the end then */
        if (ceil_mode && (p->out[d] - 1) * s >= p->in[d] + p->pad[d]) p->out[d]--;
    }
    measure(p);
    return true;
}

static TensorObject *result(const Pool *p, const TensorObject *like, const long *sizes, int code, Results *results)
{
    int64_t shape[5] = {tensor_sizes(like)[0], tensor_sizes(like)[1]};
    for (int d = 0; d < p->spatial; d++) shape[2 + d] = sizes[3 - p->spatial + d];
    return result_memory(results, code, 2 + p->spatial, shape);
}

static bool run(Pool *p, const TensorObject *x, TensorObject *y, LoopFn single, LoopFn wide, long elements)
{
    if (!y) return false;
    p->x = x->data;
    p->y = y->data;
    parallel(code_of(x) == EAGER_FLOAT64 ? wide : single, p, p->images, 1, (double)p->images * (double)elements);
    return true;
}

static long window_of(const Pool *p) { return p->k[0] * p->k[1] * p->k[2]; }

/* ---- the ops ---- */

/* max_pool(x, kernel, stride, padding, dilation, ceil_mode): values, and positions in the flattened spatial dims */
bool kernel_max_pool(PyObject *const *args, Results *results)
{
    Pool p = {.images = 0};
    const TensorObject *x = read_image(args[0], &p, p.in);
    if (!x || !read_windows(&p, args + 1, args[4], args[5] == Py_True) || p.inputs > INT32_MAX) return false;
    TensorObject *y = result(&p, x, p.out, code_of(x), results), *index = result(&p, x, p.out, EAGER_INT64, results);
    if (!y || !index) return false;
    p.index = (int64_t *)index->data;
    return run(&p, x, y, max_pool_f32, max_pool_f64, p.outputs * window_of(&p));
}

/* The last two arguments of both average ops. */
static bool read_average(Pool *p, PyObject *count_pad, PyObject *divisor)
{
    p->count_pad = count_pad == Py_True;
    return divisor == Py_None || (read_real(divisor, &p->divisor) && p->divisor != 0);
}

/* avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override) */
bool kernel_avg_pool(PyObject *const *args, Results *results)
{
    Pool p = {.images = 0};
    const TensorObject *x = read_image(args[0], &p, p.in);
    if (!x || !read_windows(&p, args + 1, NULL, args[4] == Py_True) || !read_average(&p, args[5], args[6])) return false;
    return run(&p, x, result(&p, x, p.out, code_of(x), results), avg_pool_f32, avg_pool_f64, p.outputs * window_of(&p));
}

/* Reads the sizes of the input whose gradient is computed: an image with the batch and channels of g. */
static bool read_sizes(PyObject *o, const TensorObject *g, Pool *p)
{
    int64_t sizes[5];
    if (read_ints(o, sizes, 5) != tensor_ndim(g) || sizes[0] != tensor_sizes(g)[0] || sizes[1] != tensor_sizes(g)[1]) return false;
    for (int d = 0; d < 3; d++) {
        p->in[d] = d < 3 - p->spatial ? 1 : (long)sizes[2 + d - (3 - p->spatial)];
        if (p->in[d] < 1 || p->in[d] > INT32_MAX) return false;
    }
    return true;
}

/* avg_pool_backward(grad, size, kernel, stride, padding, count_include_pad, divisor_override) */
bool kernel_avg_pool_backward(PyObject *const *args, Results *results)
{
    Pool p = {.images = 0};
    long given[3];
    const TensorObject *g = read_image(args[0], &p, given);
    if (!g || !read_sizes(args[1], g, &p) || !read_average(&p, args[5], args[6])) return false;
    bool fits = false;
    for (int ceil_mode = 0; !fits && ceil_mode < 2; ceil_mode++)
        fits = read_windows(&p, args + 2, NULL, ceil_mode) && !memcmp(given, p.out, sizeof given);
    if (!fits) return false;
    return run(&p, g, result(&p, g, p.in, code_of(g), results), avg_backward_f32, avg_backward_f64, p.outputs * window_of(&p));
}

/* adaptive_avg_pool(x, size) */
bool kernel_adaptive_avg_pool(PyObject *const *args, Results *results)
{
    Pool p = {.images = 0};
    const TensorObject *x = read_image(args[0], &p, p.in);
    if (!x || !read_list(args[1], p.spatial, 1, 1, p.out)) return false;
    measure(&p);
    return run(&p, x, result(&p, x, p.out, code_of(x), results), adaptive_f32, adaptive_f64, p.inputs);
}

/* adaptive_avg_pool_backward(grad, size) */
bool kernel_adaptive_avg_pool_backward(PyObject *const *args, Results *results)
{
    Pool p = {.images = 0};
    const TensorObject *g = read_image(args[0], &p, p.out);
    if (!g || !read_sizes(args[1], g, &p)) return false;
    measure(&p);
    return run(&p, g, result(&p, g, p.in, code_of(g), results), adaptive_backward_f32, adaptive_backward_f64, p.inputs);
}
