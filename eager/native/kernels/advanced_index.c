/* Advanced indexing: x[i, j], index_put and index_add, whose index tensors are adjacent.
 *
 * The indexed dims of a row-major tensor count as one dim: `outer` blocks of `span` chunks. A call reads, writes or adds the
 * chunks at a list of places in each block. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"
#include "tensor/memory_overlap.h"

typedef struct {
    int first, count;              /* indexed dims of x */
    int ndim;                      /* of the index tensors broadcast together */
    int64_t sizes[EAGER_MAX_NDIM]; /* their shape */
    int64_t total, outer, span, inner; /* elements of that shape; blocks before the indexed dims; chunks of a block; elements of a chunk */
    int64_t *places;               /* total of them, in chunks; owned */
} Positions;

static int64_t index_value(const TensorObject *t, int64_t at)
{
    return code_of(t) == EAGER_INT64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

/* The indexed dims, which must be adjacent, and the broadcast shape of the indices; false for other indices. */
static bool read_shape(const TensorObject *x, PyObject *list, Positions *p)
{
    const Py_ssize_t given = PySequence_Fast_GET_SIZE(list);
    p->first = -1;
    p->count = p->ndim = 0;
    if (given > tensor_ndim(x)) return false;
    for (Py_ssize_t d = 0; d < given; d++) {
        PyObject *o = PySequence_Fast_GET_ITEM(list, d);
        if (o == Py_None) continue;
        const TensorObject *t = cpu_tensor(o);
        if (!t || (code_of(t) != EAGER_INT64 && code_of(t) != EAGER_INT32) || !is_row_major(t)) return false;
        if (p->first < 0) p->first = (int)d;
        if (p->first + p->count++ != d) return false;
        const int lead = tensor_ndim(t) - p->ndim;
        if (lead > 0) {
            memmove(p->sizes + lead, p->sizes, sizeof(int64_t) * (size_t)p->ndim);
            for (int i = 0; i < lead; i++) p->sizes[i] = 1;
            p->ndim = tensor_ndim(t);
        }
        for (int i = 0; i < tensor_ndim(t); i++) {
            int64_t *mine = &p->sizes[p->ndim - tensor_ndim(t) + i];
            const int64_t size = tensor_sizes(t)[i];
            if (*mine != 1 && size != 1 && size != *mine) return false;
            if (*mine == 1) *mine = size;
        }
    }
    return p->count > 0;
}

/* Adds the offset of index tensor t to every place: n is the size of the dim, `pitch` the number of chunks from one index to the
 * next. */
static bool add_places(Positions *p, const TensorObject *t, int64_t n, int64_t pitch)
{
    int64_t steps[EAGER_MAX_NDIM] = {0}, at[EAGER_MAX_NDIM] = {0}, from = 0;
    const int lead = p->ndim - tensor_ndim(t);
    for (int d = 0; d < tensor_ndim(t); d++) steps[lead + d] = tensor_sizes(t)[d] == 1 ? 0 : tensor_strides(t)[d];
    for (int64_t i = 0; i < p->total; i++) {
        const int64_t value = index_value(t, from);
        if (value < -n || value >= n) return false;
        p->places[i] += (value < 0 ? value + n : value) * pitch;
        for (int d = p->ndim - 1; d >= 0; d--) {
            from += steps[d];
            if (++at[d] < p->sizes[d]) break;
            from -= steps[d] * p->sizes[d];
            at[d] = 0;
        }
    }
    return true;
}

/* Reads the places of a list of indices; false, with nothing to free, for unsupported indices. */
static bool read_positions(const TensorObject *x, PyObject *list, Positions *p)
{
    p->places = NULL;
    if ((!PyList_Check(list) && !PyTuple_Check(list)) || !is_row_major(x) || !tensor_count(x) || !read_shape(x, list, p)) return false;
    const int after = p->first + p->count;
    p->total = count_elements(p->sizes, p->ndim);
    p->outer = count_elements(tensor_sizes(x), p->first);
    p->span = count_elements(tensor_sizes(x) + p->first, p->count);
    p->inner = count_elements(tensor_sizes(x) + after, tensor_ndim(x) - after);
    if (p->ndim + tensor_ndim(x) - p->count > EAGER_MAX_NDIM) return false;
    if (!(p->places = PyMem_Calloc((size_t)p->total + 1, sizeof(int64_t)))) return false;
    int64_t pitch = p->span;
    for (int d = 0; d < p->count; d++) {
        const TensorObject *t = (const TensorObject *)PySequence_Fast_GET_ITEM(list, p->first + d);
        const int64_t n = tensor_sizes(x)[p->first + d];
        pitch /= n;
        if (add_places(p, t, n, pitch)) continue;
        PyMem_Free(p->places);
        return false;
    }
    return true;
}

/* Sizes of x at the positions. */
static int result_sizes(const TensorObject *x, const Positions *p, int64_t *sizes)
{
    const int after = p->first + p->count, rest = tensor_ndim(x) - after;
    memcpy(sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)p->first);
    memcpy(sizes + p->first, p->sizes, sizeof(int64_t) * (size_t)p->ndim);
    memcpy(sizes + p->first + p->ndim, tensor_sizes(x) + after, sizeof(int64_t) * (size_t)rest);
    return p->first + p->ndim + rest;
}

/* ---- moving chunks ---- */

typedef struct {
    char *to;
    const char *from;
    const Positions *p;
    int itemsize;
    bool put;        /* from the values to the places, rather than from the places to the values */
    bool same_value; /* one element stands for all values */
} Chunks;

#define MOVE(T)                                                                                             \
    for (long i = begin; i < end; i++) {                                                                    \
        const int64_t *restrict places = p->places;                                                         \
        if (c->put) {                                                                                       \
            T *to = (T *)c->to + i * p->span;                                                               \
            const T *from = (const T *)c->from + (c->same_value ? 0 : i * p->total);                        \
            if (c->same_value) for (int64_t k = 0; k < p->total; k++) to[places[k]] = *from;                \
            else for (int64_t k = 0; k < p->total; k++) to[places[k]] = from[k];                            \
        }                                                                                                   \
        else {                                                                                              \
            T *restrict to = (T *)c->to + i * p->total;                                                     \
            const T *from = (const T *)c->from + i * p->span;                                               \
            for (int64_t k = 0; k < p->total; k++) to[k] = from[places[k]];                                 \
        }                                                                                                   \
    }

/* Blocks [begin, end): of single elements, of 1, 2, 4 or 8 bytes. */
static void move_elements(void *context, long begin, long end)
{
    const Chunks *c = context;
    const Positions *p = c->p;
    switch (c->itemsize) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    default: MOVE(uint64_t)
    }
}

static void repeat_element(char *to, const char *element, int64_t count, int itemsize)
{
    for (int64_t i = 0; i < count; i++) memcpy(to + i * itemsize, element, (size_t)itemsize);
}

/* Chunks [begin, end), counted over all blocks: rows of several elements. */
static void move_chunks(void *context, long begin, long end)
{
    const Chunks *c = context;
    const Positions *p = c->p;
    const int64_t bytes = p->inner * c->itemsize;
    for (long at = begin; at < end; at++) {
        const int64_t block = at / p->total, place = block * p->span + p->places[at - block * p->total];
        if (!c->put) memcpy(c->to + at * bytes, c->from + place * bytes, (size_t)bytes);
        else if (c->same_value) repeat_element(c->to + place * bytes, c->from, p->inner, c->itemsize);
        else memcpy(c->to + place * bytes, c->from + at * bytes, (size_t)bytes);
    }
}

/* Writes run in order, so that the last value for a place stays; only blocks run in parallel. */
static void run_chunks(Chunks *c)
{
    const Positions *p = c->p;
    const double work = (double)p->outer * (double)p->total * (double)p->inner;
    if (!work) return;
    if (p->inner == 1) parallel(move_elements, c, (long)p->outer, 1 + (long)(16384 / p->total), work);
    else if (!c->put) parallel(move_chunks, c, (long)(p->outer * p->total), 1 + (long)(16384 / p->inner), work);
    else move_chunks(c, 0, (long)(p->outer * p->total));
}

/* index(x, indices) of a row-major x */
bool kernel_index(PyObject *const *args, Results *results)
{
    const TensorObject *x = cpu_tensor(args[0]);
    Positions p;
    int64_t sizes[EAGER_MAX_NDIM];
    if (!x || g_itemsize[code_of(x)] > 8 || !read_positions(x, args[1], &p)) return false;
    const int ndim = result_sizes(x, &p, sizes);
    bool lawful = true; /* dims of size 1 in the result get other strides: `eager.optable` computes them */
    for (int d = 0; ndim > 1 && d < ndim; d++) lawful = lawful && sizes[d] != 1;
    TensorObject *out = lawful ? result_memory(results, code_of(x), ndim, sizes) : NULL;
    if (out) {
        Chunks c = {out->data, x->data, &p, g_itemsize[code_of(x)], false, false};
        run_chunks(&c);
    }
    PyMem_Free(p.places);
    return out != NULL;
}

/* ---- adding ---- */

typedef struct {
    void *to;
    const void *from;
    const Positions *p;
    int64_t block; /* the block whose columns the threads share, or -1: the threads share whole blocks */
    bool same_value;
} Sums;

#define ADD_AT(S, T)                                                                                        \
    CLONES static void add_at_##S(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Sums *s = context;                                                                            \
        const Positions *p = s->p;                                                                          \
        const long first = s->block < 0 ? begin : (long)s->block, last = s->block < 0 ? end : first + 1;    \
        const int64_t low = s->block < 0 ? 0 : begin, high = s->block < 0 ? p->inner : end;                 \
        for (long i = first; i < last; i++)                                                                 \
            for (int64_t k = 0; k < p->total; k++) {                                                        \
                T *restrict to = (T *)s->to + (i * p->span + p->places[k]) * p->inner;                      \
                const T *restrict from = (const T *)s->from + (s->same_value ? 0 : (i * p->total + k) * p->inner); \
                if (s->same_value) for (int64_t j = low; j < high; j++) to[j] += *from;                     \
                else for (int64_t j = low; j < high; j++) to[j] += from[j];                                 \
            }                                                                                               \
    }
ADD_AT(f32, float)
ADD_AT(f64, double)

/* In the order of the values, so that the sums are the same for any number of threads. */
static void run_sums(Sums *s, int code)
{
    const Positions *p = s->p;
    const LoopFn fn = code == EAGER_FLOAT64 ? add_at_f64 : add_at_f32;
    const double work = (double)p->outer * (double)p->total * (double)p->inner;
    s->block = -1;
    if (!work) return;
    if (p->outer > 1) {
        parallel(fn, s, (long)p->outer, 1 + (long)(16384 / (p->total * p->inner)), work);
        return;
    }
    s->block = 0;
    parallel(fn, s, (long)p->inner, 64, work);
}

/* ---- index_put, index_add: into `out`, which holds x ---- */

/* Values as a new reference to row-major memory of the result's sizes, or to a single element (*same); NULL for others. */
static TensorObject *read_values(PyObject *o, const TensorObject *x, const Positions *p, bool *same)
{
    TensorObject *t = cpu_tensor(o);
    int64_t sizes[EAGER_MAX_NDIM];
    if (!t || code_of(t) != code_of(x)) return NULL;
    *same = tensor_count(t) == 1;
    const int ndim = result_sizes(x, p, sizes);
    if (*same && tensor_ndim(t) <= ndim) return (TensorObject *)Py_NewRef((PyObject *)t);
    *same = false;
    return same_sizes(t, sizes, ndim) ? as_row_major(t) : NULL;
}

/* The result's memory, which then holds x and shares nothing with `values`; NULL where that cannot be. */
static TensorObject *start_from(const TensorObject *x, const TensorObject *values, Results *results)
{
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (!out || same_allocation(out, values)) return NULL;
    if (out->data != x->data) memcpy(out->data, x->data, (size_t)(tensor_count(x) * g_itemsize[code_of(x)]));
    return out;
}

/* index_put(x, indices, values, accumulate). The result may lie over x. */
bool kernel_index_put(PyObject *const *args, Results *results)
{
    TensorObject *x = cpu_tensor(args[0]), *values, *out = NULL;
    const bool adds = args[3] == Py_True;
    Positions p;
    bool same;
    if (!x || g_itemsize[code_of(x)] > 8 || !has_plain_strides(x) || (adds && !float_tensor(args[0]))) return false;
    if (!read_positions(x, args[1], &p)) return false;
    if ((values = read_values(args[2], x, &p, &same))) out = start_from(x, values, results);
    if (out && adds) {
        Sums s = {out->data, values->data, &p, -1, same};
        run_sums(&s, code_of(x));
    }
    else if (out) {
        Chunks c = {out->data, values->data, &p, g_itemsize[code_of(x)], true, same};
        run_chunks(&c);
    }
    Py_XDECREF(values);
    PyMem_Free(p.places);
    return out != NULL;
}

/* index_add(x, dim, index, source, alpha) of alpha 1. The result may lie over x. */
bool kernel_index_add(PyObject *const *args, Results *results)
{
    TensorObject *x = float_tensor(args[0]), *index = cpu_tensor(args[2]), *out = NULL;
    int64_t dim, alpha;
    if (!x || !index || tensor_ndim(index) != 1 || !read_int(args[1], &dim) || !read_int(args[4], &alpha) || alpha != 1) return false;
    if (dim < 0 || dim >= tensor_ndim(x) || !has_plain_strides(x)) return false;
    PyObject *list = PyTuple_New(dim + 1);
    for (int64_t d = 0; list && d <= dim; d++) PyTuple_SET_ITEM(list, d, Py_NewRef(d == dim ? args[2] : Py_None));
    Positions p;
    bool same, inside = true;
    const bool read = list && read_positions(x, list, &p);
    Py_XDECREF(list);
    if (!read) return false;
    for (int64_t i = 0; i < p.total; i++) inside = inside && index_value(index, i) >= 0; /* negative ones are refused here */
    TensorObject *values = inside ? read_values(args[3], x, &p, &same) : NULL;
    if (values && same) same = tensor_count(x) / p.span * p.total != 1; /* of one element it is the source itself */
    if (values && !same) out = start_from(x, values, results);
    if (out) {
        Sums s = {out->data, values->data, &p, -1, false};
        run_sums(&s, code_of(x));
    }
    Py_XDECREF(values);
    PyMem_Free(p.places);
    return out != NULL;
}
