/* Declarations shared by the files of eager._native, not by other extensions. */
#ifndef EAGER_INTERNAL_H
#define EAGER_INTERNAL_H

#include "tensor.h"
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

/* allocator.c */
void *pool_alloc(int64_t nbytes);
void pool_free(void *block, int64_t nbytes);
PyObject *pool_empty_cache(PyObject *self, PyObject *unused);
PyObject *pool_stats(PyObject *self, PyObject *unused);
PyObject *pool_set_limit(PyObject *self, PyObject *limit);

/* storage.c */
/* Memory from the pool. A negative count is one that overflowed: RuntimeError, as for too much memory. */
StorageObject *storage_alloc(int64_t nbytes);
/* Bytes of so many elements of so many bytes, row-major; -1 where that is beyond 63 bits. */
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
PyObject *storage_from_memory(PyObject *self, PyObject *args);
PyObject *storage_from_fd(PyObject *self, PyObject *args);
PyObject *storage_fake(PyObject *self, PyObject *args);
PyObject *storage_empty(PyObject *self, PyObject *nbytes);
PyObject *storage_extend(PyObject *self, PyObject *args);
PyObject *storage_alias(PyObject *self, PyObject *storage);

/* tensor.c */
TensorObject *tensor_new(PyTypeObject *cls, StorageObject *storage, uint64_t meta, int ndim,
                         const int64_t *sizes, const int64_t *strides, int64_t offset);
/* A view over x's storage with x's flags but those of history; `meta` says the dtype. Raises RuntimeError out of bounds. */
TensorObject *tensor_alias(TensorObject *x, uint64_t meta, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset);
/* Whether nobody beside holders of that many references can see the tensor or its memory, so that it may be taken over: a
 * plain row-major tensor over memory of its own, of no history. */
bool tensor_sole_owner(const TensorObject *t, Py_ssize_t references);
bool tensor_wants_grad(const TensorObject *t);
int parse_dims(PyObject *seq, int64_t *out, const char *who);
void tensor_share_symbols(TensorObject *t, const TensorObject *from);
PyObject *tensor_dims(const TensorObject *t, bool sizes);
PyObject *py_set_symint(PyObject *self, PyObject *cls);
PyObject *tensor_device_of(int type, int index);
PyObject *py_make(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_empty(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_alias(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_empty_row_major(PyObject *self, PyObject *t);

/* kernels over arrays; each returns whether it could run */
PyObject *py_softmax(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* normalize.c */
PyObject *py_softmax_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* normalize.c */
PyObject *py_layer_norm(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* normalize.c */
PyObject *py_layer_norm_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* normalize.c */
PyObject *py_layer_norm_backward_weight(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* normalize.c */
PyObject *py_philox(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* philox.c */
PyObject *py_adam(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* optimize.c */
PyObject *py_moments(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* norm.c */
PyObject *py_reduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* reduce.c */
PyObject *py_copy(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* copy.c */

/* stream.c */
extern PyTypeObject Stream_Type;
PyObject *py_set_default_stream(PyObject *self, PyObject *stream);

/* arguments.c */
extern PyTypeObject ArgumentCheck_Type;

/* opcall.c */
extern PyTypeObject OpBase_Type;
int opcall_init(void);
PyObject *py_fast_operator(PyObject *self, PyObject *args);
PyObject *py_fast_method(PyObject *self, PyObject *args);
PyObject *py_bind_op(PyObject *self, PyObject *args);
PyObject *py_overlap(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* assign.c */
PyObject *py_drop_own_frames(PyObject *self, PyObject *const *args, Py_ssize_t nargs); /* traceback.c */
PyObject *py_set_frame_filter(PyObject *self, PyObject *args);
PyObject *py_cover(PyObject *self, PyObject *args); /* exctable.c */
PyObject *py_run_kernel(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* record.c */
PyObject *py_register_nodes(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_record(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_traits(PyObject *self, PyObject *args);
PyObject *py_edge_of(PyObject *self, PyObject *t);
PyObject *py_spec_of(PyObject *self, PyObject *t);
PyObject *py_record_in_python(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* engine.c */
PyObject *py_register_engine(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_plain_vjp(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_run_graph(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* pointwise.c */
PyObject *py_pointwise(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_pointwise_number(PyObject *self, PyObject *name);
PyObject *py_uniform_floats(PyObject *self, PyObject *args);

/* libm.c */
PyObject *py_libm(PyObject *self, PyObject *args);

/* products.c */
PyObject *py_matmul(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *py_product(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* array.c */
int array_init(void);
PyObject *array_over(TensorObject *t);
PyObject *py_tensor_over(PyObject *self, PyObject *array);
int array_register_descr(PyObject *descrs);

/* dispatch.c: per-thread state read on every op call */
extern _Thread_local int tls_grad_disabled;
extern _Thread_local int tls_mode_depth;
extern _Thread_local int tls_inference; /* new tensors, views apart, get EAGER_INFERENCE */
int grad_enabled(void);
int mode_depth(void);
#endif
