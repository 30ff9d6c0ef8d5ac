/* The sizes of a call of a graph with symbols: read from its inputs, then derived from these. */
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
    return 0;
}
