"""The text that the cores of minimal filtering share: the transform of the patches of an image, and a test of results.

A patch has the input positions that the windows of a 2x2 tile of the output read: 4x4 of them at a stride of 1, 5x5 at a stride of 2.
"""

from __future__ import annotations

from typing import Final

__all__ = ["POINTS", "STRIDES", "patches_text"]

STRIDES: Final = (1, 2)
POINTS: Final = {1: 16, 2: 25}  # multiplications of a tile, by stride


def patches_text(stride: int) -> str:
    """The functions `transform_patch`, `transform_line`, `is_finite` and `up`, and the sizes STRIDE, SIDE and POINTS."""
    sizes = f"\nenum {{ STRIDE = {stride}, SIDE = {stride + 3}, POINTS = SIDE * SIDE }};\n"
    return sizes + _PATCH[stride] + _LINE


# By stride: b = B a, of `SIDE` neighbours of a patch. The elements of a and b are `step` vectors apart.
_PATCH: Final = {
    1: r"""
static inline void transform_patch(const V *a, long step, V *b) {
  b[0] = a[0] - a[2 * step];
  b[step] = a[step] + a[2 * step];
  b[2 * step] = a[2 * step] - a[step];
  b[3 * step] = a[step] - a[3 * step];
}
""",
    2: r"""
static inline void transform_patch(const V *a, long step, V *b) {
  b[0] = a[0] - a[2 * step];
  b[step] = a[2 * step];
  b[2 * step] = a[2 * step] - a[4 * step];
  b[3 * step] = a[step];
  b[4 * step] = a[3 * step];
}
""",
}

_LINE: Final = r"""
/* The patches of a line of `tiles` tiles, from staged lines `line` elements long. Point i of tile t is at to + i * point + t * row.
   The last vector of a tile reads and writes up to W - 1 elements too many: the next tile, or room after the last. */
static void transform_line(const T *from, long line, long channels, long tiles, T *to, long row, long point) {
  for (long t = 0; t < tiles; t++)
    for (long c = 0; c < channels; c += W) {
      const T *a = from + 2 * STRIDE * t * channels + c;
      V d[POINTS], half[POINTS], all[POINTS];
#pragma GCC unroll 32
      for (long i = 0; i < POINTS; i++) d[i] = *(U *)(a + i / SIDE * line + i % SIDE * channels);
#pragma GCC unroll 32
      for (long j = 0; j < SIDE; j++) transform_patch(d + j, SIDE, half + j);
#pragma GCC unroll 32
      for (long i = 0; i < SIDE; i++) transform_patch(half + SIDE * i, 1, all + SIDE * i);
#pragma GCC unroll 32
      for (long i = 0; i < POINTS; i++) *(U *)(to + i * point + t * row + c) = all[i];
    }
}

/* Whether a sum of results times 0 has no nan. */
static int is_finite(V bad) {
  T sum = 0;
  for (long i = 0; i < W; i++) sum += bad[i];
  return sum == 0;
}

/* A number of elements, rounded up to a multiple of 64: areas of scratch memory begin with a line of the cache. */
static long up(long n) { return (n + 63) / 64 * 64; }
"""
