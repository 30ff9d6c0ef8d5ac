/* A map from pointers to pointers: open addressing, linear probing, keys never NULL. */
#ifndef FRAMEJIT_PTRMAP_H
#define FRAMEJIT_PTRMAP_H

#include <Python.h>
#include <stdint.h>

typedef struct {
    void *key, *value;
} PtrMapItem;

typedef struct {
    PtrMapItem *items;
    size_t size, used;          /* size is 0 or a power of two; used counts live keys */
} PtrMap;

static inline size_t ptrmap_slot(const PtrMap *map, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key;
    h = (h >> 4) * 0x9E3779B97F4A7C15ull;
    return (size_t)(h >> 20) & (map->size - 1);
}

static inline PtrMapItem *ptrmap_find(const PtrMap *map, const void *key)
{
    if (!map->used) return NULL;
    for (size_t i = ptrmap_slot(map, key);; i = (i + 1) & (map->size - 1)) {
        if (map->items[i].key == key) return &map->items[i];
        if (!map->items[i].key) return NULL;
    }
}

static inline void ptrmap_place(PtrMap *map, void *key, void *value)
{
    size_t i = ptrmap_slot(map, key);
    while (map->items[i].key) i = (i + 1) & (map->size - 1);
    map->items[i] = (PtrMapItem){key, value};
}

/* Add a key that is not there. -1 with MemoryError set if there is no room. */
static inline int ptrmap_add(PtrMap *map, void *key, void *value)
{
    if (2 * (map->used + 1) > map->size) {
        PtrMap bigger = {NULL, map->size ? 2 * map->size : 16, map->used};
        bigger.items = PyMem_Calloc(bigger.size, sizeof(PtrMapItem));
        if (!bigger.items) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < map->size; i++)
            if (map->items[i].key) ptrmap_place(&bigger, map->items[i].key, map->items[i].value);
        PyMem_Free(map->items);
        *map = bigger;
    }
    ptrmap_place(map, key, value);
    map->used++;
    return 0;
}

/* Remove an item that ptrmap_find returned, and move up the items after it in its run. */
static inline void ptrmap_remove(PtrMap *map, PtrMapItem *item)
{
    size_t mask = map->size - 1, hole = (size_t)(item - map->items);
    map->items[hole].key = NULL;
    map->used--;
    for (size_t i = (hole + 1) & mask; map->items[i].key; i = (i + 1) & mask) {
        size_t home = ptrmap_slot(map, map->items[i].key);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        map->items[hole] = map->items[i];
        map->items[i].key = NULL;
        hole = i;
    }
}

static inline void ptrmap_free(PtrMap *map)
{
    PyMem_Free(map->items);
    *map = (PtrMap){NULL, 0, 0};
}
#endif
