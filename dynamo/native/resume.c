/* Re-entry: run a function's own code from any instruction, in a fresh frame with given locals and value stack.
 * CPython makes the frame in a call with placeholder arguments; the hook fills the frame before it starts. */
#include "resume.h"
#include "code_state.h"
#include "frame_compat.h"
#include "frame_fill.h"
#include "hook.h"

/* --- where a re-entry may start -------------------------------------------------------------- */
static int compute_points(CodeState *state, PyCodeObject *code)
{
    PyObject *bytes = PyCode_GetCode(code);     /* unspecialised; caches are units of opcode 0 */
    if (!bytes) return -1;
    const unsigned char *units = (const unsigned char *)PyBytes_AS_STRING(bytes);
    int n = (int)(PyBytes_GET_SIZE(bytes) / 2);
    uint8_t *points = PyMem_Calloc((size_t)n + 1, 1);
    if (!points) {
        Py_DECREF(bytes);
        PyErr_NoMemory();
        return -1;
    }
    bool bound = false;
    for (int i = 0; i < n; i++) {
        int opcode = units[2 * i];
        if (opcode == CACHE) continue;
        points[i] = !bound;
        bound = opcode_binds_next(opcode, bound);
    }
    Py_DECREF(bytes);
    state->resume_points = points;
    state->n_units = n;
    return 0;
}

static CodeState *points_of(PyCodeObject *code)
{
    CodeState *state = code_state(code, true);
    if (!state || (!state->resume_points && compute_points(state, code) < 0)) return NULL;
    return state;
}

/* --- checks ---------------------------------------------------------------------------------- */
static int check_tuple(PyObject *value, const char *what, Py_ssize_t low, Py_ssize_t high, PyCodeObject *code)
{
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "resume: %s is a %s; expected a tuple or a list", what, Py_TYPE(value)->tp_name);
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(value);
    if (n >= low && n <= high) return 0;
    PyErr_Format(PyExc_ValueError, "resume: %s has %zd values; %U takes %zd to %zd", what, n, code->co_qualname, low, high);
    return -1;
}

/* A cell slot that is a local too may hold a plain value: before its MAKE_CELL, or (3.12+) outside the
 * inlined comprehension whose cell it is. */
static int check_cells(PyObject *locals, PyCodeObject *code)
{
    const char *kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *value = PyTuple_GET_ITEM(locals, i);
        bool needs_cell = (kinds[i] & CO_FAST_FREE) || ((kinds[i] & CO_FAST_CELL) && !(kinds[i] & CO_FAST_LOCAL));
        if (!needs_cell || value == null_sentinel || PyCell_Check(value)) continue;
        PyErr_Format(PyExc_TypeError, "resume: slot %d (%U) of %U is a %s; a cell or free variable takes a cell", i,
                     PyTuple_GET_ITEM(code->co_localsplusnames, i), code->co_qualname, Py_TYPE(value)->tp_name);
        return -1;
    }
    return 0;
}

static int check_resume(const Pending *p, long offset, PyObject *handled)
{
    PyObject *function = p->function;
    if (!PyFunction_Check(function)) {
        PyErr_Format(PyExc_TypeError, "resume: func is a %s; expected a Python function", Py_TYPE(function)->tp_name);
        return -1;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
        PyErr_Format(PyExc_NotImplementedError, "resume: %U is a generator or coroutine; their frames cannot be re-entered",
                     code->co_qualname);
        return -1;
    }
    if (check_tuple(p->locals, "locals", code->co_nlocalsplus, code->co_nlocalsplus, code) < 0 ||
        check_tuple(p->stack, "stack", 0, code->co_stacksize, code) < 0 || check_cells(p->locals, code) < 0)
        return -1;
    if ((p->exc && !PyExceptionInstance_Check(p->exc)) ||
        (handled && handled != Py_None && handled != null_sentinel && !PyExceptionInstance_Check(handled))) {
        PyErr_SetString(PyExc_TypeError, "resume: exc must be an exception or None, handled an exception, None or NULL");
        return -1;
    }
    CodeState *state = points_of(code);
    if (!state) return -1;
    if (offset < 0 || offset % 2 || offset / 2 >= state->n_units || !state->resume_points[offset / 2]) {
        PyErr_Format(PyExc_ValueError,
                     "resume: offset %ld of %U is not where an instruction (with its prefixes) starts; see resume_points()",
                     offset, code->co_qualname);
        return -1;
    }
    return 0;
}

/* --- resume ---------------------------------------------------------------------------------- */
/* A call that binds for every signature: each named parameter gets the sentinel. */
static PyObject *call_with_placeholders(PyObject *function, PyCodeObject *code)
{
    int n_positional = code->co_argcount, n_keyword = code->co_kwonlyargcount, n = n_positional + n_keyword;
    PyObject *small[32], **args = small, *kwnames = NULL, *result = NULL;
    if (n > 32) {
        args = PyMem_New(PyObject *, (size_t)n);
        if (!args) return PyErr_NoMemory();
    }
    for (int i = 0; i < n; i++) args[i] = null_sentinel;
    if (n_keyword) kwnames = PyTuple_GetSlice(code->co_localsplusnames, n_positional, n);
    if (!n_keyword || kwnames) result = PyObject_Vectorcall(function, args, (size_t)n_positional, kwnames);
    Py_XDECREF(kwnames);
    if (args != small) PyMem_Free(args);
    return result;
}

/* A new reference to the values as a tuple. A list is emptied, so that an object dies when the new frame drops it. */
static PyObject *take_values(PyObject *values)
{
    if (!PyList_Check(values)) return Py_NewRef(values);
    PyObject *tuple = PyList_AsTuple(values);
    if (tuple && PyList_SetSlice(values, 0, PyList_GET_SIZE(values), NULL) < 0) Py_CLEAR(tuple);
    return tuple;
}

/* A new reference to a value, which may come in a list of one item; the list is emptied. */
static PyObject *take_value(PyObject *value)
{
    if (!PyList_Check(value) || PyList_GET_SIZE(value) != 1) return Py_NewRef(value);
    PyObject *item = Py_NewRef(PyList_GET_ITEM(value, 0));
    if (PyList_SetSlice(value, 0, 1, NULL) < 0) Py_CLEAR(item);
    return item;
}

/* The owner of `p` releases its references. */
static int pending_take(Pending *p, PyObject **handled, PyObject *const *args, Py_ssize_t nargs)
{
    if (!(p->locals = take_values(args[2])) || !(p->stack = take_values(args[3]))) return -1;
    if (nargs > 4 && !(p->exc = take_value(args[4]))) return -1;
    if (nargs > 5 && !(*handled = take_value(args[5]))) return -1;
    if (nargs > 6 && !(p->shown = take_values(args[6]))) return -1;
    if (p->exc == Py_None) Py_CLEAR(p->exc);
    return 0;
}

static void pending_release(Pending *p)
{
    Py_CLEAR(p->locals);
    Py_CLEAR(p->stack);
    Py_CLEAR(p->exc);
    Py_CLEAR(p->shown);
}

static PyObject *py_resume(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs < 4 || nargs > 7)
        return PyErr_Format(PyExc_TypeError,
                            "resume: %zd arguments; expected func, offset, locals, stack[, exc[, handled[, shown]]]", nargs);
    long offset = PyLong_Check(args[1]) ? PyLong_AsLong(args[1]) : -1;
    if (PyErr_Occurred()) PyErr_Clear();    /* beyond a long: refused below, as any offset outside the code */
    Pending pending = {.function = args[0], .unit = (int)(offset / 2)};
    PyObject *handled = NULL;
    if (pending_take(&pending, &handled, args, nargs) < 0 || check_resume(&pending, offset, handled) < 0) {
        pending_release(&pending);
        Py_XDECREF(handled);
        return NULL;
    }
    PyCodeObject *code = pending.code = (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(args[0]));
    PyObject *handled_before = NULL;
    bool handles = handled && handled != null_sentinel;
    if (handles) {
        handled_before = PyErr_GetHandledException();
        PyErr_SetHandledException(handled == Py_None ? NULL : handled);
    }
    Py_CLEAR(handled);
    Pending *outer = thread_state.pending;
    hook_acquire();
    thread_state.pending = &pending;
    PyObject *result = call_with_placeholders(args[0], code);
    bool taken = thread_state.pending != &pending;
    thread_state.pending = outer;
    hook_release();
    if (handles) {
        PyErr_SetHandledException(handled_before);
        Py_XDECREF(handled_before);
    }
    pending_release(&pending);
    if (!taken && result) {
        Py_CLEAR(result);
        PyErr_Format(PyExc_RuntimeError, "resume: another frame evaluation hook ran %U instead", code->co_qualname);
    }
    Py_DECREF(code);
    return result;
}

/* --- reading frames and code -------------------------------------------------------------- */
static PyObject *slots_of_frame(Frame *frame, int from, int to)
{
    PyObject *tuple = PyTuple_New(to - from);
    for (int i = from; tuple && i < to; i++) {
        PyObject *value = frame_slot(frame, i);
        PyTuple_SET_ITEM(tuple, i - from, value ? value : Py_NewRef(null_sentinel));
    }
    return tuple;
}

static PyObject *py_snapshot(PyObject *module, PyObject *args)
{
    PyObject *object;
    int depth;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!i:snapshot", &PyFrame_Type, &object, &depth)) return NULL;
    Frame *frame = frame_of_object((PyFrameObject *)object);
    PyCodeObject *code = frame_code(frame);
    if (depth < 0 || depth > code->co_stacksize)
        return PyErr_Format(PyExc_ValueError, "snapshot: depth is %d; %U has a stack of 0 to %d", depth, code->co_qualname,
                            code->co_stacksize);
    int top = frame_stack_size(frame, code, depth);
    PyObject *handled = PyErr_GetHandledException();
    PyObject *locals = slots_of_frame(frame, 0, code->co_nlocalsplus);
    PyObject *stack = slots_of_frame(frame, code->co_nlocalsplus, top);
    return Py_BuildValue("iNNN", PyFrame_GetLasti((PyFrameObject *)object), locals, stack,
                         handled ? handled : Py_NewRef(Py_None));
}

static bool require_code(PyObject *code)
{
    if (PyCode_Check(code)) return true;
    PyErr_Format(PyExc_TypeError, "expected a code object, given a %s", Py_TYPE(code)->tp_name);
    return false;
}

static PyObject *py_localsplus_names(PyObject *module, PyObject *code)
{
    (void)module;
    return require_code(code) ? Py_NewRef(((PyCodeObject *)code)->co_localsplusnames) : NULL;
}

static PyObject *py_localsplus_kinds(PyObject *module, PyObject *code)
{
    (void)module;
    return require_code(code) ? Py_NewRef(((PyCodeObject *)code)->co_localspluskinds) : NULL;
}

static PyObject *py_resume_points(PyObject *module, PyObject *code)
{
    (void)module;
    CodeState *state = require_code(code) ? points_of((PyCodeObject *)code) : NULL;
    PyObject *list = state ? PyList_New(0) : NULL;
    for (int i = 0; list && i < state->n_units; i++) {
        if (!state->resume_points[i]) continue;
        PyObject *offset = PyLong_FromLong(2 * i);
        if (!offset || PyList_Append(list, offset) < 0) Py_CLEAR(list);
        Py_XDECREF(offset);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *py_make_cell(PyObject *module, PyObject *args)
{
    PyObject *value = null_sentinel;
    (void)module;
    if (!PyArg_ParseTuple(args, "|O:make_cell", &value)) return NULL;
    return PyCell_New(value_or_null(value));
}

PyMethodDef resume_methods[] = {
    {"resume", (PyCFunction)(void (*)(void))py_resume, METH_FASTCALL,
     "resume(func, offset, locals, stack, exc=None, handled=NULL, shown=None, /): run func's code from an instruction."},
    {"snapshot", py_snapshot, METH_VARARGS, "snapshot(frame, depth) -> (offset, locals, stack, handled)"},
    {"localsplus_names", py_localsplus_names, METH_O, "Names of the slots that resume takes."},
    {"localsplus_kinds", py_localsplus_kinds, METH_O, "Kinds of the slots that resume takes."},
    {"resume_points", py_resume_points, METH_O, "The offsets that resume accepts."},
    {"make_cell", py_make_cell, METH_VARARGS, "make_cell(value) -> cell"},
    {NULL, NULL, 0, NULL},
};
