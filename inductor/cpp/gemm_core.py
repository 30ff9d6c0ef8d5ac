"""The text of one GEMM core: a register-blocked matrix product for one element type and tile.

Owns the micro-kernels and the blocking around them. Sizes, strides, blocking, the epilogue (a function pointer called once per
finished block) and the prologue (called once per block of A that it computes) are run-time values, so that a core is compiled once
per machine. It does not depend on the graph or on the choice of a tile.

The scheme is Goto's: B is stored in panels [n / NR][k][NR], A is packed per block into [k][rows] slices, and the tile's
accumulators stay in registers over the whole depth of a block. Accumulators are named variables: g++ 12 spills an array of
vectors unless every loop over it is unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence

from eager.base.records import dataclass
from inductor.artifact.format import RUNTIME_ABI, SourceUnit

__all__ = ["TASK", "Tile", "block_core", "block_symbol", "bytes_of", "cache_lines", "core", "head", "products", "stores", "switch",
           "transposition"]  # fmt: skip

_BYTES = {"float32": 4, "float64": 8}
_TYPES = {"float32": "float", "float64": "double"}

# The arguments of a core; the same text is in every caller's unit.
TASK = r"""
typedef struct {
  const void *a, *b; /* b: null when packed is given */
  void *c; /* null: blocks are in memory of the thread, and only the epilogue reads them */
  const void *packed; /* b in panels, or null */
  long batch, m, n, k;
  long a_row, a_col, b_row, b_col, ldc; /* strides in elements */
  long a_step, b_step, c_step;          /* from one product of the batch to the next */
  long mc, nc, kc;                      /* block sizes: rows, columns, depth */
  long a_direct;                        /* read a in place, without packing */
  long direct;                          /* read rows of b in place, without packing (b_col is 1) */
  long by_block;                        /* pack a panel of b where a block of rows uses it, not all panels before */
  /* or null: it computes rows i0..i1 and columns k0..k1 of the a of one product, and writes element (i, k) to a[i * pitch + k] */
  void (*prologue)(char **args, void *a, long pitch, long batch, long i0, long i1, long k0, long k1);
  /* or null. Element (i, j) of the block is at c[batch * c_step + i * ldc + j]. */
  void (*epilogue)(char **args, void *c, long batch, long i0, long i1, long j0, long j1);
  char **args;
} GemmTask;
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """rows x (vectors * lanes) accumulators, for `dtype` in registers of `simd_bits`."""

    dtype: str
    rows: int
    vectors: int
    simd_bits: int
    fma: bool

    @property
    def lanes(self) -> int:
        return self.simd_bits // 8 // _BYTES[self.dtype]

    @property
    def columns(self) -> int:
        """Width of a panel of B."""
        return self.vectors * self.lanes

    def symbol(self, of: str) -> str:
        """The name of a core's function. of: what the core computes."""
        return f"fj_{of}_{self.dtype}_{self.rows}x{self.columns}_{self.simd_bits}{'f' if self.fma else ''}"


def core(tile: Tile) -> SourceUnit:
    """The translation unit of a tile. It defines

    void SYMBOL(const GemmTask *, const Runtime *)
    void SYMBOL_pack(const void *b, long k, long n, long b_row, long b_col, void *panels)

    SYMBOL is the name of the unit.
    """
    symbol = tile.symbol("gemm")
    kernels = "".join(_kernel(tile, rows, tile.vectors) for rows in range(1, tile.rows + 1))
    select = switch(tile, _KERNEL_PARAMETERS, "k, a, r, q, b, step, c, ldc, add")
    entries = f"""
extern "C" void {symbol}(const GemmTask *g, const Runtime *rt) {{ product(g, rt, rt->threads); }}
extern "C" void {symbol}_pack(const void *b, long k, long n, long b_row, long b_col, void *panels) {{
  pack_panels((const T *)b, k, n, b_row, b_col, (T *)panels, 0, (n + NR - 1) / NR);
}}
"""
    text = head(tile) + transposition(tile) + kernels + select + _EDGE + _PANEL + _BODY + entries
    return SourceUnit(symbol, RUNTIME_ABI + TASK + text, reusable=True)


def switch(tile: Tile, parameters: str, arguments: str) -> str:
    """The function `tile`, which runs the kernel for its number of rows. parameters, arguments: of the kernels."""
    cases = "".join(f"    case {rows}: tile{rows}({arguments}); break;\n" for rows in range(1, tile.rows + 1))
    return f"\nstatic void tile(long rows, {parameters}) {{\n  switch (rows) {{\n{cases}  }}\n}}\n"


def block_symbol(dtype: str) -> str:
    """The function of `block_core` for a dtype, with any tile."""
    return f"fj_block_{dtype}"


def block_core(tile: Tile) -> SourceUnit:
    """The translation unit of products inside of loops, in which every size is small. It defines

    void fj_block_DTYPE(long m, long n, long k, const T *a, long a_row, long a_col, const T *b, long b_row, long b_col,
                        T *c, long c_row, int add)

    c[i, j] = (add ? c[i, j] : 0) + sum of a[i, r] * b[r, j], on the calling thread. a is read in place, and so is b if b_col is 1.
    """
    widths = range(1, tile.vectors + 1)
    kernels = "".join(_kernel(tile, rows, v) for v in widths for rows in range(1, tile.rows + 1))
    table = ", ".join("{" + ", ".join(_name(tile, rows, v) for rows in range(1, tile.rows + 1)) + "}" for v in widths)
    before = f"""
typedef void Kernel({_KERNEL_PARAMETERS});
static Kernel *const kernels[NV][MR] = {{{table}}};
"""
    entry = f"""
extern "C" void {block_symbol(tile.dtype)}(long m, long n, long k, const T *a, long a_row, long a_col, const T *b, long b_row,
                                           long b_col, T *c, long c_row, int add) {{
  block(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, add);
}}
"""
    text = RUNTIME_ABI + head(tile) + transposition(tile) + kernels + _PANEL + before + _BLOCK + entry
    return SourceUnit(tile.symbol("block"), text, reusable=True)


def bytes_of(tile: Tile) -> int:
    """Bytes of one element."""
    return _BYTES[tile.dtype]


def head(tile: Tile) -> str:
    """The types of a tile's unit, its sizes as an enum, and `splat` and `FMA` on vectors."""
    bits, scalar = tile.simd_bits, _TYPES[tile.dtype]
    suffix = "s" if tile.dtype == "float32" else "d"
    if not tile.fma:
        fma = "static inline V FMA(V a, V b, V c) { return a * b + c; }"
    elif bits == 512:
        fma = f"static inline V FMA(V a, V b, V c) {{ return (V)__builtin_ia32_vfmaddp{suffix}512_mask(a, b, c, -1, 4); }}"
    else:
        width = "256" if bits == 256 else ""
        fma = f"static inline V FMA(V a, V b, V c) {{ return (V)__builtin_ia32_vfmaddp{suffix}{width}(a, b, c); }}"
    return f"""
typedef {scalar} T;
enum {{ MR = {tile.rows}, NV = {tile.vectors}, W = {tile.lanes}, NR = {tile.columns} }};
typedef T V __attribute__((vector_size({bits // 8})));
typedef T U __attribute__((vector_size({bits // 8}), aligned({_BYTES[tile.dtype]}), may_alias));
static inline V splat(T x) {{ return x - (V){{}}; }}
/* 32-byte vectors of L numbers, for transposing */
enum {{ L = {32 // _BYTES[tile.dtype]} }};
typedef T X __attribute__((vector_size(32)));
typedef T XU __attribute__((vector_size(32), aligned({_BYTES[tile.dtype]}), may_alias));
typedef {"int" if tile.dtype == "float32" else "long"} XI __attribute__((vector_size(32)));
typedef T HU __attribute__((vector_size(16), aligned({_BYTES[tile.dtype]}), may_alias));
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (XI){{__VA_ARGS__}})
#endif
#if defined(__clang__)
static inline V FMA(V a, V b, V c) {{ return __builtin_elementwise_fma(a, b, c); }}
#else
{fma}
#endif
"""


def _name(tile: Tile, rows: int, width: int) -> str:
    return f"tile{rows}" + ("" if width == tile.vectors else f"_{width}")


def _kernel(tile: Tile, rows: int, width: int) -> str:
    """c[rows][width vectors] (+)= a[rows][k] * b[k][step], b's rows `step` elements apart, a's strides in bytes.

    One pointer serves three rows of a (p, p + r, p + 2r are one addressing mode): one pointer per row would spill.
    """
    vectors = range(width)
    acc = [[f"c{i}_{j}" for j in vectors] for i in range(rows)]
    pointers = [f"p{i}" for i in range(0, rows, 3)]
    lines = [f"static void {_name(tile, rows, width)}({_KERNEL_PARAMETERS}) {{"]
    lines += [f"  const char *p{i} = (const char *)a + {i} * r;" for i in range(0, rows, 3)]
    lines += [f"  V {', '.join(f'{x} = {{}}' for x in row)};" for row in acc]
    # A separate pointer: GCC would keep an offset for each cache line, and spill integers into vector registers.
    lines += ["  const char *f = (const char *)(b + 8 * step);"]
    # 16 registers allow few accumulators: a step is so short that its counter would cost a twentieth of it.
    lines += ["#pragma GCC unroll 4"] if tile.simd_bits < 512 else []
    lines += ["  for (; k; k--) {"]
    lines += [f"    __builtin_prefetch(f + {64 * i});" for i in range(cache_lines(tile, width))]
    lines += [f"    V {', '.join(f'b{j} = *(const U *)(b + {j} * W)' for j in vectors)}, t;"]
    lines += products(acc)
    lines += ["    " + " ".join(f"{p} += q;" for p in pointers) + " b += step; f += step * (long)sizeof(T);", "  }"]
    return "\n".join([*lines, *stores(acc, "ldc"), "}", ""])


def products(acc: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a kernel that add one step of the depth to its accumulators. acc: their names, by row of the tile.

    The scope has vectors b0, b1, ... of a row of b, an undefined vector t, and pointers p0, p3, ... to every third row of a, whose rows
    are r bytes apart.
    """
    return [f"    t = splat(*(const T *)(p{i - i % 3} + {i % 3} * r)); " + " ".join(f"{x} = FMA(t, b{j}, {x});" for j, x in enumerate(row))
            for i, row in enumerate(acc)]  # fmt: skip


def stores(acc: Sequence[Sequence[str]], pitch: str) -> list[str]:
    """The lines of a kernel that store its accumulators in c, whose rows are `pitch` elements apart, or add them there if `add`."""
    place = [[f"*(U *)(c + {i} * {pitch} + {j} * W)" for j in range(len(row))] for i, row in enumerate(acc)]
    both = [list(zip(row, to, strict=True)) for row, to in zip(acc, place, strict=True)]
    added = ["    " + " ".join(f"{x} += {to};" for x, to in row) for row in both]
    return ["  if (add) {", *added, "  }", *("  " + " ".join(f"{to} = {x};" for x, to in row) for row in both)]


_KERNEL_PARAMETERS = "long k, const T *a, long r, long q, const T *b, long step, T *c, long ldc, int add"


def cache_lines(tile: Tile, width: int = 0) -> int:
    """Cache lines in one row of a panel, or in `width` vectors of it."""
    return max(1, (width or tile.vectors) * tile.lanes * _BYTES[tile.dtype] // 64)


def transposition(tile: Tile) -> str:
    """The function `transpose`, for blocks of L x L numbers."""
    return f"""
/* L x L numbers: rows of `from`, `step` apart, become columns of `to`, whose rows are `apart`. The last of `count` rows
   is repeated for the rows after it. */
static inline void transpose(const T *from, long step, long count, T *to, long apart) {{
  X r[L];
#pragma GCC unroll 8
  for (int i = 0; i < L; i++) r[i] = *(const XU *)(from + (i < count ? i : count - 1) * step);
{_exchanges(tile)}
#pragma GCC unroll 8
  for (int i = 0; i < L; i++) *(XU *)(to + i * apart) = r[i];
}}
"""


def _exchanges(tile: Tile) -> str:
    """Statements that transpose the vectors r[0..L): in step s, vectors `apart` exchange groups of `apart` lanes."""
    lanes = 32 // _BYTES[tile.dtype]
    lines = []
    apart = lanes // 2
    while apart:
        for i in range(lanes):
            if i & apart:
                continue
            low = [lane if not lane & apart else lanes + lane - apart for lane in range(lanes)]
            high = [lane + apart if not lane & apart else lanes + lane for lane in range(lanes)]
            a, b = f"r[{i}]", f"r[{i + apart}]"
            lines.append(f"  {{ X p = SHUFFLE({a}, {b}, {', '.join(map(str, low))}), "
                         f"q = SHUFFLE({a}, {b}, {', '.join(map(str, high))}); {a} = p; {b} = q; }}")  # fmt: skip
        apart //= 2
    return "\n".join(lines)


_EDGE = r"""
/* A tile at the right edge: computed whole, copied in part (panels are padded with zeros). */
static void edge_tile(long rows, long columns, long k, const T *a, long r, long q, const T *b, T *c, long ldc,
                      int add) {
  T whole[MR * NR] __attribute__((aligned(64)));
  tile(rows, k, a, r, q, b, NR, whole, NR, 0);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++)
      c[i * ldc + j] = add ? c[i * ldc + j] + whole[i * NR + j] : whole[i * NR + j];
}

"""

_PANEL = r"""
/* One panel: b[k][columns] -> panel[k][NR]. */
static void pack_panel(const T *b, long k, long columns, long b_row, long b_col, T *panel) {
  if (columns == NR && b_col == 1) {
    for (long r = 0; r < k; r++)
      for (int v = 0; v < NV; v++) *(U *)(panel + r * NR + v * W) = *(const U *)(b + r * b_row + v * W);
    return;
  }
  if (columns < NR)
    for (long r = 0; r < k * NR; r++) panel[r] = 0;
  long blocked_k = b_row == 1 ? k - k % L : 0, blocked_columns = columns - columns % L;
  /* two blocks along k: they share cache lines of b */
  for (long r = 0; r < blocked_k; r += 2 * L)
    for (long j = 0; j < blocked_columns; j += L)
      for (long q = r; q < blocked_k && q < r + 2 * L; q += L) transpose(b + q + j * b_col, b_col, L, panel + q * NR + j, NR);
  for (long r = 0; r < k; r++)
    for (long j = r < blocked_k ? blocked_columns : 0; j < columns; j++) panel[r * NR + j] = b[r * b_row + j * b_col];
}

/* Rows are shared out evenly: 16 rows are two tiles of 8, not one of 14 and one of 2. */
typedef struct { long tiles, base, longer; } Rows;
static Rows split_rows(long rows) {
  long tiles = (rows + MR - 1) / MR;
  Rows s = {tiles, rows / tiles, rows % tiles};
  return s;
}
"""

_BLOCK = r"""
static const long DEPTH = 512;

static inline void block(long m, long n, long k, const T *a, long a_row, long a_col, const T *b, long b_row, long b_col, T *c,
                         long c_row, int add) {
  T panel[DEPTH * NR] __attribute__((aligned(64))), whole[MR * NR] __attribute__((aligned(64)));
  if (m <= 0) return;
  Rows rows = split_rows(m);
  for (long p = 0; p < k; p += DEPTH, add = 1) {
    long depth = k - p < DEPTH ? k - p : DEPTH;
    for (long j = 0; j < n; j += NR) {
      long columns = n - j < NR ? n - j : NR, vectors = (columns + W - 1) / W;
      int is_edge = columns % W != 0;
      const T *bp = b + p * b_row + j * b_col;
      long step = b_row;
      if (is_edge || b_col != 1) {
        pack_panel(bp, depth, columns, b_row, b_col, panel);
        bp = panel;
        step = NR;
      }
      for (long t = 0, i = 0; t < rows.tiles; t++) {
        long r = rows.base + (t < rows.longer), pitch = is_edge ? NR : c_row;
        T *to = c + i * c_row + j, *at = is_edge ? whole : to;
        kernels[vectors - 1][r - 1](depth, a + i * a_row + p * a_col, a_row * (long)sizeof(T), a_col * (long)sizeof(T), bp,
                                    step, at, pitch, is_edge ? 0 : add);
        for (long x = 0; is_edge && x < r; x++)
          for (long y = 0; y < columns; y++) to[x * c_row + y] = whole[x * NR + y] + (add ? to[x * c_row + y] : 0);
        i += r;
      }
    }
  }
}
"""

_BODY = r"""
static const long SMALL = 1 << 14; /* most elements of a result whose depth is shared */
static const long DEEP = 2;        /* fewest blocks of depth in a part */

static void pack_panels(const T *b, long k, long n, long b_row, long b_col, T *panels, long begin, long end) {
  for (long p = begin; p < end; p++) {
    long columns = n - p * NR < NR ? n - p * NR : NR;
    pack_panel(b + p * NR * b_col, k, columns, b_row, b_col, panels + p * k * NR);
  }
}

/* a[rows][k] -> out[k][rows], in whole vectors if a allows it: the last vector of a column overlaps the vector before
   it; with fewer than L rows it extends into the next column, which is written later, or up to L - 1 numbers past the end. */
static void pack_rows(const T *a, long rows, long k, long a_row, long a_col, T *out) {
  long c = 0;
  if (a_row == 1 && rows >= L)
    for (; c < k; c++) {
      for (long i = 0; i + L <= rows; i += L) *(XU *)(out + c * rows + i) = *(const XU *)(a + c * a_col + i);
      *(XU *)(out + c * rows + rows - L) = *(const XU *)(a + c * a_col + rows - L);
    }
  else if (a_row == 1 && rows >= L / 2)
    for (; c < k; c++) {
      *(HU *)(out + c * rows) = *(const HU *)(a + c * a_col);
      *(HU *)(out + c * rows + rows - L / 2) = *(const HU *)(a + c * a_col + rows - L / 2);
    }
  else if (a_col == 1)
    for (; c + L <= k; c += L) {
      for (long i = 0; i + L <= rows; i += L) transpose(a + i * a_row + c, a_row, L, out + c * rows + i, rows);
      long i = rows < L ? 0 : rows - L;
      transpose(a + i * a_row + c, a_row, rows - i, out + c * rows + i, rows);
    }
  for (; c < k; c++)
    for (long i = 0; i < rows; i++) out[c * rows + i] = a[i * a_row + c * a_col];
}

/* Prefetches the part t of n of a panel of b that is packed next: k x NR numbers. GCC removes calls of a function that does
   nothing else, unless it is inlined first. */
static inline __attribute__((always_inline)) void fetch(const T *panel, long k, long b_row, long b_col, long t, long n) {
  int is_turned = b_row == 1 && b_col != 1;
  long count = is_turned ? NR : k, apart = is_turned ? b_col : b_row, bytes = (is_turned ? k : NR) * (long)sizeof(T);
  for (long x = t * count / n; x < (t + 1) * count / n; x++)
    for (long at = 0; at < bytes; at += 64) __builtin_prefetch((const char *)(panel + x * apart) + at, 0, 2);
}

static long round_up(long x, long to) { return (x + to - 1) / to * to; }

/* The address n elements before p, which may be outside of all memory. */
static T *before(T *p, long n) { return (T *)((unsigned long)p - (unsigned long)n * sizeof(T)); }

/* Elements between the rows of a computed block of a. One line of the cache more than its depth: rows map to different sets. */
static long pitch_of(const GemmTask *g) { return round_up(g->kc, 64 / (long)sizeof(T)) + 64 / (long)sizeof(T); }

/* Block [i0,i1) x [j0,j1) of product s; j0 is a multiple of NR. `wb` holds the last panel of a direct b, or has room for
   the panel in use. `wa` has room for a block of a that is packed or computed. */
static void block(const GemmTask *g, long s, const T *a, const T *b, T *c, const T *panels, T *wb, T *wa, long i0, long i1,
                  long j0, long j1) {
  Rows rows = split_rows(i1 - i0);
  int is_packed = !g->a_direct && !g->prologue;
  long pitch = pitch_of(g), a_row = g->prologue ? pitch : g->a_direct ? g->a_row : 1;
  if (g->k == 0)
    for (long i = i0; i < i1; i++)
      for (long j = j0; j < j1; j++) c[i * g->ldc + j] = 0;
  for (long p = 0; p < g->k; p += g->kc) {
    long k = g->k - p < g->kc ? g->k - p : g->kc;
    long i = i0;
    if (g->prologue) g->prologue(g->args, before(wa, i0 * pitch + p), pitch, s, i0, i1, p, p + k);
    for (long t = 0; t < rows.tiles && is_packed; t++) {
      long r = rows.base + (t < rows.longer);
      pack_rows(a + i * g->a_row + p * g->a_col, r, k, g->a_row, g->a_col, wa + (i - i0) * k);
      i += r;
    }
    for (long j = j0; j < j1; j += NR) {
      long columns = j1 - j < NR ? j1 - j : NR;
      int whole = columns == NR, in_place = !panels && g->direct && whole;
      const T *bp = panels ? panels + j * g->k + p * NR : in_place ? b + p * g->b_row + j : g->direct ? wb + p * NR : wb;
      long step = in_place ? g->b_row : NR;
      const T *next = 0;
      if (!panels && !g->direct) {
        pack_panel(b + p * g->b_row + j * g->b_col, k, columns, g->b_row, g->b_col, wb);
        if (j + 2 * NR <= j1) next = b + p * g->b_row + (j + NR) * g->b_col;
      }
      i = i0;
      for (long t = 0; t < rows.tiles; t++) {
        long r = rows.base + (t < rows.longer);
        if (next) fetch(next, k, g->b_row, g->b_col, t, rows.tiles); /* comes from memory while tiles are computed */
        const T *ap = g->prologue ? wa + (i - i0) * pitch : is_packed ? wa + (i - i0) * k : a + i * g->a_row + p * g->a_col;
        long row = a_row * (long)sizeof(T), next = (g->prologue ? 1 : is_packed ? r : g->a_col) * (long)sizeof(T);
        if (whole) tile(r, k, ap, row, next, bp, step, c + i * g->ldc + j, g->ldc, p > 0);
        else edge_tile(r, columns, k, ap, row, next, bp, c + i * g->ldc + j, g->ldc, p > 0);
        i += r;
      }
    }
  }
}

typedef struct {
  const GemmTask *g;
  const Runtime *rt;
  const T *panels; /* of the b that all products share, or null */
  long rows, columns, row_blocks, column_blocks;
} Job;

/* Out of memory for scratch: block [i0,i1) x [j0,j1) of product s, one element after another. */
static void plainly(const GemmTask *g, long s, long i0, long i1, long j0, long j1) {
  const T *a = (const T *)g->a + s * g->a_step, *b = (const T *)g->b + s * g->b_step, *packed = (const T *)g->packed;
  for (long i = i0; i < i1; i++)
    for (long j = j0; j < j1; j++) {
      T sum = 0, *c = (T *)g->c;
      for (long k = 0; k < g->k; k++) {
        T x;
        if (g->prologue) g->prologue(g->args, before(&x, i + k), 1, s, i, i + 1, k, k + 1);
        else x = a[i * g->a_row + k * g->a_col];
        sum += x * (packed ? packed[j / NR * NR * g->k + k * NR + j % NR] : b[k * g->b_row + j * g->b_col]);
      }
      if (c) c[s * g->c_step + i * g->ldc + j] = sum;
      else g->epilogue(g->args, before(&sum, s * g->c_step + i * g->ldc + j), s, i, i + 1, j, j + 1);
    }
  if (g->c && g->epilogue) g->epilogue(g->args, (T *)g->c, s, i0, i1, j0, j1);
}

static void run_tasks(void *ctx, long begin, long end) {
  Job *job = (Job *)ctx;
  const GemmTask *g = job->g;
  long a_size = g->prologue ? job->rows * pitch_of(g) : g->a_direct ? 0 : job->rows * g->kc + L;
  long b_size = job->panels ? 0 : g->direct ? (g->n % NR ? g->k * NR : 0) : g->kc * NR;
  long c_size = g->c ? 0 : (job->rows - 1) * g->ldc + (job->columns < g->n ? job->columns : g->n);
  T *wa = (T *)job->rt->scratch(job->rt, 0, (a_size + round_up(b_size, 64) + c_size + 128) * (long)sizeof(T));
  T *wb = wa ? wa + round_up(a_size, 64) : 0, *wc = wa ? wb + round_up(b_size, 64) : 0;
  long packed_for = -1;
  for (long t = begin; t < end; t++) {
    long jb = t % job->column_blocks, ib = t / job->column_blocks % job->row_blocks;
    long s = t / (job->column_blocks * job->row_blocks);
    const T *a = (const T *)g->a + s * g->a_step, *b = (const T *)g->b + s * g->b_step;
    long i0 = ib * job->rows, i1 = i0 + job->rows < g->m ? i0 + job->rows : g->m;
    long j0 = jb * job->columns, j1 = j0 + job->columns < g->n ? j0 + job->columns : g->n;
    if (!wa) {
      plainly(g, s, i0, i1, j0, j1);
      continue;
    }
    if (!job->panels && g->direct && g->n % NR && packed_for != s) {
      pack_panel(b + g->n / NR * NR, g->k, g->n % NR, g->b_row, 1, wb);
      packed_for = s;
    }
    T *c = g->c ? (T *)g->c : before(wc, s * g->c_step + i0 * g->ldc + j0);
    block(g, s, a, b, c + s * g->c_step, job->panels, wb, wa, i0, i1, j0, j1);
    if (g->epilogue) g->epilogue(g->args, c, s, i0, i1, j0, j1);
  }
}

typedef struct { const GemmTask *g; T *panels; } PackJob;
static void run_pack(void *ctx, long begin, long end) {
  PackJob *p = (PackJob *)ctx;
  pack_panels((const T *)p->g->b, p->g->k, p->g->n, p->g->b_row, p->g->b_col, p->panels, begin, end);
}

static void product(const GemmTask *g, const Runtime *rt, long threads);

/* Parts of a long depth: each is a product into sums[part][m][n]. */
typedef struct { const GemmTask *g; const Runtime *rt; T *sums; long depth; } DeepJob;
static void run_depths(void *ctx, long begin, long end) {
  DeepJob *d = (DeepJob *)ctx;
  for (long part = begin; part < end; part++) {
    GemmTask g = *d->g;
    long first = part * d->depth;
    g.a = (const T *)g.a + first * g.a_col;
    g.b = (const T *)g.b + first * g.b_row;
    g.c = d->sums + part * g.m * g.n;
    g.k = g.k - first < d->depth ? g.k - first : d->depth;
    g.ldc = g.n;
    g.epilogue = 0;
    product(&g, d->rt, 1);
  }
}

/* A small result of a long depth: threads share the depth. Returns 0 if the product has another form, or without memory. */
static int deep_product(const GemmTask *g, const Runtime *rt) {
  long parts = 2 * rt->threads, depth = round_up((g->k + parts - 1) / parts, g->kc);
  if (g->batch != 1 || g->prologue || !(g->direct || g->by_block) || !g->c || g->m * g->n > SMALL || depth < DEEP * g->kc) return 0;
  T *sums = (T *)rt->scratch(rt, 1, parts * g->m * g->n * (long)sizeof(T));
  if (!sums) return 0;
  DeepJob job = {g, rt, sums, depth};
  parts = (g->k + depth - 1) / depth;
  rt->parallel_for(rt, run_depths, &job, parts, 1);
  T *c = (T *)g->c;
  for (long i = 0; i < g->m; i++)
    for (long j = 0; j < g->n; j++) {
      T sum = 0;
      for (long part = 0; part < parts; part++) sum += sums[(part * g->m + i) * g->n + j];
      c[i * g->ldc + j] = sum;
    }
  if (g->epilogue) g->epilogue(g->args, c, 0, 0, g->m, 0, g->n);
  return 1;
}

static void product(const GemmTask *g, const Runtime *rt, long threads) {
  if (g->m <= 0 || g->n <= 0 || g->batch <= 0) return;
  int parallel = threads > 1 && 2.0 * g->batch * g->m * g->n * g->k > 2e6;
  int shared = g->batch == 1 || g->b_step == 0;
  if (parallel && deep_product(g, rt)) return;
  Job job = {g, rt, (const T *)g->packed, g->mc, round_up(g->nc, NR), 0, 0};
  if (!job.panels && shared && !g->direct && !g->by_block) {
    long n_panels = (g->n + NR - 1) / NR;
    T *panels = (T *)rt->scratch(rt, 1, n_panels * g->k * NR * (long)sizeof(T));
    if (!panels) {
      for (long s = 0; s < g->batch; s++) plainly(g, s, 0, g->m, 0, g->n);
      return;
    }
    PackJob pack = {g, panels};
    rt->parallel_for(rt, run_pack, &pack, n_panels, parallel ? 1 : n_panels);
    job.panels = panels;
  }
  job.row_blocks = (g->m + job.rows - 1) / job.rows;
  /* At least two blocks a thread, as long as a block keeps a few panels. */
  long wanted = parallel ? 2 * threads : 1;
  while (job.columns > 2 * NR &&
         g->batch * job.row_blocks * ((g->n + job.columns - 1) / job.columns) < wanted)
    job.columns = round_up(job.columns / 2, NR);
  job.column_blocks = (g->n + job.columns - 1) / job.columns;
  /* A small number of blocks must divide evenly: five on two threads take as long as six. */
  while (parallel && g->batch * job.row_blocks * job.column_blocks < 8 * threads &&
         g->batch * job.row_blocks * job.column_blocks % threads && job.row_blocks * MR < g->m)
    job.row_blocks++;
  job.rows = (g->m + job.row_blocks - 1) / job.row_blocks;
  long tasks = g->batch * job.row_blocks * job.column_blocks;
  rt->parallel_for(rt, run_tasks, &job, tasks, parallel ? 1 : tasks);
}
"""
