/* Tensors and storages as the files of eager._native see them; other extensions include only tensor.h. */
#ifndef EAGER_INTERNAL_H
#define EAGER_INTERNAL_H

#include "runtime/caching_allocator.h"
#include "runtime/thread_state.h"
#include "tensor/tensor.h"
#include <stdbool.h>

extern PyTypeObject Storage_Type;
extern PyTypeObject TensorBase_Type;
extern PyTypeObject *g_tensor_class;
extern PyTypeObject *g_size_class;
extern PyObject *g_dtypes[EAGER_NUM_DTYPES];
extern PyObject *g_cuda_array_maker;
extern PyObject *g_device_maker;
extern uint64_t g_epoch;
extern const int g_itemsize[EAGER_NUM_DTYPES];

/* storage.c */
/* Memory from the pool. RuntimeError for too many bytes, or a negative count, which means an overflow. */
StorageObject *storage_alloc(int64_t nbytes);
/* Bytes of a row-major tensor; -1 beyond 63 bits. */
static inline int64_t row_major_bytes(int ndim, const int64_t *sizes, int64_t itemsize)
{
    int64_t bytes = itemsize;
    bool over = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) return 0;
        over |= __builtin_mul_overflow(bytes, sizes[i], &bytes);
    }
    return over ? -1 : bytes;
}
StorageObject *storage_without_memory(int64_t nbytes, int device_type, int device_index);

/* tensor.c */
TensorObject *tensor_new(PyTypeObject *cls, StorageObject *storage, uint64_t meta, int ndim,
                         const int64_t *sizes, const int64_t *strides, int64_t offset);
/* A view over x's storage with x's flags except its history; `meta` states the dtype. Raises RuntimeError out of bounds. */
TensorObject *tensor_alias(TensorObject *x, uint64_t meta, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset);
/* Whether only the holders of `references` references can see the tensor and its memory, so that they may take it over: a plain
 * tensor with its own memory and without a history. */
bool tensor_sole_owner(const TensorObject *t, Py_ssize_t references);
bool tensor_wants_grad(const TensorObject *t);
int parse_dims(PyObject *seq, int64_t *out, const char *who);
void tensor_share_symbols(TensorObject *t, const TensorObject *from);
PyObject *tensor_dims(const TensorObject *t, bool sizes);
PyObject *tensor_device_of(int type, int index);

/* numpy_array.c */
int array_init(void);
PyObject *array_over(TensorObject *t);
int array_register_descr(PyObject *descrs);
#endif
