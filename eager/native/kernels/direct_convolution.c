/* Direct convolution: a sum over taps, without a matrix of patches.
 *
 * The channels of a window of the image that fits the cache are copied with their padding, one plane for each remainder of a
 * position by the stride. A tap of the kernel is then one offset for all output positions, and a row of positions continues in the
 * next row: an output channel is a weighted sum of shifted copies of one long line, from which the positions between rows are
 * discarded. Sums of several channels stay in registers over all taps and input channels (compare J. Zhang et al., 2018). The
 * adjoint in the input is such a sum for each remainder by the stride. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/convolution.h"
#include "kernels/kernel.h"

enum { STAGED_BYTES = 512 << 10, SLACK = 64 * 6, MANY = 4 };

/* ---- the sums ---- */

/* to[r * pitch + i] = sum over t of w[t * ROWS + r] * from[offsets[t] + i], for i < count, and up to a vector more. */
typedef void (*SumFn)(void *to, long pitch, const void *from, const void *w, const long *offsets, long terms, long count);

#define STRIPS(NAME, T, ROWS, VECTORS)                                                                      \
    for (; i + (VECTORS - 1) * N < count; i += VECTORS * N) {                                               \
        NAME##_lanes sums[ROWS][VECTORS];                                                                   \
        _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; r++)                                              \
            _Pragma("GCC unroll 8") for (int j = 0; j < VECTORS; j++) sums[r][j] = (NAME##_lanes){0};       \
        for (long t = 0; t < terms; t++) {                                                                  \
            const NAME##_lanes *at = (const NAME##_lanes *)((const T *)from + offsets[t] + i);              \
            _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; r++) {                                        \
                const T scale = ((const T *)w)[t * ROWS + r];                                               \
                _Pragma("GCC unroll 8") for (int j = 0; j < VECTORS; j++) sums[r][j] += scale * at[j];      \
            }                                                                                               \
        }                                                                                                   \
        _Pragma("GCC unroll 8") for (int r = 0; r < ROWS; r++)                                              \
            _Pragma("GCC unroll 8") for (int j = 0; j < VECTORS; j++)                                       \
                ((NAME##_lanes *)((T *)to + r * pitch + i))[j] = sums[r][j];                                \
    }

#define SUM(NAME, TARGET, T, BYTES, ROWS, VECTORS)                                                          \
    typedef T NAME##_lanes __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));              \
    TARGET static void NAME(void *to, long pitch, const void *from, const void *w, const long *offsets, long terms, long count) \
    {                                                                                                       \
        const long N = BYTES / sizeof(T);                                                                   \
        long i = 0;                                                                                         \
        STRIPS(NAME, T, ROWS, VECTORS)                                                                      \
        STRIPS(NAME, T, ROWS, 1)                                                                            \
    }

#define SUMS(FORM, TARGET, BYTES, ROWS)               \
    SUM(one_##FORM##_f32, TARGET, float, BYTES, 1, 6)     \
    SUM(many_##FORM##_f32, TARGET, float, BYTES, ROWS, 3) \
    SUM(one_##FORM##_f64, TARGET, double, BYTES, 1, 6)    \
    SUM(many_##FORM##_f64, TARGET, double, BYTES, ROWS, 3)

typedef struct {
    SumFn sum;
    long rows, step;
} SumKernel;

/* Accumulators for the registers there are: 32, 16 and 16. */
SUMS(narrow, , 16, 4)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
SUMS(middle, __attribute__((target("avx2,fma"))), 32, 4)
SUMS(wide, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512"))), 64, 8)
#endif

#define KERNEL_OF(FORM, BYTES, ROWS)                                                                              \
    (many ? (dtype ? (SumKernel){many_##FORM##_f64, ROWS, 3 * BYTES / 8} : (SumKernel){many_##FORM##_f32, ROWS, 3 * BYTES / 4}) \
          : (dtype ? (SumKernel){one_##FORM##_f64, 1, 6 * BYTES / 8} : (SumKernel){one_##FORM##_f32, 1, 6 * BYTES / 4}))

static SumKernel kernel_for(int dtype, bool many)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return KERNEL_OF(wide, 64, 8);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return KERNEL_OF(middle, 32, 4);
#endif
    return KERNEL_OF(narrow, 16, 4);
}

/* ---- planes ---- */

/* The input of one unit of work: for each channel, phases[0] * phases[1] * phases[2] planes, each of `images` images of size[0] *
 * size[1] * size[2]. Element i of the source, along each dim, is at position i + shift; it lies in plane position % step at
 * position / step. */
typedef struct {
    long step[3], phases[3], size[3], images, image, plane, channel;
} Layout;

static void finish_layout(Layout *l)
{
    l->image = l->size[0] * l->size[1] * l->size[2];
    l->plane = l->images * l->image;
    l->channel = l->phases[0] * l->phases[1] * l->phases[2] * l->plane;
}

static long flat(const Layout *l, long z, long y, long x) { return (z * l->size[1] + y) * l->size[2] + x; }

/* Where position z, y, x lies in its channel. */
static long place(const Layout *l, long z, long y, long x)
{
    const long phase = (z % l->step[0] * l->phases[1] + y % l->step[1]) * l->phases[2] + x % l->step[2];
    return phase * l->plane + flat(l, z / l->step[0], y / l->step[1], x / l->step[2]);
}

static long clip(long value, long low, long high) { return value < low ? low : value > high ? high : value; }

static long divide_up(long a, long b) { return a <= 0 ? 0 : (a + b - 1) / b; }

#define EACH(n, i) for (long i = 0; i < (n); i++)

#define PLANES(S, T)                                                                                        \
    /* One channel of one image, of `sizes`, into its planes. */                                            \
    CLONES static void stage_##S(const Layout *l, const long *sizes, const long *shift, const T *restrict from, T *restrict to) \
    {                                                                                                       \
        EACH(l->phases[0], pz) EACH(l->phases[1], py) EACH(l->phases[2], px) {                              \
            T *restrict row = to + ((pz * l->phases[1] + py) * l->phases[2] + px) * l->plane;               \
            const long s = l->step[2], at = px - shift[2];                                                  \
            const long a = clip(divide_up(-at, s), 0, l->size[2]), b = clip(divide_up(sizes[2] - at, s), a, l->size[2]); \
            EACH(l->size[0], z) EACH(l->size[1], y) {                                                       \
                const long zi = z * l->step[0] + pz - shift[0], yi = y * l->step[1] + py - shift[1];        \
                if (zi < 0 || zi >= sizes[0] || yi < 0 || yi >= sizes[1]) memset(row, 0, (size_t)l->size[2] * sizeof(T)); \
                else {                                                                                      \
                    const T *restrict line = from + (zi * sizes[1] + yi) * sizes[2] + at;                   \
                    for (long i = 0; i < a; i++) row[i] = 0;                                                \
                    if (s == 1) for (long i = a; i < b; i++) row[i] = line[i];                              \
                    else for (long i = a; i < b; i++) row[i] = line[i * s];                                 \
                    for (long i = b; i < l->size[2]; i++) row[i] = 0;                                       \
                }                                                                                           \
                row += l->size[2];                                                                          \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* Sums of one image to where they belong: position i, along each dim, to i * every + shift of `sizes`. */ \
    CLONES static void put_##S(const Layout *l, const T *restrict sums, const long *n, const long *every, const long *shift, T start, \
                               const long *sizes, T *restrict to)                                           \
    {                                                                                                       \
        const long s = every[2], a = clip(divide_up(-shift[2], s), 0, n[2]), b = clip(divide_up(sizes[2] - shift[2], s), a, n[2]); \
        EACH(n[0], z) EACH(n[1], y) {                                                                       \
            const long zi = z * every[0] + shift[0], yi = y * every[1] + shift[1];                          \
            if (zi < 0 || zi >= sizes[0] || yi < 0 || yi >= sizes[1]) continue;                             \
            const T *restrict row = sums + flat(l, z, y, 0);                                                \
            T *restrict line = to + (zi * sizes[1] + yi) * sizes[2] + shift[2];                             \
            if (s == 1) for (long i = a; i < b; i++) line[i] = start + row[i];                              \
            else for (long i = a; i < b; i++) line[i * s] = start + row[i];                                 \
        }                                                                                                   \
    }
PLANES(f32, float)
PLANES(f64, double)

static void tap_at(const Conv *v, long t, long *at)
{
    at[2] = t % v->k[2] * v->dilation[2];
    at[1] = t / v->k[2] % v->k[1] * v->dilation[1];
    at[0] = t / (v->k[2] * v->k[1]) * v->dilation[0];
}

/* ---- from images to images ---- */

/* Both directions as one: each result position sums terms, a source channel and a tap each. Forward, the source is spread
 * over planes by the stride; in the adjoint the results are, and a plane of them, a phase, has the taps that reach it. */
typedef struct {
    const Conv *v;
    bool adjoint;
    const void *from, *bias;
    void *to, *packed;              /* the weights: (group, block of rows, term, row) */
    long sources, results;          /* channels of a group */
    const long *from_sizes, *to_sizes;
    long every[3], phases;          /* of results */
    long front[3], chunk[3], windows[3]; /* positions before a window that it reads; positions of a window; how many windows */
    Layout layout;
    SumKernel kernel;
    long *offsets, *term_of, *first; /* of each term in the staged source; its tap and channel; where each phase's begin */
    long terms, blocks, taken, shares, batches; /* taken: blocks of one unit; shares: units of a window */
} Sum;

/* Terms by phase. Term i is tap term_of[i] % taps of source channel term_of[i] / taps. */
static void list_terms(Sum *s)
{
    const Conv *v = s->v;
    const Layout *l = &s->layout;
    const long taps = v->k[0] * v->k[1] * v->k[2], *e = s->every;
    long n = 0;
    for (long p = 0; p < s->phases; p++) {
        s->first[p] = n;
        for (long i = 0; i < s->sources * taps; i++) {
            long at[3];
            tap_at(v, i % taps, at);
            if (s->adjoint) {
                if ((at[0] % e[0] * e[1] + at[1] % e[1]) * e[2] + at[2] % e[2] != p) continue;
                for (int d = 0; d < 3; d++) at[d] = s->front[d] - at[d] / e[d];
            }
            s->offsets[n] = i / taps * l->channel + place(l, at[0], at[1], at[2]);
            s->term_of[n++] = i;
        }
    }
    s->first[s->phases] = n;
}

#define PACK(S, T)                                                                                          \
    static void pack_##S(const Sum *s, const T *w)                                                          \
    {                                                                                                       \
        const Conv *v = s->v;                                                                               \
        const long taps = v->k[0] * v->k[1] * v->k[2], rows = s->kernel.rows;                               \
        T *to = s->packed;                                                                                  \
        EACH(v->groups, group) EACH(s->blocks, block) EACH(s->terms, term) EACH(rows, r) {                  \
            const long result = block * rows + r, source = s->term_of[term] / taps, tap = s->term_of[term] % taps; \
            const long o = s->adjoint ? source : result, c = s->adjoint ? result : source;                  \
            *to++ = result < s->results ? w[((group * v->og + o) * v->cg + c) * taps + tap] : 0;            \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: some blocks of channels, of a window of a batch of images of a group. */                   \
    static void units_##S(void *context, long begin, long end)                                              \
    {                                                                                                       \
        const Sum *s = context;                                                                             \
        const Conv *v = s->v;                                                                               \
        const Layout *l = &s->layout;                                                                       \
        const long windows = s->windows[0] * s->windows[1] * s->windows[2], rows = s->kernel.rows;          \
        const long pitch = divide_up(l->plane, s->kernel.step) * s->kernel.step;                            \
        const long from_size = s->from_sizes[0] * s->from_sizes[1] * s->from_sizes[2];                      \
        const long to_size = s->to_sizes[0] * s->to_sizes[1] * s->to_sizes[2];                              \
        T *staged = threads_scratch(&g_runtime, 0, s->sources * l->channel * (long)sizeof(T) + SLACK);      \
        T *sums = threads_scratch(&g_runtime, 1, rows * pitch * (long)sizeof(T));                           \
        long holds = -1;                                                                                    \
        for (long unit = begin; unit < end; unit++) {                                                       \
            const long share = unit % s->shares, here = unit / s->shares, window = here % windows;      \
            const long batch = here / windows % s->batches, group = here / windows / s->batches;        \
            const long at[3] = {window / (s->windows[1] * s->windows[2]), window / s->windows[2] % s->windows[1], window % s->windows[2]}; \
            const long image = batch * l->images, images = image + l->images < v->n ? l->images : v->n - image; \
            long low[3], n[3], shift[3];                                                                    \
            for (int d = 0; d < 3; d++) {                                                                   \
                low[d] = at[d] * s->chunk[d];                                                               \
                const long all = s->adjoint ? divide_up(v->in[d] + v->pad[d], s->every[d]) : v->out[d];     \
                n[d] = low[d] + s->chunk[d] < all ? s->chunk[d] : all - low[d];                             \
                shift[d] = s->adjoint ? s->front[d] - low[d] : v->pad[d] - low[d] * v->stride[d];           \
            }                                                                                               \
            if (holds != here)                                                                            \
                EACH(s->sources, c) EACH(images, i)                                                         \
                    stage_##S(l, s->from_sizes, shift, (const T *)s->from + (((image + i) * v->groups + group) * s->sources + c) * from_size, \
                              staged + c * l->channel + i * l->image);                                      \
            holds = here;                                                                                 \
            const long span = (images - 1) * l->image + flat(l, n[0] - 1, n[1] - 1, n[2] - 1) + 1;          \
            const long last = (share + 1) * s->taken < s->blocks ? (share + 1) * s->taken : s->blocks;      \
            for (long block = share * s->taken; block < last; block++)                                      \
                EACH(s->phases, p) {                                                                        \
                    const long phase[3] = {p / (s->every[1] * s->every[2]), p / s->every[2] % s->every[1], p % s->every[2]}; \
                    const T *w = (const T *)s->packed + ((group * s->blocks + block) * s->terms + s->first[p]) * rows; \
                    s->kernel.sum(sums, pitch, staged, w, s->offsets + s->first[p], s->first[p + 1] - s->first[p], span); \
                    long to[3];                                                                             \
                    for (int d = 0; d < 3; d++) to[d] = s->adjoint ? low[d] * s->every[d] + phase[d] - v->pad[d] : low[d]; \
                    EACH(rows, r) {                                                                         \
                        const long channel = group * s->results + block * rows + r;                         \
                        if (block * rows + r >= s->results) break;                                          \
                        const T start = s->bias ? ((const T *)s->bias)[channel] : 0;                        \
                        EACH(images, i)                                                                     \
                            put_##S(l, sums + r * pitch + i * l->image, n, s->every, to, start, s->to_sizes, \
                                    (T *)s->to + ((image + i) * v->groups * s->results + channel) * to_size); \
                    }                                                                                       \
                }                                                                                           \
        }                                                                                                   \
    }
PACK(f32, float)
PACK(f64, double)

/* Windows whose source fits the cache, or several whole images where they are small; units enough for the threads. */
static void divide(Sum *s)
{
    const Conv *v = s->v;
    Layout *l = &s->layout;
    const long itemsize = v->dtype ? 8 : 4, wanted = 4L * g_runtime.threads;
    l->images = 1;
    for (int d = 0; d < 3; d++) s->chunk[d] = s->adjoint ? divide_up(v->in[d] + v->pad[d], s->every[d]) : v->out[d];
    const long all[3] = {s->chunk[0], s->chunk[1], s->chunk[2]};
    for (;;) {
        for (int d = 0; d < 3; d++) l->size[d] = s->chunk[d] + s->front[d];
        finish_layout(l);
        int d = s->chunk[0] > 1 ? 0 : s->chunk[1] > 1 ? 1 : 2;
        /* A window much shorter than its border would copy the border again for each window. */
        if (s->sources * l->channel * itemsize <= STAGED_BYTES || s->chunk[d] <= (d == 2 ? 256 : 1) || s->chunk[d] <= s->front[d]) break;
        s->chunk[d] = (s->chunk[d] + 1) / 2;
    }
    long windows = 1;
    for (int d = 0; d < 3; d++) windows *= s->windows[d] = divide_up(all[d], s->chunk[d]);
    if (windows == 1) {
        const long fit = STAGED_BYTES / (s->sources * l->channel * itemsize), share = v->n * v->groups / wanted;
        l->images = clip(fit < share ? fit : share, 1, v->n);
        finish_layout(l);
    }
    s->batches = divide_up(v->n, l->images);
    s->blocks = divide_up(s->results, s->kernel.rows);
    s->shares = clip(divide_up(wanted, v->groups * s->batches * windows), 1, s->blocks);
    s->taken = divide_up(s->blocks, s->shares);
    s->shares = divide_up(s->blocks, s->taken);
}

bool direct_convolution(const Conv *v, bool adjoint, const void *from, const void *w, const void *bias, void *to)
{
    Sum s = {.v = v, .adjoint = adjoint, .from = from, .bias = bias, .to = to, .phases = 1};
    s.sources = adjoint ? v->og : v->cg;
    s.results = adjoint ? v->cg : v->og;
    s.from_sizes = adjoint ? v->out : v->in;
    s.to_sizes = adjoint ? v->in : v->out;
    for (int d = 0; d < 3; d++) {
        const long reach = (v->k[d] - 1) * v->dilation[d];
        s.every[d] = adjoint ? v->stride[d] : 1;
        s.layout.step[d] = adjoint ? 1 : v->stride[d];
        s.layout.phases[d] = s.layout.step[d] < reach + 1 ? s.layout.step[d] : reach + 1;
        s.front[d] = reach / v->stride[d];
        s.phases *= s.every[d];
    }
    s.kernel = kernel_for(v->dtype, s.results >= MANY);
    divide(&s);
    s.terms = s.sources * v->k[0] * v->k[1] * v->k[2];
    const int64_t lists = (2 * s.terms + s.phases + 1) * (int64_t)sizeof(long);
    const int64_t bytes = lists + v->groups * s.blocks * s.terms * s.kernel.rows * (v->dtype ? 8 : 4);
    s.offsets = pool_alloc(bytes);
    if (!s.offsets) return false;
    s.term_of = s.offsets + s.terms;
    s.first = s.term_of + s.terms;
    s.packed = (char *)s.offsets + lists;
    list_terms(&s);
    if (v->dtype) pack_f64(&s, w);
    else pack_f32(&s, w);
    const long windows = s.windows[0] * s.windows[1] * s.windows[2];
    parallel(v->dtype ? units_f64 : units_f32, &s, v->groups * s.batches * windows * s.shares, 1, work_of(v));
    pool_free(s.offsets, bytes);
    return true;
}

/* ---- the weight's gradient ---- */

typedef struct {
    const Conv *v;
    const void *x, *g;
    void *to;
    Layout layout;
} Products;

#define PRODUCTS(S, T)                                                                                      \
    typedef T Lanes_##S __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));                    \
    /* sums[t] += the product of g and from + offsets[t], for six taps and whole vectors. */                \
    CLONES static void six_products_##S(T *sums, const T *g, const T *from, const long *offsets, long count) \
    {                                                                                                       \
        enum { N = 64 / sizeof(T) };                                                                        \
        Lanes_##S a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0};                                     \
        const T *pa = from + offsets[0], *pb = from + offsets[1], *pc = from + offsets[2];                  \
        const T *pd = from + offsets[3], *pe = from + offsets[4], *pf = from + offsets[5];                  \
        for (long i = 0; i < count; i += N) {                                                               \
            const Lanes_##S each = *(const Lanes_##S *)(g + i);                                             \
            a += each * *(const Lanes_##S *)(pa + i);                                                       \
            b += each * *(const Lanes_##S *)(pb + i);                                                       \
            c += each * *(const Lanes_##S *)(pc + i);                                                       \
            d += each * *(const Lanes_##S *)(pd + i);                                                       \
            e += each * *(const Lanes_##S *)(pe + i);                                                       \
            f += each * *(const Lanes_##S *)(pf + i);                                                       \
        }                                                                                                   \
        for (int i = 0; i < (int)N; i++) {                                                                  \
            sums[0] += a[i], sums[1] += b[i], sums[2] += c[i];                                              \
            sums[3] += d[i], sums[4] += e[i], sums[5] += f[i];                                              \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: the weights of a group. The cotangent is laid out as the input is, with zeros between its rows. */ \
    static void products_##S(void *context, long begin, long end)                                           \
    {                                                                                                       \
        const Products *s = context;                                                                        \
        const Conv *v = s->v;                                                                               \
        const Layout *l = &s->layout;                                                                       \
        const long taps = v->depth / v->cg, span = flat(l, v->out[0] - 1, v->out[1] - 1, v->out[2] - 1) + 1; \
        const long count = divide_up(span, 64 / (long)sizeof(T)) * (64 / (long)sizeof(T)), held = v->cg * l->channel * (long)sizeof(T); \
        T *x = threads_scratch(&g_runtime, 0, held + SLACK);                                                \
        T *g = threads_scratch(&g_runtime, 1, count * (long)sizeof(T) + v->depth * (long)sizeof(long));     \
        long *offsets = (long *)(g + count);                                                                \
        EACH(v->depth, i) {                                                                                 \
            long at[3];                                                                                     \
            tap_at(v, i % taps, at);                                                                        \
            offsets[i] = i / taps * l->channel + place(l, at[0], at[1], at[2]);                             \
        }                                                                                                   \
        memset((char *)x + held, 0, SLACK);                                                                 \
        memset(g, 0, (size_t)count * sizeof(T));                                                            \
        memset((T *)s->to + begin * v->og * v->depth, 0, (size_t)((end - begin) * v->og * v->depth) * sizeof(T)); \
        for (long group = begin; group < end; group++)                                                      \
            EACH(v->n, image) {                                                                             \
                EACH(v->cg, c)                                                                              \
                    stage_##S(l, v->in, v->pad, (const T *)s->x + (image * v->c + group * v->cg + c) * v->inputs, x + c * l->channel); \
                for (long o = group * v->og; o < (group + 1) * v->og; o++) {                                \
                    const T *row = (const T *)s->g + (image * v->o + o) * v->outputs;                       \
                    EACH(v->out[0], z) EACH(v->out[1], y) {                                                 \
                        memcpy(g + flat(l, z, y, 0), row, (size_t)v->out[2] * sizeof(T));                   \
                        row += v->out[2];                                                                   \
                    }                                                                                       \
                    for (long t = 0; t < v->depth; t += 6) {                                                \
                        T sums[6] = {0};                                                                    \
                        long six[6];                                                                        \
                        for (int i = 0; i < 6; i++) six[i] = offsets[t + i < v->depth ? t + i : t];         \
                        six_products_##S(sums, g, x, six, count);                                           \
                        for (int i = 0; i < 6 && t + i < v->depth; i++) ((T *)s->to)[o * v->depth + t + i] += sums[i]; \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
    }
PRODUCTS(f32, float)
PRODUCTS(f64, double)

void direct_weight_gradient(const Conv *v, const void *x, const void *g, void *to)
{
    Products s = {.v = v, .x = x, .g = g, .to = to, .layout = {.images = 1}};
    Layout *l = &s.layout;
    for (int d = 0; d < 3; d++) {
        const long reach = (v->k[d] - 1) * v->dilation[d];
        l->step[d] = v->stride[d];
        l->phases[d] = v->stride[d] < reach + 1 ? v->stride[d] : reach + 1;
        l->size[d] = v->out[d] + reach / v->stride[d];
    }
    finish_layout(l);
    parallel(v->dtype ? products_f64 : products_f32, &s, v->groups, 1, work_of(v));
}
