/* Recording a pointwise op: what eager.autograd.record.apply does for one, without Python.
 *
 * The nodes, saved tensors and specs are the classes of eager.autograd.node and eager.spec; they keep their fields in
 * slots, whose places are looked up once (`register_nodes`). An op says through `_record_plan(needs)` what its formula
 * keeps. What Python has to see goes the long way: leaves without an accumulator, views whose base was written to,
 * hooks on saved tensors, anomaly mode. */
#define PY_SSIZE_T_CLEAN
#include "pointwise.h"
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

static PyObject *plain_tuple(const int64_t *values, int n)
{
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

static PyObject *spec_of_tensor(const TensorObject *t)
{
    PyObject *spec = spec_class->tp_alloc(spec_class, 0);
    if (!spec) return NULL;
    PyObject *shape = plain_tuple(tensor_sizes(t), tensor_ndim(t)), *strides = plain_tuple(tensor_strides(t), tensor_ndim(t));
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
    if (own_output) {
        const uint64_t meta = t->meta & ~(uint64_t)(EAGER_REQUIRES_GRAD | EAGER_IS_PARAM);
        Py_SETREF(kept, (PyObject *)tensor_new(g_tensor_class, t->storage, meta, tensor_ndim(t), tensor_sizes(t),
                                               tensor_strides(t), t->offset));
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
        PyObject *node = weak && PyWeakref_CheckRef(weak) ? PyWeakref_GET_OBJECT(weak) : Py_None; /* borrowed; we hold the GIL */
        if (node != Py_None) return Py_NewRef(node);
    }
    return new_accumulator(t);
}

static PyObject *edge_to(TensorObject *t)
{
    if (!(t->meta & EAGER_REQUIRES_GRAD)) Py_RETURN_NONE;
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

/* plan: (node class, needs, mask of the arguments to save, whether to keep the output) */
static bool make_parts(Parts *p, PyObject *plan, PyObject *const *args, Py_ssize_t nargs, int tensors, TensorObject *out)
{
    const long save_mask = PyLong_AsLong(PyTuple_GET_ITEM(plan, 2));
    const bool keep_output = PyTuple_GET_ITEM(plan, 3) == Py_True;
    p->edges = PyTuple_New(tensors);
    p->saved = PyTuple_New(nargs);
    p->specs = PyList_New(1);
    p->kept = PyTuple_New(1);
    if (!p->edges || !p->saved || !p->specs || !p->kept) return false;
    PyObject *spec = spec_of_tensor(out), *kept = keep_output ? save(out, true) : Py_NewRef(Py_None);
    PyList_SET_ITEM(p->specs, 0, spec);
    PyTuple_SET_ITEM(p->kept, 0, kept);
    if (!spec || !kept) return false;
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
        if (at < tensors) PyTuple_SET_ITEM(p->edges, at++, edge); /* the tensor parameters come first */
        else Py_XDECREF(edge);
        if (!kept_argument || !edge) return false;
    }
    return true;
}

static int give_history(PyObject *op, PyObject *plan, PyObject *const *args, Py_ssize_t nargs, int tensors, TensorObject *out)
{
    PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(plan, 0);
    Parts parts = {NULL};
    PyObject *number = PyIter_Next(sequence);
    PyObject *node = number && make_parts(&parts, plan, args, nargs, tensors, out) ? type->tp_alloc(type, 0) : NULL;
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
    put(node, node_at[N_NEEDS], Py_NewRef(PyTuple_GET_ITEM(plan, 1)));
    put(node, node_at[N_RELEASED], Py_NewRef(Py_False));
    Py_XSETREF(out->grad_fn, node);
    out->output_nr = 0;
    out->meta |= EAGER_REQUIRES_GRAD;
    return 0;
}

/* Whether Python need not see this call; and the mask of the arguments that want a gradient. */
static bool may_record(PyObject *const *args, Py_ssize_t nargs, int *wanted)
{
    *wanted = 0;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!PyObject_TypeCheck(args[i], &TensorBase_Type)) continue;
        TensorObject *t = (TensorObject *)args[i];
        if ((t->meta & EAGER_INFERENCE) || (Py_TYPE(t) != g_tensor_class && !(t->meta & EAGER_IS_PARAM))) return false;
        if (t->meta & EAGER_REQUIRES_GRAD) *wanted |= 1 << i;
    }
    return *wanted != 0;
}

PyObject *record_pointwise(PyObject *op, int loop, int tensor_parameters, PyObject **plans, PyObject *const *args, Py_ssize_t nargs)
{
    int wanted;
    if (tls_grad_disabled || tls_mode_depth || g_anomaly || tls_saved_hooks || !sequence || nargs != pointwise_arity(loop) ||
        !may_record(args, nargs, &wanted))
        return NULL;
    if (!plans[wanted]) {
        PyObject *plan = PyObject_CallMethod(op, "_record_plan", "i", wanted);
        if (!plan) return NULL;
        if (plan != Py_None && (!PyTuple_Check(plan) || PyTuple_GET_SIZE(plan) != 4)) {
            Py_DECREF(plan);
            return PyErr_Format(PyExc_TypeError, "_record_plan of %R is no tuple of four", op);
        }
        plans[wanted] = plan;
    }
    if (plans[wanted] == Py_None) return NULL;
    PyObject *out = pointwise_run(loop, args, nargs);
    if (out && give_history(op, plans[wanted], args, nargs, tensor_parameters, (TensorObject *)out) < 0) Py_CLEAR(out);
    return out;
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
