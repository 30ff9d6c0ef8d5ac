/* Builds guard programs from Python tuples: operands are checked here, once, so that running needs no checks. */
#include "guards.h"
#include <stddef.h>

/* Operands by letter: s slot read, d temporary written, o object, b base object, n attribute name, k dict key, i integer,
 * S tuple of slots, f field of a function. A capital letter after a colon is the required type of the operand before it:
 * D dict, C callable, F function, T type, W weak reference. `dynamo.guards.kinds` has the table. */
typedef struct {
    const char *name;
    int op;
    const char *operands;
    int arity;
} OpSpec;

static const OpSpec op_specs[] = {GUARD_KINDS};

typedef struct {
    ProgramObject *program;
    PyObject *source;           /* list of flat instruction tuples */
    Guard *code;
    int count, capacity;
    int32_t *place;             /* of each temporary, by its number in the program: a slot, NOWHERE or ENDED */
    int n_places;
    int n_outer;                /* slots outside blocks, so far */
    int n_local, n_local_most;  /* temporaries of this block, and the maximum over all blocks */
    bool in_block;
    Py_ssize_t index;           /* of the current top-level instruction, for messages */
} Builder;

/* The temporaries of blocks follow all others. Their slots are known at the end of the build; until then, LOCAL + i. */
enum { NOWHERE = -1, ENDED = -2, LOCAL = 1 << 24 };

static const OpSpec *find_spec(PyObject *name)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(op_specs); i++)
        if (PyUnicode_CompareWithASCIIString(name, op_specs[i].name) == 0) return &op_specs[i];
    return NULL;
}

int guard_arity(PyObject *name)
{
    const OpSpec *spec = find_spec(name);
    return spec ? spec->arity : -1;
}

static bool is_relational(int op) { return op >= FIRST_RELATION && op <= LAST_RELATION; }

static int refuse(Builder *b, const OpSpec *spec, PyObject *class, const char *what, PyObject *given)
{
    PyErr_Format(class, "GuardProgram: instruction %zd (\"%s\"): %s, given %R", b->index, spec->name, what, given);
    return -1;
}

/* --- operands -------------------------------------------------------------------------------- */
static long slot_number(PyObject *value)
{
    long n = PyLong_Check(value) ? PyLong_AsLong(value) : -1;
    if (n == -1 && PyErr_Occurred()) PyErr_Clear();     /* too large is as wrong as negative */
    return n;
}

static int read_slot(Builder *b, const OpSpec *spec, PyObject *value, int32_t *slot)
{
    long n = slot_number(value);
    bool input = n >= 0 && n < b->program->n_inputs;
    if (!input && (n < 0 || n >= b->n_places || b->place[n] < 0))
        return refuse(b, spec, PyExc_ValueError, "a slot to read must be an input or a temporary written before", value);
    *slot = input ? (int32_t)n : b->place[n];
    return 0;
}

static int reserve_places(Builder *b, long n)
{
    if (n < b->n_places) return 0;
    int size = (int)n + 32;
    int32_t *bigger = PyMem_Resize(b->place, int32_t, (size_t)size);
    if (!bigger) return PyErr_NoMemory(), -1;
    for (int i = b->n_places; i < size; i++) bigger[i] = NOWHERE;
    b->place = bigger;
    b->n_places = size;
    return 0;
}

static int read_destination(Builder *b, const OpSpec *spec, PyObject *value, int32_t *slot)
{
    long n = slot_number(value);
    if (n < b->program->n_inputs || n > b->program->n_inputs + (1L << 20))
        return refuse(b, spec, PyExc_ValueError, "a temporary must be numbered from n_slots", value);
    if (reserve_places(b, n) < 0) return -1;
    if (b->place[n] != NOWHERE) return refuse(b, spec, PyExc_ValueError, "a temporary is written only once", value);
    *slot = b->place[n] = b->in_block ? LOCAL + b->n_local++ : b->n_outer++;
    return 0;
}

static int read_name(Builder *b, const OpSpec *spec, PyObject *value, Guard *g)
{
    if (!PyUnicode_Check(value)) return refuse(b, spec, PyExc_TypeError, "an attribute name must be a str", value);
    PyObject *name = Py_NewRef(value);
    PyUnicode_InternInPlace(&name);
    int failed = PyList_Append(b->program->kept, name);
    g->obj = name;
    g->hash = PyObject_Hash(name);
    Py_DECREF(name);
    return failed;
}

static int read_slots(Builder *b, const OpSpec *spec, PyObject *value, Guard *g)
{
    if (!PyTuple_Check(value)) return refuse(b, spec, PyExc_TypeError, "expected a tuple of slots", value);
    Py_ssize_t n = PyTuple_GET_SIZE(value);
    g->slots = PyMem_New(int32_t, (size_t)n + 1);
    if (!g->slots) return PyErr_NoMemory(), -1;
    g->length = (int32_t)n;
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_slot(b, spec, PyTuple_GET_ITEM(value, i), &g->slots[i]) < 0) return -1;
    return 0;
}

static int require(Builder *b, const OpSpec *spec, char kind, PyObject *value)
{
    switch (kind) {
    case 'D': return PyDict_Check(value) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a dict", value);
    case 'C': return PyCallable_Check(value) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a callable", value);
    case 'F': return PyFunction_Check(value) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a Python function", value);
    case 'T': return PyType_Check(value) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a type", value);
    default: return PyWeakref_Check(value) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a weak reference", value);
    }
}

/* The offset of a function's field that code may replace. */
static int read_field(Builder *b, const OpSpec *spec, PyObject *value, Guard *g)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"__code__", offsetof(PyFunctionObject, func_code)},
        {"__defaults__", offsetof(PyFunctionObject, func_defaults)},
        {"__kwdefaults__", offsetof(PyFunctionObject, func_kwdefaults)},
    };
    for (size_t i = 0; PyUnicode_Check(value) && i < Py_ARRAY_LENGTH(fields); i++)
        if (PyUnicode_CompareWithASCIIString(value, fields[i].name) == 0) return g->a = (int64_t)fields[i].offset, 0;
    return refuse(b, spec, PyExc_ValueError, "a field must be __code__, __defaults__ or __kwdefaults__", value);
}

static int read_operand(Builder *b, const OpSpec *spec, char kind, PyObject *value, Guard *g, int *n_slots, int *n_ints)
{
    switch (kind) {
    case 's': return read_slot(b, spec, value, (*n_slots)++ ? &g->src2 : &g->src);
    case 'd': return read_destination(b, spec, value, &g->dst);
    case 'o': return g->obj = value, 0;
    case 'b': return g->base = value, 0;
    case 'f': return read_field(b, spec, value, g);
    case 'n': return read_name(b, spec, value, g);
    case 'k':
        g->obj = value;
        g->hash = PyObject_Hash(value);
        return g->hash == -1 ? -1 : 0;
    case 'S': return read_slots(b, spec, value, g);
    default: {
        int64_t *fields[3] = {&g->a, &g->b, &g->c};
        int64_t n = PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
        if (!PyLong_Check(value) || (n == -1 && PyErr_Occurred())) {
            PyErr_Clear();
            return refuse(b, spec, PyExc_TypeError, "expected an int of 64 bits", value);
        }
        *fields[(*n_ints)++] = n;
        return 0;
    }
    }
}

/* --- what depends on the operation ----------------------------------------------------------- */
static int read_dims(Builder *b, const OpSpec *spec, PyObject *value, int64_t *dims, int n, bool sizes, bool *exact)
{
    for (int i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(value, i);
        dims[i] = PyLong_Check(item) ? PyLong_AsLongLong(item) : -1;
        if (!PyLong_Check(item) || (dims[i] == -1 && PyErr_Occurred())) {
            PyErr_Clear();
            return refuse(b, spec, PyExc_TypeError, "sizes and strides must be ints", value);
        }
        bool special = dims[i] == DIM_ANY || dims[i] == DIM_AT_LEAST_2;
        if (special) *exact = false;
        if (sizes ? dims[i] < 0 && !special : dims[i] == DIM_AT_LEAST_2)
            return refuse(b, spec, PyExc_ValueError, "sizes must be >= 0, ANY or AT_LEAST_2; strides ints or ANY", value);
    }
    return 0;
}

/* ("tensor", src, type, meta, mask, sizes, strides) */
static int read_tensor(Builder *b, const OpSpec *spec, PyObject *instruction, Guard *g)
{
    PyTypeObject *type = (PyTypeObject *)g->obj;
    if (!PyType_IsSubtype(type, eager_api->tensor_base_type))
        return refuse(b, spec, PyExc_TypeError, "expected a subclass of eager's TensorBase", g->obj);
    PyObject *sizes = PyTuple_GET_ITEM(instruction, 5), *strides = PyTuple_GET_ITEM(instruction, 6);
    if (!PyTuple_Check(sizes)) return refuse(b, spec, PyExc_TypeError, "sizes must be a tuple", sizes);
    Py_ssize_t n = PyTuple_GET_SIZE(sizes);
    if (strides != Py_None && (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != n))
        return refuse(b, spec, PyExc_TypeError, "strides must be None or a tuple as long as sizes", strides);
    if (n > EAGER_MAX_NDIM) return refuse(b, spec, PyExc_ValueError, "too many dimensions", sizes);
    TensorSpec *t = g->tensor = PyMem_Calloc(1, sizeof(TensorSpec) + 2 * (size_t)n * sizeof(int64_t));
    if (!t) return PyErr_NoMemory(), -1;
    t->type = type;
    t->ndim = (int)n;
    t->exact = true;
    t->meta = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(instruction, 3));
    t->mask = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(instruction, 4));
    if (PyErr_Occurred()) return -1;
    if (read_dims(b, spec, sizes, t->dims, t->ndim, true, &t->exact) < 0) return -1;
    t->contiguous = strides == Py_None;
    if (t->contiguous) t->exact = false;
    else return read_dims(b, spec, strides, t->dims + n, t->ndim, false, &t->exact);
    return 0;
}

static int finish(Builder *b, const OpSpec *spec, PyObject *instruction, Guard *g)
{
    int overflow;
    switch (g->op) {
    case G_TENSOR: return read_tensor(b, spec, instruction, g);
    case G_SHAPE: return shape_build(g->obj, g);
    case G_INT_EQ:
        if (!PyLong_CheckExact(g->obj)) return refuse(b, spec, PyExc_TypeError, "expected an int", g->obj);
        g->a = PyLong_AsLongLongAndOverflow(g->obj, &overflow);
        g->b = !overflow;
        return 0;
    case G_FUNCTION_IS:
        if (g->obj == Py_None) g->obj = NULL;       /* functions store None as NULL */
        return 0;
    case G_FLOAT_EQ:
        if (!PyFloat_CheckExact(g->obj)) return refuse(b, spec, PyExc_TypeError, "expected a float", g->obj);
        g->number = PyFloat_AS_DOUBLE(g->obj);
        return 0;
    case G_STR_EQ: return PyUnicode_CheckExact(g->obj) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a str", g->obj);
    case G_DICT_KEYS:
    case G_SET_ELEMENTS: return PyTuple_Check(g->obj) ? 0 : refuse(b, spec, PyExc_TypeError, "expected a tuple of constants", g->obj);
    case G_ITEM: case G_CLOSURE: case G_LEN:
        return g->a >= 0 ? 0 : refuse(b, spec, PyExc_ValueError, "an index or length must not be negative", instruction);
    default: return 0;
    }
}

/* --- blocks ---------------------------------------------------------------------------------- */
static void block_free(Block *block)
{
    if (!block) return;
    block_unsubscribe(block);
    for (int i = 0; i < block->n_dicts; i++) Py_DECREF(block->dicts[i]);
    PyMem_Free(block->dicts);
    PyMem_Free(block->owners);
    PyMem_Free(block->types);
    PyMem_Free(block->seen_tags);
    PyMem_Free(block->sample_tags);
    PyMem_Free(block);
}

static int block_add_item(Builder *b, const OpSpec *spec, Block *block, PyObject *item)
{
    if (PyType_Check(item)) {
        block->types[block->n_types++] = (PyTypeObject *)item;
        return 0;
    }
    if (PyCFunction_Check(item)) {
        if (block->counter && block->counter != item) return refuse(b, spec, PyExc_ValueError, "one counter is allowed", item);
        block->counter = item;
        return 0;
    }
    PyObject *dict = PyDict_Check(item) ? Py_NewRef(item) : PyObject_GenericGetDict(item, NULL);
    if (!dict) {
        PyErr_Clear();
        return refuse(b, spec, PyExc_TypeError, "an item must be a dict, a type, a C function or an object with a __dict__", item);
    }
    block->dicts[block->n_dicts++] = dict;
    if (!PyDict_Check(item)) {      /* the dict goes behind the dicts of earlier owners */
        block->dicts[block->n_dicts - 1] = block->dicts[block->n_owners];
        block->dicts[block->n_owners] = dict;
        block->owners[block->n_owners++] = item;
    }
    return 0;
}

static Block *block_new(Builder *b, const OpSpec *spec, PyObject *items)
{
    size_t n = (size_t)PyTuple_GET_SIZE(items) + 1;
    Block *block = PyMem_Calloc(1, sizeof *block);
    if (!block) return (Block *)PyErr_NoMemory();
    block->uses_epoch = strcmp(spec->name, "epoch") == 0;
    block->dicts = PyMem_Calloc(n, sizeof *block->dicts);
    block->owners = PyMem_Calloc(n, sizeof *block->owners);
    block->types = PyMem_Calloc(n, sizeof *block->types);
    block->seen_tags = PyMem_Calloc(n, sizeof *block->seen_tags);
    block->sample_tags = PyMem_Calloc(n, sizeof *block->sample_tags);
    bool ok = block->dicts && block->owners && block->types && block->seen_tags && block->sample_tags;
    if (!ok) PyErr_NoMemory();
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(items); i++)
        ok = block_add_item(b, spec, block, PyTuple_GET_ITEM(items, i)) == 0;
    if (ok) ok = block_subscribe(block) == 0;
    if (!ok) {
        block_free(block);
        return NULL;
    }
    return block;
}

static Guard *append(Builder *b, int op, PyObject *source)
{
    if (b->count == b->capacity) {
        int capacity = b->capacity ? 2 * b->capacity : 16;
        Guard *code = PyMem_Resize(b->code, Guard, (size_t)capacity);
        if (!code) return (Guard *)PyErr_NoMemory();
        b->code = code;
        b->capacity = capacity;
    }
    if (PyList_Append(b->source, source) < 0) return NULL;
    Guard *g = &b->code[b->count++];
    memset(g, 0, sizeof *g);
    g->op = (uint8_t)op;
    g->dst = -1;
    return g;
}

static int read_instruction(Builder *b, PyObject *instruction);

static int read_block(Builder *b, const OpSpec *spec, PyObject *instruction)
{
    PyObject *items = PyTuple_GET_ITEM(instruction, 1), *body = PyTuple_GET_ITEM(instruction, 2);
    if (b->in_block) return refuse(b, spec, PyExc_ValueError, "blocks do not nest", instruction);
    if (!PyTuple_Check(items) || !PyTuple_Check(body))
        return refuse(b, spec, PyExc_TypeError, "expected a tuple of items and a tuple of instructions", instruction);
    Guard *g = append(b, G_BLOCK, instruction);
    if (!g) return -1;
    Block *block = g->block = block_new(b, spec, items);
    if (!block) return -1;
    int begin = b->count - 1, failed = 0;
    b->in_block = true;
    b->n_local = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(body) && !failed; i++)
        failed = read_instruction(b, PyTuple_GET_ITEM(body, i));
    b->in_block = false;
    if (b->n_local > b->n_local_most) b->n_local_most = b->n_local;
    for (int i = 0; i < b->n_places; i++)
        if (b->place[i] >= LOCAL) b->place[i] = ENDED;
    Guard *end = failed ? NULL : append(b, G_BLOCK_END, Py_None);
    if (!end) return -1;
    end->block = block;
    b->code[begin].length = b->count - 1 - begin;
    return 0;
}

/* --- instructions ---------------------------------------------------------------------------- */
static int read_operands(Builder *b, const OpSpec *spec, PyObject *instruction, Guard *g)
{
    int n_slots = 0, n_ints = 0;
    Py_ssize_t i = 0;
    for (const char *k = spec->operands; *k; k++) {
        if (*k == ':') {
            if (require(b, spec, *++k, PyTuple_GET_ITEM(instruction, i)) < 0) return -1;
        } else if (read_operand(b, spec, *k, PyTuple_GET_ITEM(instruction, ++i), g, &n_slots, &n_ints) < 0) {
            return -1;
        }
    }
    return finish(b, spec, instruction, g);
}

static const OpSpec *read_header(Builder *b, PyObject *instruction)
{
    if (!PyTuple_Check(instruction) || !PyTuple_GET_SIZE(instruction) || !PyUnicode_Check(PyTuple_GET_ITEM(instruction, 0))) {
        PyErr_Format(PyExc_TypeError, "GuardProgram: instruction %zd is %R; expected a tuple (op, *operands)", b->index, instruction);
        return NULL;
    }
    const OpSpec *spec = find_spec(PyTuple_GET_ITEM(instruction, 0));
    if (!spec) {
        PyErr_Format(PyExc_ValueError, "GuardProgram: instruction %zd has the unknown operation %R", b->index,
                     PyTuple_GET_ITEM(instruction, 0));
        return NULL;
    }
    Py_ssize_t given = PyTuple_GET_SIZE(instruction) - 1;
    PyObject *note = given > spec->arity ? PyTuple_GET_ITEM(instruction, spec->arity + 1) : Py_None;
    if (given < spec->arity || given > spec->arity + 1 || !(note == Py_None || PyUnicode_Check(note))) {
        PyErr_Format(PyExc_TypeError,
                     "GuardProgram: instruction %zd (\"%s\") has %zd operands; expected %d and at most a note (str or None)",
                     b->index, spec->name, given, spec->arity);
        return NULL;
    }
    return spec;
}

static int read_instruction(Builder *b, PyObject *instruction)
{
    const OpSpec *spec = read_header(b, instruction);
    if (!spec) return -1;
    if (spec->op == G_BLOCK) return read_block(b, spec, instruction);
    if (b->in_block && is_relational(spec->op))
        return refuse(b, spec, PyExc_ValueError, "relational checks cannot stand in a block", instruction);
    Guard *g = append(b, spec->op, instruction);
    return g ? read_operands(b, spec, instruction, g) : -1;
}

/* Relational instructions last: they hold only of values that have passed their own checks. */
static int read_phase(Builder *b, PyObject *instructions, bool relational)
{
    for (b->index = 0; b->index < PySequence_Fast_GET_SIZE(instructions); b->index++) {
        PyObject *instruction = PySequence_Fast_GET_ITEM(instructions, b->index);
        const OpSpec *spec = read_header(b, instruction);
        if (!spec) return -1;
        if (is_relational(spec->op) == relational && read_instruction(b, instruction) < 0) return -1;
    }
    return 0;
}

static void settle(int32_t *slot, int n_outer)
{
    if (*slot >= LOCAL) *slot = *slot - LOCAL + n_outer;
}

static void settle_locals(Builder *b)
{
    for (int i = 0; i < b->count; i++) {
        settle(&b->code[i].src, b->n_outer);
        settle(&b->code[i].src2, b->n_outer);
        settle(&b->code[i].dst, b->n_outer);
    }
}

int program_build(ProgramObject *program, PyObject *instructions)
{
    Builder b = {.program = program, .n_outer = program->n_inputs};
    PyObject *fast = PySequence_Fast(instructions, "GuardProgram: instructions must be a sequence");
    if (!fast) return -1;
    program->kept = PyList_New(0);
    b.source = PyList_New(0);
    int failed = !program->kept || !b.source || read_phase(&b, fast, false) < 0 || read_phase(&b, fast, true) < 0;
    settle_locals(&b);
    program->code = b.code;
    program->count = b.count;
    program->n_outer = b.n_outer;
    program->n_slots = b.n_outer + b.n_local_most;
    if (b.source) program->source = PyList_AsTuple(b.source);
    failed |= !program->source;
    Py_XDECREF(b.source);
    Py_DECREF(fast);
    PyMem_Free(b.place);
    return failed ? -1 : 0;
}

void program_free_code(ProgramObject *program)
{
    Guard *code = program->code;
    int count = program->count;
    program->code = NULL;
    program->count = 0;
    for (int i = 0; i < count; i++) {
        if (code[i].op == G_TENSOR) PyMem_Free(code[i].tensor);
        else if (code[i].op == G_SHAPE) shape_free(code[i].shape);
        else if (code[i].op == G_BLOCK) block_free(code[i].block);
        else if (code[i].op == G_DISTINCT || code[i].op == G_NOT_ALIAS) PyMem_Free(code[i].slots);
    }
    PyMem_Free(code);
}
