/* Fast paths of op and method calls in C, and their fallbacks. */
#ifndef EAGER_CALLS_H
#define EAGER_CALLS_H

#include "tape/node_fields.h"

/* The C base of an op. A number is -1 if the op has no such fast path. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int loop;     /* number of the pointwise loop */
    int view;     /* number of the view's geometry rule */
    int kernel;   /* number of the native kernel */
    int inplace;  /* whether the op writes its first argument */
    int recorded; /* whether calls that need gradients are recorded in C */
    int plain;    /* whether gradients follow from `rules`: no lists of tensors among the inputs */
    int flags;    /* mask of the parameters that are bools */
    int tensors;  /* mask of the parameters that reject numbers, although loops and kernels accept them */
    int writer;   /* of an in-place op: number of the kernel that writes the target */
    int maker;    /* of an in-place op: number of its base op's kernel */
    PyObject *plans[RECORD_PLANS];
    PyObject *rules; /* gradient formulas, made on first use */
} OpBase;

/* A method of Tensor, self among the arguments: the result, or NULL without an exception if the Python method has to run. */
typedef PyObject *(*Method)(PyObject *const *args, Py_ssize_t nargs);

/* views.c */
int view_find(const char *name);
void view_bind(int which, OpBase *op);
PyObject *view_call(OpBase *op, int which, PyObject *const *args, Py_ssize_t nargs);
Method view_method(const char *name);
PyObject *view_method_names(void);

/* traceback_filter.c: removes this library's frames from the traceback of the raised exception. */
void filter_raised(void);

/* inplace_writes.c: writes that neither autograd nor a mode has to see. NULL without an exception if the full dispatch has to
 * decide. */
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
