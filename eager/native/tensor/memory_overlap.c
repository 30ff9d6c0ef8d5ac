/* Overlap of tensors in memory. */
#define PY_SSIZE_T_CLEAN
#include "tensor/functions.h"
#include "tensor/memory_overlap.h"
#include <string.h>

static const StorageObject *root_of(const TensorObject *t) { return t->storage->root ? t->storage->root : t->storage; }

bool tensor_is_dense(const TensorObject *t)
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
    if (begin_a >= end_b || begin_b >= end_a || !tensor_is_dense(a) || !tensor_is_dense(b)) return OVERLAP_NONE;
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

/* memory_overlap(target, args) -> how the tensors among `args` lie over `target`, an Overlap */
static PyObject *py_memory_overlap(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyObject_TypeCheck(args[0], &TensorBase_Type) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "memory_overlap() takes a tensor and a tuple");
    return PyLong_FromLong(overlap_with((TensorObject *)args[0], &PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_SIZE(args[1])));
}

PyMethodDef memory_overlap_functions[] = {
    {"memory_overlap", (PyCFunction)(void *)py_memory_overlap, METH_FASTCALL, "memory_overlap(target, args): 0 none, 1 the very same elements, 2 in part"},
    {NULL, NULL, 0, NULL},
};
