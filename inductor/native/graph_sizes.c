/* The sizes of a call of a graph with symbols: read from its inputs, then derived from these.
 *
 * Derived sizes are computed by the function of a library, or by a program: pairs (operation, operand) for a machine with a stack.
 * An expression ends with PUT, which stores it as the next derived size; later expressions may read it. */
#include "graph.h"

#include <string.h>

const int64_t *layout_dims(const Layout *layout, const int64_t *sizes, int64_t *room)
{
    if (!layout->numbers)
        return layout->dims;
    for (int i = 0; i < 2 * layout->ndim; i++)
        room[i] = layout->numbers[i] < 0 ? layout->dims[i] : sizes[layout->numbers[i]];
    return room;
}

/* As `inductor.runtime.size_programs` numbers them. */
enum operation { OP_NUMBER = 0, OP_SIZE, OP_ADD, OP_MUL, OP_FLOORDIV, OP_MOD, OP_MIN, OP_MAX, OP_PUT };
enum { STACK = 64 };

static int64_t floordiv(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t combine(int64_t operation, int64_t a, int64_t b)
{
    switch (operation) {
    case OP_ADD:
        return a + b;
    case OP_MUL:
        return a * b;
    case OP_FLOORDIV:
        return b ? floordiv(a, b) : 0;
    case OP_MOD:
        return b ? a - b * floordiv(a, b) : 0;
    case OP_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

/* ValueError for a program that reads a size that is not known yet, or uses more than the stack. */
int sizes_check_program(const GraphObject *g)
{
    int depth = 0, known = g->nsymbols;
    for (int i = 0; i < g->nprogram; i += 2) {
        int64_t operation = g->program[i], operand = g->program[i + 1];
        if (operation == OP_NUMBER || operation == OP_SIZE)
            depth++;
        else
            depth--;
        if (operation < OP_NUMBER || operation > OP_PUT || depth < (operation == OP_PUT ? 0 : 1) || depth > STACK ||
            (operation == OP_SIZE && (operand < 0 || operand >= known)))
            goto wrong;
        known += operation == OP_PUT;
    }
    if (depth == 0 && known == g->nsizes)
        return 0;
wrong:
    PyErr_SetString(PyExc_ValueError, "CompiledGraph: the program of the derived sizes is not valid");
    return -1;
}

static void run_program(const GraphObject *g, int64_t *sizes)
{
    int64_t stack[STACK], *top = stack, *next = sizes + g->nsymbols;
    for (int i = 0; i < g->nprogram; i += 2) {
        int64_t operation = g->program[i], operand = g->program[i + 1];
        if (operation == OP_NUMBER) {
            *top++ = operand;
        } else if (operation == OP_SIZE) {
            *top++ = sizes[operand];
        } else if (operation == OP_PUT) {
            *next++ = *--top;
        } else {
            top--;
            top[-1] = combine(operation, top[-1], top[0]);
        }
    }
}

/* derive: the address of a function, 0 for none, or a tuple of ints, which is a program. */
int sizes_parse_derive(GraphObject *g, PyObject *derive)
{
    if (!PyTuple_Check(derive)) {
        g->derive = (DeriveFn)PyLong_AsVoidPtr(derive);
        return PyErr_Occurred() ? -1 : 0;
    }
    g->nprogram = (int)PyTuple_GET_SIZE(derive);
    if (!(g->program = PyMem_Calloc((size_t)g->nprogram + 1, sizeof(int64_t)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < g->nprogram; i++)
        g->program[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(derive, i));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_symbol(const GraphObject *g, const Symbol *s, PyObject *arg, int64_t *value)
{
    if (s->kind == SYM_INT) {
        *value = PyLong_AsLongLong(arg);
        return *value == -1 && PyErr_Occurred() ? -1 : 0;
    }
    const TensorObject *t = (const TensorObject *)arg;
    int ndim = g->inputs[s->input].ndim;
    *value = s->kind == SYM_OFFSET ? t->offset : t->dims[s->kind == SYM_SIZE ? s->dim : ndim + s->dim];
    return 0;
}

/* The sizes of a call. Its inputs have the dtypes, numbers of dims and kinds that the graph was compiled for.
 * OverflowError for an int beyond 64 bits, RuntimeError for a value outside a symbol's bounds. */
int sizes_take(const GraphObject *g, PyObject *const *args, int64_t *sizes)
{
    for (int i = 0; i < g->nsymbols; i++) {
        const Symbol *s = &g->symbols[i];
        if (read_symbol(g, s, args[s->input], &sizes[i]) < 0)
            return -1;
        if (sizes[i] < s->low || sizes[i] > s->high) {
            const char *what[] = {"size", "stride", "offset", "value"};
            PyErr_Format(PyExc_RuntimeError, "%U: %s %lld of input %d (dim %d); this graph was compiled for %lld to %lld",
                         g->name, what[s->kind], (long long)sizes[i], s->input, s->dim, (long long)s->low,
                         (long long)s->high);
            return -1;
        }
    }
    if (g->derive)
        g->derive(sizes);
    else if (g->program)
        run_program(g, sizes);
    return 0;
}
