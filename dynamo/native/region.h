/* Regions: the dispatchers of the frames that the hook meets on behalf of one compiled function. */
#ifndef FRAMEJIT_REGION_H
#define FRAMEJIT_REGION_H

#include "dispatcher.h"

extern PyTypeObject RegionType;
extern RegionObject *default_region;        /* the region of enter_region() without an argument */
extern PyMethodDef region_methods[];
int region_init(void);
PyObject *region_miss(RegionObject *region);                              /* borrowed, or NULL */
/* The dispatcher for a code: borrowed, or NULL; *skipped: whether the code has a skip mark instead. */
DispatcherObject *region_find(RegionObject *region, PyCodeObject *code, bool *skipped);
#endif
