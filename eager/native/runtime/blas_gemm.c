/* Matrix products through a CBLAS found at run time (the OpenBLAS inside numpy's wheel).
 *
 * OpenBLAS's own threads spin for tens of milliseconds after each product and fight with our pool,
 * so it runs on one thread here, and the pool runs it on blocks of the result. */
#define _GNU_SOURCE
#include "runtime/small_gemm.h"
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
static const double PARALLEL_FLOPS = 4e6; /* about 40 us on one core: what waking a worker costs */
static const double SERIAL_VOLUME = 262144; /* m * n * k up to which OpenBLAS uses one thread regardless of its setting */

/* The integers of an ILP64 CBLAS (symbol suffix 64_) are 64 bits wide; other CBLAS libraries use 32 bits. */
#define DECLARE(name, real, integer)                                                              \
    typedef void (*name)(int, int, int, integer, integer, integer, real, const real *, integer,   \
                         const real *, integer, real, real *, integer)
DECLARE(sgemm64, float, int64_t);
DECLARE(dgemm64, double, int64_t);
DECLARE(sgemm32, float, int32_t);
DECLARE(dgemm32, double, int32_t);

static struct {
    sgemm64 s64;
    dgemm64 d64;
    sgemm32 s32;
    dgemm32 d32;
    void (*set_threads)(int);
    int (*get_threads)(void);
} blas;
static bool loaded;

/* ------------------------------------------------------------------ one thread for OpenBLAS */

static struct {
    pthread_mutex_t mutex;
    int users, before;
} single = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void single_enter(void)
{
    if (!blas.set_threads)
        return;
    pthread_mutex_lock(&single.mutex);
    if (single.users++ == 0) {
        single.before = blas.get_threads();
        if (single.before > 1)
            blas.set_threads(1);
    }
    pthread_mutex_unlock(&single.mutex);
}

static void single_leave(void)
{
    if (!blas.set_threads)
        return;
    pthread_mutex_lock(&single.mutex);
    if (--single.users == 0 && single.before > 1)
        blas.set_threads(single.before);
    pthread_mutex_unlock(&single.mutex);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&single.mutex, NULL);
    single.users = 0;
}

/* ------------------------------------------------------------------ products */

typedef struct {
    const GemmCall *call;
    long rows, cols; /* of one block of the result */
    long row_blocks, col_blocks;
} Blocks;

/* The product without a BLAS: correct and slow (the compiler then prefers its own template). */
#define PLAIN_PRODUCT(name, real)                                                                        \
    static void name(const GemmCall *g, long b, long i, long j, long m, long n)                          \
    {                                                                                                    \
        const real *pa = (const real *)g->a + b * g->stride_a, *pb = (const real *)g->b + b * g->stride_b; \
        real *pc = (real *)g->c + b * g->stride_c;                                                       \
        for (long r = i; r < i + m; r++) {                                                               \
            real *row = pc + r * g->ldc;                                                                 \
            for (long c = j; c < j + n; c++)                                                             \
                row[c] = g->beta == 0 ? 0 : (real)g->beta * row[c];                                      \
            for (long k = 0; k < g->k; k++) {                                                            \
                real x = (real)g->alpha * (g->trans_a ? pa[k * g->lda + r] : pa[r * g->lda + k]);        \
                for (long c = j; c < j + n; c++)                                                         \
                    row[c] += x * (g->trans_b ? pb[c * g->ldb + k] : pb[k * g->ldb + c]);                \
            }                                                                                            \
        }                                                                                                \
    }
PLAIN_PRODUCT(plain_sgemm, float)
PLAIN_PRODUCT(plain_dgemm, double)

static void product(const GemmCall *g, long b, long i, long j, long m, long n)
{
    int ta = g->trans_a ? TRANS : NO_TRANS, tb = g->trans_b ? TRANS : NO_TRANS;
    long offset_a = b * g->stride_a + (g->trans_a ? i : i * g->lda);
    long offset_b = b * g->stride_b + (g->trans_b ? j * g->ldb : j);
    long offset_c = b * g->stride_c + i * g->ldc + j;
    if (!blas.s64 && !blas.s32) {
        (g->dtype == 0 ? plain_sgemm : plain_dgemm)(g, b, i, j, m, n);
        return;
    }
    if (g->dtype == 0) {
        const float *pa = (const float *)g->a + offset_a, *pb = (const float *)g->b + offset_b;
        float *pc = (float *)g->c + offset_c, alpha = (float)g->alpha, beta = (float)g->beta;
        if (blas.s64)
            blas.s64(ROW_MAJOR, ta, tb, m, n, g->k, alpha, pa, g->lda, pb, g->ldb, beta, pc, g->ldc);
        else
            blas.s32(ROW_MAJOR, ta, tb, (int32_t)m, (int32_t)n, (int32_t)g->k, alpha, pa,
                     (int32_t)g->lda, pb, (int32_t)g->ldb, beta, pc, (int32_t)g->ldc);
    } else {
        const double *pa = (const double *)g->a + offset_a, *pb = (const double *)g->b + offset_b;
        double *pc = (double *)g->c + offset_c;
        if (blas.d64)
            blas.d64(ROW_MAJOR, ta, tb, m, n, g->k, g->alpha, pa, g->lda, pb, g->ldb, g->beta, pc, g->ldc);
        else
            blas.d32(ROW_MAJOR, ta, tb, (int32_t)m, (int32_t)n, (int32_t)g->k, g->alpha, pa,
                     (int32_t)g->lda, pb, (int32_t)g->ldb, g->beta, pc, (int32_t)g->ldc);
    }
}

static void product_blocks(void *ctx, long begin, long end)
{
    const Blocks *blocks = ctx;
    const GemmCall *g = blocks->call;
    for (long t = begin; t < end; t++) {
        long j = t % blocks->col_blocks * blocks->cols;
        long i = t / blocks->col_blocks % blocks->row_blocks * blocks->rows;
        long b = t / (blocks->col_blocks * blocks->row_blocks);
        long m = g->m - i < blocks->rows ? g->m - i : blocks->rows;
        long n = g->n - j < blocks->cols ? g->n - j : blocks->cols;
        product(g, b, i, j, m, n);
    }
}

static long share_of(long size, long threads, long multiple)
{
    long share = (size + threads - 1) / threads;
    share = (share + multiple - 1) / multiple * multiple;
    return share < 1 ? 1 : share;
}

void blas_gemm(const Runtime *rt, const GemmCall *call, int threads)
{
    if (call->batch <= 0 || call->m <= 0 || call->n <= 0)
        return;
    if (small_gemm(rt, call, threads))
        return;
    Blocks blocks = {call, call->m, call->n, 1, 1};
    double flops = 2.0 * (double)call->batch * (double)call->m * (double)call->n * (double)call->k;
    bool parallel = threads > 1 && flops >= PARALLEL_FLOPS;
    if (parallel && call->batch < threads) {
        if (call->n >= call->m) {
            blocks.cols = share_of(call->n, threads, 32);
            blocks.col_blocks = (call->n + blocks.cols - 1) / blocks.cols;
        } else {
            blocks.rows = share_of(call->m, threads, 16);
            blocks.row_blocks = (call->m + blocks.rows - 1) / blocks.rows;
        }
    }
    long tasks = call->batch * blocks.row_blocks * blocks.col_blocks;
    bool alone = (double)call->m * (double)call->n * (double)call->k > SERIAL_VOLUME;
    if (alone)
        single_enter();
    if (parallel)
        rt->parallel_for(rt, product_blocks, &blocks, tasks, 1);
    else
        product_blocks(&blocks, 0, tasks);
    if (alone)
        single_leave();
}

/* ------------------------------------------------------------------ finding it */

static void *find(void *library, const char *const *names)
{
    for (; *names; names++) {
        void *address = dlsym(library, *names);
        if (address)
            return address;
    }
    return NULL;
}

int blas_load(const char *path, const char **why)
{
    static const char *const S64[] = {"scipy_cblas_sgemm64_", "cblas_sgemm64_", NULL};
    static const char *const D64[] = {"scipy_cblas_dgemm64_", "cblas_dgemm64_", NULL};
    static const char *const S32[] = {"scipy_cblas_sgemm", "cblas_sgemm", NULL};
    static const char *const D32[] = {"scipy_cblas_dgemm", "cblas_dgemm", NULL};
    static const char *const SET[] = {"scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_",
                                      "scipy_openblas_set_num_threads", "openblas_set_num_threads", NULL};
    static const char *const GET[] = {"scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_",
                                      "scipy_openblas_get_num_threads", "openblas_get_num_threads", NULL};
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        *why = dlerror();
        return -1;
    }
    blas.s64 = (sgemm64)find(library, S64);
    blas.d64 = (dgemm64)find(library, D64);
    blas.s32 = (sgemm32)find(library, S32);
    blas.d32 = (dgemm32)find(library, D32);
    if (!(blas.s64 && blas.d64) && !(blas.s32 && blas.d32)) {
        *why = "it exports no cblas_sgemm and cblas_dgemm";
        dlclose(library);
        return -1;
    }
    blas.set_threads = (void (*)(int))find(library, SET);
    blas.get_threads = (int (*)(void))find(library, GET);
    if (!blas.get_threads)
        blas.set_threads = NULL;
    loaded = true;
    static bool registered;
    if (!registered) {
        registered = true;
        pthread_atfork(NULL, NULL, after_fork_in_child);
    }
    return 0;
}

int blas_loaded(void) { return loaded; }
