/* TensorBase: sizes, strides, storage and autograd slots in C fields.
 *
 * The epoch is one process-wide counter. It grows whenever a property of a parameter that compiled code depends on changes: its
 * data pointer, dtype, shape or requires_grad. */
#define PY_SSIZE_T_CLEAN
#include "tensor/functions.h"
#include "tensor/internal.h"
#include <string.h>

PyTypeObject *g_tensor_class;
PyTypeObject *g_size_class;
PyObject *g_dtypes[EAGER_NUM_DTYPES];
PyObject *g_device_maker;
uint64_t g_epoch = 1;
const int g_itemsize[EAGER_NUM_DTYPES] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1, 1, 1, 1};
static PyObject *device_cache[EAGER_NUM_DEVICES][16];

/* ---- construction ---- */

static int set_geometry(TensorObject *t, int ndim, const int64_t *sizes, const int64_t *strides)
{
    int64_t *dims = t->inline_dims;
    if (ndim > EAGER_INLINE_NDIM) {
        dims = PyMem_Malloc(sizeof(int64_t) * 2 * (size_t)ndim);
        if (!dims) {
            PyErr_NoMemory();
            return -1;
        }
    }
    memcpy(dims, sizes, sizeof(int64_t) * (size_t)ndim);
    memcpy(dims + ndim, strides, sizeof(int64_t) * (size_t)ndim);
    if (t->dims && t->dims != t->inline_dims) PyMem_Free(t->dims);
    t->dims = dims;
    return 0;
}

static void set_storage(TensorObject *t, StorageObject *storage, int64_t offset)
{
    StorageObject *storage_before = t->storage;
    PyObject *array_before = t->array;
    t->storage = (StorageObject *)Py_NewRef((PyObject *)storage);
    t->offset = offset;
    t->data = storage->data ? storage->data + offset * g_itemsize[EAGER_META_DTYPE(t->meta)] : NULL;
    t->array = NULL;
    Py_XDECREF(array_before); /* last: the end of a storage may run Python code, which must not see memory that is freed */
    Py_XDECREF(storage_before);
}

TensorObject *tensor_new(PyTypeObject *cls, StorageObject *storage, uint64_t meta, int ndim,
                         const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    if (ndim > EAGER_MAX_NDIM) {
        PyErr_Format(PyExc_RuntimeError, "a tensor of %d dims; allowed at most %d", ndim, EAGER_MAX_NDIM);
        return NULL;
    }
    TensorObject *t = (TensorObject *)cls->tp_alloc(cls, 0);
    if (!t) return NULL;
    t->meta = (meta & ~((uint64_t)0xff << 24)) | ((uint64_t)ndim << 24);
    if (tls_inference) t->meta |= EAGER_INFERENCE;
    if (set_geometry(t, ndim, sizes, strides) < 0) {
        Py_DECREF(t);
        return NULL;
    }
    set_storage(t, storage, offset);
    return t;
}

int parse_dims(PyObject *seq, int64_t *out, const char *who)
{
    if (!PyTuple_Check(seq) && !PyList_Check(seq)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a tuple of ints, got %.80s", who, Py_TYPE(seq)->tp_name);
        return -1;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
    if (n > EAGER_MAX_NDIM) {
        PyErr_Format(PyExc_RuntimeError, "%s: %zd dims; allowed at most %d", who, n, EAGER_MAX_NDIM);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t v = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(seq, i));
        if (v == -1 && PyErr_Occurred()) return -1;
        out[i] = v;
    }
    return (int)n;
}

/* ---- symbolic sizes ---- */

static PyTypeObject *g_symint_class;

/* set_symint(cls): the class of symbolic sizes; `hint` is the int that a size was at capture */
static PyObject *py_set_symint(PyObject *Py_UNUSED(self), PyObject *cls)
{
    if (!PyType_Check(cls)) return PyErr_Format(PyExc_TypeError, "set_symint: expected a class");
    Py_XSETREF(g_symint_class, (PyTypeObject *)Py_NewRef(cls));
    Py_RETURN_NONE;
}

static bool is_symbolic(PyObject *x) { return g_symint_class && Py_TYPE(x) == g_symint_class; }

static bool has_symbols(PyObject *seq)
{
    if (!g_symint_class || (!PyTuple_Check(seq) && !PyList_Check(seq))) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq); i++)
        if (is_symbolic(PySequence_Fast_GET_ITEM(seq, i))) return true;
    return false;
}

static PyObject *hint_of(PyObject *x) { return is_symbolic(x) ? PyObject_GetAttrString(x, "hint") : Py_NewRef(x); }

/* A list of the items' values at capture. */
static PyObject *hints_of(PyObject *seq)
{
    PyObject *hints = PySequence_List(seq);
    for (Py_ssize_t i = 0; hints && i < PyList_GET_SIZE(hints); i++) {
        PyObject *hint = hint_of(PyList_GET_ITEM(hints, i));
        if (!hint || PyList_SetItem(hints, i, hint) < 0) Py_CLEAR(hints);
    }
    return hints;
}

/* The geometry of a fake if any of it is symbolic: the value of `symbolic`. Replaces sizes, strides and offset by their values at
 * capture (new references in `hints`). NULL without an error if all are ints. */
static PyObject *take_symbols(PyObject **sizes, PyObject **strides, PyObject **offset, PyObject *hints[3])
{
    if (!has_symbols(*sizes) && !has_symbols(*strides) && !(*offset && is_symbolic(*offset))) return NULL;
    PyObject *zero = PyLong_FromLong(0), *first = PySequence_Tuple(*sizes), *second = PySequence_Tuple(*strides);
    PyObject *made = zero && first && second ? PyTuple_Pack(3, first, second, *offset ? *offset : zero) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    hints[0] = made ? hints_of(*sizes) : NULL;
    hints[1] = made ? hints_of(*strides) : NULL;
    hints[2] = made ? hint_of(*offset ? *offset : zero) : NULL;
    Py_XDECREF(zero);
    if (!hints[0] || !hints[1] || !hints[2]) Py_CLEAR(made);
    else *sizes = hints[0], *strides = hints[1], *offset = hints[2];
    return made;
}

void tensor_share_symbols(TensorObject *t, const TensorObject *from) { Py_XSETREF(t->symbolic, Py_XNewRef(from->symbolic)); }

static PyObject *symbolic_part(const TensorObject *t, int part) { return PyTuple_GET_ITEM(t->symbolic, part); }

static PyObject *dims_to_tuple(const int64_t *dims, int n);

/* Sizes or strides as a tuple, with SymInts for symbolic sizes. */
PyObject *tensor_dims(const TensorObject *t, bool sizes)
{
    if (t->symbolic) return Py_NewRef(symbolic_part(t, sizes ? 0 : 1));
    return dims_to_tuple(sizes ? tensor_sizes(t) : tensor_strides(t), tensor_ndim(t));
}

typedef PyObject *(*Maker)(PyObject *const *args, Py_ssize_t nargs);

/* Calls new_tensor or alias with sizes at args[at] and strides and offset after them; the result keeps symbolic values. */
static PyObject *with_symbols(Maker make, PyObject *const *args, Py_ssize_t nargs, int at)
{
    PyObject *given[8], *hints[3] = {NULL, NULL, NULL}, *none = NULL;
    if (nargs < at + 2 || nargs > 8) return make(args, nargs);
    memcpy(given, args, sizeof *given * (size_t)nargs);
    PyObject *symbolic = take_symbols(&given[at], &given[at + 1], nargs > at + 2 ? &given[at + 2] : &none, hints);
    PyObject *made = symbolic || !PyErr_Occurred() ? make(given, nargs) : NULL;
    if (made && symbolic) ((TensorObject *)made)->symbolic = Py_NewRef(symbolic);
    Py_XDECREF(symbolic);
    for (int i = 0; i < 3; i++) Py_XDECREF(hints[i]);
    return made;
}

/* new_tensor(cls, storage, dtype_code, sizes, strides, offset=0, flags=0) */
static PyObject *make_plain(PyObject *const *args, Py_ssize_t nargs)
{
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
    if (nargs < 5 || nargs > 7) {
        PyErr_Format(PyExc_TypeError, "new_tensor: %zd arguments; allowed 5 to 7", nargs);
        return NULL;
    }
    PyObject *cls = args[0] == Py_None ? (PyObject *)g_tensor_class : args[0];
    if (!cls || !PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, &TensorBase_Type) ||
        !PyObject_TypeCheck(args[1], &Storage_Type)) {
        PyErr_SetString(PyExc_TypeError, "new_tensor: expected a tensor class and a storage");
        return NULL;
    }
    StorageObject *storage = (StorageObject *)args[1];
    long code = PyLong_AsLong(args[2]);
    if (code < 0 || code >= EAGER_NUM_DTYPES) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "new_tensor: dtype code %ld", code);
        return NULL;
    }
    int n = parse_dims(args[3], sizes, "new_tensor");
    int m = n < 0 ? -1 : parse_dims(args[4], strides, "new_tensor");
    if (m < 0) return NULL;
    if (n != m) {
        PyErr_Format(PyExc_ValueError, "new_tensor: %d sizes but %d strides", n, m);
        return NULL;
    }
    int64_t offset = nargs > 5 ? PyLong_AsLongLong(args[5]) : 0;
    uint64_t flags = nargs > 6 ? PyLong_AsUnsignedLongLongMask(args[6]) : 0;
    if (PyErr_Occurred()) return NULL;
    uint64_t meta = EAGER_META(code, storage->device_type, storage->device_index, n) | (flags & ~0xffffffffull);
    return (PyObject *)tensor_new((PyTypeObject *)cls, storage, meta, n, sizes, strides, offset);
}

static PyObject *py_new_tensor(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    const bool fake = nargs > 6 && (PyLong_AsUnsignedLongLongMask(args[6]) & EAGER_FAKE);
    return fake ? with_symbols(make_plain, args, nargs, 3) : make_plain(args, nargs);
}

/* Bytes that a view of these sizes and strides spans; -1 beyond 63 bits. */
static int64_t span_bytes(int ndim, const int64_t *sizes, const int64_t *strides, int itemsize)
{
    int64_t bytes = 1, step;
    bool over = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) return 0;
        over |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(bytes, step, &bytes);
    }
    over |= __builtin_mul_overflow(bytes, itemsize, &bytes);
    return over ? -1 : bytes;
}

/* empty(dtype_code, sizes, strides): a new CPU tensor over memory from the pool. */
static PyObject *py_empty(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "empty: expected (dtype_code, sizes, strides)");
        return NULL;
    }
    long code = PyLong_AsLong(args[0]);
    if (code < 0 || code >= EAGER_NUM_DTYPES) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "empty: dtype code %ld", code);
        return NULL;
    }
    int n = parse_dims(args[1], sizes, "empty");
    if (n < 0 || parse_dims(args[2], strides, "empty") != n) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "empty: sizes and strides differ in length");
        return NULL;
    }
    StorageObject *s = storage_alloc(span_bytes(n, sizes, strides, g_itemsize[code]));
    if (!s) return NULL;
    TensorObject *t = tensor_new(g_tensor_class, s, EAGER_META(code, EAGER_CPU, 0, n), n, sizes, strides, 0);
    Py_DECREF(s);
    return (PyObject *)t;
}

/* empty_like(t, storage): t's sizes and dtype, row-major over the storage, or over fresh CPU memory; no autograd, class
 * eager.Tensor. */
static PyObject *py_empty_like(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2 || !PyObject_TypeCheck(args[0], &TensorBase_Type) ||
        (nargs == 2 && !PyObject_TypeCheck(args[1], &Storage_Type))) {
        PyErr_SetString(PyExc_TypeError, "empty_like: expected (tensor[, storage])");
        return NULL;
    }
    TensorObject *x = (TensorObject *)args[0];
    int n = tensor_ndim(x), code = EAGER_META_DTYPE(x->meta);
    int64_t strides[EAGER_MAX_NDIM], step = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = step;
        step *= tensor_sizes(x)[i] > 1 ? tensor_sizes(x)[i] : 1;
    }
    const int64_t nbytes = span_bytes(n, tensor_sizes(x), strides, g_itemsize[code]);
    StorageObject *s = nargs == 2 ? (StorageObject *)Py_NewRef(args[1]) : storage_alloc(nbytes);
    if (!s) return NULL;
    TensorObject *t = NULL;
    if (s->nbytes < nbytes) PyErr_Format(PyExc_ValueError, "empty_like: %lld bytes for a tensor of %lld", (long long)s->nbytes, (long long)nbytes);
    else t = tensor_new(g_tensor_class, s, EAGER_META(code, s->device_type, s->device_index, n), n, tensor_sizes(x), strides, 0);
    Py_DECREF(s);
    return (PyObject *)t;
}

/* A view is an inference tensor if its base is, in any mode of the thread. */
static uint64_t meta_of_view(uint64_t meta, uint64_t viewed)
{
    return (meta & ~(uint64_t)EAGER_INFERENCE) | (viewed & (uint64_t)EAGER_INFERENCE);
}

/* Whether all elements lie within the storage; false with an exception. */
static bool within_storage(const TensorObject *x, uint64_t meta, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    int64_t low = offset, high = offset, itemsize = g_itemsize[EAGER_META_DTYPE(meta)], step;
    bool over = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) return true;
        int64_t *end = strides[i] < 0 ? &low : &high;
        over |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(*end, step, end);
    }
    if (!over && low >= 0 && high < x->storage->nbytes / itemsize) return true;
    PyErr_Format(PyExc_RuntimeError, "setStorage: a view of elements %lld..%lld is out of bounds for storage of size %lld",
                 (long long)low, (long long)high, (long long)(x->storage->nbytes / itemsize));
    return false;
}

TensorObject *tensor_alias(TensorObject *x, uint64_t meta, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    meta &= ~(uint64_t)(EAGER_REQUIRES_GRAD | EAGER_IS_PARAM);
    if (!(meta & EAGER_FAKE) && ndim && !within_storage(x, meta, ndim, sizes, strides, offset)) return NULL;
    TensorObject *view = tensor_new(g_tensor_class, x->storage, meta, ndim, sizes, strides, offset);
    if (view) view->meta = meta_of_view(view->meta, x->meta);
    return view;
}

/* alias(t, sizes, strides, offset, dtype_code=same): a view over t's storage; no autograd. */
static PyObject *alias_plain(PyObject *const *args, Py_ssize_t nargs)
{
    int64_t sizes[EAGER_MAX_NDIM], strides[EAGER_MAX_NDIM];
    if (nargs < 4 || !PyObject_TypeCheck(args[0], &TensorBase_Type)) {
        PyErr_SetString(PyExc_TypeError, "alias: expected (tensor, sizes, strides, offset[, dtype_code])");
        return NULL;
    }
    TensorObject *x = (TensorObject *)args[0];
    int n = parse_dims(args[1], sizes, "alias");
    if (n < 0 || parse_dims(args[2], strides, "alias") != n) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "alias: sizes and strides differ in length");
        return NULL;
    }
    int64_t offset = PyLong_AsLongLong(args[3]);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    uint64_t meta = x->meta;
    if (nargs > 4) {
        long code = PyLong_AsLong(args[4]);
        if (code < 0 || code >= EAGER_NUM_DTYPES) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "alias: dtype code %ld", code);
            return NULL;
        }
        meta = (meta & ~0xffull) | (uint64_t)code;
    }
    return (PyObject *)tensor_alias(x, meta, n, sizes, strides, offset);
}

bool tensor_sole_owner(const TensorObject *t, Py_ssize_t references)
{
    const StorageObject *s = t->storage;
    Py_ssize_t held = 1; /* references to the memory: the tensor's, and the ndarray's if only the tensor holds that array */
    if (t->array) held = Py_REFCNT(t->array) == 1 ? 2 : 0;
    const bool private = s->from_pool || (s->allocated && Py_REFCNT(s->owner) == 1);
    return Py_TYPE(t) == g_tensor_class && Py_REFCNT(t) <= references && Py_REFCNT(s) == held && private && !s->exposed && !s->root &&
           !t->grad_fn && !t->autograd && !t->weakrefs && !(t->meta & (EAGER_REQUIRES_GRAD | EAGER_FAKE | EAGER_INFERENCE));
}

static PyObject *py_alias(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    const bool fake = nargs && PyObject_TypeCheck(args[0], &TensorBase_Type) && (((TensorObject *)args[0])->meta & EAGER_FAKE);
    return fake ? with_symbols(alias_plain, args, nargs, 1) : alias_plain(args, nargs);
}

/* ---- life cycle ---- */

static int tensor_traverse(TensorObject *t, visitproc visit, void *arg)
{
    Py_VISIT(t->grad_fn);
    Py_VISIT(t->grad);
    Py_VISIT(t->autograd);
    Py_VISIT(t->dict);
    Py_VISIT(t->symbolic);
    return 0;
}

static int tensor_clear(TensorObject *t)
{
    Py_CLEAR(t->grad_fn);
    Py_CLEAR(t->grad);
    Py_CLEAR(t->autograd);
    Py_CLEAR(t->dict);
    return 0;
}

static void tensor_dealloc(TensorObject *t)
{
    PyObject_GC_UnTrack(t);
    if (t->weakrefs) PyObject_ClearWeakRefs((PyObject *)t);
    Py_TRASHCAN_BEGIN(t, tensor_dealloc);
    tensor_clear(t);
    Py_CLEAR(t->array);
    Py_CLEAR(t->symbolic);
    Py_CLEAR(t->storage);
    if (t->dims && t->dims != t->inline_dims) PyMem_Free(t->dims);
    Py_TYPE(t)->tp_free(t);
    Py_TRASHCAN_END;
}

/* ---- reading ---- */

static PyObject *dims_to_size(const int64_t *dims, int n)
{
    PyTypeObject *cls = g_size_class ? g_size_class : &PyTuple_Type;
    PyObject *size = cls->tp_alloc(cls, n);
    if (!size) return NULL;
    for (int i = 0; i < n; i++) {
        PyObject *v = PyLong_FromLongLong(dims[i]);
        if (!v) {
            Py_DECREF(size);
            return NULL;
        }
        PyTuple_SET_ITEM(size, i, v);
    }
    return size;
}

static PyObject *dims_to_tuple(const int64_t *dims, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(dims[i]);
        if (!v) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, v);
    }
    return tuple;
}

static PyObject *size_object(const TensorObject *t)
{
    if (!t->symbolic || !g_size_class) return dims_to_size(tensor_sizes(t), tensor_ndim(t));
    PyObject *size = g_size_class->tp_alloc(g_size_class, tensor_ndim(t));
    for (int i = 0; size && i < tensor_ndim(t); i++)
        PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(symbolic_part(t, 0), i)));
    return size;
}

/* Calls a function of eager.base.spec with the symbolic sizes and strides. */
static PyObject *ask_spec(const TensorObject *t, const char *what)
{
    PyObject *module = PyImport_ImportModule("eager.base.spec");
    PyObject *answer = module ? PyObject_CallMethod(module, what, "OO", symbolic_part(t, 0), symbolic_part(t, 1)) : NULL;
    Py_XDECREF(module);
    return answer;
}

static PyObject *symbolic_count(const TensorObject *t)
{
    PyObject *n = PyLong_FromLong(1), *sizes = symbolic_part(t, 0);
    for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(sizes); i++) Py_SETREF(n, PyNumber_Multiply(n, PyTuple_GET_ITEM(sizes, i)));
    return n;
}

static int normal_dim(TensorObject *t, PyObject *arg, int *out)
{
    int n = tensor_ndim(t);
    long d = PyLong_AsLong(arg);
    if (d == -1 && PyErr_Occurred()) return -1;
    int low = n ? -n : -1, high = n ? n - 1 : 0;
    if (d < low || d > high) {
        PyErr_Format(PyExc_IndexError,
                     "Dimension out of range (expected to be in range of [%d, %d], but got %ld)", low, high, d);
        return -1;
    }
    *out = (int)(d < 0 ? d + (n ? n : 1) : d);
    return 0;
}

static PyObject *size_or_stride(TensorObject *t, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                                const int64_t *dims, bool is_size)
{
    PyObject *dim = nargs ? args[0] : NULL;
    if (kwnames && PyTuple_GET_SIZE(kwnames)) {
        if (nargs || PyTuple_GET_SIZE(kwnames) > 1 ||
            PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "dim")) {
            PyErr_SetString(PyExc_TypeError, "size()/stride(): allowed one argument, dim");
            return NULL;
        }
        dim = args[0];
    }
    else if (nargs > 1) {
        PyErr_Format(PyExc_TypeError, "size()/stride(): %zd arguments; allowed one, dim", nargs);
        return NULL;
    }
    int n = tensor_ndim(t), d;
    if (!dim || dim == Py_None) return is_size ? size_object(t) : tensor_dims(t, false);
    if (normal_dim(t, dim, &d) < 0) return NULL;
    if (n == 0) {
        PyErr_SetString(PyExc_IndexError, "dimension specified as 0 but tensor has no dimensions");
        return NULL;
    }
    if (t->symbolic) return Py_NewRef(PyTuple_GET_ITEM(symbolic_part(t, is_size ? 0 : 1), d));
    return PyLong_FromLongLong(dims[d]);
}

static PyObject *tensor_size(TensorObject *t, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return size_or_stride(t, args, nargs, kwnames, tensor_sizes(t), true);
}

static PyObject *tensor_stride(TensorObject *t, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return size_or_stride(t, args, nargs, kwnames, tensor_strides(t), false);
}

static int64_t count(const TensorObject *t)
{
    int64_t n = 1;
    for (int i = 0; i < tensor_ndim(t); i++) n *= tensor_sizes(t)[i];
    return n;
}

static bool contiguous(const TensorObject *t)
{
    int64_t expected = 1;
    for (int i = tensor_ndim(t) - 1; i >= 0; i--) {
        int64_t size = tensor_sizes(t)[i];
        if (size != 1 && tensor_strides(t)[i] != expected) return !count(t);
        expected *= size;
    }
    return true;
}

PyObject *tensor_device_of(int type, int index)
{
    if (type < EAGER_NUM_DEVICES && index < 16) {
        if (!device_cache[type][index] && g_device_maker)
            device_cache[type][index] = PyObject_CallFunction(g_device_maker, "ii", type, index);
        return Py_XNewRef(device_cache[type][index]);
    }
    return PyObject_CallFunction(g_device_maker, "ii", type, index);
}

static PyObject *tensor_numel(TensorObject *t, PyObject *Py_UNUSED(a))
{
    return t->symbolic ? symbolic_count(t) : PyLong_FromLongLong(count(t));
}
static PyObject *tensor_dim(TensorObject *t, PyObject *Py_UNUSED(a)) { return PyLong_FromLong(tensor_ndim(t)); }
static PyObject *tensor_data_ptr(TensorObject *t, PyObject *Py_UNUSED(a)) { return PyLong_FromVoidPtr(t->data); }
static PyObject *tensor_offset(TensorObject *t, PyObject *Py_UNUSED(a))
{
    return t->symbolic ? Py_NewRef(symbolic_part(t, 2)) : PyLong_FromLongLong(t->offset);
}
static PyObject *tensor_itemsize(TensorObject *t, PyObject *Py_UNUSED(a)) { return PyLong_FromLong(g_itemsize[EAGER_META_DTYPE(t->meta)]); }
static PyObject *tensor_is_contiguous(TensorObject *t, PyObject *Py_UNUSED(a))
{
    return t->symbolic ? ask_spec(t, "is_contiguous") : PyBool_FromLong(contiguous(t));
}
static PyObject *tensor_storage(TensorObject *t, PyObject *Py_UNUSED(a)) { return Py_NewRef((PyObject *)t->storage); }
/* _expose(): the memory is handed to code that may write it without a version bump. */
static PyObject *tensor_expose(TensorObject *t, PyObject *Py_UNUSED(a))
{
    (t->storage->root ? t->storage->root : t->storage)->exposed = 1;
    Py_RETURN_NONE;
}
/* _ask_base(): from now on a view of this memory without requires_grad takes the flag from its base. */
static PyObject *tensor_ask_base(TensorObject *t, PyObject *Py_UNUSED(a))
{
    t->storage->ask_base = 1;
    Py_RETURN_NONE;
}
static PyObject *tensor_bump(TensorObject *t, PyObject *Py_UNUSED(a)) { storage_written(t->storage); Py_RETURN_NONE; }

static PyObject *get_shape(TensorObject *t, void *Py_UNUSED(c)) { return size_object(t); }
static PyObject *get_ndim(TensorObject *t, void *Py_UNUSED(c)) { return PyLong_FromLong(tensor_ndim(t)); }
static PyObject *get_dtype(TensorObject *t, void *Py_UNUSED(c)) { return Py_XNewRef(g_dtypes[EAGER_META_DTYPE(t->meta)]); }
static PyObject *get_tensor_device(TensorObject *t, void *Py_UNUSED(c))
{
    return tensor_device_of(EAGER_META_DEVICE(t->meta), EAGER_META_DEVICE_INDEX(t->meta));
}
static PyObject *get_flag(TensorObject *t, void *flag) { return PyBool_FromLong((t->meta & (uint64_t)(uintptr_t)flag) != 0); }
/* Whether the tensor needs a gradient: by its flag, or for some views by the flag of the base. */
bool tensor_wants_grad(const TensorObject *t)
{
    if ((t->meta & EAGER_REQUIRES_GRAD) || !t->storage->ask_base || !t->autograd) return (t->meta & EAGER_REQUIRES_GRAD) != 0;
    PyObject *base = PyObject_GetAttrString(t->autograd, "base");
    if (!base) PyErr_Clear(); /* the autograd slot holds a foreign object */
    bool wanted = base && PyObject_TypeCheck(base, &TensorBase_Type) && (((TensorObject *)base)->meta & EAGER_REQUIRES_GRAD);
    Py_XDECREF(base);
    return wanted;
}
static PyObject *get_requires_grad(TensorObject *t, void *Py_UNUSED(c)) { return PyBool_FromLong(tensor_wants_grad(t)); }
static int set_flag(TensorObject *t, PyObject *value, void *flag)
{
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on < 0) return -1;
    uint64_t meta = on ? t->meta | (uint64_t)(uintptr_t)flag : t->meta & ~(uint64_t)(uintptr_t)flag;
    if (meta != t->meta && (t->meta | meta) & EAGER_IS_PARAM) g_epoch++;
    t->meta = meta;
    return 0;
}
static PyObject *get_meta(TensorObject *t, void *Py_UNUSED(c)) { return PyLong_FromUnsignedLongLong(t->meta); }
static PyObject *get_array(TensorObject *t, void *Py_UNUSED(c)) { return array_over(t); }
static PyObject *get_tensor_version(TensorObject *t, void *Py_UNUSED(c)) { return PyLong_FromUnsignedLongLong(t->storage->version); }

static PyObject *get_slot(TensorObject *t, void *offset)
{
    PyObject *value = *(PyObject **)((char *)t + (size_t)offset);
    return Py_NewRef(value ? value : Py_None);
}
static int set_slot(TensorObject *t, PyObject *value, void *offset)
{
    PyObject **slot = (PyObject **)((char *)t + (size_t)offset);
    Py_XSETREF(*slot, (!value || value == Py_None) ? NULL : Py_NewRef(value));
    return 0;
}
static PyObject *get_output_nr(TensorObject *t, void *Py_UNUSED(c)) { return PyLong_FromUnsignedLong(t->output_nr); }

/* _set_history(grad_fn, output_nr): makes the tensor an output of grad_fn. */
static PyObject *tensor_set_history(TensorObject *t, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "_set_history: expected (grad_fn, output_nr)");
        return NULL;
    }
    unsigned long nr = PyLong_AsUnsignedLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    Py_XSETREF(t->grad_fn, args[0] == Py_None ? NULL : Py_NewRef(args[0]));
    t->output_nr = (uint32_t)nr;
    if (t->grad_fn) t->meta |= EAGER_REQUIRES_GRAD;
    Py_RETURN_NONE;
}

/* _set_impl(other): becomes a view of other's memory (`.data = other`). */
static PyObject *tensor_set_impl(TensorObject *t, PyObject *arg)
{
    if (!PyObject_TypeCheck(arg, &TensorBase_Type)) {
        PyErr_SetString(PyExc_TypeError, "_set_impl: expected a tensor");
        return NULL;
    }
    TensorObject *x = (TensorObject *)arg;
    uint64_t kept = t->meta & (EAGER_REQUIRES_GRAD | EAGER_IS_PARAM);
    if (set_geometry(t, tensor_ndim(x), tensor_sizes(x), tensor_strides(x)) < 0) return NULL;
    t->meta = (x->meta & ~(EAGER_REQUIRES_GRAD | EAGER_IS_PARAM)) | kept;
    set_storage(t, x->storage, x->offset);
    tensor_share_symbols(t, x);
    if (kept & EAGER_IS_PARAM) g_epoch++;
    Py_RETURN_NONE;
}

#define SLOT(field) (void *)offsetof(TensorObject, field)
#define FLAG(flag) (void *)(uintptr_t)(flag)
static PyGetSetDef tensor_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"shape", (getter)get_shape, NULL, "sizes as a Size", NULL},
    {"ndim", (getter)get_ndim, NULL, "number of dims", NULL},
    {"dtype", (getter)get_dtype, NULL, "element type", NULL},
    {"device", (getter)get_tensor_device, NULL, "where the data is", NULL},
    {"is_fake", (getter)get_flag, NULL, "has metadata but no data", FLAG(EAGER_FAKE)},
    {"_requires_grad", (getter)get_requires_grad, (setter)set_flag, "the flag; of some views their base's", FLAG(EAGER_REQUIRES_GRAD)},
    {"_is_param", (getter)get_flag, (setter)set_flag, "is a Parameter", FLAG(EAGER_IS_PARAM)},
    {"_is_inference", (getter)get_flag, (setter)set_flag, "made in inference mode", FLAG(EAGER_INFERENCE)},
    {"_meta_word", (getter)get_meta, NULL, "the packed meta word", NULL},
    {"_array", (getter)get_array, NULL, "ndarray over this tensor's memory", NULL},
    {"_version", (getter)get_tensor_version, NULL, "in-place writes to the storage so far", NULL},
    {"_grad_fn", (getter)get_slot, (setter)set_slot, NULL, SLOT(grad_fn)},
    {"_grad", (getter)get_slot, (setter)set_slot, NULL, SLOT(grad)},
    {"_autograd", (getter)get_slot, (setter)set_slot, NULL, SLOT(autograd)},
    {"output_nr", (getter)get_output_nr, NULL, "which output of grad_fn this is", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef tensor_methods[] = {
    {"size", (PyCFunction)(void *)tensor_size, METH_FASTCALL | METH_KEYWORDS, "size(dim=None)"},
    {"stride", (PyCFunction)(void *)tensor_stride, METH_FASTCALL | METH_KEYWORDS, "stride(dim=None), in elements"},
    {"numel", (PyCFunction)tensor_numel, METH_NOARGS, "number of elements"},
    {"nelement", (PyCFunction)tensor_numel, METH_NOARGS, "number of elements"},
    {"dim", (PyCFunction)tensor_dim, METH_NOARGS, "number of dims"},
    {"ndimension", (PyCFunction)tensor_dim, METH_NOARGS, "number of dims"},
    {"data_ptr", (PyCFunction)tensor_data_ptr, METH_NOARGS, "address of the first element"},
    {"storage_offset", (PyCFunction)tensor_offset, METH_NOARGS, "first element in the storage, in elements"},
    {"element_size", (PyCFunction)tensor_itemsize, METH_NOARGS, "bytes of one element"},
    {"_is_contiguous", (PyCFunction)tensor_is_contiguous, METH_NOARGS, "row-major without gaps"},
    {"untyped_storage", (PyCFunction)tensor_storage, METH_NOARGS, "the storage shared by all views"},
    {"_bump_version", (PyCFunction)tensor_bump, METH_NOARGS, "record an in-place write"},
    {"_ask_base", (PyCFunction)tensor_ask_base, METH_NOARGS, "views of this memory want gradients as their base does"},
    {"_expose", (PyCFunction)tensor_expose, METH_NOARGS, "the memory may from now on change unseen (numpy(), dlpack)"},
    {"_set_history", (PyCFunction)(void *)tensor_set_history, METH_FASTCALL, NULL},
    {"_set_impl", (PyCFunction)tensor_set_impl, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.TensorBase",
    .tp_basicsize = sizeof(TensorObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Base of eager.Tensor: geometry, storage and autograd slots.",
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_traverse = (traverseproc)tensor_traverse,
    .tp_clear = (inquiry)tensor_clear,
    .tp_dictoffset = offsetof(TensorObject, dict),
    .tp_weaklistoffset = offsetof(TensorObject, weakrefs),
    .tp_getset = tensor_getset,
    .tp_methods = tensor_methods,
};

PyMethodDef tensor_functions[] = {
    {"set_symint", py_set_symint, METH_O, "the class of symbolic sizes"},
    {"new_tensor", (PyCFunction)(void *)py_new_tensor, METH_FASTCALL, "new_tensor(cls, storage, dtype_code, sizes, strides, offset=0, flags=0)"},
    {"empty", (PyCFunction)(void *)py_empty, METH_FASTCALL, "empty(dtype_code, sizes, strides)"},
    {"empty_like", (PyCFunction)(void *)py_empty_like, METH_FASTCALL, "empty_like(t[, storage]): row-major tensor of t's sizes and dtype"},
    {"alias", (PyCFunction)(void *)py_alias, METH_FASTCALL, "alias(t, sizes, strides, offset[, dtype_code])"},
    {NULL, NULL, 0, NULL},
};
