/* Gather and scatter along one dim: index_select, embedding and its gradient, gather, scatter, scatter_add. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

/* ---- rows by index ---- */

typedef struct {
    char *to;
    const char *from;
    const void *index;
    int wide; /* int64 rather than int32 */
    long rows, chunk, pitch, count; /* count positions in each of the outer blocks of `pitch` rows */
    int64_t skipped;                /* the index that adds nothing, or -1 */
} Rows;

static inline int64_t index_at(const Rows *r, long i) { return r->wide ? ((const int64_t *)r->index)[i] : ((const int32_t *)r->index)[i]; }

/* Row-major integers, all of them positions in [0, size). */
static bool read_index(PyObject *o, int64_t size, Rows *r)
{
    const TensorObject *t = cpu_tensor(o);
    if (!t || (code_of(t) != EAGER_INT64 && code_of(t) != EAGER_INT32) || !is_row_major(t)) return false;
    r->index = t->data;
    r->wide = code_of(t) == EAGER_INT64;
    r->count = (long)tensor_count(t);
    for (long i = 0; i < r->count; i++)
        if (index_at(r, i) < 0 || index_at(r, i) >= size) return false;
    return true;
}

/* For each block: the rows [first, last) of it that lie in the range [begin, end) of all rows. */
#define EACH_BLOCK(r, begin, end, block, first, last)                                                       \
    for (long block = (begin) / (r)->count, first, last; block * (r)->count < (end) &&                      \
         (first = block * (r)->count < (begin) ? (begin) - block * (r)->count : 0,                          \
          last = (block + 1) * (r)->count > (end) ? (end) - block * (r)->count : (r)->count, true); block++)

static void take_rows(void *context, long begin, long end)
{
    const Rows *r = context;
    EACH_BLOCK(r, begin, end, block, first, last) {
        char *to = r->to + block * r->count * r->chunk;
        const char *from = r->from + block * r->pitch * r->chunk;
        const int64_t *at = r->wide ? r->index : NULL;
        if (at && r->chunk == 4) for (long i = first; i < last; i++) ((uint32_t *)to)[i] = ((const uint32_t *)from)[at[i]];
        else if (at && r->chunk == 8) for (long i = first; i < last; i++) ((uint64_t *)to)[i] = ((const uint64_t *)from)[at[i]];
        else for (long i = first; i < last; i++) memcpy(to + i * r->chunk, from + index_at(r, i) * r->chunk, (size_t)r->chunk);
    }
}

static void run_rows(Rows *r, TensorObject *out, const TensorObject *from, long outer, int itemsize)
{
    r->to = out->data;
    r->from = from->data;
    const long total = outer * r->count;
    if (total && r->chunk) parallel(take_rows, r, total, 1 + 65536 / r->chunk, (double)total * (double)r->chunk / itemsize);
}

/* index_select(x, dim, index): the slices of x along dim at the positions in index */
bool kernel_index_select(PyObject *const *args, Results *results)
{
    TensorObject *x = cpu_tensor(args[0]);
    int64_t dim, sizes[EAGER_MAX_NDIM];
    Rows r;
    if (!x || !is_row_major(x) || !read_int(args[1], &dim) || dim < 0 || dim >= tensor_ndim(x)) return false;
    if (!read_index(args[2], tensor_sizes(x)[dim], &r) || tensor_ndim((TensorObject *)args[2]) != 1) return false;
    const int itemsize = g_itemsize[code_of(x)], ndim = tensor_ndim(x);
    memcpy(sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)ndim);
    r.pitch = (long)sizes[dim];
    r.chunk = (long)(count_elements(sizes + dim + 1, ndim - (int)dim - 1) * itemsize);
    sizes[dim] = r.count;
    TensorObject *out = result_memory(results, code_of(x), ndim, sizes);
    if (out) run_rows(&r, out, x, (long)count_elements(sizes, (int)dim), itemsize);
    return out != NULL;
}

/* embedding(weight, indices, padding_idx) */
bool kernel_embedding(PyObject *const *args, Results *results)
{
    TensorObject *weight = cpu_tensor(args[0]);
    Rows r;
    if (!weight || tensor_ndim(weight) != 2 || !is_row_major(weight) || !read_index(args[1], tensor_sizes(weight)[0], &r)) return false;
    const TensorObject *index = (const TensorObject *)args[1];
    const int ndim = tensor_ndim(index);
    int64_t sizes[EAGER_MAX_NDIM + 1];
    if (ndim >= EAGER_MAX_NDIM) return false;
    memcpy(sizes, tensor_sizes(index), sizeof(int64_t) * (size_t)ndim);
    sizes[ndim] = tensor_sizes(weight)[1];
    r.pitch = 0;
    r.chunk = (long)(sizes[ndim] * g_itemsize[code_of(weight)]);
    TensorObject *out = result_memory(results, code_of(weight), ndim + 1, sizes);
    if (out) run_rows(&r, out, weight, 1, g_itemsize[code_of(weight)]);
    return out != NULL;
}

/* Columns [begin, end) of the sum of rows by index: threads share no element. */
#define ADD_ROWS(S, T)                                                                                      \
    CLONES static void add_rows_##S(void *context, long begin, long end)                                    \
    {                                                                                                       \
        const Rows *r = context;                                                                            \
        for (long i = 0; i < r->count; i++) {                                                               \
            const int64_t at = index_at(r, i);                                                              \
            if (at == r->skipped) continue;                                                                 \
            T *restrict to = (T *)r->to + at * r->chunk;                                                    \
            const T *restrict from = (const T *)r->from + i * r->chunk;                                     \
            for (long c = begin; c < end; c++) to[c] += from[c];                                            \
        }                                                                                                   \
    }
ADD_ROWS(f32, float)
ADD_ROWS(f64, double)

/* embedding_backward(grad, indices, num_weights, padding_idx) */
bool kernel_embedding_backward(PyObject *const *args, Results *results)
{
    TensorObject *g = float_tensor(args[0]);
    int64_t sizes[2];
    Rows r;
    if (!g || tensor_ndim(g) < 1 || !read_int(args[2], &sizes[0]) || !read_int(args[3], &r.skipped) || sizes[0] < 0) return false;
    if (!read_index(args[1], sizes[0], &r)) return false;
    sizes[1] = tensor_sizes(g)[tensor_ndim(g) - 1];
    r.chunk = (long)sizes[1];
    if (tensor_count(g) != r.count * r.chunk || !(g = as_row_major(g))) return false;
    TensorObject *out = result_memory(results, code_of(g), 2, sizes);
    if (out) {
        memset(out->data, 0, (size_t)(sizes[0] * sizes[1] * g_itemsize[code_of(g)]));
        r.to = out->data;
        r.from = g->data;
        if (r.chunk) parallel(code_of(g) == EAGER_FLOAT64 ? add_rows_f64 : add_rows_f32, &r, r.chunk, 64, (double)r.count * (double)r.chunk);
    }
    Py_DECREF(g);
    return out != NULL;
}

/* ---- gather, scatter and scatter_add ---- */

typedef struct {
    char *to;
    const char *from;
    const int64_t *index;
    long n, m, inner; /* sizes along dim of the indexed tensor and of the index; elements after dim */
    double number;    /* the value to scatter if there is no source tensor */
    int itemsize;
} Places;

#define GATHER(N, T)                                                                                        \
    /* One unit: a row of the index, of `inner` elements. */                                                \
    static void gather_rows_##N(void *context, long begin, long end)                                        \
    {                                                                                                       \
        const Places *p = context;                                                                          \
        for (long row = begin; row < end; row++) {                                                          \
            const T *from = (const T *)p->from + row / p->m * p->n * p->inner;                              \
            const int64_t *index = p->index + row * p->inner;                                               \
            for (long j = 0; j < p->inner; j++) ((T *)p->to)[row * p->inner + j] = from[index[j] * p->inner + j]; \
        }                                                                                                   \
    }                                                                                                       \
    /* The same where rows are of one element: a unit is one of the blocks before dim. */                   \
    static void gather_blocks_##N(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Places *p = context;                                                                          \
        for (long block = begin; block < end; block++) {                                                    \
            T *restrict to = (T *)p->to + block * p->m;                                                     \
            const T *from = (const T *)p->from + block * p->n;                                              \
            const int64_t *index = p->index + block * p->m;                                                 \
            for (long i = 0; i < p->m; i++) to[i] = from[index[i]];                                         \
        }                                                                                                   \
    }
GATHER(4, uint32_t)
GATHER(8, uint64_t)

#define SCATTER(S, T)                                                                                       \
    static void scatter_add_##S(void *context, long begin, long end)                                        \
    {                                                                                                       \
        const Places *p = context;                                                                          \
        for (long block = begin; block < end; block++) {                                                    \
            T *to = (T *)p->to + block * p->n * p->inner;                                                   \
            const T *from = (const T *)p->from + block * p->m * p->inner;                                   \
            const int64_t *index = p->index + block * p->m * p->inner;                                      \
            if (p->inner == 1) for (long i = 0; i < p->m; i++) to[index[i]] += from[i];                     \
            else for (long i = 0; i < p->m; i++, index += p->inner, from += p->inner)                       \
                for (long j = 0; j < p->inner; j++) to[index[j] * p->inner + j] += from[j];                 \
        }                                                                                                   \
    }
SCATTER(f32, float)
SCATTER(f64, double)

/* Reads x, dim and index. The sizes of x and index agree except along dim. False for other shapes and for indices out of range. */
static bool read_places(PyObject *const *args, const TensorObject *x, Places *p, long *blocks, const TensorObject **index)
{
    int64_t dim;
    const TensorObject *t = *index = cpu_tensor(args[2]);
    if (!t || code_of(t) != EAGER_INT64 || !is_row_major(t) || !read_int(args[1], &dim)) return false;
    const int ndim = tensor_ndim(x);
    if (dim < 0 || dim >= ndim || tensor_ndim(t) != ndim || !is_row_major(x) || !tensor_count(x)) return false;
    for (int d = 0; d < ndim; d++)
        if (d != dim && tensor_sizes(t)[d] != tensor_sizes(x)[d]) return false;
    p->index = (const int64_t *)t->data;
    p->n = (long)tensor_sizes(x)[dim];
    p->m = (long)tensor_sizes(t)[dim];
    p->inner = (long)count_elements(tensor_sizes(x) + dim + 1, ndim - (int)dim - 1);
    p->itemsize = g_itemsize[code_of(x)];
    *blocks = (long)count_elements(tensor_sizes(x), (int)dim);
    const int64_t count = tensor_count(t);
    bool inside = true;
    for (int64_t i = 0; i < count; i++) inside &= (p->index[i] >= 0) & (p->index[i] < p->n);
    return inside;
}

/* gather(x, dim, index): elements of 4 or 8 bytes */
bool kernel_gather(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]), *index;
    Places p;
    long blocks;
    if (!x || (g_itemsize[code_of(x)] != 4 && g_itemsize[code_of(x)] != 8) || !read_places(args, x, &p, &blocks, &index)) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(index), tensor_sizes(index));
    if (!out || !tensor_count(index)) return out != NULL;
    p.to = out->data;
    p.from = x->data;
    const double work = (double)tensor_count(index);
    if (p.inner == 1) parallel(p.itemsize == 4 ? gather_blocks_4 : gather_blocks_8, &p, blocks, 1 + 8192 / p.m, work);
    else parallel(p.itemsize == 4 ? gather_rows_4 : gather_rows_8, &p, blocks * p.m, 1 + 8192 / p.inner, work);
    return out != NULL;
}

/* scatter_add(x, dim, index, src): src of the index's sizes */
bool kernel_scatter_add(PyObject *const *args, Results *results)
{
    const TensorObject *x = float_tensor(args[0]), *index;
    TensorObject *src = float_tensor(args[3]);
    Places p;
    long blocks;
    if (!x || !src || code_of(x) != code_of(src) || !read_places(args, x, &p, &blocks, &index)) return false;
    if (!same_sizes(src, tensor_sizes(index), tensor_ndim(index)) || !(src = as_row_major(src))) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        memcpy(out->data, x->data, (size_t)(tensor_count(x) * p.itemsize));
        p.to = out->data;
        p.from = src->data;
        if (tensor_count(index))
            parallel(code_of(x) == EAGER_FLOAT64 ? scatter_add_f64 : scatter_add_f32, &p, blocks, 1 + 8192 / (p.m * p.inner),
                     (double)tensor_count(index));
    }
    Py_DECREF(src);
    return out != NULL;
}

#define PUT(S, T)                                                                                           \
    static void put_##S(void *context, long begin, long end)                                                \
    {                                                                                                       \
        const Places *p = context;                                                                          \
        const T number = (T)p->number;                                                                      \
        for (long block = begin; block < end; block++) {                                                    \
            T *to = (T *)p->to + block * p->n * p->inner;                                                   \
            const T *from = p->from ? (const T *)p->from + block * p->m * p->inner : NULL;                  \
            const int64_t *index = p->index + block * p->m * p->inner;                                      \
            for (long i = 0; i < p->m; i++)                                                                 \
                for (long j = 0; j < p->inner; j++) {                                                       \
                    const long at = i * p->inner + j;                                                       \
                    to[index[at] * p->inner + j] = from ? from[at] : number;                                \
                }                                                                                           \
        }                                                                                                   \
    }
PUT(f32, float)
PUT(f64, double)

/* scatter(x, dim, index, src): floats of the index's sizes, or a number */
bool kernel_scatter(PyObject *const *args, Results *results)
{
    const TensorObject *x = float_tensor(args[0]), *index;
    TensorObject *src = float_tensor(args[3]);
    Places p = {.from = NULL};
    long blocks;
    if (!x || !read_places(args, x, &p, &blocks, &index)) return false;
    if (!src && (!read_real(args[3], &p.number) || beyond(p.number, code_of(x)))) return false;
    if (src && (code_of(src) != code_of(x) || !same_sizes(src, tensor_sizes(index), tensor_ndim(index)) || !(src = as_row_major(src)))) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        memcpy(out->data, x->data, (size_t)(tensor_count(x) * p.itemsize));
        p.to = out->data;
        p.from = src ? src->data : NULL;
        if (tensor_count(index))
            parallel(code_of(x) == EAGER_FLOAT64 ? put_f64 : put_f32, &p, blocks, 1 + 8192 / (p.m * p.inner), (double)tensor_count(index));
    }
    Py_XDECREF(src);
    return out != NULL;
}
