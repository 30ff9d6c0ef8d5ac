/* Streams of random numbers. */
#ifndef EAGER_RANDOM_STREAM_H
#define EAGER_RANDOM_STREAM_H

#include "tensor/internal.h"

enum { PHILOX_LANES = 16 }; /* LANES of eager.optable.random */

extern PyTypeObject Stream_Type;

/* Takes a draw of `count` elements from the CPU's default stream: its seed and offset. False before Python has set a default. */
bool default_stream_take(int64_t count, uint64_t state[2]);
#endif
