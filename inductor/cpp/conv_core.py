"""The text of one convolution core: a register-blocked implicit matrix product over channels-last images.

Owns the micro-kernels and the blocking around them. A tile holds some output positions of one line of the image by a panel of
output channels; its depth runs over the taps of the kernel and, inside a tap, over the input channels. No matrix of patches is
made: positions of a line are equally far apart in the image, so a tile reads the image in place. Where windows leave the image,
or its channels are not contiguous, the lines that a task needs are first copied, padded with zeros and channels last, into
scratch memory of the thread (J. Zhang et al., "High performance zero-memory overhead direct convolutions", 2018, with padding).

Sizes, strides, blocking and the epilogue are run-time values, so that a core is compiled once per machine. It does not depend
on the graph or on the choice of a tile.
"""

from __future__ import annotations

from typing import Final

from inductor.artifact.format import RUNTIME_ABI, SourceUnit
from inductor.cpp.gemm_core import Tile, bytes_of, cache_lines, head

__all__ = ["CONV_TASK", "conv_core", "conv_symbol"]

# The arguments of a core; the same text is in every caller's unit.
CONV_TASK: Final = r"""
#ifndef FJ_CONV_TASK
#define FJ_CONV_TASK
/* y[n, p, q, g * columns + j] = sum over r < kh, s < kw, c < channels of
   x[n, p * sh - ph + r * dh, q * sw - pw + s * dw, g * channels + c] * w[g, j, c, r, s]; x is 0 outside of ih x iw. Padding is
   ph and pw at the low end; at the high end it is as much as the sizes require. */
typedef struct {
  const void *x, *w; /* w: null when packed is given */
  void *y; /* null: blocks are in memory of the thread, and only the epilogue reads them */
  const void *packed; /* SYMBOL_pack of w, or null */
  long images, groups, channels, columns; /* channels, columns: of one group */
  long ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  long x_n, x_h, x_w, x_c, x_g; /* strides in elements; x_g: from group to group */
  long w_g, w_column, w_c, w_h, w_w;
  long y_n, y_h, y_w, y_g; /* channels are contiguous */
  /* or null; rows: positions of all images. An element of the block is where it would be in y. */
  void (*epilogue)(char **args, void *y, long group, long i0, long i1, long j0, long j1);
  char **args;
} ConvTask;
#endif
"""


def conv_symbol(tile: Tile) -> str:
    """Name of the core's function; the packing function is this name + "_pack"."""
    return tile.symbol.replace("fj_gemm", "fj_conv")


def conv_core(tile: Tile) -> SourceUnit:
    """The translation unit of a tile. It defines

    void SYMBOL(const ConvTask *, const Runtime *)
    void SYMBOL_pack(const ConvTask *, void *panels)

    A tap that is read backwards has a negative stride in w. The packed form has groups * panels(columns) * kh * kw * channels * NR
    elements.
    """
    kernels = "".join(_kernel(tile, rows) for rows in range(1, tile.rows + 1))
    cases = "\n".join(f"    case {r}: tile{r}(t, a, r, b, c, ldc, add); break;" for r in range(1, tile.rows + 1))
    body = _BODY.replace("@SYMBOL@", conv_symbol(tile)).replace("@CASES@", cases)
    return SourceUnit(conv_symbol(tile), RUNTIME_ABI + CONV_TASK + head(tile) + _TAPS + kernels + body, reusable=True)


_TAPS = """
/* The depth of a tile: `lines` of `taps` of k channels; jumps in bytes from the end of a tap or line to the next. */
typedef struct { long lines, taps, k, tap_jump, line_jump; } Taps;
"""


def _kernel(tile: Tile, rows: int) -> str:
    """c[rows][NR] (+)= a[rows][taps, k] * b[taps, k][NR], rows of a `r` bytes apart.

    One pointer serves three rows of a (p, p + r, p + 2r are one addressing mode): one pointer per row would spill.
    """
    vectors = range(tile.vectors)
    acc = [[f"c{i}_{j}" for j in vectors] for i in range(rows)]
    pointers = [f"p{i}" for i in range(0, rows, 3)]
    lines = [f"static void tile{rows}(const Taps *t, const T *a, long r, const T *b, T *c, long ldc, int add) {{"]
    lines += [f"  const char *p{i} = (const char *)a + {i} * r;" for i in range(0, rows, 3)]
    lines += [f"  V {', '.join(f'{x} = {{}}' for x in row)};" for row in acc]
    lines += ["  for (long h = t->lines; h; h--) {", "  for (long w = t->taps; w; w--) {"]
    lines += ["#pragma GCC unroll 4"] if tile.simd_bits < 512 else []
    lines += ["  for (long k = t->k; k; k--) {"]
    lines += [f"    __builtin_prefetch((const char *)(b + 8 * NR) + {64 * i});" for i in range(cache_lines(tile))]
    lines += [f"    V {', '.join(f'b{j} = *(const U *)(b + {j} * W)' for j in vectors)}, s;"]
    for i, row in enumerate(acc):
        lines += [f"    s = splat(*(const T *)(p{i - i % 3} + {i % 3} * r)); "
                  + " ".join(f"{x} = FMA(s, b{j}, {x});" for j, x in enumerate(row))]  # fmt: skip
    step = bytes_of(tile)
    lines += ["    " + " ".join(f"{p} += {step};" for p in pointers) + " b += NR;", "  }"]
    lines += ["  " + " ".join(f"{p} += t->tap_jump;" for p in pointers) + " }"]
    lines += ["  " + " ".join(f"{p} += t->line_jump;" for p in pointers) + " }", "  if (add) {"]
    for i, row in enumerate(acc):
        lines += ["    " + " ".join(f"{x} += *(U *)(c + {i} * ldc + {j} * W);" for j, x in enumerate(row))]
    lines += ["  }"]
    for i, row in enumerate(acc):
        lines += ["  " + " ".join(f"*(U *)(c + {i} * ldc + {j} * W) = {x};" for j, x in enumerate(row))]
    return "\n".join([*lines, "}", ""])


_BODY = r"""
enum { DEPTH_BYTES = 384 << 10, /* most bytes of a panel that one pass over the lines of a task reads */
       TASK_BYTES = 192 << 10 }; /* of the image and the result of a task, which stay in the second-level cache */

static void tile(long rows, const Taps *t, const T *a, long r, const T *b, T *c, long ldc, int add) {
  switch (rows) {
@CASES@
  }
}

/* A tile at the right edge: computed whole, copied in part (panels are padded with zeros). */
static void edge_tile(long rows, long columns, const Taps *t, const T *a, long r, const T *b, T *c, long ldc, int add) {
  T whole[MR * NR] __attribute__((aligned(64)));
  tile(rows, t, a, r, b, whole, NR, 0);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++)
      c[i * ldc + j] = add ? c[i * ldc + j] + whole[i * NR + j] : whole[i * NR + j];
}

static long panels_of(long columns) { return (columns + NR - 1) / NR; }

enum { TOGETHER = 8 }; /* lines of a panel that are packed at once, since they share lines of the cache in w */

/* Channels [c0, c1) of one tap of a panel. */
static void pack_channels(const ConvTask *v, const T *from, long width, long c0, long c1, T *to) {
  for (long j = 0; j < width; j++)
    for (long c = c0; c < c1; c++) to[c * NR + j] = from[c * v->w_c + j * v->w_column];
  for (long c = c0; c < c1 && width < NR; c++)
    for (long j = width; j < NR; j++) to[c * NR + j] = 0;
}

/* Panels [begin, end) of all groups. */
static void pack_panels(const ConvTask *v, T *panels, long begin, long end) {
  long count = panels_of(v->columns), taps = v->kh * v->kw;
  for (long p = begin; p < end; p++) {
    long j = p % count * NR, width = v->columns - j < NR ? v->columns - j : NR;
    const T *from = (const T *)v->w + p / count * v->w_g + j * v->w_column;
    T *to = panels + p * taps * v->channels * NR;
    for (long c = 0; c < v->channels; c += TOGETHER)
      for (long r = 0; r < v->kh; r++)
        for (long s = 0; s < v->kw; s++)
          pack_channels(v, from + r * v->w_h + s * v->w_w, width, c, c + TOGETHER < v->channels ? c + TOGETHER : v->channels,
                        to + (r * v->kw + s) * v->channels * NR);
  }
}

extern "C" void @SYMBOL@_pack(const ConvTask *v, void *panels) {
  pack_panels(v, (T *)panels, 0, v->groups * panels_of(v->columns));
}

typedef struct { const ConvTask *v; T *panels; } PackJob;
static void run_pack(void *ctx, long begin, long end) {
  PackJob *p = (PackJob *)ctx;
  pack_panels(p->v, p->panels, begin, end);
}

/* The image as the tiles of a task read it: the address of the window of output position (p, q) is
   at + p * line + q * place, for p counted from the first line of the task. */
typedef struct { const T *at; long line, place, h, w; } Image; /* h, w: from tap to tap */

typedef struct {
  const ConvTask *v;
  const Runtime *rt;
  const T *packed; /* or null: out of memory */
  long lines, line_blocks, panels, panel_blocks; /* lines of the result and panels of a task */
  long width, staged;                            /* of a staged line, in places; whether lines are staged */
  int failed;
} Job;

static void zero(T *to, long n) {
  for (long i = 0; i < n; i++) to[i] = 0;
}

/* Places [low, high) of a line, channels last. */
static void stage_places(const ConvTask *v, const T *from, long low, long high, T *to) {
  long channels = v->channels;
  if (v->x_c == 1 && v->x_w == channels) {
    __builtin_memcpy(to, from + low * channels, (high - low) * channels * sizeof(T));
  } else if (v->x_c == 1) {
    for (long q = low; q < high; q++, to += channels) __builtin_memcpy(to, from + q * v->x_w, channels * sizeof(T));
  } else {
    for (long c = 0; c < channels; c++)
      for (long q = low; q < high; q++) to[(q - low) * channels + c] = from[c * v->x_c + q * v->x_w];
  }
}

/* Lines of image n that output lines [p0, p1) read, padded with zeros. */
static void stage(const Job *job, const T *x, long p0, long p1, T *to) {
  const ConvTask *v = job->v;
  long channels = v->channels, width = job->width;
  long low = v->pw > 0 ? v->pw : 0, high = v->iw + v->pw < width ? v->iw + v->pw : width;
  if (low > width) low = width;
  if (high < low) high = low;
  long first = p0 * v->sh - v->ph, count = (p1 - p0 - 1) * v->sh + (v->kh - 1) * v->dh + 1;
  for (long i = 0; i < count; i++, to += width * channels) {
    if (first + i < 0 || first + i >= v->ih) {
      zero(to, width * channels);
      continue;
    }
    zero(to, low * channels);
    if (high > low) stage_places(v, x + (first + i) * v->x_h, low - v->pw, high - v->pw, to + low * channels);
    zero(to + high * channels, (width - high) * channels);
  }
}

/* Output lines [p0, p1) of panels [j0, j1) of one group. */
static void lines(const ConvTask *v, const Image *m, const T *packed, T *y, long p0, long p1, long j0, long j1) {
  long joined = v->dw == 1 && m->w == v->channels; /* the taps of a line are contiguous */
  long k = joined ? v->kw * v->channels : v->channels, taps = joined ? 1 : v->kw;
  long depth = v->kw * v->channels; /* of a line of taps */
  long most = DEPTH_BYTES / (depth * NR * (long)sizeof(T));
  if (most < 1) most = 1;
  long passes = (v->kh + most - 1) / most, tiles = (v->ow + MR - 1) / MR;
  long base = v->ow / tiles, longer = v->ow % tiles; /* lines are shared out evenly over tiles */
  for (long j = j0; j < j1; j++)
    for (long pass = 0; pass < passes; pass++) {
      long r0 = v->kh * pass / passes, r1 = v->kh * (pass + 1) / passes;
      Taps t = {r1 - r0, taps, k, (m->w - k) * (long)sizeof(T), (m->h - taps * m->w) * (long)sizeof(T)};
      const T *b = packed + (j * v->kh + r0) * depth * NR;
      long columns = v->columns - j * NR < NR ? v->columns - j * NR : NR;
      for (long p = p0; p < p1; p++) {
        const T *a = m->at + (p - p0) * m->line + r0 * m->h;
        T *c = y + p * v->y_h + j * NR;
        for (long i = 0; i < tiles; i++) {
          long rows = base + (i < longer);
          if (columns == NR) tile(rows, &t, a, m->place * (long)sizeof(T), b, c, v->y_w, pass > 0);
          else edge_tile(rows, columns, &t, a, m->place * (long)sizeof(T), b, c, v->y_w, pass > 0);
          a += rows * m->place;
          c += rows * v->y_w;
        }
      }
    }
}

/* The address n elements before p, which may be outside of all memory. */
static T *before(T *p, long n) { return (T *)((unsigned long)p - (unsigned long)n * sizeof(T)); }

static void run_tasks(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  const ConvTask *v = job->v;
  long group_panels = panels_of(v->columns), staged_lines = (job->lines - 1) * v->sh + (v->kh - 1) * v->dh + 1;
  long columns = job->panels * NR < v->columns ? job->panels * NR : v->columns;
  long staged_size = job->staged ? (staged_lines * job->width * v->channels + 63) / 64 * 64 : 0;
  long block_size = v->y ? 0 : (job->lines - 1) * v->y_h + (v->ow - 1) * v->y_w + columns;
  T *scratch = 0, *block = 0;
  if (staged_size + block_size > 0) {
    scratch = (T *)job->rt->scratch(job->rt, 0, (staged_size + block_size) * (long)sizeof(T));
    if (!scratch) {
      __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
      return;
    }
    block = scratch + staged_size;
  }
  long staged = -1;
  for (long task = begin; task < end; task++) {
    long jb = task % job->panel_blocks, rest = task / job->panel_blocks;
    long pb = rest % job->line_blocks, g = rest / job->line_blocks % v->groups, n = rest / job->line_blocks / v->groups;
    long p0 = pb * job->lines, p1 = p0 + job->lines < v->oh ? p0 + job->lines : v->oh;
    long j0 = jb * job->panels, j1 = j0 + job->panels < group_panels ? j0 + job->panels : group_panels;
    const T *x = (const T *)v->x + n * v->x_n + g * v->x_g;
    long image = n * v->y_n + g * v->y_g;
    T *y = v->y ? (T *)v->y : before(block, image + p0 * v->y_h + j0 * NR);
    Image m;
    if (job->staged) {
      if (rest != staged) stage(job, x, p0, p1, scratch);
      staged = rest;
      long w = v->channels, h = job->width * w;
      m = (Image){scratch, v->sh * h, v->sw * w, v->dh * h, v->dw * w};
    } else {
      m = (Image){x + (p0 * v->sh - v->ph) * v->x_h - v->pw * v->x_w, v->sh * v->x_h, v->sw * v->x_w, v->dh * v->x_h,
                  v->dw * v->x_w};
    }
    lines(v, &m, job->packed + g * group_panels * v->kh * v->kw * v->channels * NR, y + image, p0, p1, j0, j1);
    if (v->epilogue) {
      long last = j1 * NR < v->columns ? j1 * NR : v->columns;
      v->epilogue(v->args, y, g, (n * v->oh + p0) * v->ow, (n * v->oh + p1) * v->ow, j0 * NR, last);
    }
  }
}

/* Out of memory for panels or staging: one element after another. */
static void plainly(const ConvTask *v) {
  long panels = panels_of(v->columns), taps = v->kh * v->kw;
  for (long n = 0; n < v->images; n++)
    for (long g = 0; g < v->groups; g++) {
      const T *x = (const T *)v->x + n * v->x_n + g * v->x_g, *packed = (const T *)v->packed, *w = (const T *)v->w;
      for (long p = 0; p < v->oh; p++)
        for (long q = 0; q < v->ow; q++)
          for (long j = 0; j < v->columns; j++) {
            T sum = 0;
            for (long i = 0; i < taps * v->channels; i++) {
              long c = i % v->channels, s = i / v->channels % v->kw, r = i / v->channels / v->kw;
              long h = p * v->sh - v->ph + r * v->dh, l = q * v->sw - v->pw + s * v->dw;
              if (h < 0 || h >= v->ih || l < 0 || l >= v->iw) continue;
              sum += x[h * v->x_h + l * v->x_w + c * v->x_c] *
                     (packed ? packed[((g * panels + j / NR) * taps * v->channels + i) * NR + j % NR]
                             : w[g * v->w_g + j * v->w_column + c * v->w_c + r * v->w_h + s * v->w_w]);
            }
            long at = n * v->y_n + p * v->y_h + q * v->y_w + g * v->y_g + j, row = (n * v->oh + p) * v->ow + q;
            T *y = (T *)v->y;
            if (y) y[at] = sum;
            else y = before(&sum, at);
            if (v->epilogue) v->epilogue(v->args, y, g, row, row + 1, j, j + 1);
          }
    }
}

extern "C" void @SYMBOL@(const ConvTask *v, const Runtime *rt) {
  if (v->images <= 0 || v->oh <= 0 || v->ow <= 0 || v->columns <= 0) return;
  long panels = panels_of(v->columns);
  double work = 2.0 * v->images * v->oh * v->ow * v->groups * v->columns * v->kh * v->kw * v->channels;
  int parallel = rt->threads > 1 && work > 2e6;
  Job job = {v, rt, (const T *)v->packed, v->oh, 1, panels, 1, (v->ow - 1) * v->sw + (v->kw - 1) * v->dw + 1, 0, 0};
  if (!job.packed) {
    T *to = (T *)rt->scratch(rt, 1, v->groups * panels * v->kh * v->kw * v->channels * NR * (long)sizeof(T));
    if (!to) {
      plainly(v);
      return;
    }
    PackJob pack = {v, to};
    rt->parallel_for(rt, run_pack, &pack, v->groups * panels, parallel ? 1 : v->groups * panels);
    job.packed = to;
  }
  job.staged = v->x_c != 1 || v->ph > 0 || v->pw > 0 || (v->oh - 1) * v->sh - v->ph + (v->kh - 1) * v->dh >= v->ih ||
               job.width - v->pw > v->iw;
  /* Lines of a task: its part of the image and of the result stay near; then at least two tasks a thread. */
  long line = (v->sh * job.width * v->channels + v->ow * v->columns) * (long)sizeof(T);
  long most = TASK_BYTES / line;
  if (most < 1) most = 1;
  job.line_blocks = (v->oh + most - 1) / most;
  long wanted = parallel ? 2 * rt->threads : 1, others = v->images * v->groups;
  while (others * job.line_blocks * job.panel_blocks < wanted && job.panels > 1) {
    job.panels = (job.panels + 1) / 2;
    job.panel_blocks = (panels + job.panels - 1) / job.panels;
  }
  while (others * job.line_blocks * job.panel_blocks < wanted && job.line_blocks < v->oh) job.line_blocks++;
  job.lines = (v->oh + job.line_blocks - 1) / job.line_blocks;
  job.line_blocks = (v->oh + job.lines - 1) / job.lines;
  long tasks = others * job.line_blocks * job.panel_blocks;
  rt->parallel_for(rt, run_tasks, &job, tasks, parallel ? 1 : tasks);
  if (job.failed) plainly(v);
}
"""
