/* The short ways that calls of ops and methods take through C, and what they fall back to. */
#ifndef EAGER_CALLS_H
#define EAGER_CALLS_H

#include "nodes.h"

/* What eager.ops.table.Op is made of. The numbers are -1 where there is no such short way. */
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

/* direct.c: kernels that take an op's full arguments, beneath autograd and modes. NULL without an exception where the
 * arguments are none that they work on: tensors with data on the CPU, of dtypes and layouts of their own choice. */
int kernel_find(const char *name);
PyObject *kernel_run(int which, PyObject *const *args, Py_ssize_t nargs);

#endif
