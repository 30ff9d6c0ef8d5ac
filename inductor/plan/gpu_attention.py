"""The kernels of attention on a GPU: sizes of the blocks that its tiles fit into registers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from eager.base.dtypes import dtype
from inductor.base.target import Target
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, nominal, product
from inductor.loops import tile_attention
from inductor.loops.tree import Kernel

LEAST: Final = 16  # queries or keys of a block that a matrix unit multiplies
QUERIES: Final = 128  # of a block
KEYS: Final = 64  # of a block
WIDE_COLUMNS: Final = 128  # rows with more columns leave registers for half as many queries
WIDER_ROWS: Final = 32  # queries and keys of a block of float32, whose products no matrix unit computes


def schedule_attention(buffers: Sequence[ir.Buffer], dtypes: Mapping[str, dtype], target: Target) -> tuple[Kernel, ...]:
    """The kernels of the results of one call of attention. dtypes: of all buffers. Their loops are programs over tiles already."""
    d = buffers[0].definition
    assert isinstance(d, ir.Attention)
    queries, keys, depth, width = d.sizes
    sizes = tile_attention.Sizes(WIDER_ROWS, WIDER_ROWS)
    if tile_attention.narrow_of(d).itemsize == 2:
        most = QUERIES if max(nominal(depth), nominal(width)) <= WIDE_COLUMNS else QUERIES // 2
        if nominal(product(d.batch)) * -(-nominal(queries) // most) < target.cores:
            most //= 2
        sizes = tile_attention.Sizes(most, KEYS)
    sizes = tile_attention.Sizes(_at_most(sizes.queries, queries), _at_most(sizes.keys, keys))
    return tile_attention.build(buffers, {n: dtypes[n] for b in buffers for n in b.reads}, sizes)


def _at_most(size: int, count: Size) -> int:
    """A power of two, not much larger than a known count."""
    return size if not isinstance(count, int) else max(LEAST, min(size, 1 << max(count - 1, 0).bit_length()))
