/* Special functions of libm that numpy lacks, over arrays. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "tensor/numpy_buffers.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    double (*function)(double);
} functions[] = {
    {"erf", erf}, {"erfc", erfc}, {"lgamma", lgamma}, {"tgamma", tgamma}, {"j0", j0}, {"j1", j1}, {"y0", y0}, {"y1", y1},
};

/* libm_unary(name, out, x): row-major float64 arrays of one size. False for other arrays. Raises: ValueError for a name
 * that libm does not have. */
static PyObject *py_libm_unary(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3) return PyErr_Format(PyExc_TypeError, "libm_unary() takes name, out and x; got %zd arguments", nargs);
    const char *name = PyUnicode_AsUTF8(args[0]);
    if (!name) return NULL;
    double (*function)(double) = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) function = functions[i].function;
    if (!function) return PyErr_Format(PyExc_ValueError, "libm_unary: no function %s", name);
    Arrays a;
    const int opened = arrays_open(&a, args + 1, 2, 1);
    if (opened < 0) return NULL;
    if (!opened) Py_RETURN_FALSE;
    const bool able = a.is_double && a.data[0] && a.data[1] && a.sizes[0] == a.sizes[1];
    if (able) {
        PyThreadState *saved = PyEval_SaveThread();
        for (long i = 0; i < a.sizes[0]; i++) ((double *)a.data[0])[i] = function(((const double *)a.data[1])[i]);
        PyEval_RestoreThread(saved);
    }
    arrays_close(&a);
    return PyBool_FromLong(able);
}

PyMethodDef libm_unary_functions[] = {
    {"libm_unary", (PyCFunction)(void *)py_libm_unary, METH_FASTCALL, "libm_unary(name, out, x) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
