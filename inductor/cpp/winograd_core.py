"""The text of the core of 3x3 convolutions without dilation, by Winograd's minimal filtering of 2x2 tiles of the output.

Four output positions of a channel need 16 multiplications with an input channel, where windows need 36: the 4x4 input patch of a tile
and the 3x3 taps are transformed, multiplied element by element, and the sums over input channels are transformed back. Each of the 16
elements is a matrix product of all tiles of a task by a panel of output channels (A. Lavin, S. Gray, "Fast algorithms for
convolutional neural networks", 2016). With a stride of 2, even input positions meet two taps and odd positions meet one tap, so the
two are filtered apart, and a 5x5 patch needs 25 multiplications.

The transforms add and halve, and sums are nine times shorter than sums over windows: Lavin and Gray found smaller errors in float32
than the direct form has. Larger tiles lose accuracy; none is used. A transform adds elements that a window multiplies apart. An
infinite element, and a sum that overflows, would give nan where the sum over the window is infinite or finite. A panel of a task with
a result that is not finite is computed again from windows.
"""

from __future__ import annotations

from typing import Final

from inductor.artifact.format import SourceUnit
from inductor.cpp.conv_parts import shared_text
from inductor.cpp.gemm_core import Tile
from inductor.cpp.winograd_parts import POINTS, patches_text

__all__ = ["packed_taps", "winograd_core"]


def packed_taps(stride: int) -> int:
    """Elements of a packed weight for each pair of channels: transformed, then as taps."""
    return POINTS[stride] + 9


def winograd_core(tile: Tile, stride: int) -> SourceUnit:
    """The translation unit of a tile, for strides of `stride` along both dims. It defines

    void SYMBOL(const ConvTask *, const Runtime *)
    void SYMBOL_pack(const ConvTask *, void *panels)

    SYMBOL is the name of the unit. A task has 3x3 taps, and dilations of 1. The packed form has
    groups * panels(columns) * packed_taps(stride) * channels * NR elements.
    """
    symbol = tile.symbol(f"winograd{stride}")
    entries = f"""
extern "C" void {symbol}(const ConvTask *v, const Runtime *rt) {{ convolve(v, rt); }}
extern "C" void {symbol}_pack(const ConvTask *v, void *panels) {{
  long count = v->groups * panels_of(v->columns);
  transform_panels(v, (T *)panels, 0, count);
  pack_panels(v, (T *)panels + count * POINTS * v->channels * NR, 0, count);
}}
"""
    text = shared_text(tile) + patches_text(stride) + _FILTERS[stride] + _TRANSFORMS + _TASKS + _BODY + entries
    return SourceUnit(symbol, text, reusable=True)


# By stride. transform_taps: b = G a, of three taps. transform_sums: (*low, *high) = A m, the two sums of a tile. The elements of a, b
# and m are so many vectors apart.
_FILTERS: Final = {
    1: r"""
static inline void transform_taps(const V *a, long from, V *b, long to) {
  V ends = (a[0] + a[2 * from]) * (T)0.5, middle = a[from] * (T)0.5;
  b[0] = a[0];
  b[to] = ends + middle;
  b[2 * to] = ends - middle;
  b[3 * to] = a[2 * from];
}
static inline void transform_sums(const V *m, long step, V *low, V *high) {
  *low = m[0] + m[step] + m[2 * step];
  *high = m[step] - m[2 * step] - m[3 * step];
}
""",
    2: r"""
static inline void transform_taps(const V *a, long from, V *b, long to) {
  b[0] = a[0];
  b[to] = a[0] + a[2 * from];
  b[2 * to] = a[2 * from];
  b[3 * to] = b[4 * to] = a[from];
}
static inline void transform_sums(const V *m, long step, V *low, V *high) {
  *low = m[0] + m[step] + m[3 * step];
  *high = m[step] - m[2 * step] + m[4 * step];
}
""",
}

_TRANSFORMS = r"""
enum { TAPS = 9 };

/* Panels [begin, end) of all groups as [panel][point][channel][NR]. */
static void transform_panels(const ConvTask *v, T *panels, long begin, long end) {
  long count = panels_of(v->columns), channels = v->channels;
  T taps[TAPS * TOGETHER * NR] __attribute__((aligned(64)));
  for (long p = begin; p < end; p++) {
    long j = p % count * NR, width = v->columns - j < NR ? v->columns - j : NR;
    const T *from = (const T *)v->w + p / count * v->w_g + j * v->w_column;
    T *to = panels + p * POINTS * channels * NR;
    for (long c0 = 0; c0 < channels; c0 += TOGETHER) {
      long some = channels - c0 < TOGETHER ? channels - c0 : TOGETHER;
      for (long i = 0; i < TAPS; i++)
        pack_channels(v, from + c0 * v->w_c + i / 3 * v->w_h + i % 3 * v->w_w, width, 0, some, taps + i * TOGETHER * NR);
      for (long at = 0; at < some * NR; at += W) {
        V g[TAPS], half[3 * SIDE], u[POINTS];
#pragma GCC unroll 32
        for (long i = 0; i < TAPS; i++) g[i] = *(U *)(taps + i * TOGETHER * NR + at);
#pragma GCC unroll 32
        for (long s = 0; s < 3; s++) transform_taps(g + s, 3, half + s, 3);
#pragma GCC unroll 32
        for (long r = 0; r < SIDE; r++) transform_taps(half + 3 * r, 1, u + SIDE * r, 1);
#pragma GCC unroll 32
        for (long i = 0; i < POINTS; i++) *(U *)(to + (i * channels + c0) * NR + at) = u[i];
      }
    }
  }
}

static void run_transform(void *ctx, long begin, long end) {
  PackJob *p = (PackJob *)ctx;
  transform_panels(p->v, p->panels, begin, end);
}
"""

_TASKS = r"""
/* A task: some lines of tiles of one image, or all lines of some images, for some panels. */
typedef struct {
  const ConvTask *v;
  const Runtime *rt;
  const T *points, *taps;  /* panels: transformed; and as taps, null if they are packed where they are needed */
  long wide, high;         /* tiles along a line and lines of tiles of an image */
  long lines, line_blocks; /* lines of tiles of a task */
  long images, image_blocks, panels, panel_blocks;
  long row, point; /* from tile to tile, and from point to point, of transformed patches */
  long width;      /* of a staged line, in places */
} Job;

/* Memory of a thread. */
typedef struct { T *staged, *patches, *sums, *taps, *block; } Memory;

/* The memory of a thread for its tasks; whether there was enough. */
static int remember(const Job *job, Memory *m) {
  const ConvTask *v = job->v;
  long tiles = job->images * job->lines * job->wide, columns = job->panels * NR < v->columns ? job->panels * NR : v->columns;
  long staged = up(((2 * job->lines - 1) * STRIDE + 3) * job->width * v->channels + W), patches = up(POINTS * job->point);
  long sums = up(POINTS * (tiles * NR + W)), taps = job->taps ? 0 : up(TAPS * v->channels * NR);
  long block = v->y ? 0 : (job->images - 1) * v->y_n + (2 * job->lines - 1) * v->y_h + (v->ow - 1) * v->y_w + columns;
  T *all = (T *)job->rt->scratch(job->rt, 0, (staged + patches + sums + taps + block) * (long)sizeof(T));
  if (!all) return 0;
  *m = (Memory){all, all + staged, all + staged + patches, all + staged + patches + sums, all + staged + patches + sums + taps};
  return 1;
}

/* The sums of all points of `tiles` tiles for one panel: a matrix product of each. */
static void multiply(const Job *job, const T *panel, long tiles, const Memory *m) {
  long channels = job->v->channels, blocks = (tiles + MR - 1) / MR, base = tiles / blocks, longer = tiles % blocks;
  Taps depth = {1, 1, channels, 0, 0};
  for (long i = 0; i < POINTS; i++) {
    const T *a = m->patches + i * job->point;
    T *c = m->sums + i * (tiles * NR + W);
    for (long k = 0; k < blocks; k++) {
      long rows = base + (k < longer);
      tile(rows, &depth, a, job->row * (long)sizeof(T), panel + i * channels * NR, c, NR, 0);
      a += rows * job->row;
      c += rows * NR;
    }
  }
}

static inline void put(V value, T *to, long columns) {
  if (columns >= W) *(U *)to = value;
  else
    for (long j = 0; j < columns; j++) to[j] = value[j];
}

/* Stores the tiles of one line of tiles, whose sums begin at m, for `columns` columns of y, the result at the line's first position.
   lines: 2, or 1 where the image ends. Result: 0 in each element if all elements are finite, else nan in some. */
static V finish_line(const ConvTask *v, const T *m, long point, T *y, long lines, long columns) {
  V bad = {};
  for (long q = 0; q < v->ow; q += 2, m += NR)
    for (long j = 0; j < columns; j += W) {
      V all[POINTS], low[SIDE], high[SIDE], sums[4];
#pragma GCC unroll 32
      for (long i = 0; i < POINTS; i++) all[i] = *(U *)(m + i * point + j);
#pragma GCC unroll 32
      for (long i = 0; i < SIDE; i++) transform_sums(all + i, SIDE, low + i, high + i);
      transform_sums(low, 1, sums, sums + 1);
      transform_sums(high, 1, sums + 2, sums + 3);
#pragma GCC unroll 32
      for (long i = 0; i < 4; i++) {
        if (i / 2 >= lines || q + i % 2 >= v->ow) continue;
        put(sums[i], y + i / 2 * v->y_h + (q + i % 2) * v->y_w + j, columns - j);
        bad = FMA(sums[i], (V){}, bad);
      }
    }
  return bad;
}
"""

_BODY = r"""
enum { PATCH_BYTES = 640 << 10, /* of the patches and sums of a task, which stay in the second-level cache */
       FEW_TILES = 32,          /* a task with fewer reads a panel too often */
       SETS = 2048 };           /* bytes: rows that are a multiple of them apart evict each other from the first-level cache */

/* The lines of tiles [i0, i1) of image n, of panel j, from windows. staged: the lines that they read. */
static void from_windows(const Job *job, const T *staged, T *taps, T *y, long g, long i0, long i1, long j) {
  const ConvTask *v = job->v;
  long size = TAPS * v->channels * NR, count = panels_of(v->columns);
  const T *panels = job->taps + g * count * size;
  if (!job->taps) {
    pack_panels(v, before(taps, (g * count + j) * size), g * count + j, g * count + j + 1);
    panels = before(taps, j * size);
  }
  long w = v->channels, h = job->width * w;
  Image m = {staged, STRIDE * h, STRIDE * w, h, w};
  lines(v, &m, panels, y, 2 * i0, 2 * i1 < v->oh ? 2 * i1 : v->oh, j, j + 1);
}

typedef struct { long n0, n1, g, i0, i1, j0, j1; } Block; /* images, group, lines of tiles, panels */

static const T *image_of(const ConvTask *v, long n, long g) { return (const T *)v->x + n * v->x_n + g * v->x_g; }

static void transform_images(const Job *job, const Block *b, const Memory *m) {
  const ConvTask *v = job->v;
  long line = job->width * v->channels, t = 0;
  for (long n = b->n0; n < b->n1; n++) {
    stage(v, job->width, image_of(v, n, b->g), 2 * b->i0, 2 * b->i1, m->staged);
    for (long i = b->i0; i < b->i1; i++, t += job->wide)
      transform_line(m->staged + 2 * STRIDE * (i - b->i0) * line, line, v->channels, job->wide, m->patches + t * job->row, job->row,
                     job->point);
  }
}

/* Panel j of a block, in y (result (0, 0, 0, 0) of the group). */
static void run_panel(const Job *job, const Block *b, const Memory *m, T *y, long j) {
  const ConvTask *v = job->v;
  long size = POINTS * v->channels * NR, tiles = (b->n1 - b->n0) * (b->i1 - b->i0) * job->wide, t = 0;
  long columns = v->columns - j * NR < NR ? v->columns - j * NR : NR;
  multiply(job, job->points + (b->g * panels_of(v->columns) + j) * size, tiles, m);
  for (long n = b->n0; n < b->n1; n++) {
    V bad = {};
    for (long i = b->i0; i < b->i1; i++, t += job->wide)
      bad += finish_line(v, m->sums + t * NR, tiles * NR + W, y + n * v->y_n + 2 * i * v->y_h + j * NR, v->oh - 2 * i < 2 ? 1 : 2,
                         columns);
    if (is_finite(bad)) continue;
    stage(v, job->width, image_of(v, n, b->g), 2 * b->i0, 2 * b->i1, m->staged);
    from_windows(job, m->staged, m->taps, y + n * v->y_n, b->g, b->i0, b->i1, j);
  }
}

static long least(long a, long b) { return a < b ? a : b; }

static void run_tasks(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  const ConvTask *v = job->v;
  ConvTask plain = *v;
  plain.packed = job->taps;
  Memory m;
  int has_memory = remember(job, &m);
  for (long task = begin; task < end; task++) {
    long jb = task % job->panel_blocks, rest = task / job->panel_blocks;
    long i0 = rest % job->line_blocks * job->lines, g = rest / job->line_blocks % v->groups;
    long n0 = rest / job->line_blocks / v->groups * job->images, j0 = jb * job->panels;
    Block b = {n0, least(n0 + job->images, v->images), g, i0, least(i0 + job->lines, job->high),
               j0, least(j0 + job->panels, panels_of(v->columns))};
    long first = n0 * v->y_n + g * v->y_g, last = least(b.j1 * NR, v->columns);
    for (long n = b.n0; n < b.n1 && !has_memory; n++) plainly(&plain, n, g, 2 * i0, least(2 * b.i1, v->oh), j0 * NR, last);
    if (!has_memory) continue;
    T *y = v->y ? (T *)v->y : before(m.block, first + 2 * i0 * v->y_h + j0 * NR);
    transform_images(job, &b, &m);
    for (long j = b.j0; j < b.j1; j++) run_panel(job, &b, &m, y + g * v->y_g, j);
    for (long n = b.n0; n < b.n1 && v->epilogue; n++)
      v->epilogue(v->args, y, g, (n * v->oh + 2 * i0) * v->ow, (n * v->oh + least(2 * b.i1, v->oh)) * v->ow, j0 * NR, last);
  }
}

/* Divides the work: the patches and sums of a task stay near, then at least two tasks a thread. */
static long divide(Job *job, int parallel) {
  const ConvTask *v = job->v;
  long panels = panels_of(v->columns), most = PATCH_BYTES / (POINTS * (v->channels + NR) * (long)sizeof(T));
  if (most < FEW_TILES) most = FEW_TILES;
  job->line_blocks = (job->high + least(most / job->wide + 1, job->high) - 1) / least(most / job->wide + 1, job->high);
  job->images = job->line_blocks > 1 ? 1 : least(v->images, most / (job->wide * job->high) + 1);
  job->image_blocks = (v->images + job->images - 1) / job->images;
  job->panels = panels;
  job->panel_blocks = 1;
  long wanted = parallel ? 2 * job->rt->threads : 1, others = v->groups * job->image_blocks;
  while (others * job->line_blocks * job->panel_blocks < wanted && job->panels > 1) {
    job->panels = (job->panels + 1) / 2;
    job->panel_blocks = (panels + job->panels - 1) / job->panels;
  }
  while (others * job->line_blocks * job->panel_blocks < wanted && job->line_blocks < job->high) job->line_blocks++;
  if (job->line_blocks > 1) {
    job->images = 1;
    job->image_blocks = v->images;
  }
  job->lines = (job->high + job->line_blocks - 1) / job->line_blocks;
  job->line_blocks = (job->high + job->lines - 1) / job->lines;
  job->row = v->channels * (long)sizeof(T) % SETS ? v->channels : v->channels + 64 / (long)sizeof(T);
  job->point = job->images * job->lines * job->wide * job->row + W;
  return v->groups * job->image_blocks * job->line_blocks * job->panel_blocks;
}

static void convolve(const ConvTask *v, const Runtime *rt) {
  if (v->images <= 0 || v->oh <= 0 || v->ow <= 0 || v->columns <= 0) return;
  long panels = v->groups * panels_of(v->columns), size = v->channels * NR;
  double work = 2.0 * v->images * v->oh * v->ow * v->groups * v->columns * TAPS * v->channels;
  int parallel = rt->threads > 1 && work > 2e6;
  long wide = (v->ow + 1) / 2, high = (v->oh + 1) / 2;
  const T *packed = (const T *)v->packed;
  long width = (2 * wide - 1) * STRIDE + 3;
  Job job = {v, rt, packed, packed ? packed + panels * POINTS * size : 0, wide, high, 0, 0, 0, 0, 0, 0, 0, 0, width};
  if (!packed) {
    T *to = (T *)rt->scratch(rt, 1, panels * POINTS * size * (long)sizeof(T));
    if (!to) {
      plainly_all(v);
      return;
    }
    PackJob pack = {v, to};
    rt->parallel_for(rt, run_transform, &pack, panels, parallel ? 1 : panels);
    job.points = to;
  }
  long tasks = divide(&job, parallel);
  rt->parallel_for(rt, run_tasks, &job, tasks, parallel ? 1 : tasks);
}
"""
