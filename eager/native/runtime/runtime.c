/* The runtime table of the process, and its settings: number of threads, BLAS library. */
#define PY_SSIZE_T_CLEAN
#include "runtime/functions.h"
#include "runtime/runtime.h"

Runtime g_runtime = {RUNTIME_ABI_VERSION, 1, threads_parallel_for, blas_gemm, threads_scratch, NULL};

static PyObject *py_set_threads(PyObject *Py_UNUSED(m), PyObject *count)
{
    long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    threads_set(threads > 1 << 20 ? 1 << 20 : (int)threads);
    Py_RETURN_NONE;
}

static PyObject *py_threads(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromLong(g_runtime.threads); }

static PyObject *py_load_blas(PyObject *Py_UNUSED(m), PyObject *path)
{
    const char *text = PyUnicode_AsUTF8(path), *why = NULL;
    if (!text) return NULL;
    if (blas_load(text, &why) < 0) return PyErr_Format(PyExc_OSError, "no BLAS in %U: %s", path, why ? why : "unknown error");
    Py_RETURN_NONE;
}

static PyObject *py_has_blas(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(blas_loaded()); }

PyMethodDef runtime_functions[] = {
    {"set_threads", py_set_threads, METH_O, "set_threads(count): threads of native loops, the caller's included"},
    {"threads", py_threads, METH_NOARGS, "threads of native loops"},
    {"load_blas", py_load_blas, METH_O, "load_blas(path): use the CBLAS in this library. Raises: OSError"},
    {"has_blas", py_has_blas, METH_NOARGS, "whether a BLAS was loaded"},
    {NULL, NULL, 0, NULL},
};
