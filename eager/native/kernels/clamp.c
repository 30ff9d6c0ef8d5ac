/* clamp of floats and int64 between two numbers. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include <math.h>

typedef struct {
    void *out;
    const void *x;
    double low, high;
    int64_t whole_low, whole_high;
} Bounds;

#define CLAMPED(S, T)                                                                                       \
    CLONES static void clamped_##S(void *context, long begin, long end)                                     \
    {                                                                                                       \
        const Bounds *b = context;                                                                          \
        T *out = b->out;                                                                                    \
        const T *x = b->x, low = (T)b->low, high = (T)b->high;                                              \
        LOOP_APART for (long i = begin; i < end; i++) {                                                     \
            const T raised = x[i] < low ? low : x[i]; /* NaN stays: no bound is one */                      \
            out[i] = raised > high ? high : raised;                                                         \
        }                                                                                                   \
    }
CLAMPED(f32, float)
CLAMPED(f64, double)

CLONES static void clamped_i64(void *context, long begin, long end)
{
    const Bounds *b = context;
    int64_t *out = b->out;
    const int64_t *x = b->x;
    LOOP_APART for (long i = begin; i < end; i++) {
        const int64_t raised = x[i] < b->whole_low ? b->whole_low : x[i];
        out[i] = raised > b->whole_high ? b->whole_high : raised;
    }
}

static bool read_bounds(PyObject *const *args, int code, Bounds *b)
{
    b->whole_low = INT64_MIN;
    b->whole_high = INT64_MAX;
    if (code == EAGER_INT64) return (args[1] == Py_None || read_int(args[1], &b->whole_low)) && (args[2] == Py_None || read_int(args[2], &b->whole_high));
    b->low = -INFINITY;
    b->high = INFINITY;
    return (args[1] == Py_None || (read_real(args[1], &b->low) && !beyond(b->low, code) && b->low == b->low)) &&
           (args[2] == Py_None || (read_real(args[2], &b->high) && !beyond(b->high, code) && b->high == b->high));
}

/* clamp(x, min, max): floats or int64, between numbers. The result may lie over x. */
bool kernel_clamp(PyObject *const *args, Results *results)
{
    TensorObject *x = cpu_tensor(args[0]);
    const int code = x ? code_of(x) : -1;
    Bounds b;
    if (!x || (code != EAGER_FLOAT32 && code != EAGER_FLOAT64 && code != EAGER_INT64) || !is_row_major(x) || !read_bounds(args, code, &b)) return false;
    TensorObject *out = result_memory(results, code, tensor_ndim(x), tensor_sizes(x));
    if (!out) return false;
    b.out = out->data;
    b.x = x->data;
    const long count = (long)tensor_count(x);
    if (count) parallel(code == EAGER_INT64 ? clamped_i64 : code == EAGER_FLOAT64 ? clamped_f64 : clamped_f32, &b, count, 16384, (double)count);
    return true;
}
