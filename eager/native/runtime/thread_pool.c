/* The thread pool of native loops, eager's and the compiled graphs': a few pthreads that sleep between graphs.
 *
 * The pool runs one loop at a time. Each thread owns a stretch of the loop, the same in each loop of that length, so that data
 * written by one loop is in the cache of the core that reads it in the next; a thread that finishes early takes shares of the
 * others. The calling thread works too and never waits for a worker that has not begun, so on a busy machine a loop degrades to a
 * serial loop instead of stalling. Cost on a quiet two-core machine: 0.3 us while workers spin, 8-19 us if a worker has to be
 * woken (the caller has then usually taken its shares already). */
#include "runtime/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() __asm__ __volatile__("" ::: "memory")
#endif

enum {
    MAX_THREADS = 256,
    IDLE_SPINS = 3000,  /* about 40 us: longer than the gap between two kernels of a graph */
    JOIN_SPINS = 20000,
    SHARES_PER_THREAD = 16 /* small enough to even out, large enough that claiming is free */
};

typedef struct {
    LoopFn body;
    void *context;
    long share;
    int threads; /* workers with a number below this take part; the calling thread has number 0 */
} Loop;

/* The stretch of a loop that one thread owns. */
typedef struct {
    _Alignas(64) atomic_long next; /* first iteration not yet claimed */
    long end;
} Stretch;

static struct {
    _Alignas(64) atomic_uint epoch;    /* one more for each loop published */
    Stretch stretches[MAX_THREADS];
    _Alignas(64) atomic_int active;    /* workers that may be looking at `loop` */
    atomic_int open;                   /* whether `loop` may be entered */
    _Alignas(64) atomic_int sleepers;
    atomic_int graphs;                 /* compiled graphs running now: idle workers spin */
    atomic_int join_waits;
    Loop loop;
    int spawned;                       /* workers alive, guarded by owner */
    pthread_mutex_t owner;             /* held by the thread that publishes a loop; tried, never waited for */
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .mutex = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside_loop;

/* ------------------------------------------------------------------ shares */

static void take_shares(const Loop *loop, int number)
{
    for (int k = 0; k < loop->threads; k++) {
        Stretch *mine = &pool.stretches[(number + k) % loop->threads];
        for (;;) {
            long begin = atomic_fetch_add_explicit(&mine->next, loop->share, memory_order_relaxed);
            if (begin >= mine->end)
                break;
            long end = begin + loop->share;
            loop->body(loop->context, begin, end < mine->end ? end : mine->end);
        }
    }
}

/* ------------------------------------------------------------------ workers */

static unsigned await_epoch(unsigned seen)
{
    int spins = 0;
    for (;;) {
        unsigned now = atomic_load_explicit(&pool.epoch, memory_order_acquire);
        if (now != seen)
            return now;
        if (atomic_load_explicit(&pool.graphs, memory_order_relaxed) > 0 && ++spins < IDLE_SPINS) {
            RELAX();
            continue;
        }
        pthread_mutex_lock(&pool.mutex);
        atomic_fetch_add(&pool.sleepers, 1);
        while (atomic_load(&pool.epoch) == seen)
            pthread_cond_wait(&pool.work, &pool.mutex);
        atomic_fetch_sub(&pool.sleepers, 1);
        pthread_mutex_unlock(&pool.mutex);
        spins = 0;
    }
}

static void *worker_main(void *argument)
{
    int number = (int)(intptr_t)argument;
    inside_loop = true; /* a loop inside a loop runs serially */
    unsigned seen = atomic_load(&pool.epoch) - 1;
    for (;;) {
        seen = await_epoch(seen);
        /* `active` is raised before `open` is read, and the owner lowers `open` before it reads
         * `active`: either the owner sees us, or we see that the loop is closed. */
        atomic_fetch_add(&pool.active, 1);
        if (atomic_load(&pool.open) && number < pool.loop.threads)
            take_shares(&pool.loop, number);
        if (atomic_fetch_sub(&pool.active, 1) == 1 && atomic_load(&pool.join_waits)) {
            pthread_mutex_lock(&pool.mutex);
            pthread_cond_signal(&pool.done);
            pthread_mutex_unlock(&pool.mutex);
        }
    }
    return NULL;
}

static void spawn_up_to(int workers)
{
    while (pool.spawned < workers) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, worker_main,
                                    (void *)(intptr_t)(pool.spawned + 1));
        pthread_attr_destroy(&attributes);
        if (failed)
            return; /* out of threads: the caller does the shares itself */
        pool.spawned++;
    }
}

/* ------------------------------------------------------------------ the calling thread */

static void join_workers(void)
{
    for (int spins = 0; spins < JOIN_SPINS; spins++) {
        if (atomic_load(&pool.active) == 0) /* in one order with the store to `open`: see worker_main */
            return;
        RELAX();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_store(&pool.join_waits, 1);
    while (atomic_load(&pool.active) != 0)
        pthread_cond_wait(&pool.done, &pool.mutex);
    atomic_store(&pool.join_waits, 0);
    pthread_mutex_unlock(&pool.mutex);
}

void threads_parallel_for(const Runtime *rt, LoopFn body, void *context, long n, long grain)
{
    int threads = rt->threads;
    if (n <= 0)
        return;
    if (threads <= 1 || n <= grain || inside_loop || pthread_mutex_trylock(&pool.owner) != 0) {
        bool was = inside_loop;
        inside_loop = true;
        body(context, 0, n);
        inside_loop = was;
        return;
    }
    spawn_up_to(threads - 1);
    long share = n / ((long)threads * SHARES_PER_THREAD);
    share = share < grain ? grain : share;
    pool.loop = (Loop){body, context, share < 1 ? 1 : share, threads};
    for (int k = 0; k < threads; k++) {
        atomic_store_explicit(&pool.stretches[k].next, n * k / threads, memory_order_relaxed);
        pool.stretches[k].end = n * (k + 1) / threads;
    }
    atomic_store(&pool.open, 1);
    atomic_fetch_add(&pool.epoch, 1);
    if (atomic_load(&pool.sleepers) > 0) {
        pthread_mutex_lock(&pool.mutex);
        pthread_cond_broadcast(&pool.work);
        pthread_mutex_unlock(&pool.mutex);
    }
    inside_loop = true;
    take_shares(&pool.loop, 0);
    inside_loop = false;
    atomic_store(&pool.open, 0);
    join_workers();
    pthread_mutex_unlock(&pool.owner);
}

void threads_enter(void) { atomic_fetch_add_explicit(&pool.graphs, 1, memory_order_relaxed); }

void threads_leave(void) { atomic_fetch_sub_explicit(&pool.graphs, 1, memory_order_relaxed); }

/* ------------------------------------------------------------------ scratch memory */

typedef struct {
    void *memory;
    long nbytes;
} Scratch;

static _Thread_local Scratch scratch_slots[2];
static pthread_key_t scratch_key; /* only for its destructor, which runs when a thread ends */

static void free_scratch(void *slots)
{
    Scratch *s = slots;
    free(s[0].memory);
    free(s[1].memory);
}

void *threads_scratch(const Runtime *rt, int slot, long nbytes)
{
    (void)rt;
    Scratch *s = &scratch_slots[slot & 1];
    if (nbytes > s->nbytes || (MEMORY_IS_EXACT && nbytes < s->nbytes)) {
        free(s->memory);
        long size = MEMORY_IS_EXACT ? nbytes + (nbytes == 0) : (nbytes + 4095) / 4096 * 4096;
        s->memory = fresh_memory((size_t)size);
        s->nbytes = s->memory ? size : 0;
        pthread_setspecific(scratch_key, scratch_slots);
    }
    return s->memory ? poisoned(s->memory, (size_t)s->nbytes) : NULL;
}

/* ------------------------------------------------------------------ set-up */

/* Only the forking thread lives on in the child, and a worker may have held any lock. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    atomic_store(&pool.active, 0);
    atomic_store(&pool.open, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.join_waits, 0);
    atomic_store(&pool.graphs, 0);
    pool.spawned = 0;
}

static void set_up(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
    pthread_key_create(&scratch_key, free_scratch);
}

void threads_set(int threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    g_runtime.threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
}
