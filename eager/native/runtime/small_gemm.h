/* Matrix products with few rows or few columns: see small_gemm.c. */
#ifndef EAGER_SMALL_GEMM_H
#define EAGER_SMALL_GEMM_H

#include "runtime/runtime.h"

#include <stdbool.h>

/* Computes `call` on up to `threads` threads, or returns false where BLAS is faster. */
bool small_gemm(const Runtime *rt, const GemmCall *call, int threads);
#endif
