/* Update rules of optimizers in one pass over their arrays. */
#define PY_SSIZE_T_CLEAN
#include "kernels/functions.h"
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/numpy_buffers.h"
#include "kernels/vector_math.h"

typedef struct {
    void *p, *m, *v;
    const void *g;
    double keep, decay, beta1, beta2, root, eps, rate; /* keep: factor of decoupled weight decay */
} Adam;

/* Adam, and AdamW through `keep`. Sources: Kingma & Ba, 2015; Loshchilov & Hutter, 2019. */
#define ADAM(S, T)                                                                                          \
    CLONES static void adam_##S(void *context, long begin, long end)                                        \
    {                                                                                                       \
        const Adam *a = context;                                                                            \
        T *restrict p = a->p, *restrict m = a->m, *restrict v = a->v;                                       \
        const T *restrict g = a->g;                                                                         \
        const T keep = (T)a->keep, decay = (T)a->decay, one = (T)(1 - a->beta1), two = (T)(1 - a->beta2);   \
        const T beta2 = (T)a->beta2, root = (T)a->root, eps = (T)a->eps, rate = (T)a->rate;                 \
        for (long i = begin; i < end; i++) {                                                                \
            const T x = p[i] * keep, d = g[i] + p[i] * decay;                                               \
            const T first = m[i] + (d - m[i]) * one, second = v[i] * beta2 + d * d * two;                   \
            m[i] = first;                                                                                   \
            v[i] = second;                                                                                  \
            p[i] = x - first / (sqrt_##S(second) / root + eps) * rate;                                      \
        }                                                                                                   \
    }
ADAM(f32, float)
ADAM(f64, double)

/* adam_step(p, m, v, g, lr, beta1, beta2, eps, weight_decay, decoupled, step): False for arrays it cannot work on */
static PyObject *py_adam_step(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 11) return PyErr_Format(PyExc_TypeError, "adam_step() takes 11 arguments; got %zd", nargs);
    double x[7];
    for (int i = 0; i < 7; i++) x[i] = PyFloat_AsDouble(args[4 + i]);
    if (PyErr_Occurred()) return NULL;
    const double lr = x[0], beta1 = x[1], beta2 = x[2], eps = x[3], decay = x[4], decoupled = x[5], step = x[6];
    Arrays a;
    int opened = arrays_open(&a, args, 4, 3);
    if (opened < 0) return NULL;
    if (!opened) Py_RETURN_FALSE;
    long n = a.sizes[0];
    bool same = a.data[0] && a.data[1] && a.data[2] && a.data[3] && a.sizes[1] == n && a.sizes[2] == n && a.sizes[3] == n;
    if (same) {
        Adam job = {a.data[0], a.data[1], a.data[2], a.data[3], decoupled ? 1 - lr * decay : 1, decoupled ? 0 : decay, beta1, beta2,
                    sqrt(1 - pow(beta2, step)), eps, lr / (1 - pow(beta1, step))};
        parallel(a.is_double ? adam_f64 : adam_f32, &job, n, 8192, 4.0 * (double)n);
    }
    arrays_close(&a);
    return PyBool_FromLong(same);
}

PyMethodDef adam_functions[] = {
    {"adam_step", (PyCFunction)(void *)py_adam_step, METH_FASTCALL, "adam_step(p, m, v, g, lr, beta1, beta2, eps, weight_decay, decoupled, step) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
