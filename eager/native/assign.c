/* Writes into tensors: x[...] = v with ints and slices, copy_, fill_. The value is spread over the target and moved as it is;
 * a value of another dtype, and a write that autograd has to know of, is left to the full dispatch. */
#define PY_SSIZE_T_CLEAN
#include "calls.h"
#include "direct.h"

/* Whether a write to args[0] concerns nobody but the tensors themselves: no mode, no history, no subclass. */
bool write_is_plain(PyObject *const *args, Py_ssize_t nargs)
{
    if (tls_mode_depth || nargs < 1 || !PyObject_TypeCheck(args[0], &TensorBase_Type)) return false;
    if (!tls_grad_disabled && ((TensorObject *)args[0])->autograd) return false; /* perhaps a view that may not be written to */
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!PyObject_TypeCheck(args[i], &TensorBase_Type)) continue;
        const TensorObject *t = (const TensorObject *)args[i];
        if (Py_TYPE(t) != g_tensor_class && !(t->meta & EAGER_IS_PARAM)) return false;
        if ((t->meta & EAGER_INFERENCE) || (!tls_grad_disabled && tensor_may_require_grad(t))) return false;
    }
    return true;
}

/* ---- overlap: memory that is written while it is read ---- */

static const StorageObject *root_of(const TensorObject *t) { return t->storage->root ? t->storage->root : t->storage; }

/* Whether the elements fill their span with no gap and no overlap, in some order of dims. */
static bool is_dense(const TensorObject *t)
{
    const int ndim = tensor_ndim(t);
    const int64_t *sizes = tensor_sizes(t), *strides = tensor_strides(t);
    int64_t expected = 1;
    uint64_t done = 0;
    for (int k = 0; k < ndim; k++) {
        int next = -1;
        for (int d = 0; d < ndim; d++)
            if (sizes[d] > 1 && !(done >> d & 1) && strides[d] == expected) next = d;
        if (next < 0) break;
        done |= (uint64_t)1 << next;
        expected *= sizes[next];
    }
    for (int d = 0; d < ndim; d++)
        if (sizes[d] > 1 && !(done >> d & 1)) return false;
    return true;
}

/* How `b` lies over `a`, as torch's get_overlap_status has it: tensors with gaps are not looked into. Sizes that are
 * symbols count as they were when captured. */
Overlap overlap_of(const TensorObject *a, const TensorObject *b)
{
    if (a == b) return OVERLAP_FULL;
    if (root_of(a) != root_of(b)) return OVERLAP_NONE;
    int64_t counts[2] = {1, 1};
    for (int d = 0; d < tensor_ndim(a); d++) counts[0] *= tensor_sizes(a)[d];
    for (int d = 0; d < tensor_ndim(b); d++) counts[1] *= tensor_sizes(b)[d];
    if (!counts[0] || !counts[1]) return OVERLAP_NONE;
    const int64_t width_a = g_itemsize[EAGER_META_DTYPE(a->meta)], width_b = g_itemsize[EAGER_META_DTYPE(b->meta)];
    const int64_t begin_a = a->offset * width_a, end_a = begin_a + counts[0] * width_a;
    const int64_t begin_b = b->offset * width_b, end_b = begin_b + counts[1] * width_b;
    if (begin_a >= end_b || begin_b >= end_a || !is_dense(a) || !is_dense(b)) return OVERLAP_NONE;
    const int ndim = tensor_ndim(a);
    const bool same = begin_a == begin_b && end_a == end_b && ndim == tensor_ndim(b) &&
                      !memcmp(tensor_strides(a), tensor_strides(b), sizeof(int64_t) * (size_t)ndim);
    return same ? OVERLAP_FULL : OVERLAP_PARTIAL;
}

/* The most that any tensor among `args`, and in the tuples and lists among them, lies over `target`. */
Overlap overlap_with(const TensorObject *target, PyObject *const *args, Py_ssize_t nargs)
{
    Overlap most = OVERLAP_NONE;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        Overlap found = OVERLAP_NONE;
        if (PyObject_TypeCheck(args[i], &TensorBase_Type)) found = overlap_of(target, (const TensorObject *)args[i]);
        else if (PyTuple_Check(args[i]) || PyList_Check(args[i]))
            found = overlap_with(target, PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]));
        if (found > most) most = found;
    }
    return most;
}

/* overlap(target, args) -> how the tensors among `args` lie over `target`, an Overlap */
PyObject *py_overlap(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyObject_TypeCheck(args[0], &TensorBase_Type) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "overlap() takes a tensor and a tuple");
    return PyLong_FromLong(overlap_with((TensorObject *)args[0], &PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_SIZE(args[1])));
}

/* Part of a tensor, in elements. */
typedef struct {
    char *data;
    int ndim, code;
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
} Part;

static void whole_of(const TensorObject *t, Part *p)
{
    p->data = t->data;
    p->ndim = tensor_ndim(t);
    p->code = code_of(t);
    memcpy(p->sizes, tensor_sizes(t), sizeof(int64_t) * (size_t)p->ndim);
    memcpy(p->strides, tensor_strides(t), sizeof(int64_t) * (size_t)p->ndim);
}

/* The first byte of a part and the one behind its last. */
static void span_of(const Part *p, const char **low, const char **high)
{
    int64_t last = 0;
    for (int d = 0; d < p->ndim; d++) last += p->sizes[d] ? (p->sizes[d] - 1) * p->strides[d] : 0;
    *low = p->data;
    *high = p->data + (last + 1) * g_itemsize[p->code];
}

/* Whether every element has a place of its own, and in the order of its strides at that. */
static bool is_target(const Part *p)
{
    for (int d = 0; d < p->ndim; d++)
        if (p->sizes[d] > 1 && p->strides[d] <= 0) return false;
    return g_itemsize[p->code] <= 8;
}

/* ---- values ---- */

/* The bytes of a number as an element of dtype `code`; false where it fits none, or the rule is not this simple. */
static bool element_of(PyObject *value, int code, uint64_t *bytes)
{
    double real;
    int64_t whole;
    const bool truth = PyBool_Check(value);
    if (!truth && !PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) return false;
    *bytes = 0;
    if (code == EAGER_FLOAT32 || code == EAGER_FLOAT64) {
        if (truth) real = value == Py_True;
        else if (!read_real(value, &real) || beyond(real, code)) return false;
        const float single = (float)real;
        memcpy(bytes, code == EAGER_FLOAT64 ? (const void *)&real : (const void *)&single, (size_t)g_itemsize[code]);
        return true;
    }
    if (truth) whole = value == Py_True;
    else if (!read_int(value, &whole)) return false;
    if (code == EAGER_BOOL) whole = whole != 0;
    else if (code == EAGER_INT32 ? whole < INT32_MIN || whole > INT32_MAX : code != EAGER_INT64) return false;
    memcpy(bytes, &whole, (size_t)g_itemsize[code]); /* of a little-endian number, the low bytes */
    return true;
}

/* target[...] = value, a number or a tensor of its dtype that broadcasts to it; false where it is neither. */
static bool write_value(const Part *target, PyObject *value)
{
    int64_t steps[EAGER_MAX_NDIM] = {0};
    uint64_t element;
    const TensorObject *t = cpu_tensor(value);
    if (!is_target(target)) return false;
    if (!t) {
        if (!element_of(value, target->code, &element)) return false;
        copy_elements(target->data, target->strides, &element, steps, target->sizes, target->ndim, g_itemsize[target->code]);
        return true;
    }
    Part from;
    whole_of(t, &from);
    const int lead = target->ndim - from.ndim;
    if (from.code != target->code || lead < 0) return false;
    for (int d = 0; d < from.ndim; d++) {
        if (from.sizes[d] != target->sizes[lead + d] && from.sizes[d] != 1) return false;
        steps[lead + d] = from.sizes[d] == 1 ? 0 : from.strides[d];
    }
    const char *low, *high, *begin, *end;
    span_of(target, &low, &high);
    span_of(&from, &begin, &end);
    if (begin < high && low < end) return false;
    copy_elements(target->data, target->strides, from.data, steps, target->sizes, target->ndim, g_itemsize[target->code]);
    return true;
}

static PyObject *written(PyObject *target)
{
    storage_written(((TensorObject *)target)->storage);
    return Py_NewRef(target);
}

/* ---- ops: copy_(x, src), fill_(x, value) ---- */

static PyObject *write_copy(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]);
    Part whole;
    if (!x || !cpu_tensor(args[1])) return NULL;
    whole_of(x, &whole);
    return write_value(&whole, args[1]) ? written(args[0]) : NULL;
}

static PyObject *write_fill(PyObject *const *args)
{
    const TensorObject *x = cpu_tensor(args[0]);
    Part whole;
    if (!x || PyObject_TypeCheck(args[1], &TensorBase_Type)) return NULL;
    whole_of(x, &whole);
    return write_value(&whole, args[1]) ? written(args[0]) : NULL;
}

static const struct {
    const char *name; /* of the base op */
    int arity;
    PyObject *(*write)(PyObject *const *args);
} writers[] = {{"copy", 2, write_copy}, {"fill", 2, write_fill}, {"index_put", 4, write_index_put}, {"index_add", 5, write_index_add},
               {"masked_fill", 3, write_masked_fill}, {"clamp", 3, write_clamp}};

int writer_find(const char *name)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (!strcmp(writers[i].name, name)) return (int)i;
    return -1;
}

PyObject *writer_run(int which, PyObject *const *args, Py_ssize_t nargs) 
{
    return nargs == writers[which].arity ? writers[which].write(args) : NULL;
}

PyObject *write_result(PyObject *target, PyObject *made)
{
    const TensorObject *x = cpu_tensor(target), *t = made ? cpu_tensor(made) : NULL;
    Part whole;
    if (!x || !t || !same_sizes(t, tensor_sizes(x), tensor_ndim(x))) return NULL;
    whole_of(x, &whole);
    return write_value(&whole, made) ? written(target) : NULL;
}

/* ---- methods ---- */

PyObject *method_copy_(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 2 && write_is_plain(args, nargs) ? (cpu_tensor(args[1]) ? write_copy(args) : write_fill(args)) : NULL;
}

PyObject *method_fill_(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 2 && write_is_plain(args, nargs) ? write_fill(args) : NULL;
}

PyObject *method_zero_(PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *with_zero[] = {nargs == 1 ? args[0] : NULL, Py_False};
    return nargs == 1 && write_is_plain(args, nargs) ? write_fill(with_zero) : NULL;
}

/* A bound of a slice, cut to [0, n]; false for what is no int. */
static bool read_bound(PyObject *o, int64_t n, int64_t otherwise, int64_t *bound)
{
    *bound = otherwise;
    if (o == Py_None) return true;
    if (!read_int(o, bound)) return false;
    if (*bound < 0) *bound = *bound + n < 0 ? 0 : *bound + n;
    else if (*bound > n) *bound = n;
    return true;
}

/* Narrows dim d of the part as an int or a slice says; *d goes on to the next one. */
static bool narrow(Part *p, int *d, PyObject *item)
{
    const int64_t n = p->sizes[*d], stride = p->strides[*d], itemsize = g_itemsize[p->code];
    int64_t start, stop, step = 1;
    if (PySlice_Check(item)) {
        const PySliceObject *s = (const PySliceObject *)item;
        if (!read_bound(s->start, n, 0, &start) || !read_bound(s->stop, n, n, &stop)) return false;
        if (s->step != Py_None && (!read_int(s->step, &step) || step <= 0)) return false;
        p->sizes[*d] = stop > start ? (stop - start - 1) / step + 1 : 0;
        p->strides[*d] = p->sizes[*d] > 1 ? stride * step : stride;
        p->data += start * stride * itemsize;
        ++*d;
        return true;
    }
    if (!read_int(item, &start) || start < -n || start >= n) return false;
    p->data += (start < 0 ? start + n : start) * stride * itemsize;
    p->ndim--;
    memmove(p->sizes + *d, p->sizes + *d + 1, sizeof(int64_t) * (size_t)(p->ndim - *d));
    memmove(p->strides + *d, p->strides + *d + 1, sizeof(int64_t) * (size_t)(p->ndim - *d));
    return true;
}

/* self[key] = value, with a key of ints, slices and an Ellipsis */
PyObject *method_setitem(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3 || !PyObject_TypeCheck(args[0], &TensorBase_Type)) return NULL;
    PyObject *const given[] = {args[0], args[2]}, *key = args[1], *const *items = &key;
    const TensorObject *x = cpu_tensor(args[0]);
    if (!x || !write_is_plain(given, 2)) return NULL;
    Py_ssize_t count = 1;
    if (PyTuple_CheckExact(key)) {
        items = &PyTuple_GET_ITEM(key, 0);
        count = PyTuple_GET_SIZE(key);
    }
    int taken = 0, ellipses = 0, d = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis) ellipses++;
        else if (PyLong_CheckExact(items[i]) || PySlice_Check(items[i])) taken++;
        else return NULL;
    }
    Part part;
    whole_of(x, &part);
    if (taken > part.ndim || ellipses > 1) return NULL;
    const int skipped = part.ndim - taken;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis) d += skipped;
        else if (!narrow(&part, &d, items[i])) return NULL;
    }
    if (!count_elements(part.sizes, part.ndim) || !write_value(&part, args[2])) return NULL;
    storage_written(x->storage);
    Py_RETURN_NONE;
}
