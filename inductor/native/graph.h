/* A compiled graph as C data: what graph_build.c makes from the plan and graph_call.c runs. */
#ifndef INDUCTOR_GRAPH_H
#define INDUCTOR_GRAPH_H

#define PY_SSIZE_T_CLEAN
#include "runtime.h"
#include "tensor.h"

typedef void (*SegmentFn)(char **bufs, const Runtime *rt);
typedef void (*PackFn)(const void *source, void *target);

/* graph_call.c: what checked code calls when a check of its plan fails */
void graph_fail(const Runtime *rt, int check, long value);

extern const EagerAPI *g_eager;
extern PyTypeObject CompiledGraph_Type;
extern PyTypeObject Library_Type;

typedef struct {
    PyObject_HEAD
    void *handle;
    PyObject *path;
} LibraryObject;

/* Scratch up to this size stays with its graph; larger arenas come from eager's caching allocator at
 * each call, where all graphs share them. */
enum { KEPT_ARENA_BYTES = 1 << 18 };

/* Geometry of a tensor; sizes[ndim] then strides[ndim], as in TensorObject. */
typedef struct {
    uint64_t meta; /* dtype, device and ndim; no flags */
    int ndim;
    int64_t numel;
    int64_t *dims;
} Layout;

enum output_kind { OUT_NEW = 0, OUT_INPUT, OUT_CONSTANT, OUT_VIEW_INPUT, OUT_VIEW_CONSTANT, OUT_VIEW_OUTPUT, OUT_LITERAL };

typedef struct {
    enum output_kind kind;
    int index;      /* of the allocation, input, constant or output */
    int64_t offset; /* in elements */
    int sole;       /* OUT_NEW: no other output shares its allocation */
    Layout layout;
    PyObject *literal;
} Output;

/* A tensor over part of a buffer, made for an extern call. */
typedef struct {
    int buffer;
    int64_t offset_bytes;
    Layout layout;
} BufferView;

typedef struct {
    SegmentFn segment; /* or NULL: an extern call */
    int64_t cost_ns;
    PyObject *callable;
    int nviews;
    BufferView *views;
} Step;

typedef struct {
    PackFn pack;
    int source;
    int64_t nbytes;
    /* What was packed last: the storage (weakly), its address and its write counters. */
    PyObject *storage_ref;
    char *data;
    uint64_t version, root_version, alias_writes;
    StorageObject *packed;
} Pack;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *name, *library, *artifact, *weakrefs;
    PyObject *checks; /* of (exception class, text): what rt->fail reports, by number */
    int ninputs, nallocs, nconstants, npacks, nbuffers, nsteps, noutputs, nwritten;
    Layout *inputs;
    int64_t *allocs; /* bytes */
    TensorObject **constants;
    Pack *packs;
    Step *steps;
    Output *outputs;
    int *written;
    int64_t arena_bytes;
    char single;        /* the only output is returned bare */
    char keep;          /* output tensors nobody else holds are used again (reduce-overhead) */
    char writes_inputs; /* has written inputs: read by the autograd wrapper */
    char hot;           /* long enough that pool workers should stay awake through it */
    StorageObject *arena;   /* kept between calls; taken out while a call uses it */
    TensorObject **kept;    /* by output, or NULL */
} GraphObject;

/* graph_build.c */
int layout_parse(PyObject *spec, Layout *out, const char *who);

/* graph_call.c */
PyObject *graph_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
