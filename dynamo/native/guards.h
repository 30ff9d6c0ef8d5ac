/* The guard program: a flat array of instructions over slots. guard_build.c makes it, guards.c runs it, guard_program.c is its
 * Python type. */
#ifndef FRAMEJIT_GUARDS_H
#define FRAMEJIT_GUARDS_H

#include "guard_kinds.h"
#include "state.h"

#define DIM_ANY INT64_MIN
#define DIM_AT_LEAST_2 (INT64_MIN + 1)

typedef struct {
    PyTypeObject *type;         /* borrowed from the instruction's tuple, as everything here */
    uint64_t meta, mask;
    int ndim;
    bool exact;                 /* dims can be compared as memory */
    bool contiguous;            /* strides follow from the actual sizes */
    int64_t dims[];             /* sizes, then strides, as in TensorObject */
} TensorSpec;

/* State of a watch or epoch block. The instructions of the block follow it in the program. A run that enters the
 * block takes a sample and a ticket. Only the latest ticket may commit its sample: another thread may have run
 * meanwhile, because a check may run Python code. */
typedef struct Block {
    bool uses_epoch, seen;
    int n_dicts, n_types, n_owners;
    PyObject **dicts;           /* strong; the first n_owners belong to the owners */
    PyObject **owners;          /* borrowed from the tuple of items: objects, whose __dict__ may be replaced */
    PyTypeObject **types;       /* borrowed from the tuple of items */
    PyObject *counter;          /* borrowed likewise, or NULL: a C function that returns an int, a different one after each change */
    uint64_t changes;           /* bumped by the dict watcher (3.12+) */
    uint64_t seen_changes, seen_epoch, sample_changes, sample_epoch, ticket;
    unsigned int *seen_tags, *sample_tags;      /* by type */
    uint64_t seen_count, sample_count;          /* of the counter */
} Block;

typedef struct ShapeProgram ShapeProgram;

typedef struct {
    uint8_t op;
    int32_t src, src2, dst;
    int32_t length;             /* of a block: instructions to skip; of a list of slots: their number */
    int64_t a, b, c;
    PyObject *obj, *base;       /* borrowed from the program's `source` or `kept` */
    Py_hash_t hash;
    union {
        TensorSpec *tensor;
        Block *block;
        int32_t *slots;
        ShapeProgram *shape;
        double number;
    };
} Guard;

typedef struct ProgramObject {
    PyObject_HEAD
    int n_inputs, n_outer, n_slots, count;   /* slots: inputs, temporaries, temporaries of blocks */
    Guard *code;
    PyObject *source;           /* tuple: for each flat instruction its tuple; None for the end of a block */
    PyObject *kept;             /* list: interned names */
} ProgramObject;

extern PyTypeObject ProgramType;

int guards_init(PyObject *module);
/* 1: the guards hold; 0: they do not; -1: an error that is not an Exception is set.
 * slots: n_inputs values; the rest up to `capacity` is scratch. */
int program_run(ProgramObject *program, PyObject **slots, int capacity);

/* Index of the first instruction that fails, or the program's count; -1: an error that is not an Exception is set.
 * trust: blocks without a change pass. */
int program_first_failure(ProgramObject *program, PyObject **slots, bool trust);
int checks_init(void);

/* guard_build.c */
int program_build(ProgramObject *program, PyObject *instructions);
void program_free_code(ProgramObject *program);
/* Operands of the operation of that name, or -1. */
int guard_arity(PyObject *name);

/* --- shape_guard.c --------------------------------------------------------------------------- */
int shape_build(PyObject *steps, Guard *g);     /* takes over g->slots */
void shape_free(ShapeProgram *program);
bool shape_holds(const ShapeProgram *program, PyObject **slots);

/* --- iterators.c ----------------------------------------------------------------------------- */
PyObject *iterator_owner(PyObject *iterator);
PyObject *iterator_state(PyObject *iterator);
extern PyMethodDef iterator_methods[];

/* --- dictwatch.c ----------------------------------------------------------------------------- */
int dictwatch_init(void);
int block_subscribe(Block *block);          /* watch all its dicts */
void block_unsubscribe(Block *block);
/* The state of the block's dicts as one number: different after any write to any of them. */
uint64_t block_dict_state(const Block *block);
#endif
