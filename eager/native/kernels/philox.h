/* The random words of a draw, in order: see eager.optable.random, which states where each element has its words.
 *
 * Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. */
#ifndef EAGER_PHILOX_H
#define EAGER_PHILOX_H

#include "kernels/vector_math.h"
#include "tensor/random_stream.h"

enum {
    PHILOX_CHUNK = 4 * PHILOX_LANES, /* words of PHILOX_LANES counters */
    PHILOX_CHUNKS = 4,               /* that a loop draws at once */
    PHILOX_WORDS = PHILOX_CHUNKS * PHILOX_CHUNK,
};

/* Defines NAME(to, seed, first, chunks): to[CHUNK * c + 16 * w + l] is word w of counter first + 16 * c + l, in groups of LANES counters.
 * V: a vector of 64-bit numbers; the lower half of a number is a word, and PRODUCT(x, m) multiplies these halves by m. The upper
 * halves are never read: the vectoriser would multiply and permute in full. NARROW: the vector of the words alone. */
#define PHILOX(NAME, TARGET, V, NARROW, LANES, PRODUCT)                                                     \
    TARGET static inline void NAME(uint32_t *to, uint64_t seed, uint64_t first, int chunks)                 \
    {                                                                                                       \
        V lanes = {0};                                                                                      \
        for (int lane = 0; lane < LANES; lane++) lanes[lane] = (uint64_t)lane;                              \
        for (int i = 0; i < chunks * PHILOX_LANES; i += LANES) {                                            \
            V c[4] = {lanes + (first + (uint64_t)i), {0}, {0}, {0}};                                        \
            c[1] = c[0] >> 32;                                                                              \
            uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);                                      \
            for (int round = 0; round < 10; round++) {                                                      \
                const V p0 = PRODUCT(c[0], 0xD2511F53u), p1 = PRODUCT(c[2], 0xCD9E8D57u);                   \
                c[0] = (p1 >> 32) ^ c[1] ^ k0;                                                              \
                c[2] = (p0 >> 32) ^ c[3] ^ k1;                                                              \
                c[1] = p1;                                                                                  \
                c[3] = p0;                                                                                  \
                k0 += 0x9E3779B9u;                                                                          \
                k1 += 0xBB67AE85u;                                                                          \
            }                                                                                               \
            for (int word = 0; word < 4; word++) {                                                          \
                const NARROW n = __builtin_convertvector(c[word], NARROW);                                  \
                memcpy(to + i / PHILOX_LANES * PHILOX_CHUNK + word * PHILOX_LANES + i % PHILOX_LANES, &n, sizeof n); \
            }                                                                                               \
        }                                                                                                   \
    }

typedef uint64_t PhiloxV1 __attribute__((vector_size(8)));
typedef uint32_t PhiloxN1 __attribute__((vector_size(4)));
#define PHILOX_PRODUCT_1(x, m) ((PhiloxV1){(uint64_t)(uint32_t)(x)[0] * (m)})
PHILOX(philox_1, , PhiloxV1, PhiloxN1, 1, PHILOX_PRODUCT_1)

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
typedef uint64_t PhiloxV4 __attribute__((vector_size(32)));
typedef uint32_t PhiloxN4 __attribute__((vector_size(16)));
typedef int PhiloxI8 __attribute__((vector_size(32)));
#define PHILOX_PRODUCT_4(x, m) ((PhiloxV4)__builtin_ia32_pmuludq256((PhiloxI8)(x), (PhiloxI8)((PhiloxV4){0} + (m))))
PHILOX(philox_4, __attribute__((target("avx2"))), PhiloxV4, PhiloxN4, 4, PHILOX_PRODUCT_4)

typedef uint64_t PhiloxV8 __attribute__((vector_size(64)));
typedef uint32_t PhiloxN8 __attribute__((vector_size(32)));
typedef int PhiloxI16 __attribute__((vector_size(64)));
typedef long long PhiloxL8 __attribute__((vector_size(64)));
#define PHILOX_PRODUCT_8(x, m) \
    ((PhiloxV8)__builtin_ia32_pmuludq512_mask((PhiloxI16)(x), (PhiloxI16)((PhiloxV8){0} + (m)), (PhiloxL8){0}, (unsigned char)-1))
PHILOX(philox_8, __attribute__((target("avx512f"))), PhiloxV8, PhiloxN8, 8, PHILOX_PRODUCT_8)
#endif

/* The words of chunks whose first counter is `first`. */
VM_INLINE void philox_chunks(uint32_t *to, uint64_t seed, uint64_t first, int chunks)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    if (__builtin_cpu_supports("avx512f")) return philox_8(to, seed, first, chunks);
    if (__builtin_cpu_supports("avx2")) return philox_4(to, seed, first, chunks);
#endif
    philox_1(to, seed, first, chunks);
}

/* [0, 1) with 24 bits of one word. */
VM_INLINE float unit_f32(uint32_t a) { return (float)(int32_t)(a >> 8) * 0x1p-24f; }

#endif
