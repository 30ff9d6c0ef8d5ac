/* Kernels that move elements as they are: filling, copying, joining, taking rows; and the sum of rows by index. */
#define PY_SSIZE_T_CLEAN
#include "kernels.h"
KERNEL_FILE
#include "direct.h"

/* ---- full, clone ---- */

int code_of_dtype(PyObject *dtype)
{
    for (int i = 0; i < EAGER_NUM_DTYPES; i++)
        if (g_dtypes[i] == dtype) return i;
    return -1;
}

bool is_cpu_device(PyObject *device)
{
    if (device == Py_None) return true;
    PyObject *cpu = tensor_device_of(EAGER_CPU, 0);
    Py_XDECREF(cpu);
    return cpu == device;
}

/* full(size, value, dtype, device): a float into float32 and float64, or an int into these and int64 */
PyObject *kernel_full(PyObject *const *args)
{
    int64_t sizes[EAGER_MAX_NDIM];
    const int ndim = read_ints(args[0], sizes, EAGER_MAX_NDIM), code = code_of_dtype(args[2]);
    double value;
    int64_t whole = 0;
    const bool integral = read_int(args[1], &whole);
    if (ndim < 0 || !read_real(args[1], &value)) return NULL;
    if (code != EAGER_FLOAT32 && code != EAGER_FLOAT64 && !(code == EAGER_INT64 && integral)) return NULL;
    for (int i = 0; i < ndim; i++)
        if (sizes[i] < 0) return NULL;
    if (!is_cpu_device(args[3])) return NULL;
    if (code == EAGER_FLOAT32 && (value > 3.4e38 || value < -3.4e38)) return NULL;
    TensorObject *out = new_tensor(code, ndim, sizes);
    if (!out) return NULL;
    const int64_t count = count_elements(sizes, ndim);
    if (value == 0 && !signbit(value)) memset(out->data, 0, (size_t)(count * g_itemsize[code]));
    else if (code == EAGER_FLOAT32) for (int64_t i = 0; i < count; i++) ((float *)out->data)[i] = (float)value;
    else if (code == EAGER_FLOAT64) for (int64_t i = 0; i < count; i++) ((double *)out->data)[i] = value;
    else for (int64_t i = 0; i < count; i++) ((int64_t *)out->data)[i] = whole;
    return (PyObject *)out;
}

/* empty(size, dtype, device) */
PyObject *kernel_empty(PyObject *const *args)
{
    int64_t sizes[EAGER_MAX_NDIM];
    const int ndim = read_ints(args[0], sizes, EAGER_MAX_NDIM), code = code_of_dtype(args[1]);
    if (ndim < 0 || code < 0 || !is_cpu_device(args[2])) return NULL;
    for (int i = 0; i < ndim; i++)
        if (sizes[i] < 0) return NULL;
    return (PyObject *)new_tensor(code, ndim, sizes);
}

/* int_table(values, device) and float_table(values, dtype, device): plain numbers of a tuple as a vector */
static PyObject *table_of(PyObject *values, int code, PyObject *device)
{
    if (!PyTuple_CheckExact(values) || !is_cpu_device(device)) return NULL;
    const int64_t count = PyTuple_GET_SIZE(values);
    for (int64_t i = 0; i < count; i++) {
        PyObject *o = PyTuple_GET_ITEM(values, i);
        if (code == EAGER_INT64 ? !PyLong_CheckExact(o) : !PyFloat_CheckExact(o) || beyond(PyFloat_AS_DOUBLE(o), code)) return NULL;
    }
    TensorObject *out = new_tensor(code, 1, &count);
    for (int64_t i = 0; out && i < count; i++) {
        PyObject *o = PyTuple_GET_ITEM(values, i);
        if (code == EAGER_FLOAT64) ((double *)out->data)[i] = PyFloat_AS_DOUBLE(o);
        else if (code == EAGER_FLOAT32) ((float *)out->data)[i] = (float)PyFloat_AS_DOUBLE(o);
        else if (!read_int(o, &((int64_t *)out->data)[i])) Py_CLEAR(out);
    }
    return (PyObject *)out;
}

PyObject *kernel_int_table(PyObject *const *args) { return table_of(args[0], EAGER_INT64, args[1]); }

PyObject *kernel_float_table(PyObject *const *args)
{
    const int code = code_of_dtype(args[1]);
    return code == EAGER_FLOAT32 || code == EAGER_FLOAT64 ? table_of(args[0], code, args[2]) : NULL;
}

/* clone(x, memory_format): row-major copies */
PyObject *kernel_clone(PyObject *const *args)
{
    TensorObject *x = cpu_tensor(args[0]);
    if (!x) return NULL;
    const bool asked = PyUnicode_Check(args[1]) && PyUnicode_CompareWithASCIIString(args[1], "contiguous") == 0;
    if (!asked && (args[1] != Py_None || !has_plain_strides(x))) return NULL;
    if (g_itemsize[code_of(x)] > 8) return NULL;
    TensorObject *out = new_tensor(code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out && tensor_count(x))
        copy_elements(out->data, tensor_strides(out), x->data, tensor_strides(x), tensor_sizes(x), tensor_ndim(x), g_itemsize[code_of(x)]);
    return (PyObject *)out;
}

/* ---- cat ---- */

static bool is_legacy_empty(const TensorObject *t) { return tensor_ndim(t) == 1 && tensor_sizes(t)[0] == 0; }

/* Sizes of the result; false unless all tensors have one dtype and fit. */
static bool joined_sizes(PyObject *list, int dim, int64_t *sizes, int *ndim, int *code, bool *row_major)
{
    *ndim = -1;
    *row_major = false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
        const TensorObject *t = cpu_tensor(PySequence_Fast_GET_ITEM(list, i));
        if (!t || (i && code_of(t) != *code)) return false;
        *code = code_of(t);
        if (is_legacy_empty(t)) continue;
        *row_major = *row_major || is_plain_image(t);
        if (*ndim < 0) {
            *ndim = tensor_ndim(t);
            memcpy(sizes, tensor_sizes(t), sizeof(int64_t) * (size_t)*ndim);
            if (dim >= *ndim) return false;
            continue;
        }
        if (tensor_ndim(t) != *ndim) return false;
        for (int d = 0; d < *ndim; d++)
            if (d != dim && tensor_sizes(t)[d] != sizes[d]) return false;
        sizes[dim] += tensor_sizes(t)[dim];
    }
    return *ndim > 0;
}

static void place_part(const TensorObject *t, const TensorObject *out, int dim, int64_t at)
{
    const int ndim = tensor_ndim(out), itemsize = g_itemsize[code_of(out)];
    char *to = out->data + at * tensor_strides(out)[dim] * itemsize;
    const int64_t outer = count_elements(tensor_sizes(t), dim), chunk = count_elements(tensor_sizes(t) + dim, ndim - dim);
    if (!is_row_major(t) || outer * chunk >= PARALLEL_ELEMENTS) {
        copy_elements(to, tensor_strides(out), t->data, tensor_strides(t), tensor_sizes(t), ndim, itemsize);
        return;
    }
    const int64_t pitch = count_elements(tensor_sizes(out) + dim, ndim - dim) * itemsize;
    for (int64_t i = 0; i < outer; i++) memcpy(to + i * pitch, t->data + i * chunk * itemsize, (size_t)(chunk * itemsize));
}

/* cat(tensors, dim): of one dtype, one of them row-major at least (where all are channels-last the result is so as well) */
PyObject *kernel_cat(PyObject *const *args)
{
    int64_t sizes[EAGER_MAX_NDIM], dim;
    int ndim, code = 0;
    bool row_major;
    if ((!PyList_Check(args[0]) && !PyTuple_Check(args[0])) || !read_int(args[1], &dim)) return NULL;
    if (dim < 0 || dim >= EAGER_MAX_NDIM || !joined_sizes(args[0], (int)dim, sizes, &ndim, &code, &row_major)) return NULL;
    if (!row_major || g_itemsize[code] > 8) return NULL;
    TensorObject *out = new_tensor(code, ndim, sizes);
    int64_t at = 0;
    for (Py_ssize_t i = 0; out && i < PySequence_Fast_GET_SIZE(args[0]); i++) {
        const TensorObject *t = (const TensorObject *)PySequence_Fast_GET_ITEM(args[0], i);
        if (is_legacy_empty(t)) continue;
        if (tensor_count(t)) place_part(t, out, (int)dim, at);
        at += tensor_sizes(t)[dim];
    }
    return (PyObject *)out;
}

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

/* The rows [first, last) of a block that a part [begin, end) of all rows has. */
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
PyObject *kernel_index_select(PyObject *const *args)
{
    TensorObject *x = cpu_tensor(args[0]);
    int64_t dim, sizes[EAGER_MAX_NDIM];
    Rows r;
    if (!x || !is_row_major(x) || !read_int(args[1], &dim) || dim < 0 || dim >= tensor_ndim(x)) return NULL;
    if (!read_index(args[2], tensor_sizes(x)[dim], &r) || tensor_ndim((TensorObject *)args[2]) != 1) return NULL;
    const int itemsize = g_itemsize[code_of(x)], ndim = tensor_ndim(x);
    memcpy(sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)ndim);
    r.pitch = (long)sizes[dim];
    r.chunk = (long)(count_elements(sizes + dim + 1, ndim - (int)dim - 1) * itemsize);
    sizes[dim] = r.count;
    TensorObject *out = new_tensor(code_of(x), ndim, sizes);
    if (out) run_rows(&r, out, x, (long)count_elements(sizes, (int)dim), itemsize);
    return (PyObject *)out;
}

/* embedding(weight, indices, padding_idx) */
PyObject *kernel_embedding(PyObject *const *args)
{
    TensorObject *weight = cpu_tensor(args[0]);
    Rows r;
    if (!weight || tensor_ndim(weight) != 2 || !is_row_major(weight) || !read_index(args[1], tensor_sizes(weight)[0], &r)) return NULL;
    const TensorObject *index = (const TensorObject *)args[1];
    const int ndim = tensor_ndim(index);
    int64_t sizes[EAGER_MAX_NDIM + 1];
    if (ndim >= EAGER_MAX_NDIM) return NULL;
    memcpy(sizes, tensor_sizes(index), sizeof(int64_t) * (size_t)ndim);
    sizes[ndim] = tensor_sizes(weight)[1];
    r.pitch = 0;
    r.chunk = (long)(sizes[ndim] * g_itemsize[code_of(weight)]);
    TensorObject *out = new_tensor(code_of(weight), ndim + 1, sizes);
    if (out) run_rows(&r, out, weight, 1, g_itemsize[code_of(weight)]);
    return (PyObject *)out;
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
PyObject *kernel_embedding_backward(PyObject *const *args)
{
    TensorObject *g = float_tensor(args[0]);
    int64_t sizes[2];
    Rows r;
    if (!g || tensor_ndim(g) < 1 || !read_int(args[2], &sizes[0]) || !read_int(args[3], &r.skipped) || sizes[0] < 0) return NULL;
    if (!read_index(args[1], sizes[0], &r)) return NULL;
    sizes[1] = tensor_sizes(g)[tensor_ndim(g) - 1];
    r.chunk = (long)sizes[1];
    if (tensor_count(g) != r.count * r.chunk || !(g = as_row_major(g))) return NULL;
    TensorObject *out = new_tensor(code_of(g), 2, sizes);
    if (out) {
        memset(out->data, 0, (size_t)(sizes[0] * sizes[1] * g_itemsize[code_of(g)]));
        r.to = out->data;
        r.from = g->data;
        if (r.chunk) parallel(code_of(g) == EAGER_FLOAT64 ? add_rows_f64 : add_rows_f32, &r, r.chunk, 64, (double)r.count * (double)r.chunk);
    }
    Py_DECREF(g);
    return (PyObject *)out;
}

/* ---- gather, scatter and scatter_add ---- */

typedef struct {
    char *to;
    const char *from;
    const int64_t *index;
    long n, m, inner; /* sizes along dim of the indexed tensor and of the index; elements after dim */
    double number;    /* what is put where there is no source */
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

/* Reads x, dim and index, whose sizes are those of x but along dim; false for other shapes and for indices out of range. */
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
PyObject *kernel_gather(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]), *index;
    Places p;
    long blocks;
    if (!x || (g_itemsize[code_of(x)] != 4 && g_itemsize[code_of(x)] != 8) || !read_places(args, x, &p, &blocks, &index)) return NULL;
    TensorObject *out = new_tensor(code_of(x), tensor_ndim(index), tensor_sizes(index));
    if (!out || !tensor_count(index)) return (PyObject *)out;
    p.to = out->data;
    p.from = x->data;
    const double work = (double)tensor_count(index);
    if (p.inner == 1) parallel(p.itemsize == 4 ? gather_blocks_4 : gather_blocks_8, &p, blocks, 1 + 8192 / p.m, work);
    else parallel(p.itemsize == 4 ? gather_rows_4 : gather_rows_8, &p, blocks * p.m, 1 + 8192 / p.inner, work);
    return (PyObject *)out;
}

/* scatter_add(x, dim, index, src): src of the index's sizes */
PyObject *kernel_scatter_add(PyObject *const *args)
{
    const TensorObject *x = float_tensor(args[0]), *index;
    TensorObject *src = float_tensor(args[3]);
    Places p;
    long blocks;
    if (!x || !src || code_of(x) != code_of(src) || !read_places(args, x, &p, &blocks, &index)) return NULL;
    if (!same_sizes(src, tensor_sizes(index), tensor_ndim(index)) || !(src = as_row_major(src))) return NULL;
    TensorObject *out = new_tensor(code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        memcpy(out->data, x->data, (size_t)(tensor_count(x) * p.itemsize));
        p.to = out->data;
        p.from = src->data;
        if (tensor_count(index))
            parallel(code_of(x) == EAGER_FLOAT64 ? scatter_add_f64 : scatter_add_f32, &p, blocks, 1 + 8192 / (p.m * p.inner),
                     (double)tensor_count(index));
    }
    Py_DECREF(src);
    return (PyObject *)out;
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
PyObject *kernel_scatter(PyObject *const *args)
{
    const TensorObject *x = float_tensor(args[0]), *index;
    TensorObject *src = float_tensor(args[3]);
    Places p = {.from = NULL};
    long blocks;
    if (!x || !read_places(args, x, &p, &blocks, &index)) return NULL;
    if (!src && (!read_real(args[3], &p.number) || beyond(p.number, code_of(x)))) return NULL;
    if (src && (code_of(src) != code_of(x) || !same_sizes(src, tensor_sizes(index), tensor_ndim(index)) || !(src = as_row_major(src)))) return NULL;
    TensorObject *out = new_tensor(code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out) {
        memcpy(out->data, x->data, (size_t)(tensor_count(x) * p.itemsize));
        p.to = out->data;
        p.from = src ? src->data : NULL;
        if (tensor_count(index))
            parallel(code_of(x) == EAGER_FLOAT64 ? put_f64 : put_f32, &p, blocks, 1 + 8192 / (p.m * p.inner), (double)tensor_count(index));
    }
    Py_XDECREF(src);
    return (PyObject *)out;
}

/* ---- where ---- */

typedef struct {
    void *out;
    const uint8_t *condition;
    const void *x, *y; /* NULL for a number */
    double x_number, y_number;
} Choice;

#define CHOOSE(S, T)                                                                                        \
    CLONES static void choose_##S(void *context, long begin, long end)                                      \
    {                                                                                                       \
        const Choice *c = context;                                                                          \
        T *restrict out = c->out;                                                                           \
        const uint8_t *restrict at = c->condition;                                                          \
        const T *restrict x = c->x, *restrict y = c->y;                                                     \
        const T a = (T)c->x_number, b = (T)c->y_number;                                                     \
        if (x && y) for (long i = begin; i < end; i++) out[i] = at[i] ? x[i] : y[i];                        \
        else if (x) for (long i = begin; i < end; i++) out[i] = at[i] ? x[i] : b;                           \
        else for (long i = begin; i < end; i++) out[i] = at[i] ? a : y[i];                                  \
    }
CHOOSE(f32, float)
CHOOSE(f64, double)

/* An operand of the condition's sizes, as a new row-major reference, or a number. A row-major condition makes the result so;
 * where it has dims of size 1, all operands must be tensors and row-major (`elementwise_strides` in eager/base/spec.py). */
static bool read_operand(PyObject *o, const TensorObject *condition, int *code, TensorObject **t, double *number)
{
    if (!PyObject_TypeCheck(o, &TensorBase_Type)) return read_real(o, number) && (has_plain_strides(condition) || !has_unit_dim(condition));
    TensorObject *given = float_tensor(o);
    if (given && !is_row_major(given) && has_unit_dim(condition)) return false;
    if (!given || (*code >= 0 && code_of(given) != *code) || !same_sizes(given, tensor_sizes(condition), tensor_ndim(condition))) return false;
    *code = code_of(given);
    return (*t = as_row_major(given)) != NULL;
}

/* where(condition, x, other): of one shape, or a number on one side */
PyObject *kernel_where(PyObject *const *args)
{
    TensorObject *condition = cpu_tensor(args[0]), *x = NULL, *y = NULL, *out = NULL;
    Choice c = {.out = NULL};
    int code = -1;
    if (!condition || code_of(condition) != EAGER_BOOL || !is_row_major(condition) || !tensor_count(condition)) return NULL;
    if (read_operand(args[1], condition, &code, &x, &c.x_number) && read_operand(args[2], condition, &code, &y, &c.y_number) && code >= 0 &&
        (out = new_tensor(code, tensor_ndim(condition), tensor_sizes(condition)))) {
        c.out = out->data;
        c.condition = (const uint8_t *)condition->data;
        c.x = x ? x->data : NULL;
        c.y = y ? y->data : NULL;
        const long count = (long)tensor_count(condition);
        parallel(code == EAGER_FLOAT64 ? choose_f64 : choose_f32, &c, count, 16384, (double)count);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return (PyObject *)out;
}
