/* Numpy arrays as arguments of kernels, through the buffer protocol. */
#ifndef EAGER_ARRAYS_H
#define EAGER_ARRAYS_H

#include "tensor/internal.h"
#include <string.h>

enum { MAX_ARRAYS = 8 };

/* Row-major float32 or float64 arrays of one dtype. `data[i]` is NULL where the argument was None. */
typedef struct {
    Py_buffer views[MAX_ARRAYS];
    void *data[MAX_ARRAYS];
    long sizes[MAX_ARRAYS]; /* elements */
    int opened, is_double;
} Arrays;

static inline void arrays_close(Arrays *a)
{
    while (a->opened--)
        if (a->views[a->opened].obj) PyBuffer_Release(&a->views[a->opened]);
}

/* Opens `count` arguments, the first `written` of them for writing. 1: opened, close them later. 0: other dtypes or
 * layouts, nothing is open. -1: an exception is set. */
static inline int arrays_open(Arrays *a, PyObject *const *args, int count, int written)
{
    char code = 0;
    a->opened = 0;
    for (int i = 0; i < count; i++, a->opened++) {
        Py_buffer *view = &a->views[i];
        view->obj = NULL;
        a->data[i] = NULL;
        a->sizes[i] = 0;
        if (args[i] == Py_None) continue;
        if (PyObject_GetBuffer(args[i], view, PyBUF_STRIDES | PyBUF_FORMAT | (i < written ? PyBUF_WRITABLE : 0)) < 0) {
            arrays_close(a);
            if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
            PyErr_Clear(); /* a dtype without a buffer format, such as bfloat16 */
            return 0;
        }
        const char *format = view->format ? view->format : "B";
        bool floats = (*format == 'f' || *format == 'd') && !format[1] && (!code || code == *format);
        if (!floats || !PyBuffer_IsContiguous(view, 'C')) {
            a->opened++;
            arrays_close(a);
            return 0;
        }
        code = *format;
        a->data[i] = view->buf;
        a->sizes[i] = (long)(view->len / view->itemsize);
    }
    a->is_double = code == 'd';
    return 1;
}
#endif
