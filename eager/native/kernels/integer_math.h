/* Integer functions of the loop protocol that C has no operator for. */
#ifndef EAGER_INTEGER_MATH_H
#define EAGER_INTEGER_MATH_H

#include <stdint.h>

/* Division rounds down, and the remainder has the sign of the divisor. The divisor is not zero; division by -1 is a negation that
 * wraps, where the machine's instruction would trap for the least integer. */
#define ALWAYS static inline __attribute__((always_inline, unused))
#define INTEGER_MATH(S, T)                                                                                          \
    ALWAYS T minimum_##S(T x, T y) { return x < y ? x : y; }                                                        \
    ALWAYS T maximum_##S(T x, T y) { return x > y ? x : y; }                                                        \
    ALWAYS T floordiv_##S(T x, T y)                                                                                 \
    {                                                                                                               \
        if (y == -1) return (T)(0 - (u##T)x);                                                                       \
        return x / y - ((x % y != 0) & ((x < 0) != (y < 0)));                                                       \
    }                                                                                                               \
    ALWAYS T remainder_##S(T x, T y)                                                                                \
    {                                                                                                               \
        const T rest = y == -1 ? 0 : x % y;                                                                         \
        return rest + ((rest != 0) & ((x < 0) != (y < 0)) ? y : 0);                                                 \
    }
INTEGER_MATH(i32, int32_t)
INTEGER_MATH(i64, int64_t)
ALWAYS uint8_t minimum_bool(uint8_t x, uint8_t y) { return x < y ? x : y; }
ALWAYS uint8_t maximum_bool(uint8_t x, uint8_t y) { return x > y ? x : y; }
#endif
