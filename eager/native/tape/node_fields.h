/* The Python classes of the reverse graph as C sees them: offsets of their slots, looked up once (record_op.c). */
#ifndef EAGER_NODES_H
#define EAGER_NODES_H

#include "tensor/internal.h"

enum node_field { N_EDGES, N_SEQUENCE, N_SPECS, N_PRE_HOOKS, N_TENSOR_HOOKS, N_HOOKS, N_METADATA, N_RETAINED, N_OP, N_SAVED,
                  N_KEPT, N_NEEDS, N_RELEASED, NUM_NODE };
enum saved_field { S_TENSOR, S_VERSION, S_OWN, S_NUMBER, S_HOOK, S_EDGE, S_LEAF, NUM_SAVED };
enum meta_field { M_HOOKS, M_POST, M_ACCUMULATOR, M_RETAINS, M_BASE, M_REPLAY, M_SEEN, M_CREATION, M_RESHAPED, NUM_META };
enum spec_field { P_SHAPE, P_DTYPE, P_STRIDES, P_DEVICE, NUM_SPEC };

extern Py_ssize_t node_at[NUM_NODE], saved_at[NUM_SAVED], spec_at[NUM_SPEC], meta_at[NUM_META], variable_at;
extern PyTypeObject *g_op_node_class, *g_saved_class, *g_spec_class, *g_meta_class, *g_leaf_class;

static inline PyObject *field(PyObject *object, Py_ssize_t place) { return *(PyObject **)((char *)object + place); }

static inline void put(PyObject *object, Py_ssize_t place, PyObject *value) /* steals value; the slot must be empty */
{
    *(PyObject **)((char *)object + place) = value;
}

static inline void replace(PyObject *object, Py_ssize_t place, PyObject *value) /* steals value */
{
    PyObject *before = field(object, place);
    put(object, place, value);
    Py_XDECREF(before);
}

/* The TensorSpec of a tensor, a new reference. */
PyObject *tensor_spec(const TensorObject *t);

/* Whether Python has to record in this thread: anomaly mode, or hooks on saved tensors. */
bool record_needs_python(void);

/* The record plans of an op (`Op._record_plan`), kept in `plans` by the mask of the arguments that need gradients. */
enum { RECORD_PLANS = 1 << 4 };

/* Mask of the arguments that need a gradient; a list counts if one of its tensors does. -1 if Python has to see the call. */
int record_wanted(PyObject *const *args, Py_ssize_t nargs);

/* Makes `outs` results of `op` in the reverse graph. -1 with an exception. */
int record_history(PyObject *op, PyObject **plans, int wanted, PyObject *const *args, Py_ssize_t nargs, PyObject *const *outs,
                   Py_ssize_t count);

/* Records that `view` is `op` of args[0], for writes through either. -1 with an exception. */
int record_view(TensorObject *view, PyObject *op, PyObject *const *args, Py_ssize_t nargs);

/* Whether every tensor argument has a class of this library. */
bool record_own_classes(PyObject *const *args, Py_ssize_t nargs);

#endif
