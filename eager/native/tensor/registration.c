/* Classes that Python registers at import, the parameter epoch, and checks of tensors and types. */
#define PY_SSIZE_T_CLEAN
#include "tensor/functions.h"
#include "tensor/internal.h"

/* is_sole_owner(t, references): see tensor_sole_owner */
static PyObject *py_is_sole_owner(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyObject_TypeCheck(args[0], &TensorBase_Type))
        return PyErr_Format(PyExc_TypeError, "is_sole_owner() takes a tensor and a number of references");
    long references = PyLong_AsLong(args[1]);
    if (references == -1 && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(tensor_sole_owner((const TensorObject *)args[0], references));
}

/* register_types(tensor_class, size_class, dtypes, descrs, device_maker) */
static PyObject *py_register_types(PyObject *Py_UNUSED(m), PyObject *args)
{
    PyObject *tensor_class, *size_class, *dtypes, *descrs, *device_maker;
    if (!PyArg_ParseTuple(args, "O!O!OOO", &PyType_Type, &tensor_class, &PyType_Type, &size_class, &dtypes,
                          &descrs, &device_maker))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)tensor_class, &TensorBase_Type) ||
        !PyType_IsSubtype((PyTypeObject *)size_class, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "register_types: expected subclasses of TensorBase and of tuple");
        return NULL;
    }
    PyObject *fast = PySequence_Fast(dtypes, "register_types: dtypes must be a sequence");
    if (!fast) return NULL;
    if (PySequence_Fast_GET_SIZE(fast) != EAGER_NUM_DTYPES) {
        PyErr_Format(PyExc_ValueError, "register_types: expected %d dtypes", EAGER_NUM_DTYPES);
        Py_DECREF(fast);
        return NULL;
    }
    for (int i = 0; i < EAGER_NUM_DTYPES; i++)
        Py_XSETREF(g_dtypes[i], Py_NewRef(PySequence_Fast_GET_ITEM(fast, i)));
    Py_DECREF(fast);
    if (array_register_descr(descrs) < 0) return NULL;
    Py_XSETREF(g_tensor_class, (PyTypeObject *)Py_NewRef(tensor_class));
    Py_XSETREF(g_size_class, (PyTypeObject *)Py_NewRef(size_class));
    Py_XSETREF(g_device_maker, Py_NewRef(device_maker));
    Py_RETURN_NONE;
}

static PyObject *py_set_cuda_array_maker(PyObject *Py_UNUSED(m), PyObject *maker)
{
    Py_XSETREF(g_cuda_array_maker, Py_NewRef(maker));
    Py_RETURN_NONE;
}

static PyObject *py_epoch(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromUnsignedLongLong(g_epoch); }
static PyObject *py_bump_epoch(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { g_epoch++; Py_RETURN_NONE; }

/* seal_type(cls) -> cls: makes a class immutable, as types written in C are: neither its attributes nor the class of an instance
 * can change. */
static PyObject *py_seal_type(PyObject *Py_UNUSED(m), PyObject *cls)
{
    if (!PyType_Check(cls)) return PyErr_Format(PyExc_TypeError, "seal_type: expected a class, got a %s", Py_TYPE(cls)->tp_name);
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(mro); i++)
        if (!PyType_HasFeature((PyTypeObject *)PyTuple_GET_ITEM(mro, i), Py_TPFLAGS_IMMUTABLETYPE))
            return PyErr_Format(PyExc_TypeError, "seal_type: %R can still change, and %R derives from it",
                                PyTuple_GET_ITEM(mro, i), cls);
    type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    PyType_Modified(type);
    return Py_NewRef(cls);
}

PyMethodDef registration_functions[] = {
    {"register_types", py_register_types, METH_VARARGS, "register_types(tensor_class, size_class, dtypes, descrs, device_maker)"},
    {"set_cuda_array_maker", py_set_cuda_array_maker, METH_O, "callable that makes a CuPy array over a tensor"},
    {"epoch", py_epoch, METH_NOARGS, "counter of parameter and module changes"},
    {"bump_epoch", py_bump_epoch, METH_NOARGS, "record such a change"},
    {"seal_type", py_seal_type, METH_O, "seal_type(cls) -> cls, which is immutable from now on"},
    {"is_sole_owner", (PyCFunction)(void *)py_is_sole_owner, METH_FASTCALL, "is_sole_owner(tensor, references) -> bool"},
    {NULL, NULL, 0, NULL},
};
