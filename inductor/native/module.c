/* inductor._native: compiled graphs, their libraries, the thread pool and the BLAS they use. */
#include "graph.h"

#include <dlfcn.h>

Runtime g_runtime = {RUNTIME_ABI_VERSION, 1, pool_parallel_for, blas_gemm, pool_scratch, graph_fail};
const EagerAPI *g_eager;

/* ------------------------------------------------------------------ Library */

static PyObject *library_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", NULL};
    PyObject *path, *text;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&", names, PyUnicode_FSConverter, &path))
        return NULL;
    void *handle = dlopen(PyBytes_AS_STRING(path), RTLD_NOW | RTLD_LOCAL);
    text = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (!handle) {
        PyErr_Format(PyExc_OSError, "inductor: the library cannot be loaded: %s", dlerror());
        Py_XDECREF(text);
        return NULL;
    }
    LibraryObject *library = text ? (LibraryObject *)type->tp_alloc(type, 0) : NULL;
    if (!library) {
        dlclose(handle);
        Py_XDECREF(text);
        return NULL;
    }
    library->handle = handle;
    library->path = text;
    return (PyObject *)library;
}

static void library_dealloc(LibraryObject *library)
{
    dlclose(library->handle);
    Py_XDECREF(library->path);
    Py_TYPE(library)->tp_free(library);
}

static PyObject *library_address(LibraryObject *library, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    void *address = dlsym(library->handle, text);
    if (!address)
        return PyErr_Format(PyExc_LookupError, "inductor: %U defines no %U", library->path, name);
    return PyLong_FromVoidPtr(address);
}

static PyMethodDef library_methods[] = {
    {"address", (PyCFunction)library_address, METH_O, "address(name): of a function. Raises: LookupError"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Library_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "inductor._native.Library",
    .tp_basicsize = sizeof(LibraryObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Library(path): a shared library, open as long as this object lives. Raises: OSError",
    .tp_new = library_new,
    .tp_dealloc = (destructor)library_dealloc,
    .tp_methods = library_methods,
};

/* ------------------------------------------------------------------ functions */

static PyObject *py_set_threads(PyObject *Py_UNUSED(module), PyObject *count)
{
    long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred())
        return NULL;
    pool_set_threads(threads > 1 << 20 ? 1 << 20 : (int)threads);
    Py_RETURN_NONE;
}

static PyObject *py_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(g_runtime.threads);
}

static PyObject *py_load_blas(PyObject *Py_UNUSED(module), PyObject *path)
{
    const char *text = PyUnicode_AsUTF8(path), *why = NULL;
    if (!text)
        return NULL;
    if (blas_load(text, &why) < 0)
        return PyErr_Format(PyExc_OSError, "inductor: no BLAS in %U: %s", path, why ? why : "unknown error");
    Py_RETURN_NONE;
}

static PyObject *py_has_blas(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(blas_loaded());
}

static PyMethodDef functions[] = {
    {"set_threads", py_set_threads, METH_O, "set_threads(count): threads of compiled loops, the caller's included"},
    {"threads", py_threads, METH_NOARGS, "threads of compiled loops"},
    {"load_blas", py_load_blas, METH_O, "load_blas(path): use the CBLAS in this library. Raises: OSError"},
    {"has_blas", py_has_blas, METH_NOARGS, "whether a BLAS was loaded"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "inductor._native",
    .m_doc = "Compiled graphs and what they run on.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void)
{
    g_eager = eager_api_import();
    if (!g_eager || PyType_Ready(&CompiledGraph_Type) < 0 || PyType_Ready(&Library_Type) < 0)
        return NULL;
    pool_set_threads(1);
    PyObject *m = PyModule_Create(&module);
    if (!m || PyModule_AddObjectRef(m, "CompiledGraph", (PyObject *)&CompiledGraph_Type) < 0 ||
        PyModule_AddObjectRef(m, "Library", (PyObject *)&Library_Type) < 0 ||
        PyModule_AddIntConstant(m, "abi_version", RUNTIME_ABI_VERSION) < 0) {
        Py_XDECREF(m);
        return NULL;
    }
    return m;
}
