/* The short ways that calls of ops and methods take through C, and what they fall back to. */
#ifndef EAGER_CALLS_H
#define EAGER_CALLS_H

#include "nodes.h"

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

/* assign.c: writes to a first argument that concern nobody but the tensors. NULL without an exception where the full
 * dispatch has to decide. */
typedef enum { OVERLAP_NONE, OVERLAP_FULL, OVERLAP_PARTIAL } Overlap; /* FULL: the very same elements, in the same order */
Overlap overlap_of(const TensorObject *a, const TensorObject *b);
Overlap overlap_with(const TensorObject *target, PyObject *const *args, Py_ssize_t nargs);
bool write_is_plain(PyObject *const *args, Py_ssize_t nargs);
int writer_find(const char *name);
PyObject *write_index_put(PyObject *const *args); /* positions.c */
PyObject *write_index_add(PyObject *const *args);
PyObject *write_masked_fill(PyObject *const *args); /* masks.c */
PyObject *write_clamp(PyObject *const *args);
PyObject *writer_run(int which, PyObject *const *args, Py_ssize_t nargs);
PyObject *write_result(PyObject *target, PyObject *made); /* target.copy_(made), of one shape and dtype */
PyObject *method_setitem(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_copy_(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_fill_(PyObject *const *args, Py_ssize_t nargs);
PyObject *method_zero_(PyObject *const *args, Py_ssize_t nargs);

/* deposit.c, for the engine, which holds the only reference to its sums of gradients. gradient_add: sum += gradient, false
 * where it may not be written to. gradient_deposit: the gradient of x with that of select or slice of x added to it (`whole`,
 * or NULL where nothing has come to x); NULL without an exception where the formula has to be called. */
bool gradient_add(PyObject *sum, PyObject *gradient);
PyObject *gradient_deposit(const OpBase *op, PyObject *saved, PyObject *gradient, PyObject *whole);

/* direct.c: kernels that take an op's full arguments, beneath autograd and modes. NULL without an exception where the
 * arguments are none that they work on: tensors with data on the CPU, of dtypes and layouts of their own choice. */
int kernel_find(const char *name);
PyObject *kernel_run(int which, PyObject *const *args, Py_ssize_t nargs);

#endif
