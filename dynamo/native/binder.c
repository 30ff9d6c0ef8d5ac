/* Binds the arguments of a call to the flat slots of a function, as the interpreter would. */
#include "binder.h"

void signature_of(Signature *signature, PyCodeObject *code)
{
    signature->code = code;
    signature->n_positional = code->co_argcount;
    signature->n_positional_only = code->co_posonlyargcount;
    signature->n_keyword_only = code->co_kwonlyargcount;
    signature->varargs = (code->co_flags & CO_VARARGS) != 0;
    signature->varkeywords = (code->co_flags & CO_VARKEYWORDS) != 0;
    signature->n_slots = code_argument_slots(code);
    signature->simple = signature->n_slots == signature->n_positional;
}

void bound_extras_free(BoundExtras *extras)
{
    Py_XDECREF(extras->rest);
    Py_XDECREF(extras->keywords);
    Py_XDECREF(extras->defaults);
    Py_XDECREF(extras->kwdefaults);
}

static inline PyObject *parameter_name(const Signature *signature, int i)
{
    return PyTuple_GET_ITEM(signature->code->co_localsplusnames, i);
}

/* Slot index of a keyword; -1: no such parameter; -2: error. */
static int find_parameter(const Signature *signature, PyObject *name)
{
    int end = signature->n_positional + signature->n_keyword_only;
    for (int i = signature->n_positional_only; i < end; i++)
        if (parameter_name(signature, i) == name) return i;
    for (int i = signature->n_positional_only; i < end; i++) {
        int equal = PyObject_RichCompareBool(parameter_name(signature, i), name, Py_EQ);
        if (equal) return equal < 0 ? -2 : i;
    }
    return -1;
}

static int bind_keywords(const Signature *signature, PyObject *const *values, PyObject *kwnames, PyObject **slots,
                         BoundExtras *extras)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        if (!PyUnicode_Check(name)) return 0;
        int i = find_parameter(signature, name);
        if (i == -2) return -1;
        if (i >= 0) {
            if (slots[i]) return 0;
            slots[i] = values[k];
        } else {
            if (!extras->keywords) return 0;
            if (PyDict_SetItem(extras->keywords, name, values[k]) < 0) return -1;
        }
    }
    return 1;
}

static int bind_defaults(const Signature *signature, PyFunctionObject *fn, PyObject **slots, BoundExtras *extras)
{
    extras->defaults = Py_XNewRef(fn->func_defaults);
    extras->kwdefaults = Py_XNewRef(fn->func_kwdefaults);
    Py_ssize_t n_defaults = extras->defaults ? PyTuple_GET_SIZE(extras->defaults) : 0;
    for (int i = 0; i < signature->n_positional; i++) {
        if (slots[i]) continue;
        Py_ssize_t d = i - (signature->n_positional - n_defaults);
        if (d < 0) return 0;
        slots[i] = PyTuple_GET_ITEM(extras->defaults, d);
    }
    int end = signature->n_positional + signature->n_keyword_only;
    for (int i = signature->n_positional; i < end; i++) {
        if (slots[i]) continue;
        if (!extras->kwdefaults) return 0;
        slots[i] = PyDict_GetItemWithError(extras->kwdefaults, parameter_name(signature, i));
        if (!slots[i]) return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

int bind_arguments(const Signature *signature, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames, PyObject **slots, BoundExtras *extras)
{
    int n_positional = signature->n_positional, n_named = n_positional + signature->n_keyword_only;
    Py_ssize_t taken = nargs < n_positional ? nargs : n_positional;
    if (nargs > n_positional && !signature->varargs) return 0;
    for (Py_ssize_t i = 0; i < taken; i++) slots[i] = args[i];
    for (Py_ssize_t i = taken; i < n_named; i++) slots[i] = NULL;
    int next = n_named;
    if (signature->varargs) {
        Py_ssize_t n_rest = nargs - taken;
        extras->rest = PyTuple_New(n_rest);
        if (!extras->rest) return -1;
        for (Py_ssize_t i = 0; i < n_rest; i++) PyTuple_SET_ITEM(extras->rest, i, Py_NewRef(args[taken + i]));
        slots[next++] = extras->rest;
    }
    if (signature->varkeywords) {
        extras->keywords = PyDict_New();
        if (!extras->keywords) return -1;
        slots[next++] = extras->keywords;
    }
    if (kwnames) {
        int bound = bind_keywords(signature, args + nargs, kwnames, slots, extras);
        if (bound <= 0) return bound;
    }
    return bind_defaults(signature, fn, slots, extras);
}
