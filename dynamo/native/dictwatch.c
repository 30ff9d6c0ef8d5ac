/* Detects every write to a set of dicts: by dict watchers (3.12+), or by the version tags of the dicts (3.11). Owns the map from watched dicts to the blocks that depend on them. */
#include "frame_compat.h"
#include "guards.h"
#include "ptrmap.h"

#if HAS_DICT_WATCHERS

typedef struct {
    Block **blocks;
    Py_ssize_t count, capacity;
} Subscribers;

static int watcher_id = -1;
static PtrMap watched;          /* dict -> Subscribers; blocks hold the dicts, so keys stay alive */

static int on_dict_event(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)event;
    (void)key;
    (void)value;
    PtrMapItem *item = ptrmap_find(&watched, dict);
    if (!item) return 0;
    Subscribers *s = item->value;
    for (Py_ssize_t i = 0; i < s->count; i++) s->blocks[i]->changes++;
    return 0;
}

int dictwatch_init(void)
{
    watcher_id = PyDict_AddWatcher(on_dict_event);
    return watcher_id < 0 ? -1 : 0;
}

static Subscribers *subscribers_of(PyObject *dict)
{
    PtrMapItem *item = ptrmap_find(&watched, dict);
    if (item) return item->value;
    Subscribers *s = PyMem_Calloc(1, sizeof *s);
    if (!s) {
        PyErr_NoMemory();
        return NULL;
    }
    if (ptrmap_add(&watched, dict, s) < 0) {
        PyMem_Free(s);
        return NULL;
    }
    return s;
}

static void unsubscribe(Block *block, PyObject *dict)
{
    PtrMapItem *item = ptrmap_find(&watched, dict);
    if (!item) return;
    Subscribers *s = item->value;
    for (Py_ssize_t i = 0; i < s->count; i++)
        if (s->blocks[i] == block) {
            s->blocks[i] = s->blocks[--s->count];
            break;
        }
    if (s->count) return;
    ptrmap_remove(&watched, item);
    PyMem_Free(s->blocks);
    PyMem_Free(s);
    /* Fails only at the end of the interpreter, after it has dropped its watchers. */
    if (PyDict_Unwatch(watcher_id, dict) < 0) PyErr_Clear();
}

/* Give a dict that shares its values with an instance a separate table. popitem() does this; the item is then
 * inserted again at the end. */
static int own_table(PyObject *dict)
{
    if (!HAS_SHARED_DICT_VALUES || !((PyDictObject *)dict)->ma_values) return 0;
    bool empty = PyDict_GET_SIZE(dict) == 0;
    if (empty && PyDict_SetItemString(dict, "__framejit__", Py_None) < 0) return -1;
    PyObject *item = PyObject_CallMethod((PyObject *)&PyDict_Type, "popitem", "O", dict);
    if (!item) return -1;
    int failed = empty ? 0 : PyDict_SetItem(dict, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1));
    Py_DECREF(item);
    return failed;
}

static int subscribe(Block *block, PyObject *dict)
{
    Subscribers *s = own_table(dict) < 0 ? NULL : subscribers_of(dict);
    if (!s) return -1;
    if (s->count == s->capacity) {
        Py_ssize_t capacity = s->capacity ? 2 * s->capacity : 2;
        Block **blocks = PyMem_Resize(s->blocks, Block *, capacity);
        if (!blocks) {
            PyErr_NoMemory();
            unsubscribe(block, dict);
            return -1;
        }
        s->blocks = blocks;
        s->capacity = capacity;
    }
    s->blocks[s->count++] = block;
    return PyDict_Watch(watcher_id, dict);
}

int block_subscribe(Block *block)
{
    for (int i = 0; i < block->n_dicts; i++)
        if (subscribe(block, block->dicts[i]) < 0) return -1;
    return 0;
}

void block_unsubscribe(Block *block)
{
    for (int i = 0; i < block->n_dicts; i++) unsubscribe(block, block->dicts[i]);
}

uint64_t block_dict_state(const Block *block) { return block->changes; }

#else

int dictwatch_init(void) { return 0; }
int block_subscribe(Block *block)
{
    (void)block;
    return 0;
}
void block_unsubscribe(Block *block) { (void)block; }

/* Each write anywhere gives its dict a tag above all tags given before, so the largest tag of a set
 * changes with every write to one of its members. */
uint64_t block_dict_state(const Block *block)
{
    uint64_t largest = 0;
    for (int i = 0; i < block->n_dicts; i++) {
        uint64_t tag = ((PyDictObject *)block->dicts[i])->ma_version_tag;
        if (tag > largest) largest = tag;
    }
    return largest;
}

#endif
