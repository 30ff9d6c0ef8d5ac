"""Causal masks for queries and keys of different lengths, aligned at either corner."""
from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.optable.table import OPS


class CausalVariant(IntEnum):
    """UPPER_LEFT: row i sees columns j <= i. LOWER_RIGHT: the last row sees all columns."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


def _causal(variant: CausalVariant, rows: int, columns: int, device: Any = None) -> Tensor:
    """bool (rows, columns), True = visible."""
    if rows < 0 or columns < 0:
        raise AssertionError(f"seq_len_q and seq_len_kv must not be negative, got {rows} and {columns}")
    shift = columns - rows if variant is CausalVariant.LOWER_RIGHT else 0
    row = OPS["arange"](0, rows, 1, dtypes.int64, device).unsqueeze(1)
    return OPS["arange"](0, columns, 1, dtypes.int64, device) <= row + shift


def causal_upper_left(*size: int) -> Tensor:
    """A mask for `scaled_dot_product_attention`: bool (t, s), with the diagonal starting at the upper left corner.

    Raises: RuntimeError unless two sizes are given.
    """
    if len(size) != 2:
        raise RuntimeError("causal_upper_left only supports 2D tensors")
    return _causal(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> Tensor:
    """A mask for `scaled_dot_product_attention`: bool (t, s), with the diagonal ending at the lower right corner.

    Raises: RuntimeError unless two sizes are given.
    """
    if len(size) != 2:
        raise RuntimeError("causal_lower_right only supports 2D tensors")
    return _causal(CausalVariant.LOWER_RIGHT, *size)
