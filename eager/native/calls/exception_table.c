/* Exception tables of code objects: the ranges in which the handler that eager.base.tracebacks adds takes effect.
 *
 * A table has a row for each range of instructions: start, length, target, and depth with a flag, in code units. A number is
 * written in groups of six bits, the highest first; bit 6 says that another group follows, bit 7 marks the start of a row. Source:
 * CPython's Objects/exception_handling_notes.txt. */
#define PY_SSIZE_T_CLEAN
#include "calls/functions.h"
#include <stdbool.h>
#include <stdint.h>

enum { START, LENGTH, TARGET, DEPTH, FIELDS };
enum { MOST_BYTES = FIELDS * 6 }; /* of a row: a number of 32 bits has at most six groups */

/* Read a row; false at the end of the table. */
static bool read_row(const unsigned char **at, const unsigned char *end, uint32_t row[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        uint32_t value = 0;
        bool more = true;
        for (; more; (*at)++) {
            if (*at >= end) return false;
            value = value << 6 | (**at & 63);
            more = **at & 64;
        }
        row[i] = value;
    }
    return true;
}

static unsigned char *write_row(unsigned char *out, const uint32_t row[FIELDS])
{
    unsigned char *const first = out;
    for (int i = 0; i < FIELDS; i++) {
        int shift = 0;
        while (row[i] >> shift >= 64) shift += 6;
        for (; shift; shift -= 6) *out++ = 64 | (row[i] >> shift & 63);
        *out++ = row[i] & 63;
    }
    *first |= 128;
    return out;
}

/* extend_exception_table(table, begin, end, handler): the rows of `table`, and a row to the handler at `end` for each unit of the
 * body in [begin, end) that has no row. handler: the rows of the handler's own units, counted from 0 */
static PyObject *py_extend_exception_table(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *table, *handler;
    Py_ssize_t length, handler_length;
    unsigned begin, end;
    if (!PyArg_ParseTuple(args, "y#IIy#", &table, &length, &begin, &end, &handler, &handler_length)) return NULL;
    /* Every row has at least four bytes, and at most one gap precedes it. */
    const size_t rows = (size_t)(length + handler_length) / FIELDS * 2 + 1;
    unsigned char *const made = PyMem_Malloc(rows * MOST_BYTES);
    if (!made) return PyErr_NoMemory();
    unsigned char *out = made;
    uint32_t covered = begin, row[FIELDS];
    const unsigned char *at = (const unsigned char *)table;
    while (read_row(&at, (const unsigned char *)table + length, row)) {
        const uint32_t stop = row[START] + row[LENGTH];
        if (row[START] > covered) out = write_row(out, (uint32_t[FIELDS]){covered, row[START] - covered, end, 0});
        out = write_row(out, row);
        if (stop > covered) covered = stop;
    }
    if (end > covered) out = write_row(out, (uint32_t[FIELDS]){covered, end - covered, end, 0});
    at = (const unsigned char *)handler;
    while (read_row(&at, (const unsigned char *)handler + handler_length, row))
        out = write_row(out, (uint32_t[FIELDS]){row[START] + end, row[LENGTH], row[TARGET] + end, row[DEPTH]});
    PyObject *found = PyBytes_FromStringAndSize((const char *)made, out - made);
    PyMem_Free(made);
    return found;
}

PyMethodDef exception_table_functions[] = {
    {"extend_exception_table", py_extend_exception_table, METH_VARARGS, "extend_exception_table(table, begin, end, handler): an exception table with a handler for every unit of a body"},
    {NULL, NULL, 0, NULL},
};
