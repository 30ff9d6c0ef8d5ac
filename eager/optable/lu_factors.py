"""Packed LU factors: L and U of a matrix in one tensor, and pivots counted from 1, as LAPACK returns them."""
from __future__ import annotations

from typing import Any

from eager.base import dtypes
from eager.optable.table import OPS


def unpack_factors(lu_matrix: Any) -> tuple[Any, Any]:
    """L (with ones on its diagonal) and U from one matrix."""
    m, n = lu_matrix.shape[-2:]
    k, axis = min(m, n), lu_matrix.ndim - 1
    lower = OPS["tril"](OPS["slice"](lu_matrix, axis, 0, k, 1), -1)
    ones = OPS["diag_embed"](OPS["full"]((*lu_matrix.shape[:-2], k), 1, lu_matrix.dtype, lu_matrix.device), 0, -2, -1)
    if m > k:
        ones = OPS["constant_pad_nd"](ones, (0, 0, 0, m - k), 0)
    return lower + ones, OPS["triu"](OPS["slice"](lu_matrix, axis - 1, 0, k, 1), 0)


def permutation_of(order: Any, dtype: Any) -> Any:
    """Matrices P with P[order[i], i] = 1."""
    n = order.shape[-1]
    columns = OPS["arange"](0, n, 1, None, order.device).reshape(n, 1)
    return OPS["to_dtype"](columns == OPS["unsqueeze"](order, order.ndim - 1), dtype)


def check_pivots(name: str, LU: Any, pivots: Any) -> None:  # noqa: N803
    """Raise RuntimeError unless `pivots` has the dtype and shape that `lu_factor` returns with `LU`."""
    expected_shape = (*LU.shape[:-2], min(LU.shape[-2:]))
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got {pivots.dtype}")
    if tuple(pivots.shape) != expected_shape:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix: expected a shape of "
                           f"{list(expected_shape)}, got {list(pivots.shape)}")  # fmt: skip
