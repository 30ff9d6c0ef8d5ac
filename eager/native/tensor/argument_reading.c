/* Dtypes and devices among a call's arguments; row-major copies. */
#define PY_SSIZE_T_CLEAN
#include "tensor/argument_reading.h"

int code_of_dtype(PyObject *dtype)
{
    for (int i = 0; i < EAGER_NUM_DTYPES; i++)
        if (g_dtypes[i] == dtype) return i;
    return -1;
}

bool is_cpu_device(PyObject *device)
{
    if (device == Py_None) return true;
    PyObject *cpu = tensor_device_of(EAGER_CPU, 0);
    Py_XDECREF(cpu);
    return cpu == device;
}

TensorObject *as_row_major(TensorObject *t)
{
    if (is_row_major(t)) return (TensorObject *)Py_NewRef((PyObject *)t);
    TensorObject *made = new_tensor(code_of(t), tensor_ndim(t), tensor_sizes(t));
    if (made && made->data)
        copy_elements(made->data, tensor_strides(made), t->data, tensor_strides(t), tensor_sizes(t), tensor_ndim(t), g_itemsize[code_of(t)]);
    return made;
}
