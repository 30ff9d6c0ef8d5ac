/* all and any of bools. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

typedef struct {
    uint8_t *out;
    const uint8_t *x;
    int64_t n, inner;
    bool all;
} BoolReduction;

static bool has_byte(const uint8_t *x, int64_t n, bool wanted)
{
    for (int64_t i = 0; i < n; i += 256) { /* in blocks, each without a branch, so that it becomes vectors */
        const int64_t end = i + 256 < n ? i + 256 : n;
        uint8_t found = 0;
        for (int64_t j = i; j < end; j++) found |= (x[j] != 0) == wanted;
        if (found) return true;
    }
    return false;
}

static void reduce_bools(void *context, long begin, long end)
{
    const BoolReduction *v = context;
    for (long block = begin; block < end; block++) {
        const uint8_t *x = v->x + block * v->n * v->inner;
        uint8_t *out = v->out + block * v->inner;
        if (v->inner == 1) {
            *out = has_byte(x, v->n, !v->all) != v->all;
            continue;
        }
        memset(out, v->all, (size_t)v->inner);
        for (int64_t i = 0; i < v->n; i++, x += v->inner)
            for (int64_t j = 0; j < v->inner; j++) out[j] = v->all ? out[j] & (x[j] != 0) : out[j] | (x[j] != 0);
    }
}

/* all(x, dims, keepdim), any(x, dims, keepdim): of bools, over adjacent dims */
static bool all_or_any(PyObject *const *args, bool all, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    if (!x || code_of(x) != EAGER_BOOL || !is_row_major(x) || !tensor_count(x)) return false;
    const int ndim = tensor_ndim(x), count = read_ints(args[1], dims, EAGER_MAX_NDIM);
    if (count < (ndim ? 1 : 0) || (count && (dims[0] < 0 || dims[count - 1] >= ndim))) return false;
    for (int i = 1; i < count; i++)
        if (dims[i] != dims[i - 1] + 1) return false;
    const int first = count ? (int)dims[0] : 0, after = first + count;
    int kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (d < first || d >= after) sizes[kept++] = tensor_sizes(x)[d];
        else if (args[2] == Py_True) sizes[kept++] = 1;
    }
    TensorObject *out = result_memory(results, EAGER_BOOL, kept, sizes);
    if (!out) return false;
    BoolReduction v = {(uint8_t *)out->data, (const uint8_t *)x->data, count_elements(tensor_sizes(x) + first, count),
                 count_elements(tensor_sizes(x) + after, ndim - after), all};
    const long blocks = (long)count_elements(tensor_sizes(x), first);
    parallel(reduce_bools, &v, blocks, 1 + (long)(65536 / (v.n * v.inner)), (double)tensor_count(x) / 8);
    return out != NULL;
}

bool kernel_all(PyObject *const *args, Results *results) { return all_or_any(args, true, results); }
bool kernel_any(PyObject *const *args, Results *results) { return all_or_any(args, false, results); }
