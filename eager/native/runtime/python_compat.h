/* Differences between the versions of CPython; no other file of eager's or inductor's native code has a version condition. */
#ifndef EAGER_PYTHON_COMPAT_H
#define EAGER_PYTHON_COMPAT_H

#include <Python.h>

/* The object of a weak reference, a new reference; NULL if the object was destroyed. */
static inline PyObject *weakref_object(PyObject *weak)
{
    PyObject *object = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyWeakref_GetRef(weak, &object) < 0) PyErr_Clear();
#else
    object = PyWeakref_GET_OBJECT(weak);
    object = object == Py_None ? NULL : Py_NewRef(object);
#endif
    return object;
}
#endif
