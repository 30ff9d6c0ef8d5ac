/* ndarrays over tensor memory, made through numpy's C function table, and tensors over ndarray memory.
 *
 * numpy publishes its C API as a table of pointers in a capsule; the position of an entry never changes
 * (numpy/_core/code_generators/numpy_api.py states the rule and lists the positions). Using three entries by position spares the
 * build a dependency on numpy's headers. */
#define PY_SSIZE_T_CLEAN
#include "tensor/functions.h"
#include "tensor/internal.h"

enum { NPY_ARRAY_TYPE = 2, NPY_NEW_FROM_DESCR = 94, NPY_SET_BASE_OBJECT = 282 };
#define NPY_OWNDATA 0x0004
#define NPY_ALIGNED 0x0100
#define NPY_WRITEABLE 0x0400
/* The first fields of an ndarray, which numpy's binary compatibility keeps in place. */
typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
} ArrayFields;

typedef PyObject *(*new_from_descr_fn)(PyTypeObject *, PyObject *, int, const Py_ssize_t *,
                                       const Py_ssize_t *, void *, int, PyObject *);
typedef int (*set_base_object_fn)(PyObject *, PyObject *);

static PyTypeObject *array_type;
static new_from_descr_fn new_from_descr;
static set_base_object_fn set_base_object;
static PyObject *descrs[EAGER_NUM_DTYPES];
PyObject *g_cuda_array_maker;

int array_init(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!module) return -1;
    PyObject *capsule = PyObject_GetAttrString(module, "_ARRAY_API");
    Py_DECREF(module);
    if (!capsule) return -1;
    void **table = PyCapsule_GetPointer(capsule, NULL);
    Py_DECREF(capsule);
    if (!table) return -1;
    array_type = table[NPY_ARRAY_TYPE];
    new_from_descr = (new_from_descr_fn)table[NPY_NEW_FROM_DESCR];
    set_base_object = (set_base_object_fn)table[NPY_SET_BASE_OBJECT];
    return 0;
}

/* The numpy dtype of each dtype code, in order. */
int array_register_descr(PyObject *sequence)
{
    PyObject *fast = PySequence_Fast(sequence, "descrs must be a sequence");
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    for (Py_ssize_t i = 0; i < n && i < EAGER_NUM_DTYPES; i++)
        Py_XSETREF(descrs[i], Py_NewRef(PySequence_Fast_GET_ITEM(fast, i)));
    Py_DECREF(fast);
    return 0;
}

PyObject *array_over(TensorObject *t)
{
    if (t->array) return Py_NewRef(t->array);
    if (t->meta & EAGER_FAKE || EAGER_META_DEVICE(t->meta) == EAGER_META) {
        PyErr_SetString(PyExc_RuntimeError, "this tensor has no data (it is a fake or a meta tensor)");
        return NULL;
    }
    if (EAGER_META_DEVICE(t->meta) == EAGER_CUDA) {
        if (!g_cuda_array_maker) {
            PyErr_SetString(PyExc_RuntimeError, "CUDA is not initialised");
            return NULL;
        }
        PyObject *made = PyObject_CallOneArg(g_cuda_array_maker, (PyObject *)t);
        if (!made) return NULL;
        Py_XSETREF(t->array, Py_NewRef(made)); /* another thread may have stored one meanwhile */
        return made;
    }
    int ndim = tensor_ndim(t), code = EAGER_META_DTYPE(t->meta);
    Py_ssize_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
    for (int i = 0; i < ndim; i++) {
        sizes[i] = (Py_ssize_t)tensor_sizes(t)[i];
        strides[i] = (Py_ssize_t)(tensor_strides(t)[i] * g_itemsize[code]);
    }
    /* numpy allocates for a NULL pointer, and an empty storage may lack memory */
    static char nothing[64] __attribute__((aligned(64)));
    void *data = t->data ? t->data : nothing;
    PyObject *array = new_from_descr(array_type, Py_NewRef(descrs[code]), ndim, sizes, strides, data,
                                     NPY_WRITEABLE, NULL);
    if (!array) return NULL;
    if (set_base_object(array, Py_NewRef((PyObject *)t->storage)) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    t->array = Py_NewRef(array);
    return array;
}

static int code_of_descr(const PyObject *descr)
{
    for (int code = 0; code < EAGER_NUM_DTYPES; code++)
        if (descrs[code] == descr) return code;
    return -1;
}

/* tensor_from_array(array): a tensor over the memory of an ndarray. None for other objects and for ndarrays that a tensor cannot
 * lie over: a subclass, read-only memory, negative or unaligned strides, a dtype or byte order that tensors lack. */
static PyObject *py_tensor_from_array(PyObject *Py_UNUSED(self), PyObject *o)
{
    if (!Py_IS_TYPE(o, array_type)) Py_RETURN_NONE;
    const ArrayFields *a = (const ArrayFields *)o;
    const int code = code_of_descr(a->descr), n = a->nd, needed = NPY_ALIGNED | NPY_WRITEABLE;
    if (code < 0 || (a->flags & needed) != needed || n > EAGER_MAX_NDIM) Py_RETURN_NONE;
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM], bytes = g_itemsize[code];
    bool is_empty = false;
    for (int i = 0; i < n; i++) {
        if (a->strides[i] < 0 || a->strides[i] % g_itemsize[code]) Py_RETURN_NONE;
        sizes[i] = a->dimensions[i];
        strides[i] = a->strides[i] / g_itemsize[code];
        bytes += (sizes[i] - 1) * a->strides[i];
        is_empty |= sizes[i] == 0;
    }
    if (is_empty) { /* numpy gives an empty array arbitrary strides */
        bytes = 0;
        int64_t step = 1;
        for (int i = n - 1; i >= 0; i--) {
            strides[i] = step;
            step *= sizes[i] ? sizes[i] : 1;
        }
    }
    StorageObject *s = storage_without_memory(bytes, EAGER_CPU, 0);
    if (!s) return NULL;
    s->data = a->data;
    s->owner = Py_NewRef(o);
    s->allocated = a->flags & NPY_OWNDATA ? 1 : 0;
    TensorObject *t = tensor_new(g_tensor_class, s, EAGER_META(code, EAGER_CPU, 0, n), n, sizes, strides, 0);
    Py_DECREF(s);
    return (PyObject *)t;
}

PyMethodDef numpy_array_functions[] = {
    {"tensor_from_array", py_tensor_from_array, METH_O, "tensor_from_array(array): a tensor over the memory of an ndarray, or None"},
    {NULL, NULL, 0, NULL},
};
