"""The kernels of attention on a GPU: sizes of the blocks that its tiles fit into registers and shared memory with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from eager.base.dtypes import dtype
from inductor.base.target import Target
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, nominal, product
from inductor.loops import tile_attention
from inductor.loops.tiles import LEAST_PRODUCT
from inductor.loops.tree import Kernel

FEW: Final = 64  # queries (or keys, in a program over keys) of a block for which half of the warps suffice


class Tiling(NamedTuple):
    """Rows: queries of a program, or keys in a program over keys. columns: of its blocks of scores. warps, stages: of a program."""

    rows: int
    columns: int
    warps: int
    stages: int


class Tilings(NamedTuple):
    """The tilings of the forward, of the gradient of queries, and of the gradients of keys and values."""

    forward: Tiling
    of_queries: Tiling
    of_keys: Tiling


# By the most columns of queries, keys and values. Larger tiles spill registers, or their stages do not fit into shared memory.
_SHARED: Final = {  # operands of products in shared memory
    64: Tilings(*(Tiling(128, 64, 8, 3),) * 3),
    128: Tilings(Tiling(128, 64, 8, 3), Tiling(128, 64, 8, 2), Tiling(128, 32, 8, 2)),
    256: Tilings(*(Tiling(64, 32, 8, 2),) * 3),
}
_REGISTERS: Final = {  # operands of products in registers
    64: Tilings(*(Tiling(128, 64, 8, 3),) * 3),
    128: Tilings(Tiling(128, 32, 8, 3), Tiling(64, 32, 4, 2), Tiling(64, 32, 4, 2)),
    256: Tilings(*(Tiling(64, 32, 8, 2),) * 3),
}
_RANDOM: Final = {  # as _SHARED, for more than 64 columns and weights with dropout: the words of a random draw are in registers too
    128: Tilings(Tiling(128, 64, 8, 3), *(Tiling(128, 32, 8, 2),) * 2),
    256: Tilings(Tiling(64, 32, 8, 2), Tiling(64, 16, 8, 2), Tiling(32, 16, 8, 2)),
}
_WIDER: Final = Tilings(*(Tiling(32, 32, 4, 1),) * 3)  # products of float32, which no matrix unit computes


def schedule_attention(buffers: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], target: Target,
                       tilings: Tilings | None = None) -> list[tuple[Kernel, Tiling]]:  # fmt: skip
    """The kernels of the results of one call of attention. dtypes: of all buffers. Their loops are programs over tiles already."""
    d = buffers[0].definition
    assert isinstance(d, ir.Attention)
    memory = {n: dtypes[n] for b in buffers for n in b.reads}
    chosen = tilings or tilings_of(d, target)
    groups = [(list(buffers), chosen.forward, False)]
    if d.given is not None:
        of_queries = [b for b in buffers if isinstance(b.definition, ir.Attention) and b.definition.result == "gq"]
        of_keys = [b for b in buffers if b not in of_queries]
        groups = [(of_queries, chosen.of_queries, False), (of_keys, chosen.of_keys, True)]
    found = []
    for group, tiling, by_keys in groups:
        if group:
            rows, columns = (d.sizes[1], d.sizes[0]) if by_keys else d.sizes[:2]
            fitted = _fitted(tiling, rows, columns, product(d.batch), target, _table(d, target) is not _RANDOM)
            sizes = tile_attention.Sizes(fitted.columns, fitted.rows) if by_keys else tile_attention.Sizes(fitted.rows, fitted.columns)
            found.append((tile_attention.build(group, memory, sizes), fitted))
    return found


def tilings_of(d: ir.Attention, target: Target) -> Tilings:
    """The default tilings of attention."""
    if tile_attention.narrow_of(d).itemsize > 2:
        return _WIDER
    table = _table(d, target)
    return next((t for most, t in table.items() if _columns(d) <= most), table[256])


def _columns(d: ir.Attention) -> int:
    """The most columns of queries, keys and values."""
    return max(nominal(d.sizes[2]), nominal(d.sizes[3]))


def _table(d: ir.Attention, target: Target) -> dict[int, Tilings]:
    """The tilings for products of 16 bits, by the most columns."""
    if not target.multiplies_shared:
        return _REGISTERS
    is_random = any(isinstance(v, ir.Op) and v.name == "philox" for v in ir.walk([d.weight]))
    return _RANDOM if is_random and _columns(d) > 64 else _SHARED


def _fitted(tiling: Tiling, rows: Size, columns: Size, batch: Size, target: Target, halves_warps: bool) -> Tiling:
    """The tiling for few rows and columns, with more programs where a target has more multiprocessors than programs.

    halves_warps: whether fewer rows also need fewer warps.
    """
    most = _at_most(tiling.rows, rows)
    if most > FEW and nominal(batch) * -(-nominal(rows) // most) < target.cores:
        most //= 2
    warps = tiling.warps // 2 if halves_warps and most <= FEW < tiling.rows else tiling.warps
    return Tiling(most, _at_most(tiling.columns, columns), warps, tiling.stages)


def _at_most(size: int, count: Size) -> int:
    """A power of two, not much larger than a known count."""
    return size if not isinstance(count, int) else max(LEAST_PRODUCT, min(size, 1 << max(count - 1, 0).bit_length()))


__all__ = ["Tiling", "Tilings", "schedule_attention", "tilings_of"]
