/* What the files of dynamo._native share: entries, callables, regions and the thread's state. */
#ifndef FRAMEJIT_NATIVE_H
#define FRAMEJIT_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include "tensor/tensor.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

extern const EagerAPI *eager_api;

/* --- thread state ---------------------------------------------------------------------------- */
enum { MODE_OFF = 0, MODE_ON = 1, MODE_RUN_ONLY = 2 };
enum { STANCE_DEFAULT = 0, STANCE_EAGER = 1, STANCE_RUN_ONLY = 2 };

typedef struct RegionObject RegionObject;
typedef struct Pending Pending;

typedef struct {
    int mode;
    bool disabled;
    RegionObject *region;       /* strong; NULL is the default region */
    PyCodeObject *plain;        /* the next fresh frame of this code runs without a look */
    Pending *pending;           /* a re-entry waiting for its frame */
} ThreadState;

/* initial-exec: a plain offset from the thread pointer instead of a call per access. */
extern _Thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
extern int stance;

/* --- entries (entries.c) --------------------------------------------------------------------- */
typedef struct ProgramObject ProgramObject;

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
 * raised what is not an Exception. slots[n_inputs .. capacity) is scratch space. */
EntryObject *entry_table_find(EntryTable *table, PyObject **slots, int n_inputs, int capacity);
PyObject *parse_add_entry(EntryTable *table, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          int n_inputs);

/* Call a target (or what an entry holds) with slots[0..n), with the thread's mode off.
 * slots[-1] is scratch. `function` goes last if the entry asks for it. */
PyObject *target_call(PyObject *target, PyObject **slots, int n);
extern PyMethodDef entry_methods[];
PyObject *entry_call(EntryObject *entry, PyObject **slots, int n, PyObject *function);

PyObject *calling_frame(void);  /* the frame object of the Python frame that called, if there is one; borrowed (resume.c) */
void tidy_error(void);      /* the error that is set leaves generated code: its traceback is put right */

/* Whether the thread runs under a trace or profile function, or inside a tracing callback. */
static inline bool thread_is_traced(PyThreadState *ts)
{
    return ts->c_tracefunc || ts->c_profilefunc || ts->tracing;
}

/* --- tails (tail.c) -------------------------------------------------------------------------- */
extern PyTypeObject TailType;
extern PyMethodDef tail_methods[];
PyObject *tail_drive(PyObject *result);     /* steals a result; while it is a Tail, runs it */
/* What a miss callback returned: an Entry, a target, or None (*run_original is set).
 * Steals `outcome`. */
PyObject *outcome_call(PyObject *outcome, PyObject **slots, int n, PyObject *function, bool *run_original);

/* --- slots of one call ----------------------------------------------------------------------- */
#define INLINE_SLOTS 64
typedef struct {
    PyObject **slots;           /* slots[-1] exists */
    int capacity;
    PyObject *inline_slots[INLINE_SLOTS + 1];
} SlotBuffer;

static inline int slot_buffer_init(SlotBuffer *b, Py_ssize_t n)
{
    if (likely(n <= INLINE_SLOTS - 16)) {
        b->slots = b->inline_slots + 1;
        b->capacity = INLINE_SLOTS;
        return 0;
    }
    PyObject **heap = PyMem_New(PyObject *, n + 17);
    if (!heap) {
        PyErr_NoMemory();
        return -1;
    }
    b->slots = heap + 1;
    b->capacity = (int)n + 16;
    return 0;
}
static inline void slot_buffer_free(SlotBuffer *b)
{
    if (unlikely(b->slots != b->inline_slots + 1)) PyMem_Free(b->slots - 1);
}
PyObject *slots_tuple(PyObject **slots, int n);

/* --- binder (binder.c) ----------------------------------------------------------------------- */
/* How a code object's arguments lie in slots. */
typedef struct {
    PyCodeObject *code;         /* borrowed: the owner holds the function */
    int n_positional, n_positional_only, n_keyword_only, n_slots;
    bool varargs, varkeywords, simple;
} Signature;

typedef struct {                /* what binding made and the slots borrow from */
    PyObject *rest, *keywords, *defaults, *kwdefaults;
} BoundExtras;

static inline int code_argument_slots(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}
void signature_of(Signature *signature, PyCodeObject *code);
/* 1: bound; 0: the arguments do not fit (no error set); -1: error. Fill `slots` with borrowed references,
 * which `extras` keeps alive along with the caller's arguments. */
int bind_arguments(const Signature *signature, PyFunctionObject *fn, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames, PyObject **slots, BoundExtras *extras);
void bound_extras_free(BoundExtras *extras);

/* --- callables (callable.c) ------------------------------------------------------------------ */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    EntryTable table;
    PyObject *miss, *fallback, *key;
    uint64_t hits, misses;
} DispatcherObject;
extern PyTypeObject CompiledFunctionType, DispatcherType;

/* --- regions (region.c) ---------------------------------------------------------------------- */
extern PyTypeObject RegionType;
RegionObject *region_new(void);
PyObject *region_miss(RegionObject *region);                              /* borrowed, or NULL */
/* The dispatcher for a code: borrowed, or NULL; *skipped says that it has a skip mark instead. */
DispatcherObject *region_find(RegionObject *region, PyCodeObject *code, bool *skipped);
DispatcherObject *dispatcher_new(PyObject *miss, PyObject *fallback, PyObject *key);

/* --- hook (hook.c) --------------------------------------------------------------------------- */
typedef struct {
    int mode;
    RegionObject *region;
} SavedRegion;

extern RegionObject *default_region;
void hook_acquire(void);                    /* install the hook if nobody had */
void hook_release(void);
void region_enter(SavedRegion *saved, RegionObject *region, int mode);
void region_leave(SavedRegion *saved);
/* Call fn with its own frame plain and its callees looked at in `region` (NULL: hook untouched). */
PyObject *call_original(RegionObject *region, PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames);
extern PyMethodDef hook_methods[], resume_methods[], iterator_methods[];
int hook_init(PyObject *module);
int resume_init(PyObject *module);
int guards_init(PyObject *module);

/* --- per-code state (hook.c) ----------------------------------------------------------------- */
typedef struct {
    bool skip;
    uint8_t *resume_points;     /* one byte per code unit: may a re-entry start here */
    int n_units;
} CodeState;
CodeState *code_state(PyCodeObject *code, bool create);   /* NULL with an error only if create */

/* --- re-entry (resume.c) --------------------------------------------------------------------- */
extern PyObject *null_sentinel;
struct Pending {
    PyObject *function;
    PyCodeObject *code;
    PyObject *locals, *stack, *exc, *shown;
    int unit;
};
#endif
