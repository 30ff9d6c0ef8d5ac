/* View ops in C: geometry, history, and the methods of Tensor that return views.
 *
 * A geometry function computes where the elements of a view lie, as the op's rule in eager.optable.views does (a test compares the
 * two), for valid calls. It leaves every other call to that rule, which knows which exception to raise. */
#define PY_SSIZE_T_CLEAN
#include "calls/calls.h"
#include "tape/node_fields.h"
#include <string.h>

typedef struct {
    int ndim;
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM], offset;
} Geometry;

/* ---- reading arguments: false, without an exception, unless the argument is an int in range ---- */

static bool exact_int(PyObject *o, int64_t *value)
{
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static bool exact_ints(PyObject *o, int64_t *values, int *count)
{
    if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n > EAGER_MAX_NDIM) return false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!exact_int(PySequence_Fast_GET_ITEM(o, i), &values[i])) return false;
    *count = (int)n;
    return true;
}

/* A dim counted from either end of `ndim`. */
static bool read_dim(PyObject *o, int ndim, int *dim)
{
    int64_t d;
    if (!exact_int(o, &d) || d < -ndim || d >= ndim) return false;
    *dim = (int)(d < 0 ? d + ndim : d);
    return true;
}

/* ---- geometries: of args[0] and the other arguments of the op ---- */

static int64_t count_of(const int64_t *sizes, int ndim)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= sizes[i];
    return count;
}

static void start_from(Geometry *g, const TensorObject *x)
{
    g->ndim = tensor_ndim(x);
    g->offset = x->offset;
    memcpy(g->sizes, tensor_sizes(x), sizeof(int64_t) * (size_t)g->ndim);
    memcpy(g->strides, tensor_strides(x), sizeof(int64_t) * (size_t)g->ndim);
}

static void row_major_strides(Geometry *g)
{
    int64_t step = 1;
    for (int i = g->ndim - 1; i >= 0; i--) {
        g->strides[i] = step;
        step *= g->sizes[i] > 1 ? g->sizes[i] : 1;
    }
}

/* Fills in a -1 among the sizes; false unless they then hold as many elements as x. */
static bool infer_sizes(const TensorObject *x, int64_t *sizes, int ndim)
{
    int unknown = -1;
    int64_t known = 1, count = count_of(tensor_sizes(x), tensor_ndim(x));
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] < -1 || (sizes[i] == -1 && unknown >= 0)) return false;
        if (sizes[i] == -1) unknown = i;
        else if (__builtin_mul_overflow(known, sizes[i], &known)) return false;
    }
    if (unknown < 0) return known == count;
    if (known == 0 || count % known) return false;
    sizes[unknown] = count / known;
    return true;
}

/* Strides of the same elements under other sizes, from the innermost dim outwards: each run of the tensor's dims that lie
 * contiguously behind one another must be cut by new dims at the run's boundaries. */
static bool regroup(const TensorObject *x, Geometry *g)
{
    const int old = tensor_ndim(x);
    const int64_t *sizes = tensor_sizes(x), *strides = tensor_strides(x);
    if (count_of(sizes, old) == 0) {
        if (old == g->ndim && !memcmp(sizes, g->sizes, sizeof(int64_t) * (size_t)old))
            memcpy(g->strides, strides, sizeof(int64_t) * (size_t)old);
        else row_major_strides(g);
        return true;
    }
    int at = g->ndim - 1;
    int64_t run_stride = old ? strides[old - 1] : 1, run = 1, seen = 1;
    for (int i = old - 1; i >= 0; i--) {
        run *= sizes[i];
        if (i > 0 && (sizes[i - 1] == 1 || strides[i - 1] == run * run_stride)) continue;
        while (at >= 0 && (seen < run || g->sizes[at] == 1)) {
            g->strides[at] = seen * run_stride;
            seen *= g->sizes[at--];
        }
        if (seen != run) return false;
        if (i > 0) run_stride = strides[i - 1];
        run = seen = 1;
    }
    for (; at >= 0; at--) g->strides[at] = 1; /* of a 0-d tensor: only dims of size 1 are left */
    return true;
}

static bool view_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    g->offset = x->offset;
    return exact_ints(args[1], g->sizes, &g->ndim) && infer_sizes(x, g->sizes, g->ndim) && regroup(x, g);
}

static bool expand_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    g->offset = x->offset;
    if (!exact_ints(args[1], g->sizes, &g->ndim)) return false;
    const int lead = g->ndim - tensor_ndim(x);
    if (lead < 0) return false;
    for (int i = g->ndim - 1; i >= 0; i--) {
        const int64_t have = i < lead ? 1 : tensor_sizes(x)[i - lead];
        if (g->sizes[i] == -1 && i >= lead) g->sizes[i] = have;
        if (g->sizes[i] < 0 || (have != g->sizes[i] && have != 1)) return false;
        if (have != g->sizes[i] || !tensor_ndim(x)) g->strides[i] = 0;
        else g->strides[i] = i >= lead ? tensor_strides(x)[i - lead] : g->sizes[i + 1] * g->strides[i + 1]; /* a new dim spans the dims behind it */
    }
    return true;
}

static bool permute_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    const int ndim = tensor_ndim(x);
    uint64_t seen = 0;
    if ((!PyTuple_Check(args[1]) && !PyList_Check(args[1])) || PySequence_Fast_GET_SIZE(args[1]) != ndim) return false;
    for (int i = 0; i < ndim; i++) {
        int d;
        if (!read_dim(PySequence_Fast_GET_ITEM(args[1], i), ndim, &d) || seen >> d & 1) return false;
        seen |= 1ull << d;
        g->sizes[i] = tensor_sizes(x)[d];
        g->strides[i] = tensor_strides(x)[d];
    }
    g->ndim = ndim;
    g->offset = x->offset;
    return true;
}

/* A bound of a slice as Python clamps it. */
static bool read_bound(PyObject *o, int64_t size, int64_t missing, int64_t *bound)
{
    *bound = missing;
    if (o == Py_None) return true;
    if (!exact_int(o, bound)) return false;
    if (*bound < 0) *bound = *bound + size < 0 ? 0 : *bound + size;
    if (*bound > size) *bound = size;
    return true;
}

static bool slice_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    int d;
    int64_t low, high, step;
    start_from(g, x);
    if (!read_dim(args[1], g->ndim, &d) || !exact_int(args[4], &step) || step <= 0) return false;
    if (!read_bound(args[2], g->sizes[d], 0, &low) || !read_bound(args[3], g->sizes[d], g->sizes[d], &high)) return false;
    g->offset += low * g->strides[d];
    g->sizes[d] = high > low ? (high - low - 1) / step + 1 : 0;
    return !__builtin_mul_overflow(g->strides[d], step, &g->strides[d]);
}

static void drop_dim(Geometry *g, int d)
{
    g->ndim--;
    memmove(g->sizes + d, g->sizes + d + 1, sizeof(int64_t) * (size_t)(g->ndim - d));
    memmove(g->strides + d, g->strides + d + 1, sizeof(int64_t) * (size_t)(g->ndim - d));
}

static bool select_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    int d;
    int64_t index;
    start_from(g, x);
    if (!read_dim(args[1], g->ndim, &d) || !exact_int(args[2], &index)) return false;
    if (index < -g->sizes[d] || index >= g->sizes[d]) return false;
    g->offset += (index < 0 ? index + g->sizes[d] : index) * g->strides[d];
    drop_dim(g, d);
    return true;
}

static bool unsqueeze_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    int d;
    start_from(g, x);
    if (g->ndim == EAGER_MAX_NDIM || !read_dim(args[1], g->ndim + 1, &d)) return false;
    const int64_t stride = d < g->ndim ? g->sizes[d] * g->strides[d] : 1;
    memmove(g->sizes + d + 1, g->sizes + d, sizeof(int64_t) * (size_t)(g->ndim - d));
    memmove(g->strides + d + 1, g->strides + d, sizeof(int64_t) * (size_t)(g->ndim - d));
    g->sizes[d] = 1;
    g->strides[d] = stride;
    g->ndim++;
    return true;
}

static bool squeeze_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    uint64_t chosen = ~0ull;
    start_from(g, x);
    if (args[1] != Py_None) {
        if (!PyTuple_Check(args[1])) return false;
        chosen = 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
            int d;
            if (!read_dim(PyTuple_GET_ITEM(args[1], i), g->ndim, &d)) return false;
            chosen |= 1ull << d;
        }
    }
    for (int d = g->ndim - 1; d >= 0; d--)
        if (chosen >> d & 1 && g->sizes[d] == 1) drop_dim(g, d);
    return true;
}

static bool same_geometry(const TensorObject *x, PyObject *const *args, Geometry *g)
{
    (void)args;
    start_from(g, x);
    return true;
}

/* ---- ops ---- */

enum view_op { VIEW, EXPAND, PERMUTE, SLICE, SELECT, UNSQUEEZE, SQUEEZE, ALIAS, DETACH, NUM_VIEWS };

/* tracked: the view knows its base, and gets a history. */
static const struct {
    const char *name;
    bool (*geometry)(const TensorObject *, PyObject *const *, Geometry *);
    int arity;
    bool tracked;
} view_ops[NUM_VIEWS] = {
    {"view", view_geometry, 2, true},       {"expand", expand_geometry, 2, true},       {"permute", permute_geometry, 2, true},
    {"slice", slice_geometry, 5, true},     {"select", select_geometry, 3, true},       {"unsqueeze", unsqueeze_geometry, 2, true},
    {"squeeze", squeeze_geometry, 2, true}, {"alias", same_geometry, 1, true},          {"detach", same_geometry, 1, false},
};

static OpBase *bound[NUM_VIEWS]; /* the ops of that name, for the methods below */

int view_find(const char *name)
{
    for (int i = 0; i < NUM_VIEWS; i++)
        if (!strcmp(view_ops[i].name, name)) return i;
    return -1;
}

void view_bind(int which, OpBase *op) { Py_XSETREF(bound[which], (OpBase *)Py_NewRef((PyObject *)op)); }

static bool has_history_class(const TensorObject *x) { return !x->autograd || Py_IS_TYPE(x->autograd, g_meta_class); }

PyObject *view_call(OpBase *op, int which, PyObject *const *args, Py_ssize_t nargs)
{
    if (tls_mode_depth || nargs != view_ops[which].arity || !PyObject_TypeCheck(args[0], &TensorBase_Type)) return NULL;
    TensorObject *x = (TensorObject *)args[0];
    if (Py_TYPE(x) != g_tensor_class && !(x->meta & EAGER_IS_PARAM)) return NULL;
    if (x->meta & (EAGER_FAKE | EAGER_INFERENCE) || tls_inference || record_needs_python() || !has_history_class(x)) return NULL;
    const bool tracked = view_ops[which].tracked, wanted = tracked && !tls_grad_disabled && x->meta & EAGER_REQUIRES_GRAD;
    const int code = EAGER_META_DTYPE(x->meta);
    if (tracked && !wanted && x->storage->ask_base) return NULL;
    if (wanted && !dtype_is_continuous(code)) return NULL;
    Geometry g;
    if (!view_ops[which].geometry(x, args, &g)) return NULL;
    PyObject *out = (PyObject *)tensor_alias(x, x->meta, g.ndim, g.sizes, g.strides, g.offset);
    if (!out || !tracked) return out;
    if ((wanted && record_history((PyObject *)op, op->plans, 1, args, nargs, &out, 1) < 0) ||
        record_view((TensorObject *)out, (PyObject *)op, args, nargs) < 0)
        Py_CLEAR(out);
    return out;
}

/* ---- methods of Tensor: NULL without an exception where the function in eager.functions has to decide ---- */

static PyObject *apply(enum view_op which, PyObject *x, PyObject *a, PyObject *b)
{
    PyObject *args[] = {x, a, b};
    return bound[which] ? view_call(bound[which], which, args, 1 + (a != NULL) + (b != NULL)) : NULL;
}

static PyObject *apply_and_drop(enum view_op which, PyObject *x, PyObject *a) /* steals a */
{
    PyObject *out = a ? apply(which, x, a, NULL) : NULL;
    Py_XDECREF(a);
    return out;
}

static PyObject *tuple_of(const int64_t *values, int count)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

static bool is_tensor(PyObject *o) { return PyObject_TypeCheck(o, &TensorBase_Type); }

/* f(2, 3), f((2, 3)) or f([2, 3]) */
static bool read_sizes(PyObject *const *args, Py_ssize_t nargs, int64_t *sizes, int *count)
{
    if (nargs < 1 || !is_tensor(args[0])) return false;
    if (nargs == 2 && !PyLong_CheckExact(args[1])) return exact_ints(args[1], sizes, count);
    if (nargs - 1 > EAGER_MAX_NDIM) return false;
    for (Py_ssize_t i = 1; i < nargs; i++)
        if (!exact_int(args[i], &sizes[i - 1])) return false;
    *count = (int)nargs - 1;
    return true;
}

static PyObject *with_sizes(enum view_op which, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t sizes[EAGER_MAX_NDIM];
    int count;
    return read_sizes(args, nargs, sizes, &count) ? apply_and_drop(which, args[0], tuple_of(sizes, count)) : NULL;
}

static PyObject *method_view(PyObject *const *args, Py_ssize_t nargs) { return with_sizes(VIEW, args, nargs); }
static PyObject *method_expand(PyObject *const *args, Py_ssize_t nargs) { return with_sizes(EXPAND, args, nargs); }
static PyObject *method_permute(PyObject *const *args, Py_ssize_t nargs) { return with_sizes(PERMUTE, args, nargs); }

static PyObject *method_reshape(PyObject *const *args, Py_ssize_t nargs)
{
    int64_t sizes[EAGER_MAX_NDIM];
    int count;
    if (!read_sizes(args, nargs, sizes, &count) || !infer_sizes((TensorObject *)args[0], sizes, count)) return NULL;
    return apply_and_drop(VIEW, args[0], tuple_of(sizes, count));
}

static PyObject *method_flatten(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 3 || !is_tensor(args[0])) return NULL;
    const TensorObject *x = (const TensorObject *)args[0];
    const int ndim = tensor_ndim(x);
    int first = 0, last = ndim - 1, count = 0;
    if (ndim == 0 || (nargs > 1 && !read_dim(args[1], ndim, &first)) || (nargs > 2 && !read_dim(args[2], ndim, &last)) || first >= last)
        return NULL;
    int64_t sizes[EAGER_MAX_NDIM];
    for (int i = 0; i < first; i++) sizes[count++] = tensor_sizes(x)[i];
    sizes[count++] = count_of(tensor_sizes(x) + first, last - first + 1);
    for (int i = last + 1; i < ndim; i++) sizes[count++] = tensor_sizes(x)[i];
    return apply_and_drop(VIEW, args[0], tuple_of(sizes, count));
}

static PyObject *swapped(PyObject *x, int a, int b)
{
    int64_t order[EAGER_MAX_NDIM];
    const int ndim = tensor_ndim((TensorObject *)x);
    for (int i = 0; i < ndim; i++) order[i] = i == a ? b : i == b ? a : i;
    return apply_and_drop(PERMUTE, x, tuple_of(order, ndim));
}

static PyObject *method_transpose(PyObject *const *args, Py_ssize_t nargs)
{
    int a, b;
    if (nargs != 3 || !is_tensor(args[0])) return NULL;
    const int ndim = tensor_ndim((TensorObject *)args[0]);
    return read_dim(args[1], ndim, &a) && read_dim(args[2], ndim, &b) ? swapped(args[0], a, b) : NULL;
}

static PyObject *method_t(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 1 && is_tensor(args[0]) && tensor_ndim((TensorObject *)args[0]) == 2 ? swapped(args[0], 0, 1) : NULL;
}

static PyObject *method_unsqueeze(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 2 ? apply(UNSQUEEZE, args[0], args[1], NULL) : NULL;
}

static PyObject *method_squeeze(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 1) return apply(SQUEEZE, args[0], Py_None, NULL);
    if (nargs != 2 || !PyLong_CheckExact(args[1])) return NULL;
    return apply_and_drop(SQUEEZE, args[0], PyTuple_Pack(1, args[1]));
}

static PyObject *method_select(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 3 ? apply(SELECT, args[0], args[1], args[2]) : NULL;
}

/* ---- x[...] with ints, slices, None and Ellipsis ---- */

static PyObject *take_slice(PyObject *x, int dim, PyObject *item)
{
    const PySliceObject *slice = (const PySliceObject *)item;
    static PyObject *one;
    if (slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None) return Py_NewRef(x);
    if (!one && !(one = PyLong_FromLong(1))) return NULL;
    PyObject *d = PyLong_FromLong(dim);
    PyObject *args[] = {x, d, slice->start, slice->stop, slice->step == Py_None ? one : slice->step};
    PyObject *out = d && bound[SLICE] ? view_call(bound[SLICE], SLICE, args, 5) : NULL;
    Py_XDECREF(d);
    return out;
}

static PyObject *take_item(PyObject *x, int *dim, PyObject *item, int skipped)
{
    if (item == Py_Ellipsis) {
        *dim += skipped;
        return Py_NewRef(x);
    }
    if (PySlice_Check(item)) return take_slice(x, (*dim)++, item);
    PyObject *d = PyLong_FromLong(*dim), *out = NULL;
    if (d && item == Py_None) out = apply(UNSQUEEZE, x, d, NULL);
    else if (d) out = apply(SELECT, x, d, item);
    *dim += item == Py_None;
    Py_XDECREF(d);
    return out;
}

static PyObject *method_getitem(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !is_tensor(args[0]) || tls_mode_depth) return NULL;
    PyObject *key = args[1], *const *items = &key;
    Py_ssize_t count = 1;
    if (PyTuple_CheckExact(key)) {
        items = &PyTuple_GET_ITEM(key, 0);
        count = PyTuple_GET_SIZE(key);
    }
    int taken = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyLong_CheckExact(items[i]) || PySlice_Check(items[i])) taken++;
        else if (items[i] == Py_Ellipsis) ellipses++;
        else if (items[i] != Py_None) return NULL;
    }
    const int ndim = tensor_ndim((TensorObject *)args[0]);
    if (taken > ndim || ellipses > 1) return NULL;
    PyObject *x = Py_NewRef(args[0]);
    int dim = 0;
    for (Py_ssize_t i = 0; x && i < count; i++) Py_SETREF(x, take_item(x, &dim, items[i], ndim - taken));
    if (x == args[0]) Py_SETREF(x, apply(ALIAS, x, NULL, NULL));
    return x;
}

static const struct {
    const char *name;
    Method method;
} methods[] = {
    {"view", method_view},       {"reshape", method_reshape},     {"expand", method_expand},       {"permute", method_permute},
    {"flatten", method_flatten}, {"transpose", method_transpose}, {"t", method_t},                 {"select", method_select},
    {"unsqueeze", method_unsqueeze}, {"squeeze", method_squeeze}, {"__getitem__", method_getitem},
    {"__setitem__", method_setitem}, {"copy_", method_copy_},     {"fill_", method_fill_},         {"zero_", method_zero_},
};

Method view_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i].name, name)) return methods[i].method;
    return NULL;
}

PyObject *view_method_names(void)
{
    const int count = (int)(sizeof methods / sizeof *methods);
    PyObject *names = PyTuple_New(count);
    for (int i = 0; names && i < count; i++) {
        PyObject *name = PyUnicode_FromString(methods[i].name);
        if (!name) Py_CLEAR(names);
        else PyTuple_SET_ITEM(names, i, name);
    }
    return names;
}
