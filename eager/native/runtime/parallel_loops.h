/* Loops compiled for several instruction sets, and loops spread over the threads. */
#ifndef EAGER_PARALLEL_LOOPS_H
#define EAGER_PARALLEL_LOOPS_H

#include "runtime/runtime.h"

#include <Python.h>

/* A file of kernels begins with KERNEL_FILE: its loops become vectors. (That mathematical functions set no errno and
 * comparisons raise no floating-point flags, which vectors need as well, is said for the whole extension.) */
#if defined(__GNUC__) && !defined(__clang__)
#define KERNEL_FILE _Pragma("GCC optimize(\"O3\")")
#else
#define KERNEL_FILE
#endif

/* A function compiled for wide vectors as well; which form runs is chosen by the CPU's features when the library is
 * loaded. (`arch=` with the name of a CPU would ask for that very model.) Not under a sanitizer, which is not ready yet
 * when that choice runs. */
#if !defined(__SANITIZE_ADDRESS__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

/* Before a loop whose iterations touch no element of one another; an iteration may write what it has read. */
#if defined(__clang__)
#define LOOP_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP_APART _Pragma("GCC ivdep")
#endif

enum { PARALLEL_ELEMENTS = 32768 }; /* below it waking a thread costs more than the loop */

/* fn over [0, n) in parts of at least `grain`, without the GIL where `work` elements make it worth while. */
static inline void parallel(LoopFn fn, void *ctx, long n, long grain, double work)
{
    if (work < PARALLEL_ELEMENTS) {
        fn(ctx, 0, n);
        return;
    }
    PyThreadState *saved = PyEval_SaveThread();
    threads_parallel_for(&g_runtime, fn, ctx, n, grain < 1 ? 1 : grain);
    PyEval_RestoreThread(saved);
}
#endif
