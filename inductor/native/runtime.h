/* The table that generated code calls, as `inductor.artifact.RUNTIME_ABI` describes it, and what the
 * files of this extension share. A test holds the structs below against that text. */
#ifndef INDUCTOR_RUNTIME_H
#define INDUCTOR_RUNTIME_H

#include <stdint.h>

#define RUNTIME_ABI_VERSION 3

typedef struct Runtime Runtime;
typedef struct {
    int dtype, trans_a, trans_b;
    long batch, m, n, k;
    long lda, ldb, ldc;
    long stride_a, stride_b, stride_c;
    double alpha, beta;
    const void *a, *b;
    void *c;
} GemmCall;
typedef void (*LoopFn)(void *ctx, long begin, long end);
struct Runtime {
    int version;
    int threads;
    void (*parallel_for)(const Runtime *rt, LoopFn fn, void *ctx, long n, long grain);
    void (*gemm)(const Runtime *rt, const GemmCall *call, int threads);
    void *(*scratch)(const Runtime *rt, int slot, long nbytes);
    void (*fail)(const Runtime *rt, int check, long value);
};

typedef void (*SegmentFn)(char **bufs, const Runtime *rt);
typedef void (*PackFn)(const void *source, void *target);

extern Runtime g_runtime;

/* pool.c */
void pool_set_threads(int threads);
void pool_parallel_for(const Runtime *rt, LoopFn fn, void *ctx, long n, long grain);
/* Between enter and leave idle workers spin briefly before they sleep: the loops of a graph follow
 * one another within microseconds, graphs do not. */
void pool_enter(void);
void pool_leave(void);
void *pool_scratch(const Runtime *rt, int slot, long nbytes);

/* graph_call.c */
void graph_fail(const Runtime *rt, int check, long value);

/* blas.c: 0, or -1 with a message in *why */
int blas_load(const char *path, const char **why);
int blas_loaded(void);
void blas_gemm(const Runtime *rt, const GemmCall *call, int threads);

#endif
