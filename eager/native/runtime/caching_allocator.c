/* A caching allocator for CPU memory.
 *
 * Writing fresh pages costs 4 to 12 times as much as writing mapped pages, so freed blocks are kept by size class and handed out
 * again. Blocks are 64-byte aligned. All entry points run under the GIL, which is the lock.
 *
 * Built with -DEAGER_POISON_MEMORY (CFLAGS), new memory is filled with one bits, which are NaN as floating-point numbers: the test
 * suite then finds reads of memory that was never written. Built with AddressSanitizer, a block has exactly the requested bytes and
 * is given back at once: the sanitizer then finds accesses outside of a tensor's memory, and after its end. */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include "runtime/caching_allocator.h"
#include "runtime/functions.h"
#include "runtime/runtime.h"
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT 64
#define HUGE_PAGE ((size_t)2 << 20)
#define SMALL_LIMIT 4096                       /* below: one class per 64 bytes */
#define NUM_SMALL (SMALL_LIMIT / ALIGNMENT + 1)
#define STEPS 4                                /* above: four classes per power of two */
#define NUM_CLASSES (NUM_SMALL + STEPS * 48)

typedef struct Block { struct Block *next; } Block;

static Block *free_lists[NUM_CLASSES];
static int64_t limit_bytes = (int64_t)2 << 30; /* until the settings are read */
static int64_t cached_bytes, live_bytes, peak_bytes, hits, misses;

/* The class of a request and, through `rounded`, the bytes a block of that class has. */
static int size_class(int64_t nbytes, int64_t *rounded)
{
    if (nbytes <= SMALL_LIMIT) {
        int index = (int)((nbytes + ALIGNMENT - 1) / ALIGNMENT);
        if (index == 0) index = 1;
        *rounded = (int64_t)index * ALIGNMENT;
        return index;
    }
    int log2 = 63 - __builtin_clzll((unsigned long long)(nbytes - 1));
    int64_t base = (int64_t)1 << log2, step = base / STEPS;
    int part = (int)((nbytes - base + step - 1) / step);
    *rounded = base + part * step;
    return NUM_SMALL + (log2 - 12) * STEPS + part;
}

static void release_all(void)
{
    for (int i = 0; i < NUM_CLASSES; i++) {
        Block *block = free_lists[i];
        free_lists[i] = NULL;
        while (block) {
            Block *next = block->next;
            free(block);
            block = next;
        }
    }
    cached_bytes = 0;
}

/* Memory of `nbytes`, a multiple of ALIGNMENT. The part that fills huge pages is requested as huge pages: matrix products walk
 * over more small pages than the CPU keeps translations of. The rest stays on small pages, so that no page is wasted. */
void *fresh_memory(size_t nbytes)
{
    void *memory = NULL;
    if (MEMORY_IS_EXACT) return posix_memalign(&memory, ALIGNMENT, nbytes) ? NULL : memory;
    if (nbytes < HUGE_PAGE) return aligned_alloc(ALIGNMENT, nbytes);
    if (posix_memalign(&memory, HUGE_PAGE, nbytes)) return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(memory, nbytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* a hint: if the kernel refuses it, pages are small */
#endif
    return memory;
}

void *pool_alloc(int64_t nbytes)
{
    if (nbytes < 0 || nbytes > ((int64_t)1 << 46)) {
        PyErr_Format(PyExc_RuntimeError, "cannot allocate %lld bytes of CPU memory", (long long)nbytes);
        return NULL;
    }
    int64_t rounded;
    int index = size_class(nbytes, &rounded);
    Block *block = free_lists[index];
    if (block) {
        free_lists[index] = block->next;
        cached_bytes -= rounded;
        hits++;
    }
    else {
        misses++;
        size_t size = (size_t)(MEMORY_IS_EXACT ? nbytes + (nbytes == 0) : rounded);
        block = fresh_memory(size);
        if (!block) {                     /* the cache may hold the missing memory */
            release_all();
            block = fresh_memory(size);
        }
        if (!block) {
            PyErr_Format(PyExc_RuntimeError, "out of CPU memory: tried to allocate %lld bytes, %lld in use",
                         (long long)nbytes, (long long)live_bytes);
            return NULL;
        }
    }
    live_bytes += rounded;
    if (live_bytes > peak_bytes) peak_bytes = live_bytes;
    return poisoned(block, (size_t)(MEMORY_IS_EXACT ? nbytes : rounded));
}

void pool_free(void *memory, int64_t nbytes)
{
    if (!memory) return;
    int64_t rounded;
    int index = size_class(nbytes, &rounded);
    live_bytes -= rounded;
    if (MEMORY_IS_EXACT || cached_bytes + rounded > limit_bytes) {
        free(memory);
        return;
    }
    Block *block = memory;
    block->next = free_lists[index];
    free_lists[index] = block;
    cached_bytes += rounded;
}

static PyObject *pool_empty_cache(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    release_all();
    Py_RETURN_NONE;
}

static PyObject *pool_stats(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "allocated_bytes", (long long)live_bytes,
                         "peak_bytes", (long long)peak_bytes, "cached_bytes", (long long)cached_bytes,
                         "limit_bytes", (long long)limit_bytes, "hits", (long long)hits, "misses",
                         (long long)misses);
}

static PyObject *pool_set_limit(PyObject *Py_UNUSED(self), PyObject *limit)
{
    long long value = PyLong_AsLongLong(limit);
    if (value == -1 && PyErr_Occurred()) return NULL;
    if (value < 0) {
        PyErr_Format(PyExc_ValueError, "set_memory_limit: got %lld bytes; allowed 0 or more", value);
        return NULL;
    }
    limit_bytes = value;
    if (cached_bytes > limit_bytes) release_all();
    Py_RETURN_NONE;
}

PyMethodDef caching_allocator_functions[] = {
    {"empty_cache", pool_empty_cache, METH_NOARGS, "give cached CPU blocks back to the system"},
    {"memory_stats", pool_stats, METH_NOARGS, "bytes in use, peak, cached; hits and misses"},
    {"set_memory_limit", pool_set_limit, METH_O, "most bytes the CPU cache may keep"},
    {NULL, NULL, 0, NULL},
};
