/* Checks of a call's arguments before it runs.
 *
 * The rules are in Python: a verifier, which raises TypeError for a wrong argument. For most calls the result depends only on the
 * classes of the arguments, so a check remembers the classes that passed and skips the verifier for them. The class of a list or
 * tuple is the common class of its elements. */
#define PY_SSIZE_T_CLEAN
#include "calls/calls.h"
#include <string.h>

enum { MOST_ARGUMENTS = 14, MOST_CALLS = 12 };

/* One argument: its class; the class of a list's elements (odd); or 0 if the elements have several classes. */
typedef uintptr_t Kind;

typedef struct {
    int positional, count;
    Kind kinds[MOST_ARGUMENTS];
    PyObject *names[MOST_ARGUMENTS]; /* names of the arguments passed by keyword */
} Call;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *verifier;
    int count, next;
    Call *calls;
} ArgumentCheck;

static Kind kind_of(PyObject *value)
{
    const bool list = PyList_Check(value);
    if (!list && !PyTuple_Check(value)) return (Kind)Py_TYPE(value);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    PyObject *const *items = PySequence_Fast_ITEMS(value);
    if (!count) return (Kind)Py_TYPE(value) | 2;
    PyTypeObject *type = Py_TYPE(items[0]);
    if (PyType_FastSubclass(type, Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS)) return 0;
    for (Py_ssize_t i = 1; i < count; i++)
        if (Py_TYPE(items[i]) != type) return 0;
    return (Kind)type | 1;
}

static PyObject *class_of(Kind kind) { return (PyObject *)(kind & ~(Kind)3); }

/* Fills `call`. False if it has too many arguments, or an argument that its class does not describe. */
static bool describe(Call *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwargs)
{
    const Py_ssize_t total = nargs + (kwargs ? PyDict_GET_SIZE(kwargs) : 0);
    if (total > MOST_ARGUMENTS) return false;
    call->positional = (int)nargs;
    call->count = (int)total;
    for (Py_ssize_t i = 0; i < nargs; i++)
        if (!(call->kinds[i] = kind_of(args[i]))) return false;
    if (total > nargs) {
        Py_ssize_t position = 0, i = nargs;
        PyObject *name, *value;
        while (PyDict_Next(kwargs, &position, &name, &value)) {
            if (!(call->kinds[i] = kind_of(value))) return false;
            call->names[i++] = name;
        }
    }
    return true;
}

static bool is_known(const ArgumentCheck *self, const Call *call)
{
    for (int i = 0; i < self->count; i++) {
        const Call *known = &self->calls[i];
        if (known->count == call->count && known->positional == call->positional &&
            !memcmp(known->kinds, call->kinds, sizeof(Kind) * call->count) &&
            !memcmp(known->names + call->positional, call->names + call->positional,
                    sizeof(PyObject *) * (call->count - call->positional)))
            return true;
    }
    return false;
}

static void forget(Call *call)
{
    for (int i = 0; i < call->count; i++) {
        Py_DECREF(class_of(call->kinds[i]));
        if (i >= call->positional) Py_DECREF(call->names[i]);
    }
}

static int remember(ArgumentCheck *self, const Call *call)
{
    if (self->count == self->next && self->count < MOST_CALLS) {
        Call *calls = PyMem_Realloc(self->calls, sizeof(Call) * (self->count + 1));
        if (!calls) return -1;
        self->calls = calls;
        self->count++;
    } else {
        self->next %= MOST_CALLS;
        forget(&self->calls[self->next]);
    }
    self->calls[self->next++] = *call;
    for (int i = 0; i < call->count; i++) {
        Py_INCREF(class_of(call->kinds[i]));
        if (i >= call->positional) Py_INCREF(call->names[i]);
    }
    return 0;
}

/* check(args, kwargs=None): None if the call may run, or other arguments to call with */
static PyObject *check_call(PyObject *callable, PyObject *const *given, size_t nargsf, PyObject *Py_UNUSED(kwnames))
{
    ArgumentCheck *self = (ArgumentCheck *)callable;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (count < 1 || count > 2 || !PyTuple_Check(given[0]) || (count == 2 && given[1] != Py_None && !PyDict_Check(given[1])))
        return PyErr_Format(PyExc_TypeError, "an argument check takes a tuple of arguments and a dict");
    PyObject *kwargs = count == 2 && given[1] != Py_None ? given[1] : NULL;
    Call call;
    const bool described = describe(&call, &PyTuple_GET_ITEM(given[0], 0), PyTuple_GET_SIZE(given[0]), kwargs);
    if (described && is_known(self, &call)) Py_RETURN_NONE;
    PyObject *const args[2] = {given[0], kwargs ? kwargs : Py_None};
    PyObject *answer = PyObject_Vectorcall(self->verifier, args, 2, NULL);
    if (!answer || (answer != Py_True && answer != Py_False)) return answer;
    const int failed = described && answer == Py_True ? remember(self, &call) : 0;
    Py_DECREF(answer);
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *check_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *verifier;
    if (!PyArg_ParseTuple(args, "O", &verifier)) return NULL;
    ArgumentCheck *self = (ArgumentCheck *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = check_call;
    self->verifier = Py_NewRef(verifier);
    return (PyObject *)self;
}

static int check_traverse(ArgumentCheck *self, visitproc visit, void *arg)
{
    Py_VISIT(self->verifier);
    for (int i = 0; i < self->count; i++)
        for (int k = 0; k < self->calls[i].count; k++) Py_VISIT(class_of(self->calls[i].kinds[k]));
    return 0;
}

static int check_clear(ArgumentCheck *self)
{
    const int count = self->count;
    self->count = self->next = 0;
    for (int i = 0; i < count; i++) forget(&self->calls[i]);
    PyMem_Free(self->calls);
    self->calls = NULL;
    Py_CLEAR(self->verifier);
    return 0;
}

static void check_dealloc(ArgumentCheck *self)
{
    PyObject_GC_UnTrack(self);
    check_clear(self);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ArgumentCheck_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.ArgumentCheck",
    .tp_doc = "ArgumentCheck(verifier): calls the verifier for (args, kwargs) of classes that it has not passed before.\n\n"
              "The verifier returns True where the classes decide, False where a value does, or other arguments, or raises.",
    .tp_basicsize = sizeof(ArgumentCheck),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(ArgumentCheck, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = check_new,
    .tp_traverse = (traverseproc)check_traverse,
    .tp_clear = (inquiry)check_clear,
    .tp_dealloc = (destructor)check_dealloc,
};
