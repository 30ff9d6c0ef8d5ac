/* Entries: a guard program with the target that it admits, and the ordered table of entries. */
#ifndef FRAMEJIT_ENTRIES_H
#define FRAMEJIT_ENTRIES_H

#include "guards.h"

typedef struct {
    PyObject_HEAD
    ProgramObject *program;     /* NULL: always admitted */
    PyObject *target;           /* NULL: run the original or the fallback */
    bool pass_function;
    uint64_t hits;
} EntryObject;

typedef struct {
    EntryObject **items;        /* most recently hit first */
    Py_ssize_t count, capacity;
    uint64_t version;           /* of the list; a check may run Python code that changes it */
} EntryTable;

extern PyTypeObject EntryType;

EntryObject *entry_table_add(EntryTable *table, PyObject *program, PyObject *target, bool pass_function,
                             int n_inputs);
PyObject *entry_table_list(EntryTable *table);
int entry_table_remove(EntryTable *table, PyObject *entry);
void entry_table_clear(EntryTable *table);
int entry_table_traverse(EntryTable *table, visitproc visit, void *arg);
/* The first entry whose guards hold (new reference), or NULL; NULL with an error set if a guard
 * raised an error that is not an Exception. slots[n_inputs .. capacity) is scratch space. */
EntryObject *entry_table_find(EntryTable *table, PyObject **slots, int n_inputs, int capacity);
PyObject *parse_add_entry(EntryTable *table, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          int n_inputs);

/* Call a target (or what an entry holds) with slots[0..n), with the thread's mode off.
 * slots[-1] is scratch. `function` goes last if the entry requires it. */
PyObject *target_call(PyObject *target, PyObject **slots, int n);
PyObject *entry_call(EntryObject *entry, PyObject **slots, int n, PyObject *function);

/* Run the result of a miss callback: an Entry, a target, or None (*run_original is set). Steals `outcome`. */
PyObject *outcome_call(PyObject *outcome, PyObject **slots, int n, PyObject *function, bool *run_original);
/* miss(owner, slots) with the thread's mode off. */
PyObject *miss_call(PyObject *miss, PyObject *owner, PyObject **slots, int n);
/* TypeError unless `value` is callable, or None where that is allowed. */
int require_callable(PyObject *value, const char *who, const char *what, bool none);

/* The methods of a type whose objects have an EntryTable `table`; add_entry is the type's own. */
#define DEFINE_TABLE_METHODS(Object)                                                                           \
    static PyObject *table_entries(PyObject *self, PyObject *unused)                                           \
    {                                                                                                          \
        (void)unused;                                                                                          \
        return entry_table_list(&((Object *)self)->table);                                                     \
    }                                                                                                          \
    static PyObject *table_remove_entry(PyObject *self, PyObject *entry)                                       \
    {                                                                                                          \
        return PyBool_FromLong(entry_table_remove(&((Object *)self)->table, entry));                           \
    }                                                                                                          \
    static PyObject *table_clear_entries(PyObject *self, PyObject *unused)                                     \
    {                                                                                                          \
        (void)unused;                                                                                          \
        entry_table_clear(&((Object *)self)->table);                                                           \
        Py_RETURN_NONE;                                                                                        \
    }
#define TABLE_METHODS(add_entry)                                                                               \
    {"add_entry", (PyCFunction)(void (*)(void))(add_entry), METH_FASTCALL | METH_KEYWORDS,                     \
     "add_entry(program, target, *, pass_function=False) -> Entry, in front."},                                \
    {"entries", table_entries, METH_NOARGS, "Entries in the order they are tried."},                           \
    {"remove_entry", table_remove_entry, METH_O, "Whether the entry was there."},                              \
    {"clear_entries", table_clear_entries, METH_NOARGS, "Drop all entries."}
#endif
