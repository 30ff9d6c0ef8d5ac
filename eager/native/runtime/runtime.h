/* The runtime of native loops: threads, scratch memory and matrix products. Generated code gets the table `Runtime` as
 * `inductor.artifact.format.RUNTIME_ABI` describes it; a test compares the structs below with that text. */
#ifndef EAGER_RUNTIME_H
#define EAGER_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define RUNTIME_ABI_VERSION 4

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

/* The table of the process, also in the function table of tensor.h. The caller of checked code sets `fail`. */
extern Runtime g_runtime;

/* Whether blocks of memory have exactly the requested bytes, so that AddressSanitizer finds accesses outside of them. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_EXACT 1
#else
#define MEMORY_IS_EXACT 0
#endif

/* caching_allocator.c: 64-byte aligned memory, a multiple of 64 bytes, for free(); NULL if out of memory. poisoned: fills memory
 * with ones in a -DEAGER_POISON_MEMORY build. */
void *fresh_memory(size_t nbytes);
static inline void *poisoned(void *memory, size_t nbytes)
{
#ifdef EAGER_POISON_MEMORY
    __builtin_memset(memory, 0xff, nbytes);
#else
    (void)nbytes;
#endif
    return memory;
}

/* thread_pool.c */
void threads_set(int threads);
void threads_parallel_for(const Runtime *rt, LoopFn fn, void *ctx, long n, long grain);
/* Between enter and leave idle workers spin briefly before they sleep: the loops of a graph follow
 * one another within microseconds, graphs do not. */
void threads_enter(void);
void threads_leave(void);
void *threads_scratch(const Runtime *rt, int slot, long nbytes);

/* blas_gemm.c: 0, or -1 with a message in *why */
int blas_load(const char *path, const char **why);
int blas_loaded(void);
void blas_gemm(const Runtime *rt, const GemmCall *call, int threads);

#endif
