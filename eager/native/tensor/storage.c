/* Storage: a run of bytes on one device, shared by every view of it. */
#define PY_SSIZE_T_CLEAN
#include "tensor/functions.h"
#include "tensor/internal.h"
#include <string.h>
#include <sys/mman.h>

/* Bytes of a CUDA device that storages hold, and the most so far. Allocators of device memory round requests up to a granule. */
enum { MAX_DEVICES = 256, DEVICE_GRANULE = 512 };
static struct {
    int64_t now, peak;
} device_bytes[MAX_DEVICES];

static void count_device_bytes(StorageObject *s)
{
    s->capacity = (s->nbytes + DEVICE_GRANULE - 1) / DEVICE_GRANULE * DEVICE_GRANULE;
    int64_t now = device_bytes[s->device_index].now += s->capacity;
    if (now > device_bytes[s->device_index].peak) device_bytes[s->device_index].peak = now;
}

static long device_index(PyObject *o)
{
    const long index = PyLong_AsLong(o);
    if (index >= 0 && index < MAX_DEVICES) return index;
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "device index %ld; allowed: 0 to %d", index, MAX_DEVICES - 1);
    return -1;
}

/* device_memory(index): (bytes that storages hold on a CUDA device, the most so far) */
static PyObject *device_memory(PyObject *Py_UNUSED(self), PyObject *o)
{
    const long index = device_index(o);
    return index < 0 ? NULL : Py_BuildValue("LL", (long long)device_bytes[index].now, (long long)device_bytes[index].peak);
}

/* reset_device_peak(index) */
static PyObject *reset_device_peak(PyObject *Py_UNUSED(self), PyObject *o)
{
    const long index = device_index(o);
    if (index < 0) return NULL;
    device_bytes[index].peak = device_bytes[index].now;
    Py_RETURN_NONE;
}

static StorageObject *storage_raw(int64_t nbytes, int device_type, int device_index)
{
    StorageObject *s = PyObject_New(StorageObject, &Storage_Type);
    if (!s) return NULL;
    memset((char *)s + sizeof(PyObject), 0, sizeof *s - sizeof(PyObject));
    s->nbytes = nbytes;
    s->device_type = (uint8_t)device_type;
    s->device_index = (uint8_t)device_index;
    return s;
}

StorageObject *storage_alloc(int64_t nbytes)
{
    if (nbytes < 0) {
        PyErr_SetString(PyExc_RuntimeError, "Storage size calculation overflowed: the tensor has more bytes than 2**63 - 1");
        return NULL;
    }
    char *data = pool_alloc(nbytes);
    if (!data) return NULL;
    StorageObject *s = storage_raw(nbytes, EAGER_CPU, 0);
    if (!s) {
        pool_free(data, nbytes);
        return NULL;
    }
    s->data = data;
    s->from_pool = 1;
    s->capacity = nbytes;
    return s;
}

StorageObject *storage_without_memory(int64_t nbytes, int device_type, int device_index)
{
    return storage_raw(nbytes, device_type, device_index);
}

/* storage_from_memory(address, nbytes, owner, device_type=0, device_index=0, allocated=False): wraps foreign memory. */
static PyObject *storage_from_memory(PyObject *Py_UNUSED(self), PyObject *args)
{
    unsigned long long address;
    long long nbytes;
    PyObject *owner;
    int type = EAGER_CPU, index = 0, allocated = 0;
    if (!PyArg_ParseTuple(args, "KLO|iip", &address, &nbytes, &owner, &type, &index, &allocated)) return NULL;
    StorageObject *s = storage_raw(nbytes, type, index);
    if (!s) return NULL;
    s->data = (char *)(uintptr_t)address;
    s->owner = Py_NewRef(owner);
    s->allocated = (uint8_t)allocated;
    if (allocated && type == EAGER_CUDA) count_device_bytes(s);
    return (PyObject *)s;
}

#define MAPPING "eager._native.mapping"

static void mapping_release(PyObject *capsule)
{
    munmap(PyCapsule_GetPointer(capsule, MAPPING), (size_t)(uintptr_t)PyCapsule_GetContext(capsule));
}

/* storage_from_fd(fd, nbytes): maps the first `nbytes` of an open file, shared with every process that maps it. The descriptor may
 * be closed afterwards (Python's mmap keeps one open per mapping). The pages are loaded at once: one system call instead of a
 * fault per page. */
static PyObject *storage_from_fd(PyObject *Py_UNUSED(self), PyObject *args)
{
    int fd;
    long long nbytes;
    if (!PyArg_ParseTuple(args, "iL", &fd, &nbytes)) return NULL;
    if (nbytes <= 0) return PyErr_Format(PyExc_ValueError, "storage_from_fd: nbytes=%lld; allowed: 1 or more", nbytes);
    int flags = MAP_SHARED;
#ifdef MAP_POPULATE
    flags |= MAP_POPULATE;
#endif
    void *data = mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (data == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *owner = PyCapsule_New(data, MAPPING, mapping_release);
    StorageObject *s = owner ? storage_raw(nbytes, EAGER_CPU, 0) : NULL;
    if (!s) {
        munmap(data, (size_t)nbytes);
        if (owner) PyCapsule_SetDestructor(owner, NULL);
        Py_XDECREF(owner);
        return NULL;
    }
    PyCapsule_SetContext(owner, (void *)(uintptr_t)nbytes);
    s->data = data;
    s->owner = owner;
    return (PyObject *)s;
}

/* storage_fake(nbytes, device_type, device_index): a storage with an identity and without memory. */
static PyObject *storage_fake(PyObject *Py_UNUSED(self), PyObject *args)
{
    long long nbytes;
    int type, index;
    if (!PyArg_ParseTuple(args, "Lii", &nbytes, &type, &index)) return NULL;
    return (PyObject *)storage_raw(nbytes, type, index);
}

static PyObject *storage_empty(PyObject *Py_UNUSED(self), PyObject *nbytes)
{
    long long n = PyLong_AsLongLong(nbytes);
    if (n == -1 && PyErr_Occurred()) return NULL;
    return (PyObject *)storage_alloc(n);
}

/* storage_alias(storage): the same memory with a separate version counter (`.data`). */
static PyObject *storage_alias(PyObject *Py_UNUSED(self), PyObject *arg)
{
    if (!PyObject_TypeCheck(arg, &Storage_Type)) {
        PyErr_SetString(PyExc_TypeError, "alias: expected a storage");
        return NULL;
    }
    StorageObject *source = (StorageObject *)arg;
    StorageObject *s = storage_raw(source->nbytes, source->device_type, source->device_index);
    if (!s) return NULL;
    s->data = source->data;
    s->root = source->root ? source->root : source;
    Py_INCREF(s->root);
    return (PyObject *)s;
}

static void storage_dealloc(StorageObject *s)
{
    if (s->weakrefs) PyObject_ClearWeakRefs((PyObject *)s);
    if (s->from_pool) pool_free(s->data, s->capacity);
    else if (s->allocated && s->device_type == EAGER_CUDA) device_bytes[s->device_index].now -= s->capacity;
    Py_XDECREF(s->owner);
    Py_XDECREF(s->root);
    PyObject_Free(s);
}

static int storage_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    StorageObject *s = (StorageObject *)self;
    if (s->device_type != EAGER_CPU || (!s->data && s->nbytes)) {
        PyErr_SetString(PyExc_BufferError, "this storage has no memory on the CPU");
        return -1;
    }
    (s->root ? s->root : s)->exposed = 1;
    return PyBuffer_FillInfo(view, self, s->data, s->nbytes, 0, flags);
}

static PyObject *get_nbytes(StorageObject *s, void *Py_UNUSED(c)) { return PyLong_FromLongLong(s->nbytes); }
static PyObject *get_version(StorageObject *s, void *Py_UNUSED(c)) { return PyLong_FromUnsignedLongLong(s->version); }
static PyObject *get_owner(StorageObject *s, void *Py_UNUSED(c)) { return Py_NewRef(s->owner ? s->owner : Py_None); }
static PyObject *get_device(StorageObject *s, void *Py_UNUSED(c)) { return tensor_device_of(s->device_type, s->device_index); }
static PyObject *get_root(StorageObject *s, void *Py_UNUSED(c)) { return Py_NewRef(s->root ? (PyObject *)s->root : (PyObject *)s); }
static PyObject *storage_data_ptr(StorageObject *s, PyObject *Py_UNUSED(a)) { return PyLong_FromVoidPtr(s->data); }
static PyObject *storage_size(StorageObject *s, PyObject *Py_UNUSED(a)) { return PyLong_FromLongLong(s->nbytes); }

/* resize_(nbytes): the memory never moves, because tensors hold addresses; the length shrinks, and grows up to the allocation. */
static PyObject *storage_resize(StorageObject *s, PyObject *nbytes)
{
    long long n = PyLong_AsLongLong(nbytes);
    if (n == -1 && PyErr_Occurred()) return NULL;
    StorageObject *root = s->root ? s->root : s;
    if (n < 0 || !root->from_pool)
        return PyErr_Format(PyExc_RuntimeError, n < 0 ? "resize_: nbytes=%lld; allowed: 0 or more"
                                                      : "Trying to resize storage that is not resizable", n);
    if (n > root->capacity)
        return PyErr_Format(PyExc_NotImplementedError, "UntypedStorage.resize_: growing beyond the %lld bytes that were allocated, to %lld, "
                            "would move the memory under the tensors that view it; make a new storage", (long long)root->capacity, n);
    root->nbytes = s->nbytes = n;
    storage_written(s);
    return Py_NewRef(s);
}

/* The constructor and methods that Python adds to the type (eager/storage.py), called by the slots below. */
static PyObject *storage_maker;

static PyObject *storage_extend(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *maker, *methods;
    if (!PyArg_ParseTuple(args, "OO!", &maker, &PyDict_Type, &methods)) return NULL;
    if (PyDict_Update(Storage_Type.tp_dict, methods) < 0) return NULL;
    Py_XSETREF(storage_maker, Py_NewRef(maker));
    PyType_Modified(&Storage_Type);
    Py_RETURN_NONE;
}

static PyObject *storage_new(PyTypeObject *Py_UNUSED(cls), PyObject *args, PyObject *kwargs)
{
    return PyObject_Call(storage_maker, args, kwargs);
}
static Py_ssize_t storage_length(StorageObject *s) { return (Py_ssize_t)s->nbytes; }
static PyObject *storage_subscript(PyObject *s, PyObject *key) { return PyObject_CallMethod(s, "_get", "(O)", key); }
static PyObject *storage_item(PyObject *s, Py_ssize_t i) { return PyObject_CallMethod(s, "_get", "n", i); }
static int storage_assign(PyObject *s, PyObject *key, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "'UntypedStorage' object doesn't support item deletion");
        return -1;
    }
    PyObject *done = PyObject_CallMethod(s, "_set", "(OO)", key, value);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
static PyObject *storage_repr(PyObject *s) { return PyObject_CallMethod(s, "_text", NULL); }

static PyMappingMethods storage_mapping = {(lenfunc)storage_length, storage_subscript, storage_assign};
static PySequenceMethods storage_sequence = {.sq_length = (lenfunc)storage_length, .sq_item = storage_item};

static PyGetSetDef storage_getset[] = {
    {"version", (getter)get_version, NULL, "number of in-place writes so far", NULL},
    {"owner", (getter)get_owner, NULL, "object that keeps foreign memory alive, or None", NULL},
    {"device", (getter)get_device, NULL, "device of the memory", NULL},
    {"root", (getter)get_root, NULL, "the storage that owns the memory", NULL},
    {"size_bytes", (getter)get_nbytes, NULL, "length in bytes", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef storage_methods[] = {
    {"data_ptr", (PyCFunction)storage_data_ptr, METH_NOARGS, "address of the first byte"},
    {"nbytes", (PyCFunction)storage_size, METH_NOARGS, "length in bytes"},
    {"size", (PyCFunction)storage_size, METH_NOARGS, "length in bytes"},
    {"resize_", (PyCFunction)storage_resize, METH_O, "resize_(nbytes) -> self; up to what was allocated"},
    {NULL, NULL, 0, NULL},
};
static PyBufferProcs storage_buffer = {storage_getbuffer, NULL};

PyTypeObject Storage_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager.UntypedStorage",
    .tp_basicsize = sizeof(StorageObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A run of bytes on one device, shared by the tensors that view it.",
    .tp_dealloc = (destructor)storage_dealloc,
    .tp_weaklistoffset = offsetof(StorageObject, weakrefs),
    .tp_getset = storage_getset,
    .tp_methods = storage_methods,
    .tp_as_buffer = &storage_buffer,
    .tp_as_mapping = &storage_mapping,
    .tp_as_sequence = &storage_sequence,
    .tp_new = storage_new,
    .tp_repr = storage_repr,
};

PyMethodDef storage_functions[] = {
    {"device_memory", device_memory, METH_O, "device_memory(index): (bytes that storages hold on a CUDA device, the most so far)"},
    {"reset_device_peak", reset_device_peak, METH_O, "reset_device_peak(index)"},
    {"storage_from_memory", storage_from_memory, METH_VARARGS, "storage_from_memory(address, nbytes, owner, device_type=0, device_index=0, allocated=False)"},
    {"storage_from_fd", storage_from_fd, METH_VARARGS, "storage_from_fd(fd, nbytes): memory shared with other processes"},
    {"storage_fake", storage_fake, METH_VARARGS, "storage_fake(nbytes, device_type, device_index)"},
    {"storage_empty", storage_empty, METH_O, "storage_empty(nbytes)"},
    {"extend_storage_type", storage_extend, METH_VARARGS, "extend_storage_type(constructor, methods): what UntypedStorage has beside C's methods"},
    {"storage_alias", storage_alias, METH_O, "same memory, own version counter"},
    {NULL, NULL, 0, NULL},
};
