/* Recording an op in C: eager.tape.record.apply and note_view.
 *
 * The nodes, saved tensors and specs are the classes of eager.tape.node and eager.base.spec; their fields are slots, whose offsets
 * are looked up once (`register_node_types`). `Op._record_plan(needs)` states which arguments and outputs a formula keeps. Python
 * records the rest: leaves without an accumulator, views whose base was written, hooks on saved tensors, anomaly mode. */
#define PY_SSIZE_T_CLEAN
#include "tape/functions.h"
#include "tape/node_fields.h"
#include "runtime/thread_state.h"
#include "runtime/python_compat.h"
#include <structmember.h>

static int g_anomaly;                       /* anomaly mode is on: nodes note where they were made */
static HOT_THREAD_LOCAL int tls_saved_hooks; /* hooks on saved tensors are on in this thread */

/* ---- fields of the Python classes ---- */

static const char *const node_names[] = {"edges", "sequence", "output_specs", "pre_hooks", "tensor_hooks", "hooks", "_metadata",
                                         "retained", "op", "saved", "kept_outputs", "needs", "released"};
static const char *const saved_names[] = {"tensor", "version", "own_output", "output_nr", "unpack_hook", "edge", "is_leaf"};
static const char *const meta_names[] = {"hooks", "post_hooks", "accumulator", "retains_grad", "base", "replay", "seen_version",
                                         "creation", "reshaped"};
static const char *const spec_names[] = {"shape", "dtype", "strides", "device"};

static const char *const leaf_names[] = {"variable"};

Py_ssize_t node_at[NUM_NODE], saved_at[NUM_SAVED], spec_at[NUM_SPEC], meta_at[NUM_META], variable_at;
PyTypeObject *g_op_node_class, *g_saved_class, *g_spec_class, *g_meta_class, *g_leaf_class;
static PyObject *sequence, *edge_of, *leaf_sequence, *no_grad_view;

static int find_slots(PyObject *type, const char *const *names, int count, Py_ssize_t *places)
{
    for (int i = 0; i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]), *found = NULL;
        PyObject *mro = ((PyTypeObject *)type)->tp_mro;
        for (Py_ssize_t j = 0; name && !found && j < PyTuple_GET_SIZE(mro); j++) {
            PyObject *dict = PyObject_GetAttrString(PyTuple_GET_ITEM(mro, j), "__dict__");
            found = dict ? PyObject_GetItem(dict, name) : NULL;
            if (!found) PyErr_Clear();
            Py_XDECREF(dict);
        }
        bool slot = found && Py_IS_TYPE(found, &PyMemberDescr_Type);
        if (slot) places[i] = ((PyMemberDescrObject *)found)->d_member->offset;
        Py_XDECREF(found);
        Py_XDECREF(name);
        if (!slot) {
            PyErr_Format(PyExc_TypeError, "register_node_types: %R has no slot %s", type, names[i]);
            return -1;
        }
    }
    return 0;
}

/* register_node_types(OpNode, SavedTensor, TensorSpec, AutogradMeta, AccumulateGrad, sequence, leaf_sequence, edge_of,
 * no_grad_view) */
static PyObject *py_register_node_types(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    for (int i = 0; i < 5; i++)
        if (nargs != 9 || !PyType_Check(args[i]))
            return PyErr_Format(PyExc_TypeError, "register_node_types() takes five classes, an iterator, a number, a function and a text");
    if (find_slots(args[0], node_names, NUM_NODE, node_at) < 0 || find_slots(args[1], saved_names, NUM_SAVED, saved_at) < 0 ||
        find_slots(args[2], spec_names, NUM_SPEC, spec_at) < 0 || find_slots(args[3], meta_names, NUM_META, meta_at) < 0 ||
        find_slots(args[4], leaf_names, 1, &variable_at) < 0)
        return NULL;
    Py_XSETREF(g_saved_class, (PyTypeObject *)Py_NewRef(args[1]));
    Py_XSETREF(g_spec_class, (PyTypeObject *)Py_NewRef(args[2]));
    Py_XSETREF(g_meta_class, (PyTypeObject *)Py_NewRef(args[3]));
    Py_XSETREF(g_leaf_class, (PyTypeObject *)Py_NewRef(args[4]));
    Py_XSETREF(sequence, Py_NewRef(args[5]));
    Py_XSETREF(leaf_sequence, Py_NewRef(args[6]));
    Py_XSETREF(edge_of, Py_NewRef(args[7]));
    Py_XSETREF(no_grad_view, Py_NewRef(args[8]));
    Py_XSETREF(g_op_node_class, (PyTypeObject *)Py_NewRef(args[0]));
    Py_RETURN_NONE;
}

/* ---- specs ---- */

PyObject *tensor_spec(const TensorObject *t)
{
    PyObject *spec = g_spec_class->tp_alloc(g_spec_class, 0);
    if (!spec) return NULL;
    PyObject *shape = tensor_dims(t, true), *strides = tensor_dims(t, false);
    PyObject *device = tensor_device_of(EAGER_META_DEVICE(t->meta), EAGER_META_DEVICE_INDEX(t->meta));
    put(spec, spec_at[P_SHAPE], shape);
    put(spec, spec_at[P_DTYPE], Py_NewRef(g_dtypes[EAGER_META_DTYPE(t->meta)]));
    put(spec, spec_at[P_STRIDES], strides);
    put(spec, spec_at[P_DEVICE], device);
    if (!shape || !strides || !device) Py_CLEAR(spec);
    return spec;
}

/* spec_of(t): the TensorSpec of a tensor */
static PyObject *py_spec_of(PyObject *Py_UNUSED(self), PyObject *t)
{
    if (!g_spec_class || !PyObject_TypeCheck(t, &TensorBase_Type))
        return PyErr_Format(PyExc_TypeError, "spec_of: expected a tensor, got %s", Py_TYPE(t)->tp_name);
    return tensor_spec((TensorObject *)t);
}

/* ---- saved tensors ---- */

static PyObject *save(TensorObject *t, bool own_output)
{
    PyObject *saved = g_saved_class->tp_alloc(g_saved_class, 0);
    if (!saved) return NULL;
    PyObject *kept = Py_NewRef((PyObject *)t);
    if (own_output && Py_TYPE(t) != g_tensor_class)
        Py_SETREF(kept, PyObject_CallMethod((PyObject *)t, "_alias", NULL));
    else if (own_output) {
        const uint64_t meta = t->meta & ~(uint64_t)(EAGER_REQUIRES_GRAD | EAGER_IS_PARAM);
        Py_SETREF(kept, (PyObject *)tensor_new(g_tensor_class, t->storage, meta, tensor_ndim(t), tensor_sizes(t),
                                               tensor_strides(t), t->offset));
        if (kept) tensor_share_symbols((TensorObject *)kept, t);
    }
    PyObject *version = PyLong_FromUnsignedLongLong(t->storage->version), *number = PyLong_FromUnsignedLong(t->output_nr);
    put(saved, saved_at[S_TENSOR], kept);
    put(saved, saved_at[S_VERSION], version);
    put(saved, saved_at[S_OWN], Py_NewRef(own_output ? Py_True : Py_False));
    put(saved, saved_at[S_NUMBER], number);
    put(saved, saved_at[S_HOOK], Py_NewRef(Py_None));
    put(saved, saved_at[S_EDGE], Py_NewRef(Py_None));
    put(saved, saved_at[S_LEAF], Py_NewRef(Py_False));
    if (!kept || !version || !number) Py_CLEAR(saved);
    return saved;
}

/* ---- edges ---- */

static void node_defaults(PyObject *node)
{
    static const int unset[] = {N_PRE_HOOKS, N_TENSOR_HOOKS, N_HOOKS, N_METADATA, N_RETAINED};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) put(node, node_at[unset[i]], Py_NewRef(Py_None));
}

static PyObject *new_meta(void)
{
    PyObject *meta = g_meta_class->tp_alloc(g_meta_class, 0);
    if (!meta) return NULL;
    static const int unset[] = {M_HOOKS, M_POST, M_ACCUMULATOR, M_BASE, M_CREATION};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) put(meta, meta_at[unset[i]], Py_NewRef(Py_None));
    put(meta, meta_at[M_RETAINS], Py_NewRef(Py_False));
    put(meta, meta_at[M_RESHAPED], Py_NewRef(Py_False));
    put(meta, meta_at[M_REPLAY], PyTuple_New(0));
    put(meta, meta_at[M_SEEN], PyLong_FromLong(0));
    return meta;
}

/* A new AccumulateGrad of a leaf; the leaf's autograd meta holds a weak reference to it. */
static PyObject *new_accumulator(TensorObject *t)
{
    PyObject *node = g_leaf_class->tp_alloc(g_leaf_class, 0);
    if (!node) return NULL;
    PyObject *specs = PyTuple_New(1), *spec = tensor_spec(t), *weak = NULL;
    if (specs && spec) PyTuple_SET_ITEM(specs, 0, spec);
    put(node, node_at[N_EDGES], PyTuple_New(0));
    put(node, node_at[N_SEQUENCE], Py_NewRef(leaf_sequence));
    put(node, node_at[N_SPECS], specs);
    node_defaults(node);
    put(node, variable_at, Py_NewRef((PyObject *)t));
    if (specs && spec && (t->autograd || (t->autograd = new_meta()))) weak = PyWeakref_NewRef(node, NULL);
    if (!weak) {
        Py_DECREF(node);
        return NULL;
    }
    PyObject *before = field(t->autograd, meta_at[M_ACCUMULATOR]);
    put(t->autograd, meta_at[M_ACCUMULATOR], weak);
    Py_XDECREF(before);
    return node;
}

/* The accumulator of a leaf; NULL without an exception if the leaf is a view. */
static PyObject *accumulator_of(TensorObject *t)
{
    if (t->autograd) {
        if (!Py_IS_TYPE(t->autograd, g_meta_class) || field(t->autograd, meta_at[M_BASE]) != Py_None) return NULL;
        PyObject *weak = field(t->autograd, meta_at[M_ACCUMULATOR]);
        PyObject *node = weak && PyWeakref_CheckRef(weak) ? weakref_object(weak) : NULL;
        if (node) return node;
    }
    return new_accumulator(t);
}

/* Whether grad_fn and output_nr are current: `t` is not a view whose base was written since. */
static bool history_is_current(const TensorObject *t)
{
    if (!t->autograd) return true;
    if (!Py_IS_TYPE(t->autograd, g_meta_class)) return false;
    if (field(t->autograd, meta_at[M_BASE]) == Py_None) return true;
    PyObject *seen = field(t->autograd, meta_at[M_SEEN]);
    return seen && PyLong_AsUnsignedLongLongMask(seen) == t->storage->version;
}

static PyObject *edge_to(TensorObject *t)
{
    if (!(t->meta & EAGER_REQUIRES_GRAD)) {
        if (t->storage->ask_base && t->autograd) return PyObject_CallOneArg(edge_of, (PyObject *)t);
        Py_RETURN_NONE;
    }
    PyObject *node = t->grad_fn ? (history_is_current(t) ? Py_NewRef(t->grad_fn) : NULL) : accumulator_of(t);
    if (!node) return PyErr_Occurred() ? NULL : PyObject_CallOneArg(edge_of, (PyObject *)t);
    PyObject *number = PyLong_FromUnsignedLong(t->grad_fn ? t->output_nr : 0);
    PyObject *edge = number ? PyTuple_Pack(2, node, number) : NULL;
    Py_XDECREF(number);
    Py_DECREF(node);
    return edge;
}

/* edge_of(t): the gradient edge of a tensor, (node, output number) or None */
static PyObject *py_edge_of(PyObject *Py_UNUSED(self), PyObject *t)
{
    if (!PyObject_TypeCheck(t, &TensorBase_Type)) Py_RETURN_NONE;
    return g_anomaly ? PyObject_CallOneArg(edge_of, t) : edge_to((TensorObject *)t);
}

/* ---- one call ---- */

typedef struct {
    PyObject *edges, *saved, *kept, *specs;
} Parts;

static void drop(Parts *p)
{
    Py_XDECREF(p->edges);
    Py_XDECREF(p->saved);
    Py_XDECREF(p->kept);
    Py_XDECREF(p->specs);
}

/* The fields of the tuple from `Op._record_plan`. Masks have a bit for each argument or output. */
enum plan_field { PLAN_CLASS, PLAN_NEEDS, PLAN_SAVE, PLAN_KEEP, PLAN_TENSORS, PLAN_LISTS, PLAN_CONSTANT, NUM_PLAN };

static long mask_of(PyObject *plan, int which) { return PyLong_AsLong(PyTuple_GET_ITEM(plan, which)); }

static bool outputs_of(Parts *p, PyObject *plan, PyObject *const *outs, Py_ssize_t count)
{
    const long keep = mask_of(plan, PLAN_KEEP);
    p->specs = PyList_New(count);
    p->kept = PyTuple_New(count);
    if (!p->specs || !p->kept) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        TensorObject *out = (TensorObject *)outs[i];
        PyObject *spec = tensor_spec(out), *kept = NULL;
        if (spec && keep >> i & 1) { /* the saved tensor records its output number */
            const uint32_t before = out->output_nr;
            out->output_nr = (uint32_t)i;
            kept = save(out, true);
            out->output_nr = before;
        }
        else if (spec)
            kept = Py_NewRef(Py_None);
        PyList_SET_ITEM(p->specs, i, spec);
        PyTuple_SET_ITEM(p->kept, i, kept);
        if (!kept) return false;
    }
    return true;
}

static bool is_list(PyObject *o) { return PyTuple_Check(o) || PyList_Check(o); }

/* The form in which a node keeps an argument: the tensor if `whole`, else its spec; any other object unchanged. */
static PyObject *keep_argument(PyObject *argument, bool whole)
{
    if (!PyObject_TypeCheck(argument, &TensorBase_Type)) return Py_NewRef(argument);
    return whole ? save((TensorObject *)argument, false) : tensor_spec((TensorObject *)argument);
}

/* Appends the edge along which the gradient of `argument` flows. */
static bool add_edge(PyObject *edges, Py_ssize_t *at, PyObject *argument)
{
    PyObject *edge = PyObject_TypeCheck(argument, &TensorBase_Type) ? edge_to((TensorObject *)argument) : Py_NewRef(Py_None);
    PyTuple_SET_ITEM(edges, (*at)++, edge);
    return edge != NULL;
}

/* A list of tensors: one edge each, and a list of the kept forms. */
static PyObject *keep_list(PyObject *list, bool whole, PyObject *edges, Py_ssize_t *at)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    PyObject *kept = PyList_New(count);
    for (Py_ssize_t i = 0; kept && i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i), *one = keep_argument(item, whole);
        PyList_SET_ITEM(kept, i, one);
        if (!one || !add_edge(edges, at, item)) Py_CLEAR(kept);
    }
    return kept;
}

static Py_ssize_t count_edges(PyObject *const *args, Py_ssize_t nargs, long tensors, long lists)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (lists >> i & 1 && is_list(args[i])) count += PySequence_Fast_GET_SIZE(args[i]);
        else count += tensors >> i & 1;
    }
    return count;
}

static bool make_parts(Parts *p, PyObject *plan, PyObject *const *args, Py_ssize_t nargs, PyObject *const *outs, Py_ssize_t count)
{
    const long whole = mask_of(plan, PLAN_SAVE), tensors = mask_of(plan, PLAN_TENSORS), lists = mask_of(plan, PLAN_LISTS);
    p->edges = PyTuple_New(count_edges(args, nargs, tensors, lists));
    p->saved = PyTuple_New(nargs);
    if (!p->edges || !p->saved || !outputs_of(p, plan, outs, count)) return false;
    for (Py_ssize_t i = 0, at = 0; i < nargs; i++) {
        const bool list = lists >> i & 1 && is_list(args[i]);
        PyObject *kept = list ? keep_list(args[i], whole >> i & 1, p->edges, &at) : keep_argument(args[i], whole >> i & 1);
        PyTuple_SET_ITEM(p->saved, i, kept);
        if (!kept || (!list && tensors >> i & 1 && !add_edge(p->edges, &at, args[i]))) return false;
    }
    return true;
}

static int give_history(PyObject *op, PyObject *plan, PyObject *const *args, Py_ssize_t nargs, PyObject *const *outs,
                        Py_ssize_t count)
{
    PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(plan, PLAN_CLASS);
    const long constant = mask_of(plan, PLAN_CONSTANT);
    Parts parts = {NULL};
    PyObject *number = PyIter_Next(sequence);
    PyObject *node = number && make_parts(&parts, plan, args, nargs, outs, count) ? type->tp_alloc(type, 0) : NULL;
    if (!node) {
        Py_XDECREF(number);
        drop(&parts);
        return -1;
    }
    put(node, node_at[N_EDGES], parts.edges);
    put(node, node_at[N_SEQUENCE], number);
    put(node, node_at[N_SPECS], parts.specs);
    node_defaults(node);
    put(node, node_at[N_OP], Py_NewRef(op));
    put(node, node_at[N_SAVED], parts.saved);
    put(node, node_at[N_KEPT], parts.kept);
    put(node, node_at[N_NEEDS], Py_NewRef(PyTuple_GET_ITEM(plan, PLAN_NEEDS)));
    put(node, node_at[N_RELEASED], Py_NewRef(Py_False));
    for (Py_ssize_t i = 0; i < count; i++) {
        TensorObject *out = (TensorObject *)outs[i];
        const int code = EAGER_META_DTYPE(out->meta);
        if (!dtype_is_continuous(code) || constant >> i & 1) continue;
        Py_XSETREF(out->grad_fn, Py_NewRef(node));
        out->output_nr = (uint32_t)i;
        out->meta |= EAGER_REQUIRES_GRAD;
    }
    Py_DECREF(node);
    return 0;
}

bool record_needs_python(void) { return g_anomaly || tls_saved_hooks || !sequence; }

int record_wanted(PyObject *const *args, Py_ssize_t nargs)
{
    int wanted = 0;
    bool inference = false;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        PyObject *const *items = &args[i];
        Py_ssize_t count = 1;
        if (is_list(args[i])) {
            items = PySequence_Fast_ITEMS(args[i]);
            count = PySequence_Fast_GET_SIZE(args[i]);
        }
        for (Py_ssize_t j = 0; j < count; j++) {
            if (!PyObject_TypeCheck(items[j], &TensorBase_Type)) continue;
            const TensorObject *t = (const TensorObject *)items[j];
            if (t->meta & EAGER_INFERENCE) inference = true;
            if (t->meta & EAGER_REQUIRES_GRAD) wanted |= i < 30 ? 1 << i : 0;
            else if (t->storage->ask_base) return -1;
        }
    }
    return wanted && inference ? -1 : wanted;
}

bool record_own_classes(PyObject *const *args, Py_ssize_t nargs)
{
    for (Py_ssize_t i = 0; i < nargs; i++) {
        PyObject *const *items = &args[i];
        Py_ssize_t count = 1;
        if (is_list(args[i])) {
            items = PySequence_Fast_ITEMS(args[i]);
            count = PySequence_Fast_GET_SIZE(args[i]);
        }
        for (Py_ssize_t j = 0; j < count; j++)
            if (Py_TYPE(items[j]) != g_tensor_class && PyObject_TypeCheck(items[j], &TensorBase_Type) &&
                !(((TensorObject *)items[j])->meta & EAGER_IS_PARAM))
                return false;
    }
    return true;
}

static PyObject *plan_for(PyObject *op, int wanted) /* a new reference */
{
    PyObject *plan = PyObject_CallMethod(op, "_record_plan", "i", wanted);
    if (plan && (!PyTuple_Check(plan) || PyTuple_GET_SIZE(plan) != NUM_PLAN)) {
        Py_DECREF(plan);
        return PyErr_Format(PyExc_TypeError, "_record_plan of %R is no tuple of %d", op, NUM_PLAN);
    }
    return plan;
}

int record_history(PyObject *op, PyObject **plans, int wanted, PyObject *const *args, Py_ssize_t nargs, PyObject *const *outs,
                   Py_ssize_t count)
{
    if (!plans[wanted] && !(plans[wanted] = plan_for(op, wanted))) return -1;
    return give_history(op, plans[wanted], args, nargs, outs, count);
}

int record_view(TensorObject *view, PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    TensorObject *x = (TensorObject *)args[0];
    PyObject *given = PyTuple_New(nargs - 1), *meta = view->autograd ? Py_NewRef(view->autograd) : new_meta();
    for (Py_ssize_t i = 1; given && i < nargs; i++) PyTuple_SET_ITEM(given, i - 1, Py_NewRef(args[i]));
    PyObject *step = given ? PyTuple_Pack(2, op, given) : NULL, *replay = step ? PyTuple_Pack(1, step) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(step);
    PyObject *base = (PyObject *)x, *creation = Py_None;
    if (replay && x->autograd && field(x->autograd, meta_at[M_BASE]) != Py_None) {
        base = field(x->autograd, meta_at[M_BASE]);
        creation = field(x->autograd, meta_at[M_CREATION]);
        Py_SETREF(replay, PySequence_Concat(field(x->autograd, meta_at[M_REPLAY]), replay));
    }
    PyObject *seen = replay ? PyLong_FromUnsignedLongLong(view->storage->version) : NULL;
    if (!meta || !seen) {
        Py_XDECREF(meta);
        Py_XDECREF(replay);
        return -1;
    }
    if (tls_grad_disabled) {
        creation = no_grad_view;
        if (tensor_wants_grad(x)) view->storage->ask_base = 1; /* a view without a history needs gradients if its base does */
    }
    replace(meta, meta_at[M_BASE], Py_NewRef(base));
    replace(meta, meta_at[M_REPLAY], replay);
    replace(meta, meta_at[M_SEEN], seen);
    replace(meta, meta_at[M_CREATION], Py_NewRef(creation));
    Py_XSETREF(view->autograd, meta);
    return 0;
}

/* record_op(op, args, below, plans): run below(op, args) with recording off and record its results. plans: the op's dict from
 * masks of arguments that need gradients to record plans. NotImplemented, with nothing run, if Python has to see the call. */
static PyObject *py_record_op(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "record_op() takes an op, a tuple, a function and a dict");
    PyObject *op = args[0], *given = args[1], *const *items = &PyTuple_GET_ITEM(given, 0);
    const Py_ssize_t count = PyTuple_GET_SIZE(given);
    const int wanted = record_needs_python() || count > 30 ? -1 : record_wanted(items, count);
    if (wanted <= 0) Py_RETURN_NOTIMPLEMENTED;
    PyObject *key = PyLong_FromLong(wanted);
    PyObject *plan = key ? Py_XNewRef(PyDict_GetItemWithError(args[3], key)) : NULL;
    if (!plan && !PyErr_Occurred() && (plan = plan_for(op, wanted)) && PyDict_SetItem(args[3], key, plan) < 0) Py_CLEAR(plan);
    Py_XDECREF(key);
    if (!plan) return NULL;
    tls_grad_disabled = 1;
    PyObject *result = PyObject_CallFunctionObjArgs(args[2], op, given, NULL);
    tls_grad_disabled = 0;
    if (result) {
        const bool one = PyObject_TypeCheck(result, &TensorBase_Type);
        PyObject *outs = one ? NULL : PySequence_Tuple(result);
        for (Py_ssize_t i = 0; outs && i < PyTuple_GET_SIZE(outs); i++)
            if (!PyObject_TypeCheck(PyTuple_GET_ITEM(outs, i), &TensorBase_Type)) {
                PyErr_Format(PyExc_TypeError, "%R returned %R, which is no tensor", op, PyTuple_GET_ITEM(outs, i));
                Py_CLEAR(outs);
            }
        if ((!one && !outs) || give_history(op, plan, items, count, one ? &result : &PyTuple_GET_ITEM(outs, 0),
                                            one ? 1 : PyTuple_GET_SIZE(outs)) < 0)
            Py_CLEAR(result);
        Py_XDECREF(outs);
    }
    Py_DECREF(plan);
    return result;
}

/* ---- traits of arguments, for dispatch ---- */

enum { ON_CPU = 1, ON_CUDA = 2, ON_META = 4, IS_FAKE = 8, WANTS_GRAD = 16, FLOAT8 = 32 };

static int traits_of(PyObject *const *items, Py_ssize_t count, int depth)
{
    int found = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = items[i];
        if (PyObject_TypeCheck(item, &TensorBase_Type)) {
            const uint64_t meta = ((TensorObject *)item)->meta;
            found |= ON_CPU << EAGER_META_DEVICE(meta);
            if (meta & EAGER_FAKE) found |= IS_FAKE;
            if (dtype_is_float8(EAGER_META_DTYPE(meta))) found |= FLOAT8;
            if (meta & EAGER_REQUIRES_GRAD) found |= WANTS_GRAD;
            else if (((TensorObject *)item)->storage->ask_base && tensor_wants_grad((TensorObject *)item)) found |= WANTS_GRAD;
        }
        else if (depth && PyTuple_Check(item)) found |= traits_of(&PyTuple_GET_ITEM(item, 0), PyTuple_GET_SIZE(item), 0);
        else if (depth && PyList_Check(item))
            found |= traits_of(((PyListObject *)item)->ob_item, PyList_GET_SIZE(item), 0);
    }
    return found;
}

/* argument_traits(args): flags of the tensors among the arguments and in their lists: 1 CPU, 2 CUDA, 4 meta device, 8 fake, 16
 * needs a gradient, 32 8-bit floats */
static PyObject *py_argument_traits(PyObject *Py_UNUSED(self), PyObject *args)
{
    if (!PyTuple_Check(args)) return PyErr_Format(PyExc_TypeError, "argument_traits() takes a tuple");
    return PyLong_FromLong(traits_of(&PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), 1));
}

/* ---- switches ---- */

/* set_python_recording(anomaly, hooks): whether anomaly mode is on, and whether this thread has hooks on saved tensors; None
 * leaves a setting unchanged */
static PyObject *py_set_python_recording(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "set_python_recording() takes two arguments; got %zd", nargs);
    if (args[0] != Py_None) g_anomaly = PyObject_IsTrue(args[0]) == 1;
    if (args[1] != Py_None) tls_saved_hooks = PyObject_IsTrue(args[1]) == 1;
    Py_RETURN_NONE;
}

PyMethodDef record_op_functions[] = {
    {"register_node_types", (PyCFunction)(void *)py_register_node_types, METH_FASTCALL, "register_node_types(five classes, sequence, leaf_sequence, edge_of, no_grad_view)"},
    {"record_op", (PyCFunction)(void *)py_record_op, METH_FASTCALL, "record_op(op, args, below, plans) -> result or NotImplemented"},
    {"argument_traits", py_argument_traits, METH_O, "argument_traits(args) -> what the tensors among them are"},
    {"edge_of", py_edge_of, METH_O, "edge_of(tensor) -> (node, output number) or None"},
    {"spec_of", py_spec_of, METH_O, "spec_of(tensor) -> TensorSpec"},
    {"set_python_recording", (PyCFunction)(void *)py_set_python_recording, METH_FASTCALL, "set_python_recording(anomaly, hooks)"},
    {NULL, NULL, 0, NULL},
};
