"""The core of a convolution, and the code that calls it.

Owns the choice of a tile and `emit`. It does not depend on the loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from inductor.base.toolchain import Toolchain
from inductor.cpp.conv_core import conv_core
from inductor.cpp.conv_parts import CONV_TASK
from inductor.cpp.conv_weight_core import CONV_WEIGHT_TASK, conv_weight_core
from inductor.cpp.gemm_core import Tile
from inductor.cpp.gemm_problem import REAL, CoreCode, initialiser, pack_code
from inductor.cpp.units import declared
from inductor.cpp.values import size_source
from inductor.cpp.windows import Convolution
from inductor.cpp.winograd_core import packed_taps, winograd_core
from inductor.cpp.winograd_parts import POINTS, STRIDES
from inductor.cpp.winograd_weight_core import winograd_weight_core

__all__ = ["emit", "emit_weight_gradient"]

_TILES: Final[Mapping[int, tuple[tuple[int, int], ...]]] = {
    512: ((7, 4), (14, 2), (14, 1)),
    256: ((6, 2), (4, 3), (6, 1)),
    128: ((6, 2), (4, 3), (6, 1)),
}
_BYTES: Final = {"float32": 4, "float64": 8}
_LATENCY: Final = 8  # a tile of fewer accumulators waits for the results of its additions
_SETS: Final = 2048  # bytes: rows of a tile this far apart, or a multiple of it, evict each other from the first-level cache
_FEW_ROWS: Final = 8  # ways of that cache
# The costs of transformed tiles, in multiplications, for each element of a transformed tile: the transform of a patch, the transform of
# sums, the transform of a weight beyond its packing, and the larger packed weight that is read instead.
_PATCH: Final = 8.0
_SUMS: Final = 7.0
_WEIGHTS: Final = 12.0
_PACKED_WEIGHTS: Final = 3.0
_GAIN: Final = 0.95  # of the time of windows: the transformed weight takes more memory


def emit(v: Convolution, packed: bool, tools: Toolchain) -> CoreCode:
    """The code of a convolution of images a with a weight b. packed: b is the weight in panels."""
    if _has_minimal_filter(v, packed):
        tile, taps = _product_tile(v, tools), packed_taps(v["sh"])
        unit, how = winograd_core(tile, v["sh"]), ", minimal filtering"
    else:
        tile, taps = _tile(v, tools), v["kh"] * v["kw"]
        unit, how = conv_core(tile), ""
    sizes, lines = _sizes(v)
    fields = {"x": "a", **({} if packed else {"w": "b"}), "y": "c", **({"packed": "b"} if packed else {}), **sizes}
    outside = (CONV_TASK, f'extern "C" void {unit.name}(const ConvTask *, const Runtime *);')
    made = CoreCode(unit, v.dtype, "ConvTask", outside, fields, _note(v, tile, how + ", packed" * packed), lines)
    if not packed:
        return made
    weight = f"(const {REAL[v.dtype]} *)source + {v.starts[1]}"
    fixed = initialiser({"w": weight, **{name: n for name, n in v.fields.items() if name != "images"}})
    declared = f'extern "C" void {unit.name}_pack(const ConvTask *, void *);'
    pack = pack_code(f"const ConvTask task = {fixed}; {unit.name}_pack(&task, target);", (CONV_TASK, declared))
    panels = -(-v["columns"] // tile.columns)
    nbytes = v["groups"] * panels * tile.columns * taps * v["channels"] * _BYTES[v.dtype]
    return replace(made, pack=pack, packed_bytes=nbytes)


def emit_weight_gradient(v: Convolution, tools: Toolchain) -> CoreCode:
    """The code of the gradient c of a weight, from images a and the cotangent b."""
    tile, is_minimal = _weight_tile(v, tools), _has_minimal_gradient(v)
    unit = winograd_weight_core(tile) if is_minimal else conv_weight_core(tile)
    sizes, lines = _sizes(v)
    outside = (CONV_WEIGHT_TASK, f'extern "C" void {unit.name}(const ConvWeightTask *, const Runtime *);')
    return CoreCode(unit, v.dtype, "ConvWeightTask", outside, {"x": "a", "g": "b", "w": "c", **sizes},
                    _note(v, tile, ", gradient of the weight" + ", minimal filtering" * is_minimal), lines)  # fmt: skip


def _sizes(v: Convolution) -> tuple[dict[str, str], tuple[str, ...]]:
    """The fields of a task with the sizes of a convolution, and the lines before it that declare the symbols among them."""
    symbols = declared(v.fields.values())
    lines = ("char **bufs = (char **)args[0];", *symbols) if symbols else ()
    return {name: size_source(n) for name, n in v.fields.items()}, lines


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


def _has_minimal_filter(v: Convolution, packed: bool) -> bool:
    """Whether transformed tiles take less time than windows of 3x3 taps. The time is counted in multiplications for an input and an
    output channel.
    """
    if not _has_taps_of_tiles(v) or v["sh"] not in STRIDES:
        return False
    points = POINTS[v["sh"]]
    images, tiles = _tiles_of(v)
    transforms = points * (_PATCH / v["columns"] + _SUMS / v["channels"])
    weights = points * (_WEIGHTS if not packed else _PACKED_WEIGHTS)
    return tiles * (points + transforms) + weights < _GAIN * images * v["oh"] * v["ow"] * 9


def _has_minimal_gradient(v: Convolution) -> bool:
    """The same for the gradient of the weight, whose taps are transformed back once."""
    if not _has_taps_of_tiles(v) or v["sh"] != 1 or v.fields["x_c"] != 1:
        return False
    images, tiles = _tiles_of(v)
    transforms = POINTS[1] * (_PATCH / v["columns"] + _SUMS / v["channels"])
    return tiles * (POINTS[1] + transforms) + POINTS[1] * _WEIGHTS < _GAIN * images * v["oh"] * v["ow"] * 9


def _has_taps_of_tiles(v: Convolution) -> bool:
    return all(v[n] == 3 for n in ("kh", "kw")) and all(v[n] == 1 for n in ("dh", "dw")) and v["sh"] == v["sw"]


def _tiles_of(v: Convolution) -> tuple[int, int]:
    """The number of images, 1 if it is unknown, and of tiles of 2x2 output positions in them."""
    given = v.fields["images"]
    images = given if isinstance(given, int) else 1
    return images, images * -(-v["oh"] // 2) * -(-v["ow"] // 2)


def _product_tile(v: Convolution, tools: Toolchain) -> Tile:
    """The tile with the least time for all output channels, of products with many rows."""

    def time(shape: tuple[int, int]) -> float:
        rows, vectors = shape
        panels = -(-v["columns"] // _made(v, tools, rows, vectors).columns)
        return panels / rows * max(rows * vectors, _LATENCY, (rows + vectors) * 0.75)

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
