/* Ops that move elements unchanged: clone, cat, stack, flip, roll, tril, triu, constant_pad_nd. Each copies boxes of the input
 * into boxes of the result (strided_copy.c). */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

/* A CPU tensor whose elements copy_elements can move. The rules of the ops state which of them accept 8-bit floats. */
static TensorObject *movable(PyObject *o)
{
    TensorObject *t = cpu_tensor(o);
    return t && g_itemsize[code_of(t)] <= 8 && !dtype_is_float8(code_of(t)) ? t : NULL;
}

/* Dims of a tensor, negative ones from the end, as a mask; false for one out of range or given twice. */
static bool read_dims(PyObject *o, int ndim, int64_t *dims, int *count, uint64_t *mask)
{
    *count = read_ints(o, dims, EAGER_MAX_NDIM);
    *mask = 0;
    for (int i = 0; i < *count; i++) {
        if (dims[i] < 0) dims[i] += ndim;
        if (dims[i] < 0 || dims[i] >= ndim || *mask >> dims[i] & 1) return false;
        *mask |= 1ull << dims[i];
    }
    return *count >= 0;
}

/* ---- clone, cat ---- */

/* clone(x, memory_format): row-major copies */
bool kernel_clone(PyObject *const *args, Results *results)
{
    TensorObject *x = cpu_tensor(args[0]);
    if (!x) return false;
    const bool asked = PyUnicode_Check(args[1]) && PyUnicode_CompareWithASCIIString(args[1], "contiguous") == 0;
    if (!asked && (args[1] != Py_None || !has_plain_strides(x))) return false;
    if (g_itemsize[code_of(x)] > 8) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (out && tensor_count(x))
        copy_elements(out->data, tensor_strides(out), x->data, tensor_strides(x), tensor_sizes(x), tensor_ndim(x), g_itemsize[code_of(x)]);
    return out != NULL;
}

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

static void copy_part(const TensorObject *t, const TensorObject *out, int dim, int64_t at)
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

/* cat(tensors, dim): of one dtype, at least one tensor row-major (if all are channels-last, the result is channels-last, which
 * this kernel does not write) */
bool kernel_cat(PyObject *const *args, Results *results)
{
    int64_t sizes[EAGER_MAX_NDIM], dim;
    int ndim, code = 0;
    bool row_major;
    if ((!PyList_Check(args[0]) && !PyTuple_Check(args[0])) || !read_int(args[1], &dim)) return false;
    if (dim < 0 || dim >= EAGER_MAX_NDIM || !joined_sizes(args[0], (int)dim, sizes, &ndim, &code, &row_major)) return false;
    if (!row_major || g_itemsize[code] > 8) return false;
    TensorObject *out = result_memory(results, code, ndim, sizes);
    int64_t at = 0;
    for (Py_ssize_t i = 0; out && i < PySequence_Fast_GET_SIZE(args[0]); i++) {
        const TensorObject *t = (const TensorObject *)PySequence_Fast_GET_ITEM(args[0], i);
        if (is_legacy_empty(t)) continue;
        if (tensor_count(t)) copy_part(t, out, (int)dim, at);
        at += tensor_sizes(t)[dim];
    }
    return out != NULL;
}

/* ---- flip, roll ---- */

/* flip(x, dims): a copy that reads those dims backwards */
bool kernel_flip(PyObject *const *args, Results *results)
{
    TensorObject *x = movable(args[0]);
    int64_t dims[EAGER_MAX_NDIM], steps[EAGER_MAX_NDIM], first = 0;
    uint64_t chosen;
    int count;
    if (!x || !has_plain_strides(x) || !read_dims(args[1], tensor_ndim(x), dims, &count, &chosen)) return false;
    const int ndim = tensor_ndim(x), itemsize = g_itemsize[code_of(x)];
    TensorObject *out = result_memory(results, code_of(x), ndim, tensor_sizes(x));
    if (!out || !tensor_count(x)) return out != NULL;
    for (int d = 0; d < ndim; d++) {
        const bool back = chosen >> d & 1;
        steps[d] = back ? -tensor_strides(x)[d] : tensor_strides(x)[d];
        if (back) first += (tensor_sizes(x)[d] - 1) * tensor_strides(x)[d];
    }
    copy_elements(out->data, tensor_strides(out), x->data + first * itemsize, steps, tensor_sizes(x), ndim, itemsize);
    return out != NULL;
}

typedef struct {
    const int64_t *sizes, *to_strides, *from_strides, *shifts; /* shifts: of every dim, in [0, size) */
    int ndim, itemsize;
} Roll;

/* Each dim is split into two parts, which swap. */
static void roll_dims(const Roll *r, int d, int64_t *box, char *to, const char *from)
{
    while (d < r->ndim && !r->shifts[d]) d++;
    if (d == r->ndim) {
        copy_elements(to, r->to_strides, from, r->from_strides, box, r->ndim, r->itemsize);
        return;
    }
    const int64_t n = r->sizes[d], shift = r->shifts[d], step_to = r->to_strides[d] * r->itemsize, step_from = r->from_strides[d] * r->itemsize;
    box[d] = n - shift;
    roll_dims(r, d + 1, box, to + shift * step_to, from);
    box[d] = shift;
    roll_dims(r, d + 1, box, to, from + (n - shift) * step_from);
    box[d] = n;
}

/* roll(x, shifts, dims): of no dims, the flattened tensor */
bool kernel_roll(PyObject *const *args, Results *results)
{
    TensorObject *x = movable(args[0]);
    int64_t by[EAGER_MAX_NDIM], dims[EAGER_MAX_NDIM], shifts[EAGER_MAX_NDIM] = {0}, box[EAGER_MAX_NDIM], all, one = 1;
    uint64_t chosen;
    int count;
    if (!x || !read_dims(args[2], tensor_ndim(x), dims, &count, &chosen) || read_ints(args[1], by, EAGER_MAX_NDIM) != (count ? count : 1)) return false;
    if ((!count && !is_row_major(x)) || suggests_channels_last(x) || !(all = tensor_count(x))) return false;
    TensorObject *out = result_memory(results, code_of(x), tensor_ndim(x), tensor_sizes(x));
    if (!out) return false;
    Roll r = {tensor_sizes(x), tensor_strides(out), tensor_strides(x), shifts, tensor_ndim(x), g_itemsize[code_of(x)]};
    if (!count) {
        r.sizes = &all;
        r.to_strides = r.from_strides = &one;
        r.ndim = count = 1;
        dims[0] = 0;
    }
    for (int i = 0; i < count; i++) shifts[dims[i]] = (by[i] % r.sizes[dims[i]] + r.sizes[dims[i]]) % r.sizes[dims[i]];
    memcpy(box, r.sizes, sizeof(int64_t) * (size_t)r.ndim);
    roll_dims(&r, 0, box, out->data, x->data);
    return out != NULL;
}

/* ---- tril, triu ---- */

typedef struct {
    char *to;
    const char *from;
    int64_t rows, columns, diagonal;
    int itemsize;
    bool lower;
} Triangle;

static void triangle_rows(void *context, long begin, long end)
{
    const Triangle *t = context;
    const int64_t width = t->columns * t->itemsize;
    for (long i = begin; i < end; i++) {
        int64_t edge = i % t->rows + t->diagonal + t->lower; /* columns before it are below the diagonal */
        edge = (edge < 0 ? 0 : edge > t->columns ? t->columns : edge) * t->itemsize;
        char *to = t->to + i * width;
        const char *from = t->from + i * width;
        memcpy(t->lower ? to : to + edge, t->lower ? from : from + edge, (size_t)(t->lower ? edge : width - edge));
        memset(t->lower ? to + edge : to, 0, (size_t)(t->lower ? width - edge : edge));
    }
}

static bool triangle(PyObject *const *args, bool lower, Results *results)
{
    TensorObject *x = movable(args[0]);
    Triangle t = {.lower = lower};
    if (!x || tensor_ndim(x) < 2 || !read_int(args[1], &t.diagonal) || !(x = as_row_major(x))) return false;
    const int64_t *sizes = tensor_sizes(x), limit = INT32_MAX;
    t.diagonal = t.diagonal < -limit ? -limit : t.diagonal > limit ? limit : t.diagonal;
    t.rows = sizes[tensor_ndim(x) - 2];
    t.columns = sizes[tensor_ndim(x) - 1];
    TensorObject *out = t.columns < limit && t.rows < limit ? result_memory(results, code_of(x), tensor_ndim(x), sizes) : NULL;
    if (out && tensor_count(x)) {
        t.to = out->data;
        t.from = x->data;
        t.itemsize = g_itemsize[code_of(x)];
        const long rows = (long)(tensor_count(x) / t.columns);
        parallel(triangle_rows, &t, rows, 1 + 16384 / (long)t.columns, (double)tensor_count(x));
    }
    Py_DECREF(x);
    return out != NULL;
}

bool kernel_tril(PyObject *const *args, Results *results) { return triangle(args, true, results); }
bool kernel_triu(PyObject *const *args, Results *results) { return triangle(args, false, results); }

/* ---- stack, constant_pad_nd ---- */

/* stack(tensors, dim): of one dtype and shape, one of them row-major at least if they are images */
bool kernel_stack(PyObject *const *args, Results *results)
{
    int64_t dim, sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
    if ((!PyList_Check(args[0]) && !PyTuple_Check(args[0])) || !read_int(args[1], &dim)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(args[0]);
    const TensorObject *first = count ? movable(PySequence_Fast_GET_ITEM(args[0], 0)) : NULL;
    const int ndim = first ? tensor_ndim(first) : EAGER_MAX_NDIM;
    if (ndim >= EAGER_MAX_NDIM || dim < -ndim - 1 || dim > ndim) return false;
    dim += dim < 0 ? ndim + 1 : 0;
    bool channels_last = suggests_channels_last(first);
    for (Py_ssize_t i = 1; i < count; i++) {
        const TensorObject *t = cpu_tensor(PySequence_Fast_GET_ITEM(args[0], i));
        if (!t || code_of(t) != code_of(first) || !same_sizes(t, tensor_sizes(first), ndim)) return false;
        channels_last = channels_last && suggests_channels_last(t);
    }
    if (channels_last || (dim == ndim && has_unit_dim(first) && !has_plain_strides(first))) return false;
    for (int d = 0, from = 0; d <= ndim; d++) sizes[d] = d == dim ? count : tensor_sizes(first)[from++];
    TensorObject *out = result_memory(results, code_of(first), ndim + 1, sizes);
    if (!out || !tensor_count(first)) return out != NULL;
    for (int d = 0, to = 0; d <= ndim; d++)
        if (d != dim) strides[to++] = tensor_strides(out)[d];
    const int itemsize = g_itemsize[code_of(first)];
    for (Py_ssize_t i = 0; i < count; i++) {
        const TensorObject *t = (const TensorObject *)PySequence_Fast_GET_ITEM(args[0], i);
        copy_elements(out->data + i * tensor_strides(out)[dim] * itemsize, strides, t->data, tensor_strides(t), tensor_sizes(t), ndim, itemsize);
    }
    return out != NULL;
}

static void fill(TensorObject *t, double value)
{
    const int64_t count = tensor_count(t);
    if (value == 0 && !signbit(value)) memset(t->data, 0, (size_t)(count * g_itemsize[code_of(t)]));
    else if (code_of(t) == EAGER_FLOAT32) for (int64_t i = 0; i < count; i++) ((float *)t->data)[i] = (float)value;
    else for (int64_t i = 0; i < count; i++) ((double *)t->data)[i] = value;
}

/* constant_pad_nd(x, pad, value): any dtype with zeros, or floats. Channels-last images are unsupported, and so are crops that
 * have dims of size 1: a crop keeps the strides of such dims. */
bool kernel_constant_pad_nd(PyObject *const *args, Results *results)
{
    TensorObject *x = movable(args[0]);
    int64_t pad[2 * EAGER_MAX_NDIM], sizes[EAGER_MAX_NDIM], box[EAGER_MAX_NDIM], to = 0, from = 0;
    double value;
    const int count = x ? read_ints(args[1], pad, 2 * EAGER_MAX_NDIM) : -1;
    if (count < 0 || count % 2 || count / 2 > tensor_ndim(x) || !read_real(args[2], &value) || !is_plain_image(x)) return false;
    const int ndim = tensor_ndim(x), itemsize = g_itemsize[code_of(x)];
    if ((value != 0 || signbit(value)) && (!float_tensor(args[0]) || beyond(value, code_of(x)))) return false;
    memcpy(sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)ndim);
    memcpy(box, sizes, sizeof(int64_t) * (size_t)ndim);
    bool adds = false, unit = has_unit_dim(x);
    for (int i = 0; i < count / 2; i++) {
        const int d = ndim - 1 - i;
        adds = adds || pad[2 * i] > 0 || pad[2 * i + 1] > 0;
        sizes[d] += pad[2 * i] + pad[2 * i + 1];
        unit = unit || sizes[d] == 1;
        for (int side = 0; side < 2; side++) box[d] += pad[2 * i + side] < 0 ? pad[2 * i + side] : 0;
        if (sizes[d] < 0 || box[d] < 0) return false;
    }
    if (!adds && unit) return false;
    TensorObject *out = result_memory(results, code_of(x), ndim, sizes);
    if (!out) return false;
    for (int i = 0; i < count / 2; i++) {
        const int d = ndim - 1 - i;
        if (pad[2 * i] > 0) to += pad[2 * i] * tensor_strides(out)[d];
        else from -= pad[2 * i] * tensor_strides(x)[d];
    }
    if (tensor_count(out)) fill(out, value);
    if (count_elements(box, ndim)) copy_elements(out->data + to * itemsize, tensor_strides(out), x->data + from * itemsize, tensor_strides(x), box, ndim, itemsize);
    return out != NULL;
}
