/* Convolution of one to three spatial dims, its adjoint in the input (the transposed convolution) and in the weight.
 *
 * Kernels of one element are matrix products; other kernels are sums over taps (direct_convolution.c). For the weight's gradient,
 * patches of the image are packed into panels that fit the cache, one panel per thread at a time, and multiplied with the
 * cotangent (K. Chellapilla et al., 2006, without the matrix of all patches). Fewer spatial dims are padded with dims of size one
 * to three. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/convolution.h"
#include "kernels/kernel.h"

enum { PANEL_BYTES = 512 << 10, MIN_COLUMNS = 64, DIRECT_PRODUCT = 16 };

typedef struct {
    const Conv *v;
    bool adjoint;
    const void *x, *w, *bias, *g;
    void *y;
    long columns, tiles;  /* positions in a tile; tiles of an image */
    long blocks, rows;    /* of output channels; or shares of the work */
    void **parts;         /* weight gradients, one for each share of the work */
} Job;

static void finish(Conv *v)
{
    v->cg = v->c / v->groups;
    v->og = v->o / v->groups;
    v->depth = v->cg * v->k[0] * v->k[1] * v->k[2];
    v->inputs = v->in[0] * v->in[1] * v->in[2];
    v->outputs = v->out[0] * v->out[1] * v->out[2];
}

static bool is_direct(const Conv *v) { return v->groups > 1 && v->cg * v->og <= DIRECT_PRODUCT; }

/* The input is its own patches. */
static bool is_plain(const Conv *v)
{
    for (int d = 0; d < 3; d++)
        if (v->k[d] != 1 || v->stride[d] != 1 || v->pad[d] != 0) return false;
    return true;
}

/* Output positions [*low, *high) along dim d at which tap t reads inside the input. */
static void valid(const Conv *v, int d, long t, long *low, long *high)
{
    const long shift = v->pad[d] - t * v->dilation[d], s = v->stride[d];
    *low = shift > 0 ? (shift + s - 1) / s : 0;
    const long reach = v->in[d] + shift;
    *high = reach > 0 ? (reach + s - 1) / s : 0;
    if (*high > v->out[d]) *high = v->out[d];
    if (*low > *high) *low = *high;
}

/* Whether tap t reads inside the input for the output position at dim d, and where. */
static inline bool reads(const Conv *v, int d, long position, long t, long *at)
{
    *at = position * v->stride[d] - v->pad[d] + t * v->dilation[d];
    return *at >= 0 && *at < v->in[d];
}

static void multiply(int dtype, bool ta, bool tb, long m, long n, long k, const void *a, long lda, const void *b, long ldb, void *c,
                     long ldc, bool accumulate)
{
    const GemmCall call = {.dtype = dtype, .trans_a = ta, .trans_b = tb, .batch = 1, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb,
                           .ldc = ldc, .alpha = 1.0, .beta = accumulate ? 1.0 : 0.0, .a = a, .b = b, .c = c};
    blas_gemm(&g_runtime, &call, 1);
}

#define CONVOLUTIONS(S, T)                                                                                  \
    /* Patches of output positions [p0, p1) of one group's image: a row for each channel and tap. */        \
    CLONES static void pack_##S(const Conv *v, const T *x, T *panel, long p0, long p1, long pitch)          \
    {                                                                                                       \
        const long ow = v->out[2], s = v->stride[2];                                                        \
        for (long row = 0; row < v->depth; row++) {                                                         \
            const long t2 = row % v->k[2], t1 = row / v->k[2] % v->k[1];                                    \
            const long t0 = row / (v->k[2] * v->k[1]) % v->k[0], c = row / (v->k[2] * v->k[1] * v->k[0]);   \
            long low, high, q = p0 % ow, line = p0 / ow, y, z;                                              \
            valid(v, 2, t2, &low, &high);                                                                   \
            T *to = panel + row * pitch;                                                                    \
            for (long p = p0; p < p1; line++, q = 0) {                                                      \
                const long run = ow - q < p1 - p ? ow - q : p1 - p;                                         \
                if (reads(v, 0, line / v->out[1], t0, &z) && reads(v, 1, line % v->out[1], t1, &y)) {       \
                    const T *from = x + c * v->inputs + (z * v->in[1] + y) * v->in[2] + t2 * v->dilation[2] - v->pad[2]; \
                    const long a = low < q ? 0 : low - q < run ? low - q : run;                             \
                    const long b = high - q < a ? a : high - q < run ? high - q : run;                      \
                    for (long i = 0; i < a; i++) to[i] = 0;                                                 \
                    if (s == 1) for (long i = a; i < b; i++) to[i] = from[q + i];                           \
                    else for (long i = a; i < b; i++) to[i] = from[(q + i) * s];                            \
                    for (long i = b; i < run; i++) to[i] = 0;                                               \
                }                                                                                           \
                else for (long i = 0; i < run; i++) to[i] = 0;                                              \
                to += run;                                                                                  \
                p += run;                                                                                   \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void add_bias_##S(T *y, const T *bias, long rows, long columns, long pitch)               \
    {                                                                                                       \
        for (long r = 0; r < rows; r++)                                                                     \
            for (long i = 0; i < columns; i++) y[r * pitch + i] += bias[r];                                 \
    }                                                                                                       \
    /* One unit: a tile of columns by a block of rows of one group of an image, for kernels of one element. */ \
    static void plain_##S(void *context, long begin, long end)                                              \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const Conv *v = job->v;                                                                             \
        const long results = job->adjoint ? v->cg : v->og, sources = job->adjoint ? v->og : v->cg, size = v->outputs; \
        for (long unit = begin; unit < end; unit++) {                                                       \
            const long r0 = unit % job->blocks * job->rows, p0 = unit / job->blocks % job->tiles * job->columns; \
            const long at = unit / (job->blocks * job->tiles), group = at % v->groups; /* image * groups + group */ \
            const long rows = results - r0 < job->rows ? results - r0 : job->rows;                          \
            const long columns = size - p0 < job->columns ? size - p0 : job->columns;                       \
            const T *w = (const T *)job->w + group * v->og * v->cg + (job->adjoint ? r0 : r0 * v->cg);      \
            T *y = (T *)job->y + (at * results + r0) * size + p0;                                           \
            multiply(v->dtype, job->adjoint, false, rows, columns, sources, w, v->cg, (const T *)job->x + at * sources * size + p0, size, y, \
                     size, false);                                                                          \
            if (job->bias) add_bias_##S(y, (const T *)job->bias + group * results + r0, rows, columns, size); \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: a share of the tiles of all images and groups, summed into a separate part.  */           \
    static void weight_##S(void *context, long begin, long end)                                             \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const Conv *v = job->v;                                                                             \
        const long units = v->n * job->tiles;                                                               \
        T *panel = is_plain(v) ? NULL : threads_scratch(&g_runtime, 0, job->columns * v->depth * (long)sizeof(T)); \
        for (long part = begin; part < end; part++) {                                                       \
            T *sum = job->parts[part];                                                                      \
            for (long i = 0; i < v->o * v->depth; i++) sum[i] = 0;                                          \
            for (long unit = part * units / job->blocks; unit < (part + 1) * units / job->blocks; unit++) { \
                const long image = unit / job->tiles, p0 = unit % job->tiles * job->columns;                \
                const long p1 = p0 + job->columns < v->outputs ? p0 + job->columns : v->outputs, columns = p1 - p0; \
                for (long group = 0; group < v->groups; group++) {                                          \
                    const T *x = (const T *)job->x + (image * v->c + group * v->cg) * v->inputs;            \
                    const T *g = (const T *)job->g + (image * v->o + group * v->og) * v->outputs + p0;      \
                    if (panel) pack_##S(v, x, panel, p0, p1, columns);                                      \
                    multiply(v->dtype, false, true, v->og, v->depth, columns, g, v->outputs, panel ? panel : x + p0, \
                             panel ? columns : v->inputs, sum + group * v->og * v->depth, v->depth, true);  \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    CLONES static void sum_parts_##S(void *context, long begin, long end)                                   \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        T *restrict y = job->y;                                                                             \
        for (long i = begin; i < end; i++) y[i] = ((const T *)job->parts[0])[i];                            \
        for (long part = 1; part < job->blocks; part++) {                                                   \
            const T *restrict one = job->parts[part];                                                       \
            for (long i = begin; i < end; i++) y[i] += one[i];                                              \
        }                                                                                                   \
    }

CONVOLUTIONS(f32, float)
CONVOLUTIONS(f64, double)

/* ---- running ---- */

static long columns_of(const Conv *v)
{
    long columns = PANEL_BYTES / ((v->dtype ? 8 : 4) * v->depth) / 16 * 16;
    return columns < MIN_COLUMNS ? MIN_COLUMNS : columns;
}

/* The result, or in the adjoint the gradient of the input from the result's, `x`. False if out of memory. */
static bool run(const Conv *v, bool adjoint, const void *x, const void *w, const void *bias, void *y)
{
    if (!is_plain(v)) return direct_convolution(v, adjoint, x, w, bias, y);
    Job job = {.v = v, .adjoint = adjoint, .x = x, .w = w, .bias = bias, .y = y};
    const long results = adjoint ? v->cg : v->og, columns = columns_of(v), wanted = 2L * g_runtime.threads;
    job.tiles = (v->outputs + columns - 1) / columns;
    job.columns = (v->outputs + job.tiles - 1) / job.tiles;
    const long units = v->n * v->groups * job.tiles;
    job.blocks = units >= wanted || results < 32 ? 1 : (wanted + units - 1) / units;
    if (job.blocks > results / 16) job.blocks = results / 16 ? results / 16 : 1;
    job.rows = (results + job.blocks - 1) / job.blocks;
    job.blocks = (results + job.rows - 1) / job.rows;
    parallel(v->dtype ? plain_f64 : plain_f32, &job, units * job.blocks, 1, work_of(v));
    return true;
}

/* The gradient of the weight. False if out of memory. */
static bool run_weight(const Conv *v, const void *x, const void *g, void *y)
{
    Job job = {.v = v, .x = x, .g = g, .y = y};
    if (is_direct(v)) {
        direct_weight_gradient(v, x, g, y);
        return true;
    }
    const int64_t bytes = (int64_t)v->o * v->depth * (v->dtype ? 8 : 4);
    const long columns = columns_of(v);
    job.tiles = (v->outputs + columns - 1) / columns;
    job.columns = (v->outputs + job.tiles - 1) / job.tiles;
    job.blocks = v->n * job.tiles < g_runtime.threads ? v->n * job.tiles : g_runtime.threads;
    void **parts = PyMem_Calloc((size_t)job.blocks, sizeof(void *));
    bool ok = parts != NULL;
    job.parts = parts;
    for (long i = 0; ok && i < job.blocks; i++) ok = (parts[i] = i ? pool_alloc(bytes) : y) != NULL;
    if (ok) {
        parallel(v->dtype ? weight_f64 : weight_f32, &job, job.blocks, 1, work_of(v));
        if (job.blocks > 1) parallel(v->dtype ? sum_parts_f64 : sum_parts_f32, &job, v->o * v->depth, 4096, (double)v->o * (double)v->depth);
    }
    for (long i = 1; parts && i < job.blocks; i++)
        if (parts[i]) pool_free(parts[i], bytes);
    PyMem_Free(parts);
    return ok;
}

/* ---- the ops ---- */

/* Lists of as many numbers as there are spatial dims, of at least `least`; fewer than three are the last of three. */
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

static void spread_sizes(const TensorObject *t, long *values)
{
    const int spatial = tensor_ndim(t) - 2;
    for (int d = 0; d < 3; d++) values[d] = d < 3 - spatial ? 1 : (long)tensor_sizes(t)[2 + d - (3 - spatial)];
}

static bool read_steps(Conv *v, PyObject *stride, PyObject *padding, PyObject *dilation, int spatial)
{
    return read_list(stride, spatial, 1, 1, v->stride) && read_list(padding, spatial, 0, 0, v->pad) &&
           read_list(dilation, spatial, 1, 1, v->dilation);
}

/* Row-major tensors of 3 to 5 dims, none empty, of one dtype. (Others are laid out in eager.optable.conv, which says how.) */
static bool is_image(const TensorObject *t) { return t && tensor_ndim(t) >= 3 && tensor_ndim(t) <= 5 && tensor_count(t) && is_plain_signal(t); }

static TensorObject *make_result(const Conv *v, int spatial, long channels, const long *sizes, int code, Results *results)
{
    int64_t shape[5] = {v->n, channels};
    for (int d = 0; d < spatial; d++) shape[2 + d] = sizes[3 - spatial + d];
    return result_memory(results, code, 2 + spatial, shape);
}

/* convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
bool kernel_convolution(PyObject *const *args, Results *results)
{
    const TensorObject *x = float_tensor(args[0]), *w = float_tensor(args[1]);
    TensorObject *bias;
    int64_t groups;
    Conv v = {.groups = 0};
    if (!blas_loaded() || !is_image(x) || !is_image(w) || code_of(x) != code_of(w) || tensor_ndim(x) != tensor_ndim(w)) return false;
    const int spatial = tensor_ndim(x) - 2, code = code_of(x);
    const bool transposed = args[6] == Py_True;
    if (!read_steps(&v, args[3], args[4], args[5], spatial) || !read_int(args[8], &groups) || groups < 1) return false;
    const int64_t *ws = tensor_sizes(w);
    if (ws[0] % groups || !optional_float(args[2], code, &bias)) return false;
    v.dtype = code == EAGER_FLOAT64;
    v.n = (long)tensor_sizes(x)[0];
    v.groups = (long)groups;
    v.o = (long)ws[0];
    v.c = (long)(ws[1] * groups);
    spread_sizes(w, v.k);
    const long channels = transposed ? v.c : v.o;
    if (tensor_sizes(x)[1] != (transposed ? v.o : v.c)) return false;
    if (bias && (tensor_ndim(bias) != 1 || tensor_sizes(bias)[0] != channels || !is_row_major(bias))) return false;
    long extra[3];
    if (transposed && !read_list(args[7], spatial, 0, 0, extra)) return false;
    spread_sizes(x, transposed ? v.out : v.in);
    for (int d = 0; d < 3; d++) {
        const long reach = v.dilation[d] * (v.k[d] - 1);
        if (transposed) {
            if (extra[d] >= v.stride[d] && extra[d] >= v.dilation[d]) return false;
            v.in[d] = (v.out[d] - 1) * v.stride[d] - 2 * v.pad[d] + reach + extra[d] + 1;
            if (v.in[d] < 1) return false;
        }
        else {
            if (v.in[d] + 2 * v.pad[d] - reach < 1) return false;
            v.out[d] = (v.in[d] + 2 * v.pad[d] - reach - 1) / v.stride[d] + 1;
        }
    }
    finish(&v);
    TensorObject *out = make_result(&v, spatial, channels, transposed ? v.in : v.out, code, results);
    if (!out) return false;
    const void *b = bias ? bias->data : NULL;
    if (!run(&v, transposed, x->data, w->data, b, out->data)) {
        PyErr_NoMemory();
        out = NULL;
    }
    return out != NULL;
}

/* conv_weight(x, grad, kernel, stride, padding, dilation, groups) */
bool kernel_conv_weight(PyObject *const *args, Results *results)
{
    const TensorObject *x = float_tensor(args[0]), *g = float_tensor(args[1]);
    int64_t groups;
    Conv v = {.groups = 0};
    if (!blas_loaded() || !is_image(x) || !is_image(g) || code_of(x) != code_of(g) || tensor_ndim(x) != tensor_ndim(g)) return false;
    const int spatial = tensor_ndim(x) - 2;
    if (!read_list(args[2], spatial, 1, 1, v.k) || !read_steps(&v, args[3], args[4], args[5], spatial)) return false;
    if (!read_int(args[6], &groups) || groups < 1 || tensor_sizes(x)[1] % groups || tensor_sizes(g)[1] % groups) return false;
    v.dtype = code_of(x) == EAGER_FLOAT64;
    v.n = (long)tensor_sizes(x)[0];
    v.groups = (long)groups;
    v.c = (long)tensor_sizes(x)[1];
    v.o = (long)tensor_sizes(g)[1];
    if (tensor_sizes(g)[0] != v.n) return false;
    spread_sizes(x, v.in);
    spread_sizes(g, v.out);
    for (int d = 0; d < 3; d++)
        if ((v.out[d] - 1) * v.stride[d] + v.dilation[d] * (v.k[d] - 1) + 1 > v.in[d] + 2 * v.pad[d]) return false;
    finish(&v);
    int64_t shape[5] = {v.o, v.cg};
    for (int d = 0; d < spatial; d++) shape[2 + d] = v.k[3 - spatial + d];
    TensorObject *out = result_memory(results, code_of(x), 2 + spatial, shape);
    if (out && !run_weight(&v, x->data, g->data, out->data)) {
        PyErr_NoMemory();
        out = NULL;
    }
    return out != NULL;
}
