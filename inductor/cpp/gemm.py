"""The kernel of a matrix product, and the code that calls it.

Owns the choice between numpy's OpenBLAS and the emitted cores (by rule, or from stored measurements), and `emit`. It does not
depend on the loop IR or on the method of measurement (`inductor.driver.autotune`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from eager.base.records import dataclass
from inductor.base.toolchain import Toolchain
from inductor.cpp.gemm_core import TASK, Tile, core
from inductor.cpp.gemm_problem import CoreCode, GemmProblem, RunTimeSizes, pack_code

__all__ = ["GemmChoice", "Request", "candidates", "choose", "collect", "decided", "emit", "suits_prologue"]


@dataclass(frozen=True, slots=True)
class GemmChoice:
    """A way to compute one product. kernel: "blas" or "template"; the other fields are the template's.

    rows, vectors: the tile. mc, nc, kc: block sizes; the core rounds nc up to whole panels. direct, a_direct: b and a are read
    in place, without packing. by_block: each block of rows packs the panels of b that it uses.
    """

    kernel: str
    rows: int = 0
    vectors: int = 0
    mc: int = 0
    nc: int = 0
    kc: int = 0
    direct: bool = False
    a_direct: bool = False
    by_block: bool = False

    def __str__(self) -> str:
        if self.kernel == "blas":
            return "blas"
        unpacked = f"{' a' if self.a_direct else ''}{' b' if self.direct else ''}"
        packed = f"{f' unpacked{unpacked}' if unpacked else ''}{' packed by block' if self.by_block else ''}"
        return f"template {self.rows}x{self.vectors}v mc={self.mc} nc={self.nc} kc={self.kc}{packed}"


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters that a choice depends on besides the machine.

    packed: b is in panels, kept between calls. fused: an epilogue follows, which after BLAS is a separate pass. computed: a prologue
    computes blocks of a.
    """

    problem: GemmProblem
    packed: bool
    fused: bool = False
    computed: bool = False


# Tiles by vector width: rows x vectors, the first for tall products. 32 registers hold 14x2, 7x4 or 8x3 accumulators beside the
# operands, 16 registers hold 6x2 or 4x3.
_TILES = {512: ((14, 2), (7, 4), (8, 3), (14, 1)), 256: ((6, 2), (4, 3), (6, 1)), 128: ((6, 2), (4, 3), (6, 1))}
_BYTES = {"float32": 4, "float64": 8}
_TINY_FLOPS = 2 * 24**3
_NEAR_BYTES = 768 << 10  # most bytes of b that stay in the second-level cache while blocks of rows are computed
_ENOUGH_BLOCKS = 10
_ROWS = 512  # of a block; also the most rows for which packing all of b before costs more than it saves
_COLUMNS = 256  # of a block
_COMPUTED_ROWS = 8  # tiles of a block of a that a prologue computes
_LOW_ROWS = 16  # tiles of a block of a, and
_LOW_DEPTH = 384  # its depth, if it stays in the second-level cache
_FEW_SETS = 8  # most rows of a that may map to the same sets of a first-level cache with 8 ways or more


# --------------------------------------------------------------------------- choosing

_seen: ContextVar[list[Request] | None] = ContextVar("gemm_requests", default=None)
_decided: ContextVar[dict[Request, GemmChoice] | None] = ContextVar("gemm_choices", default=None)


@contextmanager
def collect() -> Iterator[list[Request]]:
    """Record every product for which a choice is made inside the block."""
    seen: list[Request] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


@contextmanager
def decided(choices: dict[Request, GemmChoice]) -> Iterator[None]:
    """In the block these choices replace the rule of thumb."""
    token = _decided.set(choices)
    try:
        yield
    finally:
        _decided.reset(token)


def choose(request: Request, tools: Toolchain, has_blas: bool) -> GemmChoice:
    """The way to compute `request`: a measured choice if there is one, else the rule of thumb."""
    seen, given = _seen.get(), _decided.get()
    if seen is not None and request not in seen:
        seen.append(request)
    if given is not None and request in given:
        return given[request]
    return rule_of_thumb(request, tools, has_blas)


def rule_of_thumb(request: Request, tools: Toolchain, has_blas: bool) -> GemmChoice:
    """The way to compute `request` without a measurement."""
    problem = request.problem
    if has_blas and not request.computed and blas_strides(problem) and _blas_is_better(request):
        return GemmChoice("blas")
    rows, vectors = _tile_for(problem, tools)
    return _template(request, tools, rows, vectors)


def candidates(request: Request, tools: Toolchain, has_blas: bool) -> list[GemmChoice]:
    """The choices to measure for `request`, without repeats, the rule of thumb's first."""
    found = [rule_of_thumb(request, tools, has_blas)]
    if request.computed:
        return found
    if has_blas and blas_strides(request.problem) and found[0].kernel != "blas":
        found.append(GemmChoice("blas"))
    for rows, vectors in _TILES[tools.simd_bits]:
        for depth in (256, 1024):
            choice = _template(request, tools, rows, vectors, depth)
            panel = _panel(request.problem, tools, vectors)
            taller = replace(choice, mc=choice.mc * 2, nc=max(panel, choice.nc // 2 // panel * panel))
            swapped = replace(choice, a_direct=not choice.a_direct)
            found += [variant for variant in (choice, taller, swapped) if variant not in found]
    return found


def suits_prologue(problem: GemmProblem) -> bool:
    """Whether it pays to compute a inside of the product.

    With one block of columns, each element of a is computed once. With more columns the product takes so long that a stored operand
    costs little. Threads need enough rows.
    """
    return 1 <= problem.n <= _COLUMNS and problem.m >= _ROWS


def blas_strides(problem: GemmProblem) -> bool:
    """Whether CBLAS can express the operands: one stride of each must be 1."""

    def fits(strides: tuple[int, int], rows: int, columns: int) -> bool:
        row, column = strides
        return (column == 1 and row >= columns) or (row == 1 and column >= rows)

    return fits(problem.a_strides, problem.m, problem.k) and fits(problem.b_strides, problem.k, problem.n)


def _blas_is_better(request: Request) -> bool:
    p = request.problem
    if request.packed:
        return False
    if 2 * p.m * p.n * p.k <= _TINY_FLOPS:
        return p.batch * p.m * p.n * p.k <= 16 * _TINY_FLOPS  # a core costs 0.5 s to compile, once a machine
    # With few rows and a b that must be transposed first, packing costs more than the product.
    return p.m < 16 and p.b_strides[1] != 1


def _tile_for(problem: GemmProblem, tools: Toolchain) -> tuple[int, int]:
    tiles = _TILES[tools.simd_bits]
    lanes = tools.simd_bits // 8 // _BYTES[problem.dtype]
    if problem.n <= lanes:
        return tiles[-1]
    if tools.simd_bits == 512 and problem.m == 8:
        return 8, 3
    if problem.a_strides[1] != 1 and not _reads_a_directly(problem, tiles[0][0]):
        return tiles[0]  # a is packed, so its rows are close together, and a taller tile reads b less often
    # Low wide tiles distribute rows more evenly and read a less often; a last panel of few columns cancels that gain.
    waste = -problem.n % (4 * lanes) / problem.n
    if tools.simd_bits == 512 and (problem.m <= 7 or waste < 0.05):
        return 7, 4
    return tiles[0]


def _template(request: Request, tools: Toolchain, rows: int, vectors: int, depth: int = 1024) -> GemmChoice:
    """The template's choice for a tile. depth: most of a block of depth.

    A panel of b of this depth is in the second-level cache while all rows of a block use it. The code that follows finds the block of c
    in this cache too. c is read and written once for each block of depth. A transposed a has another cache line for each step of the
    depth: a low block of it stays in the second-level cache while all columns use it. A packed a is blocked in the same way.
    """
    p = request.problem
    panel = _panel(p, tools, vectors)
    a_direct = _reads_a_directly(p, rows)
    is_shared = p.batch == 1 or p.batch_strides[1] == 0
    direct = not request.packed and p.b_strides[1] == 1 and p.b_strides[0] >= p.n and p.m <= _ROWS
    by_block = not request.packed and not direct and (p.m <= _ROWS or not is_shared)
    if request.computed:
        mc, nc, a_direct = _COMPUTED_ROWS * rows, _COLUMNS, False
    elif a_direct and p.a_strides[1] == 1:
        mc, nc = _ROWS, _COLUMNS
    else:
        mc, nc, depth = _LOW_ROWS * rows, 4 * _COLUMNS, min(depth, _LOW_DEPTH)
        mc = _ROWS if direct or by_block else mc if a_direct else _height(p, rows, nc // 2)
    steps = max(1, -(-p.k // depth))
    kc = max(1, -(-p.k // steps))
    return GemmChoice("template", rows, vectors, mc, max(panel, nc // panel * panel), kc, direct, a_direct, by_block)


def _height(problem: GemmProblem, rows: int, columns: int) -> int:
    """Rows of a block. Few rows balance the threads, which wait for each other at the end of a product, half a task on average.
    More rows are better if b is fetched from the last-level cache for each block, as long as there are enough blocks, or
    only one.
    """
    m, n = problem.m, problem.n
    if problem.k * min(n, columns) * _BYTES[problem.dtype] >= _NEAR_BYTES:
        for height in (16 * rows, 8 * rows):
            if m <= height or -(-m // height) * -(-n // columns) >= _ENOUGH_BLOCKS:
                return height
    return 4 * rows


def _panel(problem: GemmProblem, tools: Toolchain, vectors: int) -> int:
    return vectors * (tools.simd_bits // 8 // _BYTES[problem.dtype])


def _reads_a_directly(problem: GemmProblem, rows: int) -> bool:
    # Addresses that differ by a multiple of 2 KB (or nearly) map to the same few sets of the first-level cache; many rows of a
    # tile then evict each other, and packing is faster.
    row, column = problem.a_strides
    size = max(row, column) * _BYTES[problem.dtype]
    if column != 1:
        return row == 1  # the rows of a tile are in one or two cache lines
    return rows <= _FEW_SETS or size < 1024 or min(size % 2048, -size % 2048) >= 128 or problem.m <= 4


# --------------------------------------------------------------------------- emitting


def tile_of(choice: GemmChoice, problem: GemmProblem, tools: Toolchain) -> Tile:
    """The tile of a template choice on this machine."""
    return Tile(problem.dtype, choice.rows, choice.vectors, tools.simd_bits, tools.has_fma)


def block_tile(dtype: str, tools: Toolchain) -> Tile:
    """The tile of products inside of loops, which are tall or wide in turn."""
    rows, vectors = _TILES[tools.simd_bits][0]
    return Tile(dtype, rows, vectors, tools.simd_bits, tools.has_fma)


def packed_bytes(tile: Tile, problem: GemmProblem) -> int:
    """Bytes of b in panels of this tile."""
    panels = -(-problem.n // tile.columns)
    return panels * tile.columns * problem.k * _BYTES[problem.dtype]


def emit(
    problem: GemmProblem,
    is_followed: bool,
    tools: Toolchain,
    *,
    packed: bool = False,
    has_blas: bool = True,
    run_time: RunTimeSizes | None = None,
    computed: bool = False,
) -> CoreCode | None:
    """Code for `problem`, or None if `rt->gemm` is the better choice.

    is_followed: whether an epilogue runs on each finished block. packed: b will be the packed form (only for a batch of one, or a b
    shared by the batch). has_blas: False if the runtime has found no BLAS; the result is then never None. run_time: sources that
    replace the problem's numbers, which then serve only the choice. computed: a prologue computes blocks of a.
    Raises: ValueError for a dtype without a core, and for packed with a b per product.
    """
    if problem.dtype not in _BYTES:
        raise ValueError(f"gemm: dtype {problem.dtype}; allowed: {', '.join(_BYTES)}")
    if packed and problem.batch > 1 and problem.batch_strides[1] != 0:
        raise ValueError("gemm: packed=True with a separate b for each product; allowed: one b for all products")
    choice = choose(Request(problem, packed, is_followed, computed), tools, has_blas)
    if choice.kernel == "blas":
        return None
    return render(problem, tools, choice, packed, run_time)


def render(
    problem: GemmProblem, tools: Toolchain, choice: GemmChoice, packed: bool, run_time: RunTimeSizes | None = None
) -> CoreCode:
    """The code of a template choice."""
    tile = tile_of(choice, problem, tools)
    unit = core(tile)
    (a_row, a_col), (b_row, b_col) = problem.a_strides, problem.b_strides
    a_step, b_step, c_step = problem.batch_strides
    fields: dict[str, object] = {
        "a": "a", **({} if packed else {"b": "b"}), "c": "c", **({"packed": "b"} if packed else {}),
        "batch": problem.batch, "m": problem.m, "n": problem.n, "k": problem.k,
        "a_row": a_row, "a_col": a_col, "b_row": b_row, "b_col": b_col, "ldc": problem.ldc,
        "a_step": a_step, "b_step": b_step, "c_step": c_step, **(run_time.fields if run_time is not None else {}),
        "mc": choice.mc, "nc": choice.nc, "kc": choice.kc,
        "a_direct": int(choice.a_direct), "direct": int(choice.direct and not packed), "by_block": int(choice.by_block),
    }  # fmt: skip
    lines = () if run_time is None else ("char **bufs = (char **)args[0];", *run_time.lines)
    outside = (TASK, f'extern "C" void {unit.name}(const GemmTask *, const Runtime *);')
    note = f"{problem.batch}x[{problem.m},{problem.n},{problem.k}] {choice}{', packed' if packed else ''}"
    made = CoreCode(unit, problem.dtype, "GemmTask", outside, fields, note, lines)
    if not packed:
        return made
    declared = f'extern "C" void {unit.name}_pack(const void *, long, long, long, long, void *);'
    pack = pack_code(f"{unit.name}_pack(source, {problem.k}, {problem.n}, {b_row}, {b_col}, target);", (declared,))
    return replace(made, pack=pack, packed_bytes=packed_bytes(tile, problem))
