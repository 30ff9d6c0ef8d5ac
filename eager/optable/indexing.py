"""Advanced indexing (positions along several dims, broadcast together) and embedding.

Index tensors hold int64 or int32 positions: the functions above turn masks into positions. Positions are checked against the size
of the dim before any element moves. If several writes meet in one position, the last in row-major order of the source remains, or
all are combined in that order.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from eager.base import dtypes
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    broadcast_shapes,
    common_device,
    elementwise_strides,
)
from eager.optable import array_functions
from eager.optable.declaration import sum_to, zeros
from eager.optable.index_kernels import add_rows, begin, check_positions
from eager.optable.precision import PROMOTE_ON_CUDA
from eager.optable.registry import Kind
from eager.optable.shape import like
from eager.optable.table import OPS, declare
from eager.optable.views import view_strides


def _advanced(x: SpecLike, indices: Sequence[Any]) -> tuple[list[int], tuple[int, ...], int]:
    """Dims that have an index, the indices' broadcast shape, and its place in the result."""
    if len(indices) > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {len(indices)})")
    dims = [i for i, t in enumerate(indices) if t is not None]
    if not dims:
        raise IndexError("index: at least one index tensor is needed, got only None")
    for i in dims:
        if indices[i].dtype not in (dtypes.int64, dtypes.int32):
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {indices[i].dtype}")
    try:
        shape = broadcast_shapes(*(indices[i].shape for i in dims))
    except RuntimeError:
        shapes = ", ".join(str(list(indices[i].shape)) for i in dims)
        raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}") from None
    adjacent = dims[-1] - dims[0] + 1 == len(dims)
    return dims, shape, dims[0] if adjacent else 0


def indexed_shape(x: SpecLike, indices: Sequence[Any]) -> tuple[int, ...]:
    """Shape of `x` at `indices` (None leaves a dim whole)."""
    dims, shape, at = _advanced(x, indices)
    rest = [n for i, n in enumerate(x.shape) if i not in dims]
    return (*rest[:at], *shape, *rest[at:])


def _index_meta(x: SpecLike, indices: Sequence[Any]) -> TensorSpec:
    """Row-major where `x` is; otherwise the result keeps the order of x's dims, as torch's iterator has it."""
    dims, shape, at = _advanced(x, indices)
    rest = [i for i in range(x.ndim) if i not in dims]
    sizes = tuple(x.shape[i] for i in rest)
    full = (*sizes[:at], *shape, *sizes[at:])
    where = common_device("index", [x, *(indices[i] for i in dims)])
    if 0 in x.shape and 0 not in full and any(x.shape[i] == 0 for i in dims):
        raise IndexError(f"index is out of bounds for dimension with size 0: tensor of size {list(x.shape)}")
    steps = x.stride()
    moved = tuple(steps[i] for i in rest)
    operands = [TensorSpec(full, x.dtype, (*moved[:at], *([0] * len(shape)), *moved[at:]), where)]
    aligned = (*(1,) * at, *shape, *(1,) * (len(rest) - at))
    for i in dims:
        t = indices[i]
        lead = len(shape) - t.ndim
        spread = tuple(0 if n == 1 and m != 1 else s for n, s, m in zip(t.shape, t.stride(), shape[lead:], strict=True))
        strides = view_strides(shape, (*(0,) * lead, *spread), aligned)
        assert strides is not None  # only dims of size 1 are added
        operands.append(TensorSpec(aligned, t.dtype, strides, where))
    return TensorSpec(full, x.dtype, elementwise_strides(full, operands), where)


def _key(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The checked key that numpy takes."""
    for d, t in enumerate(indices):
        if t is not None:
            check_positions(t, x.shape[d], d, IndexError, negative=True)
    return tuple(slice(None) if t is None else t for t in indices)


def _index(xp: Any, out: Any, x: Any, indices: Sequence[Any]) -> None:
    if 0 in out.shape:
        return
    key = _key(x, indices)
    at = [i for i, t in enumerate(indices) if t is not None]
    if len(at) == 1 and out.flags.c_contiguous:
        array_functions.take(xp, out, x, indices[at[0]], at[0])
    else:
        xp.copyto(out, x[key])


def _index_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), [make.int(5, high=3)]
    yield make(4, 3).t(), [None, make.int(2, 3, high=4)]
    yield make(3, 4, 5), [make.int(2, 1, high=3), make.int(3, high=4)]
    yield make(3, 4, 5), [make.int(2, high=3), None, make.int(2, high=5)]
    yield make(4, 2, 3).permute(1, 2, 0), [None, make.int(3, high=3)]
    yield make(3, 4), [make.int(0, high=3)]
    yield make(3, 4), [make.int(high=3)]


INDEX = declare("index(Tensor x, Tensor?[] indices) -> Tensor", Kind.INDEXED, fallible=True, float8=True, meta=_index_meta, kernel=_index,
                vjp={"x": lambda g, x_spec, indices: OPS["index_put"](zeros(x_spec), indices, g, True)},
                samples=_index_samples, batch="index", linear_in=("x",))  # fmt: skip


def _index_put_meta(x: SpecLike, indices: Sequence[Any], values: Any, accumulate: bool) -> TensorSpec:
    shape = indexed_shape(x, indices)
    if hasattr(values, "stride"):
        if values.dtype is not x.dtype:
            raise RuntimeError(f"Index put requires the source and destination dtypes match, got {x.dtype} for the destination "
                               f"and {values.dtype} for the source.")  # fmt: skip
        own = tuple(values.shape)
        while len(own) > len(shape) and own[0] == 1:
            own = own[1:]
        if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False)):
            raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result "
                               f"of shape {list(shape)}")  # fmt: skip
    return like(x)


def flat_positions(arrays: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Positions, as int64, in row-major memory of `sizes` for coordinates arrays[i] in dim i."""
    position: Any = 0
    for array, n in zip(arrays, sizes, strict=True):
        position = position * n + array.astype("i8", copy=False)
    return position


def _index_put(xp: Any, out: Any, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> None:
    begin(xp, out, x)
    dims = [i for i, t in enumerate(indices) if t is not None]
    if any(indices[i].size == 0 for i in dims):
        return
    key = _key(x, indices)
    if not accumulate:
        out[key] = values
        return
    arrays = xp.broadcast_arrays(*(xp.where(indices[i] < 0, indices[i] + x.shape[i], indices[i]) for i in dims))
    shape = arrays[0].shape
    rest = [i for i in range(x.ndim) if i not in dims]
    at = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    sizes = [x.shape[i] for i in rest]
    values = xp.broadcast_to(values, (*sizes[:at], *shape, *sizes[at:]))
    order = (*range(at, at + len(shape)), *range(at), *range(at + len(shape), len(shape) + len(rest)))
    k, m = math.prod(shape), math.prod(sizes)
    own = [x.shape[i] for i in dims]
    position = flat_positions(arrays, own)
    moved = out.transpose(*dims, *rest)
    rows = xp.ascontiguousarray(moved).reshape(math.prod(own), m)
    add_rows(xp, rows, position.reshape(-1), values.transpose(order).reshape(k, m))
    xp.copyto(moved, rows.reshape(moved.shape))


def _index_put_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), [make.distinct(2, high=3)], make(2, 4), False
    yield make(4, 3).t(), [None, make.distinct(3, high=4)], make(3, 1), False
    yield make(3, 4, 5), [make.int(2, 1, high=3), make.int(3, high=4)], make(2, 3, 5), True
    yield make(3, 4, 5), [make.int(2, high=3), None, make.int(2, high=5)], make(4), True
    yield make(3, 4, 9), [None, make.int(6, high=4)], make(3, 6, 9), True
    yield make(3, 4), [make.distinct(2, high=3)], 0.5, False
    yield make(3, 4), [make.int(0, high=3)], make(0, 4), True


INDEX_PUT = declare("index_put(Tensor x, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", Kind.INDEXED, fallible=True,
                    float8=True, numbers="values", meta=_index_put_meta, kernel=_index_put, inplace=True, over_input=True,
                    samples=_index_put_samples,
                    vjp={"x": lambda g, indices, accumulate: g if accumulate else OPS["index_put"](g, indices, 0, False),
                         "values": lambda g, indices, values_spec: _of_values(OPS["index"](g, indices), values_spec)},
                         precision=PROMOTE_ON_CUDA, batch="index_put", linear_in=("x", "values"))  # fmt: skip


def _of_values(g: Any, spec: SpecLike) -> Any:
    """Cotangent of values that were broadcast; leading dims of size one may outnumber the result's."""
    shape = tuple(spec.shape)
    own = shape[len(shape) - g.ndim :] if len(shape) > g.ndim else shape
    return sum_to(g, own).reshape(shape)


# ---- embedding ----


def _embedding_meta(weight: SpecLike, indices: SpecLike, padding_idx: int) -> TensorSpec:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"torch.{dtypes.scalar_name(indices.dtype)}Tensor instead (while checking arguments for embedding)")  # fmt: skip
    return TensorSpec.contiguous((*indices.shape, weight.shape[1]), weight.dtype, common_device("embedding", [weight, indices]))


def _embedding(xp: Any, out: Any, weight: Any, indices: Any, padding_idx: int) -> None:
    if indices.size and not weight.shape[0]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    check_positions(indices, weight.shape[0], 0, IndexError, text="index out of range in self")
    if out.size:
        array_functions.take(xp, out, weight, indices, 0)


EMBEDDING = declare("embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor", Kind.INDEXED, fallible=True, float8=True,
                    meta=_embedding_meta,
                    kernel=_embedding,
                    vjp={"weight": lambda g, weight_spec, indices, padding_idx: OPS["embedding_backward"](
                        g, indices, weight_spec.shape[0], padding_idx)},
                    samples=lambda make: iter([(make(5, 3), make.int(2, 4, high=5), -1), (make(3, 5).t(), make.int(4, high=5), 2),
                                               (make(5, 9), make.int(6, high=5), -1), (make(5, 3), make.int(0, high=5), -1)]),
                                               batch="embedding", linear_in=("weight",))  # fmt: skip


def _embedding_backward(g: Any, indices: Any, num_weights: int, padding_idx: int) -> Any:
    """Rows of cotangents summed by their index. g: (*, m), indices: (*); result (num_weights, m)."""
    m = g.shape[-1]
    flat, rows = indices.reshape(indices.numel()), g.reshape(indices.numel(), m)
    if padding_idx >= 0:
        rows = OPS["where"](OPS["unsqueeze"](flat == padding_idx, 1), 0, rows)
    return OPS["index_add"](OPS["full"]((num_weights, m), 0, g.dtype, g.device), 0, flat, rows, 1)


def _embedding_backward_kernel(xp: Any, out: Any, g: Any, indices: Any, num_weights: int, padding_idx: int) -> None:
    out.fill(0)
    flat, rows = indices.reshape(-1), g.reshape(indices.size, g.shape[-1])
    if padding_idx >= 0:
        kept = flat != padding_idx
        flat, rows = flat[kept], rows[kept]
    add_rows(xp, out, flat, rows)


EMBEDDING_BACKWARD = declare(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor", Kind.COMPOSITE,
    meta=lambda grad, indices, num_weights, padding_idx: TensorSpec.contiguous((num_weights, grad.shape[-1]), grad.dtype, grad.device),
    decompose=_embedding_backward, kernel=_embedding_backward_kernel,
    vjp={"grad": lambda g, indices, padding_idx: _embedding_again(g, indices, padding_idx)},
    samples=lambda make: iter([(make(2, 4, 3), make.int(2, 4, high=5), 5, -1), (make(9, 6).t(), make.int(6, high=5), 5, 2),
                               (make(0, 3), make.int(0, high=5), 5, -1)]), linear_in=("grad",))  # fmt: skip


def _embedding_again(g: Any, indices: Any, padding_idx: int) -> Any:
    rows = OPS["embedding"](g, indices, -1)
    return rows if padding_idx < 0 else OPS["where"](OPS["unsqueeze"](indices == padding_idx, indices.ndim), 0, rows)
