"""The text of the core for the gradient of a 3x3 weight without strides, by Winograd's minimal filtering of 2x2 tiles of the cotangent.

The nine taps of a pair of channels need 16 multiplications for each tile, where windows need 36. The transforms are the transposes of
those in `winograd_core`: dw = G' [(A g A') * (B' d B)] G, for a tile g of the cotangent and the 4x4 patch d of the image that its windows
read. Each of the 16 elements is a matrix product over all tiles, of channels by columns (A. Lavin, S. Gray, "Fast algorithms for
convolutional neural networks", 2016). G comes last, once for each pair of channels.

Blocks of tiles are summed separately and then added, as windows are. A part with a result that is not finite is computed again from
windows: a transform adds elements that a window multiplies apart.
"""

from __future__ import annotations

from inductor.artifact.format import SourceUnit
from inductor.cpp.conv_weight_core import shared_text
from inductor.cpp.gemm_core import Tile
from inductor.cpp.winograd_parts import patches_text

__all__ = ["winograd_weight_core"]


def winograd_weight_core(tile: Tile) -> SourceUnit:
    """The translation unit of a tile. It defines

    void SYMBOL(const ConvWeightTask *, const Runtime *)

    SYMBOL is the name of the unit. A task has 3x3 taps, strides and dilations of 1, and contiguous channels of x.
    """
    symbol = tile.symbol("winograd_weight")
    entry = f'\nextern "C" void {symbol}(const ConvWeightTask *v, const Runtime *rt) {{ gradient(v, rt); }}\n'
    return SourceUnit(symbol, shared_text(tile) + patches_text(1) + _TRANSFORMS + _BODY + entry, reusable=True)


_TRANSFORMS = r"""
/* b = A a, of two neighbours of a tile; b = G' a, of four sums. Elements of a and b are so many vectors apart. */
static inline void transform_tile(const V *a, long from, V *b, long to) {
  b[0] = a[0];
  b[to] = a[0] + a[from];
  b[2 * to] = a[0] - a[from];
  b[3 * to] = -a[from];
}
static inline void transform_sums(const V *a, long from, V *b, long to) {
  V ends = (a[from] + a[2 * from]) * (T)0.5;
  b[0] = a[0] + ends;
  b[to] = (a[from] - a[2 * from]) * (T)0.5;
  b[2 * to] = ends + a[3 * from];
}

/* A vector of g, from column j on; 0 outside of the panel. */
static inline V some(const T *g, long j, long columns) {
  if (j + W <= columns) return *(const U *)(g + j);
  V v = {};
  for (long i = 0; j + i < columns; i++) v[i] = g[j + i];
  return v;
}

/* The tiles of a line of tiles of the cotangent, which begins at g. lines: 2, or 1 where the image ends. Point i of tile t is at
   to + i * point + t * NR. */
static void transform_tiles(const ConvWeightTask *v, const T *g, long lines, long columns, T *to, long point) {
  for (long q = 0; q < v->ow; q += 2, to += NR)
    for (long j = 0; j < NR; j += W) {
      V d[4] = {}, half[8], all[POINTS];
#pragma GCC unroll 4
      for (long i = 0; i < 4; i++)
        if (i / 2 < lines && q + i % 2 < v->ow) d[i] = some(g + i / 2 * v->g_h + (q + i % 2) * v->g_w, j, columns);
#pragma GCC unroll 2
      for (long i = 0; i < 2; i++) transform_tile(d + i, 2, half + i, 2);
#pragma GCC unroll 4
      for (long i = 0; i < SIDE; i++) transform_tile(half + 2 * i, 1, all + SIDE * i, 1);
#pragma GCC unroll 16
      for (long i = 0; i < POINTS; i++) *(U *)(to + i * point + j) = all[i];
    }
}

/* sums[point][count] -> taps[tap][count], count a multiple of W. Result: whether all taps are finite. */
static int transform_taps(const T *sums, long count, T *taps) {
  V bad = {};
  for (long at = 0; at < count; at += W) {
    V m[POINTS], half[12], w[9];
#pragma GCC unroll 16
    for (long i = 0; i < POINTS; i++) m[i] = *(U *)(sums + i * count + at);
#pragma GCC unroll 4
    for (long i = 0; i < SIDE; i++) transform_sums(m + i, SIDE, half + i, SIDE);
#pragma GCC unroll 3
    for (long i = 0; i < 3; i++) transform_sums(half + SIDE * i, 1, w + 3 * i, 1);
#pragma GCC unroll 9
    for (long i = 0; i < 9; i++) {
      *(U *)(taps + i * count + at) = w[i];
      bad = FMA(w[i], (V){}, bad);
    }
  }
  return is_finite(bad);
}
"""

_BODY = r"""
enum { POINT_BYTES = 768 << 10, /* of the patches, tiles and sums of a part, which stay in the second-level cache */
       FEW_TILES = 48,          /* a block with fewer loads and stores each sum too often */
       WIDEST = 64 };           /* channels of a part, unless it has one tile of them */

/* Memory of a thread. room: channels of a part, in whole vectors. lines: lines of tiles of a block. */
typedef struct { T *line, *patches, *tiles, *points, *sums, *padded; long wide, high, room, lines, patch, tile; } Memory;

/* The memory of a thread for its parts; whether there was enough. */
static int remember(const Job *job, Memory *m) {
  const ConvWeightTask *v = job->v;
  long channels = 0;
  for (long task = 0; task < job->blocks; task++) {
    Part part = part_of(job, task);
    if (part.count > channels) channels = part.count;
  }
  long sums = POINTS * channels * NR;
  m->wide = (v->ow + 1) / 2;
  m->high = (v->oh + 1) / 2;
  m->room = (channels + W - 1) / W * W;
  long most = (POINT_BYTES / (long)sizeof(T) - sums) / (POINTS * (m->room + NR));
  if (most < FEW_TILES) most = FEW_TILES;
  m->lines = most / m->wide > 0 ? most / m->wide : 1;
  m->patch = m->lines * m->wide * m->room;
  m->tile = m->lines * m->wide * NR;
  long line = up(SIDE * (2 * m->wide + 2) * m->room), patches = up(POINTS * m->patch), tiles = up(POINTS * m->tile);
  T *all = (T *)job->rt->scratch(job->rt, 0, (line + patches + tiles + up(sums) + size_of_sums(job)) * (long)sizeof(T));
  if (!room_for_edges(job, &m->padded) || !all) return 0;
  m->line = all;
  m->patches = m->line + line;
  m->tiles = m->patches + patches;
  m->points = m->tiles + tiles;
  m->sums = m->points + up(sums);
  return 1;
}

/* The four lines of an image, from line h on, that a line of tiles reads, with zeros outside of the image: [line][place][room]. */
static void copy_lines(const ConvWeightTask *v, const T *x, long h, long count, const Memory *m) {
  long places = 2 * m->wide + 2, low = v->pw > 0 ? v->pw : 0, high = v->pw + v->iw < places ? v->pw + v->iw : places;
  for (long i = h; i < h + SIDE; i++) {
    int is_inside = i >= 0 && i < v->ih && low < high;
    long first = is_inside ? low : places, last = is_inside ? high : places;
    T *to = m->line + (i - h) * places * m->room;
    __builtin_memset(to, 0, first * m->room * sizeof(T));
    __builtin_memset(to + last * m->room, 0, (places - last) * m->room * sizeof(T));
    if (first == last) continue;
    const T *from = x + i * v->x_h + (first - v->pw) * v->x_w;
    if (v->x_w == m->room) __builtin_memcpy(to + first * m->room, from, (last - first) * m->room * sizeof(T));
    else
      for (long p = first; p < last; p++) __builtin_memcpy(to + p * m->room, from + (p - first) * v->x_w, count * sizeof(T));
  }
}

/* The sums of all points of a part. */
static void sum_points(const Job *job, const Part *part, const Memory *m) {
  const ConvWeightTask *v = job->v;
  const T *x = (const T *)v->x + part->group * v->x_g + part->c0, *g = (const T *)v->g + part->group * v->g_g + part->j * NR;
  long all = v->images * m->high, item = (long)sizeof(T);
  for (long begin = 0; begin < all; begin += m->lines) {
    long end = begin + m->lines < all ? begin + m->lines : all, k = (end - begin) * m->wide;
    for (long at = begin; at < end; at++) {
      long n = at / m->high, i = at % m->high, t = (at - begin) * m->wide;
      copy_lines(v, x + n * v->x_n, 2 * i - v->ph, part->count, m);
      transform_line(m->line, (2 * m->wide + 2) * m->room, m->room, m->wide, m->patches + t * m->room, m->room, m->patch);
      transform_tiles(v, g + n * v->g_n + 2 * i * v->g_h, v->oh - 2 * i < 2 ? 1 : 2, part->columns, m->tiles + t * NR, m->tile);
    }
    Steps steps = {1, k, m->room * item, NR, 0, 0};
    for (long i = 0; i < POINTS; i++)
      for (long t = part->t0; t < part->t1; t++) {
        long c = channel_of(job, t) - part->c0, rows = channel_of(job, t + 1) - part->c0 - c;
        tile(rows, &steps, m->patches + i * m->patch + c, item, m->tiles + i * m->tile, m->points + (i * part->count + c) * NR, begin > 0);
      }
  }
}

static void run_parts(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  Memory m;
  if (!remember(job, &m)) {
    __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (long i = begin; i < end; i++) {
    Part part = part_of(job, i);
    sum_points(job, &part, &m);
    if (!transform_taps(m.points, part.count * NR, m.sums)) sum_windows(job, &part, m.sums, m.padded);
    store_part(job, &part, m.sums);
  }
}

static void gradient(const ConvWeightTask *v, const Runtime *rt) {
  if (v->columns <= 0 || v->channels <= 0 || v->groups <= 0) return;
  if (v->images <= 0 || v->oh <= 0 || v->ow <= 0) {
    plainly(v);
    return;
  }
  Job job = divided(v, rt, 1);
  while (job.blocks < job.tiles && v->channels > job.blocks * WIDEST) job.blocks++;
  compute(&job, run_parts);
}
"""
