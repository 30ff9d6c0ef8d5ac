"""Positions of the elements of sparse tensors: transposing, selecting, joining, and conversion from dense tensors.

Every function takes the tensor as its first argument `input` and returns a new tensor, which shares values where possible;
gradients reach the values.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import result_type
from eager.base.memory_format import sparse_coo
from eager.base.spec import normalize_dim
from eager.functions import creation
from eager.optable.table import OPS
from eager.sparse.tensor import SparseTensor

# ---- order and number of dims ----


def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The dims in another order; sparse dims remain before dense dims. Raises: RuntimeError for any other order."""
    wanted = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order, d = [normalize_dim(k, input.ndim) for k in wanted], input.sparse_dim()
    if len(order) != input.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}")  # fmt: skip
    if len(set(order)) != len(order):
        raise RuntimeError("permute(dims): duplicate dims are not allowed.")
    if any(k >= d for k in order[:d]):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed."
                           "Only transpositions within sparse and dense dimensions are supported.")  # fmt: skip
    rows = input.rows()
    positions = OPS["stack"]([rows[k] for k in order[:d]], 0) if d else input._positions
    elements = OPS["permute"](input._elements, (0, *(k - d + 1 for k in order[d:])))
    same = order[:d] == list(range(d))
    return SparseTensor(positions, elements, [input.shape[k] for k in order], input._is_coalesced and same)


def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two sparse dims exchanged."""
    d, a, b = input.sparse_dim(), normalize_dim(dim0, input.ndim), normalize_dim(dim1, input.ndim)
    if a >= d or b >= d:
        raise RuntimeError(f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {d}, d0: {a}, d1: {b}")
    order = list(range(input.ndim))
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


def t(input: SparseTensor) -> SparseTensor:
    """The transposed matrix; a vector unchanged. Raises: RuntimeError for more dims or dense dims."""
    if input.ndim > 2 or input.dense_dim() > 0:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input.sparse_dim()} sparse and "
                           f"{input.dense_dim()} dense dimensions")  # fmt: skip
    return transpose(input, 0, 1) if input.ndim == 2 else input


def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """Insert a dim of size 1: sparse up to the position after the last sparse dim, else dense."""
    d, new_dim = input.sparse_dim(), normalize_dim(dim, input.ndim + 1)
    size = [*input.shape[:new_dim], 1, *input.shape[new_dim:]]
    if new_dim > d:
        return SparseTensor(input._positions, OPS["unsqueeze"](input._elements, new_dim - d + 1), size, input._is_coalesced)
    rows = input.rows()
    rows.insert(new_dim, OPS["full"]((input._nnz(),), 0, dtypes.int64, input.device))
    return SparseTensor(OPS["stack"](rows, 0), input._elements, size, input._is_coalesced)


# ---- some of the elements ----


def select(input: SparseTensor, dim: int, index: int) -> Any:
    """The slice at `index` of a dim, without that dim; dense if no sparse dim remains.

    Raises: IndexError out of range.
    """
    d, k = input.sparse_dim(), normalize_dim(dim, input.ndim)
    n = input.shape[k]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {k}")
    size = [*input.shape[:k], *input.shape[k + 1 :]]
    if k >= d:
        return SparseTensor(input._positions, OPS["select"](input._elements, k - d + 1, index % n), size, input._is_coalesced)
    kept = OPS["squeeze"](OPS["nonzero"](OPS["select"](input._positions, 0, k) == index % n), (1,))
    elements = OPS["index_select"](input._elements, 0, kept)
    if d == 1:
        return OPS["sum"](elements, (0,), False, None)
    rows = [OPS["index_select"](row, 0, kept) for j, row in enumerate(input.rows()) if j != k]
    return SparseTensor(OPS["stack"](rows, 0), elements, size, input._is_coalesced)


def index_select(input: SparseTensor, dim: int, index: Any) -> SparseTensor:
    """The slices of a dim at `index` (m,), in that order; indices may repeat. Raises: IndexError out of range."""
    d, k, count = input.sparse_dim(), normalize_dim(dim, input.ndim), index.shape[0] if index.ndim else 1
    size = [*input.shape[:k], count, *input.shape[k + 1 :]]
    index = OPS["to_dtype"](OPS["view"](index, (count,)), dtypes.int64)
    if k >= d:
        return SparseTensor(input._positions, OPS["index_select"](input._elements, k - d + 1, index), size, input._is_coalesced)
    n = input.shape[k]
    for i in index.tolist():
        if not -n <= i < n:
            raise IndexError(f"index_select(): index contains {i} that is out of range for tensor of size {list(input.shape)} at "
                             f"dimension {k}")  # fmt: skip
    rows = input.rows()
    keys, order = rows[k].sort()
    remainders = OPS["remainder"](index, n)
    first, behind = OPS["searchsorted"](keys, remainders, False, False), OPS["searchsorted"](keys, remainders, True, False)
    counts = behind - first
    position = creation.arange(count, device=input.device).repeat_interleave(counts)
    # The index into the sorted elements: the first of its position, plus the number of earlier ones at that position.
    before = OPS["index_select"](counts.cumsum(0) - counts, 0, position)
    steps = creation.arange(position.shape[0], device=input.device) - before
    chosen = OPS["index_select"](order, 0, OPS["index_select"](first, 0, position) + steps)
    rows = [OPS["index_select"](row, 0, chosen) for row in rows]
    rows[k] = position
    return SparseTensor(OPS["stack"](rows, 0), OPS["index_select"](input._elements, 0, chosen), size)


def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """`length` slices of a dim, from `start` on."""
    return index_select(input, dim, creation.arange(start, start + length, device=input.device)).coalesce()


def unbind(input: SparseTensor, dim: int = 0) -> tuple[Any, ...]:
    """All slices of a dim."""
    return tuple(select(input, dim, i) for i in range(input.shape[normalize_dim(dim, input.ndim)]))


def getitem(input: SparseTensor, index: Any) -> Any:
    """Index the first dims with integers; None inserts a dim. Raises: NotImplementedError for any other index."""
    found, dim = input, 0
    for one in index if isinstance(index, tuple) else (index,):
        if one is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif not _is_integer(one):
            raise NotImplementedError(f"indexing of a sparse tensor by {type(one).__name__} is not implemented; allowed: integers and None "
                                      "(or index_select, narrow_copy, to_dense)")  # fmt: skip
        else:
            found = found.select(dim, one.__index__())
    return found


def _is_integer(index: Any) -> bool:
    return hasattr(index, "__index__") and not isinstance(index, bool) and getattr(index, "shape", ()) == ()


# ---- several tensors ----


def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Concatenate sparse tensors along a dim. Raises: RuntimeError for a dense tensor or sizes that do not fit."""
    first = tensors[0]
    for i, other in enumerate(tensors):
        if not isinstance(other, SparseTensor):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
    k = normalize_dim(dim, first.ndim)
    for i, other in enumerate(tensors):
        if [*other.shape[:k], *other.shape[k + 1 :]] != [*first.shape[:k], *first.shape[k + 1 :]]:
            raise RuntimeError(f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but "
                               f"found shape: {list(other.shape)} at position {i}.")  # fmt: skip
        if other.sparse_dim() != first.sparse_dim():
            raise RuntimeError(f"All tensors must have the same sparse_dim {first.sparse_dim()}, but found {other.sparse_dim()} at "
                               f"position {i}.")  # fmt: skip
    total = sum(other.shape[k] for other in tensors)
    size, d, before = [*first.shape[:k], total, *first.shape[k + 1 :]], first.sparse_dim(), 0
    all_positions, all_elements = [], []
    for other in tensors:
        positions, elements = other._positions, other._elements
        if k < d:
            positions = OPS["stack"]([row + before if j == k else row for j, row in enumerate(other.rows())], 0)
        else:
            elements = _placed(elements, k - d + 1, before, total)
        before += other.shape[k]
        all_positions.append(positions)
        all_elements.append(elements)
    dtype = result_type_of(all_elements)
    return SparseTensor(OPS["cat"](all_positions, 1), OPS["cat"]([OPS["to_dtype"](h, dtype) for h in all_elements], 0), size)


def _placed(elements: Any, dim: int, before: int, total: int) -> Any:
    """Values padded with zeros on both sides along a dense dim."""
    def zeros(n: int) -> Any:
        return OPS["full"]((*elements.shape[:dim], n, *elements.shape[dim + 1 :]), 0, elements.dtype, elements.device)

    return OPS["cat"]([zeros(before), elements, zeros(total - before - elements.shape[dim])], dim)


def result_type_of(values: Sequence[Any]) -> Any:
    """The common dtype after promotion."""
    found = values[0].dtype
    for other in values[1:]:
        found = result_type(OPS["full"]((1,), 0, found, other.device), other)
    return found


def stack(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Stack sparse tensors of one size along a new dim."""
    return cat([t.unsqueeze(dim) for t in tensors], dim)


def hstack(tensors: Sequence[Any]) -> SparseTensor:
    """Concatenate along dim 1, vectors along dim 0."""
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> SparseTensor:
    """Concatenate along dim 0, vectors as rows."""
    return cat([t.unsqueeze(0) if t.ndim == 1 else t for t in tensors], 0)


def copy_(input: Any, source: Any, non_blocking: bool = False) -> SparseTensor:
    """Copy the elements and positions of `source` in place, with the dtype and device of `input`. Both are sparse."""
    if not isinstance(source, SparseTensor) or not isinstance(input, SparseTensor):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           f"{input.type()} and src type = {source.type()}")  # fmt: skip
    if source.shape != input.shape:
        raise RuntimeError(f"copy_: expected a sparse tensor of size {list(input.shape)}, but got one of size {list(source.shape)}")
    elements = source._elements.to(input.device, input.dtype)
    return input.take(SparseTensor(source._positions.to(input.device), elements, input.shape, source._is_coalesced))


# ---- conversion from dense tensors, and creation ----


def values_at(dense: Any, indices: Any) -> Any:
    """The elements of a dense tensor at the positions `indices` (d, n)."""
    if indices.shape[0] == 0:
        return OPS["expand"](OPS["unsqueeze"](dense, 0), (indices.shape[1], *dense.shape))
    return OPS["index"](dense, [OPS["select"](indices, 0, d) for d in range(indices.shape[0])])


def to_sparse(input: Any, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    """The tensor in coordinate format, with its first `sparse_dim` dims (by default all) sparse.

    Raises: RuntimeError for a sparse_dim out of range; NotImplementedError for another layout.
    """
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse: layout {layout} is not implemented; allowed: torch.sparse_coo")
    if isinstance(input, SparseTensor):
        if sparse_dim not in (None, input.sparse_dim()):
            raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported")
        return input
    d = input.ndim if sparse_dim is None else sparse_dim
    if not 0 <= d <= input.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{input.ndim}] range, but {d} is given")
    if d == 0 < input.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    nonzero = input.detach() != 0
    if d < input.ndim:
        nonzero = OPS["any"](nonzero, tuple(range(d, input.ndim)), False)
    positions = OPS["permute"](OPS["nonzero"](nonzero), (1, 0))
    return SparseTensor(positions, values_at(input, positions), tuple(input.shape), True)


def sparse_mask(input: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor at the positions of the sparse tensor `mask`."""
    if not isinstance(mask, SparseTensor):
        raise NotImplementedError(f"sparse_mask: the mask must be a sparse tensor, got {type(mask).__name__}")
    dense = input.to_dense() if isinstance(input, SparseTensor) else input
    return SparseTensor(mask._positions, values_at(dense, mask._positions), tuple(input.shape), mask._is_coalesced)


def empty(size: Sequence[int], dtype: Any, device: Any, dense_dim: int = 0) -> SparseTensor:
    """A tensor without elements whose last `dense_dim` dims are dense."""
    d = len(size) - dense_dim
    positions = OPS["full"]((d, 0), 0, dtypes.int64, device)
    return SparseTensor(positions, OPS["full"]((0, *size[d:]), 0, dtype, device), size, True)


def empty_like(input: SparseTensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
               memory_format: Any = None) -> SparseTensor:  # fmt: skip
    """A tensor without elements, of the same size."""
    made = empty(input.shape, dtype or input.dtype, device or input.device, input.dense_dim())
    return made.requires_grad_(requires_grad)


def new_empty(input: SparseTensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> SparseTensor:
    """A tensor without elements, of another size and the same dtype and device."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return empty(shape, dtype or input.dtype, device or input.device).requires_grad_(requires_grad)


def sparse_resize_(input: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the size in place, keeping the elements.

    Raises: RuntimeError for a smaller size while there are elements.
    """
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}")
    if input._nnz() and (sparse_dim, dense_dim) != (input.sparse_dim(), input.dense_dim()):
        raise RuntimeError(f"changing the number of sparse or dense dimensions (from {input.sparse_dim()}, {input.dense_dim()} to "
                           f"{sparse_dim}, {dense_dim}) on a non-empty sparse tensor is not supported.")  # fmt: skip
    if input._nnz() and any(new < old for new, old in zip(size, input.shape, strict=True)):
        raise RuntimeError(f"shrinking the size of a sparse tensor (from {list(input.shape)} to {list(size)}) on a non-empty sparse "
                           "tensor is not supported.")  # fmt: skip
    if not input._nnz():
        return input.take(empty(size, input.dtype, input.device, dense_dim))
    elements = input._elements
    for k, n in enumerate(size[sparse_dim:], 1):
        elements = _placed(elements, k, 0, n)
    return input.take(SparseTensor(input._positions, elements, size, input._is_coalesced))


def sparse_resize_and_clear_(input: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the size in place and remove all elements."""
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}")
    return input.take(empty(size, input.dtype, input.device, dense_dim))


def spdiags(diagonals: Any, offsets: Any, shape: tuple[int, int], layout: Any = None) -> SparseTensor:
    """A matrix with the rows of `diagonals` (k, n) as the diagonals `offsets` (k,): element j of a row is in column j."""
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"spdiags: layout {layout} is not implemented; allowed: torch.sparse_coo")
    diagonals = OPS["unsqueeze"](diagonals, 0) if diagonals.ndim == 1 else diagonals
    offsets = OPS["view"](OPS["to_dtype"](offsets, dtypes.int64), (math.prod(offsets.shape), 1))
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})")
    if len(set(OPS["view"](offsets, (-1,)).tolist())) != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    k, n = diagonals.shape
    column = OPS["expand"](OPS["unsqueeze"](creation.arange(n, device=diagonals.device), 0), (k, n))
    row = column - offsets
    inside = OPS["nonzero"]((row >= 0) & (row < shape[0]) & (column < shape[1]))
    inside_at = [OPS["select"](inside, 1, j) for j in (0, 1)]
    positions = OPS["stack"]([OPS["index"](row, inside_at), OPS["index"](column, inside_at)], 0)
    return SparseTensor(positions, OPS["index"](diagonals, inside_at), shape)
