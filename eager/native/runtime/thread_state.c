/* Gradient mode, inference mode and the depth of the mode stack, per thread. */
#define PY_SSIZE_T_CLEAN
#include "runtime/functions.h"
#include "runtime/thread_state.h"

HOT_THREAD_LOCAL int tls_grad_disabled;
HOT_THREAD_LOCAL int tls_mode_depth;
HOT_THREAD_LOCAL int tls_inference;

int grad_modes(void) { return (tls_grad_disabled ? 0 : 1) | (tls_inference ? 2 : 0); }
int mode_depth(void) { return tls_mode_depth; }

static PyObject *py_grad_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(!tls_grad_disabled); }

/* set_grad_enabled(bool) -> the previous value */
static PyObject *py_set_grad_enabled(PyObject *Py_UNUSED(m), PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    int before = !tls_grad_disabled;
    tls_grad_disabled = !on;
    return PyBool_FromLong(before);
}

static PyObject *py_inference_mode(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(tls_inference); }

/* set_inference_mode(bool) -> the previous value */
static PyObject *py_set_inference_mode(PyObject *Py_UNUSED(m), PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    int before = tls_inference;
    tls_inference = on;
    return PyBool_FromLong(before);
}

static PyObject *py_mode_depth(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromLong(tls_mode_depth); }
static PyObject *py_set_mode_depth(PyObject *Py_UNUSED(m), PyObject *value)
{
    long depth = PyLong_AsLong(value);
    if (depth == -1 && PyErr_Occurred()) return NULL;
    tls_mode_depth = (int)depth;
    Py_RETURN_NONE;
}

PyMethodDef thread_state_functions[] = {
    {"grad_enabled", py_grad_enabled, METH_NOARGS, "is gradient recording on in this thread"},
    {"set_grad_enabled", py_set_grad_enabled, METH_O, "set_grad_enabled(on) -> previous"},
    {"inference_mode", py_inference_mode, METH_NOARGS, "are new tensors of this thread inference tensors"},
    {"set_inference_mode", py_set_inference_mode, METH_O, "set_inference_mode(on) -> previous"},
    {"mode_depth", py_mode_depth, METH_NOARGS, "dispatch modes on this thread's stack"},
    {"set_mode_depth", py_set_mode_depth, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
