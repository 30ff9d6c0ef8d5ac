/* A compiled graph as C data: what graph_build.c makes from the plan and graph_call.c runs. */
#ifndef INDUCTOR_GRAPH_H
#define INDUCTOR_GRAPH_H

#define PY_SSIZE_T_CLEAN
#include "runtime/runtime.h"
#include "tensor/tensor.h"

typedef void (*SegmentFn)(char **bufs, const Runtime *rt);
/* Computes the derived sizes of a graph with symbols: sizes[nsymbols...] from sizes[0...]. */
typedef void (*DeriveFn)(int64_t *sizes);

/* graph_call.c: checked code calls it when a check of its plan fails */
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
/* From this estimated time on, the workers of the pool stay awake during a call. */
enum { HOT_NS = 20000 };

/* A number that may depend on symbols: if number >= 0, it is sizes[number] of the call. */
typedef struct {
    int64_t value;
    int number;
} Size;

/* Geometry of a tensor; sizes[ndim] then strides[ndim], as in TensorObject. numbers: of the dims that depend on symbols,
 * -1 for the others; NULL if none does. ndim is -1 for an input that is a Python int. */
typedef struct {
    uint64_t meta; /* dtype, device and ndim; no flags */
    int ndim;
    int64_t numel; /* if none depends on symbols */
    int64_t *dims;
    int *numbers;
} Layout;

/* The place of a symbol's value. */
enum symbol_kind { SYM_SIZE = 0, SYM_STRIDE, SYM_OFFSET, SYM_INT };

typedef struct {
    enum symbol_kind kind;
    int input, dim;
    int64_t low, high;
} Symbol;

enum output_kind {
    OUT_NEW = 0, OUT_INPUT, OUT_CONSTANT, OUT_VIEW_INPUT, OUT_VIEW_CONSTANT, OUT_VIEW_OUTPUT, OUT_LITERAL, OUT_INT
};

typedef struct {
    enum output_kind kind;
    int index;      /* of the allocation, input, constant or output */
    Size offset;    /* in elements; OUT_INT: the value */
    int sole;       /* OUT_NEW: no other output shares its allocation */
    Layout layout;
    PyObject *literal;
} Output;

/* A tensor over part of a buffer, made for an extern call. */
typedef struct {
    int buffer;
    Size offset_bytes;
    Layout layout;
} BufferView;

enum step_kind { STEP_SEGMENT = 0, STEP_EXTERN, STEP_LAUNCH, STEP_COPY, STEP_UPLOAD, STEP_PRODUCT };

/* An argument of a device kernel: buffer >= 0 is the address `value` bytes into that buffer. */
enum { ARGUMENT_SIZE = -1, ARGUMENT_CHECKS = -2 }; /* the number `value`; the address of the checks */

typedef struct {
    int buffer;
    Size value;
} Argument;

/* A device kernel: `grid` programs of `threads` threads. After its arguments it gets two null pointers, which Triton's code
 * reserves for memory that our kernels do not use. */
typedef struct {
    void *function;
    Size grid;
    unsigned threads, shared_bytes;
    int waits; /* its code waits for the kernel in front of it, so that it may be launched before that ends */
    int narguments;
    Argument *arguments;
} Launch;

typedef struct {
    Argument target, source;
    Size nbytes;
} Copy;

/* The 0-d inputs on the host that kernels read, each copied to a slot of UPLOAD_SLOT bytes from `target` on. It runs before a recording
 * or a replay, so that each call has its own values. */
enum { UPLOAD_SLOT = 16 };

typedef struct {
    Argument target;
    int ninputs;
    int *inputs;
} Upload;

/* A product of matrices by a library. bias: its buffer is ARGUMENT_SIZE without one. */
typedef struct {
    PyObject *product; /* a MatrixProduct */
    Argument a, b, result, bias, workspace;
    int64_t workspace_bytes;
} Product;

typedef struct {
    enum step_kind kind;
    SegmentFn segment;
    Size cost_ns;
    PyObject *callable;
    int nviews, nints;
    BufferView *views;
    int *ints; /* numbers of the sizes that the callable gets after the views */
    Launch launch;
    Copy copy;
    Upload upload;
    Product product;
} Step;

/* A CUDA graph of all steps, valid for these addresses of the buffers. executable: NULL until the addresses come a second time. */
typedef struct {
    void *executable;
    char **addresses;
    uint64_t last_use;
} Recording;

enum { MAX_RECORDINGS = 8 };

/* Whether calls are recorded: never; with copies of the inputs whose addresses change; only where all addresses come again. */
enum recording_kind { RECORD_NEVER = 0, RECORD_COPYING, RECORD_SAME };

/* The CUDA device of a graph. */
typedef struct {
    int index;
    PyObject *allocate; /* (nbytes) -> storage on the device */
    PyObject *stream;   /* () -> handle of the current stream, an int */
    PyObject *owner;    /* keeps code and checks alive; its method `keep_captured` keeps a graph as long as recorded work, or None */
    int64_t *last_sizes; /* of the last call, for the text of a check that failed in it */
    int64_t *checks;    /* two for each check, which kernels write and the host reads: not zero if it failed, and the value */
    int has_launches;
    enum recording_kind recording; /* RECORD_NEVER for steps that a CUDA graph cannot hold */
    void *last_stream;             /* of the last call; memory that is kept between calls belongs to it */
    void *capture_stream;
    int nrecordings;
    uint64_t clock;
    Recording recordings[MAX_RECORDINGS];
    char *is_copied;              /* by input: its address changes from call to call, so recordings read a copy */
    StorageObject **input_copies; /* by input, or NULL */
} Device;

/* A tensor that a pack was made from: its number, and its storage (a weak reference), address and write counters then. */
typedef struct {
    int number;
    PyObject *storage_ref;
    char *data;
    uint64_t version, root_version, alias_writes;
} PackSource;

typedef struct {
    SegmentFn pack; /* fills its own entry of bufs */
    int nsources;
    PackSource *sources;
    int64_t nbytes;
    StorageObject *packed;
} Pack;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *name, *library, *artifact, *weakrefs;
    PyObject *checks; /* of (exception class, text, size): what rt->fail reports, by number */
    int ninputs, nallocs, nconstants, npacks, nbuffers, nsteps, noutputs, nwritten, nsymbols, nsizes;
    Symbol *symbols;
    DeriveFn derive;  /* or NULL */
    int64_t *program; /* computes the derived sizes if there is no `derive`; see graph_sizes.c */
    int nprogram;
    Device *device;   /* NULL for the CPU */
    Layout *inputs;
    Size *allocs; /* bytes */
    TensorObject **constants;
    Pack *packs;
    Step *steps;
    Output *outputs;
    int *written;
    Size arena_bytes;
    char single;        /* the only output is returned bare */
    char keep;          /* unreferenced output tensors are reused (reduce-overhead) */
    char writes_inputs; /* has written inputs: read by the autograd wrapper */
    char hot;           /* long enough that pool workers should stay awake during it */
    StorageObject *arena;   /* kept between calls; NULL while a call uses it */
    TensorObject **kept;    /* by output, or NULL */
} GraphObject;

/* graph_build.c */
int size_parse(PyObject *number, int nsizes, Size *out);

/* graph_sizes.c */
static inline int64_t size_value(Size size, const int64_t *sizes)
{
    return size.number < 0 ? size.value : sizes[size.number];
}
/* The dims of a layout in a call with these sizes; room: space for 2 * ndim numbers. */
const int64_t *layout_dims(const Layout *layout, const int64_t *sizes, int64_t *room);
int sizes_take(const GraphObject *g, PyObject *const *args, int64_t *sizes);

int sizes_parse_derive(GraphObject *g, PyObject *derive);
int sizes_check_program(const GraphObject *g);

/* graph_device.c */
int device_parse(GraphObject *g, PyObject *device);
int launch_parse(const GraphObject *g, PyObject *spec, Launch *out);
int copy_parse(const GraphObject *g, PyObject *spec, Copy *out);
int upload_parse(const GraphObject *g, PyObject *spec, Upload *out);
int product_parse(const GraphObject *g, PyObject *spec, Product *out);
void device_free(GraphObject *g);
void device_forget(GraphObject *g); /* recordings and copies of inputs; they come back as needed */
StorageObject *device_alloc(const GraphObject *g, int64_t nbytes);
int device_stream(const GraphObject *g, void **stream);
/* 1 if the caller records the work of the stream into a CUDA graph, else 0; -1 with an error. The recorded work keeps the graph alive. */
int device_is_captured(GraphObject *g, void *stream);
int device_enter(const GraphObject *g, void **before);
void device_leave(const GraphObject *g, void *before);
int device_failed_check(GraphObject *g, int64_t *value); /* 1 + the number of a check that failed in an earlier call, or 0 */
/* Puts a launch, a copy or a product on the stream. */
int device_step(const GraphObject *g, const Step *step, char **bufs, const int64_t *sizes, void *stream);
/* Clears the entries of its inputs in bufs. */
int device_upload_all(const GraphObject *g, char **bufs, const int64_t *sizes, void *stream, int is_captured);
int device_copy_bytes(char *target, const char *source, int64_t nbytes, void *stream);
/* The recording for these addresses; a new recording if these addresses are new. */
Recording *device_recording(GraphObject *g, char **bufs);
int device_begin_recording(GraphObject *g, void **stream);
int device_end_recording(GraphObject *g, Recording *r, int failed);
int device_replay(const Recording *r, void *stream);

/* graph_call.c */
int graph_raise_pending(GraphObject *g);
PyObject *graph_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
