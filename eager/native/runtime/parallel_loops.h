/* Loops compiled for several instruction sets, and loops spread over the threads. */
#ifndef EAGER_PARALLEL_LOOPS_H
#define EAGER_PARALLEL_LOOPS_H

#include "runtime/runtime.h"

#include <Python.h>

/* A file of loops begins with KERNEL_FILE, which enables vectorisation. (Vectorisation also needs mathematical functions that set
 * no errno and comparisons that raise no floating-point flags: the build sets these options for the whole extension.) */
#if defined(__GNUC__) && !defined(__clang__)
#define KERNEL_FILE _Pragma("GCC optimize(\"O3\")")
#else
#define KERNEL_FILE
#endif

/* Compiles a function for wide vectors as well; the CPU's features choose the form when the library is loaded. (`arch=` with the
 * name of a CPU model would match only that model.) Not under a sanitizer, which is not ready yet when that choice runs. */
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

/* Precedes a loop whose iterations share no element; an iteration may write an element that it has read. */
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
