/* The operands and the result of a printed pointwise loop (pointwise_loops.h, integer_loops.h). */
#ifndef EAGER_POINTWISE_LOOP_H
#define EAGER_POINTWISE_LOOP_H

#include <stdint.h>

enum { MAX_OPERANDS = 3 };

/* An operand is an array, or a number: of float loops in `number`, of integer loops in `integer`. */
typedef struct {
    void *out;
    const void *in[MAX_OPERANDS];
    double number[MAX_OPERANDS];
    int64_t integer[MAX_OPERANDS];
} Pointwise;

/* Elements [begin, end) of the result. */
typedef void (*Loop)(const Pointwise *ctx, long begin, long end);

#endif
