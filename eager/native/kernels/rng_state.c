/* rng_state: the seed and offset that random ops draw from. */
#define PY_SSIZE_T_CLEAN
#include "kernels/kernel.h"
#include "tensor/random_stream.h"

/* rng_state(n, device) of the CPU's default stream: int64 (seed, offset) for a draw of n elements */
bool kernel_rng_state(PyObject *const *args, Results *results)
{
    const int64_t two = 2;
    int64_t n;
    uint64_t state[2];
    if (!read_int(args[0], &n) || !is_cpu_device(args[1])) return false;
    TensorObject *t = result_memory(results, EAGER_INT64, 1, &two);
    if (!t || !default_stream_take(n, state)) return false;
    memcpy(t->data, state, sizeof state);
    return true;
}
