/* The Python type of a guard program: checks from Python, reports of a failed instruction, and the list of instructions as text. */
#include "guards.h"
#include <time.h>

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *instructions;
    int n_slots;
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(PyExc_TypeError, "GuardProgram: takes no keyword arguments");
    if (!PyArg_ParseTuple(args, "Oi:GuardProgram", &instructions, &n_slots)) return NULL;
    if (n_slots < 0) return PyErr_Format(PyExc_ValueError, "GuardProgram: n_slots is %d; it must not be negative", n_slots);
    ProgramObject *self = (ProgramObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->n_inputs = self->n_outer = self->n_slots = n_slots;
    if (program_build(self, instructions) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static int program_traverse(ProgramObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->source);
    Py_VISIT(self->kept);
    for (int i = 0; i < self->count; i++)
        if (self->code[i].op == G_BLOCK && self->code[i].block)
            for (int d = 0; d < self->code[i].block->n_dicts; d++) Py_VISIT(self->code[i].block->dicts[d]);
    return 0;
}

static int program_clear(ProgramObject *self)
{
    /* A cleared program must reject every call: no call has -1 inputs. */
    self->n_inputs = self->n_outer = self->n_slots = -1;
    program_free_code(self);
    Py_CLEAR(self->source);
    Py_CLEAR(self->kept);
    return 0;
}

static void program_dealloc(ProgramObject *self)
{
    PyObject_GC_UnTrack(self);
    program_clear(self);
    Py_TYPE(self)->tp_free(self);
}

/* Index of the first failure (count: none) for a Python sequence of slots; -1 with an error set. */
static int run_sequence(ProgramObject *self, PyObject *sequence, bool trust)
{
    PyObject *fast = PySequence_Fast(sequence, "GuardProgram: slots must be a sequence");
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int failed = -1;
    if (n != self->n_inputs)
        PyErr_Format(PyExc_ValueError, "GuardProgram: %zd slots given; this program has n_slots=%d", n, self->n_inputs);
    else failed = program_first_failure(self, PySequence_Fast_ITEMS(fast), trust);
    Py_DECREF(fast);
    return failed;
}

static PyObject *program_check(ProgramObject *self, PyObject *slots)
{
    int failed = run_sequence(self, slots, true);
    return failed < 0 ? NULL : PyBool_FromLong(failed == self->count);
}

static PyObject *note_of(ProgramObject *self, int i)
{
    PyObject *instruction = PyTuple_GET_ITEM(self->source, i);
    if (instruction == Py_None) return Py_None;
    int arity = guard_arity(PyTuple_GET_ITEM(instruction, 0));
    return PyTuple_GET_SIZE(instruction) > arity + 1 ? PyTuple_GET_ITEM(instruction, arity + 1) : Py_None;
}

static PyObject *program_failed(ProgramObject *self, PyObject *slots)
{
    int failed = run_sequence(self, slots, false);
    if (failed < 0) return NULL;
    if (failed == self->count) Py_RETURN_NONE;
    return Py_BuildValue("iO", failed, note_of(self, failed));
}

static PyObject *operand_text(PyObject *operand)
{
    PyObject *text = PyType_Check(operand) ? PyUnicode_FromString(((PyTypeObject *)operand)->tp_name)
                     : PyDict_Check(operand) ? PyUnicode_FromFormat("<dict of %zd>", PyDict_GET_SIZE(operand))
                                             : PyObject_Repr(operand);
    if (!text) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        return PyUnicode_FromFormat("<%s>", Py_TYPE(operand)->tp_name);
    }
    if (PyUnicode_GET_LENGTH(text) <= 120) return text;
    PyObject *head = PyUnicode_Substring(text, 0, 117);
    Py_DECREF(text);
    PyObject *cut = head ? PyUnicode_FromFormat("%U...", head) : NULL;
    Py_XDECREF(head);
    return cut;
}

static PyObject *instruction_text(PyObject *instruction, bool inside, bool block)
{
    PyObject *name = PyTuple_GET_ITEM(instruction, 0);
    PyObject *text = PyUnicode_FromFormat(inside ? "  %U" : "%U", name);
    int arity = guard_arity(name);
    if (block) {
        Py_XDECREF(text);
        return PyUnicode_FromFormat("%U %zd items, %zd instructions", name, PyTuple_GET_SIZE(PyTuple_GET_ITEM(instruction, 1)),
                                    PyTuple_GET_SIZE(PyTuple_GET_ITEM(instruction, 2)));
    }
    for (int i = 1; text && i <= arity; i++) {
        PyObject *operand = operand_text(PyTuple_GET_ITEM(instruction, i));
        PyObject *joined = operand ? PyUnicode_FromFormat("%U %U", text, operand) : NULL;
        Py_XDECREF(operand);
        Py_SETREF(text, joined);
    }
    return text;
}

static PyObject *program_describe(ProgramObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    bool inside = false;
    for (int i = 0; list && i < self->count; i++) {
        int op = self->code[i].op;
        PyObject *text = op == G_BLOCK_END ? PyUnicode_FromString("end")
                                           : instruction_text(PyTuple_GET_ITEM(self->source, i), inside, op == G_BLOCK);
        inside = op == G_BLOCK || (inside && op != G_BLOCK_END);
        PyObject *row = text ? Py_BuildValue("iNO", i, text, note_of(self, i)) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *program_bench(ProgramObject *self, PyObject *args)
{
    PyObject *slots;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "On:bench", &slots, &n)) return NULL;
    int failed = run_sequence(self, slots, true);
    if (failed < 0) return NULL;
    if (failed < self->count || n <= 0)
        return PyErr_Format(PyExc_ValueError, "bench: the guards must hold and n be positive (n=%zd)", n);
    PyObject *fast = PySequence_Fast(slots, "slots");
    if (!fast) return NULL;
    SlotBuffer buffer;
    if (slot_buffer_init(&buffer, self->n_slots) < 0) {
        Py_DECREF(fast);
        return NULL;
    }
    if (self->n_inputs) memcpy(buffer.slots, PySequence_Fast_ITEMS(fast), (size_t)self->n_inputs * sizeof(PyObject *));
    struct timespec start, end;
    int held = 1;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (Py_ssize_t i = 0; i < n && held == 1; i++) held = program_run(self, buffer.slots, buffer.capacity);
    clock_gettime(CLOCK_MONOTONIC, &end);
    slot_buffer_free(&buffer);
    Py_DECREF(fast);
    if (held != 1) return held < 0 ? NULL : PyErr_Format(PyExc_ValueError, "bench: the guards stopped holding");
    return PyFloat_FromDouble(((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)n);
}

static Py_ssize_t program_len(ProgramObject *self) { return self->count; }
static PyObject *program_n_slots(ProgramObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(self->n_inputs);
}

static PyMethodDef program_methods[] = {
    {"check", (PyCFunction)program_check, METH_O, "Whether the guards hold for a sequence of slots."},
    {"failed", (PyCFunction)program_failed, METH_O, "First failing instruction as (index, note), or None."},
    {"describe", (PyCFunction)program_describe, METH_NOARGS, "(index, text, note) of each instruction."},
    {"bench", (PyCFunction)program_bench, METH_VARARGS, "Nanoseconds per check of slots, over n checks."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef program_getset[] = {
    {"n_slots", (getter)program_n_slots, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PySequenceMethods program_sequence = {.sq_length = (lenfunc)program_len};

/* A program without checks is true. */
static int program_truth(ProgramObject *self)
{
    (void)self;
    return 1;
}
static PyNumberMethods program_number = {.nb_bool = (inquiry)program_truth};

PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.GuardProgram",
    .tp_basicsize = sizeof(ProgramObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "GuardProgram(instructions, n_slots): a flat program of fetches and checks over slots.",
    .tp_new = program_new,
    .tp_dealloc = (destructor)program_dealloc,
    .tp_traverse = (traverseproc)program_traverse,
    .tp_clear = (inquiry)program_clear,
    .tp_free = PyObject_GC_Del,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
    .tp_as_sequence = &program_sequence,
    .tp_as_number = &program_number,
};

int guards_init(PyObject *module)
{
    if (checks_init() < 0 || dictwatch_init() < 0 || PyType_Ready(&ProgramType) < 0) return -1;
    if (PyModule_AddObjectRef(module, "GuardProgram", (PyObject *)&ProgramType) < 0) return -1;
    PyObject *any = PyLong_FromLongLong(DIM_ANY), *two = PyLong_FromLongLong(DIM_AT_LEAST_2);
    PyObject *all = PyLong_FromUnsignedLongLong(UINT64_MAX);
    int failed = !any || !two || !all || PyModule_AddObjectRef(module, "ANY", any) < 0 ||
                 PyModule_AddObjectRef(module, "AT_LEAST_2", two) < 0 || PyModule_AddObjectRef(module, "META_ALL", all) < 0;
    Py_XDECREF(any);
    Py_XDECREF(two);
    Py_XDECREF(all);
    return failed ? -1 : 0;
}
