/* CompiledGraph: construction from the plan, destruction, attributes. */
#include "graph.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* ------------------------------------------------------------------ parsing */

static void *zeroed(Py_ssize_t count, size_t size)
{
    void *memory = PyMem_Calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory)
        PyErr_NoMemory();
    return memory;
}

/* An int, or (number,) of one of the `nsizes` sizes of a call. */
int size_parse(PyObject *number, int nsizes, Size *out)
{
    int symbolic = PyTuple_Check(number) && PyTuple_GET_SIZE(number) == 1;
    int64_t value = PyLong_AsLongLong(symbolic ? PyTuple_GET_ITEM(number, 0) : number);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (symbolic && (value < 0 || value >= nsizes)) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: the number of a size that does not exist");
        return -1;
    }
    *out = symbolic ? (Size){0, (int)value} : (Size){value, -1};
    return 0;
}

static int parse_dims(PyObject *sequence, int nsizes, int at, Layout *out, const char *who)
{
    if (!PyTuple_Check(sequence) || PyTuple_GET_SIZE(sequence) != out->ndim) {
        PyErr_Format(PyExc_TypeError, "CompiledGraph: %s: sizes and strides must be tuples of one length", who);
        return -1;
    }
    for (int i = 0; i < out->ndim; i++) {
        Size size;
        if (size_parse(PyTuple_GET_ITEM(sequence, i), nsizes, &size) < 0)
            return -1;
        out->dims[at + i] = size.value;
        if (size.number < 0)
            continue;
        if (!out->numbers) {
            if (!(out->numbers = zeroed(2 * out->ndim, sizeof(int))))
                return -1;
            memset(out->numbers, -1, sizeof(int) * 2 * (size_t)out->ndim);
        }
        out->numbers[at + i] = size.number;
    }
    return 0;
}

static void layout_free(Layout *layout)
{
    PyMem_Free(layout->dims);
    PyMem_Free(layout->numbers);
}

/* spec: (dtype code, sizes, strides, device index or -1 for the CPU) of a tensor. */
static int layout_parse(PyObject *spec, int nsizes, Layout *out, const char *who)
{
    int code, index;
    PyObject *sizes, *strides;
    if (!PyTuple_Check(spec) || !PyArg_ParseTuple(spec, "iOOi", &code, &sizes, &strides, &index))
        return -1;
    if (!PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) > EAGER_MAX_NDIM || code < 0 || code >= EAGER_NUM_DTYPES || index > 255) {
        PyErr_Format(PyExc_ValueError, "CompiledGraph: %s: a layout is (dtype code, sizes, strides, device index)", who);
        return -1;
    }
    out->ndim = (int)PyTuple_GET_SIZE(sizes);
    out->meta = index < 0 ? EAGER_META(code, EAGER_CPU, 0, out->ndim) : EAGER_META(code, EAGER_CUDA, index, out->ndim);
    out->dims = zeroed(2 * out->ndim, sizeof(int64_t));
    if (!out->dims || parse_dims(sizes, nsizes, 0, out, who) < 0 || parse_dims(strides, nsizes, out->ndim, out, who) < 0)
        return -1;
    out->numel = 1;
    for (int i = 0; i < out->ndim; i++)
        out->numel *= out->dims[i];
    return 0;
}

static int parse_inputs(GraphObject *g, PyObject *inputs)
{
    g->ninputs = (int)PyTuple_GET_SIZE(inputs);
    if (!(g->inputs = zeroed(g->ninputs, sizeof(Layout))))
        return -1;
    for (int i = 0; i < g->ninputs; i++) {
        PyObject *spec = PyTuple_GET_ITEM(inputs, i);
        if (spec == Py_None)
            g->inputs[i].ndim = -1;
        else if (layout_parse(spec, g->nsizes, &g->inputs[i], "input") < 0)
            return -1;
    }
    return 0;
}

/* symbols: (kind, input, dim, least, greatest) each. Their values are the first of the sizes. */
static int parse_symbols(GraphObject *g, PyObject *symbols)
{
    g->nsymbols = (int)PyTuple_GET_SIZE(symbols);
    if (g->nsymbols > g->nsizes || (g->nsizes > g->nsymbols && !g->derive && !g->program)) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: sizes that nothing computes");
        return -1;
    }
    if (!(g->symbols = zeroed(g->nsymbols, sizeof(Symbol))))
        return -1;
    for (int i = 0; i < g->nsymbols; i++) {
        Symbol *s = &g->symbols[i];
        int kind;
        long long low, high;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(symbols, i), "iiiLL", &kind, &s->input, &s->dim, &low, &high))
            return -1;
        s->kind = kind;
        s->low = low;
        s->high = high;
        int ndim = s->input >= 0 && s->input < g->ninputs ? g->inputs[s->input].ndim : -2;
        int fits = kind == SYM_INT      ? ndim == -1
                   : kind == SYM_OFFSET ? ndim >= 0
                                        : (kind == SYM_SIZE || kind == SYM_STRIDE) && s->dim >= 0 && s->dim < ndim;
        if (!fits) {
            PyErr_Format(PyExc_ValueError, "CompiledGraph: symbol %d is read from something that does not exist", i);
            return -1;
        }
    }
    return g->program ? sizes_check_program(g) : 0;
}

static int parse_allocations(GraphObject *g, PyObject *allocations)
{
    g->nallocs = (int)PyTuple_GET_SIZE(allocations);
    if (!(g->allocs = zeroed(g->nallocs, sizeof(Size))))
        return -1;
    for (int i = 0; i < g->nallocs; i++) {
        if (size_parse(PyTuple_GET_ITEM(allocations, i), g->nsizes, &g->allocs[i]) < 0)
            return -1;
        if (g->allocs[i].value < 0) {
            PyErr_SetString(PyExc_ValueError, "CompiledGraph: an allocation of negative size");
            return -1;
        }
    }
    return 0;
}

static int parse_constants(GraphObject *g, PyObject *constants)
{
    g->nconstants = (int)PyTuple_GET_SIZE(constants);
    if (!(g->constants = zeroed(g->nconstants, sizeof(TensorObject *))))
        return -1;
    for (int i = 0; i < g->nconstants; i++) {
        PyObject *t = PyTuple_GET_ITEM(constants, i);
        if (!PyObject_TypeCheck(t, g_eager->tensor_base_type)) {
            PyErr_Format(PyExc_TypeError, "CompiledGraph: constant %d is a %.80s; allowed: a tensor", i,
                         Py_TYPE(t)->tp_name);
            return -1;
        }
        g->constants[i] = (TensorObject *)Py_NewRef(t);
    }
    return 0;
}

/* packs: (address, source buffers, nbytes) each. */
static int parse_packs(GraphObject *g, PyObject *packs)
{
    int npacks = (int)PyTuple_GET_SIZE(packs);
    if (!(g->packs = zeroed(npacks, sizeof(Pack))))
        return -1;
    g->npacks = npacks;
    for (int i = 0; i < npacks; i++) {
        unsigned long long address;
        long long nbytes;
        PyObject *sources;
        Pack *p = &g->packs[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(packs, i), "KO!L", &address, &PyTuple_Type, &sources, &nbytes))
            return -1;
        p->pack = (SegmentFn)(uintptr_t)address;
        p->nbytes = nbytes;
        int nsources = (int)PyTuple_GET_SIZE(sources);
        if (!(p->sources = zeroed(nsources, sizeof(PackSource))))
            return -1;
        p->nsources = nsources;
        for (int k = 0; k < nsources; k++) {
            long number = PyLong_AsLong(PyTuple_GET_ITEM(sources, k)), constant = number - g->ninputs - g->nallocs;
            if (number == -1 && PyErr_Occurred())
                return -1;
            if (number < 0 || (number >= g->ninputs && (constant < 0 || constant >= g->nconstants))) {
                PyErr_SetString(PyExc_ValueError, "CompiledGraph: only inputs and constants can be packed");
                return -1;
            }
            p->sources[k].number = (int)number;
        }
    }
    return 0;
}

static int parse_view(GraphObject *g, PyObject *spec, BufferView *view)
{
    PyObject *layout, *offset_bytes;
    if (!PyArg_ParseTuple(spec, "iOO", &view->buffer, &offset_bytes, &layout) ||
        size_parse(offset_bytes, g->nsizes, &view->offset_bytes) < 0)
        return -1;
    int first_pack = g->ninputs + g->nallocs + g->nconstants;
    int arena = first_pack + g->npacks;
    if (view->buffer < 0 || view->buffer > arena || (view->buffer >= first_pack && view->buffer < arena) ||
        (view->buffer < g->ninputs && g->inputs[view->buffer].ndim < 0)) {
        PyErr_SetString(PyExc_ValueError, "CompiledGraph: an extern call's view of a buffer that has no tensors");
        return -1;
    }
    return layout_parse(layout, g->nsizes, &view->layout, "extern call");
}

static int parse_ints(GraphObject *g, PyObject *ints, Step *step)
{
    step->nints = (int)PyTuple_GET_SIZE(ints);
    if (!(step->ints = zeroed(step->nints, sizeof(int))))
        return -1;
    for (int i = 0; i < step->nints; i++) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(ints, i));
        if (number < 0 || number >= g->nsizes) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "CompiledGraph: the number of a size that does not exist");
            return -1;
        }
        step->ints[i] = (int)number;
    }
    return 0;
}

static int parse_segment(GraphObject *g, PyObject *spec, Step *step)
{
    PyObject *address, *cost_ns;
    if (!PyArg_ParseTuple(spec, "OO", &address, &cost_ns))
        return -1;
    step->segment = (SegmentFn)PyLong_AsVoidPtr(address);
    return PyErr_Occurred() || size_parse(cost_ns, g->nsizes, &step->cost_ns) < 0 ? -1 : 0;
}

static int parse_extern(GraphObject *g, PyObject *spec, Step *step)
{
    PyObject *callable, *views, *ints;
    if (!PyArg_ParseTuple(spec, "OO!O!", &callable, &PyTuple_Type, &views, &PyTuple_Type, &ints) || parse_ints(g, ints, step) < 0)
        return -1;
    step->callable = Py_NewRef(callable);
    Py_ssize_t nviews = PyTuple_GET_SIZE(views);
    if (!(step->views = zeroed(nviews, sizeof(BufferView))))
        return -1;
    for (step->nviews = 0; step->nviews < nviews; step->nviews++)
        if (parse_view(g, PyTuple_GET_ITEM(views, step->nviews), &step->views[step->nviews]) < 0) {
            step->nviews++; /* its layout may have been allocated */
            return -1;
        }
    return 0;
}

/* steps: (kind, spec): STEP_SEGMENT (address, cost_ns); STEP_EXTERN (callable, views, numbers of sizes); STEP_LAUNCH, STEP_COPY,
 * STEP_UPLOAD and STEP_PRODUCT: see graph_device.c. */
static int parse_step(GraphObject *g, PyObject *step_spec, Step *step)
{
    int kind;
    PyObject *spec;
    if (!PyArg_ParseTuple(step_spec, "iO!", &kind, &PyTuple_Type, &spec))
        return -1;
    step->kind = kind;
    switch (kind) {
    case STEP_SEGMENT:
        return parse_segment(g, spec, step);
    case STEP_EXTERN:
        return parse_extern(g, spec, step);
    case STEP_LAUNCH:
        return launch_parse(g, spec, &step->launch);
    case STEP_COPY:
        return copy_parse(g, spec, &step->copy);
    case STEP_UPLOAD:
        return upload_parse(g, spec, &step->upload);
    case STEP_PRODUCT:
        return product_parse(g, spec, &step->product);
    }
    PyErr_Format(PyExc_ValueError, "CompiledGraph: step of kind %d; allowed: 0 to 5", kind);
    return -1;
}

static int parse_steps(GraphObject *g, PyObject *steps)
{
    Py_ssize_t n = PyTuple_GET_SIZE(steps);
    int64_t total_ns = 0;
    if (!(g->steps = zeroed(n, sizeof(Step))))
        return -1;
    for (; g->nsteps < n; g->nsteps++) {
        if (parse_step(g, PyTuple_GET_ITEM(steps, g->nsteps), &g->steps[g->nsteps]) < 0) {
            g->nsteps++;
            return -1;
        }
        total_ns += g->steps[g->nsteps].cost_ns.value;
    }
    g->hot = total_ns >= HOT_NS;
    return 0;
}

/* Whether a CUDA graph can hold all steps but uploads: only launches, products and copies, whose arguments do not change from call to call. */
static int is_recordable(const GraphObject *g)
{
    for (int i = 0; i < g->nsteps; i++)
        if (g->steps[i].kind < STEP_LAUNCH)
            return 0;
    return g->nsteps > 0 && g->nsymbols == 0;
}

/* outputs: (kind, index, offset, layout or literal or None). */
static int parse_output(GraphObject *g, PyObject *spec, int number, Output *out)
{
    int kind;
    PyObject *offset, *value;
    if (!PyArg_ParseTuple(spec, "iiOO", &kind, &out->index, &offset, &value) || size_parse(offset, g->nsizes, &out->offset) < 0)
        return -1;
    out->kind = kind;
    const int limits[] = {g->nallocs, g->ninputs, g->nconstants, g->ninputs, g->nconstants, number, 1, 1};
    if (kind < OUT_NEW || kind > OUT_INT || out->index < 0 || out->index >= limits[kind] ||
        (kind == OUT_VIEW_INPUT && g->inputs[out->index].ndim < 0)) {
        PyErr_Format(PyExc_ValueError, "CompiledGraph: output %d refers to something that does not exist", number);
        return -1;
    }
    if (kind == OUT_LITERAL) {
        out->literal = Py_NewRef(value);
        return 0;
    }
    if (kind == OUT_INPUT || kind == OUT_CONSTANT || kind == OUT_INT)
        return 0;
    if (kind == OUT_VIEW_OUTPUT && g->outputs[out->index].kind >= OUT_LITERAL) {
        PyErr_Format(PyExc_ValueError, "CompiledGraph: output %d is a view of a literal", number);
        return -1;
    }
    return layout_parse(value, g->nsizes, &out->layout, "output");
}

static int parse_outputs(GraphObject *g, PyObject *outputs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(outputs);
    if (!(g->outputs = zeroed(n, sizeof(Output))))
        return -1;
    for (; g->noutputs < n; g->noutputs++)
        if (parse_output(g, PyTuple_GET_ITEM(outputs, g->noutputs), g->noutputs, &g->outputs[g->noutputs]) < 0) {
            g->noutputs++;
            return -1;
        }
    for (int i = 0; i < g->noutputs; i++) {
        Output *out = &g->outputs[i];
        out->sole = out->kind == OUT_NEW;
        for (int j = 0; j < g->noutputs && out->sole; j++) {
            Output *other = &g->outputs[j];
            if (j != i && ((other->kind == OUT_NEW && other->index == out->index) ||
                           (other->kind == OUT_VIEW_OUTPUT && other->index == i)))
                out->sole = 0;
        }
    }
    return 0;
}

static int parse_written(GraphObject *g, PyObject *written)
{
    g->nwritten = (int)PyTuple_GET_SIZE(written);
    g->writes_inputs = g->nwritten > 0;
    if (!(g->written = zeroed(g->nwritten, sizeof(int))))
        return -1;
    for (int i = 0; i < g->nwritten; i++) {
        long index = PyLong_AsLong(PyTuple_GET_ITEM(written, i));
        if (index < 0 || index >= g->ninputs || g->inputs[index].ndim < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "CompiledGraph: a written input that does not exist");
            return -1;
        }
        g->written[i] = (int)index;
    }
    return 0;
}

/* ------------------------------------------------------------------ the type */

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "library", "inputs", "allocations", "constants", "packs", "steps",
                            "outputs", "written", "arena_bytes", "single", "keep", "checks", "symbols", "n_sizes",
                            "derive", "device", NULL};
    PyObject *name, *library, *inputs, *allocations, *constants, *packs, *steps, *outputs, *written, *checks, *symbols,
        *arena_bytes, *derive, *device;
    int single, keep, nsizes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UOO!O!O!O!O!O!O!OppO!O!iOO", names, &name, &library, &PyTuple_Type,
                                     &inputs, &PyTuple_Type, &allocations, &PyTuple_Type, &constants, &PyTuple_Type,
                                     &packs, &PyTuple_Type, &steps, &PyTuple_Type, &outputs, &PyTuple_Type, &written,
                                     &arena_bytes, &single, &keep, &PyTuple_Type, &checks, &PyTuple_Type, &symbols,
                                     &nsizes, &derive, &device))
        return NULL;
    GraphObject *g = (GraphObject *)type->tp_alloc(type, 0);
    if (!g)
        return NULL;
    g->vectorcall = graph_vectorcall;
    g->name = Py_NewRef(name);
    g->library = Py_NewRef(library);
    g->checks = Py_NewRef(checks);
    g->keep = (char)keep;
    g->nsizes = nsizes < 0 ? 0 : nsizes;
    if (sizes_parse_derive(g, derive) < 0 || parse_inputs(g, inputs) < 0 || device_parse(g, device) < 0 || parse_symbols(g, symbols) < 0 ||
        size_parse(arena_bytes, g->nsizes, &g->arena_bytes) < 0 || parse_allocations(g, allocations) < 0 || parse_constants(g, constants) < 0 ||
        parse_packs(g, packs) < 0)
        goto failed;
    g->nbuffers = g->ninputs + g->nallocs + g->nconstants + g->npacks + 1 + (g->nsymbols > 0);
    if (parse_steps(g, steps) < 0 || parse_outputs(g, outputs) < 0 || parse_written(g, written) < 0)
        goto failed;
    if (single && g->noutputs != 1) {
        PyErr_Format(PyExc_ValueError, "CompiledGraph: single=True with %d outputs", g->noutputs);
        goto failed;
    }
    g->single = (char)single;
    if (!(g->kept = zeroed(g->noutputs, sizeof(TensorObject *))))
        goto failed;
    int64_t fixed_bytes = g->arena_bytes.value;
    if (g->device)
        g->device->recording = is_recordable(g) ? g->device->recording : RECORD_NEVER;
    else if (fixed_bytes > 0 && (keep || fixed_bytes <= KEPT_ARENA_BYTES) && !(g->arena = g_eager->storage_alloc(fixed_bytes)))
        goto failed;
    return (PyObject *)g;
failed:
    Py_DECREF(g);
    return NULL;
}

static int graph_traverse(GraphObject *g, visitproc visit, void *arg)
{
    Py_VISIT(g->library);
    Py_VISIT(g->artifact);
    if (g->device) {
        Py_VISIT(g->device->allocate);
        Py_VISIT(g->device->stream);
        Py_VISIT(g->device->owner);
    }
    for (int i = 0; i < g->nconstants && g->constants; i++)
        Py_VISIT(g->constants[i]);
    for (int i = 0; i < g->nsteps; i++)
        Py_VISIT(g->steps[i].callable);
    for (int i = 0; i < g->noutputs; i++) {
        Py_VISIT(g->outputs[i].literal);
        if (g->kept)
            Py_VISIT(g->kept[i]);
    }
    return 0;
}

static int graph_clear(GraphObject *g)
{
    Py_CLEAR(g->artifact);
    for (int i = 0; i < g->noutputs && g->kept; i++)
        Py_CLEAR(g->kept[i]);
    return 0;
}

static void forget_packs(GraphObject *g)
{
    for (int i = 0; i < g->npacks && g->packs; i++) {
        Pack *p = &g->packs[i];
        for (int k = 0; k < p->nsources; k++)
            Py_CLEAR(p->sources[k].storage_ref);
        Py_CLEAR(p->packed);
    }
}

static void graph_dealloc(GraphObject *g)
{
    PyObject_GC_UnTrack(g);
    if (g->weakrefs)
        PyObject_ClearWeakRefs((PyObject *)g);
    graph_clear(g);
    for (int i = 0; i < g->ninputs && g->inputs; i++)
        layout_free(&g->inputs[i]);
    for (int i = 0; i < g->nconstants && g->constants; i++)
        Py_XDECREF(g->constants[i]);
    forget_packs(g);
    for (int i = 0; i < g->npacks && g->packs; i++)
        PyMem_Free(g->packs[i].sources);
    for (int i = 0; i < g->nsteps; i++) {
        Py_XDECREF(g->steps[i].callable);
        for (int j = 0; j < g->steps[i].nviews; j++)
            layout_free(&g->steps[i].views[j].layout);
        PyMem_Free(g->steps[i].views);
        PyMem_Free(g->steps[i].ints);
        PyMem_Free(g->steps[i].launch.arguments);
        PyMem_Free(g->steps[i].upload.inputs);
        Py_XDECREF(g->steps[i].product.product);
    }
    for (int i = 0; i < g->noutputs; i++) {
        Py_XDECREF(g->outputs[i].literal);
        layout_free(&g->outputs[i].layout);
    }
    device_free(g);
    void *arrays[] = {g->inputs, g->program, g->symbols, g->allocs, g->constants, g->packs, g->steps, g->outputs, g->written, g->kept};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        PyMem_Free(arrays[i]);
    Py_XDECREF(g->arena);
    Py_XDECREF(g->checks);
    Py_XDECREF(g->name);
    Py_XDECREF(g->library);
    Py_TYPE(g)->tp_free(g);
}

static PyObject *graph_repr(GraphObject *g)
{
    return PyUnicode_FromFormat("<CompiledGraph %U: %d inputs, %d steps, %d outputs>", g->name, g->ninputs, g->nsteps,
                                g->noutputs);
}

static PyObject *graph_release(GraphObject *g, PyObject *Py_UNUSED(unused))
{
    for (int i = 0; i < g->noutputs; i++)
        Py_CLEAR(g->kept[i]);
    forget_packs(g);
    device_forget(g);
    Py_RETURN_NONE;
}

static PyObject *graph_raise_failed(GraphObject *g, PyObject *Py_UNUSED(unused))
{
    if (graph_raise_pending(g) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMemberDef graph_members[] = {
    {"__name__", T_OBJECT, offsetof(GraphObject, name), READONLY, "name of the graph"},
    {"artifact", T_OBJECT, offsetof(GraphObject, artifact), 0, "where it came from; set by the backend"},
    {"writes_inputs", T_BOOL, offsetof(GraphObject, writes_inputs), READONLY, "whether it writes mutated inputs itself"},
    {"arena_bytes", T_LONGLONG, offsetof(GraphObject, arena_bytes.value), READONLY,
     "scratch memory of one call; 0 if that depends on its sizes"},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef graph_methods[] = {
    {"raise_failed", (PyCFunction)graph_raise_failed, METH_NOARGS, "raise the error of a check that failed on the device"},
    {"release", (PyCFunction)graph_release, METH_NOARGS, "drop kept outputs and packed weights; they come back as needed"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CompiledGraph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "inductor._native.CompiledGraph",
    .tp_basicsize = sizeof(GraphObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A compiled graph: called with its input tensors it returns its outputs.",
    .tp_new = graph_new,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_traverse = (traverseproc)graph_traverse,
    .tp_clear = (inquiry)graph_clear,
    .tp_repr = (reprfunc)graph_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(GraphObject, vectorcall),
    .tp_weaklistoffset = offsetof(GraphObject, weakrefs),
    .tp_members = graph_members,
    .tp_methods = graph_methods,
};
