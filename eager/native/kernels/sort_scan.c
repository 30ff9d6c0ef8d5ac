/* Kernels along one dim that compare or add up: positions of extremes, the first of an order, the order, running sums.
 *
 * Slices are read out of any row-major tensor as (outer, n, inner). A NaN counts as greater than every number, as in torch;
 * equal elements keep their order. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

enum { MAX_SORTED = 64, MAX_KEPT = 32 }; /* by insertion: longer slices, and more of them kept, go to a real sort */

typedef struct {
    void *values;
    int64_t *at;
    const void *x;
    long n, inner, k;
    bool largest;
} Slices;

/* Whether a comes before b: `largest` first, or smallest; false for equals. */
#define BEFORE_FLOAT(a, b, largest) ((largest) ? ((a) > (b) || ((a) != (a) && (b) == (b))) : ((a) < (b) || ((b) != (b) && (a) == (a))))
#define BEFORE_INT(a, b, largest) ((largest) ? (a) > (b) : (a) < (b))

#define SLICES(S, T, BEFORE, FIRST_NAN)                                                                     \
    static void arg_extremes_##S(void *context, long begin, long end)                                           \
    {                                                                                                       \
        const Slices *s = context;                                                                          \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)s->x + r / s->inner * s->n * s->inner + r % s->inner;                   \
            T best = x[0];                                                                                  \
            long at = 0;                                                                                    \
            for (long i = 1; i < s->n && !FIRST_NAN(best); i++) {                                           \
                const T v = x[i * s->inner];                                                                \
                if (FIRST_NAN(v) || (s->largest ? v > best : v < best)) {                                   \
                    best = v;                                                                               \
                    at = i;                                                                                 \
                }                                                                                           \
            }                                                                                               \
            s->at[r] = at;                                                                                  \
        }                                                                                                   \
    }                                                                                                       \
    /* The first k of each slice, kept in order while the slice goes by. */                                 \
    static void first_##S(void *context, long begin, long end)                                              \
    {                                                                                                       \
        const Slices *s = context;                                                                          \
        for (long r = begin; r < end; r++) {                                                                \
            const T *x = (const T *)s->x + r / s->inner * s->n * s->inner + r % s->inner;                   \
            T kept[MAX_SORTED];                                                                             \
            int64_t at[MAX_SORTED];                                                                         \
            long count = 0;                                                                                 \
            for (long i = 0; i < s->n; i++) {                                                               \
                const T v = x[i * s->inner];                                                                \
                if (count == s->k && !BEFORE(v, kept[count - 1], s->largest)) continue;                     \
                long place = count < s->k ? count++ : count - 1;                                            \
                for (; place > 0 && BEFORE(v, kept[place - 1], s->largest); place--) {                      \
                    kept[place] = kept[place - 1];                                                          \
                    at[place] = at[place - 1];                                                              \
                }                                                                                           \
                kept[place] = v;                                                                            \
                at[place] = i;                                                                              \
            }                                                                                               \
            const long first = r / s->inner * s->k * s->inner + r % s->inner;                               \
            for (long i = 0; i < s->k; i++) {                                                               \
                ((T *)s->values)[first + i * s->inner] = kept[i];                                           \
                s->at[first + i * s->inner] = at[i];                                                        \
            }                                                                                               \
        }                                                                                                   \
    }
#define IS_NAN(v) ((v) != (v))
#define NEVER(v) 0
SLICES(f32, float, BEFORE_FLOAT, IS_NAN)
SLICES(f64, double, BEFORE_FLOAT, IS_NAN)
SLICES(i64, int64_t, BEFORE_INT, NEVER)

enum { FLOAT32, FLOAT64, INT64, UNSUPPORTED };

static int kind_of(const TensorObject *t)
{
    const int code = code_of(t);
    return code == EAGER_FLOAT32 ? FLOAT32 : code == EAGER_FLOAT64 ? FLOAT64 : code == EAGER_INT64 ? INT64 : UNSUPPORTED;
}

/* A row-major tensor of a kind that is worked on here, with elements: a new reference; NULL without an exception for another. */
static TensorObject *read_slices(PyObject *o, Slices *s, int64_t dim, long *outer)
{
    TensorObject *x = cpu_tensor(o);
    if (!x || kind_of(x) == UNSUPPORTED || !tensor_count(x) || dim < 0 || dim >= tensor_ndim(x) || !(x = as_row_major(x))) return NULL;
    s->x = x->data;
    s->n = (long)tensor_sizes(x)[dim];
    s->inner = (long)count_elements(tensor_sizes(x) + dim + 1, tensor_ndim(x) - (int)dim - 1);
    *outer = (long)count_elements(tensor_sizes(x), (int)dim);
    return x;
}

/* ---- argmax, argmin ---- */

/* args: x, dims, keepdim; dims is one dim, or all of them, and then the position is one in the flattened tensor */
static bool extreme_position(PyObject *const *args, bool largest, Results *results)
{
    static const LoopFn loops[] = {arg_extremes_f32, arg_extremes_f64, arg_extremes_i64};
    int64_t dims[EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM];
    const int count = read_ints(args[1], dims, EAGER_MAX_NDIM);
    Slices s = {.largest = largest};
    long outer;
    if (count < 1 || !PyBool_Check(args[2])) return false;
    TensorObject *x = read_slices(args[0], &s, dims[0], &outer), *out = NULL;
    if (!x) return false;
    const int ndim = tensor_ndim(x);
    if (count == 1 || count == ndim) {
        int kept = 0;
        for (int d = 0; d < ndim; d++)
            if ((count == 1 && d != dims[0]) || args[2] == Py_True) sizes[kept++] = count == 1 && d != dims[0] ? tensor_sizes(x)[d] : 1;
        if (count > 1) {
            s.n = (long)tensor_count(x);
            outer = s.inner = 1;
        }
        out = result_memory(results, EAGER_INT64, kept, sizes);
    }
    if (out) {
        s.at = (int64_t *)out->data;
        parallel(loops[kind_of(x)], &s, outer * s.inner, 1 + 16384 / s.n, (double)tensor_count(x));
    }
    Py_DECREF(x);
    return out != NULL;
}

bool kernel_argmax(PyObject *const *args, Results *results) { return extreme_position(args, true, results); }
bool kernel_argmin(PyObject *const *args, Results *results) { return extreme_position(args, false, results); }

/* ---- topk, sort ---- */

/* (values, positions) of the first k along dim */
static bool first_k(PyObject *given, int64_t dim, int64_t k, bool largest, Results *results)
{
    static const LoopFn loops[] = {first_f32, first_f64, first_i64};
    Slices s = {.k = (long)k, .largest = largest};
    long outer;
    int64_t sizes[EAGER_MAX_NDIM];
    TensorObject *x = read_slices(given, &s, dim, &outer);
    if (!x) return false;
    memcpy(sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)tensor_ndim(x));
    sizes[dim] = k;
    TensorObject *values = result_memory(results, code_of(x), tensor_ndim(x), sizes), *at = values ? result_memory(results, EAGER_INT64, tensor_ndim(x), sizes) : NULL;
    if (at) {
        s.values = values->data;
        s.at = (int64_t *)at->data;
        parallel(loops[kind_of(x)], &s, outer * s.inner, 1 + 4096 / s.n, 4.0 * (double)tensor_count(x));
    }
    Py_DECREF(x);
    return at != NULL;
}

/* topk(x, k, dim, largest, sorted) */
bool kernel_topk(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    int64_t k, dim;
    if (!x || !read_int(args[1], &k) || !read_int(args[2], &dim) || !PyBool_Check(args[3])) return false;
    dim += dim < 0 ? tensor_ndim(x) : 0;
    if (dim < 0 || dim >= tensor_ndim(x) || k < 1 || k > tensor_sizes(x)[dim]) return false;
    if (k > MAX_KEPT && tensor_sizes(x)[dim] > MAX_SORTED) return false;
    return first_k(args[0], dim, k, args[3] == Py_True, results);
}

/* sort(x, dim, descending, stable): short slices of a row-major x, whose strides the results have */
bool kernel_sort(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    int64_t dim;
    if (!x || !has_plain_strides(x) || !read_int(args[1], &dim) || !PyBool_Check(args[2])) return false;
    dim += dim < 0 ? tensor_ndim(x) : 0;
    if (dim < 0 || dim >= tensor_ndim(x) || tensor_sizes(x)[dim] > MAX_SORTED) return false;
    return first_k(args[0], dim, tensor_sizes(x)[dim], args[2] == Py_True, results);
}

/* ---- cumsum ---- */

/* Sums of float32 are kept in double precision. */
#define CUMSUM(S, T, WIDE)                                                                                 \
    static void cumsum_##S(void *context, long begin, long end)                                            \
    {                                                                                                       \
        const Slices *s = context;                                                                          \
        for (long r = begin; r < end; r++) {                                                                \
            const long first = r / s->inner * s->n * s->inner + r % s->inner;                               \
            const T *x = (const T *)s->x + first;                                                           \
            T *out = (T *)s->values + first;                                                                \
            WIDE total = 0;                                                                                 \
            for (long i = 0; i < s->n; i++) {                                                               \
                total += (WIDE)x[i * s->inner];                                                             \
                out[i * s->inner] = (T)total;                                                               \
            }                                                                                               \
        }                                                                                                   \
    }
CUMSUM(f32, float, double)
CUMSUM(f64, double, double)
CUMSUM(i64, uint64_t, uint64_t)

/* cumsum(x, dim, dtype) in the dtype of x */
bool kernel_cumsum(PyObject *const *args, Results *results)
{
    static const LoopFn loops[] = {cumsum_f32, cumsum_f64, cumsum_i64};
    Slices s = {.k = 0};
    int64_t dim;
    long outer;
    if (args[2] != Py_None || !read_int(args[1], &dim)) return false;
    TensorObject *x = read_slices(args[0], &s, dim, &outer);
    if (!x) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        s.values = out->data;
        parallel(loops[kind_of(x)], &s, outer * s.inner, 1 + 16384 / s.n, (double)tensor_count(x));
    }
    Py_DECREF(x);
    return out != NULL;
}
