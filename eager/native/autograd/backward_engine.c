/* The backward engine: runs the reverse graph, latest node first. eager.tape.engine says which nodes to run, and does the steps
 * that have hooks, targets or modes around them.
 *
 * A node runs once, when all gradients of its outputs are summed. The sequence number orders the nodes that are ready:
 * accumulators have the largest, so that a gradient is accumulated as soon as its sum is complete. */
#define PY_SSIZE_T_CLEAN
#include "autograd/accumulate_gradient.h"
#include "autograd/functions.h"
#include "tensor/memory_overlap.h"
#include <string.h>

static PyObject *add_gradient, *fit, *cast_to, *placed; /* of Python */

/* register_gradient_helpers(add_gradient, fit, cast_to, placed): the Python functions that the engine calls; None leaves a function
 * unchanged */
static PyObject *py_register_gradient_helpers(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4) return PyErr_Format(PyExc_TypeError, "register_gradient_helpers() takes four functions; got %zd", nargs);
    PyObject **places[] = {&add_gradient, &fit, &cast_to, &placed};
    for (int i = 0; i < 4; i++)
        if (args[i] != Py_None) Py_XSETREF(*places[i], Py_NewRef(args[i]));
    Py_RETURN_NONE;
}

/* ---- formulas of an op with one real result and no lists: what nearly every step is ---- */

enum source { ARGUMENT, SPEC, COTANGENT, OUTPUT, OUTPUTS, COTANGENTS, NEEDS }; /* numbered as in the op table */
enum { MAX_FORMULA_PARAMS = 16 };

static PyObject *spec_of(PyObject *a)
{
    return PyObject_TypeCheck(a, &TensorBase_Type) ? tensor_spec((TensorObject *)a) : Py_NewRef(a);
}

static PyObject *needs_of(PyObject *places, const bool *needed)
{
    PyObject *made = PyTuple_New(PyTuple_GET_SIZE(places));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(places); i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(needed[PyLong_AsLong(PyTuple_GET_ITEM(places, i))] ? Py_True : Py_False));
    return made;
}

static PyObject *value_of(PyObject *source, PyObject *g, PyObject *args, PyObject *outputs, PyObject *places, const bool *needed)
{
    const long kind = PyLong_AsLong(PyTuple_GET_ITEM(source, 0)), at = PyLong_AsLong(PyTuple_GET_ITEM(source, 1));
    switch (kind) {
    case ARGUMENT: return Py_NewRef(PyTuple_GET_ITEM(args, at));
    case SPEC: return spec_of(PyTuple_GET_ITEM(args, at));
    case COTANGENT: return Py_NewRef(g);
    case OUTPUT: return Py_NewRef(PyTuple_GET_ITEM(outputs, 0));
    case OUTPUTS: return Py_NewRef(outputs);
    case COTANGENTS: {
        PyObject *list = PyList_New(1);
        if (list) PyList_SET_ITEM(list, 0, Py_NewRef(g));
        return list;
    }
    default: return needs_of(places, needed);
    }
}

/* Whether `g` has the dtype of `a`, and with `shape` its shape too. */
static bool fits_input(PyObject *g, PyObject *a, bool shape)
{
    if (!PyObject_TypeCheck(g, &TensorBase_Type)) return false;
    const TensorObject *t = (const TensorObject *)g;
    if (t->meta & EAGER_FAKE) return false;
    if (PyObject_TypeCheck(a, &TensorBase_Type)) {
        const TensorObject *x = (const TensorObject *)a;
        if (x->meta & EAGER_FAKE || (t->meta ^ x->meta) & 0xff) return false;
        return !shape || (tensor_ndim(t) == tensor_ndim(x) &&
                          !memcmp(tensor_sizes(t), tensor_sizes(x), sizeof(int64_t) * (size_t)tensor_ndim(t)));
    }
    if (field(a, spec_at[P_DTYPE]) != g_dtypes[EAGER_META_DTYPE(t->meta)]) return false;
    PyObject *sizes = field(a, spec_at[P_SHAPE]);
    if (!shape) return true;
    if (!PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) != tensor_ndim(t)) return false;
    for (int i = 0; i < tensor_ndim(t); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(sizes, i)) || PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i)) != tensor_sizes(t)[i])
            return false;
    return true;
}

/* The gradient cast, and with `shape` summed, to fit its input `a`; steals g. */
static PyObject *fit_to_input(PyObject *g, PyObject *a, bool shape)
{
    const bool spec = Py_IS_TYPE(a, g_spec_class);
    if (!g || g == Py_None || (!spec && !PyObject_TypeCheck(a, &TensorBase_Type)) || fits_input(g, a, shape)) return g;
    PyObject *target = shape ? Py_NewRef(a) : spec ? Py_NewRef(field(a, spec_at[P_DTYPE])) : PyObject_GetAttrString(a, "dtype");
    PyObject *made = target ? PyObject_CallFunctionObjArgs(shape ? fit : cast_to, g, target, NULL) : NULL;
    Py_XDECREF(target);
    Py_DECREF(g);
    return made;
}

/* Calls one gradient formula and stores its results. rule: (function, joint, places, arguments, sources) */
static bool apply_rule(PyObject *rule, PyObject *g, PyObject *args, PyObject *outputs, const bool *needed, bool shape, PyObject *results)
{
    PyObject *fn = PyTuple_GET_ITEM(rule, 0), *places = PyTuple_GET_ITEM(rule, 2), *given = PyTuple_GET_ITEM(rule, 3),
             *sources = PyTuple_GET_ITEM(rule, 4), *values[MAX_FORMULA_PARAMS];
    const bool joint = PyTuple_GET_ITEM(rule, 1) == Py_True;
    const Py_ssize_t count = PyTuple_GET_SIZE(sources), outs = PyTuple_GET_SIZE(places);
    bool wanted = false;
    for (Py_ssize_t i = 0; i < outs; i++) wanted = wanted || needed[PyLong_AsLong(PyTuple_GET_ITEM(places, i))];
    if (!wanted) return true;
    Py_ssize_t made = 0;
    while (made < count && (values[made] = value_of(PyTuple_GET_ITEM(sources, made), g, args, outputs, places, needed))) made++;
    PyObject *out = made == count ? PyObject_Vectorcall(fn, values, (size_t)count, NULL) : NULL;
    while (made--) Py_DECREF(values[made]);
    if (out && joint) Py_SETREF(out, PySequence_Tuple(out));
    if (out && joint && PyTuple_GET_SIZE(out) != outs) {
        PyErr_Format(PyExc_ValueError, "a gradient formula gave %zd results for %zd inputs", PyTuple_GET_SIZE(out), outs);
        Py_CLEAR(out);
    }
    if (!out) return false;
    for (Py_ssize_t i = 0; i < outs; i++) {
        PyObject *one = Py_NewRef(joint ? PyTuple_GET_ITEM(out, i) : out);
        if (i == outs - 1) Py_CLEAR(out); /* the result then has one reference, which lets the engine write it */
        PyObject *input = PyTuple_GET_ITEM(args, PyLong_AsLong(PyTuple_GET_ITEM(given, i)));
        PyObject *result = fit_to_input(one, input, shape);
        if (!result) {
            Py_XDECREF(out);
            return false;
        }
        PyList_SetItem(results, PyLong_AsLong(PyTuple_GET_ITEM(places, i)), result);
    }
    return true;
}

/* The gradients by an op's formulas. rules: (whether shapes are fit_to_input, number of tensor inputs, formulas) */
static PyObject *plain_gradients(PyObject *rules, PyObject *g, PyObject *args, PyObject *outputs, const bool *needed)
{
    const bool shape = PyTuple_GET_ITEM(rules, 0) == Py_True;
    const long inputs = PyLong_AsLong(PyTuple_GET_ITEM(rules, 1));
    PyObject *formulas = PyTuple_GET_ITEM(rules, 2), *results = PyList_New(inputs);
    for (long i = 0; results && i < inputs; i++) PyList_SET_ITEM(results, i, Py_NewRef(Py_None));
    for (Py_ssize_t i = 0; results && i < PyTuple_GET_SIZE(formulas); i++)
        if (!apply_rule(PyTuple_GET_ITEM(formulas, i), g, args, outputs, needed, shape, results)) Py_CLEAR(results);
    return results;
}

/* The rules of an op, kept in its OpBase (`Op._gradient_rules`); borrowed. */
static PyObject *rules_of(OpBase *op)
{
    if (!op->rules && (op->rules = PyObject_CallMethod((PyObject *)op, "_gradient_rules", NULL)) && !PyTuple_Check(op->rules)) {
        Py_CLEAR(op->rules);
        PyErr_SetString(PyExc_TypeError, "_gradient_rules gave no tuple");
    }
    return op->rules;
}

/* apply_gradient_formulas(op, g, args, outputs, needed): gradients of the tensor inputs of an op with one real result and no lists */
static PyObject *py_apply_gradient_formulas(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5 || !PyObject_TypeCheck(args[0], &OpBase_Type))
        return PyErr_Format(PyExc_TypeError, "apply_gradient_formulas() takes an op, a gradient, its arguments, its outputs and who needs one");
    PyObject *rules = rules_of((OpBase *)args[0]), *given = PySequence_Tuple(args[2]), *flags = PySequence_Tuple(args[4]), *out = NULL;
    bool needed[EAGER_MAX_NDIM] = {false};
    if (rules && given && flags && PyTuple_GET_SIZE(flags) <= EAGER_MAX_NDIM) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(flags); i++) needed[i] = PyObject_IsTrue(PyTuple_GET_ITEM(flags, i)) == 1;
        out = plain_gradients(rules, args[1], given, args[3], needed);
    }
    Py_XDECREF(given);
    Py_XDECREF(flags);
    return out;
}

/* ---- steps that need no Python around them ---- */

/* A saved value, unpacked for a formula: a new reference; NULL with an exception, or without one if Python has to unpack it. */
static PyObject *unpack(PyObject *saved)
{
    if (!Py_IS_TYPE(saved, g_saved_class)) return PyList_Check(saved) ? NULL : Py_NewRef(saved);
    PyObject *t = field(saved, saved_at[S_TENSOR]);
    if (field(saved, saved_at[S_HOOK]) != Py_None || !t || !PyObject_TypeCheck(t, &TensorBase_Type)) return NULL;
    if (PyLong_AsUnsignedLongLongMask(field(saved, saved_at[S_VERSION])) != ((TensorObject *)t)->storage->version) return NULL;
    if (field(saved, saved_at[S_OWN]) == Py_True && !tls_grad_disabled) return NULL; /* with create_graph an output needs its history */
    return Py_NewRef(t);
}

static PyObject *unpack_all(PyObject *saved)
{
    PyObject *made = PyTuple_New(PyTuple_GET_SIZE(saved));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(saved); i++) {
        PyObject *one = unpack(PyTuple_GET_ITEM(saved, i));
        if (!one) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, one);
    }
    return made;
}

/* Frees the saved tensors of a node. A node that holds no tensors can run again: several graphs may share it. */
static void release(PyObject *node)
{
    PyObject *parts[] = {field(node, node_at[N_SAVED]), field(node, node_at[N_KEPT])};
    bool holds = false;
    if (!PyTuple_Check(parts[0]) || !PyTuple_Check(parts[1])) return; /* another thread has released the node during this step */
    for (int p = 0; p < 2; p++)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts[p]); i++)
            holds = holds || Py_IS_TYPE(PyTuple_GET_ITEM(parts[p], i), g_saved_class);
    if (!holds) return;
    replace(node, node_at[N_SAVED], Py_NewRef(Py_None));
    replace(node, node_at[N_KEPT], PyTuple_New(0));
    replace(node, node_at[N_RELEASED], Py_NewRef(Py_True));
}

enum { HOOK_SLOTS = 4 };

static bool has_hooks(PyObject *node)
{
    static const int watched[HOOK_SLOTS] = {N_PRE_HOOKS, N_TENSOR_HOOKS, N_HOOKS, N_RETAINED};
    for (int i = 0; i < HOOK_SLOTS; i++)
        if (field(node, node_at[watched[i]]) != Py_None) return true;
    return false;
}

/* The gradients of an op's inputs as a list. NULL without an exception if Python has to do the step. */
static PyObject *op_step(PyObject *node, PyObject *g, const bool *needed, bool retain)
{
    PyObject *op = field(node, node_at[N_OP]), *saved = field(node, node_at[N_SAVED]), *kept = field(node, node_at[N_KEPT]);
    PyObject *specs = field(node, node_at[N_SPECS]);
    if (!saved || !PyTuple_Check(saved) || !kept || !PyTuple_Check(kept) || !PyObject_TypeCheck(op, &OpBase_Type) ||
        PyList_GET_SIZE(specs) != 1 || !Py_IS_TYPE(PyList_GET_ITEM(specs, 0), g_spec_class))
        return NULL;
    PyObject *dtype = field(PyList_GET_ITEM(specs, 0), spec_at[P_DTYPE]);
    if (dtype == g_dtypes[EAGER_COMPLEX64] || dtype == g_dtypes[EAGER_COMPLEX128] || !((OpBase *)op)->plain) return NULL;
    Py_INCREF(saved); /* formulas run Python code, during which another thread may release the node */
    Py_INCREF(kept);
    PyObject *rules = rules_of((OpBase *)op), *args = rules ? unpack_all(saved) : NULL, *outputs = args ? unpack_all(kept) : NULL;
    PyObject *out = outputs ? plain_gradients(rules, g, args, outputs, needed) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(outputs);
    Py_DECREF(saved);
    Py_DECREF(kept);
    if (out && !retain) release(node);
    return out;
}

/* Whether a gradient has the layout of a leaf without gaps (`first_gradient` in eager/tape/node.py copies other gradients). */
static bool has_layout_of(const TensorObject *g, const TensorObject *leaf)
{
    if (tensor_ndim(g) != tensor_ndim(leaf) || !tensor_is_dense(leaf)) return false;
    for (int d = 0; d < tensor_ndim(g); d++)
        if (tensor_sizes(g)[d] != tensor_sizes(leaf)[d] || (tensor_sizes(g)[d] != 1 && tensor_strides(g)[d] != tensor_strides(leaf)[d]))
            return false;
    return true;
}

/* Accumulates the gradient of a leaf; the engine holds one reference to it. 1: done; 0: Python has to do it; -1: an exception. */
static int leaf_step(PyObject *node, PyObject *g)
{
    TensorObject *leaf = (TensorObject *)field(node, variable_at);
    if (!leaf || !PyObject_TypeCheck((PyObject *)leaf, &TensorBase_Type) || !PyObject_TypeCheck(g, &TensorBase_Type)) return 0; /* sparse */
    if (leaf->autograd && (!Py_IS_TYPE(leaf->autograd, g_meta_class) || field(leaf->autograd, meta_at[M_HOOKS]) != Py_None ||
                           field(leaf->autograd, meta_at[M_POST]) != Py_None))
        return 0;
    if (!leaf->grad && tensor_sole_owner((TensorObject *)g, 1) && has_layout_of((TensorObject *)g, leaf)) {
        leaf->grad = Py_NewRef(g);
        return 1;
    }
    if (leaf->grad && gradient_add_to_leaf(leaf->grad, g)) return 1;
    Py_INCREF(g); /* the number of references that `first_gradient` expects when Python does every step */
    PyObject *done = PyObject_CallFunctionObjArgs(add_gradient, (PyObject *)leaf, g, NULL);
    Py_DECREF(g);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

/* ---- the graph ---- */

typedef struct {
    PyObject *node;
    int64_t sequence;
    PyObject **gradients; /* by output; allocated at the first gradient */
    long outputs, waiting;
    bool needed;
} Entry;

typedef struct {
    Entry *entries;
    long count, room;
    long *slots; /* hash table from node to 1 + its index among the entries */
    size_t mask;
    long *heap, ready;
    PyObject *needed, *special, *step;
    bool retain;
} Graph;

static size_t hash_of(const void *p) { return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ull >> 20; }

static bool rehash(Graph *g)
{
    const size_t size = g->mask ? (g->mask + 1) * 2 : 256;
    long *slots = PyMem_Calloc(size, sizeof(long));
    if (!slots) return PyErr_NoMemory() != NULL;
    PyMem_Free(g->slots);
    g->slots = slots;
    g->mask = size - 1;
    for (long i = 0; i < g->count; i++) {
        size_t at = hash_of(g->entries[i].node) & g->mask;
        while (slots[at]) at = (at + 1) & g->mask;
        slots[at] = i + 1;
    }
    return true;
}

/* Index of a node among the entries; a new node is added. -1 with an exception. */
static long entry_index(Graph *g, PyObject *node)
{
    if ((size_t)g->count * 2 >= g->mask && !rehash(g)) return -1;
    size_t at = hash_of(node) & g->mask;
    for (; g->slots[at]; at = (at + 1) & g->mask)
        if (g->entries[g->slots[at] - 1].node == node) return g->slots[at] - 1;
    if (!PyObject_TypeCheck(node, g_op_node_class->tp_base)) {
        PyErr_Format(PyExc_TypeError, "backward: expected a node, got %s", Py_TYPE(node)->tp_name);
        return -1;
    }
    if (g->count == g->room) {
        const long room = g->room ? g->room * 2 : 64;
        Entry *entries = PyMem_Realloc(g->entries, (size_t)room * sizeof(Entry));
        if (!entries) return PyErr_NoMemory() ? 0 : -1;
        g->entries = entries;
        g->room = room;
    }
    PyObject *edges = field(node, node_at[N_EDGES]), *specs = field(node, node_at[N_SPECS]);
    const int64_t sequence = PyLong_AsLongLong(field(node, node_at[N_SEQUENCE]));
    const Py_ssize_t outputs = PyObject_Length(specs);
    if ((sequence == -1 && PyErr_Occurred()) || outputs < 0) return -1;
    if (!PyTuple_Check(edges)) {
        PyErr_Format(PyExc_TypeError, "backward: the edges of %R are no tuple", node);
        return -1;
    }
    const int needed = g->needed ? PySet_Contains(g->needed, node) : 1;
    if (needed < 0) return -1;
    g->entries[g->count] = (Entry){Py_NewRef(node), sequence, NULL, (long)outputs, 0, needed == 1};
    g->slots[at] = ++g->count;
    return g->count - 1;
}

static PyObject *edges_of(const Graph *g, long at) { return field(g->entries[at].node, node_at[N_EDGES]); }

static bool read_edge(PyObject *edge, PyObject **node, long *number)
{
    if (!PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 2) {
        PyErr_Format(PyExc_TypeError, "backward: %R is no edge", edge);
        return false;
    }
    *node = PyTuple_GET_ITEM(edge, 0);
    *number = PyLong_AsLong(PyTuple_GET_ITEM(edge, 1));
    return *number != -1 || !PyErr_Occurred();
}

/* Adds all nodes that the entries reach, and counts the edges into each. */
static bool explore(Graph *g)
{
    for (long i = 0; i < g->count; i++) {
        PyObject *edges = edges_of(g, i), *child;
        long number;
        for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges); e++) {
            if (PyTuple_GET_ITEM(edges, e) == Py_None) continue;
            if (!read_edge(PyTuple_GET_ITEM(edges, e), &child, &number)) return false;
            const long at = entry_index(g, child);
            if (at < 0) return false;
            g->entries[at].waiting++;
        }
    }
    g->heap = PyMem_Malloc((size_t)g->count * sizeof(long));
    return g->heap || PyErr_NoMemory();
}

static bool before(const Graph *g, long a, long b)
{
    const int64_t x = g->entries[a].sequence, y = g->entries[b].sequence;
    return x != y ? x > y : a < b;
}

static void push(Graph *g, long entry)
{
    long at = g->ready++;
    for (; at > 0 && before(g, entry, g->heap[(at - 1) / 2]); at = (at - 1) / 2) g->heap[at] = g->heap[(at - 1) / 2];
    g->heap[at] = entry;
}

static long pop(Graph *g)
{
    const long top = g->heap[0], last = g->heap[--g->ready];
    long at = 0;
    for (long child = 1; child < g->ready; child = 2 * at + 1) {
        if (child + 1 < g->ready && before(g, g->heap[child + 1], g->heap[child])) child++;
        if (!before(g, g->heap[child], last)) break;
        g->heap[at] = g->heap[child];
        at = child;
    }
    g->heap[at] = last;
    return top;
}

/* Whether an op with an operand on the CPU may have made a gradient: such operands are 0-d, and the others are on CUDA. */
static bool may_be_elsewhere(PyObject *gradient)
{
    if (!PyObject_TypeCheck(gradient, &TensorBase_Type)) return false;
    const TensorObject *t = (const TensorObject *)gradient;
    return EAGER_META_DEVICE(t->meta) == EAGER_CUDA && tensor_ndim(t) == 0 && !(t->meta & EAGER_FAKE);
}

/* Adds a gradient to the sum for an output of an entry; steals the gradient. */
static bool deliver(Entry *entry, long number, PyObject *gradient)
{
    if (number < 0 || number >= entry->outputs) {
        PyErr_Format(PyExc_IndexError, "backward: %R has no output %ld", entry->node, number);
        Py_DECREF(gradient);
        return false;
    }
    if (!entry->gradients && !(entry->gradients = PyMem_Calloc((size_t)entry->outputs, sizeof(PyObject *)))) {
        Py_DECREF(gradient);
        return PyErr_NoMemory() != NULL;
    }
    if (may_be_elsewhere(gradient)) {
        Py_SETREF(gradient, PyObject_CallFunction(placed, "OOl", gradient, entry->node, number));
        if (!gradient) return false;
    }
    PyObject *old = entry->gradients[number];
    if (old && gradient_add(old, gradient)) {
        Py_DECREF(gradient);
        return true;
    }
    entry->gradients[number] = gradient;
    if (!old) return true;
    entry->gradients[number] = PyNumber_Add(old, gradient);
    Py_DECREF(old);
    Py_DECREF(gradient);
    return entry->gradients[number] != NULL;
}

static void drop_gradients(Entry *entry)
{
    for (long i = 0; entry->gradients && i < entry->outputs; i++) Py_XDECREF(entry->gradients[i]);
    PyMem_Free(entry->gradients);
    entry->gradients = NULL;
}

static void drop_graph(Graph *g)
{
    for (long i = 0; i < g->count; i++) {
        drop_gradients(&g->entries[i]);
        Py_DECREF(g->entries[i].node);
    }
    PyMem_Free(g->entries);
    PyMem_Free(g->slots);
    PyMem_Free(g->heap);
}

/* The step in Python: hooks, targets, modes, custom functions. */
static PyObject *python_step(Graph *g, long at)
{
    Entry *entry = &g->entries[at];
    PyObject *list = PyList_New(entry->outputs);
    if (!list) return NULL;
    for (long i = 0; i < entry->outputs; i++) {
        PyList_SET_ITEM(list, i, entry->gradients[i] ? entry->gradients[i] : Py_NewRef(Py_None));
        entry->gradients[i] = NULL;
    }
    PyObject *result = PyObject_CallFunctionObjArgs(g->step, entry->node, list, NULL);
    Py_DECREF(list);
    return result;
}

/* The step of a select or slice: adds the gradient to its part of the gradient of the whole tensor. 1: done; 0: the node is
 * another op; -1: an exception. */
static int view_step(Graph *g, long at)
{
    PyObject *node = g->entries[at].node, *op = field(node, node_at[N_OP]), *edges = edges_of(g, at), *child;
    long number;
    if (PyTuple_GET_SIZE(edges) != 1 || PyTuple_GET_ITEM(edges, 0) == Py_None || !PyObject_TypeCheck(op, &OpBase_Type)) return 0;
    if (((OpBase *)op)->view < 0) return 0;
    if (!read_edge(PyTuple_GET_ITEM(edges, 0), &child, &number)) return -1;
    const long to = entry_index(g, child);
    if (to < 0) return -1;
    Entry *entry = &g->entries[to];
    PyObject *whole = entry->gradients && number >= 0 && number < entry->outputs ? entry->gradients[number] : NULL;
    PyObject *made = gradient_add_part((OpBase *)op, field(node, node_at[N_SAVED]), g->entries[at].gradients[0], whole);
    if (!made) return PyErr_Occurred() ? -1 : 0;
    if (made == whole) Py_DECREF(made);
    else if (!deliver(entry, number, made)) return -1;
    return 1;
}

/* The step in C. NULL without an exception if Python has to do it. */
static PyObject *native_step(Graph *g, long at)
{
    Entry *entry = &g->entries[at];
    PyObject *node = entry->node, *edges = edges_of(g, at);
    if (tls_mode_depth || record_needs_python() || entry->outputs != 1 || !entry->gradients[0] || has_hooks(node)) return NULL;
    if (Py_IS_TYPE(node, g_leaf_class)) {
        const int done = g->special ? 0 : leaf_step(node, entry->gradients[0]);
        return done > 0 ? PyTuple_New(0) : NULL;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(edges);
    if (Py_TYPE(node)->tp_base != g_op_node_class || count > EAGER_MAX_NDIM) return NULL;
    if (g->special) {
        const int special = PySet_Contains(g->special, node);
        if (special) return NULL;
    }
    bool needed[EAGER_MAX_NDIM];
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        needed[i] = edge != Py_None;
        if (!needed[i] || !g->needed) continue;
        const int found = PySet_Contains(g->needed, PyTuple_GET_ITEM(edge, 0));
        if (found < 0) return NULL;
        needed[i] = found == 1;
    }
    if (count == 1 && needed[0]) {
        const int done = view_step(g, at);
        if (done) return done > 0 ? PyTuple_New(0) : NULL;
    }
    return op_step(node, entry->gradients[0], needed, g->retain);
}

/* The results of the node's step as a sequence. */
static PyObject *step(Graph *g, long at)
{
    if (!g->entries[at].gradients || !g->entries[at].needed) return PyTuple_New(0);
    PyObject *result = native_step(g, at);
    if (!result && !PyErr_Occurred()) result = python_step(g, at);
    drop_gradients(&g->entries[at]);
    if (!result || PyList_Check(result) || PyTuple_Check(result)) return result;
    Py_SETREF(result, PySequence_List(result));
    return result;
}

/* Delivers the gradients to the nodes of the inputs; steals `result`. */
static bool deliver_results(Graph *g, long at, PyObject *result)
{
    PyObject *edges = Py_NewRef(edges_of(g, at)), *child;
    long number;
    bool ok = true;
    for (Py_ssize_t e = 0; ok && e < PyTuple_GET_SIZE(edges); e++) {
        if (PyTuple_GET_ITEM(edges, e) == Py_None) continue;
        ok = read_edge(PyTuple_GET_ITEM(edges, e), &child, &number);
        const long to = ok ? entry_index(g, child) : -1;
        ok = to >= 0;
        if (!ok) break;
        PyObject *gradient = e < PySequence_Fast_GET_SIZE(result) ? PySequence_Fast_GET_ITEM(result, e) : Py_None;
        if (gradient != Py_None) ok = deliver(&g->entries[to], number, Py_NewRef(gradient));
        if (ok && --g->entries[to].waiting == 0) {
            if (e == PyTuple_GET_SIZE(edges) - 1) Py_CLEAR(result);
            push(g, to);
        }
    }
    Py_DECREF(edges);
    Py_XDECREF(result);
    return ok;
}

/* run_backward(deliveries, retain, needed, special, step). deliveries: (node, output number, gradient) each. needed: the set of
 * nodes to run, None for all. special: the nodes among them at which gradients are collected. step(node, gradients) does the steps
 * of special nodes and every other step that C cannot do. */
static PyObject *py_run_backward(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5 || !PyList_Check(args[0]) || !add_gradient || !fit)
        return PyErr_Format(PyExc_TypeError, "run_backward() takes deliveries, retain, needed, special and step");
    Graph g = {.needed = args[2] == Py_None ? NULL : args[2], .special = args[3] == Py_None ? NULL : args[3], .step = args[4],
               .retain = PyObject_IsTrue(args[1]) == 1};
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *node, *gradient;
        long number;
        ok = PyArg_ParseTuple(PyList_GET_ITEM(args[0], i), "OlO", &node, &number, &gradient);
        const long at = ok ? entry_index(&g, node) : -1;
        ok = at >= 0 && deliver(&g.entries[at], number, Py_NewRef(gradient));
    }
    ok = ok && explore(&g);
    for (long i = 0; ok && i < g.count; i++)
        if (!g.entries[i].waiting) push(&g, i);
    while (ok && g.ready) {
        const long at = pop(&g);
        PyObject *result = step(&g, at);
        ok = result && deliver_results(&g, at, result);
    }
    drop_graph(&g);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef backward_engine_functions[] = {
    {"register_gradient_helpers", (PyCFunction)(void *)py_register_gradient_helpers, METH_FASTCALL, "register_gradient_helpers(add_gradient, fit, cast_to)"},
    {"apply_gradient_formulas", (PyCFunction)(void *)py_apply_gradient_formulas, METH_FASTCALL, "apply_gradient_formulas(op, g, args, outputs, needed) -> gradients"},
    {"run_backward", (PyCFunction)(void *)py_run_backward, METH_FASTCALL, "run_backward(deliveries, retain, needed, special, step)"},
    {NULL, NULL, 0, NULL},
};
