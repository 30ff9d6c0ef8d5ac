/* Runs guard programs. */
#include "guards.h"
#include "ptrmap.h"

extern PyObject *_PyDict_GetItem_KnownHash(PyObject *, PyObject *, Py_hash_t);

/* --- blocks ---------------------------------------------------------------------------------- */
/* The value of the counter; *ok: no error occurred. */
static uint64_t block_count(const Block *b, bool *ok)
{
    PyObject *value = PyObject_CallNoArgs(b->counter);
    uint64_t count = value ? PyLong_AsUnsignedLongLong(value) : 0;
    Py_XDECREF(value);
    *ok = !PyErr_Occurred();
    if (!*ok) PyErr_Clear();
    return count;
}

static bool owners_keep_dicts(const Block *b)
{
    for (int i = 0; i < b->n_owners; i++) {
        PyObject *dict = PyObject_GenericGetDict(b->owners[i], NULL);
        Py_XDECREF(dict);
        if (unlikely(dict != b->dicts[i])) {
            if (!dict) PyErr_Clear();
            return false;
        }
    }
    return true;
}

static inline bool block_unchanged(const Block *b)
{
    if (unlikely(!b->seen)) return false;
    if (b->uses_epoch && *eager_api->epoch != b->seen_epoch) return false;
    if (b->n_dicts && block_dict_state(b) != b->seen_changes) return false;
    if (b->n_owners && !owners_keep_dicts(b)) return false;
    for (int i = 0; i < b->n_types; i++) {
        unsigned int tag = b->types[i]->tp_version_tag;
        if (unlikely(!tag || tag != b->seen_tags[i])) return false;
    }
    if (unlikely(b->counter != NULL)) {
        bool ok;
        uint64_t count = block_count(b, &ok);
        return ok && count == b->seen_count;
    }
    return true;
}

/* A type has a version tag only after a lookup through its method cache. */
static unsigned int type_tag(PyTypeObject *type)
{
    static PyObject *name;
    if (!type->tp_version_tag) {
        if (!name) name = PyUnicode_InternFromString("__init__");
        if (name) _PyType_Lookup(type, name);
        else PyErr_Clear();
    }
    return type->tp_version_tag;
}

static uint64_t block_enter(Block *b)
{
    b->sample_epoch = *eager_api->epoch;
    b->sample_changes = b->n_dicts ? block_dict_state(b) : 0;
    for (int i = 0; i < b->n_types; i++) b->sample_tags[i] = type_tag(b->types[i]);
    bool ok = true;
    if (b->counter) b->sample_count = block_count(b, &ok);
    return ++b->ticket * ok;     /* 0: nothing to commit */
}

static void block_commit(Block *b, uint64_t ticket)
{
    if (b->ticket != ticket) return;
    b->seen_epoch = b->sample_epoch;
    b->seen_changes = b->sample_changes;
    b->seen_count = b->sample_count;
    for (int i = 0; i < b->n_types; i++) b->seen_tags[i] = b->sample_tags[i];
    b->seen = true;
}

/* --- checks ---------------------------------------------------------------------------------- */
static inline bool is_tensor(PyObject *o) { return PyObject_TypeCheck(o, eager_api->tensor_base_type); }

static inline bool tensor_matches(PyObject *o, const TensorSpec *spec)
{
    const TensorObject *t = (const TensorObject *)o;
    if (unlikely(Py_TYPE(o) != spec->type)) return false;
    uint64_t meta = t->meta;
    if (unlikely(t->storage->ask_base) && eager_api->wants_grad(t)) meta |= EAGER_REQUIRES_GRAD;
    if (unlikely((meta ^ spec->meta) & spec->mask)) return false;
    int n = spec->ndim;
    if (unlikely(tensor_ndim(t) != n)) return false;
    const int64_t *dims = t->dims, *want = spec->dims;
    if (likely(spec->exact)) {
        for (int i = 0; i < 2 * n; i++)
            if (unlikely(dims[i] != want[i])) return false;
        return true;
    }
    for (int i = 0; i < n; i++) {
        if (want[i] == DIM_AT_LEAST_2 ? dims[i] < 2 : want[i] != DIM_ANY && dims[i] != want[i]) return false;
    }
    if (!spec->contiguous) {
        for (int i = n; i < 2 * n; i++)
            if (want[i] != DIM_ANY && dims[i] != want[i]) return false;
        return true;
    }
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        if (dims[n + i] != stride) return false;
        stride *= dims[i] > 1 ? dims[i] : 1;
    }
    return true;
}

static inline bool int_value(PyObject *o, int64_t *value)
{
    int overflow;
    if (!PyLong_CheckExact(o)) return false;
    *value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static inline bool same_bits(double x, double y) { return !memcmp(&x, &y, sizeof x); }

static inline bool same_constant(PyObject *o, PyObject *want)
{
    if (o == want) return true;
    if (!Py_IS_TYPE(o, Py_TYPE(want))) return false;
    if (PyFloat_CheckExact(o)) return same_bits(PyFloat_AS_DOUBLE(o), PyFloat_AS_DOUBLE(want));
    if (PyComplex_CheckExact(o)) {
        Py_complex a = PyComplex_AsCComplex(o), b = PyComplex_AsCComplex(want);
        return same_bits(a.real, b.real) && same_bits(a.imag, b.imag);
    }
    return PyObject_RichCompareBool(o, want, Py_EQ) == 1;
}

/* Compare the stored str, int or float of an instance of a subclass; overrides do not run. want: an instance of the base. */
static inline bool same_content(PyObject *o, PyObject *want)
{
    if (PyUnicode_CheckExact(want)) return PyUnicode_Check(o) && PyUnicode_Compare(o, want) == 0;
    if (PyFloat_CheckExact(want)) return PyFloat_Check(o) && same_bits(PyFloat_AS_DOUBLE(o), PyFloat_AS_DOUBLE(want));
    if (!PyLong_CheckExact(want) || !PyLong_Check(o)) return false;
    PyObject *answer = PyLong_Type.tp_richcompare(o, want, Py_EQ);
    Py_XDECREF(answer);
    return answer == Py_True;
}

/* collections.deque, whose C type has no name for others. */
static PyObject *deque_type;

static inline bool is_deque(PyObject *o)
{
    return (PyObject *)Py_TYPE(o) == deque_type;
}

static bool length_is(PyObject *o, int64_t n)
{
    if (PyTuple_Check(o) || PyList_Check(o)) return Py_SIZE(o) == n;
    if (PyDict_Check(o)) return PyDict_GET_SIZE(o) == n;
    if (PyAnySet_Check(o)) return PySet_GET_SIZE(o) == n;
    if (PyUnicode_Check(o)) return PyUnicode_GET_LENGTH(o) == n;
    if (is_deque(o)) return PyObject_Size(o) == n;
    return false;
}

/* Whether the iterator that `iter` makes (an __iter__ of a subclass does not run) yields these constants in order. */
static bool comes_as(PyObject *o, getiterfunc iter, PyObject *want)
{
    PyObject *iterator = iter(o), *item;
    bool same = iterator != NULL;
    for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(want); i++) {
        item = PyIter_Next(iterator);
        same = item && same_constant(item, PyTuple_GET_ITEM(want, i));
        Py_XDECREF(item);
    }
    Py_XDECREF(iterator);
    return same;
}

/* Equal sets may differ in their order, and one may hold 1 where the other holds True. */
static bool set_elements_are(PyObject *set, PyObject *elements)
{
    return PyAnySet_Check(set) && PySet_GET_SIZE(set) == PyTuple_GET_SIZE(elements) && comes_as(set, PySet_Type.tp_iter, elements);
}

static bool dict_keys_are(PyObject *dict, PyObject *keys)
{
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
    if (PyODict_Check(dict)) return comes_as(dict, PyODict_Type.tp_iter, keys);     /* an OrderedDict keeps its order in a separate list */
    Py_ssize_t position = 0, i = 0;
    PyObject *key;
    while (PyDict_Next(dict, &position, &key, NULL)) {
        if (i >= PyTuple_GET_SIZE(keys)) return false;
        PyObject *want = PyTuple_GET_ITEM(keys, i++);
        if (key == want) continue;
        Py_INCREF(key);         /* its __eq__ might change the dict */
        bool same = same_constant(key, want);
        Py_DECREF(key);
        if (!same) return false;
    }
    return i == PyTuple_GET_SIZE(keys);
}

/* Whether `value`, whose reference it takes, is a constant like `want`. */
static bool is_constant(PyObject *value, PyObject *want)
{
    if (!value) return false;
    bool same = same_constant(value, want);
    Py_DECREF(value);
    return same;
}

static const void *tensor_memory(PyObject *o)
{
    const StorageObject *s = is_tensor(o) ? ((TensorObject *)o)->storage : NULL;
    while (s && s->root) s = s->root;
    return s;
}

/* Whether two root storages share bytes. Several storages may lie over the memory of one numpy array. */
static bool overlap(const StorageObject *a, const StorageObject *b)
{
    if (a == b) return true;
    return (a->owner || b->owner) && a->data < b->data + b->nbytes && b->data < a->data + a->nbytes;
}

/* Whether `count` pointers differ from each other: pairs for a few, a hash table for many. */
static bool all_different(const void **items, int count)
{
    if (count <= 16) {
        for (int i = 0; i < count; i++)
            for (int j = 0; j < i; j++)
                if (items[j] == items[i]) return false;
        return true;
    }
    PtrMap seen = {NULL, 16, 0};
    while (seen.size < 2 * (size_t)count) seen.size *= 2;
    seen.items = PyMem_Calloc(seen.size, sizeof(PtrMapItem));
    if (!seen.items) {
        PyErr_NoMemory();
        return false;
    }
    bool different = true;
    for (int i = 0; i < count && different; i++) {
        different = !ptrmap_find(&seen, items[i]);
        ptrmap_place(&seen, (void *)items[i], NULL);
        seen.used++;
    }
    ptrmap_free(&seen);
    return different;
}

/* Whether different root storages share no bytes. Only the memory of a storage with an owner can lie in two storages. */
static bool no_overlap(const void **storages, int count)
{
    for (int i = 0; i < count; i++) {
        if (!((const StorageObject *)storages[i])->owner) continue;
        for (int j = 0; j < count; j++)
            if (j != i && overlap(storages[j], storages[i])) return false;
    }
    return true;
}

/* Whether the listed slots are pairwise different, as objects or as tensors' memory. */
static bool pairwise_different(PyObject **slots, const Guard *g, bool memory)
{
    const void *small[64], **items = small;
    bool different = true;
    if (g->length > 64) {
        items = PyMem_New(const void *, (size_t)g->length);
        if (!items) {
            PyErr_NoMemory();
            return false;
        }
    }
    for (int i = 0; i < g->length && different; i++) {
        PyObject *o = slots[g->slots[i]];
        items[i] = memory ? tensor_memory(o) : (const void *)o;
        if (!items[i]) different = false;
    }
    different = different && all_different(items, g->length) && (!memory || no_overlap(items, g->length));
    if (items != small) PyMem_Free(items);
    return different;
}

/* --- fetches: a new reference, or NULL with or without an error ------------------------------ */
static PyObject *instance_dict_item(PyObject *o, const Guard *g)
{
    PyObject *dict = PyObject_GenericGetDict(o, NULL);
    if (!dict) return NULL;
    PyObject *value = Py_XNewRef(_PyDict_GetItem_KnownHash(dict, g->obj, g->hash));
    Py_DECREF(dict);
    return value;
}

static PyObject *sequence_item(PyObject *o, int64_t index)
{
    if (PyTuple_Check(o)) return index < PyTuple_GET_SIZE(o) ? Py_NewRef(PyTuple_GET_ITEM(o, index)) : NULL;
    if (PyList_Check(o)) return index < PyList_GET_SIZE(o) ? Py_NewRef(PyList_GET_ITEM(o, index)) : NULL;
    if (is_deque(o)) return PySequence_GetItem(o, index);
    return NULL;
}

static PyObject *closure_item(PyObject *o, int64_t index)
{
    if (!PyFunction_Check(o)) return NULL;
    PyObject *closure = PyFunction_GET_CLOSURE(o);
    if (!closure || index >= PyTuple_GET_SIZE(closure)) return NULL;
    return PyCell_Get(PyTuple_GET_ITEM(closure, index));
}

static PyObject *weak_referent(PyObject *ref)
{
    PyObject *o = PyObject_CallNoArgs(ref);
    if (o == Py_None) Py_CLEAR(o);
    return o;
}

static PyObject *fetch(const Guard *g, PyObject **slots)
{
    switch (g->op) {
    case G_CONST: return Py_NewRef(g->obj);
    case G_WEAK: return weak_referent(g->obj);
    case G_GLOBAL: return Py_XNewRef(_PyDict_GetItem_KnownHash(g->base, g->obj, g->hash));
    case G_ATTR: return PyObject_GetAttr(slots[g->src], g->obj);
    case G_GENERIC_ATTR: return PyObject_GenericGetAttr(slots[g->src], g->obj);
    case G_DICT_ATTR: return instance_dict_item(slots[g->src], g);
    case G_TYPE_ATTR:
        return PyType_Check(slots[g->src]) ? Py_XNewRef(_PyType_Lookup((PyTypeObject *)slots[g->src], g->obj)) : NULL;
    case G_TYPE_OF: return Py_NewRef((PyObject *)Py_TYPE(slots[g->src]));
    case G_DICT_ITEM:
        return PyDict_Check(slots[g->src]) ? Py_XNewRef(_PyDict_GetItem_KnownHash(slots[g->src], g->obj, g->hash)) : NULL;
    case G_ITEM: return sequence_item(slots[g->src], g->a);
    case G_CELL: return PyCell_Check(slots[g->src]) ? PyCell_Get(slots[g->src]) : NULL;
    case G_CLOSURE: return closure_item(slots[g->src], g->a);
    case G_MADE: return PyObject_CallOneArg(g->obj, slots[g->src]);
    case G_ITERATOR_OWNER: return iterator_owner(slots[g->src]);
    default: Py_UNREACHABLE();
    }
}

static bool lacks_attribute(PyObject *o, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(o, name);
    if (value) {
        Py_DECREF(value);
        return false;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    return true;
}

/* --- the rarer checks, out of the hot loop --------------------------------------------------- */
static bool check(const Guard *g, PyObject **slots)
{
    PyObject *o = slots[g->src];
    int64_t value;
    switch (g->op) {
    case G_FLOAT_EQ: return PyFloat_CheckExact(o) && same_bits(PyFloat_AS_DOUBLE(o), g->number);
    case G_STR_EQ: return o == g->obj || (PyUnicode_CheckExact(o) && PyUnicode_Compare(o, g->obj) == 0);
    case G_CONST_EQ: return same_constant(o, g->obj);
    case G_CONTENT_EQ: return same_content(o, g->obj);
    case G_LEN: return length_is(o, g->a);
    case G_DICT_KEYS: return dict_keys_are(o, g->obj);
    case G_SET_ELEMENTS: return set_elements_are(o, g->obj);
    case G_NO_ATTR: return lacks_attribute(o, g->obj);
    case G_DICT_ABSENT:
        return PyDict_Check(o) && !_PyDict_GetItem_KnownHash(o, g->obj, g->hash) && !PyErr_Occurred();
    case G_CELL_EMPTY: return PyCell_Check(o) && !PyCell_GET(o);
    case G_INT_RANGE: return int_value(o, &value) && value >= g->a && value <= g->b;
    case G_GRAD_MODE: return eager_api->grad_modes() == g->a;
    case G_AMBIENT: return eager_api->mode_depth() >> EAGER_AMBIENT_SHIFT == g->a;
    case G_CALL_EQ: return is_constant(PyObject_CallNoArgs(g->base), g->obj);
    case G_ITERATOR_STATE: return is_constant(iterator_state(o), g->obj);
    case G_TYPE_ABSENT: return PyType_Check(o) && !_PyType_Lookup((PyTypeObject *)o, g->obj);
    case G_PLAIN_NEW: return PyType_Check(o) && ((PyTypeObject *)o)->tp_new == PyBaseObject_Type.tp_new;
    case G_SHAPE: return shape_holds(g->shape, slots);
    case G_SAME: return o == slots[g->src2];
    case G_DISTINCT: return pairwise_different(slots, g, false);
    case G_ALIAS: return tensor_memory(o) && tensor_memory(o) == tensor_memory(slots[g->src2]);
    case G_NOT_ALIAS: return pairwise_different(slots, g, true);
    default: Py_UNREACHABLE();
    }
}

static inline bool int_equals(PyObject *o, const Guard *g)
{
    int64_t value;
    if (o == g->obj) return true;
    if (likely(g->b)) return int_value(o, &value) && value == g->a;
    return PyLong_CheckExact(o) && PyObject_RichCompareBool(o, g->obj, Py_EQ) == 1;
}

/* --- the loop -------------------------------------------------------------------------------- */
enum { NO_ROOM = -2 };

static void drop_slots(PyObject **slots, int from, int to)
{
    for (int i = from; i < to; i++) Py_CLEAR(slots[i]);
}

/* Index of the first instruction that fails, or count; NO_ROOM if a block must run and `room` is false.
 * `trust`: let unchanged blocks pass. The temporaries of a block exist from its begin to its end. */
static int run_code(ProgramObject *p, PyObject **slots, bool trust, bool room)
{
    const Guard *code = p->code;
    int count = p->count;
    uint64_t ticket = 0;
    bool in_block = false;
    int i = 0;
    for (; i < count; i++) {
        const Guard *g = &code[i];
        switch (g->op) {
        case G_TENSOR:
            if (unlikely(!tensor_matches(slots[g->src], g->tensor))) goto done;
            break;
        case G_TYPE:
            if (unlikely((PyObject *)Py_TYPE(slots[g->src]) != g->obj)) goto done;
            break;
        case G_HELD_TYPE:
            if (unlikely((PyObject *)Py_TYPE(g->base) != g->obj)) goto done;
            break;
        case G_FUNCTION_IS:
            if (unlikely(*(PyObject **)((char *)g->base + g->a) != g->obj)) goto done;
            break;
        case G_IS:
            if (unlikely(slots[g->src] != g->obj)) goto done;
            break;
        case G_IS_NOT:
            if (unlikely(slots[g->src] == g->obj)) goto done;
            break;
        case G_INT_EQ:
            if (unlikely(!int_equals(slots[g->src], g))) goto done;
            break;
        case G_BLOCK:
            if (likely(trust && block_unchanged(g->block))) {
                i += g->length;
                break;
            }
            if (!room) return NO_ROOM;
            for (int s = p->n_outer; s < p->n_slots; s++) slots[s] = NULL;
            in_block = true;
            ticket = block_enter(g->block);
            break;
        case G_BLOCK_END:
            block_commit(g->block, ticket);
            drop_slots(slots, p->n_outer, p->n_slots);
            in_block = false;
            break;
        default:
            if (g->dst >= 0) {
                PyObject *value = fetch(g, slots);
                if (unlikely(!value)) goto done;
                slots[g->dst] = value;
            } else if (unlikely(!check(g, slots))) {
                goto done;
            }
        }
    }
done:
    if (unlikely(in_block)) {
        /* Save the error of a check while destructors of temporaries run. */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        drop_slots(slots, p->n_outer, p->n_slots);
        PyErr_Restore(type, value, traceback);
    }
    return i;
}

/* As run_code, with the temporaries made and dropped; -1 if an error that is not an Exception is set. */
static int run_slots(ProgramObject *p, PyObject **slots, bool trust, bool room)
{
    int n_inputs = p->n_inputs, n_outer = p->n_outer;
    for (int i = n_inputs; i < n_outer; i++) slots[i] = NULL;
    int failed = run_code(p, slots, trust, room);
    if (unlikely(failed < p->count && failed >= 0) && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        else failed = -1;
    }
    if (n_outer > n_inputs) {
        PyObject *type = NULL, *value = NULL, *traceback = NULL;
        if (unlikely(failed == -1)) PyErr_Fetch(&type, &value, &traceback);
        for (int i = n_inputs; i < n_outer; i++) Py_XDECREF(slots[i]);
        if (unlikely(failed == -1)) PyErr_Restore(type, value, traceback);
    }
    return failed;
}

int program_first_failure(ProgramObject *p, PyObject **slots, bool trust)
{
    PyObject **copy = PyMem_New(PyObject *, (size_t)p->n_slots + 1);
    if (!copy) {
        PyErr_NoMemory();
        return -1;
    }
    if (p->n_inputs) memcpy(copy, slots, (size_t)p->n_inputs * sizeof(PyObject *));      /* an empty list has no item array */
    int failed = run_slots(p, copy, trust, true);
    PyMem_Free(copy);
    return failed;
}

int program_run(ProgramObject *p, PyObject **slots, int capacity)
{
    Py_INCREF(p);               /* a check may drop the last other reference */
    int failed = NO_ROOM;
    if (likely(p->n_outer <= capacity)) failed = run_slots(p, slots, true, p->n_slots <= capacity);
    if (unlikely(failed == NO_ROOM)) failed = program_first_failure(p, slots, true);
    int count = p->count;
    Py_DECREF(p);
    return likely(failed == count) ? 1 : failed < 0 ? -1 : 0;
}

int checks_init(void)
{
    PyObject *collections = PyImport_ImportModule("collections");
    deque_type = collections ? PyObject_GetAttrString(collections, "deque") : NULL;
    Py_XDECREF(collections);
    return deque_type ? 0 : -1;
}
