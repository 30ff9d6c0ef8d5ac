"""index_select, index_add, index_copy and index_fill: one list of positions along one dim.

Index tensors hold int64 or int32 positions. Positions are checked against the size of the dim before any element moves. If several
writes meet in one position, the last in row-major order of the source remains, or all are combined in that order.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.scalars import check_element, element
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    common_device,
    normalize_dim,
)
from eager.optable import array_functions
from eager.optable.declaration import zeros
from eager.optable.index_kernels import add_rows, at_least_1d, begin, check_positions
from eager.optable.precision import PROMOTE_ON_CPU
from eager.optable.registry import Kind
from eager.optable.shape import like, row_major
from eager.optable.table import OPS, declare


def _check_vector(who: str, index: SpecLike) -> None:
    if index.ndim > 1:
        raise IndexError(f"{who}(): Index is supposed to be a vector")
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"{who}(): Expected dtype int32 or int64 for index" if who == "index_select" else
                           f"{who}_(): Expected dtype int32/int64 for index but got: {scalar_name(index.dtype)}")  # fmt: skip


def _index_select_meta(x: SpecLike, dim: int, index: SpecLike) -> TensorSpec:
    _check_vector("index_select", index)
    d = normalize_dim(dim, x.ndim)
    count = index.numel()
    if x.ndim == 0 and count != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
    if x.ndim and x.shape[d] == 0 and count != 0:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    shape = () if x.ndim == 0 else (*x.shape[:d], count, *x.shape[d + 1 :])
    return TensorSpec.contiguous(shape, x.dtype, common_device("index_select", [x, index]))


def _index_select(xp: Any, out: Any, x: Any, dim: int, index: Any) -> None:
    x, out, index = at_least_1d(x), at_least_1d(out), at_least_1d(index)
    dim %= x.ndim
    check_positions(index, x.shape[dim], dim, IndexError, text="index out of range in self")
    if out.size:
        array_functions.take(xp, out, x, index, dim)


def _index_select_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.int(5, high=3)
    yield make(4, 3, 2).permute(2, 0, 1), 1, make.int(2, high=4)
    yield make(3, 4), 1, make.int(0, high=4)
    yield make(), 0, make.int(1, high=1)


INDEX_SELECT = declare("index_select(Tensor x, int dim, Tensor index) -> Tensor", Kind.INDEXED, fallible=True,
                       float8=True, meta=_index_select_meta, kernel=_index_select, samples=_index_select_samples,
                       vjp={"x": lambda g, x_spec, dim, index: OPS["index_add"](zeros(x_spec), dim, index, g, 1)},
                       batch="index_select", linear_in=("x",))  # fmt: skip


def _without(shape: Sequence[int], d: int) -> list[int]:
    return [*shape[:d], *shape[d + 1 :]]


def check_sources(who: str, x: SpecLike, d: int, index: SpecLike, source: SpecLike) -> None:
    """Raise RuntimeError unless `source` has x's shape except in dim `d`, along which it has one slice for each index."""
    n = source.shape[d] if d < source.ndim else 1
    if index.numel() != n:
        raise RuntimeError(f"{who}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({n}), for dim: {d}")
    if x.ndim != source.ndim or _without(x.shape, d) != _without(source.shape, d):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
                           f"{list(x.shape)} source.shape = {list(source.shape)}")  # fmt: skip


def _check_slices(x: SpecLike, d: int, index: SpecLike, source: SpecLike) -> None:
    """The same of index_copy, whose operands may be scalars. Raises IndexError for other counts and ranks, RuntimeError for other sizes."""
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    count = index.numel()
    if source.ndim == 0 and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if source.ndim and x.ndim and source.ndim != x.ndim:
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
                         f"dimensionality ({source.ndim}), destination dimensionality ({x.ndim})")  # fmt: skip
    mine, theirs = _without(x.shape, d), _without(source.shape, d)
    if mine != theirs:
        raise RuntimeError(f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {mine} at "
                           f"dimension {d} and source slice shape: {theirs} at dimension 0.")  # fmt: skip
    if source.ndim and count != source.shape[d]:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({source.shape[d]})")


def _index_write_meta(who: str) -> Any:
    def meta(x: SpecLike, dim: int, index: SpecLike, source: SpecLike, *options: Any) -> TensorSpec:
        _check_vector(who, index)
        d = normalize_dim(dim, x.ndim)
        if source.dtype is not x.dtype:
            raise RuntimeError(f"{who}_(): self ({scalar_name(x.dtype)}) and source ({scalar_name(source.dtype)}) must have the same "
                               "scalar type")  # fmt: skip
        if who == "index_copy":
            _check_slices(x, d, index, source)
        else:
            check_sources(who, x, d, index, source)
        common_device(who, [x, index, source])
        return row_major(x)

    return meta


def _rows_of(xp: Any, a: Any, dim: int) -> Any:
    """The array with `dim` first and the rest flattened, row-major: a view where that is possible, else a copy."""
    moved = a.swapaxes(0, dim) if dim else a
    return xp.ascontiguousarray(moved).reshape(moved.shape[0], moved.size // max(moved.shape[0], 1))


def _index_add(xp: Any, out: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any) -> None:
    begin(xp, out, x)
    if not out.size:
        return
    target, index, source = at_least_1d(out), at_least_1d(index), at_least_1d(source)
    dim %= target.ndim
    check_positions(index, target.shape[dim], dim, IndexError, text="index out of range in self")
    if alpha != 1:
        source = (source * source.dtype.type(alpha)).astype(source.dtype, copy=False)
    rows = _rows_of(xp, target, dim)
    add_rows(xp, rows, index, _rows_of(xp, source, dim))
    if dim and rows.size:
        first = (target.shape[dim], *target.shape[1:dim], target.shape[0], *target.shape[dim + 1 :])
        xp.copyto(target, rows.reshape(first).swapaxes(0, dim))


def _index_add_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.int(5, high=3), make(5, 4), 1
    yield make(4, 3).t(), 1, make.int(2, high=4), make(3, 2), 2.5
    yield make(3, 10), 0, make.int(7, high=3), make(10, 7).t(), 1
    yield make(2, 3, 9), 1, make.int(4, high=3), make(2, 4, 9), 1
    yield make(3, 4), 0, make.int(0, high=3), make(0, 4), 1


INDEX_ADD = declare("index_add(Tensor x, int dim, Tensor index, Tensor source, Scalar alpha=1) -> Tensor", Kind.INDEXED, fallible=True,
                    meta=_index_write_meta("index_add"), kernel=_index_add, inplace=True, over_input=True, samples=_index_add_samples,
                    vjp={"x": lambda g: g,
                         "source": lambda g, dim, index, source_spec, alpha: _scaled(
                             OPS["index_select"](g, dim, index), alpha).reshape(tuple(source_spec.shape))},
                             batch="index_add", linear_in=("x", "source"))  # fmt: skip


def _scaled(g: Any, alpha: Any) -> Any:
    return g if alpha == 1 else g * alpha


def _index_copy(xp: Any, out: Any, x: Any, dim: int, index: Any, source: Any) -> None:
    begin(xp, out, x)
    target, index = at_least_1d(out), at_least_1d(index)
    dim %= target.ndim
    check_positions(index, target.shape[dim], dim, IndexError, who="index_copy_(): ")
    target[(slice(None),) * dim + (index,)] = at_least_1d(source)


def _index_copy_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.distinct(2, high=3), make(2, 4)
    yield make(4, 3).t(), 1, make.distinct(3, high=4), make(3, 3)
    yield make(3, 4), 1, make.int(0, high=4), make(3, 0)


INDEX_COPY = declare("index_copy(Tensor x, int dim, Tensor index, Tensor source) -> Tensor", Kind.INDEXED, fallible=True,
                     meta=_index_write_meta("index_copy"), kernel=_index_copy, inplace=True, over_input=True, samples=_index_copy_samples,
                     vjp={"x": lambda g, dim, index: OPS["index_fill"](g, dim, index, 0),
                          "source": lambda g, dim, index, source_spec: OPS["index_select"](
                              g, dim, index).reshape(tuple(source_spec.shape))}, precision=PROMOTE_ON_CPU,
                              batch="index_write", linear_in=("x", "source"))  # fmt: skip


def _index_fill_meta(x: SpecLike, dim: int, index: SpecLike, value: Any) -> TensorSpec:
    if index.dtype is not dtypes.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    normalize_dim(dim, x.ndim)
    _check_scalar("index_fill_", value)
    if hasattr(value, "stride") and value.dtype.is_complex and not x.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    check_element(value, x.dtype)
    return like(x)


def _check_scalar(who: str, value: Any) -> None:
    if hasattr(value, "stride") and value.ndim:
        raise RuntimeError(f"{who} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")


def stored(value: Any, to: Any) -> Any:
    """A number, or a 0-d array, as an element of the type `to`. Raises as `element`."""
    return element(value.item() if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" else value, to)


def _index_fill(xp: Any, out: Any, x: Any, dim: int, index: Any, value: Any) -> None:
    begin(xp, out, x)
    target, index = at_least_1d(out), at_least_1d(index)
    dim %= target.ndim
    check_positions(index, target.shape[dim], dim, IndexError, negative=True)
    target[(slice(None),) * dim + (index,)] = stored(value, out.dtype)


def _index_fill_value_vjp(g: Any, dim: int, index: Any) -> Any:
    """Sum over the elements that were written, each counted once however often `index` names it."""
    written = OPS["index_fill"](OPS["full"](tuple(g.shape), False, dtypes.bool_, g.device), dim, index, True)
    return OPS["sum"](OPS["where"](written, g, 0), tuple(range(g.ndim)), False, None)


INDEX_FILL = declare("index_fill(Tensor x, int dim, Tensor index, Tensor value) -> Tensor", Kind.INDEXED, fallible=True,
                     meta=_index_fill_meta, kernel=_index_fill, inplace=True, over_input=True, numbers="value",
                     vjp={"x": lambda g, dim, index: OPS["index_fill"](g, dim, index, 0),
                          "value": _index_fill_value_vjp},
                     samples=lambda make: iter([(make(3, 4), 0, make.distinct(2, high=3), 0.5),
                                                (make(4, 3).t(), 1, make.distinct(3, high=4), make())]),
                                                batch="index_write", linear_in=("x", "value"))  # fmt: skip
