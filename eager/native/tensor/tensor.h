/* The tensor and storage structs, shared with the sibling extensions.
 *
 * All data that a guard or a native kernel call reads is in plain C fields, so that neither goes through Python attributes.
 * Siblings include this header and import the function table with eager_api_import(). */
#ifndef EAGER_TENSOR_H
#define EAGER_TENSOR_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/runtime.h"

#define EAGER_ABI_VERSION 4
#define EAGER_MAX_NDIM 64
#define EAGER_INLINE_NDIM 6

enum eager_dtype {
    EAGER_BOOL = 0, EAGER_UINT8, EAGER_INT8, EAGER_INT16, EAGER_INT32, EAGER_INT64,
    EAGER_FLOAT16, EAGER_BFLOAT16, EAGER_FLOAT32, EAGER_FLOAT64,
    EAGER_COMPLEX64, EAGER_COMPLEX128, EAGER_UINT16, EAGER_UINT32, EAGER_UINT64,
    EAGER_FLOAT8_E4M3FN, EAGER_FLOAT8_E5M2, EAGER_FLOAT8_E4M3FNUZ, EAGER_FLOAT8_E5M2FNUZ, EAGER_FLOAT8_E8M0FNU,
    EAGER_NUM_DTYPES
};
static inline int dtype_is_float8(int code) { return code >= EAGER_FLOAT8_E4M3FN; }
/* Whether tensors of the dtype may need gradients: floating and complex types. */
static inline int dtype_is_continuous(int code)
{
    return (code >= EAGER_FLOAT16 && code <= EAGER_COMPLEX128) || dtype_is_float8(code);
}

enum eager_device { EAGER_CPU = 0, EAGER_CUDA = 1, EAGER_META = 2, EAGER_NUM_DEVICES };

/* The meta word: bits 0-7 dtype, 8-15 device type, 16-23 device index, 24-31 ndim, then flags. */
#define EAGER_META_DTYPE(m) ((int)((m) & 0xff))
#define EAGER_META_DEVICE(m) ((int)(((m) >> 8) & 0xff))
#define EAGER_META_DEVICE_INDEX(m) ((int)(((m) >> 16) & 0xff))
#define EAGER_META_NDIM(m) ((int)(((m) >> 24) & 0xff))
#define EAGER_REQUIRES_GRAD (1ull << 32)
#define EAGER_FAKE (1ull << 33)
#define EAGER_IS_PARAM (1ull << 34)
#define EAGER_INFERENCE (1ull << 35)
#define EAGER_META(dtype, device, index, ndim)                                       \
    ((uint64_t)(dtype) | ((uint64_t)(device) << 8) | ((uint64_t)(index) << 16) |     \
     ((uint64_t)(ndim) << 24))

typedef struct StorageObject {
    PyObject_HEAD
    char *data;                 /* NULL for fake and meta storages and for zero bytes */
    int64_t nbytes;
    PyObject *owner;            /* keeps foreign memory alive; NULL if the memory is the pool's */
    struct StorageObject *root; /* the storage whose memory this storage aliases (`.data`), or NULL */
    uint64_t version;           /* bumped by every in-place write; shared by all views */
    uint8_t device_type, device_index, from_pool;
    uint8_t allocated;          /* `owner` allocated the memory: every other object over the memory holds `owner` */
    uint8_t exposed;            /* the memory was handed out (numpy(), buffer): it may change without a version bump */
    uint8_t ask_base;           /* some view lacks its base's requires_grad: made under no_grad, or before a write */
    PyObject *weakrefs;
    uint64_t alias_writes;      /* of a root: in-place writes through storages that alias it */
    int64_t capacity;           /* bytes allocated, up to which `resize_` may grow; of CUDA memory, the bytes that are counted */
} StorageObject;

/* Records an in-place write: for autograd (`version`), and for code that keeps data made from the bytes, such as packed weights
 * (`alias_writes`: `.data` has a separate version counter). */
static inline void storage_written(StorageObject *s)
{
    s->version++;
    if (s->root) s->root->alias_writes++;
}

typedef struct {
    PyObject_HEAD
    uint64_t meta;
    int64_t *dims;              /* sizes[ndim], then strides[ndim], in elements */
    int64_t offset;             /* in elements, from the storage's start */
    char *data;                 /* storage->data + offset * itemsize, or NULL */
    StorageObject *storage;
    PyObject *array;            /* the ndarray over this view, made on first use */
    PyObject *grad_fn;          /* node that produced this tensor, or NULL */
    PyObject *grad;             /* accumulated gradient of a leaf, or NULL */
    PyObject *autograd;         /* hooks, accumulator and view base of the tensors that have them */
    uint32_t output_nr;         /* which output of grad_fn this is */
    PyObject *dict, *weakrefs;
    int64_t inline_dims[2 * EAGER_INLINE_NDIM];
    PyObject *symbolic;         /* of some fakes: (sizes, strides, offset) with SymInts; `dims` and `offset` are then
                                 * only what these were when captured */
} TensorObject;

/* Whether the tensor may need a gradient: by its flag, or possibly through its base (`_requires_grad` then decides). */
static inline int tensor_may_require_grad(const TensorObject *t)
{
    return (t->meta & EAGER_REQUIRES_GRAD) != 0 || t->storage->ask_base;
}

static inline int tensor_ndim(const TensorObject *t) { return EAGER_META_NDIM(t->meta); }
static inline int64_t *tensor_sizes(const TensorObject *t) { return t->dims; }
static inline int64_t *tensor_strides(const TensorObject *t) { return t->dims + tensor_ndim(t); }

/* Functions for the sibling extensions. They need the GIL and set an exception on failure (NULL). */
typedef struct {
    uint32_t abi_version;
    PyTypeObject *storage_type;
    PyTypeObject *tensor_base_type;
    PyTypeObject **tensor_class;      /* eager.Tensor, once Python has registered it */
    uint64_t *epoch;                  /* module and parameter changes */
    int (*grad_modes)(void);          /* of the calling thread: 1 gradients are recorded, 2 inference mode */
    int (*mode_depth)(void);          /* dispatch modes on the calling thread's stack; above them the ambient word */
    bool (*wants_grad)(const TensorObject *t);        /* by the flag, or through the base of a view that lacks it */
    const int *itemsize;              /* by dtype code */
    StorageObject *(*storage_alloc)(int64_t nbytes);  /* CPU memory from the caching pool */
    /* Borrowed storage; sizes and strides are copied. `meta` carries dtype, device and flags;
     * its ndim bits are taken from `ndim`. */
    TensorObject *(*tensor_new)(PyTypeObject *cls, StorageObject *storage, uint64_t meta, int ndim,
                                const int64_t *sizes, const int64_t *strides, int64_t offset);
    void *(*pool_alloc)(int64_t nbytes);              /* 64-byte aligned; NULL sets MemoryError */
    void (*pool_free)(void *block, int64_t nbytes);
    Runtime *runtime;                                 /* threads and products: runtime.h */
    void (*threads_enter)(void);
    void (*threads_leave)(void);
} EagerAPI;

#define EAGER_AMBIENT_SHIFT 16        /* of mode_depth(): see eager/base/thread_state.py */
#define EAGER_CAPSULE "eager._native._C_API"

static inline const EagerAPI *eager_api_import(void)
{
    const EagerAPI *api = (const EagerAPI *)PyCapsule_Import(EAGER_CAPSULE, 0);
    if (api && api->abi_version != EAGER_ABI_VERSION) {
        PyErr_Format(PyExc_ImportError,
                     "eager._native has ABI version %u, this extension was built for %d; rebuild both",
                     api->abi_version, EAGER_ABI_VERSION);
        return NULL;
    }
    return api;
}
#endif
