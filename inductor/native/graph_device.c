/* The steps of a graph on a CUDA device: kernel launches, copies, and CUDA graphs that replay all of them at once. */
#include "blas.h"
#include "cuda_driver.h"
#include "graph.h"

#include <string.h>

enum { CAPTURE_THIS_THREAD = 1 }; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
enum { STREAM_NON_BLOCKING = 1 };
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 }; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
enum { MAX_ARGUMENTS = 256, HIDDEN_ARGUMENTS = 2 };

/* ------------------------------------------------------------------ parsing */

/* (buffer, value): see Argument. */
static int argument_parse(const GraphObject *g, PyObject *spec, Argument *out)
{
    PyObject *value;
    if (!PyArg_ParseTuple(spec, "iO", &out->buffer, &value) || size_parse(value, g->nsizes, &out->value) < 0)
        return -1;
    if (out->buffer < ARGUMENT_CHECKS || out->buffer >= g->nbuffers) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: an argument in a buffer that does not exist");
        return -1;
    }
    return 0;
}

/* (function, grid, threads, shared_bytes, arguments, waits) */
int launch_parse(const GraphObject *g, PyObject *spec, Launch *out)
{
    unsigned long long function;
    PyObject *grid, *arguments;
    if (!PyArg_ParseTuple(spec, "KOIIO!p", &function, &grid, &out->threads, &out->shared_bytes, &PyTuple_Type, &arguments, &out->waits) ||
        size_parse(grid, g->nsizes, &out->grid) < 0)
        return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(arguments);
    if (!g->device || n > MAX_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "CompiledGraph: a launch needs a device and at most %d arguments", MAX_ARGUMENTS);
        return -1;
    }
    out->function = (void *)(uintptr_t)function;
    if (!(out->arguments = PyMem_Calloc(n > 0 ? (size_t)n : 1, sizeof(Argument)))) {
        PyErr_NoMemory();
        return -1;
    }
    out->narguments = (int)n;
    for (int i = 0; i < out->narguments; i++)
        if (argument_parse(g, PyTuple_GET_ITEM(arguments, i), &out->arguments[i]) < 0)
            return -1;
    g->device->has_launches = 1;
    return 0;
}

/* (target, source, nbytes) */
int copy_parse(const GraphObject *g, PyObject *spec, Copy *out)
{
    PyObject *target, *source, *nbytes;
    if (!PyArg_ParseTuple(spec, "OOO", &target, &source, &nbytes) || argument_parse(g, target, &out->target) < 0 ||
        argument_parse(g, source, &out->source) < 0 || size_parse(nbytes, g->nsizes, &out->nbytes) < 0)
        return -1;
    if (!g->device || out->target.buffer < 0 || out->source.buffer < 0) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: a copy needs a device and two buffers");
        return -1;
    }
    g->device->has_launches = 1;
    return 0;
}

/* (target, inputs) */
int upload_parse(const GraphObject *g, PyObject *spec, Upload *out)
{
    PyObject *target, *inputs;
    if (!PyArg_ParseTuple(spec, "OO!", &target, &PyTuple_Type, &inputs) || argument_parse(g, target, &out->target) < 0)
        return -1;
    int n = (int)PyTuple_GET_SIZE(inputs);
    if (!(out->inputs = PyMem_Calloc(n > 0 ? (size_t)n : 1, sizeof(int)))) {
        PyErr_NoMemory();
        return -1;
    }
    out->ninputs = n;
    for (int i = 0; i < n; i++) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(inputs, i));
        if (number == -1 && PyErr_Occurred())
            return -1;
        if (number < 0 || number >= g->ninputs || g->inputs[number].ndim != 0 ||
            EAGER_META_DEVICE(g->inputs[number].meta) != EAGER_CPU || !g->device || out->target.buffer < 0) {
            PyErr_SetString(PyExc_ValueError, "CompiledGraph: an upload needs a device, a buffer, and inputs on the CPU without dims");
            return -1;
        }
        out->inputs[i] = (int)number;
    }
    if (g->device)
        g->device->has_launches = 1;
    return 0;
}

/* (product, a, b, result, bias or None, workspace or None, workspace_bytes) */
int product_parse(const GraphObject *g, PyObject *spec, Product *out)
{
    PyObject *product, *places[5];
    Argument *arguments[] = {&out->a, &out->b, &out->result, &out->bias, &out->workspace};
    long long workspace_bytes;
    if (!PyArg_ParseTuple(spec, "O!OOOOOL", &MatrixProduct_Type, &product, &places[0], &places[1], &places[2], &places[3], &places[4],
                          &workspace_bytes))
        return -1;
    for (int i = 0; i < 5; i++) {
        *arguments[i] = (Argument){ARGUMENT_SIZE, {0, -1}};
        if (places[i] != Py_None && argument_parse(g, places[i], arguments[i]) < 0)
            return -1;
    }
    if (!g->device || out->a.buffer < 0 || out->b.buffer < 0 || out->result.buffer < 0 || (workspace_bytes > 0 && out->workspace.buffer < 0)) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: a product needs a device and buffers");
        return -1;
    }
    out->workspace_bytes = workspace_bytes;
    out->product = Py_NewRef(product);
    g->device->has_launches = 1;
    return 0;
}

/* (index, allocate, stream, address of the checks, owner, kind of recording), or None for the CPU. */
int device_parse(GraphObject *g, PyObject *device)
{
    unsigned long long checks;
    PyObject *allocate, *stream, *owner;
    int index, recording;
    if (device == Py_None)
        return 0;
    if (!PyArg_ParseTuple(device, "iOOKOi", &index, &allocate, &stream, &checks, &owner, &recording))
        return -1;
    Device *d = g->device = PyMem_Calloc(1, sizeof(Device));
    if (!d || !(d->is_copied = PyMem_Calloc((size_t)g->ninputs + 1, 1)) ||
        !(d->input_copies = PyMem_Calloc((size_t)g->ninputs + 1, sizeof(StorageObject *))) ||
        !(d->last_sizes = PyMem_Calloc((size_t)g->nsizes + 1, sizeof(int64_t)))) {
        PyErr_NoMemory();
        return -1;
    }
    d->index = index;
    d->recording = recording;
    d->allocate = Py_NewRef(allocate);
    d->stream = Py_NewRef(stream);
    d->owner = Py_NewRef(owner);
    d->checks = (int64_t *)(uintptr_t)checks;
    return 0;
}

void device_forget(GraphObject *g)
{
    Device *d = g->device;
    if (!d)
        return;
    const CudaDriver *driver = d->nrecordings ? cuda_driver() : NULL;
    for (int i = 0; i < d->nrecordings; i++) {
        if (driver && d->recordings[i].executable)
            driver->destroy_executable(d->recordings[i].executable);
        PyMem_Free(d->recordings[i].addresses);
    }
    memset(d->recordings, 0, sizeof d->recordings);
    d->nrecordings = 0;
    for (int i = 0; i < g->ninputs && d->input_copies; i++)
        Py_CLEAR(d->input_copies[i]);
}

void device_free(GraphObject *g)
{
    Device *d = g->device;
    if (!d)
        return;
    device_forget(g);
    if (d->capture_stream) {
        void *before = cuda_enter_again(d->index);
        cuda_driver()->destroy_stream(d->capture_stream);
        cuda_leave(before);
    }
    PyMem_Free(d->is_copied);
    PyMem_Free(d->input_copies);
    PyMem_Free(d->last_sizes);
    Py_XDECREF(d->allocate);
    Py_XDECREF(d->stream);
    Py_XDECREF(d->owner);
    PyMem_Free(d);
    g->device = NULL;
}

/* ------------------------------------------------------------------ memory, stream, context */

StorageObject *device_alloc(const GraphObject *g, int64_t nbytes)
{
    PyObject *n = PyLong_FromLongLong(nbytes), *made = n ? PyObject_CallOneArg(g->device->allocate, n) : NULL;
    Py_XDECREF(n);
    if (made && !PyObject_TypeCheck(made, g_eager->storage_type)) {
        PyErr_Format(PyExc_TypeError, "%U: the allocator returned a %.80s; allowed: a storage", g->name, Py_TYPE(made)->tp_name);
        Py_CLEAR(made);
    }
    return (StorageObject *)made;
}

int device_stream(const GraphObject *g, void **stream)
{
    PyObject *handle = PyObject_CallNoArgs(g->device->stream);
    if (!handle)
        return -1;
    *stream = PyLong_AsVoidPtr(handle);
    Py_DECREF(handle);
    return PyErr_Occurred() ? -1 : 0;
}

int device_is_captured(GraphObject *g, void *stream)
{
    Device *d = g->device;
    int status = 0;
    if (!stream || !d->has_launches) /* the default stream is never recorded */
        return 0;
    if (cuda_check(cuda_driver()->is_capturing(stream, &status), "asking for the state of a stream") < 0)
        return -1;
    if (!status || d->owner == Py_None)
        return status != 0;
    PyObject *done = PyObject_CallMethod(d->owner, "keep_captured", "O", g);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

/* Selects the graph's device on this thread; `before` is for device_leave. */
int device_enter(const GraphObject *g, void **before)
{
    *before = CUDA_UNCHANGED;
    return g->device->has_launches ? cuda_enter(g->device->index, before) : 0;
}

void device_leave(const GraphObject *g, void *before)
{
    if (g->device->has_launches)
        cuda_leave(before);
}

/* Waits for the kernels of which one has noted a failure: its other programs would note the failure again after it was raised. An error of
 * the device itself appears at the next launch. */
static void wait_for_notes(const GraphObject *g)
{
    if (!g->device->has_launches)
        return;
    void *before = cuda_enter_again(g->device->index);
    cuda_driver()->wait();
    cuda_leave(before);
}

int device_failed_check(GraphObject *g, int64_t *value)
{
    int64_t *checks = g->device->checks;
    Py_ssize_t n = checks ? PyTuple_GET_SIZE(g->checks) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (((volatile int64_t *)checks)[2 * i]) {
            wait_for_notes(g);
            *value = checks[2 * i + 1];
            memset(checks, 0, sizeof(int64_t) * 2 * (size_t)n);
            return (int)i + 1;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------ steps */

static int64_t argument_value(const GraphObject *g, const Argument *a, char **bufs, const int64_t *sizes)
{
    int64_t value = size_value(a->value, sizes);
    if (a->buffer >= 0)
        return (int64_t)(intptr_t)(bufs[a->buffer] + value);
    return a->buffer == ARGUMENT_SIZE ? value : (int64_t)(intptr_t)g->device->checks;
}

static int run_launch(const GraphObject *g, const Launch *launch, char **bufs, const int64_t *sizes, void *stream)
{
    int64_t values[MAX_ARGUMENTS + HIDDEN_ARGUMENTS], grid = size_value(launch->grid, sizes);
    void *pointers[MAX_ARGUMENTS + HIDDEN_ARGUMENTS];
    int n = launch->narguments;
    if (grid == 0)
        return 0;
    if (grid > INT32_MAX) {
        PyErr_Format(PyExc_RuntimeError, "%U: %lld programs; a device runs at most %d at once", g->name, (long long)grid, INT32_MAX);
        return -1;
    }
    for (int i = 0; i < n; i++)
        values[i] = argument_value(g, &launch->arguments[i], bufs, sizes);
    for (int i = n; i < n + HIDDEN_ARGUMENTS; i++)
        values[i] = 0;
    for (int i = 0; i < n + HIDDEN_ARGUMENTS; i++)
        pointers[i] = &values[i];
    int status;
    if (launch->waits) {
        CudaLaunchAttribute early = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.is_allowed = 1}};
        CudaLaunch config = {(unsigned)grid, 1, 1, launch->threads, 1, 1, launch->shared_bytes, stream, &early, 1};
        status = cuda_driver()->launch_ex(&config, launch->function, pointers, NULL);
    } else {
        status = cuda_driver()->launch(launch->function, (unsigned)grid, 1, 1, launch->threads, 1, 1, launch->shared_bytes, stream,
                                       pointers, NULL);
    }
    return cuda_check(status, "launching a kernel");
}

int device_copy_bytes(char *target, const char *source, int64_t nbytes, void *stream)
{
    if (nbytes == 0)
        return 0;
    int status = cuda_driver()->copy((uint64_t)(uintptr_t)target, (uint64_t)(uintptr_t)source, (size_t)nbytes, stream);
    return cuda_check(status, "copying on a device");
}

static int run_copy(const GraphObject *g, const Copy *copy, char **bufs, const int64_t *sizes, void *stream)
{
    char *target = (char *)(intptr_t)argument_value(g, &copy->target, bufs, sizes);
    const char *source = (const char *)(intptr_t)argument_value(g, &copy->source, bufs, sizes);
    return device_copy_bytes(target, source, size_value(copy->nbytes, sizes), stream);
}

static int run_product(const GraphObject *g, const Product *p, char **bufs, const int64_t *sizes, void *stream)
{
    const Argument *arguments[] = {&p->a, &p->b, &p->result, &p->bias, &p->workspace};
    void *at[5];
    for (int i = 0; i < 5; i++)
        at[i] = arguments[i]->buffer < 0 ? NULL : (void *)(intptr_t)argument_value(g, arguments[i], bufs, sizes);
    return blas_run(p->product, at[0], at[1], at[2], at[3], at[4], p->workspace_bytes, stream);
}

/* Sets a slot word by word. A recorded copy would read the host's memory at each replay; the words are part of the recorded work. */
static int upload_words(uint64_t target, const char *slot, size_t nbytes, void *stream)
{
    int status = 0;
    for (size_t at = 0; at < nbytes && !status; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, slot + at, sizeof word);
        status = cuda_driver()->set_words(target + at, word, 1, stream);
    }
    return status;
}

/* A copy from pageable memory of up to 64 KB is asynchronous, and its source may change as soon as the function returns (CUDA C++
 * Programming Guide, "Concurrent Execution between Host and Device"). */
static int upload_block(const GraphObject *g, const Upload *upload, char **bufs, const int64_t *sizes, void *stream, int is_captured)
{
    char few[16 * UPLOAD_SLOT], *block = few;
    size_t nbytes = (size_t)upload->ninputs * UPLOAD_SLOT;
    if (nbytes > sizeof few && !(block = PyMem_Malloc(nbytes))) {
        PyErr_NoMemory();
        return -1;
    }
    memset(block, 0, nbytes);
    uint64_t target = (uint64_t)argument_value(g, &upload->target, bufs, sizes);
    int status = 0;
    for (int i = 0; i < upload->ninputs && !status; i++) {
        int input = upload->inputs[i];
        size_t itemsize = (size_t)g_eager->itemsize[EAGER_META_DTYPE(g->inputs[input].meta)];
        memcpy(block + i * UPLOAD_SLOT, bufs[input], itemsize);
        if (is_captured)
            status = upload_words(target + (uint64_t)i * UPLOAD_SLOT, block + i * UPLOAD_SLOT, itemsize, stream);
    }
    if (nbytes && !is_captured)
        status = cuda_driver()->upload(target, block, nbytes, stream);
    if (block != few)
        PyMem_Free(block);
    return cuda_check(status, "copying numbers to a device");
}

/* No other step reads the inputs that uploads copy. Without their addresses, recordings do not depend on them. */
int device_upload_all(const GraphObject *g, char **bufs, const int64_t *sizes, void *stream, int is_captured)
{
    for (int i = 0; i < g->nsteps; i++) {
        const Upload *upload = &g->steps[i].upload;
        if (g->steps[i].kind != STEP_UPLOAD)
            continue;
        if (upload_block(g, upload, bufs, sizes, stream, is_captured) < 0)
            return -1;
        for (int k = 0; k < upload->ninputs; k++)
            bufs[upload->inputs[k]] = NULL;
    }
    return 0;
}

int device_step(const GraphObject *g, const Step *step, char **bufs, const int64_t *sizes, void *stream)
{
    switch (step->kind) {
    case STEP_LAUNCH:
        return run_launch(g, &step->launch, bufs, sizes, stream);
    case STEP_COPY:
        return run_copy(g, &step->copy, bufs, sizes, stream);
    case STEP_PRODUCT:
        return run_product(g, &step->product, bufs, sizes, stream);
    default: /* uploads have run before: see device_upload_all */
        return 0;
    }
}

/* ------------------------------------------------------------------ CUDA graphs */

static Recording *oldest(Device *d)
{
    Recording *found = &d->recordings[0];
    for (int i = 1; i < d->nrecordings; i++)
        if (d->recordings[i].last_use < found->last_use)
            found = &d->recordings[i];
    return found;
}

Recording *device_recording(GraphObject *g, char **bufs)
{
    Device *d = g->device;
    size_t nbytes = sizeof(char *) * (size_t)g->nbuffers;
    Recording *r = NULL;
    for (int i = 0; i < d->nrecordings && !r; i++)
        if (memcmp(d->recordings[i].addresses, bufs, nbytes) == 0)
            r = &d->recordings[i];
    if (!r) {
        r = d->nrecordings < MAX_RECORDINGS ? &d->recordings[d->nrecordings] : oldest(d);
        if (!r->addresses && !(r->addresses = PyMem_Malloc(nbytes))) {
            PyErr_NoMemory();
            return NULL;
        }
        if (r->executable)
            cuda_driver()->destroy_executable(r->executable);
        r->executable = NULL;
        memcpy(r->addresses, bufs, nbytes);
        d->nrecordings += r == &d->recordings[d->nrecordings];
        r->last_use = 0;
    }
    return r;
}

/* Launches on the returned stream are recorded, not run. */
int device_begin_recording(GraphObject *g, void **stream)
{
    Device *d = g->device;
    const CudaDriver *driver = cuda_driver();
    if (!d->capture_stream &&
        cuda_check(driver->create_stream(&d->capture_stream, STREAM_NON_BLOCKING), "making a stream for a CUDA graph") < 0)
        return -1;
    *stream = d->capture_stream;
    return cuda_check(driver->begin_capture(d->capture_stream, CAPTURE_THIS_THREAD), "recording a CUDA graph");
}

int device_end_recording(GraphObject *g, Recording *r, int failed)
{
    const CudaDriver *driver = cuda_driver();
    void *graph = NULL;
    int status = driver->end_capture(g->device->capture_stream, &graph);
    if (!failed)
        failed = cuda_check(status, "ending the recording of a CUDA graph") < 0 ||
                 cuda_check(driver->instantiate(&r->executable, graph, 0), "making a CUDA graph") < 0;
    if (graph)
        driver->destroy_graph(graph);
    return failed ? -1 : 0;
}

int device_replay(const Recording *r, void *stream)
{
    return cuda_check(cuda_driver()->launch_graph(r->executable, stream), "launching a CUDA graph");
}
