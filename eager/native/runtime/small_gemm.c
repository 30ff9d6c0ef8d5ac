/* Matrix products with few rows or few columns, such as `linear` of a few rows. BLAS first packs the large operand, which costs
 * more than the product if the small operand has few lines to share that cost. Here both operands are read in place, and the sums
 * of a tile stay in registers.
 *
 * The small operand comes first (its rows lie along the summed index); a product with few columns is transposed. If the lines of
 * the large operand lie along the summed index, the tiles are dot products (`dots`); otherwise weighted sums of lines (`strips`). */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "runtime/small_gemm.h"

#include <stddef.h>

enum {
    MAX_SMALL_ROWS = 64,       /* rows up to which this is better than BLAS */
    MIN_DEPTH = 64,  /* summed index from which it is */
    MAX_TILE_ROWS = 6,       /* rows of a tile */
    TILE_COLUMNS = 4,     /* columns of a tile of dots; vectors of a tile of strips */
    MAX_TILE_COLUMNS = 64,    /* columns of any tile */
    TASK_BYTES = 32 << 10 /* of the large operand, about, in a task of dots */
};
static const double PARALLEL_FLOPS = 1e6; /* about 20 us: these products wait for memory */

/* sums[p * columns + q] = row p of a (`lda` apart, k numbers) times column q of b, for the rows that it is made for. */
typedef void (*TileFn)(const void *a, long lda, const void *b, long ldb, long k, void *sums);

typedef float half_f32 __attribute__((vector_size(16)));
typedef double half_f64 __attribute__((vector_size(16)));
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (int __attribute__((vector_size(16)))){__VA_ARGS__})
#endif

/* to[q] = the sum over the lanes of part[q] */
static inline __attribute__((always_inline)) void across_f32(const half_f32 *part, float *to)
{
    const half_f32 ab = PICK(part[0], part[1], 0, 4, 1, 5) + PICK(part[0], part[1], 2, 6, 3, 7);
    const half_f32 cd = PICK(part[2], part[3], 0, 4, 1, 5) + PICK(part[2], part[3], 2, 6, 3, 7);
    *(half_f32 *)to = PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);
}

static inline __attribute__((always_inline)) void across_f64(const half_f64 *part, double *to)
{
    for (int q = 0; q < TILE_COLUMNS; q++) to[q] = part[q][0] + part[q][1];
}

#define UNROLLED(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

/* Lanes are folded to 16 bytes, then across four sums. */
#define TILES(FORM, TARGET, S, T, BYTES, P)                                                                   \
    TARGET static void dots##P##_##FORM##_##S(const void *a, long lda, const void *b, long ldb, long k, void *sums) \
    {                                                                                                         \
        typedef T All __attribute__((vector_size(BYTES)));                                                    \
        typedef T Read __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                    \
        typedef union { All all; half_##S parts[BYTES / 16]; } Folded;                                        \
        const T *left = a, *right = b;                                                                        \
        All acc[P][TILE_COLUMNS];                                                                             \
        UNROLLED(p, P) UNROLLED(q, TILE_COLUMNS) acc[p][q] = (All){0};                                        \
        long i = 0;                                                                                           \
        for (; i + (long)(BYTES / sizeof(T)) <= k; i += BYTES / sizeof(T)) {                                  \
            All y[TILE_COLUMNS];                                                                              \
            UNROLLED(q, TILE_COLUMNS) y[q] = *(const Read *)(right + q * ldb + i);                            \
            UNROLLED(p, P) {                                                                                  \
                const All x = *(const Read *)(left + p * lda + i);                                            \
                UNROLLED(q, TILE_COLUMNS) acc[p][q] += x * y[q];                                              \
            }                                                                                                 \
        }                                                                                                     \
        UNROLLED(p, P) {                                                                                      \
            half_##S part[TILE_COLUMNS];                                                                      \
            UNROLLED(q, TILE_COLUMNS) {                                                                       \
                const Folded f = {acc[p][q]};                                                                 \
                part[q] = f.parts[0];                                                                         \
                UNROLLED(h, (int)(BYTES / 16) - 1) part[q] += f.parts[h + 1];                                 \
            }                                                                                                 \
            across_##S(part, (T *)sums + p * TILE_COLUMNS);                                                   \
        }                                                                                                     \
        for (; i < k; i++)                                                                                    \
            for (int p = 0; p < P; p++)                                                                       \
                for (int q = 0; q < TILE_COLUMNS; q++) ((T *)sums)[p * TILE_COLUMNS + q] += left[p * lda + i] * right[q * ldb + i]; \
    }                                                                                                         \
    TARGET static void strips##P##_##FORM##_##S(const void *a, long lda, const void *b, long ldb, long k, void *sums) \
    {                                                                                                         \
        typedef T All __attribute__((vector_size(BYTES)));                                                    \
        typedef T Read __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                    \
        const T *left = a, *right = b;                                                                        \
        All acc[P][TILE_COLUMNS];                                                                             \
        UNROLLED(p, P) UNROLLED(q, TILE_COLUMNS) acc[p][q] = (All){0};                                        \
        for (long i = 0; i < k; i++, right += ldb) {                                                          \
            All y[TILE_COLUMNS];                                                                              \
            UNROLLED(q, TILE_COLUMNS) __builtin_prefetch((const char *)(right + 8 * ldb) + q * BYTES);        \
            UNROLLED(q, TILE_COLUMNS) y[q] = ((const Read *)right)[q];                                        \
            UNROLLED(p, P) {                                                                                  \
                const T x = left[p * lda + i];                                                                \
                UNROLLED(q, TILE_COLUMNS) acc[p][q] += x * y[q];                                              \
            }                                                                                                 \
        }                                                                                                     \
        UNROLLED(p, P) UNROLLED(q, TILE_COLUMNS) ((Read *)sums)[p * TILE_COLUMNS + q] = acc[p][q];            \
    }

typedef struct {
    long most, lanes;           /* entries of the tables; numbers in a vector */
    TileFn dots[MAX_TILE_ROWS + 1], strips[MAX_TILE_ROWS + 1]; /* by rows */
} Kernels;

/* Accumulators for the registers there are: 16, 16 and 32. */
#define BOTH(FORM, TARGET, BYTES, P) TILES(FORM, TARGET, f32, float, BYTES, P) TILES(FORM, TARGET, f64, double, BYTES, P)
#define UP_TO_2(FORM, S, LANES)                                                                                       \
    {2, LANES, {NULL, dots1_##FORM##_##S, dots2_##FORM##_##S}, {NULL, strips1_##FORM##_##S, strips2_##FORM##_##S}}
BOTH(narrow, , 16, 1) BOTH(narrow, , 16, 2)
static const Kernels narrow[2] = {UP_TO_2(narrow, f32, 4), UP_TO_2(narrow, f64, 2)};
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512")))
#define SIX(KIND, S) {NULL, KIND##1_wide_##S, KIND##2_wide_##S, KIND##3_wide_##S, KIND##4_wide_##S, KIND##5_wide_##S, KIND##6_wide_##S}
BOTH(middle, AVX2, 32, 1) BOTH(middle, AVX2, 32, 2)
BOTH(wide, AVX512, 64, 1) BOTH(wide, AVX512, 64, 2) BOTH(wide, AVX512, 64, 3)
BOTH(wide, AVX512, 64, 4) BOTH(wide, AVX512, 64, 5) BOTH(wide, AVX512, 64, 6)
static const Kernels middle[2] = {UP_TO_2(middle, f32, 8), UP_TO_2(middle, f64, 4)};
static const Kernels wide[2] = {{6, 16, SIX(dots, f32), SIX(strips, f32)}, {6, 8, SIX(dots, f64), SIX(strips, f64)}};
#endif

static const Kernels *kernels_for(int dtype)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return &wide[dtype];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &middle[dtype];
#endif
    return &narrow[dtype];
}

/* The products of a call, small operand first: element (i, j) of a result is c[i * step_i + j * step_j]. */
typedef struct {
    const GemmCall *call;
    const char *a, *b;
    long stride_a, stride_b;  /* from one product to the next, in numbers */
    long m, n, lda, ldb, step_i, step_j;
    long column;              /* from one column of b to the next */
    long columns, task;       /* columns of a tile, of a task */
    long tasks;               /* of one product */
    const TileFn *tiles;
    long most;
} Job;

#define PUT(S, T)                                                                                          \
    static void put_##S(const Job *g, T *c, const T *sums, long rows, long columns)                        \
    {                                                                                                      \
        const T alpha = (T)g->call->alpha, beta = (T)g->call->beta;                                        \
        for (long p = 0; p < rows; p++, c += g->step_i, sums += g->columns) {                              \
            if (g->step_j == 1 && beta == 0)                                                               \
                LOOP_APART for (long q = 0; q < columns; q++) c[q] = alpha * sums[q];                      \
            else if (g->step_j == 1)                                                                       \
                LOOP_APART for (long q = 0; q < columns; q++) c[q] = beta * c[q] + alpha * sums[q];        \
            else                                                                                           \
                for (long q = 0; q < columns; q++) {                                                       \
                    T *to = c + q * g->step_j;                                                             \
                    *to = beta == 0 ? alpha * sums[q] : beta * *to + alpha * sums[q];                      \
                }                                                                                          \
        }                                                                                                  \
    }
PUT(f32, float)
PUT(f64, double)

/* Columns [first, last) of product `number`: they stay in the cache while the rows pass. The last tile of b is shifted back to end
 * with b; the columns that it computes again are skipped. */
static void columns_of_product(const Job *g, long number, long first, long last)
{
    const long size = g->call->dtype ? 8 : 4, tiles = (g->m + g->most - 1) / g->most;
    const char *a = g->a + number * g->stride_a * size, *b = g->b + number * g->stride_b * size;
    char *c = (char *)g->call->c + number * g->call->stride_c * size;
    _Alignas(64) double sums[MAX_TILE_ROWS * MAX_TILE_COLUMNS];
    for (long t = 0; t < tiles; t++) {
        const long i = g->m * t / tiles, rows = g->m * (t + 1) / tiles - i; /* shared out evenly */
        for (long j = first; j < last; j += g->columns) {
            const long at = j + g->columns <= g->n ? j : g->n - g->columns, skip = j - at;
            const long columns = (last - j < g->columns ? last - j : g->columns - skip);
            g->tiles[rows](a + i * g->lda * size, g->lda, b + at * g->column * size, g->ldb, g->call->k, sums);
            char *to = c + (i * g->step_i + j * g->step_j) * size;
            if (g->call->dtype) put_f64(g, (double *)to, sums + skip, rows, columns);
            else put_f32(g, (float *)to, (const float *)sums + skip, rows, columns);
        }
    }
}

static void run_tasks(void *ctx, long begin, long end)
{
    const Job *g = ctx;
    for (long t = begin; t < end; t++) {
        const long first = t % g->tasks * g->task;
        columns_of_product(g, t / g->tasks, first, first + g->task < g->n ? first + g->task : g->n);
    }
}

/* Orders the operands, small one first; false unless the rows of the small operand lie along the summed index. */
static bool order_operands(Job *g, const GemmCall *call, bool *dots)
{
    const bool transposed = call->n < call->m;
    g->call = call;
    g->a = transposed ? call->b : call->a;
    g->b = transposed ? call->a : call->b;
    g->stride_a = transposed ? call->stride_b : call->stride_a;
    g->stride_b = transposed ? call->stride_a : call->stride_b;
    g->m = transposed ? call->n : call->m;
    g->n = transposed ? call->m : call->n;
    g->lda = transposed ? call->ldb : call->lda;
    g->ldb = transposed ? call->lda : call->ldb;
    g->step_i = transposed ? 1 : call->ldc;
    g->step_j = transposed ? call->ldc : 1;
    const bool across = transposed ? !call->trans_b : call->trans_a; /* the rows of the small one */
    *dots = transposed ? !call->trans_a : call->trans_b;
    g->column = *dots ? g->ldb : 1;
    return !across || (g->m == 1 && g->lda == 1);
}

bool small_gemm(const Runtime *rt, const GemmCall *call, int threads)
{
    Job g;
    bool dots;
    if (call->k < MIN_DEPTH || !order_operands(&g, call, &dots) || g.m > MAX_SMALL_ROWS) return false;
    const Kernels *kernels = kernels_for(call->dtype);
    const long size = call->dtype ? 8 : 4;
    g.tiles = dots ? kernels->dots : kernels->strips;
    g.most = kernels->most;
    g.columns = dots ? TILE_COLUMNS : TILE_COLUMNS * kernels->lanes;
    if (g.n < g.columns) return false;
    const long lines = TASK_BYTES / (call->k * size) / TILE_COLUMNS * TILE_COLUMNS;
    g.task = !dots ? g.columns : lines < TILE_COLUMNS ? TILE_COLUMNS : lines;
    g.tasks = (g.n + g.task - 1) / g.task;
    const double flops = 2.0 * (double)call->batch * (double)call->m * (double)call->n * (double)call->k;
    const long all = call->batch * g.tasks;
    if (threads > 1 && flops >= PARALLEL_FLOPS) rt->parallel_for(rt, run_tasks, &g, all, 1);
    else run_tasks(&g, 0, all);
    return true;
}
