/* Sums of gradients written in place: the gradient of x[i] is added to its part of the gradient of x, and a gradient to a sum that
 * only the engine holds. Otherwise a loop over the parts of a tensor would build a gradient of the whole tensor for each part. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "autograd/accumulate_gradient.h"
#include "tensor/argument_reading.h"
#include "tensor/memory_overlap.h"

#define ADD_PART(S, T)                                                                                      \
    CLONES static void add_line_##S(T *to, int64_t step_to, const T *from, int64_t step_from, int64_t n)    \
    {                                                                                                       \
        if (step_to == 1 && step_from == 1) LOOP_APART for (int64_t i = 0; i < n; i++) to[i] += from[i];    \
        else for (int64_t i = 0; i < n; i++) to[i * step_to] += from[i * step_from];                        \
    }                                                                                                       \
    static void add_part_##S(T *to, const int64_t *to_strides, const T *from, const int64_t *from_strides, const int64_t *sizes, int ndim) \
    {                                                                                                       \
        if (!ndim) *to += *from;                                                                            \
        else if (ndim == 1) add_line_##S(to, *to_strides, from, *from_strides, *sizes);                     \
        else for (int64_t i = 0; i < *sizes; i++)                                                           \
            add_part_##S(to + i * *to_strides, to_strides + 1, from + i * *from_strides, from_strides + 1, sizes + 1, ndim - 1); \
    }
ADD_PART(f32, float)
ADD_PART(f64, double)

static void add_part(char *to, const int64_t *to_strides, const TensorObject *from)
{
    const int64_t *sizes = tensor_sizes(from), *steps = tensor_strides(from);
    if (code_of(from) == EAGER_FLOAT64) add_part_f64((double *)to, to_strides, (const double *)from->data, steps, sizes, tensor_ndim(from));
    else add_part_f32((float *)to, to_strides, (const float *)from->data, steps, sizes, tensor_ndim(from));
}

/* A gradient that only the engine holds: the engine may write it. */
static TensorObject *writable_gradient(PyObject *o)
{
    TensorObject *t = float_tensor(o);
    return t && Py_TYPE(t) == g_tensor_class && tensor_sole_owner(t, 1) && is_row_major(t) ? t : NULL;
}

/* The gradient as a tensor that can be added to `to` element by element; NULL if it has another class, dtype or layout. */
static const TensorObject *alike(const TensorObject *to, PyObject *gradient)
{
    const TensorObject *from = float_tensor(gradient);
    return from && Py_TYPE(from) == g_tensor_class && code_of(from) == code_of(to) && is_row_major(from) &&
                   same_sizes(from, tensor_sizes(to), tensor_ndim(to))
               ? from
               : NULL;
}

static void add_whole(TensorObject *to, const TensorObject *from)
{
    const int64_t count = tensor_count(to);
    if (!count) return;
    if (code_of(to) == EAGER_FLOAT64) add_line_f64((double *)to->data, 1, (const double *)from->data, 1, count);
    else add_line_f32((float *)to->data, 1, (const float *)from->data, 1, count);
    storage_written(to->storage);
}

bool gradient_add(PyObject *sum, PyObject *gradient)
{
    TensorObject *to = tls_grad_disabled && !tls_mode_depth ? writable_gradient(sum) : NULL;
    const TensorObject *from = to ? alike(to, gradient) : NULL;
    if (from) add_whole(to, from);
    return from != NULL;
}

bool gradient_add_to_leaf(PyObject *sum, PyObject *gradient)
{
    TensorObject *to = tls_grad_disabled && !tls_mode_depth ? float_tensor(sum) : NULL;
    if (!to || Py_TYPE(to) != g_tensor_class || to->grad_fn || to->autograd || to->meta & (EAGER_REQUIRES_GRAD | EAGER_FAKE | EAGER_INFERENCE) ||
        !is_row_major(to) || tensor_count(to) >= PARALLEL_ELEMENTS)
        return false;
    const TensorObject *from = alike(to, gradient);
    if (!from || to->storage->owner || from->storage->owner || same_allocation(to, from)) return false;
    add_whole(to, from);
    return true;
}

/* The part of a row-major tensor that a select or slice views, from the saved arguments: (spec, dim, index) or (spec, dim, start,
 * end, step). */
typedef struct {
    int ndim;
    int64_t sizes[EAGER_MAX_NDIM]; /* of the whole */
    int64_t dim, start, step;      /* start and step along dim; step 0: select, which removes the dim */
} ViewedPart;

static bool read_bound(PyObject *o, int64_t n, int64_t otherwise, int64_t *limit)
{
    *limit = otherwise;
    if (o == Py_None) return true;
    if (!read_int(o, limit)) return false;
    *limit = *limit < 0 ? (*limit + n < 0 ? 0 : *limit + n) : *limit > n ? n : *limit;
    return true;
}

static bool read_viewed_part(PyObject *saved, const TensorObject *g, ViewedPart *p)
{
    PyObject *spec = PyTuple_GET_ITEM(saved, 0);
    if (!Py_IS_TYPE(spec, g_spec_class) || field(spec, spec_at[P_DTYPE]) != g_dtypes[code_of(g)]) return false;
    p->ndim = read_ints(field(spec, spec_at[P_SHAPE]), p->sizes, EAGER_MAX_NDIM);
    if (p->ndim < 1 || !read_int(PyTuple_GET_ITEM(saved, 1), &p->dim)) return false;
    p->dim += p->dim < 0 ? p->ndim : 0;
    const int64_t n = p->sizes[p->dim];
    int64_t end;
    p->step = 0;
    if (PyTuple_GET_SIZE(saved) == 3) {
        if (!read_int(PyTuple_GET_ITEM(saved, 2), &p->start)) return false;
        p->start += p->start < 0 ? n : 0;
        return true;
    }
    return read_bound(PyTuple_GET_ITEM(saved, 2), n, 0, &p->start) && read_bound(PyTuple_GET_ITEM(saved, 3), n, n, &end) &&
           read_int(PyTuple_GET_ITEM(saved, 4), &p->step) && p->step > 0;
}

static TensorObject *new_zeros(int code, const ViewedPart *p)
{
    TensorObject *t = new_tensor(code, p->ndim, p->sizes);
    if (t && tensor_count(t)) memset(t->data, 0, (size_t)(tensor_count(t) * g_itemsize[code]));
    return t;
}

/* See accumulate_gradient.h. */
PyObject *gradient_add_part(const OpBase *op, PyObject *saved, PyObject *gradient, PyObject *whole)
{
    static int by_select = -1, by_slice = -1;
    if (by_select < 0) {
        by_select = view_find("select");
        by_slice = view_find("slice");
    }
    const TensorObject *g = float_tensor(gradient);
    ViewedPart p;
    if ((op->view != by_select && op->view != by_slice) || !tls_grad_disabled || tls_mode_depth || !g || Py_TYPE(g) != g_tensor_class) return NULL;
    if (!saved || !PyTuple_Check(saved) || PyTuple_GET_SIZE(saved) != (op->view == by_select ? 3 : 5) || !read_viewed_part(saved, g, &p)) return NULL;
    if (tensor_ndim(g) != p.ndim - !p.step || !tensor_count(g)) return NULL;
    TensorObject *to = whole ? writable_gradient(whole) : NULL;
    if (whole && (!to || code_of(to) != code_of(g) || !same_sizes(to, p.sizes, p.ndim))) return NULL;
    if (!whole && !(to = new_zeros(code_of(g), &p))) return NULL;
    int64_t steps[EAGER_MAX_NDIM];
    int kept = 0;
    for (int d = 0; d < p.ndim; d++)
        if (d != p.dim || p.step) steps[kept++] = tensor_strides(to)[d] * (d == p.dim ? p.step : 1);
    char *at = to->data + p.start * tensor_strides(to)[p.dim] * g_itemsize[code_of(to)];
    if (whole) add_part(at, steps, g);
    else copy_elements(at, steps, g->data, tensor_strides(g), tensor_sizes(g), kept, g_itemsize[code_of(g)]);
    storage_written(to->storage);
    return whole ? Py_NewRef(whole) : (PyObject *)to;
}
