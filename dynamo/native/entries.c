/* Entries: a guard program and the target it admits; and the ordered table of them that compiled
 * functions, dispatchers and hooked frames share. */
#include "entries.h"

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", "pass_function", NULL};
    PyObject *program, *target;
    int pass_function = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$p:Entry", names, &program, &target, &pass_function))
        return NULL;
    if (program != Py_None && !Py_IS_TYPE(program, &ProgramType))
        return PyErr_Format(PyExc_TypeError, "Entry: program is a %s; expected a GuardProgram or None",
                            Py_TYPE(program)->tp_name);
    if (target != Py_None && !PyCallable_Check(target))
        return PyErr_Format(PyExc_TypeError, "Entry: target is a %s; expected a callable or None",
                            Py_TYPE(target)->tp_name);
    EntryObject *self = (EntryObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->program = program == Py_None ? NULL : (ProgramObject *)Py_NewRef(program);
    self->target = target == Py_None ? NULL : Py_NewRef(target);
    self->pass_function = pass_function;
    return (PyObject *)self;
}

static int entry_traverse(EntryObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->program);
    Py_VISIT(self->target);
    return 0;
}

static int entry_gc_clear(EntryObject *self)
{
    /* target stays callable-or-NULL; an entry cleared by the collector is unreachable. */
    Py_CLEAR(self->target);
    Py_CLEAR(self->program);
    return 0;
}

static void entry_dealloc(EntryObject *self)
{
    PyObject_GC_UnTrack(self);
    entry_gc_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *entry_program(EntryObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->program ? (PyObject *)self->program : Py_None);
}
static PyObject *entry_target(EntryObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self->target ? self->target : Py_None);
}
static PyObject *entry_pass_function(EntryObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->pass_function);
}
static PyObject *entry_hits(EntryObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->hits);
}

static PyGetSetDef entry_getset[] = {
    {"program", (getter)entry_program, NULL, NULL, NULL},
    {"target", (getter)entry_target, NULL, NULL, NULL},
    {"pass_function", (getter)entry_pass_function, NULL, NULL, NULL},
    {"hits", (getter)entry_hits, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject EntryType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamo._native.Entry",
    .tp_basicsize = sizeof(EntryObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Entry(program, target, *, pass_function=False): guards and the target they admit.",
    .tp_new = entry_new,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_gc_clear,
    .tp_free = PyObject_GC_Del,
    .tp_getset = entry_getset,
};

/* --- the table ------------------------------------------------------------------------------- */
static int table_reserve(EntryTable *table, Py_ssize_t count)
{
    if (count <= table->capacity) return 0;
    Py_ssize_t capacity = table->capacity ? 2 * table->capacity : 4;
    EntryObject **items = PyMem_Resize(table->items, EntryObject *, capacity);
    if (!items) {
        PyErr_NoMemory();
        return -1;
    }
    table->items = items;
    table->capacity = capacity;
    return 0;
}

/* New reference; the table holds its own. n_inputs < 0: any number of program slots. */
EntryObject *entry_table_add(EntryTable *table, PyObject *program, PyObject *target, bool pass_function,
                             int n_inputs)
{
    if (n_inputs >= 0 && Py_IS_TYPE(program, &ProgramType) && ((ProgramObject *)program)->n_inputs != n_inputs) {
        PyErr_Format(PyExc_ValueError,
                     "add_entry: the program has n_slots=%d; this function has %d argument slots and the "
                     "function slot: n_slots must be %d",
                     ((ProgramObject *)program)->n_inputs, n_inputs - 1, n_inputs);
        return NULL;
    }
    PyObject *args = PyTuple_Pack(2, program, target);
    PyObject *entry = args ? entry_new(&EntryType, args, NULL) : NULL;
    Py_XDECREF(args);
    if (!entry) return NULL;
    ((EntryObject *)entry)->pass_function = pass_function;
    if (table_reserve(table, table->count + 1) < 0) {
        Py_DECREF(entry);
        return NULL;
    }
    memmove(table->items + 1, table->items, (size_t)table->count * sizeof(EntryObject *));
    table->items[0] = (EntryObject *)Py_NewRef(entry);
    table->count++;
    table->version++;
    return (EntryObject *)entry;
}

PyObject *parse_add_entry(EntryTable *table, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          int n_inputs)
{
    bool pass_function = false;
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "add_entry: %zd positional arguments; expected program and target", nargs);
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "pass_function") != 0)
            return PyErr_Format(PyExc_TypeError, "add_entry: unexpected keyword %R; expected pass_function", name);
        int truth = PyObject_IsTrue(args[nargs + i]);
        if (truth < 0) return NULL;
        pass_function = truth;
    }
    return (PyObject *)entry_table_add(table, args[0], args[1], pass_function, n_inputs);
}

PyObject *entry_table_list(EntryTable *table)
{
    PyObject *list = PyList_New(table->count);
    for (Py_ssize_t i = 0; list && i < table->count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)table->items[i]));
    return list;
}

int entry_table_remove(EntryTable *table, PyObject *entry)
{
    for (Py_ssize_t i = 0; i < table->count; i++) {
        if ((PyObject *)table->items[i] != entry) continue;
        memmove(table->items + i, table->items + i + 1, (size_t)(table->count - i - 1) * sizeof(EntryObject *));
        table->count--;
        table->version++;
        Py_DECREF(entry);
        return 1;
    }
    return 0;
}

void entry_table_clear(EntryTable *table)
{
    EntryObject **items = table->items;
    Py_ssize_t count = table->count;
    table->items = NULL;
    table->count = table->capacity = 0;
    table->version++;
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(items[i]);
    PyMem_Free(items);
}

int entry_table_traverse(EntryTable *table, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < table->count; i++) Py_VISIT(table->items[i]);
    return 0;
}

static inline int entry_admits(EntryObject *entry, PyObject **slots, int n_inputs, int capacity)
{
    ProgramObject *program = entry->program;
    if (!program) return 1;
    if (unlikely(program->n_inputs != n_inputs)) return 0;
    return program_run(program, slots, capacity);
}

static void move_to_front(EntryTable *table, Py_ssize_t i)
{
    EntryObject *entry = table->items[i];
    memmove(table->items + 1, table->items, (size_t)i * sizeof(EntryObject *));
    table->items[0] = entry;
}

EntryObject *entry_table_find(EntryTable *table, PyObject **slots, int n_inputs, int capacity)
{
    uint64_t version = table->version;
    int restarts = 0;
    for (Py_ssize_t i = 0; i < table->count; i++) {
        EntryObject *entry = (EntryObject *)Py_NewRef((PyObject *)table->items[i]);
        int admitted = entry_admits(entry, slots, n_inputs, capacity);
        if (likely(admitted == 1)) {
            entry->hits++;
            if (unlikely(i) && table->version == version && table->items[i] == entry) move_to_front(table, i);
            return entry;
        }
        Py_DECREF(entry);
        if (unlikely(admitted < 0)) return NULL;
        if (unlikely(table->version != version) && restarts++ < 8) {
            /* A check ran Python code that changed the list: a skipped entry may have moved, so the search
             * restarts. If the list changes all the time, the search reports a miss, which costs time and no result. */
            version = table->version;
            i = -1;
        }
    }
    return NULL;
}

/* --- calls ----------------------------------------------------------------------------------- */
PyObject *target_call(PyObject *target, PyObject **slots, int n)
{
    ThreadState *t = &thread_state;
    size_t nargsf = (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET;
    int mode = t->mode;
    t->mode = MODE_OFF;
    PyObject *result = PyObject_Vectorcall(target, slots, nargsf, NULL);
    if (unlikely(!result)) tidy_error();
    t->mode = mode;
    return result;
}

PyObject *entry_call(EntryObject *entry, PyObject **slots, int n, PyObject *function)
{
    if (likely(!entry->pass_function || !function)) return target_call(entry->target, slots, n);
    /* The function slot lies right after the arguments, and holds the function. */
    slots[n] = function;
    return target_call(entry->target, slots, n + 1);
}

PyObject *outcome_call(PyObject *outcome, PyObject **slots, int n, PyObject *function, bool *run_original)
{
    PyObject *result = NULL;
    *run_original = false;
    if (outcome == Py_None) {
        *run_original = true;
    } else if (Py_IS_TYPE(outcome, &EntryType)) {
        EntryObject *entry = (EntryObject *)outcome;
        if (!entry->target) *run_original = true;
        else result = entry_call(entry, slots, n, function);
    } else if (PyCallable_Check(outcome)) {
        result = target_call(outcome, slots, n);
    } else {
        PyErr_Format(PyExc_TypeError, "miss returned a %s; expected a callable, an Entry or None",
                     Py_TYPE(outcome)->tp_name);
    }
    Py_DECREF(outcome);
    return result;
}

PyObject *miss_call(PyObject *miss, PyObject *owner, PyObject **slots, int n)
{
    PyObject *tuple = slots_tuple(slots, n);
    if (!tuple) return NULL;
    PyObject *args[3] = {NULL, owner, tuple};
    PyObject *callback = Py_NewRef(miss);
    PyObject *outcome = target_call(callback, args + 1, 2);
    Py_DECREF(callback);
    Py_DECREF(tuple);
    return outcome;
}

int require_callable(PyObject *value, const char *who, const char *what, bool none)
{
    if (PyCallable_Check(value) || (none && value == Py_None)) return 0;
    PyErr_Format(PyExc_TypeError, "%s: %s is a %s; expected a callable%s", who, what, Py_TYPE(value)->tp_name,
                 none ? " or None" : "");
    return -1;
}
