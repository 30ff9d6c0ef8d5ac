"""The core of a convolution, and the code that calls it.

Owns the choice of a tile and `emit`. It does not depend on the loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eager.base.records import dataclass
from inductor.artifact.format import SourceUnit
from inductor.base.toolchain import Toolchain
from inductor.cpp.conv_core import CONV_TASK, conv_core, conv_symbol
from inductor.cpp.conv_weight_core import CONV_WEIGHT_TASK, conv_weight_core, conv_weight_symbol
from inductor.cpp.gemm_core import Tile
from inductor.cpp.units import NAME, declared
from inductor.cpp.values import size_source
from inductor.cpp.windows import Convolution

__all__ = ["ConvCode", "emit", "emit_weight_gradient"]

_TILES: Final[Mapping[int, tuple[tuple[int, int], ...]]] = {
    512: ((7, 4), (14, 2), (14, 1)),
    256: ((6, 2), (4, 3), (6, 1)),
    128: ((6, 2), (4, 3), (6, 1)),
}
_REAL: Final = {"float32": "float", "float64": "double"}
_BYTES: Final = {"float32": 4, "float64": 8}
_LATENCY: Final = 8  # a tile of fewer accumulators waits for the results of its additions
_SETS: Final = 2048  # bytes: rows of a tile this far apart, or a multiple of it, evict each other from the first-level cache
_FEW_ROWS: Final = 8  # ways of that cache


@dataclass(frozen=True, slots=True)
class ConvCode:
    """text: defines `head`, which is `void NAME(const T* x, const T* w, T* y, long, char** args, const Runtime* rt)`. pack_text: if the
    weight is packed, defines `NAME_pack(const void* w, void* packed)`. unit: the core. packed_bytes: of the weight in panels. note:
    for the log.
    """

    head: str
    text: str
    unit: SourceUnit
    pack_text: str
    packed_bytes: int
    note: str


def emit(v: Convolution, is_followed: bool, packed: bool, tools: Toolchain) -> ConvCode:
    """The code of a convolution. is_followed: `NAME_block` runs on each finished block. packed: `w` is the weight in panels."""
    tile = _tile(v, tools)
    symbol, real = conv_symbol(tile), _REAL[v.dtype]
    sizes, symbols = _sizes(v)
    head = _head(real)
    weight = "0, y, w" if packed else "w, y, 0"  # w, y, packed
    after = f", .epilogue = {NAME}_block, .args = args" if is_followed else ""
    text = f"""{CONV_TASK}
extern "C" void {symbol}(const ConvTask *, const Runtime *);
FJ_LOCAL {head} {{
{symbols}  ConvTask task = {{x, {weight}, {sizes}{after}}};
  {symbol}(&task, rt);
}}
"""
    pack_text = ""
    if packed:
        fixed = ", ".join(f".{name} = {n}" for name, n in v.fields.items() if name != "images")
        pack_text = f"""{CONV_TASK}
extern "C" void {symbol}_pack(const ConvTask *, void *);
extern "C" __attribute__((visibility("default"))) void {NAME}_pack(const void *w, void *packed) {{
  ConvTask task = {{0, (const {real} *)w + {v.starts[1]}, 0, 0, {fixed}}};
  {symbol}_pack(&task, packed);
}}
"""
    panels = -(-v["columns"] // tile.columns)
    nbytes = v["groups"] * panels * tile.columns * v["kh"] * v["kw"] * v["channels"] * _BYTES[v.dtype]
    return ConvCode(head, text, conv_core(tile), pack_text, nbytes, _note(v, tile, ", packed" if packed else ""))


def emit_weight_gradient(v: Convolution, tools: Toolchain) -> ConvCode:
    """The code of the gradient of a weight: `w` is the cotangent, `y` the gradient."""
    tile = _weight_tile(v, tools)
    symbol, real = conv_weight_symbol(tile), _REAL[v.dtype]
    sizes, symbols = _sizes(v)
    head = _head(real)
    text = f"""{CONV_WEIGHT_TASK}
extern "C" void {symbol}(const ConvWeightTask *, const Runtime *);
FJ_LOCAL {head} {{
{symbols}  ConvWeightTask task = {{x, w, y, {sizes}}};
  {symbol}(&task, rt);
}}
"""
    return ConvCode(head, text, conv_weight_core(tile), "", 0, _note(v, tile, ", gradient of the weight"))


def _head(real: str) -> str:
    return f"void {NAME}(const {real} *x, const {real} *w, {real} *y, long, char **args, const Runtime *rt)"


def _sizes(v: Convolution) -> tuple[str, str]:
    """The fields of a task with the sizes of a convolution, and the lines before it that declare the symbols among them."""
    sources = {name: size_source(n) for name, n in v.fields.items()}
    symbols = declared(v.fields.values())
    lines = ("char **bufs = (char **)args[0];", *symbols) if symbols else ()
    return ", ".join(f".{name} = {source}" for name, source in sources.items()), "".join(f"  {line}\n" for line in lines)


def _note(v: Convolution, tile: Tile, more: str) -> str:
    size = f"{v.fields['images']}x{v['groups']}x[{v['channels']},{v['ih']},{v['iw']}]->[{v['columns']},{v['oh']},{v['ow']}]"
    return f"convolution {size}, {v['kh']}x{v['kw']}, tile {tile.rows}x{tile.vectors}v{more}"


def _made(v: Convolution, tools: Toolchain, rows: int, vectors: int) -> Tile:
    return Tile(v.dtype, rows, vectors, tools.simd_bits, tools.has_fma)


def _tile(v: Convolution, tools: Toolchain) -> Tile:
    """The tile with the least time for the positions of a line by all output channels."""
    apart = v["sw"] * v["x_w"] * _BYTES[v.dtype]
    crowded = apart % _SETS == 0 and v["channels"] * v["kw"] > _FEW_ROWS

    def time(shape: tuple[int, int]) -> float:
        rows, vectors = shape
        panels = -(-v["columns"] // _made(v, tools, rows, vectors).columns)
        tiles = -(-v["ow"] // rows)
        used = v["ow"] / tiles
        each = max(used * vectors, _LATENCY, (used + vectors) * 0.75)
        return panels * tiles * each * (1.3 if crowded and used > _FEW_ROWS else 1.0)

    return _made(v, tools, *min(_TILES[tools.simd_bits], key=time))


def _weight_tile(v: Convolution, tools: Toolchain) -> Tile:
    """The tile with the least time for all input channels by all output channels."""

    def time(shape: tuple[int, int]) -> float:
        rows, vectors = shape
        panels = -(-v["columns"] // _made(v, tools, rows, vectors).columns)
        tiles = -(-v["channels"] // rows)
        used = v["channels"] / tiles
        return panels * tiles * max(used * vectors, _LATENCY, (used + vectors) * 0.75)

    return _made(v, tools, *min(_TILES[tools.simd_bits], key=time))
