/* Streams of random numbers. */
#ifndef EAGER_RANDOM_STREAM_H
#define EAGER_RANDOM_STREAM_H

#include "tensor/internal.h"

extern PyTypeObject Stream_Type;

/* Takes `count` values from the CPU's default stream: their seed and first offset. False before Python has set a default. */
bool default_stream_take(int64_t count, uint64_t state[2]);
#endif
