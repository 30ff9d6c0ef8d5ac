"""The text that the cores of convolutions share: their arguments, micro-kernels, panels of weights, and lines of images.

A tile holds some output positions of one line of the image by a panel of output channels; its depth runs over the taps of the
kernel and, inside a tap, over the input channels. No matrix of patches is made: positions of a line are equally far apart in the
image, so a tile reads the image in place. Where windows leave the image, or its channels are not contiguous, the lines that a
task needs are first copied, padded with zeros and channels last, into scratch memory of the thread (J. Zhang et al., "High
performance zero-memory overhead direct convolutions", 2018, with padding).
"""

from __future__ import annotations

from typing import Final

from inductor.artifact.format import RUNTIME_ABI
from inductor.cpp.gemm_core import Tile, bytes_of, cache_lines, head, products, stores, switch, transposition

__all__ = ["CONV_TASK", "shared_text"]

# The arguments of a core; the same text is in every caller's unit.
CONV_TASK: Final = r"""
/* y[n, p, q, g * columns + j] = sum over r < kh, s < kw, c < channels of
   x[n, p * sh - ph + r * dh, q * sw - pw + s * dw, g * channels + c] * w[g, j, c, r, s]; x is 0 outside of ih x iw. Padding is
   ph and pw at the low end; at the high end it is as much as the sizes require. */
typedef struct {
  const void *x, *w; /* w: null when packed is given */
  void *y; /* null: blocks are in memory of the thread, and only the epilogue reads them */
  const void *packed; /* w in panels, or null */
  long images, groups, channels, columns; /* channels, columns: of one group */
  long ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  long x_n, x_h, x_w, x_c, x_g; /* strides in elements; x_g: from group to group */
  long w_g, w_column, w_c, w_h, w_w;
  long y_n, y_h, y_w, y_g; /* channels are contiguous */
  /* or null; rows: positions of all images. An element of the block is where it would be in y. */
  void (*epilogue)(char **args, void *y, long group, long i0, long i1, long j0, long j1);
  char **args;
} ConvTask;
"""


def shared_text(tile: Tile) -> str:
    """The beginning of the unit of a core. It defines the micro-kernels (`tile`), and the functions below."""
    kernels = "".join(_kernel(tile, rows) for rows in range(1, tile.rows + 1))
    select = switch(tile, _KERNEL_PARAMETERS, "d, a, r, b, c, ldc, add")
    text = RUNTIME_ABI + CONV_TASK + head(tile) + transposition(tile) + _TAPS + kernels + select
    return text + _PANELS + _STAGING + _LINES + _PLAINLY


_KERNEL_PARAMETERS = "const Taps *d, const T *a, long r, const T *b, T *c, long ldc, int add"
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
    lines = [f"static void tile{rows}({_KERNEL_PARAMETERS}) {{"]
    lines += [f"  const char *p{i} = (const char *)a + {i} * r;" for i in range(0, rows, 3)]
    lines += [f"  V {', '.join(f'{x} = {{}}' for x in row)};" for row in acc]
    lines += ["  for (long h = d->lines; h; h--) {", "  for (long w = d->taps; w; w--) {"]
    lines += ["#pragma GCC unroll 4"] if tile.simd_bits < 512 else []
    lines += ["  for (long k = d->k; k; k--) {"]
    lines += [f"    __builtin_prefetch((const char *)(b + 8 * NR) + {64 * i});" for i in range(cache_lines(tile))]
    lines += [f"    V {', '.join(f'b{j} = *(const U *)(b + {j} * W)' for j in vectors)}, t;"]
    lines += products(acc)
    step = bytes_of(tile)
    lines += ["    " + " ".join(f"{p} += {step};" for p in pointers) + " b += NR;", "  }"]
    lines += ["  " + " ".join(f"{p} += d->tap_jump;" for p in pointers) + " }"]
    lines += ["  " + " ".join(f"{p} += d->line_jump;" for p in pointers) + " }"]
    return "\n".join([*lines, *stores(acc, "ldc"), "}", ""])


_PANELS = r"""
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

typedef struct { const ConvTask *v; T *panels; } PackJob;
static void run_pack(void *ctx, long begin, long end) {
  PackJob *p = (PackJob *)ctx;
  pack_panels(p->v, p->panels, begin, end);
}
"""

_STAGING = r"""
static void zero(T *to, long n) {
  for (long i = 0; i < n; i++) to[i] = 0;
}

static inline void copy(const T *from, long n, T *to) {
  long i = 0;
  for (; i + W <= n; i += W) *(U *)(to + i) = *(const U *)(from + i);
  for (; i < n; i++) to[i] = from[i];
}

/* Places [low, high) of a line, channels last. */
static void stage_places(const ConvTask *v, const T *from, long low, long high, T *to) {
  long channels = v->channels;
  if (v->x_c == 1 && v->x_w == channels) {
    __builtin_memcpy(to, from + low * channels, (high - low) * channels * sizeof(T));
  } else if (v->x_c == 1) {
    for (long q = low; q < high; q++, to += channels) copy(from + q * v->x_w, channels, to);
  } else {
    long blocked = v->x_w == 1 ? channels - channels % L : 0, places = high - (high - low) % L;
    for (long c = 0; c < blocked; c += L)
      for (long q = low; q < places; q += L) transpose(from + c * v->x_c + q, v->x_c, L, to + (q - low) * channels + c, channels);
    for (long c = 0; c < channels; c++)
      for (long q = c < blocked ? places : low; q < high; q++) to[(q - low) * channels + c] = from[c * v->x_c + q * v->x_w];
  }
}

/* Lines of an image that output lines [p0, p1) read, `width` places long, padded with zeros. */
static void stage(const ConvTask *v, long width, const T *x, long p0, long p1, T *to) {
  long channels = v->channels;
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
"""

_LINES = r"""
enum { DEPTH_BYTES = 384 << 10 }; /* most bytes of a panel that one pass over the lines of a task reads */

/* A tile at the right edge: computed whole, copied in part (panels are padded with zeros). */
static void edge_tile(long rows, long columns, const Taps *t, const T *a, long r, const T *b, T *c, long ldc, int add) {
  T whole[MR * NR] __attribute__((aligned(64)));
  tile(rows, t, a, r, b, whole, NR, 0);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++)
      c[i * ldc + j] = add ? c[i * ldc + j] + whole[i * NR + j] : whole[i * NR + j];
}

/* The image as the tiles of a task read it: the address of the window of output position (p, q) is
   at + p * line + q * place, for p counted from the first line of the task. */
typedef struct { const T *at; long line, place, h, w; } Image; /* h, w: from tap to tap */

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
"""

_PLAINLY = r"""
/* Out of memory for scratch: lines [p0,p1) and columns [j0,j1) of one group of image n, one element after another. */
static void plainly(const ConvTask *v, long n, long g, long p0, long p1, long j0, long j1) {
  long panels = panels_of(v->columns), taps = v->kh * v->kw, image = n * v->y_n + g * v->y_g, row = n * v->oh * v->ow;
  const T *x = (const T *)v->x + n * v->x_n + g * v->x_g, *packed = (const T *)v->packed, *w = (const T *)v->w;
  T *y = (T *)v->y;
  for (long p = p0; p < p1; p++)
    for (long q = 0; q < v->ow; q++)
      for (long j = j0; j < j1; j++) {
        T sum = 0;
        for (long i = 0; i < taps * v->channels; i++) {
          long c = i % v->channels, s = i / v->channels % v->kw, r = i / v->channels / v->kw;
          long h = p * v->sh - v->ph + r * v->dh, l = q * v->sw - v->pw + s * v->dw;
          if (h < 0 || h >= v->ih || l < 0 || l >= v->iw) continue;
          sum += x[h * v->x_h + l * v->x_w + c * v->x_c] *
                 (packed ? packed[((g * panels + j / NR) * taps * v->channels + i) * NR + j % NR]
                         : w[g * v->w_g + j * v->w_column + c * v->w_c + r * v->w_h + s * v->w_w]);
        }
        long at = image + p * v->y_h + q * v->y_w + j, here = row + p * v->ow + q;
        if (y) y[at] = sum;
        else v->epilogue(v->args, before(&sum, at), g, here, here + 1, j, j + 1);
      }
  if (y && v->epilogue) v->epilogue(v->args, y, g, row + p0 * v->ow, row + p1 * v->ow, j0, j1);
}

/* Out of memory for panels: all elements of the result, one after another. */
static void plainly_all(const ConvTask *v) {
  for (long n = 0; n < v->images; n++)
    for (long g = 0; g < v->groups; g++) plainly(v, n, g, 0, v->oh, 0, v->columns);
}
"""
