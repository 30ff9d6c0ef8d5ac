/* Blocks of random words of Philox 4x32-10, whose counters follow one another.
 *
 * Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. */
#ifndef EAGER_PHILOX_H
#define EAGER_PHILOX_H

#include "kernels/vector_math.h"

enum { PHILOX_BLOCK = 256 };

typedef struct {
    uint32_t word[4][PHILOX_BLOCK];
} PhiloxWords;

/* The words of counters first, first + 1, ...; count: at most PHILOX_BLOCK. */
VM_INLINE void philox_block(PhiloxWords *w, uint64_t seed, uint64_t first, int count)
{
    for (int i = 0; i < count; i++) {
        const uint64_t counter = first + (uint64_t)i;
        uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
            const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)p1;
            c3 = (uint32_t)p0;
            c0 = n0;
            c2 = n2;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        w->word[0][i] = c0;
        w->word[1][i] = c1;
        w->word[2][i] = c2;
        w->word[3][i] = c3;
    }
}

/* [0, 1) with 24 bits of one word. */
VM_INLINE float unit_f32(uint32_t a) { return (float)(int32_t)(a >> 8) * 0x1p-24f; }

#endif
