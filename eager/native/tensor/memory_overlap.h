/* Whether tensors share memory: an op must not write memory that it reads. */
#ifndef EAGER_MEMORY_OVERLAP_H
#define EAGER_MEMORY_OVERLAP_H

#include "tensor/internal.h"

typedef enum { OVERLAP_NONE, OVERLAP_FULL, OVERLAP_PARTIAL } Overlap; /* FULL: the same elements in the same order */

/* Whether the elements fill their span with no gap and no overlap, in some order of dims. */
bool tensor_is_dense(const TensorObject *t);

/* How the memory of `b` lies over the memory of `a`, as torch's get_overlap_status decides it. Tensors with gaps between
 * their elements count as apart. Symbolic sizes count with their values at capture. */
Overlap overlap_of(const TensorObject *a, const TensorObject *b);

/* The largest overlap of `target` with a tensor among `args`, or in a tuple or list among `args`. */
Overlap overlap_with(const TensorObject *target, PyObject *const *args, Py_ssize_t nargs);

/* Whether the two storages are views of one allocation. */
static inline bool same_allocation(const TensorObject *a, const TensorObject *b)
{
    const StorageObject *x = a->storage->root ? a->storage->root : a->storage;
    return x == (b->storage->root ? b->storage->root : b->storage);
}
#endif
