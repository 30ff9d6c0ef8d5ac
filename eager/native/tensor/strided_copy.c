/* Copies between arrays of one element size and any strides, in tiles if the contiguous dims of the two differ.
 *
 * A transposing copy reads or writes with a stride in its inner loop; line by line it touches a new cache line at every element.
 * Over tiles of 32 x 32 it uses each fetched line whole. */
#define PY_SSIZE_T_CLEAN
#include "runtime/parallel_loops.h"
KERNEL_FILE
#include "tensor/argument_reading.h"
#include "tensor/functions.h"
#include <stdlib.h>
#include <string.h>

enum { TILE = 32 };

typedef struct {
    long size, to, from; /* strides in elements */
} Dim;

typedef struct {
    char *to;
    const char *from;
    Dim dims[EAGER_MAX_NDIM]; /* outermost first; the last is the inner loop, for tiles the last two */
    int ndim, tiled;
    long outer; /* product of the sizes before the inner one or two */
} Copy;

#define COPIES(N, T)                                                                                        \
    CLONES static void line_##N(T *to, const T *from, long n, long step_to, long step_from)                 \
    {                                                                                                       \
        if (step_to == 1 && step_from == 1) memcpy(to, from, (size_t)n * sizeof(T));                        \
        else if (step_to == 1) for (long i = 0; i < n; i++) to[i] = from[i * step_from];                    \
        else for (long i = 0; i < n; i++) to[i * step_to] = from[i * step_from];                            \
    }                                                                                                       \
    /* Rows of `to` are contiguous, columns of `from` are. */                                               \
    CLONES static void tile_##N(T *restrict to, const T *restrict from, long rows, long columns,            \
                                long pitch_to, long pitch_from)                                             \
    {                                                                                                       \
        if (rows == TILE && columns == TILE)                                                                \
            for (long i = 0; i < TILE; i++)                                                                 \
                for (long j = 0; j < TILE; j++) to[i * pitch_to + j] = from[i + j * pitch_from];            \
        else                                                                                                \
            for (long i = 0; i < rows; i++)                                                                 \
                for (long j = 0; j < columns; j++) to[i * pitch_to + j] = from[i + j * pitch_from];         \
    }
COPIES(1, uint8_t)
COPIES(2, uint16_t)
COPIES(4, uint32_t)
COPIES(8, uint64_t)

static void offsets(const Copy *c, long at, int dims, long *to, long *from)
{
    *to = *from = 0;
    for (int d = dims - 1; d >= 0; d--) {
        long i = at % c->dims[d].size;
        at /= c->dims[d].size;
        *to += i * c->dims[d].to;
        *from += i * c->dims[d].from;
    }
}

#define RUNS(N, T)                                                                                          \
    static void lines_##N(void *context, long begin, long end)                                              \
    {                                                                                                       \
        const Copy *c = context;                                                                            \
        const Dim *inner = &c->dims[c->ndim - 1];                                                           \
        for (long at = begin; at < end; at++) {                                                             \
            long to, from;                                                                                  \
            offsets(c, at, c->ndim - 1, &to, &from);                                                        \
            line_##N((T *)c->to + to, (const T *)c->from + from, inner->size, inner->to, inner->from);      \
        }                                                                                                   \
    }                                                                                                       \
    /* One unit: a band of TILE rows of one of the outer matrices. */                                       \
    static void tiles_##N(void *context, long begin, long end)                                              \
    {                                                                                                       \
        const Copy *c = context;                                                                            \
        const Dim *row = &c->dims[c->ndim - 2], *column = &c->dims[c->ndim - 1];                            \
        const long bands = (row->size + TILE - 1) / TILE;                                                   \
        for (long at = begin; at < end; at++) {                                                             \
            long to, from, i = at % bands * TILE;                                                           \
            offsets(c, at / bands, c->ndim - 2, &to, &from);                                                \
            const long rows = row->size - i < TILE ? row->size - i : TILE;                                  \
            for (long j = 0; j < column->size; j += TILE) {                                                 \
                const long columns = column->size - j < TILE ? column->size - j : TILE;                     \
                tile_##N((T *)c->to + to + i * row->to + j, (const T *)c->from + from + i + j * column->from, \
                         rows, columns, row->to, column->from);                                             \
            }                                                                                               \
        }                                                                                                   \
    }
RUNS(1, uint8_t)
RUNS(2, uint16_t)
RUNS(4, uint32_t)
RUNS(8, uint64_t)

static int by_target(const void *x, const void *y)
{
    const Dim *a = x, *b = y;
    return (a->to < b->to) - (a->to > b->to);
}

/* Drops dims of size 1, orders by the target's strides, and merges dims that are contiguous in both arrays. */
static void simplify(Copy *c)
{
    int n = 0;
    for (int d = 0; d < c->ndim; d++)
        if (c->dims[d].size != 1) c->dims[n++] = c->dims[d];
    qsort(c->dims, (size_t)n, sizeof(Dim), by_target);
    int kept = 0;
    for (int d = 0; d < n; d++) {
        Dim *last = kept ? &c->dims[kept - 1] : NULL;
        const Dim now = c->dims[d];
        if (last && last->to == now.to * now.size && last->from == now.from * now.size)
            *last = (Dim){last->size * now.size, now.to, now.from};
        else c->dims[kept++] = now;
    }
    if (!kept) c->dims[kept++] = (Dim){1, 1, 1};
    c->ndim = kept;
}

/* Chooses tiles if the source is contiguous along another dim than the target. */
static void choose(Copy *c)
{
    const Dim inner = c->dims[c->ndim - 1];
    c->tiled = 0;
    if (inner.to == 1 && inner.from != 1 && inner.size >= 4) {
        for (int d = c->ndim - 2; d >= 0 && !c->tiled; d--) {
            if (c->dims[d].from != 1 || c->dims[d].size < 4) continue;
            const Dim row = c->dims[d];
            memmove(&c->dims[d], &c->dims[d + 1], sizeof(Dim) * (size_t)(c->ndim - 2 - d));
            c->dims[c->ndim - 2] = row;
            c->tiled = 1;
        }
    }
    c->outer = 1;
    for (int d = 0; d < c->ndim - 1 - c->tiled; d++) c->outer *= c->dims[d].size;
    if (c->tiled) c->outer *= (c->dims[c->ndim - 2].size + TILE - 1) / TILE;
}

static bool describe(Copy *c, const Py_buffer *to, const Py_buffer *from)
{
    if (to->itemsize != from->itemsize || to->ndim != from->ndim || to->ndim > EAGER_MAX_NDIM) return false;
    c->to = to->buf;
    c->from = from->buf;
    c->ndim = to->ndim;
    for (int d = 0; d < to->ndim; d++) {
        if (to->shape[d] != from->shape[d] || to->strides[d] % to->itemsize || from->strides[d] % to->itemsize) return false;
        c->dims[d] = (Dim){(long)to->shape[d], (long)(to->strides[d] / to->itemsize), (long)(from->strides[d] / to->itemsize)};
        if (c->dims[d].size != 1 && c->dims[d].to <= 0) return false;
    }
    return true;
}

static void run(Copy *c, int itemsize, double elements)
{
    static const LoopFn lines[] = {lines_1, lines_2, lines_4, lines_8}, tiles[] = {tiles_1, tiles_2, tiles_4, tiles_8};
    const int size = itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : 3;
    simplify(c);
    choose(c);
    const long grain = (long)((double)c->outer * 16384.0 / elements) + 1;
    parallel(c->tiled ? tiles[size] : lines[size], c, c->outer, grain, elements);
}

void copy_elements(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, const int64_t *sizes,
                   int ndim, int itemsize)
{
    Copy c = {.to = to, .from = from, .ndim = ndim};
    double elements = 1;
    for (int d = 0; d < ndim; d++) {
        c.dims[d] = (Dim){(long)sizes[d], (long)to_strides[d], (long)from_strides[d]};
        elements *= (double)sizes[d];
    }
    if (elements > 0) run(&c, itemsize, elements);
}

/* copy_array(to, from): arrays of one shape and element size that do not overlap; strides in whole elements, positive in `to`.
 * False for other arrays. */
static PyObject *py_copy_array(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "copy_array() takes two arrays; got %zd arguments", nargs);
    Py_buffer to, from;
    if (PyObject_GetBuffer(args[0], &to, PyBUF_STRIDES | PyBUF_WRITABLE) < 0) return NULL;
    if (PyObject_GetBuffer(args[1], &from, PyBUF_STRIDES) < 0) {
        PyBuffer_Release(&to);
        return NULL;
    }
    Copy c;
    const Py_ssize_t size = to.itemsize;
    bool able = (size == 1 || size == 2 || size == 4 || size == 8) && describe(&c, &to, &from);
    if (able && to.len) run(&c, (int)size, (double)(to.len / size));
    PyBuffer_Release(&to);
    PyBuffer_Release(&from);
    return PyBool_FromLong(able);
}

PyMethodDef strided_copy_functions[] = {
    {"copy_array", (PyCFunction)(void *)py_copy_array, METH_FASTCALL, "copy_array(to, from) -> whether it could run"},
    {NULL, NULL, 0, NULL},
};
