/* Convolution where a group has few channels, as in depthwise convolution: too few for a matrix product to pay.
 *
 * Each channel is laid out with its padding, one plane for each remainder of a position by the stride. Then a tap of the
 * kernel is one offset for all output positions, and a row of positions goes on in the next: an output channel is a weighted
 * sum of shifted copies of one long line, of which the positions that lie between rows are thrown away. The sums stay in
 * registers over all taps. The adjoint in the input is such a sum for each plane, and that in the weight a scalar product
 * for each tap. */
#define PY_SSIZE_T_CLEAN
#include "kernels.h"
KERNEL_FILE
#include "conv.h"
#include "direct.h"

enum { BLOCK = 64 * 6 }; /* bytes that one pass over the taps sums: six accumulators */

typedef struct {
    const Conv *v;
    const void *x, *w, *bias, *g;
    void *y;
} Job;

/* How a channel lies in memory: stride[0] * stride[1] * stride[2] planes of size[0] * size[1] * size[2]. */
typedef struct {
    long size[3], plane, channel;
} Layout;

/* Positions by stride, `front` more before them. */
static Layout lay_out(const Conv *v, const long *front, bool by_phase)
{
    Layout l;
    for (int d = 0; d < 3; d++) l.size[d] = front[d] + (v->in[d] + 2 * v->pad[d] + v->stride[d] - 1) / v->stride[d];
    l.plane = l.size[0] * l.size[1] * l.size[2];
    l.channel = by_phase ? l.plane * v->stride[0] * v->stride[1] * v->stride[2] : l.plane;
    return l;
}

static long flat(const Layout *l, long z, long y, long x) { return (z * l->size[1] + y) * l->size[2] + x; }

/* The plane that position z, y, x of the padded input lies in. */
static long phase(const Conv *v, long z, long y, long x)
{
    return (z % v->stride[0] * v->stride[1] + y % v->stride[1]) * v->stride[2] + x % v->stride[2];
}

static void tap_at(const Conv *v, long t, long *z, long *y, long *x)
{
    *x = t % v->k[2] * v->dilation[2];
    *y = t / v->k[2] % v->k[1] * v->dilation[1];
    *z = t / (v->k[2] * v->k[1]) * v->dilation[0];
}

/* Offsets of all taps of all channels of a group in staged input. */
static void offsets_of_taps(const Conv *v, const Layout *l, long *offsets)
{
    const long taps = v->depth / v->cg;
    for (long i = 0; i < v->depth; i++) {
        long z, y, x;
        tap_at(v, i % taps, &z, &y, &x);
        offsets[i] = i / taps * l->channel + phase(v, z, y, x) * l->plane +
                     flat(l, z / v->stride[0], y / v->stride[1], x / v->stride[2]);
    }
}

/* From the first output position to behind the last, those between rows counted. */
static long span(const Conv *v, const Layout *l) { return flat(l, v->out[0] - 1, v->out[1] - 1, v->out[2] - 1) + 1; }

static long whole_blocks(long elements, long itemsize) { return (elements * itemsize + BLOCK - 1) / BLOCK * BLOCK / itemsize; }

#define FOR_ROWS(sizes, z, y)                  \
    for (long z = 0; z < (sizes)[0]; z++)      \
        for (long y = 0; y < (sizes)[1]; y++)

#define DEPTHWISE(S, T)                                                                                     \
    typedef T Lanes_##S __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));                    \
    /* One channel into its planes; what is not written stays, and is zero. */                              \
    CLONES static void stage_##S(const Conv *v, const Layout *l, const T *restrict from, T *restrict to)    \
    {                                                                                                       \
        FOR_ROWS(v->in, z, y)                                                                               \
        {                                                                                                   \
            const long zp = z + v->pad[0], yp = y + v->pad[1], s = v->stride[2];                            \
            T *restrict row = to + phase(v, zp, yp, 0) * l->plane + flat(l, zp / v->stride[0], yp / v->stride[1], 0); \
            if (s == 1) memcpy(row + v->pad[2], from, (size_t)v->in[2] * sizeof(T));                        \
            else                                                                                            \
                for (long first = 0; first < s && first < v->in[2]; first++) {                              \
                    const long xp = first + v->pad[2], n = (v->in[2] - first + s - 1) / s;                  \
                    T *restrict line = row + xp % s * l->plane + xp / s;                                    \
                    for (long i = 0; i < n; i++) line[i] = from[first + i * s];                             \
                }                                                                                           \
            from += v->in[2];                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* to[i] = sum over taps of w[t] * from[i + offsets[t]], for whole blocks. */                           \
    CLONES static void sum_taps_##S(T *to, const T *from, const T *w, const long *offsets, long taps, long count) \
    {                                                                                                       \
        enum { N = 64 / sizeof(T) };                                                                        \
        for (long i = 0; i < count; i += 6 * N) {                                                           \
            Lanes_##S a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0};                                 \
            for (long t = 0; t < taps; t++) {                                                               \
                const Lanes_##S *at = (const Lanes_##S *)(from + offsets[t] + i);                           \
                const T scale = w[t];                                                                       \
                a += scale * at[0];                                                                         \
                b += scale * at[1];                                                                         \
                c += scale * at[2];                                                                         \
                d += scale * at[3];                                                                         \
                e += scale * at[4];                                                                         \
                f += scale * at[5];                                                                         \
            }                                                                                               \
            Lanes_##S *out = (Lanes_##S *)(to + i);                                                         \
            out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e, out[5] = f;                         \
        }                                                                                                   \
    }                                                                                                       \
    /* sums[t] += the product of g and from + offsets[t], for six taps and whole blocks. */                 \
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
    /* One unit: a group of an image. */                                                                    \
    static void forward_##S(void *context, long begin, long end)                                            \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const Conv *v = job->v;                                                                             \
        const Layout l = lay_out(v, (long[3]){0}, true);                                                    \
        const long count = whole_blocks(span(v, &l), sizeof(T)), staged = v->cg * l.channel + BLOCK / (long)sizeof(T); \
        T *in = threads_scratch(&g_runtime, 0, staged * (long)sizeof(T));                                   \
        T *sum = threads_scratch(&g_runtime, 1, count * (long)sizeof(T) + v->depth * (long)sizeof(long));   \
        long *offsets = (long *)(sum + count);                                                              \
        offsets_of_taps(v, &l, offsets);                                                                    \
        memset(in, 0, (size_t)staged * sizeof(T));                                                          \
        for (long unit = begin; unit < end; unit++) {                                                       \
            const long image = unit / v->groups, group = unit % v->groups;                                  \
            for (long c = 0; c < v->cg; c++)                                                                \
                stage_##S(v, &l, (const T *)job->x + (image * v->c + group * v->cg + c) * v->inputs, in + c * l.channel); \
            for (long o = group * v->og; o < (group + 1) * v->og; o++) {                                    \
                sum_taps_##S(sum, in, (const T *)job->w + o * v->depth, offsets, v->depth, count);          \
                T *restrict y = (T *)job->y + (image * v->o + o) * v->outputs;                              \
                const T start = job->bias ? ((const T *)job->bias)[o] : 0;                                  \
                FOR_ROWS(v->out, z, r)                                                                      \
                {                                                                                           \
                    const T *restrict row = sum + flat(&l, z, r, 0);                                        \
                    for (long i = 0; i < v->out[2]; i++) y[i] = start + row[i];                             \
                    y += v->out[2];                                                                         \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: a group of an image. Each plane of the input's gradient is a sum over the taps that read it. */ \
    static void adjoint_##S(void *context, long begin, long end)                                            \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const Conv *v = job->v;                                                                             \
        const long taps = v->depth / v->cg, *s = v->stride;                                                 \
        long front[3];                                                                                      \
        for (int d = 0; d < 3; d++) front[d] = (v->k[d] - 1) * v->dilation[d] / s[d];                       \
        const Layout l = lay_out(v, front, false), q = lay_out(v, (long[3]){0}, false);                     \
        const long from = flat(&l, front[0], front[1], front[2]);                                           \
        const long count = whole_blocks(flat(&l, q.size[0] - 1, q.size[1] - 1, q.size[2] - 1) + 1, sizeof(T)); \
        const long staged = v->og * l.channel + BLOCK / (long)sizeof(T);                                    \
        T *in = threads_scratch(&g_runtime, 0, staged * (long)sizeof(T));                                   \
        T *sum = threads_scratch(&g_runtime, 1, count * (long)sizeof(T) + v->og * taps * (long)(sizeof(long) + sizeof(T))); \
        long *offsets = (long *)(sum + count);                                                              \
        T *w = (T *)(offsets + v->og * taps);                                                               \
        memset(in, 0, (size_t)staged * sizeof(T));                                                          \
        for (long unit = begin; unit < end; unit++) {                                                       \
            const long image = unit / v->groups, group = unit % v->groups;                                  \
            const T *g = (const T *)job->g + (image * v->o + group * v->og) * v->outputs;                   \
            for (long o = 0; o < v->og; o++)                                                                \
                FOR_ROWS(v->out, z, r)                                                                      \
                {                                                                                           \
                    memcpy(in + o * l.channel + from + flat(&l, z, r, 0), g, (size_t)v->out[2] * sizeof(T)); \
                    g += v->out[2];                                                                         \
                }                                                                                           \
            for (long c = 0; c < v->cg; c++)                                                                \
                for (long p = 0; p < s[0] * s[1] * s[2]; p++) {                                             \
                    const long pz = p / (s[1] * s[2]), py = p / s[2] % s[1], px = p % s[2];                 \
                    long used = 0;                                                                          \
                    for (long i = 0; i < v->og * taps; i++) {                                               \
                        long z, y, x;                                                                       \
                        tap_at(v, i % taps, &z, &y, &x);                                                    \
                        if (phase(v, z, y, x) != p) continue;                                               \
                        w[used] = ((const T *)job->w)[((group * v->og + i / taps) * v->cg + c) * taps + i % taps]; \
                        offsets[used++] = i / taps * l.channel + from - flat(&l, z / s[0], y / s[1], x / s[2]); \
                    }                                                                                       \
                    sum_taps_##S(sum, in, w, offsets, used, count);                                         \
                    const long channel = group * v->cg + c;                                                 \
                    put_plane_##S(v, &l, sum, (const long[3]){pz, py, px}, job->bias ? ((const T *)job->bias)[channel] : 0, \
                                  (T *)job->y + (image * v->c + channel) * v->inputs);                      \
                }                                                                                           \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: the weights of a group. */                                                                 \
    static void weight_##S(void *context, long begin, long end)                                             \
    {                                                                                                       \
        const Job *job = context;                                                                           \
        const Conv *v = job->v;                                                                             \
        const Layout l = lay_out(v, (long[3]){0}, true);                                                    \
        const long count = whole_blocks(span(v, &l), sizeof(T)), staged = v->cg * l.channel + BLOCK / (long)sizeof(T); \
        T *in = threads_scratch(&g_runtime, 0, staged * (long)sizeof(T));                                   \
        T *g = threads_scratch(&g_runtime, 1, count * (long)sizeof(T) + v->depth * (long)sizeof(long));     \
        long *offsets = (long *)(g + count);                                                                \
        offsets_of_taps(v, &l, offsets);                                                                    \
        memset(in, 0, (size_t)staged * sizeof(T));                                                          \
        memset(g, 0, (size_t)count * sizeof(T));                                                            \
        memset((T *)job->y + begin * v->og * v->depth, 0, (size_t)((end - begin) * v->og * v->depth) * sizeof(T)); \
        for (long group = begin; group < end; group++)                                                      \
            for (long image = 0; image < v->n; image++) {                                                   \
                for (long c = 0; c < v->cg; c++)                                                            \
                    stage_##S(v, &l, (const T *)job->x + (image * v->c + group * v->cg + c) * v->inputs, in + c * l.channel); \
                for (long o = group * v->og; o < (group + 1) * v->og; o++) {                                \
                    const T *row = (const T *)job->g + (image * v->o + o) * v->outputs;                     \
                    FOR_ROWS(v->out, z, r)                                                                  \
                    {                                                                                       \
                        memcpy(g + flat(&l, z, r, 0), row, (size_t)v->out[2] * sizeof(T));                  \
                        row += v->out[2];                                                                   \
                    }                                                                                       \
                    for (long t = 0; t < v->depth; t += 6) {                                                \
                        T sums[6] = {0};                                                                    \
                        long six[6];                                                                        \
                        for (int i = 0; i < 6; i++) six[i] = offsets[t + i < v->depth ? t + i : t];         \
                        six_products_##S(sums, g, in, six, count);                                          \
                        for (int i = 0; i < 6 && t + i < v->depth; i++) ((T *)job->y)[o * v->depth + t + i] += sums[i]; \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
    }

/* A plane of the input's gradient to where its elements are; what lies in the padding is nowhere. */
#define PUT_PLANE(S, T)                                                                                     \
    CLONES static void put_plane_##S(const Conv *v, const Layout *l, const T *restrict sum, const long *at, T start, T *restrict y) \
    {                                                                                                       \
        long first[3], skip[3];                                                                             \
        for (int d = 0; d < 3; d++) {                                                                       \
            first[d] = (at[d] - v->pad[d] % v->stride[d] + v->stride[d]) % v->stride[d];                    \
            skip[d] = (first[d] + v->pad[d]) / v->stride[d];                                                \
        }                                                                                                   \
        for (long z = first[0]; z < v->in[0]; z += v->stride[0])                                            \
            for (long r = first[1]; r < v->in[1]; r += v->stride[1]) {                                      \
                const T *restrict from = sum + flat(l, skip[0] + z / v->stride[0], skip[1] + r / v->stride[1], skip[2]); \
                T *restrict to = y + (z * v->in[1] + r) * v->in[2];                                         \
                if (v->stride[2] == 1) for (long i = 0; i < v->in[2]; i++) to[i] = start + from[i];         \
                else for (long i = first[2]; i < v->in[2]; i += v->stride[2]) to[i] = start + *from++;      \
            }                                                                                               \
    }
PUT_PLANE(f32, float)
PUT_PLANE(f64, double)
DEPTHWISE(f32, float)
DEPTHWISE(f64, double)

static double work_of(const Conv *v) { return (double)v->n * (double)v->o * (double)v->depth * (double)v->outputs; }

void depthwise_forward(const Conv *v, const void *x, const void *w, const void *bias, void *y)
{
    Job job = {.v = v, .x = x, .w = w, .bias = bias, .y = y};
    parallel(v->dtype ? forward_f64 : forward_f32, &job, v->n * v->groups, 1, work_of(v));
}

void depthwise_adjoint(const Conv *v, const void *g, const void *w, const void *bias, void *y)
{
    Job job = {.v = v, .g = g, .w = w, .bias = bias, .y = y};
    parallel(v->dtype ? adjoint_f64 : adjoint_f32, &job, v->n * v->groups, 1, work_of(v));
}

void depthwise_weight(const Conv *v, const void *x, const void *g, void *y)
{
    Job job = {.v = v, .x = x, .g = g, .y = y};
    parallel(v->dtype ? weight_f64 : weight_f32, &job, v->groups, 1, work_of(v));
}
