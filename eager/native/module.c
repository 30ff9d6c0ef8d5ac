/* Module setup of eager._native: types, functions, the function table for the sibling extensions. */
#define PY_SSIZE_T_CLEAN
#include "autograd/functions.h"
#include "calls/calls.h"
#include "calls/functions.h"
#include "kernels/functions.h"
#include "runtime/functions.h"
#include "tape/functions.h"
#include "tensor/functions.h"
#include "tensor/random_stream.h"

static PyMethodDef *const functions[] = {
    thread_state_functions, runtime_functions, caching_allocator_functions,
    registration_functions, tensor_functions, storage_functions, numpy_array_functions, strided_copy_functions, memory_overlap_functions, random_stream_functions,
    softmax_layer_norm_functions, philox_functions, adam_functions, moments_functions, reduce_functions, pointwise_functions, libm_unary_functions, matmul_functions,
    record_op_functions,
    op_call_functions, traceback_filter_functions, exception_table_functions,
    backward_engine_functions,
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

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "eager._native", .m_size = -1};

static const struct {
    const char *name;
    PyTypeObject *type;
} types[] = {
    {"TensorBase", &TensorBase_Type}, {"UntypedStorage", &Storage_Type}, {"Stream", &Stream_Type}, {"OpBase", &OpBase_Type},
    {"ArgumentCheck", &ArgumentCheck_Type},
};

/* Adds everything that the module holds. -1 with an exception. */
static int fill_module(PyObject *m)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (PyModule_AddFunctions(m, functions[i]) < 0) return -1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyType_Ready(types[i].type) < 0 || PyModule_AddObjectRef(m, types[i].name, (PyObject *)types[i].type) < 0) return -1;
    PyObject *capsule = PyCapsule_New(&api, EAGER_CAPSULE, NULL), *names = view_method_names();
    const bool added = capsule && names && PyModule_AddObjectRef(m, "_C_API", capsule) == 0 && PyModule_AddObjectRef(m, "NATIVE_METHODS", names) == 0;
    Py_XDECREF(capsule);
    Py_XDECREF(names);
    return added ? 0 : -1;
}

PyMODINIT_FUNC PyInit__native(void)
{
    if (array_init() < 0 || op_call_init() < 0) return NULL;
    threads_set(1);
    PyObject *m = PyModule_Create(&module_def);
    if (m && fill_module(m) < 0) Py_CLEAR(m);
    return m;
}
