/* The state of a stream of random numbers: the base of eager.random.Generator, and the source of the op rng_state. */
#define PY_SSIZE_T_CLEAN
#include "tensor/argument_reading.h"
#include "tensor/functions.h"
#include "tensor/random_stream.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    uint64_t seed, offset;
} StreamObject;

static StreamObject *default_stream; /* of the CPU */

/* Takes counters for a draw of n elements and returns the first. A draw uses its counters in groups of PHILOX_LANES, and at most one
 * for each element of these groups. The GIL keeps two callers from taking the same counters. */
static uint64_t take(StreamObject *s, uint64_t n)
{
    const uint64_t first = s->offset;
    s->offset += (n + PHILOX_LANES - 1) / PHILOX_LANES * PHILOX_LANES; /* the counter has 64 bits and wraps */
    return first;
}

/* A count of elements; false with OverflowError for 2**63 and more. */
static bool read_count(PyObject *o, int64_t *n)
{
    int overflow;
    *n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (*n == -1 && PyErr_Occurred()) return false;
    if (overflow <= 0) return true;
    PyErr_Format(PyExc_OverflowError, "Generator: %S values in one draw; allowed: below 2**63", o);
    return false;
}

static PyObject *state_tensor(StreamObject *s, int64_t n)
{
    const int64_t two = 2;
    TensorObject *t = new_tensor(EAGER_INT64, 1, &two);
    if (t) memcpy(t->data, (uint64_t[]){s->seed, take(s, (uint64_t)n)}, 16);
    return (PyObject *)t;
}

static PyObject *stream_take(PyObject *self, PyObject *count)
{
    int64_t n;
    StreamObject *s = (StreamObject *)self;
    return read_count(count, &n) ? Py_BuildValue("KK", s->seed, take(s, (uint64_t)n)) : NULL;
}

static PyObject *stream_state(PyObject *self, PyObject *count)
{
    int64_t n;
    return read_count(count, &n) ? state_tensor((StreamObject *)self, n) : NULL;
}

bool default_stream_take(int64_t count, uint64_t state[2])
{
    if (!default_stream) return false;
    state[0] = default_stream->seed;
    state[1] = take(default_stream, (uint64_t)count);
    return true;
}

static PyMemberDef stream_members[] = {
    {"_seed", T_ULONGLONG, offsetof(StreamObject, seed), 0, NULL},
    {"_offset", T_ULONGLONG, offsetof(StreamObject, offset), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef stream_methods[] = {
    {"take", stream_take, METH_O, "take(n) -> (seed, offset) of a draw of n elements, used up thereby. Raises: OverflowError for 2**63"},
    {"state", stream_state, METH_O, "state(n): the same as an int64 tensor, as the random ops take it"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Stream_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "eager._native.Stream",
    .tp_doc = "A 64-bit seed, and how many counters of its stream are used up.",
    .tp_basicsize = sizeof(StreamObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_members = stream_members,
    .tp_methods = stream_methods,
};

/* set_default_stream(stream): the stream that rng_state draws from on the CPU */
static PyObject *py_set_default_stream(PyObject *Py_UNUSED(self), PyObject *stream)
{
    if (!PyObject_TypeCheck(stream, &Stream_Type)) return PyErr_Format(PyExc_TypeError, "set_default_stream: expected a Stream");
    Py_XSETREF(default_stream, (StreamObject *)Py_NewRef(stream));
    Py_RETURN_NONE;
}

PyMethodDef random_stream_functions[] = {
    {"set_default_stream", py_set_default_stream, METH_O, "set_default_stream(stream): the CPU's, which rng_state draws from"},
    {NULL, NULL, 0, NULL},
};
