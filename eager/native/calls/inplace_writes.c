/* In-place writes: x[...] = v with ints and slices, copy_, fill_. The value is broadcast over the target and copied unchanged. A
 * value of another dtype, and a write that autograd has to record, take the full dispatch. */
#define PY_SSIZE_T_CLEAN
#include "calls/calls.h"
#include "kernels/assign.h"

/* Whether a write to args[0] affects only the tensors: no mode is active, no tensor has a history, no class is a subclass. */
bool write_is_plain(PyObject *const *args, Py_ssize_t nargs)
{
    if (tls_mode_depth || nargs < 1 || !PyObject_TypeCheck(args[0], &TensorBase_Type)) return false;
    if (!tls_grad_disabled && ((TensorObject *)args[0])->autograd) return false; /* possibly a view that must not be written */
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!PyObject_TypeCheck(args[i], &TensorBase_Type)) continue;
        const TensorObject *t = (const TensorObject *)args[i];
        if (Py_TYPE(t) != g_tensor_class && !(t->meta & EAGER_IS_PARAM)) return false;
        if ((t->meta & EAGER_INFERENCE) || (!tls_grad_disabled && tensor_may_require_grad(t))) return false;
    }
    return true;
}

/* ---- methods ---- */

/* target[...] = value, or NULL without an exception. */
static PyObject *write_all(PyObject *target, PyObject *value)
{
    const TensorObject *x = cpu_tensor(target);
    Part all;
    if (!x) return NULL;
    part_of(x, &all);
    if (!assign_value(&all, value)) return NULL;
    storage_written(x->storage);
    return Py_NewRef(target);
}

PyObject *method_copy_(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 2 && write_is_plain(args, nargs) ? write_all(args[0], args[1]) : NULL;
}

PyObject *method_fill_(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || PyObject_TypeCheck(args[1], &TensorBase_Type)) return NULL;
    return write_is_plain(args, nargs) ? write_all(args[0], args[1]) : NULL;
}

PyObject *method_zero_(PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 1 && write_is_plain(args, nargs) ? write_all(args[0], Py_False) : NULL;
}

/* A bound of a slice, clamped to [0, n]; false if it is not an int. */
static bool read_bound(PyObject *o, int64_t n, int64_t otherwise, int64_t *bound)
{
    *bound = otherwise;
    if (o == Py_None) return true;
    if (!read_int(o, bound)) return false;
    if (*bound < 0) *bound = *bound + n < 0 ? 0 : *bound + n;
    else if (*bound > n) *bound = n;
    return true;
}

/* Narrows dim d of the part by an int or a slice, and moves *d to the next dim. */
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
    part_of(x, &part);
    if (taken > part.ndim || ellipses > 1) return NULL;
    const int skipped = part.ndim - taken;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis) d += skipped;
        else if (!narrow(&part, &d, items[i])) return NULL;
    }
    if (!count_elements(part.sizes, part.ndim) || !assign_value(&part, args[2])) return NULL;
    storage_written(x->storage);
    Py_RETURN_NONE;
}
