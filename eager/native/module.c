/* Module setup of eager._native: thread state, registrations, the function table for siblings. */
#define PY_SSIZE_T_CLEAN
#include "calls.h"

/* ---- per-thread state, read on every op call ---- */

_Thread_local int tls_grad_disabled;
_Thread_local int tls_mode_depth;
_Thread_local int tls_inference;

int grad_enabled(void) { return !tls_grad_disabled; }
static int grad_modes(void) { return (tls_grad_disabled ? 0 : 1) | (tls_inference ? 2 : 0); }
int mode_depth(void) { return tls_mode_depth; }

static PyObject *py_grad_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(!tls_grad_disabled); }

/* set_grad_enabled(bool) -> the previous value */
static PyObject *py_set_grad_enabled(PyObject *Py_UNUSED(m), PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    int before = !tls_grad_disabled;
    tls_grad_disabled = !on;
    return PyBool_FromLong(before);
}

static PyObject *py_inference_mode(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(tls_inference); }

/* set_inference_mode(bool) -> the previous value */
static PyObject *py_set_inference_mode(PyObject *Py_UNUSED(m), PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    int before = tls_inference;
    tls_inference = on;
    return PyBool_FromLong(before);
}

static PyObject *py_mode_depth(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromLong(tls_mode_depth); }
static PyObject *py_set_mode_depth(PyObject *Py_UNUSED(m), PyObject *value)
{
    long depth = PyLong_AsLong(value);
    if (depth == -1 && PyErr_Occurred()) return NULL;
    tls_mode_depth = (int)depth;
    Py_RETURN_NONE;
}

static PyObject *py_epoch(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromUnsignedLongLong(g_epoch); }
static PyObject *py_bump_epoch(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { g_epoch++; Py_RETURN_NONE; }

/* As types written in C are: neither the class's attributes nor the class of an instance can change from now on. */
static PyObject *py_seal_type(PyObject *Py_UNUSED(m), PyObject *cls)
{
    if (!PyType_Check(cls)) return PyErr_Format(PyExc_TypeError, "seal_type: expected a class, got a %s", Py_TYPE(cls)->tp_name);
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(mro); i++)
        if (!PyType_HasFeature((PyTypeObject *)PyTuple_GET_ITEM(mro, i), Py_TPFLAGS_IMMUTABLETYPE))
            return PyErr_Format(PyExc_TypeError, "seal_type: %R can still change, and %R derives from it",
                                PyTuple_GET_ITEM(mro, i), cls);
    type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    PyType_Modified(type);
    return Py_NewRef(cls);
}

/* ---- threads and products ---- */

Runtime g_runtime = {RUNTIME_ABI_VERSION, 1, threads_parallel_for, blas_gemm, threads_scratch, NULL};

static PyObject *py_set_threads(PyObject *Py_UNUSED(m), PyObject *count)
{
    long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    threads_set(threads > 1 << 20 ? 1 << 20 : (int)threads);
    Py_RETURN_NONE;
}

static PyObject *py_threads(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyLong_FromLong(g_runtime.threads); }

static PyObject *py_load_blas(PyObject *Py_UNUSED(m), PyObject *path)
{
    const char *text = PyUnicode_AsUTF8(path), *why = NULL;
    if (!text) return NULL;
    if (blas_load(text, &why) < 0) return PyErr_Format(PyExc_OSError, "no BLAS in %U: %s", path, why ? why : "unknown error");
    Py_RETURN_NONE;
}

static PyObject *py_has_blas(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(a)) { return PyBool_FromLong(blas_loaded()); }

/* sole_owner(t, references): see tensor_sole_owner */
static PyObject *py_sole_owner(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyObject_TypeCheck(args[0], &TensorBase_Type))
        return PyErr_Format(PyExc_TypeError, "sole_owner() takes a tensor and a number of references");
    long references = PyLong_AsLong(args[1]);
    if (references == -1 && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(tensor_sole_owner((const TensorObject *)args[0], references));
}

/* ---- registrations made by the Python side at import ---- */

/* register(tensor_class, size_class, dtypes, descrs, device_maker) */
static PyObject *py_register(PyObject *Py_UNUSED(m), PyObject *args)
{
    PyObject *tensor_class, *size_class, *dtypes, *descrs, *device_maker;
    if (!PyArg_ParseTuple(args, "O!O!OOO", &PyType_Type, &tensor_class, &PyType_Type, &size_class, &dtypes,
                          &descrs, &device_maker))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)tensor_class, &TensorBase_Type) ||
        !PyType_IsSubtype((PyTypeObject *)size_class, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "register: expected subclasses of TensorBase and of tuple");
        return NULL;
    }
    PyObject *fast = PySequence_Fast(dtypes, "register: dtypes must be a sequence");
    if (!fast) return NULL;
    if (PySequence_Fast_GET_SIZE(fast) != EAGER_NUM_DTYPES) {
        PyErr_Format(PyExc_ValueError, "register: expected %d dtypes", EAGER_NUM_DTYPES);
        Py_DECREF(fast);
        return NULL;
    }
    for (int i = 0; i < EAGER_NUM_DTYPES; i++)
        Py_XSETREF(g_dtypes[i], Py_NewRef(PySequence_Fast_GET_ITEM(fast, i)));
    Py_DECREF(fast);
    if (array_register_descr(descrs) < 0) return NULL;
    Py_XSETREF(g_tensor_class, (PyTypeObject *)Py_NewRef(tensor_class));
    Py_XSETREF(g_size_class, (PyTypeObject *)Py_NewRef(size_class));
    Py_XSETREF(g_device_maker, Py_NewRef(device_maker));
    Py_RETURN_NONE;
}

static PyObject *py_set_cuda_array_maker(PyObject *Py_UNUSED(m), PyObject *maker)
{
    Py_XSETREF(g_cuda_array_maker, Py_NewRef(maker));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"register", py_register, METH_VARARGS, "register(tensor_class, size_class, dtypes, descrs, device_maker)"},
    {"set_symint", py_set_symint, METH_O, "the class of symbolic sizes"},
    {"set_cuda_array_maker", py_set_cuda_array_maker, METH_O, "callable that makes a CuPy array over a tensor"},
    {"make", (PyCFunction)(void *)py_make, METH_FASTCALL, "make(cls, storage, dtype_code, sizes, strides, offset=0, flags=0)"},
    {"empty", (PyCFunction)(void *)py_empty, METH_FASTCALL, "empty(dtype_code, sizes, strides)"},
    {"empty_row_major", py_empty_row_major, METH_O, "row-major tensor of t's sizes and dtype"},
    {"alias", (PyCFunction)(void *)py_alias, METH_FASTCALL, "alias(t, sizes, strides, offset[, dtype_code])"},
    {"tensor_over", py_tensor_over, METH_O, "tensor_over(array): a tensor over the memory of an ndarray, or None"},
    {"storage_from_memory", storage_from_memory, METH_VARARGS, "storage_from_memory(address, nbytes, owner, device_type=0, device_index=0)"},
    {"storage_from_fd", storage_from_fd, METH_VARARGS, "storage_from_fd(fd, nbytes): memory shared with other processes"},
    {"storage_fake", storage_fake, METH_VARARGS, "storage_fake(nbytes, device_type, device_index)"},
    {"storage_empty", storage_empty, METH_O, "storage_empty(nbytes)"},
    {"storage_extend", storage_extend, METH_VARARGS, "storage_extend(constructor, methods): what UntypedStorage has beside C's methods"},
    {"storage_alias", storage_alias, METH_O, "same memory, own version counter"},
    {"grad_enabled", py_grad_enabled, METH_NOARGS, "is gradient recording on in this thread"},
    {"set_grad_enabled", py_set_grad_enabled, METH_O, "set_grad_enabled(on) -> previous"},
    {"inference_mode", py_inference_mode, METH_NOARGS, "are new tensors of this thread inference tensors"},
    {"set_inference_mode", py_set_inference_mode, METH_O, "set_inference_mode(on) -> previous"},
    {"mode_depth", py_mode_depth, METH_NOARGS, "dispatch modes on this thread's stack"},
    {"set_mode_depth", py_set_mode_depth, METH_O, NULL},
    {"epoch", py_epoch, METH_NOARGS, "counter of parameter and module changes"},
    {"bump_epoch", py_bump_epoch, METH_NOARGS, "record such a change"},
    {"seal_type", py_seal_type, METH_O, "seal_type(cls) -> cls, which is immutable from now on"},
    {"fast_operator", py_fast_operator, METH_VARARGS, "fast_operator(op, fallback)"},
    {"fast_method", py_fast_method, METH_VARARGS, "fast_method(name, fallback)"},
    {"bind_op", py_bind_op, METH_VARARGS, "bind_op(op, name): the short ways that C has for it"},
    {"overlap", (PyCFunction)(void *)py_overlap, METH_FASTCALL, "overlap(target, args): 0 none, 1 the very same elements, 2 in part"},
    {"drop_own_frames", (PyCFunction)(void *)py_drop_own_frames, METH_FASTCALL, "drop_own_frames(error=the one being handled)"},
    {"cover", py_cover, METH_VARARGS, "cover(table, begin, end, handler): an exception table with a handler for every unit of a body"},
    {"set_frame_filter", py_set_frame_filter, METH_VARARGS, "set_frame_filter(owner_of, shows_all)"},
    {"run_kernel", (PyCFunction)(void *)py_run_kernel, METH_FASTCALL, "run_kernel(op, args): by the op's native loop or kernel, or None"},
    {"softmax", (PyCFunction)(void *)py_softmax, METH_FASTCALL, "softmax(out, x, log) -> whether it could run"},
    {"softmax_backward", (PyCFunction)(void *)py_softmax_backward, METH_FASTCALL, "softmax_backward(out, g, y, log) -> whether it could run"},
    {"layer_norm", (PyCFunction)(void *)py_layer_norm, METH_FASTCALL, "layer_norm(out, mean, rstd, x, weight, bias, eps) -> whether it could run"},
    {"layer_norm_backward", (PyCFunction)(void *)py_layer_norm_backward, METH_FASTCALL, "layer_norm_backward(out, g, x, mean, rstd, weight) -> whether it could run"},
    {"layer_norm_backward_weight", (PyCFunction)(void *)py_layer_norm_backward_weight, METH_FASTCALL, "layer_norm_backward_weight(out, g, x, mean, rstd) -> whether it could run"},
    {"philox", (PyCFunction)(void *)py_philox, METH_FASTCALL, "philox(out, seed, offset, normal) -> whether it could run"},
    {"set_default_stream", py_set_default_stream, METH_O, "set_default_stream(stream): the CPU's, which rng_state draws from"},
    {"adam", (PyCFunction)(void *)py_adam, METH_FASTCALL, "adam(p, m, v, g, lr, beta1, beta2, eps, weight_decay, decoupled, step) -> whether it could run"},
    {"moments", (PyCFunction)(void *)py_moments, METH_FASTCALL, "moments(mean, var, x, outer, inner) -> whether it could run"},
    {"reduce", (PyCFunction)(void *)py_reduce, METH_FASTCALL, "reduce(out, x, kind, columns, scale) -> whether it could run"},
    {"copy", (PyCFunction)(void *)py_copy, METH_FASTCALL, "copy(to, from) -> whether it could run"},
    {"pointwise", (PyCFunction)(void *)py_pointwise, METH_FASTCALL, "pointwise(op, args): by the op's native loop, or None"},
    {"pointwise_number", py_pointwise_number, METH_O, "pointwise_number(name): of the op among those with loops, or -1"},
    {"register_nodes", (PyCFunction)(void *)py_register_nodes, METH_FASTCALL, "register_nodes(five classes, sequence, leaf_sequence, edge_of, no_grad_view)"},
    {"register_engine", (PyCFunction)(void *)py_register_engine, METH_FASTCALL, "register_engine(add_gradient, fit, cast_to)"},
    {"plain_vjp", (PyCFunction)(void *)py_plain_vjp, METH_FASTCALL, "plain_vjp(op, g, args, outputs, needed) -> gradients"},
    {"run_graph", (PyCFunction)(void *)py_run_graph, METH_FASTCALL, "run_graph(deliveries, retain, needed, special, step)"},
    {"record", (PyCFunction)(void *)py_record, METH_FASTCALL, "record(op, args, below, plans) -> result or NotImplemented"},
    {"traits", py_traits, METH_O, "traits(args) -> what the tensors among them are"},
    {"edge_of", py_edge_of, METH_O, "edge_of(tensor) -> (node, output number) or None"},
    {"sole_owner", (PyCFunction)(void *)py_sole_owner, METH_FASTCALL, "sole_owner(tensor, references) -> bool"},
    {"spec_of", py_spec_of, METH_O, "spec_of(tensor) -> TensorSpec"},
    {"record_in_python", (PyCFunction)(void *)py_record_in_python, METH_FASTCALL, "record_in_python(anomaly, hooks)"},
    {"uniform_floats", py_uniform_floats, METH_O, "the first tensor, if all are alike and plain"},
    {"libm", py_libm, METH_VARARGS, "libm(name, source, target, count, is_double)"},
    {"set_threads", py_set_threads, METH_O, "set_threads(count): threads of native loops, the caller's included"},
    {"threads", py_threads, METH_NOARGS, "threads of native loops"},
    {"load_blas", py_load_blas, METH_O, "load_blas(path): use the CBLAS in this library. Raises: OSError"},
    {"has_blas", py_has_blas, METH_NOARGS, "whether a BLAS was loaded"},
    {"matmul", (PyCFunction)(void *)py_matmul, METH_FASTCALL, "matmul(a, b, turned=False, bias=None) -> tensor or None"},
    {"product", (PyCFunction)(void *)py_product, METH_FASTCALL, "product(out, a, b, accumulate=False): out (+)= a @ b; False where it cannot"},
    {"empty_cache", pool_empty_cache, METH_NOARGS, "give cached CPU blocks back to the system"},
    {"memory_stats", pool_stats, METH_NOARGS, "bytes in use, peak, cached; hits and misses"},
    {"set_memory_limit", pool_set_limit, METH_O, "most bytes the CPU cache may keep"},
    {NULL, NULL, 0, NULL},
};

static EagerAPI api = {
    .abi_version = EAGER_ABI_VERSION,
    .storage_type = &Storage_Type,
    .tensor_base_type = &TensorBase_Type,
    .tensor_class = &g_tensor_class,
    .epoch = &g_epoch,
    .grad_modes = grad_modes,
    .mode_depth = mode_depth,
    .wants_grad = tensor_wants_grad,
    .itemsize = g_itemsize,
    .storage_alloc = storage_alloc,
    .tensor_new = tensor_new,
    .pool_alloc = pool_alloc,
    .pool_free = pool_free,
    .runtime = &g_runtime,
    .threads_enter = threads_enter,
    .threads_leave = threads_leave,
};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "eager._native", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__native(void)
{
    if (PyType_Ready(&Storage_Type) < 0 || PyType_Ready(&TensorBase_Type) < 0 || PyType_Ready(&Stream_Type) < 0 || array_init() < 0 ||
        opcall_init() < 0 || PyType_Ready(&ArgumentCheck_Type) < 0)
        return NULL;
    threads_set(1);
    PyObject *m = PyModule_Create(&module_def);
    if (!m) return NULL;
    PyObject *capsule = PyCapsule_New(&api, EAGER_CAPSULE, NULL);
    if (!capsule || PyModule_AddObjectRef(m, "_C_API", capsule) < 0 ||
        PyModule_AddObjectRef(m, "TensorBase", (PyObject *)&TensorBase_Type) < 0 ||
        PyModule_AddObjectRef(m, "Stream", (PyObject *)&Stream_Type) < 0 ||
        PyModule_AddObjectRef(m, "OpBase", (PyObject *)&OpBase_Type) < 0 ||
        PyModule_AddObjectRef(m, "ArgumentCheck", (PyObject *)&ArgumentCheck_Type) < 0 ||
        PyModule_AddObjectRef(m, "UntypedStorage", (PyObject *)&Storage_Type) < 0) {
        Py_XDECREF(capsule);
        Py_DECREF(m);
        return NULL;
    }
    Py_DECREF(capsule);
    PyObject *names = view_method_names();
    if (!names || PyModule_AddObjectRef(m, "FAST_METHODS", names) < 0) Py_CLEAR(m);
    Py_XDECREF(names);
    return m;
}
