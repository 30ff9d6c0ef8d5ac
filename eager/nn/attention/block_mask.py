"""BlockMask: the blocks of an attention matrix that need computing, and the mask of single elements.

Each row of blocks lists the number of its blocks and their indices. Blocks that the mask does not cut may be
listed separately as "full": they need no mask. Source: the layout of torch's BlockMask.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.nn.attention.mods import noop_mask
from eager.optable.table import OPS

DEFAULT_BLOCK_SIZE = 128


def _sliced(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """Placeholder for the mask function of a slice, whose indices would address other elements.

    Raises: RuntimeError.
    """
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def ordered_to_dense(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    """int32 (*, rows, columns) with ones at the first counts[*, row] of indices[*, row]."""
    position = OPS["arange"](0, indices.shape[-1], 1, dtypes.int32, indices.device)
    valid = position < counts.unsqueeze(-1)
    # unlisted indices go to an extra last column
    target = OPS["where"](valid, indices, columns).to(dtypes.int64)
    dense = OPS["full"]((*indices.shape[:-1], columns + 1), 0, dtypes.int32, indices.device)
    return OPS["scatter"](dense, indices.ndim - 1, target, 1)[..., :columns].contiguous()


def dense_to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and indices of the nonzero entries of each row; the indices of zero entries follow them."""
    dense = dense.to(dtypes.int32)
    return dense.sum(-1).to(dtypes.int32), OPS["argsort"](dense, dense.ndim - 1, True, True).to(dtypes.int32)


def _transposed(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return dense_to_ordered(ordered_to_dense(counts, indices, indices.shape[-1]).transpose(-2, -1))


def _cut(counts: Tensor, indices: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    indices = indices[:, :, :rows, :columns]
    counts = counts[:, :, :rows]
    kept = (OPS["arange"](0, indices.shape[-1], 1, dtypes.int32, indices.device) < counts.unsqueeze(-1)) & (indices < columns)
    return kept.sum(-1).to(dtypes.int32), indices.contiguous()


class BlockMask:
    """Made by `create_block_mask` or `from_kv_blocks`.

    kv_num_blocks: int32 (b, h, rows); kv_indices: int32 (b, h, rows, columns); full_* and q_* likewise, for full
    blocks and per column of blocks. BLOCK_SIZE: rows and columns of a block. mask_mod: (b, h, q_idx, kv_idx) -> bool.
    """

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
                 full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
                 q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
                 BLOCK_SIZE: tuple[int, int], mask_mod: Callable[..., Tensor]) -> None:  # fmt: skip # noqa: N803 - torch's
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for a, b, text in ((full_kv_num_blocks, full_kv_indices, "full_kv_num_blocks and full_kv_indices"),
                           (q_num_blocks, q_indices, "q_num_blocks and q_indices"),
                           (full_q_num_blocks, full_q_indices, "full_q_num_blocks and full_q_indices")):  # fmt: skip
            if (a is None) != (b is None):
                raise AssertionError(f"{text} must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
                       full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,  # noqa: N803
                       mask_mod: Callable[..., Tensor] | None = None, seq_lengths: tuple[int, int] | None = None,
                       compute_q_blocks: bool = True) -> BlockMask:  # fmt: skip
        """A mask from the blocks of each row; computes the blocks of each column.

        Raises: RuntimeError for fewer than 2 dims.
        """
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        by_column: Any = (None, None, None, None)
        if compute_q_blocks:
            full: tuple[Any, ...] = (None, None)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _transposed(full_kv_num_blocks, full_kv_indices)
            by_column = (*_transposed(kv_num_blocks, kv_indices), *full)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        parts = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_column)
        return cls._of(parts, seq_lengths, size, noop_mask if mask_mod is None else mask_mod)

    @classmethod
    def _of(cls, parts: Any, lengths: tuple[int, int], size: tuple[int, int], mask_mod: Callable[..., Tensor]) -> BlockMask:
        made: Any = cls
        return made(lengths, *parts, size, mask_mod)

    def _tensors(self) -> tuple[Tensor | None, ...]:
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks, self.q_indices,
                self.full_q_num_blocks, self.full_q_indices)  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, tensors, block size and mask function. flatten: lengths and sizes as two entries each."""
        lengths, size = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *self._tensors(), *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(b, h, q_len, kv_len)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Number of elements of the whole attention matrix."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Percentage of elements in blocks that need no computing."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - float(blocks.item()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """int32 (b, h, rows, columns): 1 for each block that needs computing."""
        dense = ordered_to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def __getitem__(self, index: Any) -> BlockMask:
        """Select batches, heads and rows of blocks.

        The result has no usable mask function: its indices would be wrong.
        """
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, slice(None), slice(None), slice(None))[:3]
        places = tuple(slice(i % n, i % n + 1) if isinstance(i, int) else i
                       for i, n in zip(padded, self.kv_num_blocks.shape[:3], strict=True))  # fmt: skip
        counts, indices, full_counts, full_indices = (None if t is None else t[places] for t in self._tensors()[:4])
        assert counts is not None and indices is not None
        return BlockMask.from_kv_blocks(counts, indices, full_counts, full_indices, self.BLOCK_SIZE, _sliced, self.seq_lengths,
                                        self.q_indices is not None)  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask for shorter sequences."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True))
        counts, indices = _cut(self.kv_num_blocks, self.kv_indices, rows, columns)
        full_counts = full_indices = None
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            full_counts, full_indices = _cut(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return BlockMask.from_kv_blocks(counts, indices, full_counts, full_indices, self.BLOCK_SIZE, self.mask_mod,
                                        (new_q_len, new_kv_len), self.q_indices is not None)  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """The same mask on another device."""
        moved = [None if t is None else t.to(device) for t in self._tensors()]
        return BlockMask._of(moved, self.seq_lengths, self.BLOCK_SIZE, self.mask_mod)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
                 "full_q_num_blocks", "full_q_indices")  # fmt: skip
        lines = [f"{n}={None if t is None else t.shape}" for n, t in zip(names, self._tensors(), strict=True)]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        mask_mod_text = f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n"
        return "BlockMask(\n" + "".join(f"    {line},\n" for line in lines) + mask_mod_text + ")"

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A text picture of the blocks: full, partial, empty.

        grid_size: maximum number of cells; limit: batches and heads.
        """
        dense = self.to_dense().to(dtypes.float32)
        *lead, rows, columns = dense.shape
        max_cells = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // m)) for n, m in zip((rows, columns), max_cells, strict=True)]
        pictures = []
        for i, place in enumerate(itertools.product(*(range(n) for n in lead))):
            if i == limit:
                pictures += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                             "You can also index (BlockMask[batch, head]) to choose a specific batch or head"]  # fmt: skip
                break
            text = f"{place}\n"
            for r in range(0, rows, steps[0]):
                for c in range(0, columns, steps[1]):
                    share = float(dense[place][r : r + steps[0], c : c + steps[1]].mean())
                    text += ("█" if share == 1 else "░" if share else " ") * 2
                text += "\n"
            pictures.append(text)
        return "\n".join(pictures)
