/* Binding the arguments of a call to the flat slots of a function. */
#ifndef FRAMEJIT_BINDER_H
#define FRAMEJIT_BINDER_H

#include "state.h"

/* The layout of a code object's arguments in slots. */
typedef struct {
    PyCodeObject *code;         /* borrowed: the owner holds the function */
    int n_positional, n_positional_only, n_keyword_only, n_slots;
    bool varargs, varkeywords, simple;
} Signature;

typedef struct {                /* objects that binding created; the slots borrow from them */
    PyObject *rest, *keywords, *defaults, *kwdefaults;
} BoundExtras;

static inline int code_argument_slots(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}
void signature_of(Signature *signature, PyCodeObject *code);
/* 1: bound; 0: the arguments do not fit (no error set); -1: error. Fill `slots` with borrowed references,
 * which `extras` keeps alive along with the caller's arguments. */
int bind_arguments(const Signature *signature, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames, PyObject **slots, BoundExtras *extras);
void bound_extras_free(BoundExtras *extras);
#endif
