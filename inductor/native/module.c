/* inductor._native: compiled graphs and their libraries. */
#include "blas.h"
#include "cuda_driver.h"
#include "graph.h"

#include <dlfcn.h>

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

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "inductor._native",
    .m_doc = "Compiled graphs and their libraries.",
    .m_size = -1,
    .m_methods = cuda_functions,
};

PyMODINIT_FUNC PyInit__native(void)
{
    g_eager = eager_api_import();
    if (!g_eager || PyType_Ready(&CompiledGraph_Type) < 0 || PyType_Ready(&Library_Type) < 0 || PyType_Ready(&CudaModule_Type) < 0 ||
        PyType_Ready(&MatrixProduct_Type) < 0)
        return NULL;
    g_eager->runtime->fail = graph_fail;
    PyObject *m = PyModule_Create(&module);
    if (!m || PyModule_AddObjectRef(m, "CompiledGraph", (PyObject *)&CompiledGraph_Type) < 0 ||
        PyModule_AddObjectRef(m, "Library", (PyObject *)&Library_Type) < 0 ||
        PyModule_AddObjectRef(m, "CudaModule", (PyObject *)&CudaModule_Type) < 0 ||
        PyModule_AddObjectRef(m, "MatrixProduct", (PyObject *)&MatrixProduct_Type) < 0 || PyModule_AddFunctions(m, blas_functions) < 0 ||
        PyModule_AddIntConstant(m, "abi_version", RUNTIME_ABI_VERSION) < 0) {
        Py_XDECREF(m);
        return NULL;
    }
    return m;
}
