/* libm functions over contiguous arrays: the special functions that numpy does not have. */
#define PY_SSIZE_T_CLEAN
#include "internal.h"
#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
} Entry;

static const Entry entries[] = {
    {"erf", erff, erf}, {"erfc", erfcf, erfc}, {"lgamma", lgammaf, lgamma}, {"tgamma", tgammaf, tgamma},
    {"j0", j0f, j0}, {"j1", j1f, j1}, {"y0", y0f, y0}, {"y1", y1f, y1},
    {NULL, NULL, NULL},
};

/* libm(name, source, target, count, is_double): both addresses hold `count` elements. */
PyObject *py_libm(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    unsigned long long source, target;
    long long count;
    int is_double;
    if (!PyArg_ParseTuple(args, "sKKLp", &name, &source, &target, &count, &is_double)) return NULL;
    const Entry *entry = entries;
    while (entry->name && strcmp(entry->name, name)) entry++;
    if (!entry->name) {
        PyErr_Format(PyExc_ValueError, "libm: no function %s", name);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    if (is_double) {
        const double *x = (const double *)(uintptr_t)source;
        double *y = (double *)(uintptr_t)target;
        for (long long i = 0; i < count; i++) y[i] = entry->f64(x[i]);
    }
    else {
        const float *x = (const float *)(uintptr_t)source;
        float *y = (float *)(uintptr_t)target;
        for (long long i = 0; i < count; i++) y[i] = entry->f32(x[i]);
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
