/* libcuda and modules of machine code. */
#include "cuda_driver.h"

#include <dlfcn.h>

enum { MAX_DYNAMIC_SHARED_BYTES = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
enum { DEFAULT_SHARED_BYTES = 48 << 10 };

static CudaDriver g_driver;
static int g_ready;
static void *g_contexts[CUDA_MAX_DEVICES];
static PyObject *g_path; /* another library in place of libcuda, for tests */

static const struct {
    const char *name;
    size_t offset;
} ENTRIES[] = {
#define ENTRY(field, name) {name, offsetof(CudaDriver, field)}
    ENTRY(init, "cuInit"),
    ENTRY(device_get, "cuDeviceGet"),
    ENTRY(primary_context, "cuDevicePrimaryCtxRetain"),
    ENTRY(get_context, "cuCtxGetCurrent"),
    ENTRY(set_context, "cuCtxSetCurrent"),
    ENTRY(wait, "cuCtxSynchronize"),
    ENTRY(module_load, "cuModuleLoadData"),
    ENTRY(module_unload, "cuModuleUnload"),
    ENTRY(module_function, "cuModuleGetFunction"),
    ENTRY(set_attribute, "cuFuncSetAttribute"),
    ENTRY(launch, "cuLaunchKernel"),
    ENTRY(launch_ex, "cuLaunchKernelEx"),
    ENTRY(copy, "cuMemcpyDtoDAsync_v2"),
    ENTRY(upload, "cuMemcpyHtoDAsync_v2"),
    ENTRY(set_words, "cuMemsetD32Async"),
    ENTRY(is_capturing, "cuStreamIsCapturing"),
    ENTRY(begin_capture, "cuStreamBeginCapture_v2"),
    ENTRY(end_capture, "cuStreamEndCapture"),
    ENTRY(instantiate, "cuGraphInstantiateWithFlags"),
    ENTRY(launch_graph, "cuGraphLaunch"),
    ENTRY(destroy_executable, "cuGraphExecDestroy"),
    ENTRY(destroy_graph, "cuGraphDestroy"),
    ENTRY(create_stream, "cuStreamCreate"),
    ENTRY(destroy_stream, "cuStreamDestroy_v2"),
    ENTRY(error_name, "cuGetErrorName"),
    ENTRY(error_text, "cuGetErrorString"),
#undef ENTRY
};

int cuda_check(int status, const char *what)
{
    if (status == 0)
        return 0;
    const char *name = NULL, *text = NULL;
    if (g_driver.error_name)
        g_driver.error_name(status, &name);
    if (g_driver.error_text)
        g_driver.error_text(status, &text);
    PyErr_Format(PyExc_RuntimeError, "CUDA error while %s: %s (%s, status %d)", what, text ? text : "unknown error",
                 name ? name : "no name", status);
    return -1;
}

const CudaDriver *cuda_driver(void)
{
    if (g_ready)
        return &g_driver;
    const char *path = g_path ? PyUnicode_AsUTF8(g_path) : "libcuda.so.1";
    if (!path)
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        PyErr_Format(PyExc_RuntimeError, "the CUDA driver cannot be loaded: %s", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++) {
        void *address = dlsym(library, ENTRIES[i].name);
        if (!address) {
            PyErr_Format(PyExc_RuntimeError, "the CUDA driver has no %s; install a newer driver (CUDA 12 or later)", ENTRIES[i].name);
            dlclose(library);
            return NULL;
        }
        *(void **)((char *)&g_driver + ENTRIES[i].offset) = address;
    }
    if (cuda_check(g_driver.init(0), "initialising the driver") < 0)
        return NULL;
    g_ready = 1;
    return &g_driver;
}

void *cuda_context(int index)
{
    const CudaDriver *driver = cuda_driver();
    int device;
    if (!driver)
        return NULL;
    if (index < 0 || index >= CUDA_MAX_DEVICES) {
        PyErr_Format(PyExc_ValueError, "device index %d; allowed: 0 to %d", index, CUDA_MAX_DEVICES - 1);
        return NULL;
    }
    if (!g_contexts[index] && (cuda_check(driver->device_get(&device, index), "opening a device") < 0 ||
                               cuda_check(driver->primary_context(&g_contexts[index], device), "opening a device's context") < 0))
        return NULL;
    return g_contexts[index];
}

int cuda_enter(int index, void **before)
{
    void *wanted = cuda_context(index), *current = NULL;
    *before = CUDA_UNCHANGED;
    if (!wanted || cuda_check(g_driver.get_context(&current), "reading the current device") < 0)
        return -1;
    if (current == wanted)
        return 0;
    if (cuda_check(g_driver.set_context(wanted), "selecting a device") < 0)
        return -1;
    /* For CUDA's runtime a thread without a context is on device 0, so that the context of device 0 may stay. */
    if (current || index != 0)
        *before = current;
    return 0;
}

void *cuda_enter_again(int index)
{
    void *current = NULL;
    if (g_driver.get_context(&current) != 0 || current == g_contexts[index] || g_driver.set_context(g_contexts[index]) != 0)
        return CUDA_UNCHANGED;
    return current;
}

void cuda_leave(void *before)
{
    if (before != CUDA_UNCHANGED)
        g_driver.set_context(before);
}

/* ------------------------------------------------------------------ modules */

typedef struct {
    PyObject_HEAD
    void *module;
    int device;
} CudaModuleObject;

static PyObject *module_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"image", "device", NULL};
    PyObject *image;
    int device = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "S|i", names, &image, &device))
        return NULL;
    void *before;
    if (cuda_enter(device, &before) < 0)
        return NULL;
    CudaModuleObject *m = (CudaModuleObject *)type->tp_alloc(type, 0);
    if (m) {
        m->device = device;
        if (cuda_check(g_driver.module_load(&m->module, PyBytes_AS_STRING(image)), "loading machine code") < 0) {
            m->module = NULL;
            Py_CLEAR(m);
        }
    }
    cuda_leave(before);
    return (PyObject *)m;
}

static void module_dealloc(CudaModuleObject *m)
{
    if (m->module) { /* on any thread, even if it has no context; fails harmlessly while the process ends */
        void *before = cuda_enter_again(m->device);
        g_driver.module_unload(m->module);
        cuda_leave(before);
    }
    Py_TYPE(m)->tp_free(m);
}

static PyObject *module_function(CudaModuleObject *m, PyObject *args)
{
    const char *name;
    int shared_bytes;
    void *function, *before;
    if (!PyArg_ParseTuple(args, "si", &name, &shared_bytes) || cuda_enter(m->device, &before) < 0)
        return NULL;
    int failed = cuda_check(g_driver.module_function(&function, m->module, name), "looking up a kernel");
    if (!failed && shared_bytes > DEFAULT_SHARED_BYTES)
        failed = cuda_check(g_driver.set_attribute(function, MAX_DYNAMIC_SHARED_BYTES, shared_bytes), "asking for shared memory");
    cuda_leave(before);
    return failed ? NULL : PyLong_FromVoidPtr(function);
}

static PyMethodDef module_methods[] = {
    {"function", (PyCFunction)module_function, METH_VARARGS,
     "function(name, shared_bytes): the handle of a kernel, allowed to use that much shared memory. Raises: RuntimeError"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CudaModule_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "inductor._native.CudaModule",
    .tp_basicsize = sizeof(CudaModuleObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "CudaModule(image: bytes, device=0): machine code loaded on a device for as long as this object lives. "
              "Raises: RuntimeError without a driver, or if the device cannot run the code",
    .tp_new = module_new,
    .tp_dealloc = (destructor)module_dealloc,
    .tp_methods = module_methods,
};

/* use_cuda_driver(path): tests give a library that records calls. Takes effect before the first use of the driver. */
static PyObject *use_cuda_driver(PyObject *Py_UNUSED(self), PyObject *path)
{
    if (g_ready) {
        PyErr_SetString(PyExc_RuntimeError, "use_cuda_driver: the driver is in use already");
        return NULL;
    }
    Py_XSETREF(g_path, Py_NewRef(path));
    Py_RETURN_NONE;
}

PyMethodDef cuda_functions[] = {
    {"use_cuda_driver", use_cuda_driver, METH_O, "use_cuda_driver(path): the library to use in place of libcuda.so.1"},
    {NULL, NULL, 0, NULL},
};
