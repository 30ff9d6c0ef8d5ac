/* The frame evaluation hook, and the regions that threads are in. */
#ifndef FRAMEJIT_HOOK_H
#define FRAMEJIT_HOOK_H

#include "region.h"

typedef struct {
    int mode;
    RegionObject *region;
} SavedRegion;

void hook_acquire(void);                    /* install the hook at the first reason for it */
void hook_release(void);
void region_enter(SavedRegion *saved, RegionObject *region, int mode);
void region_leave(SavedRegion *saved);
/* Call fn so that its own frame runs plainly and its callees are captured in `region`; NULL: the hook stays unchanged. */
PyObject *call_original(RegionObject *region, PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames);
extern PyMethodDef hook_methods[];
#endif
