/* dynamo._native: _native.pyi describes each name. */
#include "code_state.h"
#include "compiled_function.h"
#include "frame_fill.h"
#include "hook.h"
#include "resume.h"
#include "tail.h"

const EagerAPI *eager_api;

static int add_types(PyObject *module)
{
    struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {{"Entry", &EntryType}, {"CompiledFunction", &CompiledFunctionType}, {"Dispatcher", &DispatcherType},
                 {"Region", &RegionType}, {"Tail", &TailType}};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(types); i++) {
        if (PyType_Ready(types[i].type) < 0) return -1;
        if (PyModule_AddObjectRef(module, types[i].name, (PyObject *)types[i].type) < 0) return -1;
    }
    return 0;
}

static int add_constants(PyObject *module)
{
    return PyModule_AddIntConstant(module, "OFF", MODE_OFF) < 0 || PyModule_AddIntConstant(module, "ON", MODE_ON) < 0 ||
                   PyModule_AddIntConstant(module, "RUN_ONLY", MODE_RUN_ONLY) < 0 ||
                   PyModule_AddIntConstant(module, "STANCE_DEFAULT", STANCE_DEFAULT) < 0 ||
                   PyModule_AddIntConstant(module, "STANCE_EAGER", STANCE_EAGER) < 0 ||
                   PyModule_AddIntConstant(module, "STANCE_RUN_ONLY", STANCE_RUN_ONLY) < 0
               ? -1
               : 0;
}

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "dynamo._native", .m_doc = "The native half of frame capture.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *eager = PyImport_ImportModule("eager._native");  /* the capsule import only looks up attributes */
    if (!eager) return NULL;
    Py_DECREF(eager);
    eager_api = eager_api_import();
    if (!eager_api) return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    PyMethodDef *methods[] = {state_methods, tail_methods, region_methods, frame_fill_methods, hook_methods, resume_methods,
                              iterator_methods};
    int failed = add_types(module) < 0 || add_constants(module) < 0 || guards_init(module) < 0 || code_state_init() < 0 ||
                 region_init() < 0 || frame_fill_init(module) < 0;
    for (size_t i = 0; !failed && i < Py_ARRAY_LENGTH(methods); i++) failed = PyModule_AddFunctions(module, methods[i]) < 0;
    if (failed) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
