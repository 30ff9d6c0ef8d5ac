/* Tensors made from numbers alone: full, empty, arange, and vectors of Python numbers. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "kernels/kernel.h"

/* full(size, value, dtype, device): a float into float32 and float64, or an int into these and int64 */
bool kernel_full(PyObject *const *args, Results *results)
{
    int64_t sizes[EAGER_MAX_NDIM];
    const int ndim = read_ints(args[0], sizes, EAGER_MAX_NDIM), code = code_of_dtype(args[2]);
    double value;
    int64_t whole = 0;
    const bool integral = read_int(args[1], &whole);
    if (ndim < 0 || !read_real(args[1], &value)) return false;
    if (code != EAGER_FLOAT32 && code != EAGER_FLOAT64 && !(code == EAGER_INT64 && integral)) return false;
    for (int i = 0; i < ndim; i++)
        if (sizes[i] < 0) return false;
    if (!is_cpu_device(args[3])) return false;
    if (code == EAGER_FLOAT32 && (value > 3.4e38 || value < -3.4e38)) return false;
    TensorObject *out = result_memory(results, code, ndim, sizes);
    if (!out) return false;
    const int64_t count = count_elements(sizes, ndim);
    if (value == 0 && !signbit(value)) memset(out->data, 0, (size_t)(count * g_itemsize[code]));
    else if (code == EAGER_FLOAT32) for (int64_t i = 0; i < count; i++) ((float *)out->data)[i] = (float)value;
    else if (code == EAGER_FLOAT64) for (int64_t i = 0; i < count; i++) ((double *)out->data)[i] = value;
    else for (int64_t i = 0; i < count; i++) ((int64_t *)out->data)[i] = whole;
    return out != NULL;
}

/* empty(size, dtype, device) */
bool kernel_empty(PyObject *const *args, Results *results)
{
    int64_t sizes[EAGER_MAX_NDIM];
    const int ndim = read_ints(args[0], sizes, EAGER_MAX_NDIM), code = code_of_dtype(args[1]);
    if (ndim < 0 || code < 0 || !is_cpu_device(args[2])) return false;
    for (int i = 0; i < ndim; i++)
        if (sizes[i] < 0) return false;
    return result_memory(results, code, ndim, sizes) != NULL;
}

/* int_table(values, device) and float_table(values, dtype, device): plain numbers of a tuple as a vector */
static bool vector_of_numbers(PyObject *values, int code, PyObject *device, Results *results)
{
    if (!PyTuple_CheckExact(values) || !is_cpu_device(device)) return false;
    const int64_t count = PyTuple_GET_SIZE(values);
    for (int64_t i = 0; i < count; i++) {
        PyObject *o = PyTuple_GET_ITEM(values, i);
        if (code == EAGER_INT64 ? !PyLong_CheckExact(o) : !PyFloat_CheckExact(o) || beyond(PyFloat_AS_DOUBLE(o), code)) return false;
    }
    TensorObject *out = result_memory(results, code, 1, &count);
    for (int64_t i = 0; out && i < count; i++) {
        PyObject *o = PyTuple_GET_ITEM(values, i);
        if (code == EAGER_FLOAT64) ((double *)out->data)[i] = PyFloat_AS_DOUBLE(o);
        else if (code == EAGER_FLOAT32) ((float *)out->data)[i] = (float)PyFloat_AS_DOUBLE(o);
        else if (!read_int(o, &((int64_t *)out->data)[i])) out = NULL;
    }
    return out != NULL;
}

bool kernel_int_table(PyObject *const *args, Results *results) { return vector_of_numbers(args[0], EAGER_INT64, args[1], results); }

bool kernel_float_table(PyObject *const *args, Results *results)
{
    const int code = code_of_dtype(args[1]);
    return code == EAGER_FLOAT32 || code == EAGER_FLOAT64 ? vector_of_numbers(args[0], code, args[2], results) : false;
}

/* arange(start, end, step, dtype, device): of ints into int64, and into the floats where the numbers are exact in them */
bool kernel_arange(PyObject *const *args, Results *results)
{
    int64_t start, end, step, count;
    const int64_t most = 1 << 24;
    if (!read_int(args[0], &start) || !read_int(args[1], &end) || !read_int(args[2], &step) || !step || !is_cpu_device(args[4])) return false;
    const int code = args[3] == Py_None ? EAGER_INT64 : code_of_dtype(args[3]);
    if (code != EAGER_INT64 && code != EAGER_FLOAT32 && code != EAGER_FLOAT64) return false;
    if (start < -most || start > most || end < -most || end > most || step < -most || step > most) return false;
    if ((end - start) % step == 0) count = (end - start) / step;
    else count = (end - start) / step + ((end - start > 0) == (step > 0));
    if (count < 0 || (end - start) * (step > 0 ? 1 : -1) < 0) return false;
    TensorObject *out = result_memory(results, code, 1, &count);
    if (!out) return false;
    if (code == EAGER_INT64) for (int64_t i = 0; i < count; i++) ((int64_t *)out->data)[i] = start + i * step;
    else if (code == EAGER_FLOAT32) for (int64_t i = 0; i < count; i++) ((float *)out->data)[i] = (float)(start + i * step);
    else for (int64_t i = 0; i < count; i++) ((double *)out->data)[i] = (double)(start + i * step);
    return out != NULL;
}
