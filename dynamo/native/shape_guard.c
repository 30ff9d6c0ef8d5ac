/* The "shape" check: a relation between sizes, strides, offsets, ints and floats of several slots, as a small stack
 * program. Only a conversion step mixes ints and floats; the writer of the program ensures this.
 *
 * The check passes only if Python's arithmetic agrees: a step that overflows 64 bits, divides by zero or reads an object of another
 * type makes the check fail. A failed check costs a recompilation, never a wrong result. */
#include "guards.h"

/* Operands in the program, values popped and pushed. `dynamo.guards.kinds` has the table. */
static const struct { const char *name; int operands, takes, gives; } step_specs[N_STEPS] = {SHAPE_STEPS};

/* A float on the stack is its bits; so is one in the program, where it is a "const". */
typedef union { int64_t bits; double number; } Both;
enum { DEPTH = 32 };

struct ShapeProgram {
    int length;
    int64_t code[];
};

static int code_of(PyObject *name)
{
    for (int c = 0; PyUnicode_Check(name) && c < N_STEPS; c++)
        if (PyUnicode_CompareWithASCIIString(name, step_specs[c].name) == 0) return c;
    return -1;
}

static int refuse(const char *what, PyObject *given)
{
    PyErr_Format(PyExc_ValueError, "GuardProgram: a shape check: %s, given %R", what, given);
    return -1;
}

/* Reads one step at `at` of the tuple, and moves `at` behind it. */
static int read_step(PyObject *steps, Py_ssize_t *at, const int32_t *slots, int n_slots, ShapeProgram *p, int *depth)
{
    int c = code_of(PyTuple_GET_ITEM(steps, *at));
    if (c < 0) return refuse("no such step", PyTuple_GET_ITEM(steps, *at));
    if (*at + step_specs[c].operands >= PyTuple_GET_SIZE(steps) || *depth < step_specs[c].takes || *depth + step_specs[c].gives > DEPTH)
        return refuse("operands or values are missing, or it is too deep", steps);
    *depth += step_specs[c].gives - step_specs[c].takes;
    p->code[p->length++] = c;
    for (int k = 1; k <= step_specs[c].operands; k++) {
        PyObject *item = PyTuple_GET_ITEM(steps, *at + k);
        int64_t value = PyLong_Check(item) ? PyLong_AsLongLong(item) : -1;
        if (!PyLong_Check(item) || (value == -1 && PyErr_Occurred())) {
            PyErr_Clear();
            return refuse("an operand must be an int of 64 bits", item);
        }
        bool slot = c != STEP_CONST && k == 1;
        if (c != STEP_CONST && (value < 0 || (slot && value >= n_slots))) return refuse("no such slot or dim", item);
        p->code[p->length++] = slot ? slots[value] : value;
    }
    bool last = *at + step_specs[c].operands + 1 == PyTuple_GET_SIZE(steps);
    if (last != (c >= FIRST_END) || (last && *depth)) return refuse("a relation of two values must stand at the end", steps);
    *at += step_specs[c].operands + 1;
    return 0;
}

int shape_build(PyObject *steps, Guard *g)
{
    if (!PyTuple_Check(steps) || !PyTuple_GET_SIZE(steps)) return refuse("expected a tuple of steps", steps);
    ShapeProgram *p = PyMem_Malloc(sizeof(ShapeProgram) + sizeof(int64_t) * (size_t)PyTuple_GET_SIZE(steps));
    if (!p) return PyErr_NoMemory(), -1;
    p->length = 0;
    int depth = 0, failed = 0;
    for (Py_ssize_t at = 0; !failed && at < PyTuple_GET_SIZE(steps);)
        failed = read_step(steps, &at, g->slots, g->length, p, &depth);
    PyMem_Free(g->slots);
    g->shape = p;               /* also after a failure: program_free_code() frees it */
    return failed;
}

void shape_free(ShapeProgram *p) { PyMem_Free(p); }

static bool read_tensor(PyObject *o, int code, int64_t dim, int64_t *value)
{
    if (!PyObject_TypeCheck(o, eager_api->tensor_base_type)) return false;
    const TensorObject *t = (const TensorObject *)o;
    if (code == STEP_OFFSET) return *value = t->offset, true;
    if (dim >= tensor_ndim(t)) return false;
    *value = (code == STEP_SIZE ? tensor_sizes(t) : tensor_strides(t))[dim];
    return true;
}

static bool read_int(PyObject *o, int64_t *value)
{
    int overflow;
    if (!PyLong_CheckExact(o)) return false;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static bool read_float(PyObject *o, int64_t *value)
{
    if (!PyFloat_CheckExact(o)) return false;
    return *value = (Both){.number = PyFloat_AS_DOUBLE(o)}.bits, true;
}

static bool to_float(int64_t *value)
{
    if (*value > (INT64_C(1) << 53) || *value < -(INT64_C(1) << 53)) return false;
    return *value = (Both){.number = (double)*value}.bits, true;
}

static bool combine_floats(int code, int64_t *a, int64_t b)
{
    const double x = (Both){.bits = *a}.number, y = (Both){.bits = b}.number;
    if (code == STEP_FDIV && y == 0) return false;
    const double z = code == STEP_FADD ? x + y : code == STEP_FSUB ? x - y : code == STEP_FMUL ? x * y : x / y;
    return *a = (Both){.number = z}.bits, true;
}

static bool compare_floats(int code, int64_t a, int64_t b)
{
    const double x = (Both){.bits = a}.number, y = (Both){.bits = b}.number;
    switch (code) {
    case STEP_FEQ: return x == y;
    case STEP_FNE: return x != y;
    case STEP_FLT: return x < y;
    case STEP_FLE: return x <= y;
    case STEP_FNOT_LT: return !(x < y);
    default: return !(x <= y);
    }
}

/* a := a op b */
static bool combine(int code, int64_t *a, int64_t b)
{
    int64_t q;
    if (code >= STEP_FADD) return combine_floats(code, a, b);
    switch (code) {
    case STEP_ADD: return !__builtin_add_overflow(*a, b, a);
    case STEP_MUL: return !__builtin_mul_overflow(*a, b, a);
    case STEP_MIN: return *a = *a < b ? *a : b, true;
    case STEP_MAX: return *a = *a > b ? *a : b, true;
    default:                    /* floor division and its remainder */
        if (b == 0 || (b == -1 && *a == INT64_MIN)) return false;
        q = *a / b - ((*a % b != 0) & ((*a < 0) != (b < 0)));
        *a = code == STEP_FLOORDIV ? q : *a - q * b;
        return true;
    }
}

bool shape_holds(const ShapeProgram *p, PyObject **slots)
{
    int64_t stack[DEPTH], *top = stack;
    const int64_t *at = p->code, *end = at + p->length;
    while (at < end) {
        const int code = (int)at[0];
        switch (code) {
        case STEP_CONST: *top++ = at[1]; break;
        case STEP_SIZE: case STEP_STRIDE: case STEP_OFFSET:
            if (!read_tensor(slots[at[1]], code, code == STEP_OFFSET ? 0 : at[2], top++)) return false;
            break;
        case STEP_INT:
            if (!read_int(slots[at[1]], top++)) return false;
            break;
        case STEP_FLOAT:
            if (!read_float(slots[at[1]], top++)) return false;
            break;
        case STEP_TO_FLOAT:
            if (!to_float(&top[-1])) return false;
            break;
        case STEP_FNEG: top[-1] ^= INT64_MIN; break;
        case STEP_EQ: return top[-2] == top[-1];
        case STEP_NE: return top[-2] != top[-1];
        case STEP_LT: return top[-2] < top[-1];
        case STEP_LE: return top[-2] <= top[-1];
        case STEP_FEQ: case STEP_FNE: case STEP_FLT: case STEP_FLE: case STEP_FNOT_LT: case STEP_FNOT_LE: return compare_floats(code, top[-2], top[-1]);
        default:
            top--;
            if (!combine(code, &top[-1], top[0])) return false;
        }
        at += 1 + step_specs[code].operands;
    }
    Py_UNREACHABLE();
}
