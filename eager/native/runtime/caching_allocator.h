/* Memory of CPU tensors: freed blocks are kept by size class and handed out again. */
#ifndef EAGER_CACHING_ALLOCATOR_H
#define EAGER_CACHING_ALLOCATOR_H

#include <stdint.h>

/* 64-byte aligned memory; NULL with RuntimeError if out of memory. Needs the GIL. */
void *pool_alloc(int64_t nbytes);
void pool_free(void *block, int64_t nbytes);
#endif
