/* Recording an op: what eager.autograd.record.apply does for one without lists of tensors, without Python.
 *
 * The nodes, saved tensors and specs are the classes of eager.autograd.node and eager.spec; they keep their fields in
 * slots, whose places are looked up once (`register_nodes`). An op says through `_record_plan(needs)` what its formula
 * keeps. What Python has to see goes the long way: leaves without an accumulator, views whose base was written to,
 * hooks on saved tensors, anomaly mode. */
#define PY_SSIZE_T_CLEAN
#include "pointwise.h"
#include "python_compat.h"
#include <structmember.h>

static int g_anomaly;                       /* anomaly mode is on: nodes note where they were made */
static _Thread_local int tls_saved_hooks;   /* hooks on saved tensors are on in this thread */

/* ---- fields of the Python classes ---- */

enum node_field { N_EDGES, N_SEQUENCE, N_SPECS, N_PRE_HOOKS, N_TENSOR_HOOKS, N_HOOKS, N_METADATA, N_RETAINED, N_OP, N_SAVED,
                  N_KEPT, N_NEEDS, N_RELEASED, NUM_NODE };
enum saved_field { S_TENSOR, S_VERSION, S_OWN, S_NUMBER, S_HOOK, S_EDGE, S_LEAF, NUM_SAVED };
enum meta_field { M_HOOKS, M_POST, M_ACCUMULATOR, M_RETAINS, M_BASE, M_REPLAY, M_SEEN, M_CREATION, NUM_META };
enum spec_field { P_SHAPE, P_DTYPE, P_STRIDES, P_DEVICE, NUM_SPEC };

static const char *const node_names[] = {"edges", "sequence", "output_specs", "pre_hooks", "tensor_hooks", "hooks", "_metadata",
                                         "retained", "op", "saved", "kept_outputs", "needs", "released"};
static const char *const saved_names[] = {"tensor", "version", "own_output", "output_nr", "unpack_hook", "edge", "is_leaf"};
static const char *const meta_names[] = {"hooks", "post_hooks", "accumulator", "retains_grad", "base", "replay", "seen_version",
                                         "creation"};
static const char *const spec_names[] = {"shape", "dtype", "strides", "device"};

static const char *const leaf_names[] = {"variable"};

static Py_ssize_t node_at[NUM_NODE], saved_at[NUM_SAVED], spec_at[NUM_SPEC], meta_at[NUM_META], variable_at;
static PyTypeObject *saved_class, *spec_class, *meta_class, *leaf_class;
static PyObject *sequence, *edge_of, *leaf_sequence;

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
            PyErr_Format(PyExc_TypeError, "register_nodes: %R has no slot %s", type, names[i]);
            return -1;
        }
    }
    return 0;
}

/* register_nodes(OpNode, SavedTensor, TensorSpec, AutogradMeta, AccumulateGrad, sequence, leaf_sequence, edge_of) */
PyObject *py_register_nodes(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    for (int i = 0; i < 5; i++)
        if (nargs != 8 || !PyType_Check(args[i]))
            return PyErr_Format(PyExc_TypeError, "register_nodes() takes five classes, an iterator, a number and a function");
    if (find_slots(args[0], node_names, NUM_NODE, node_at) < 0 || find_slots(args[1], saved_names, NUM_SAVED, saved_at) < 0 ||
        find_slots(args[2], spec_names, NUM_SPEC, spec_at) < 0 || find_slots(args[3], meta_names, NUM_META, meta_at) < 0 ||
        find_slots(args[4], leaf_names, 1, &variable_at) < 0)
        return NULL;
    Py_XSETREF(saved_class, (PyTypeObject *)Py_NewRef(args[1]));
    Py_XSETREF(spec_class, (PyTypeObject *)Py_NewRef(args[2]));
    Py_XSETREF(meta_class, (PyTypeObject *)Py_NewRef(args[3]));
    Py_XSETREF(leaf_class, (PyTypeObject *)Py_NewRef(args[4]));
    Py_XSETREF(sequence, Py_NewRef(args[5]));
    Py_XSETREF(leaf_sequence, Py_NewRef(args[6]));
    Py_XSETREF(edge_of, Py_NewRef(args[7]));
    Py_RETURN_NONE;
}

static inline PyObject *field(PyObject *object, Py_ssize_t place) { return *(PyObject **)((char *)object + place); }

static inline void put(PyObject *object, Py_ssize_t place, PyObject *value) /* steals value */
{
    *(PyObject **)((char *)object + place) = value;
}

/* ---- specs ---- */

static PyObject *spec_of_tensor(const TensorObject *t)
{
    PyObject *spec = spec_class->tp_alloc(spec_class, 0);
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
PyObject *py_spec_of(PyObject *Py_UNUSED(self), PyObject *t)
{
    if (!spec_class || !PyObject_TypeCheck(t, &TensorBase_Type))
        return PyErr_Format(PyExc_TypeError, "spec_of: expected a tensor, got %s", Py_TYPE(t)->tp_name);
    return spec_of_tensor((TensorObject *)t);
}

/* ---- saved tensors ---- */

static PyObject *save(TensorObject *t, bool own_output)
{
    PyObject *saved = saved_class->tp_alloc(saved_class, 0);
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
    PyObject *meta = meta_class->tp_alloc(meta_class, 0);
    if (!meta) return NULL;
    static const int unset[] = {M_HOOKS, M_POST, M_ACCUMULATOR, M_BASE, M_CREATION};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) put(meta, meta_at[unset[i]], Py_NewRef(Py_None));
    put(meta, meta_at[M_RETAINS], Py_NewRef(Py_False));
    put(meta, meta_at[M_REPLAY], PyTuple_New(0));
    put(meta, meta_at[M_SEEN], PyLong_FromLong(0));
    return meta;
}

/* A new AccumulateGrad of a leaf, which its meta refers to weakly. */
static PyObject *new_accumulator(TensorObject *t)
{
    PyObject *node = leaf_class->tp_alloc(leaf_class, 0);
    if (!node) return NULL;
    PyObject *specs = PyTuple_New(1), *spec = spec_of_tensor(t), *weak = NULL;
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

/* The accumulator of a leaf that is no view; NULL without an exception for a view. */
static PyObject *accumulator_of(TensorObject *t)
{
    if (t->autograd) {
        if (!Py_IS_TYPE(t->autograd, meta_class) || field(t->autograd, meta_at[M_BASE]) != Py_None) return NULL;
        PyObject *weak = field(t->autograd, meta_at[M_ACCUMULATOR]);
        PyObject *node = weak && PyWeakref_CheckRef(weak) ? weakref_object(weak) : NULL;
        if (node) return node;
    }
    return new_accumulator(t);
}

static PyObject *edge_to(TensorObject *t)
{
    if (!(t->meta & EAGER_REQUIRES_GRAD)) {
        if (t->storage->ask_base && t->autograd) return PyObject_CallOneArg(edge_of, (PyObject *)t);
        Py_RETURN_NONE;
    }
    PyObject *node = t->grad_fn ? (t->autograd ? NULL : Py_NewRef(t->grad_fn)) : accumulator_of(t);
    if (!node) return PyErr_Occurred() ? NULL : PyObject_CallOneArg(edge_of, (PyObject *)t);
    PyObject *number = PyLong_FromUnsignedLong(t->grad_fn ? t->output_nr : 0);
    PyObject *edge = number ? PyTuple_Pack(2, node, number) : NULL;
    Py_XDECREF(number);
    Py_DECREF(node);
    return edge;
}

/* edge_of(t): what eager.autograd.node.edge_of says, by the short way where there is one */
PyObject *py_edge_of(PyObject *Py_UNUSED(self), PyObject *t)
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

/* What an op says of one set of wanted gradients (`Op._record_plan`). Masks have a bit for each argument or output. */
enum plan_field { PLAN_CLASS, PLAN_NEEDS, PLAN_SAVE, PLAN_KEEP, PLAN_TENSORS, PLAN_CONSTANT, NUM_PLAN };

static long mask_of(PyObject *plan, int which) { return PyLong_AsLong(PyTuple_GET_ITEM(plan, which)); }

static bool outputs_of(Parts *p, PyObject *plan, PyObject *const *outs, Py_ssize_t count)
{
    const long keep = mask_of(plan, PLAN_KEEP);
    p->specs = PyList_New(count);
    p->kept = PyTuple_New(count);
    if (!p->specs || !p->kept) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        TensorObject *out = (TensorObject *)outs[i];
        PyObject *spec = spec_of_tensor(out), *kept = NULL;
        if (spec && keep >> i & 1) { /* its number as an output is part of what is saved */
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

static bool make_parts(Parts *p, PyObject *plan, PyObject *const *args, Py_ssize_t nargs, PyObject *const *outs, Py_ssize_t count)
{
    const long save_mask = mask_of(plan, PLAN_SAVE), tensor_mask = mask_of(plan, PLAN_TENSORS);
    p->edges = PyTuple_New(__builtin_popcountl((unsigned long)tensor_mask));
    p->saved = PyTuple_New(nargs);
    if (!p->edges || !p->saved || !outputs_of(p, plan, outs, count)) return false;
    for (Py_ssize_t i = 0, at = 0; i < nargs; i++) {
        PyObject *kept_argument, *edge;
        if (PyObject_TypeCheck(args[i], &TensorBase_Type)) {
            kept_argument = save_mask >> i & 1 ? save((TensorObject *)args[i], false) : spec_of_tensor((TensorObject *)args[i]);
            edge = edge_to((TensorObject *)args[i]);
        }
        else {
            kept_argument = Py_NewRef(args[i]);
            edge = Py_NewRef(Py_None);
        }
        PyTuple_SET_ITEM(p->saved, i, kept_argument);
        if (tensor_mask >> i & 1) PyTuple_SET_ITEM(p->edges, at++, edge);
        else Py_XDECREF(edge);
        if (!kept_argument || !edge) return false;
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
        if (code < EAGER_FLOAT16 || code > EAGER_COMPLEX128 || constant >> i & 1) continue;
        Py_XSETREF(out->grad_fn, Py_NewRef(node));
        out->output_nr = (uint32_t)i;
        out->meta |= EAGER_REQUIRES_GRAD;
    }
    Py_DECREF(node);
    return 0;
}

/* Whether Python need not see this call; and the mask of the arguments that want a gradient. */
static bool may_record(PyObject *const *args, Py_ssize_t nargs, int *wanted)
{
    *wanted = 0;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!PyObject_TypeCheck(args[i], &TensorBase_Type)) continue;
        TensorObject *t = (TensorObject *)args[i];
        if (t->meta & EAGER_INFERENCE) return false;
        if (t->meta & EAGER_REQUIRES_GRAD) *wanted |= 1 << i;
        else if (t->storage->ask_base) return false;
    }
    return *wanted != 0;
}

/* Whether a pointwise op can be computed and recorded here: tensors of our own classes. */
static bool our_classes(PyObject *const *args, Py_ssize_t nargs)
{
    for (Py_ssize_t i = 0; i < nargs; i++)
        if (PyObject_TypeCheck(args[i], &TensorBase_Type) && Py_TYPE(args[i]) != g_tensor_class &&
            !(((TensorObject *)args[i])->meta & EAGER_IS_PARAM))
            return false;
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

PyObject *record_pointwise(PyObject *op, int loop, PyObject **plans, PyObject *const *args, Py_ssize_t nargs)
{
    int wanted;
    if (tls_grad_disabled || tls_mode_depth || g_anomaly || tls_saved_hooks || !sequence || nargs != pointwise_arity(loop) ||
        !may_record(args, nargs, &wanted) || !our_classes(args, nargs))
        return NULL;
    if (!plans[wanted] && !(plans[wanted] = plan_for(op, wanted))) return NULL;
    PyObject *out = pointwise_run(loop, args, nargs);
    if (out && give_history(op, plans[wanted], args, nargs, &out, 1) < 0) Py_CLEAR(out);
    return out;
}

/* record(op, args, below, plans): run below(op, args) with recording off and give the results a history.
 * plans: a dict of the op's, from the mask of wanted gradients to the plan. NotImplemented, with nothing run, where
 * Python has to see the call. */
PyObject *py_record(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    int wanted;
    if (nargs != 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "record() takes an op, a tuple, a function and a dict");
    PyObject *op = args[0], *given = args[1], *const *items = &PyTuple_GET_ITEM(given, 0);
    const Py_ssize_t count = PyTuple_GET_SIZE(given);
    if (g_anomaly || tls_saved_hooks || !sequence || count > 30 || !may_record(items, count, &wanted)) Py_RETURN_NOTIMPLEMENTED;
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

/* ---- what dispatch asks of arguments ---- */

enum { ON_CPU = 1, ON_CUDA = 2, ON_META = 4, IS_FAKE = 8, WANTS_GRAD = 16 };

static int traits_of(PyObject *const *items, Py_ssize_t count, int depth)
{
    int found = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = items[i];
        if (PyObject_TypeCheck(item, &TensorBase_Type)) {
            const uint64_t meta = ((TensorObject *)item)->meta;
            found |= ON_CPU << EAGER_META_DEVICE(meta);
            if (meta & EAGER_FAKE) found |= IS_FAKE;
            if (meta & EAGER_REQUIRES_GRAD) found |= WANTS_GRAD;
            else if (((TensorObject *)item)->storage->ask_base && tensor_wants_grad((TensorObject *)item)) found |= WANTS_GRAD;
        }
        else if (depth && PyTuple_Check(item)) found |= traits_of(&PyTuple_GET_ITEM(item, 0), PyTuple_GET_SIZE(item), 0);
        else if (depth && PyList_Check(item))
            found |= traits_of(((PyListObject *)item)->ob_item, PyList_GET_SIZE(item), 0);
    }
    return found;
}

/* traits(args): of the tensors among arguments and in their lists, together: 1 some on the CPU, 2 CUDA, 4 meta; 8 some
 * are fakes, 16 some want gradients */
PyObject *py_traits(PyObject *Py_UNUSED(self), PyObject *args)
{
    if (!PyTuple_Check(args)) return PyErr_Format(PyExc_TypeError, "traits() takes a tuple");
    return PyLong_FromLong(traits_of(&PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), 1));
}

/* ---- switches ---- */

/* record_in_python(anomaly, hooks): whether anomaly mode is on, and whether hooks on saved tensors are, in this thread;
 * None leaves one as it is */
PyObject *py_record_in_python(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "record_in_python() takes two arguments; got %zd", nargs);
    if (args[0] != Py_None) g_anomaly = PyObject_IsTrue(args[0]) == 1;
    if (args[1] != Py_None) tls_saved_hooks = PyObject_IsTrue(args[1]) == 1;
    Py_RETURN_NONE;
}
