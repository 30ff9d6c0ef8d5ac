/* Matrix products with few rows or few columns: see thin.c. */
#ifndef EAGER_THIN_H
#define EAGER_THIN_H

#include "runtime.h"

#include <stdbool.h>

/* Computes `call` on up to `threads` threads, or returns false where BLAS has the better way. */
bool thin_product(const Runtime *rt, const GemmCall *call, int threads);
#endif
