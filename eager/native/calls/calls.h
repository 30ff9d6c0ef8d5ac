/* The short ways that calls of ops and methods take through C, and what they fall back to. */
#ifndef EAGER_CALLS_H
#define EAGER_CALLS_H

#include "tape/node_fields.h"

/* What eager.optable.table.Op is made of. The numbers are -1 where there is no such short way. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int loop;     /* of the pointwise loop */
    int view;     /* of the view's geometry */
    int kernel;   /* of the kernel over whole arguments */
    int inplace;  /* whether it writes its first argument */
    int recorded; /* whether calls that ask for gradients are recorded here as well */
    int plain;    /* whether gradients follow from `rules`: no lists of tensors among the inputs */
    int flags;    /* mask of the parameters that are bools */
    int tensors;  /* mask of the parameters for which no number may stand, though loops and kernels take one */
    int writer;   /* of an op that writes its first argument: what writes it, beside the loop */
    int maker;    /* of such an op: the kernel that its base op has */
    PyObject *plans[RECORD_PLANS];
    PyObject *rules; /* gradient formulas, made on first use */
} OpBase;

/* A method of Tensor, self among the arguments: the result, or NULL without an exception where its function decides. */
typedef PyObject *(*Method)(PyObject *const *args, Py_ssize_t nargs);

/* views.c */
int view_find(const char *name);
void view_bind(int which, OpBase *op);
PyObject *view_call(OpBase *op, int which, PyObject *const *args, Py_ssize_t nargs);
Method view_method(const char *name);
PyObject *view_method_names(void);

/* traceback.c: takes this library's frames out of the traceback of the exception that is being raised. */
void filter_raised(void);

/* inplace_writes.c: writes that no autograd record and no mode has to see. NULL without an exception where the full dispatch
 * has to decide. */
bool write_is_plain(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_setitem(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_copy_(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_fill_(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_zero_(PyObject *const *args, Py_ssize_t nargs);

/* op_call.c */
extern PyTypeObject OpBase_Type;
int op_call_init(void);

/* argument_check.c */
extern PyTypeObject ArgumentCheck_Type;

#endif
