/* The native kernels by op. The table is printed from the op table: see eager/optable/native_kernels.py. */
#define PY_SSIZE_T_CLEAN
#include "kernels/kernel.h"

static const struct {
    const char *op;
    int arity;
    bool makes_results, writes_target;
    Kernel run;
} kernel_table[] = {KERNEL_ROWS};

int kernel_find(const char *op, bool in_place)
{
    for (size_t i = 0; i < sizeof kernel_table / sizeof *kernel_table; i++)
        if (!strcmp(kernel_table[i].op, op)) return (in_place ? kernel_table[i].writes_target : kernel_table[i].makes_results) ? (int)i : -1;
    return -1;
}

static PyObject *run(int number, PyObject *const *args, Py_ssize_t nargs, TensorObject *target)
{
    Results results = {.target = target};
    if (nargs != kernel_table[number].arity) return NULL;
    if (kernel_table[number].run(args, &results)) return results_take(&results);
    results_drop(&results);
    return NULL;
}

PyObject *kernel_call(int number, PyObject *const *args, Py_ssize_t nargs) { return run(number, args, nargs, NULL); }

PyObject *kernel_write(int number, PyObject *const *args, Py_ssize_t nargs)
{
    TensorObject *target = cpu_tensor(args[0]);
    PyObject *out = target ? run(number, args, nargs, target) : NULL;
    if (out) storage_written(target->storage);
    return out;
}
