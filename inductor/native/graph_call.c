/* CompiledGraph: the call. Checks the inputs, allocates memory, runs the steps, wraps the outputs.
 *
 * All state of a call is on its stack, so a graph may run on several threads at once (the lock is
 * released during long segments). The memory that a graph keeps between calls (arena, outputs, packed weights)
 * is removed from it, under the lock, by the call that uses it. */
#include "graph.h"
#include "runtime/python_compat.h"

#include <string.h>

/* To release and reacquire the lock costs 0.1 us, and up to 5 ms when other threads compete for it. */
enum { RELEASE_LOCK_NS = 50000, INLINE_SLOTS = 96 };

typedef struct {
    GraphObject *g;
    PyObject *const *args;
    char **bufs;
    StorageObject **storages; /* by allocation */
    TensorObject **reused;    /* by output: last call's tensor, to be reused, or NULL */
    StorageObject **packed;   /* by pack */
    StorageObject *arena;
    int64_t *sizes; /* of a graph with symbols */
    void *stream;   /* of a graph on a device */
    int is_captured; /* the caller records the stream into a CUDA graph, whose replays use all memory of the call */
    StorageObject **moved; /* of a graph on a device, by input, then by constant: an aligned copy, or NULL */
    void *inline_slots[INLINE_SLOTS];
} Call;

/* ------------------------------------------------------------------ inputs */

static int same_geometry(const int64_t *want, size_t ndim, int empty, const TensorObject *t)
{
    const int64_t *have = t->dims;
    if (memcmp(want, have, sizeof(int64_t) * ndim) != 0)
        return 0;
    if (empty)
        return 1;
    for (size_t i = 0; i < ndim; i++) /* the stride of a dim of size 1 is not significant */
        if (want[ndim + i] != have[ndim + i] && have[i] != 1)
            return 0;
    return 1;
}

static int fits(const Call *call, const Layout *want, const TensorObject *t)
{
    int64_t room[2 * EAGER_MAX_NDIM];
    if (!want->numbers)
        return same_geometry(want->dims, (size_t)want->ndim, want->numel == 0, t);
    const int64_t *dims = layout_dims(want, call->sizes, room);
    int empty = 0;
    for (int i = 0; i < want->ndim; i++)
        empty |= dims[i] == 0;
    return same_geometry(dims, (size_t)want->ndim, empty, t);
}

static PyObject *describe(uint64_t meta, int ndim, const int64_t *dims)
{
    PyObject *sizes = PyTuple_New(ndim), *strides = PyTuple_New(ndim), *text = NULL;
    for (int i = 0; sizes && strides && i < ndim; i++) {
        PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(dims[i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromLongLong(dims[ndim + i]));
    }
    if (sizes && strides && !PyErr_Occurred())
        text = PyUnicode_FromFormat("dtype code %d, device type %d, shape %R, strides %R", EAGER_META_DTYPE(meta),
                                    EAGER_META_DEVICE(meta), sizes, strides);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return text;
}

static int refuse_input(const Call *call, int i, PyObject *arg)
{
    GraphObject *g = call->g;
    if (g->inputs[i].ndim < 0) {
        PyErr_Format(PyExc_TypeError, "%U: input %d is a %.80s; allowed: an int", g->name, i, Py_TYPE(arg)->tp_name);
        return -1;
    }
    if (!PyObject_TypeCheck(arg, g_eager->tensor_base_type)) {
        PyErr_Format(PyExc_TypeError, "%U: input %d is a %.80s; allowed: a tensor", g->name, i, Py_TYPE(arg)->tp_name);
        return -1;
    }
    const TensorObject *t = (const TensorObject *)arg;
    if (t->meta & EAGER_FAKE || (!t->data && g->inputs[i].numel)) {
        PyErr_Format(PyExc_RuntimeError, "%U: input %d is a fake tensor and has no data; call it with real ones", g->name, i);
        return -1;
    }
    PyObject *have = describe(t->meta, tensor_ndim(t), t->dims);
    int64_t room[2 * EAGER_MAX_NDIM];
    const int64_t *dims = call->sizes ? layout_dims(&g->inputs[i], call->sizes, room) : g->inputs[i].dims;
    PyObject *want = have ? describe(g->inputs[i].meta, g->inputs[i].ndim, dims) : NULL;
    if (want)
        PyErr_Format(PyExc_RuntimeError, "%U: input %d has %U; this graph was compiled for %U; compile again for it",
                     g->name, i, have, want);
    Py_XDECREF(have);
    Py_XDECREF(want);
    return -1;
}

#define COMPARED (0xffffffffull | EAGER_FAKE) /* of a tensor's meta word */

/* Checks kinds and dtypes, then reads the sizes, then checks the geometry against them. */
static int take_symbolic(Call *call)
{
    GraphObject *g = call->g;
    for (int i = 0; i < g->ninputs; i++) {
        PyObject *arg = call->args[i];
        int is_tensor = PyObject_TypeCheck(arg, g_eager->tensor_base_type);
        if (g->inputs[i].ndim < 0 ? !PyLong_Check(arg)
                                  : !is_tensor || (((const TensorObject *)arg)->meta & COMPARED) != g->inputs[i].meta)
            return refuse_input(call, i, arg);
    }
    int64_t *sizes = (int64_t *)call->bufs[g->nbuffers - 1];
    if (sizes_take(g, call->args, sizes) < 0)
        return -1;
    call->sizes = sizes;
    for (int i = 0; i < g->ninputs; i++) {
        const TensorObject *t = (const TensorObject *)call->args[i];
        if (g->inputs[i].ndim >= 0 && !fits(call, &g->inputs[i], t))
            return refuse_input(call, i, call->args[i]);
        call->bufs[i] = g->inputs[i].ndim < 0 ? NULL : t->data;
    }
    return 0;
}

static int take_inputs(Call *call, Py_ssize_t nargs)
{
    GraphObject *g = call->g;
    if (nargs != g->ninputs) {
        PyErr_Format(PyExc_TypeError, "%U: called with %zd tensors; this graph takes %d", g->name, nargs, g->ninputs);
        return -1;
    }
    if (g->nsymbols)
        return take_symbolic(call);
    PyTypeObject *tensor_class = *g_eager->tensor_class;
    for (int i = 0; i < g->ninputs; i++) {
        PyObject *arg = call->args[i];
        const Layout *want = &g->inputs[i];
        if (Py_TYPE(arg) != tensor_class && !PyObject_TypeCheck(arg, g_eager->tensor_base_type))
            return refuse_input(call, i, arg);
        const TensorObject *t = (const TensorObject *)arg;
        if ((t->meta & COMPARED) != want->meta || (!t->data && want->numel) || !fits(call, want, t))
            return refuse_input(call, i, arg);
        call->bufs[i] = t->data;
    }
    return 0;
}

/* ------------------------------------------------------------------ memory */

/* Whether only the graph refers to the tensor that it returned last time, and to its memory. */
static int unseen(TensorObject *t)
{
    if (Py_REFCNT(t) != 1 || t->weakrefs || t->dict || t->grad_fn || t->grad || t->autograd || t->meta >> 32)
        return 0;
    if (t->array && Py_REFCNT(t->array) == 1)
        Py_CLEAR(t->array);
    return !t->array && Py_REFCNT(t->storage) == 1 && !t->storage->weakrefs && !t->storage->exposed;
}

static void take_kept(Call *call)
{
    GraphObject *g = call->g;
    for (int i = 0; i < g->noutputs; i++) {
        TensorObject *t = g->kept[i];
        g->kept[i] = NULL;
        if (!t)
            continue;
        const Output *out = &g->outputs[i];
        if (unseen(t) && t->meta == out->layout.meta && fits(call, &out->layout, t) &&
            t->storage->nbytes >= size_value(g->allocs[out->index], call->sizes)) {
            t->storage->version = 0;
            call->reused[i] = t;
            call->storages[out->index] = (StorageObject *)Py_NewRef(t->storage);
        } else {
            Py_DECREF(t);
        }
    }
}

/* Whether earlier and later calls may share memory with this call. During an allocation a second thread can call the graph on another
 * stream, to which the memory that the graph keeps belongs from then on. */
static int shares_memory(const Call *call)
{
    const Device *d = call->g->device;
    return !d || (!call->is_captured && call->stream == d->last_stream);
}

static StorageObject *allocate(const GraphObject *g, int64_t nbytes)
{
    return g->device ? device_alloc(g, nbytes) : g_eager->storage_alloc(nbytes);
}

static int take_memory(Call *call)
{
    GraphObject *g = call->g;
    char **next = call->bufs + g->ninputs;
    if (g->keep)
        take_kept(call);
    for (int i = 0; i < g->nallocs; i++) {
        if (!call->storages[i] && !(call->storages[i] = allocate(g, size_value(g->allocs[i], call->sizes))))
            return -1;
        *next++ = call->storages[i]->data;
    }
    for (int i = 0; i < g->nconstants; i++)
        *next++ = g->constants[i]->data;
    next += g->npacks;
    int64_t arena_bytes = size_value(g->arena_bytes, call->sizes);
    *next = NULL; /* recordings compare all addresses */
    if (arena_bytes > 0) {
        if (shares_memory(call)) {
            call->arena = g->arena;
            g->arena = NULL;
        }
        if (call->arena && call->arena->nbytes < arena_bytes)
            Py_CLEAR(call->arena);
        if (!call->arena && !(call->arena = allocate(g, arena_bytes)))
            return -1;
        *next = call->arena->data;
    }
    return 0;
}

/* ------------------------------------------------------------------ packed weights */

/* A weak reference distinguishes a storage from a later storage at the same address. */
static int refers_to(PyObject *ref, const StorageObject *s)
{
    PyObject *target = ref ? weakref_object(ref) : NULL;
    Py_XDECREF(target); /* the caller holds s */
    return target == (PyObject *)s;
}

static const StorageObject *root_of(const TensorObject *t) { return t->storage->root ? t->storage->root : t->storage; }

static int source_is_current(const PackSource *p, const TensorObject *t)
{
    const StorageObject *s = t->storage, *root = root_of(t);
    return refers_to(p->storage_ref, s) && p->data == t->data && p->version == s->version &&
           p->root_version == root->version && p->alias_writes == root->alias_writes;
}

static int remember_source(PackSource *p, const TensorObject *t)
{
    const StorageObject *s = t->storage, *root = root_of(t);
    if (!refers_to(p->storage_ref, s)) {
        PyObject *ref = PyWeakref_NewRef((PyObject *)s, NULL);
        if (!ref)
            return -1;
        Py_XSETREF(p->storage_ref, ref);
    }
    p->data = t->data;
    p->version = s->version;
    p->root_version = root->version;
    p->alias_writes = root->alias_writes;
    return 0;
}

static const TensorObject *source_tensor(const Call *call, const PackSource *p)
{
    const GraphObject *g = call->g;
    return p->number < g->ninputs ? (const TensorObject *)call->args[p->number]
                                  : g->constants[p->number - g->ninputs - g->nallocs];
}

static int take_pack(Call *call, int number)
{
    GraphObject *g = call->g;
    Pack *p = &g->packs[number];
    char **entry = &call->bufs[g->ninputs + g->nallocs + g->nconstants + number];
    int watched = 1, current = 1;
    for (int i = 0; i < p->nsources; i++) {
        const TensorObject *t = source_tensor(call, &p->sources[i]);
        watched &= root_of(t)->from_pool && !root_of(t)->exposed; /* otherwise a write may be missed: pack at every call */
        current &= watched && source_is_current(&p->sources[i], t);
    }
    if (current && p->packed) {
        call->packed[number] = (StorageObject *)Py_NewRef(p->packed);
        *entry = p->packed->data;
        return 0;
    }
    StorageObject *packed = g_eager->storage_alloc(p->nbytes);
    if (!packed)
        return -1;
    call->packed[number] = packed;
    *entry = packed->data;
    p->pack(call->bufs, g_eager->runtime);
    /* Weights in training change at every step: keep a packed form only the second time the
     * same bytes are seen, so that training does not hold each weight twice. */
    if (current)
        Py_XSETREF(p->packed, (StorageObject *)Py_NewRef(packed));
    else
        Py_CLEAR(p->packed);
    for (int i = 0; i < p->nsources && watched && !current; i++)
        if (remember_source(&p->sources[i], source_tensor(call, &p->sources[i])) < 0)
            return -1;
    return 0;
}

/* ------------------------------------------------------------------ steps */

static StorageObject *storage_of(Call *call, int buffer)
{
    GraphObject *g = call->g;
    if (buffer < g->ninputs)
        return ((TensorObject *)call->args[buffer])->storage;
    buffer -= g->ninputs;
    if (buffer < g->nallocs)
        return call->storages[buffer];
    buffer -= g->nallocs;
    return buffer < g->nconstants ? g->constants[buffer]->storage : call->arena;
}

static TensorObject *make_tensor(const Call *call, StorageObject *storage, const Layout *layout, int64_t offset)
{
    int64_t room[2 * EAGER_MAX_NDIM];
    const int64_t *dims = layout_dims(layout, call->sizes, room);
    return g_eager->tensor_new(*g_eager->tensor_class, storage, layout->meta, layout->ndim, dims, dims + layout->ndim,
                               offset);
}

static TensorObject *lay_out(const Call *call, StorageObject *storage, const char *data, const Layout *layout)
{
    int64_t itemsize = g_eager->itemsize[EAGER_META_DTYPE(layout->meta)];
    int64_t offset = storage->data ? (data - storage->data) / itemsize : 0;
    return make_tensor(call, storage, layout, offset);
}

static int run_extern(Call *call, const Step *step)
{
    PyObject *inline_views[16], **views = inline_views;
    int wanted = step->nviews + step->nints;
    if (wanted > 16 && !(views = PyMem_Malloc(sizeof(PyObject *) * (size_t)wanted))) {
        PyErr_NoMemory();
        return -1;
    }
    int made = 0;
    for (; made < wanted; made++) {
        if (made < step->nviews) {
            const BufferView *v = &step->views[made];
            const char *base = call->bufs[v->buffer];
            const char *data = base ? base + size_value(v->offset_bytes, call->sizes) : NULL;
            views[made] = (PyObject *)lay_out(call, storage_of(call, v->buffer), data, &v->layout);
        } else {
            views[made] = PyLong_FromLongLong(call->sizes[step->ints[made - step->nviews]]);
        }
        if (!views[made])
            break;
    }
    PyObject *result = made == wanted ? PyObject_Vectorcall(step->callable, views, (size_t)made, NULL) : NULL;
    for (int i = 0; i < made; i++)
        Py_DECREF(views[i]);
    if (views != inline_views)
        PyMem_Free(views);
    if (!result)
        return -1;
    Py_DECREF(result);
    return 0;
}

static _Thread_local int failed_check; /* 1 + the number of the check that failed last, or 0 */
static _Thread_local long failed_value;

void graph_fail(const Runtime *rt, int check, long value)
{
    (void)rt;
    failed_check = check + 1;
    failed_value = value;
}

static PyObject *filled_in(PyObject *text, const char *mark, long long number)
{
    PyObject *value = PyUnicode_FromFormat("%lld", number);
    PyObject *result = value ? PyObject_CallMethod(text, "replace", "sO", mark, value) : NULL;
    Py_XDECREF(value);
    return result;
}

static int raise_failed(const GraphObject *g, int check, int64_t value, const int64_t *sizes)
{
    PyObject *entry = check < PyTuple_GET_SIZE(g->checks) ? PyTuple_GET_ITEM(g->checks, check) : NULL, *error, *text, *size;
    Size bound;
    if (!entry || !PyArg_ParseTuple(entry, "OUO", &error, &text, &size) || size_parse(size, g->nsizes, &bound) < 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_SystemError, "%U: its code reports check %d, which its plan does not have", g->name, check);
        return -1;
    }
    PyObject *first = filled_in(text, "{}", value);
    PyObject *message = first ? filled_in(first, "{size}", size_value(bound, sizes)) : NULL;
    if (message)
        PyErr_SetObject(error, message);
    Py_XDECREF(first);
    Py_XDECREF(message);
    return -1;
}

static int run_steps(Call *call)
{
    GraphObject *g = call->g;
    int failed = 0, hot = g->hot;
    if (g->nsymbols && !hot) {
        int64_t total_ns = 0;
        for (int i = 0; i < g->nsteps; i++)
            total_ns += size_value(g->steps[i].cost_ns, call->sizes);
        hot = total_ns >= HOT_NS;
    }
    if (hot)
        g_eager->threads_enter();
    for (int i = 0; i < g->nsteps && !failed; i++) {
        const Step *step = &g->steps[i];
        if (step->kind == STEP_EXTERN) {
            failed = run_extern(call, step) < 0;
        } else if (step->kind >= STEP_LAUNCH) {
            failed = device_step(g, step, call->bufs, call->sizes, call->stream) < 0;
        } else if (size_value(step->cost_ns, call->sizes) < RELEASE_LOCK_NS) {
            step->segment(call->bufs, g_eager->runtime);
        } else {
            PyThreadState *state = PyEval_SaveThread();
            step->segment(call->bufs, g_eager->runtime);
            PyEval_RestoreThread(state);
        }
        if (failed_check) {
            int check = failed_check - 1;
            failed_check = 0;
            failed = raise_failed(g, check, failed_value, call->sizes) < 0;
        }
    }
    if (hot)
        g_eager->threads_leave();
    return failed ? -1 : 0;
}

/* ------------------------------------------------------------------ on a device */

/* Raises the error of a check that failed on the device in an earlier call. */
int graph_raise_pending(GraphObject *g)
{
    int64_t value = 0;
    int check = g->device ? device_failed_check(g, &value) : 0;
    return check ? raise_failed(g, check - 1, value, g->device->last_sizes) : 0;
}

enum { ALIGNMENT = 16 };

static int64_t span_bytes(const TensorObject *t)
{
    int ndim = tensor_ndim(t);
    int64_t span = 1;
    for (int k = 0; k < ndim; k++) {
        if (t->dims[k] == 0)
            return 0;
        span += (t->dims[k] - 1) * t->dims[ndim + k];
    }
    return span * g_eager->itemsize[EAGER_META_DTYPE(t->meta)];
}

static int is_written(const GraphObject *g, int input)
{
    for (int i = 0; i < g->nwritten; i++)
        if (g->written[i] == input)
            return 1;
    return 0;
}

/* A copy of the tensor in buffer `b`, if it does not begin at a multiple of 16 bytes, which kernels read at once. */
static int align(Call *call, int b, const TensorObject *t, StorageObject **moved)
{
    if ((uintptr_t)call->bufs[b] % ALIGNMENT == 0)
        return 0;
    int64_t nbytes = span_bytes(t);
    if (!(*moved = device_alloc(call->g, nbytes)) || device_copy_bytes((*moved)->data, call->bufs[b], nbytes, call->stream) < 0)
        return -1;
    call->bufs[b] = (*moved)->data;
    return 0;
}

static int align_all(Call *call)
{
    GraphObject *g = call->g;
    for (int i = 0; i < g->ninputs; i++)
        if (g->inputs[i].ndim >= 0 && align(call, i, (const TensorObject *)call->args[i], &call->moved[i]) < 0)
            return -1;
    for (int i = 0; i < g->nconstants; i++)
        if (align(call, g->ninputs + g->nallocs + i, g->constants[i], &call->moved[g->ninputs + i]) < 0)
            return -1;
    return 0;
}

static int return_moved(Call *call)
{
    GraphObject *g = call->g;
    for (int i = 0; i < g->nwritten; i++) {
        const TensorObject *t = (const TensorObject *)call->args[g->written[i]];
        const StorageObject *moved = call->moved[g->written[i]];
        if (moved && device_copy_bytes(t->data, moved->data, span_bytes(t), call->stream) < 0)
            return -1;
    }
    return 0;
}

/* Allocates the memory of `copy_inputs`. Returns 1; 0 if another call has taken it away meanwhile. */
static int allocate_copies(Call *call)
{
    GraphObject *g = call->g;
    Device *d = g->device;
    int whole = 1;
    for (int i = 0; i < g->ninputs; i++) {
        if (!d->is_copied[i] || d->input_copies[i])
            continue;
        StorageObject *made = device_alloc(g, span_bytes((const TensorObject *)call->args[i]));
        if (!made)
            return -1;
        Py_XSETREF(d->input_copies[i], made);
    }
    for (int i = 0; i < g->ninputs; i++)
        whole &= !d->is_copied[i] || d->input_copies[i];
    return whole;
}

/* Copies the inputs whose addresses change from call to call to where the recordings read them. */
static int copy_inputs(Call *call)
{
    GraphObject *g = call->g;
    Device *d = g->device;
    for (int i = 0; i < g->ninputs; i++) {
        if (!d->is_copied[i])
            continue;
        int64_t nbytes = span_bytes((const TensorObject *)call->args[i]);
        if (device_copy_bytes(d->input_copies[i]->data, call->bufs[i], nbytes, call->stream) < 0)
            return -1;
        call->bufs[i] = d->input_copies[i]->data;
    }
    return 0;
}

/* Marks the inputs that have other addresses than in the newest recording. */
static void note_moving_inputs(const Call *call)
{
    const GraphObject *g = call->g;
    Device *d = g->device;
    const Recording *newest = d->nrecordings ? &d->recordings[d->nrecordings - 1] : NULL;
    for (int i = 0; newest && i < g->ninputs; i++)
        if (g->inputs[i].ndim >= 0 && call->bufs[i] != newest->addresses[i] && !is_written(g, i))
            d->is_copied[i] = 1;
}

static int record(Call *call, Recording *r)
{
    void *stream = call->stream;
    if (device_begin_recording(call->g, &call->stream) < 0)
        return -1;
    int failed = run_steps(call) < 0;
    call->stream = stream;
    return device_end_recording(call->g, r, failed);
}

/* Runs the steps, or replays a CUDA graph of them. Addresses are recorded when they come the second time: the first call loads
 * the kernels, and some addresses never come again. */
static int run_recorded(Call *call)
{
    GraphObject *g = call->g;
    int allocated = 1;
    if (g->device->recording == RECORD_COPYING) {
        note_moving_inputs(call);
        allocated = allocate_copies(call);
    }
    if (allocated < 0)
        return -1;
    if (!allocated || !shares_memory(call))
        return run_steps(call);
    if (g->device->recording == RECORD_COPYING && copy_inputs(call) < 0)
        return -1;
    Recording *r = device_recording(g, call->bufs);
    if (!r)
        return -1;
    int is_first = r->last_use == 0;
    r->last_use = ++g->device->clock;
    if (is_first)
        return run_steps(call);
    if (!r->executable && record(call, r) < 0)
        return -1;
    return device_replay(r, call->stream);
}

static int run_on_device(Call *call)
{
    GraphObject *g = call->g;
    void *before;
    if (device_enter(g, &before) < 0)
        return -1;
    if (call->sizes)
        memcpy(g->device->last_sizes, call->sizes, sizeof(int64_t) * (size_t)g->nsizes);
    int failed = 0;
    if (g->device->has_launches)
        failed = device_upload_all(g, call->bufs, call->sizes, call->stream, call->is_captured) < 0 || align_all(call) < 0;
    if (!failed)
        failed = (g->device->recording != RECORD_NEVER ? run_recorded(call) : run_steps(call)) < 0 || return_moved(call) < 0;
    device_leave(g, before);
    return failed ? -1 : 0;
}

/* ------------------------------------------------------------------ outputs */

static PyObject *view_of(const Call *call, const TensorObject *base, const Output *out)
{
    return (PyObject *)make_tensor(call, base->storage, &out->layout, base->offset + size_value(out->offset, call->sizes));
}

static PyObject *make_output(Call *call, int number, PyObject *const *made)
{
    GraphObject *g = call->g;
    const Output *out = &g->outputs[number];
    switch (out->kind) {
    case OUT_NEW: {
        TensorObject *t = call->reused[number];
        if (t) {
            call->reused[number] = NULL;
        } else {
            t = make_tensor(call, call->storages[out->index], &out->layout, size_value(out->offset, call->sizes));
        }
        if (t && g->keep && out->sole && shares_memory(call))
            Py_XSETREF(g->kept[number], (TensorObject *)Py_NewRef(t));
        return (PyObject *)t;
    }
    case OUT_INPUT:
        return Py_NewRef(call->args[out->index]);
    case OUT_CONSTANT:
        return Py_NewRef((PyObject *)g->constants[out->index]);
    case OUT_VIEW_INPUT:
        return view_of(call, (TensorObject *)call->args[out->index], out);
    case OUT_VIEW_CONSTANT:
        return view_of(call, g->constants[out->index], out);
    case OUT_VIEW_OUTPUT:
        return view_of(call, (TensorObject *)made[out->index], out);
    case OUT_LITERAL:
        return Py_NewRef(out->literal);
    case OUT_INT:
        return PyLong_FromLongLong(size_value(out->offset, call->sizes));
    }
    Py_UNREACHABLE();
}

static PyObject *make_outputs(Call *call)
{
    GraphObject *g = call->g;
    if (g->single)
        return make_output(call, 0, NULL);
    PyObject *result = PyTuple_New(g->noutputs);
    if (!result)
        return NULL;
    PyObject **items = ((PyTupleObject *)result)->ob_item;
    for (int i = 0; i < g->noutputs; i++) {
        items[i] = make_output(call, i, items);
        if (!items[i]) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return result;
}

/* ------------------------------------------------------------------ the call */

/* Memory of a device returns to its allocator, which knows the order of streams, unless recordings need its address. */
static int keeps_arena(const GraphObject *g, const StorageObject *arena)
{
    return g->keep || (g->device ? g->device->recording != RECORD_NEVER : arena->nbytes <= KEPT_ARENA_BYTES);
}

static void finish(Call *call)
{
    GraphObject *g = call->g;
    for (int i = 0; i < g->nallocs; i++)
        Py_XDECREF(call->storages[i]);
    for (int i = 0; i < g->npacks; i++)
        Py_XDECREF(call->packed[i]);
    if (g->keep)
        for (int i = 0; i < g->noutputs; i++)
            Py_XDECREF(call->reused[i]); /* not NULL only after a failure */
    if (call->arena) {
        /* A tensor of an extern call may still be alive: then the arena is not reused. */
        int ours = Py_REFCNT(call->arena) == 1 && keeps_arena(g, call->arena) && shares_memory(call) && !g->arena;
        if (ours)
            g->arena = call->arena;
        else
            Py_DECREF(call->arena);
    }
    for (int i = 0; g->device && i < g->ninputs + g->nconstants; i++)
        Py_XDECREF(call->moved[i]);
    if ((void *)call->bufs != (void *)call->inline_slots)
        PyMem_Free(call->bufs);
}

static int begin(Call *call, GraphObject *g, PyObject *const *args)
{
    size_t pointers = (size_t)(g->nbuffers + g->nallocs + g->noutputs + g->npacks + (g->device ? g->ninputs + g->nconstants : 0));
    size_t slots = pointers + (size_t)g->nsizes * sizeof(int64_t) / sizeof(void *);
    void **memory = call->inline_slots;
    if (slots > INLINE_SLOTS && !(memory = PyMem_Malloc(sizeof(void *) * slots))) {
        PyErr_NoMemory();
        return -1;
    }
    memset(memory + g->nbuffers, 0, sizeof(void *) * (slots - (size_t)g->nbuffers));
    call->g = g;
    call->args = args;
    call->bufs = (char **)memory;
    call->storages = (StorageObject **)(memory + g->nbuffers);
    call->reused = (TensorObject **)(call->storages + g->nallocs);
    call->packed = (StorageObject **)(call->reused + g->noutputs);
    call->moved = (StorageObject **)(call->packed + g->npacks);
    call->arena = NULL;
    call->sizes = NULL; /* until they are read */
    if (g->nsymbols)
        call->bufs[g->nbuffers - 1] = (char *)(memory + pointers);
    return 0;
}

/* Memory that is kept between calls may be in use until the work of its stream is done: another stream gets other memory, and so does
 * work that the caller records. */
static int begin_on_device(Call *call, GraphObject *g)
{
    if (device_stream(g, &call->stream) < 0 || (call->is_captured = device_is_captured(g, call->stream)) < 0)
        return -1;
    if (call->is_captured || call->stream != g->device->last_stream) {
        g->device->last_stream = call->stream;
        device_forget(g);
        Py_CLEAR(g->arena);
        for (int i = 0; i < g->noutputs; i++)
            Py_CLEAR(g->kept[i]);
    }
    return 0;
}

PyObject *graph_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    GraphObject *g = (GraphObject *)self;
    Call call;
    call.is_captured = 0;
    if (kwnames && PyTuple_GET_SIZE(kwnames)) {
        PyErr_Format(PyExc_TypeError, "%U: called with keyword arguments; allowed: tensors by position", g->name);
        return NULL;
    }
    if (g->device && (graph_raise_pending(g) < 0 || begin_on_device(&call, g) < 0))
        return NULL;
    if (begin(&call, g, args) < 0)
        return NULL;
    PyObject *result = NULL;
    if (take_inputs(&call, PyVectorcall_NARGS(nargsf)) < 0 || take_memory(&call) < 0)
        goto done;
    for (int i = 0; i < g->npacks; i++)
        if (take_pack(&call, i) < 0)
            goto done;
    if ((g->device ? run_on_device(&call) : run_steps(&call)) < 0) /* inputs are written after every step that can fail */
        goto done;
    for (int i = 0; i < g->nwritten; i++)
        storage_written(((TensorObject *)args[g->written[i]])->storage);
    result = make_outputs(&call);
done:
    finish(&call);
    return result;
}
