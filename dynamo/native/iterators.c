/* The state of a built-in iterator: the object that it iterates over, and its position. Only for CPython's iterators over lists,
 * tuples, str, ranges and dicts, and for enumerate and zip: reading their state runs no user code. */
#include "guards.h"

static int keep_first(PyObject *o, void *first)
{
    *(PyObject **)first = o;
    return 1;
}

/* The object that the iterator iterates over is its first reference; no attribute exposes it. NULL without a reference. */
PyObject *iterator_owner(PyObject *iterator)
{
    traverseproc traverse = Py_TYPE(iterator)->tp_traverse;
    PyObject *first = NULL;
    if (traverse) traverse(iterator, keep_first, &first);
    return Py_XNewRef(first);
}

/* The position in the result of __reduce__: (callable, (over, ...)[, position]). */
static PyObject *state_in(PyObject *iterator, PyObject *reduced)
{
    PyObject *args = PyTuple_GET_ITEM(reduced, 1), *over = PyTuple_GET_ITEM(args, 0);
    bool positioned = PyTuple_GET_SIZE(reduced) > 2;
    if (Py_IS_TYPE(iterator, &PyEnum_Type)) return Py_NewRef(PyTuple_GET_ITEM(args, 1));
    if (Py_IS_TYPE(iterator, &PyZip_Type)) return PyBool_FromLong(positioned);
    if (positioned && (PyRange_Check(over) || PyUnicode_Check(over) || PyBytes_Check(over)))
        return PyTuple_Pack(2, over, PyTuple_GET_ITEM(reduced, 2));
    if (positioned) return Py_NewRef(PyTuple_GET_ITEM(reduced, 2));
    if (Py_IS_TYPE(iterator, &PyDictIterKey_Type) || Py_IS_TYPE(iterator, &PyDictIterValue_Type) ||
        Py_IS_TYPE(iterator, &PyDictIterItem_Type))
        return PyLong_FromSsize_t(PyList_GET_SIZE(over));   /* a list of the remaining items */
    Py_RETURN_NONE;
}

/* A constant for the position of the iterator; None at its end. NULL with an error if its dict has changed size. */
PyObject *iterator_state(PyObject *iterator)
{
    PyObject *reduced = PyObject_CallMethod(iterator, "__reduce__", NULL), *state = NULL;
    if (!reduced) return NULL;
    if (PyTuple_Check(reduced) && PyTuple_GET_SIZE(reduced) > 1 && PyTuple_Check(PyTuple_GET_ITEM(reduced, 1)) &&
        PyTuple_GET_SIZE(PyTuple_GET_ITEM(reduced, 1)) > 0)
        state = state_in(iterator, reduced);
    else
        PyErr_Format(PyExc_TypeError, "iterator_state: got a %s; expected an iterator of CPython's own over something",
                     Py_TYPE(iterator)->tp_name);
    Py_DECREF(reduced);
    return state;
}

static PyObject *py_iterator_owner(PyObject *module, PyObject *iterator)
{
    (void)module;
    PyObject *owner = iterator_owner(iterator);
    return owner || PyErr_Occurred() ? owner : Py_NewRef(Py_None);
}

static PyObject *py_iterator_state(PyObject *module, PyObject *iterator)
{
    (void)module;
    return iterator_state(iterator);
}

PyMethodDef iterator_methods[] = {
    {"iterator_owner", py_iterator_owner, METH_O, "The object that a built-in iterator iterates over."},
    {"iterator_state", py_iterator_state, METH_O, "A constant for the position of a built-in iterator; None at its end."},
    {NULL, NULL, 0, NULL},
};
