"""The text of the core for the gradient of a convolution's weight: a register-blocked product over output positions.

dw[o, c, r, s] = sum over n, p, q of g[n, p, q, o] * x[n, p * sh - ph + r * dh, q * sw - pw + s * dw, c]

Owns the micro-kernels and the blocking. A tile holds some input channels of one tap by a panel of output channels; its depth
runs over output positions. Positions whose window leaves the image are outside the range of a tap's loops, so nothing is padded
or copied. Each block of positions stays in cache while all taps and channels of a task read it. Blocks are summed separately and
then added, which bounds the rounding error of long sums. Sizes and strides are run-time values: a core is compiled once per
machine.
"""

from __future__ import annotations

from typing import Final

from inductor.artifact.format import RUNTIME_ABI, SourceUnit
from inductor.cpp.gemm_core import Tile, head, products, stores, switch, transposition

__all__ = ["CONV_WEIGHT_TASK", "conv_weight_core", "shared_text"]

# The arguments of a core; the same text is in every caller's unit.
CONV_WEIGHT_TASK: Final = r"""
typedef struct {
  const void *x, *g;
  void *w;
  long images, groups, channels, columns; /* channels of x and of g in one group */
  long ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  long x_n, x_h, x_w, x_c, x_g, g_n, g_h, g_w, g_g; /* strides in elements; channels of g are contiguous; _g: from group to group */
  long w_column, w_c, w_h, w_w, w_g;
} ConvWeightTask;
"""


def conv_weight_core(tile: Tile) -> SourceUnit:
    """The translation unit of a tile. It defines

    void SYMBOL(const ConvWeightTask *, const Runtime *)

    SYMBOL is the name of the unit.
    """
    symbol = tile.symbol("conv_weight")
    entry = f'\nextern "C" void {symbol}(const ConvWeightTask *v, const Runtime *rt) {{ gradient(v, rt); }}\n'
    return SourceUnit(symbol, shared_text(tile) + _TASKS + entry, reusable=True)


def shared_text(tile: Tile) -> str:
    """The beginning of the unit of a core. It defines the micro-kernels (`tile`), the sums over windows, and their storage."""
    kernels = "".join(_kernel(tile, rows) for rows in range(1, tile.rows + 1))
    select = switch(tile, _KERNEL_PARAMETERS, "s, a, r, b, c, add")
    return RUNTIME_ABI + CONV_WEIGHT_TASK + head(tile) + transposition(tile) + _STEPS + kernels + select + _WINDOWS


_KERNEL_PARAMETERS = "const Steps *s, const T *a, long r, const T *b, T *c, int add"
_STEPS = """
/* The depth of a tile: `lines` of k positions. Steps of a in bytes and of b in elements: from position to position, and from
   the end of a line to the next. */
typedef struct { long lines, k, a_step, b_step, a_jump, b_jump; } Steps;
"""


def _kernel(tile: Tile, rows: int) -> str:
    """c[rows][NR] (+)= sum over positions of a[rows] * b[NR], rows of a `r` bytes apart."""
    vectors = range(tile.vectors)
    acc = [[f"c{i}_{j}" for j in vectors] for i in range(rows)]
    pointers = [f"p{i}" for i in range(0, rows, 3)]
    lines = [f"static void tile{rows}({_KERNEL_PARAMETERS}) {{"]
    lines += [f"  const char *p{i} = (const char *)a + {i} * r;" for i in range(0, rows, 3)]
    lines += ["  const long q = s->a_step, step = s->b_step;"]
    lines += [f"  V {', '.join(f'{x} = {{}}' for x in row)};" for row in acc]
    lines += ["  for (long h = s->lines; h; h--) {"]
    lines += ["#pragma GCC unroll 4"] if tile.simd_bits < 512 else []
    lines += ["  for (long k = s->k; k; k--) {"]
    # Positions may be a page apart, which no prefetcher of a processor follows.
    lines += ["    __builtin_prefetch(p0 + 8 * q);"]
    lines += [f"    V {', '.join(f'b{j} = *(const U *)(b + {j} * W)' for j in vectors)}, t;"]
    lines += products(acc)
    lines += ["    " + " ".join(f"{p} += q;" for p in pointers) + " b += step;", "  }"]
    lines += ["  " + " ".join(f"{p} += s->a_jump;" for p in pointers) + " b += s->b_jump; }"]
    return "\n".join([*lines, *stores(acc, "NR"), "}", ""])


_WINDOWS = r"""
enum { BLOCK_BYTES = 256 << 10, /* of x and g in a block of positions */
       STORED = 4,
       FEWEST = 96 };           /* positions of a block, unless there are fewer: a block loads and stores each accumulator */

typedef struct { long low, high; } Range;
/* Output positions at which tap t of k reads inside of `in`. */
static Range valid(long t, long d, long s, long p, long in, long out) {
  long shift = p - t * d, reach = in + shift;
  Range v = {shift > 0 ? (shift + s - 1) / s : 0, reach > 0 ? (reach + s - 1) / s : 0};
  if (v.high > out) v.high = out;
  if (v.low > v.high) v.low = v.high;
  return v;
}

typedef struct {
  const ConvWeightTask *v;
  const Runtime *rt;
  long panels, tiles, blocks, lines, images; /* tiles: of channels; blocks: of tiles; lines, images: of a block of positions */
  int failed;
} Job;

/* A panel of a group, and some tiles of channels. */
typedef struct { long group, j, columns, t0, t1, c0, count; } Part;

static int is_parallel(const ConvWeightTask *v, const Runtime *rt) {
  return rt->threads > 1 && 2.0 * v->images * v->oh * v->ow * v->groups * v->columns * v->kh * v->kw * v->channels > 2e6;
}

/* First channel of tile t: channels are shared out evenly. */
static long channel_of(const Job *job, long t) { return t * job->v->channels / job->tiles; }

/* Adds (or stores, without `add`) positions of images [n0, n1), lines [p0, p1), to sums[tap][channel][NR] for the tiles
   [t0, t1). `edge` holds the last panel of g, padded with zeros, or is null. */
static void add_block(const Job *job, const T *x, const T *g, const T *edge, long n0, long n1, long p0, long p1, long t0,
                      long t1, T *sums, int add) {
  const ConvWeightTask *v = job->v;
  long c0 = channel_of(job, t0), count = channel_of(job, t1) - c0, item = (long)sizeof(T);
  long b_w = edge ? NR : v->g_w, b_h = edge ? v->ow * NR : v->g_h, b_n = edge ? (p1 - p0) * b_h : v->g_n;
  const T *first = edge ? edge : g + n0 * v->g_n + p0 * v->g_h;
  for (long r = 0; r < v->kh; r++) {
    Range h = valid(r, v->dh, v->sh, v->ph, v->ih, v->oh);
    if (h.low < p0) h.low = p0;
    if (h.high > p1) h.high = p1;
    for (long s = 0; s < v->kw; s++) {
      Range w = valid(s, v->dw, v->sw, v->pw, v->iw, v->ow);
      long k = w.high - w.low;
      if (k <= 0 || h.low >= h.high) { /* no position: nothing to add, and the first block is zero */
        T *to = sums + (r * v->kw + s) * count * NR;
        for (long i = 0; i < count * NR && !add; i++) to[i] = 0;
        continue;
      }
      Steps steps = {h.high - h.low, k, v->sw * v->x_w * item, b_w, (v->sh * v->x_h - k * v->sw * v->x_w) * item, b_h - k * b_w};
      const T *a = x + (h.low * v->sh - v->ph + r * v->dh) * v->x_h + (w.low * v->sw - v->pw + s * v->dw) * v->x_w;
      const T *b = first + (h.low - p0) * b_h + w.low * b_w;
      T *to = sums + (r * v->kw + s) * count * NR;
      for (long t = t0; t < t1; t++) {
        long c = channel_of(job, t), rows = channel_of(job, t + 1) - c;
        for (long n = n0; n < n1; n++)
          tile(rows, &steps, a + n * v->x_n + c * v->x_c, v->x_c * item, b + (n - n0) * b_n, to + (c - c0) * NR, add || n > n0);
      }
    }
  }
}

/* A panel of g with fewer than NR columns, padded. */
static void pack_edge(const ConvWeightTask *v, const T *g, long columns, long n0, long n1, long p0, long p1, T *to) {
  for (long n = n0; n < n1; n++)
    for (long p = p0; p < p1; p++)
      for (long q = 0; q < v->ow; q++, to += NR) {
        const T *from = g + n * v->g_n + p * v->g_h + q * v->g_w;
        for (long j = 0; j < NR; j++) to[j] = j < columns ? from[j] : 0;
      }
}

/* A few columns of the sums, so that their lines in w, which may map to the same sets of the cache, stay there. */
static void store_columns(const ConvWeightTask *v, const T *sums, long channels, long columns, T *w) {
  for (long c = 0; c < channels; c++)
    for (long r = 0; r < v->kh; r++)
      for (long s = 0; s < v->kw; s++) {
        const T *from = sums + ((r * v->kw + s) * channels + c) * NR;
        T *to = w + c * v->w_c + r * v->w_h + s * v->w_w;
        for (long i = 0; i < columns; i++) to[i * v->w_column] = from[i];
      }
}

/* The columns in blocks of L, if channels are contiguous in w; the number of columns stored. */
static long store_blocks(const ConvWeightTask *v, const T *sums, long channels, long columns, T *w) {
  if (channels < L) return 0;
  for (long i = 0; i + L <= columns; i += L)
    for (long r = 0; r < v->kh; r++)
      for (long s = 0; s < v->kw; s++) {
        const T *from = sums + (r * v->kw + s) * channels * NR + i;
        T *to = w + i * v->w_column + r * v->w_h + s * v->w_w;
        for (long c = 0; c < channels; c += L) {
          long at = c + L <= channels ? c : channels - L;
          transpose(from + at * NR, NR, L, to + at, v->w_column);
        }
      }
  return columns - columns % L;
}

static Part part_of(const Job *job, long task) {
  long group = task / job->blocks / job->panels, j = task / job->blocks % job->panels, tb = task % job->blocks;
  long t0 = tb * job->tiles / job->blocks, t1 = (tb + 1) * job->tiles / job->blocks, c0 = channel_of(job, t0);
  long left = job->v->columns - j * NR;
  return (Part){group, j, left < NR ? left : NR, t0, t1, c0, channel_of(job, t1) - c0};
}

/* Numbers of the sums of a part: [tap][channel][NR], and room for the last tile. */
static long size_of_sums(const Job *job) { return job->v->kh * job->v->kw * ((job->tiles + job->blocks - 1) / job->blocks + 1) * MR * NR; }

/* The sums of a part over the windows of all positions. padded: room for a panel of g. */
static void sum_windows(const Job *job, const Part *part, T *sums, T *padded) {
  const ConvWeightTask *v = job->v;
  const T *x = (const T *)v->x + part->group * v->x_g, *g = (const T *)v->g + part->group * v->g_g + part->j * NR;
  int add = 0;
  for (long n = 0; n < v->images; n += job->images)
    for (long p = 0; p < v->oh; p += job->lines) {
      long n1 = n + job->images < v->images ? n + job->images : v->images, p1 = p + job->lines < v->oh ? p + job->lines : v->oh;
      if (part->columns < NR) pack_edge(v, g, part->columns, n, n1, p, p1, padded);
      add_block(job, x, g, part->columns < NR ? padded : 0, n, n1, p, p1, part->t0, part->t1, sums, add);
      add = 1;
    }
  for (long i = 0; i < v->kh * v->kw * part->count * NR && !add; i++) sums[i] = 0;
}

static void store_part(const Job *job, const Part *part, const T *sums) {
  const ConvWeightTask *v = job->v;
  T *w = (T *)v->w + part->group * v->w_g + part->j * NR * v->w_column + part->c0 * v->w_c;
  long done = v->w_c == 1 ? store_blocks(v, sums, part->count, part->columns, w) : 0;
  for (long i = done; i < part->columns; i += STORED)
    store_columns(v, sums + i, part->count, part->columns - i < STORED ? part->columns - i : STORED, w + i * v->w_column);
}

/* Room for a panel of g, if one has fewer than NR columns; whether there was enough memory. */
static int room_for_edges(const Job *job, T **padded) {
  const ConvWeightTask *v = job->v;
  *padded = v->columns % NR ? (T *)job->rt->scratch(job->rt, 1, job->images * job->lines * v->ow * NR * (long)sizeof(T)) : 0;
  return *padded || v->columns % NR == 0;
}

/* Out of memory for sums: one element after another. */
static void plainly(const ConvWeightTask *v) {
  for (long i = 0; i < v->groups * v->columns * v->channels * v->kh * v->kw; i++) {
    long s = i % v->kw, r = i / v->kw % v->kh, c = i / v->kw / v->kh % v->channels;
    long o = i / v->kw / v->kh / v->channels % v->columns, group = i / v->kw / v->kh / v->channels / v->columns;
    Range h = valid(r, v->dh, v->sh, v->ph, v->ih, v->oh), w = valid(s, v->dw, v->sw, v->pw, v->iw, v->ow);
    const T *x = (const T *)v->x + group * v->x_g + c * v->x_c, *g = (const T *)v->g + group * v->g_g + o;
    T sum = 0;
    for (long n = 0; n < v->images; n++)
      for (long p = h.low; p < h.high; p++)
        for (long q = w.low; q < w.high; q++)
          sum += g[n * v->g_n + p * v->g_h + q * v->g_w] *
                 x[n * v->x_n + (p * v->sh - v->ph + r * v->dh) * v->x_h + (q * v->sw - v->pw + s * v->dw) * v->x_w];
    ((T *)v->w)[group * v->w_g + o * v->w_column + c * v->w_c + r * v->w_h + s * v->w_w] = sum;
  }
}

/* The division of the work: blocks of positions of about BLOCK_BYTES, and `wanted` parts a thread, so that their ends coincide. */
static Job divided(const ConvWeightTask *v, const Runtime *rt, long wanted) {
  Job job = {v, rt, (v->columns + NR - 1) / NR, (v->channels + MR - 1) / MR, 1, v->oh, 1, 0};
  long line = (v->sh * v->sw * v->ow * v->channels + v->ow * NR) * (long)sizeof(T);
  job.lines = line > 0 ? BLOCK_BYTES / line : 1;
  if (job.lines * v->ow < FEWEST) job.lines = (FEWEST + v->ow - 1) / (v->ow > 0 ? v->ow : 1);
  if (job.lines < 1) job.lines = 1;
  if (job.lines >= v->oh) {
    job.images = v->oh > 0 ? job.lines / v->oh : 1;
    job.lines = v->oh > 0 ? v->oh : 1;
  } else {
    long blocks = (v->oh + job.lines - 1) / job.lines;
    job.lines = (v->oh + blocks - 1) / blocks;
  }
  while (is_parallel(v, rt) && v->groups * job.panels * job.blocks < wanted * rt->threads && job.blocks < job.tiles) job.blocks++;
  return job;
}

/* Computes all parts by `run`. */
static void compute(Job *job, LoopFn run) {
  long parts = job->v->groups * job->panels * job->blocks;
  job->rt->parallel_for(job->rt, run, job, parts, is_parallel(job->v, job->rt) ? 1 : parts);
  if (job->failed) plainly(job->v);
}
"""

_TASKS = r"""
static void run_parts(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  T *sums = (T *)job->rt->scratch(job->rt, 0, size_of_sums(job) * (long)sizeof(T)), *padded;
  if (!room_for_edges(job, &padded) || !sums) {
    __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (long i = begin; i < end; i++) {
    Part part = part_of(job, i);
    sum_windows(job, &part, sums, padded);
    store_part(job, &part, sums);
  }
}

static void gradient(const ConvWeightTask *v, const Runtime *rt) {
  if (v->columns <= 0 || v->channels <= 0 || v->groups <= 0) return;
  Job job = divided(v, rt, 4);
  compute(&job, run_parts);
}
"""
