"""Ops that read or write at positions held in index tensors.

Index tensors hold int64 or int32 positions here; masks become positions in the functions above,
except where an op is about a mask (`masked_*`). Positions are checked against the size of the dim
before any element moves. Where several writes meet in one position, the last one in row-major
order of the source stays, or all are combined in that order.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes, float8
from eager.base.dtypes import scalar_name
from eager.base.scalars import check_element, element
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    broadcast_shapes,
    contiguous_strides,
    elementwise_strides,
    normalize_dim,
)
from eager.optable.formulas import sum_to, zeros
from eager.optable.memory import common_device
from eager.optable.piecewise import piecewise_linear
from eager.optable.precision import PROMOTE_ON_CPU, PROMOTE_ON_CUDA
from eager.optable.registry import Kind
from eager.optable.shape import like, row_major
from eager.optable.table import OPS, declare
from eager.optable.views import view_strides

# ---- kernels' tools ----


def at_least_1d(a: Any) -> Any:
    """A 0-d array as one of a single element, over the same memory."""
    return a.reshape(1) if a.ndim == 0 else a


def begin(xp: Any, out: Any, x: Any) -> None:
    """Start a result as a copy of `x`, unless it stands in the memory of `x` already."""
    if out is not x:
        xp.copyto(out, x)


def check_positions(index: Any, n: int, dim: int, error: type[Exception] = RuntimeError, *, negative: bool = False,
                    text: str | None = None, who: str = "") -> None:  # fmt: skip
    """Refuse positions outside 0..n-1 (or -n..n-1 where `negative`)."""
    if index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    if high < n and low >= (-n if negative else 0):
        return
    bad = high if high >= n else low
    raise error(text or f"{who}index {bad} is out of bounds for dimension {dim} with size {n}")


def _wide(a: Any) -> Any:
    """The type in which sums over many elements of an array are kept."""
    return np.dtype(np.float32) if a.dtype.itemsize <= 2 and a.dtype.kind in "fV" else a.dtype


def combine_at(xp: Any, how: str, out: Any, index: Any, src: Any) -> None:
    """`out[index] = how(out[index], src)` for repeated positions, over 1-d arrays; `how` names a ufunc."""
    wide = _wide(out)
    target = out if wide == out.dtype else out.astype(wide)
    source = src.astype(wide, copy=False)
    if xp is np:
        getattr(np, how).at(target, index, source)
    else:
        import cupyx  # type: ignore[import-not-found]

        {"add": cupyx.scatter_add, "maximum": cupyx.scatter_max, "minimum": cupyx.scatter_min}[how](target, index, source)
    if target is not out:
        float8.store(xp, out, target)


def add_rows(xp: Any, out: Any, index: Any, src: Any) -> None:
    """Add row `src[i]` to row `out[index[i]]`. out: (n, m) contiguous, index: (k,), src: (k, m).

    Wide rows are sorted by position and summed run by run: one pass over memory, where an
    element-wise scatter would take a step of its own for each element.
    """
    m, index = out.shape[1], index.astype("i8", copy=False)
    if out.size == 0 or index.size == 0:
        return
    if m < 8 or xp is not np:
        positions = index[:, None] * m + xp.arange(m)
        combine_at(xp, "add", out.reshape(-1), positions.reshape(-1), src.reshape(-1))
        return
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    rows = ranked[starts]
    sums = np.add.reduceat(src[order].astype(_wide(out), copy=False), starts, axis=0)
    out[rows] = float8.cast(out[rows].astype(sums.dtype, copy=False) + sums, out.dtype)


def _linear(xp: Any, shape: Sequence[int], dim: int, index: Any) -> Any:
    """Flat positions in a contiguous array of `shape` that `index` stands for along `dim`. Same shape as index."""
    strides = contiguous_strides(shape)
    at = index.astype("i8", copy=False) * strides[dim]
    for i, n in enumerate(index.shape):
        if i != dim:
            at = at + (xp.arange(n) * strides[i]).reshape([-1 if j == i else 1 for j in range(index.ndim)])
    return at


# ---- gather and scatter: an index for every element ----


def _check_index(who: str, dim: int, x: SpecLike, index: SpecLike, src: Any = None) -> int:
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"{who}(): Expected dtype int32/int64 for index")
    d = normalize_dim(dim, x.ndim)
    if index.numel() == 0:
        return d
    sizes, own = list(index.shape) or [1], list(x.shape) or [1]
    if len(sizes) != len(own):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor" if src is None else
                           "Index tensor must have the same number of dimensions as self tensor")  # fmt: skip
    has_src = src is not None and hasattr(src, "stride")
    theirs = (list(src.shape) or [1]) if has_src else own
    if has_src and len(theirs) < len(sizes):
        normalize_dim(len(theirs), len(theirs))  # torch reads the missing size first
    if has_src and len(theirs) != len(sizes):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for i, n in enumerate(sizes):
        if (i != d and n > own[i]) or (has_src and n > theirs[i]):
            also = f" and to be no larger size than src {list(src.shape)}" if has_src else ""
            verb = "to be no larger than self" if has_src else f"to be no larger than self {list(x.shape)} apart from dimension {d}"
            raise RuntimeError(f"Size does not match at dimension {i} expected index {list(index.shape)} {verb}" if not has_src else
                               f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                               f"dimension {d}{also}")  # fmt: skip
    if has_src and src.dtype is not x.dtype:
        raise RuntimeError(f"{who}(): Expected self.dtype to be equal to src.dtype")
    return d


def _gather_meta(x: SpecLike, dim: int, index: SpecLike) -> TensorSpec:
    _check_index("gather", dim, x, index)
    return TensorSpec.contiguous(tuple(index.shape), x.dtype, common_device("gather", [x, index]))


def _cropped(a: Any, dim: int, shape: Sequence[int]) -> Any:
    return a[tuple(slice(None) if i == dim else slice(n) for i, n in enumerate(shape))]


def _gather(xp: Any, out: Any, x: Any, dim: int, index: Any) -> None:
    if index.size == 0:
        return
    x, index, out = at_least_1d(x), at_least_1d(index), at_least_1d(out)
    dim %= x.ndim
    check_positions(index, x.shape[dim], dim)
    xp.copyto(out, xp.take_along_axis(_cropped(x, dim, index.shape), index.astype("i8", copy=False), axis=dim))


def _gather_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.int(2, 3, high=3)
    yield make(4, 3).t(), 1, make.int(5, 3, high=4).t()
    yield make(3, 4), 1, make.int(3, 0, high=4)
    yield make(3), 0, make.int(7, high=3)
    yield make(), 0, make.int(2, high=1)


GATHER = declare("gather(Tensor x, int dim, Tensor index) -> Tensor", Kind.INDEXED, fallible=True, meta=_gather_meta, kernel=_gather,
                 vjp={"x": lambda g, x_spec, dim, index: OPS["scatter_add"](zeros(x_spec), dim, index, g)},
                 samples=_gather_samples)  # fmt: skip
# A gather at positions that were chosen by the values, as of maxima: it has a second derivative, which is zero.
GATHER_CHOSEN = declare("gather_chosen(Tensor x, int dim, Tensor index) -> Tensor", Kind.COMPOSITE, fallible=True,
                        meta=_gather_meta, decompose=lambda x, dim, index: OPS["gather"](x, dim, index), samples=_gather_samples,
                        vjp={"x": piecewise_linear(lambda g, x_spec, dim, index: OPS["scatter_add"](zeros(x_spec), dim, index, g))},
                        in_opmath=False, doc="`gather` of elements chosen by their values")  # fmt: skip


def _scatter_meta(who: str) -> Any:
    def meta(x: SpecLike, dim: int, index: SpecLike, src: Any, *options: Any) -> TensorSpec:
        _check_index(who, dim, x, index, src)
        common_device(who, [t for t in (x, index, src) if hasattr(t, "stride")])
        check_element(src, x.dtype)
        return row_major(x)

    return meta


def _scatter_positions(xp: Any, out: Any, dim: int, index: Any, src: Any) -> tuple[Any, Any]:
    """Flat positions and values of a scatter into contiguous `out`."""
    out, index = at_least_1d(out), at_least_1d(index)
    dim %= out.ndim
    check_positions(index, out.shape[dim], dim)
    at = _linear(xp, out.shape, dim, index).reshape(-1)
    if hasattr(src, "shape") and src.ndim:
        src = src[tuple(slice(n) for n in index.shape)].reshape(-1)
    return at, element(src, out.dtype)


def _scatter(xp: Any, out: Any, x: Any, dim: int, index: Any, src: Any) -> None:
    begin(xp, out, x)
    if index.size:
        at, values = _scatter_positions(xp, out, dim, index, src)
        out.reshape(-1)[at] = values


def _scatter_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.distinct(2, 3, high=3), make(2, 4)
    yield make(4, 3).t(), 1, make.distinct(3, 2, high=4, dim=1), make(3, 2)
    yield make(3, 4), 1, make.distinct(3, 2, high=4, dim=1), 0.5
    yield make(3), 0, make.int(0, high=3), make(0)


SCATTER = declare("scatter(Tensor x, int dim, Tensor index, Tensor src) -> Tensor", Kind.INDEXED, fallible=True,
                  meta=_scatter_meta("scatter"), kernel=_scatter, inplace=True, over_input=True, numbers="src", samples=_scatter_samples,
                  vjp={"x": lambda g, dim, index: OPS["scatter"](g, dim, index, 0),
                       "src": lambda g, dim, index, src_spec: _to_source(OPS["gather"](g, dim, index), src_spec)})  # fmt: skip


def _to_source(g: Any, src_spec: SpecLike) -> Any:
    """Cotangent of a source of which only the part that an index covers was read."""
    if tuple(g.shape) == tuple(src_spec.shape):
        return g
    pad = [v for have, want in zip(reversed(g.shape), reversed(src_spec.shape), strict=True) for v in (0, want - have)]
    return OPS["constant_pad_nd"](g, tuple(pad), 0)


def _scatter_add(xp: Any, out: Any, x: Any, dim: int, index: Any, src: Any) -> None:
    begin(xp, out, x)
    if index.size:
        at, values = _scatter_positions(xp, out, dim, index, src)
        combine_at(xp, "add", out.reshape(-1), at, values)


def _scatter_add_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.int(5, 4, high=3), make(5, 4)
    yield make(4, 3).t(), 1, make.int(2, 3, high=4), make(3, 3)
    yield make.int(3, high=5), 0, make.int(6, high=3), make.int(6, high=9)
    yield make(3), 0, make.int(0, high=3), make(0)


SCATTER_ADD = declare("scatter_add(Tensor x, int dim, Tensor index, Tensor src) -> Tensor", Kind.INDEXED, fallible=True,
                      meta=_scatter_meta("scatter_add"), kernel=_scatter_add, inplace=True, over_input=True, samples=_scatter_add_samples,
                      vjp={"x": lambda g: g, "src": lambda g, dim, index, src_spec: _to_source(
                          OPS["gather"](g, dim, index), src_spec)}, precision=PROMOTE_ON_CUDA)  # fmt: skip

_REDUCERS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def _identity(reduce: str, d: Any) -> Any:
    """The value that leaves the others of a reduction as they are."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if d.kind in "fV":
        return -np.inf if reduce == "amax" else np.inf
    info = np.iinfo(d) if d.kind in "iu" else None
    return (info.min if reduce == "amax" else info.max) if info else reduce == "amin"


def _scatter_reduce(xp: Any, out: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> None:
    begin(xp, out, x)
    if not index.size:
        return
    at, values = _scatter_positions(xp, out, dim, index, src)
    flat = out.reshape(-1)
    if not include_self:
        flat[at] = _identity(reduce, out.dtype)
    combine_at(xp, _REDUCERS[reduce], flat, at, values)
    if reduce == "mean":
        counts = xp.bincount(at, minlength=flat.size) + (1 if include_self else 0)
        counts = xp.maximum(counts, 1)
        xp.copyto(flat, flat / counts if out.dtype.kind in "fcV" else flat // counts, casting="unsafe")


def _scatter_reduce_meta(x: SpecLike, dim: int, index: SpecLike, src: Any, reduce: str, include_self: bool) -> TensorSpec:
    if reduce not in _REDUCERS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return _scatter_meta("scatter_reduce")(x, dim, index, src)


def _scatter_reduce_vjp(g: Any, y: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> tuple[Any, Any]:
    read, add = OPS["gather"], OPS["scatter_add"]
    if reduce == "sum":
        gx, gs = g, read(g, dim, index)
    elif reduce == "mean":
        ones = OPS["full"](tuple(index.shape), 1, g.dtype, g.device)
        counts = add(OPS["full"](tuple(x.shape), 1 if include_self else 0, g.dtype, g.device), dim, index, ones)
        counts = OPS["clamp"](counts, 1, None)
        gx = g / counts
        gs = read(gx, dim, index)
    elif reduce == "prod":
        gx, gs = _prod_grads(g, y, x, dim, index, src, include_self)
    else:
        src = _covered(src, index)
        mine = OPS["to_dtype"](x == y, g.dtype)
        theirs = OPS["to_dtype"](src == read(y, dim, index), g.dtype)
        share = g / OPS["clamp"](add(mine, dim, index, theirs), 1, None)
        gx, gs = mine * share, theirs * read(share, dim, index)
    return gx if include_self else OPS["scatter"](gx, dim, index, 0), gs


def _covered(src: Any, index: SpecLike) -> Any:
    for i, n in enumerate(index.shape):
        src = OPS["slice"](src, i, 0, n, 1)
    return src


def _prod_grads(g: Any, y: Any, x: Any, dim: int, index: Any, src: Any, include_self: bool) -> tuple[Any, Any]:
    """Product of the others, exact where one factor of a product is zero."""
    read, multiply = OPS["gather"], OPS["scatter_reduce"]
    src = _covered(src, index)
    safe = OPS["masked_fill"](x, x == 0, 1)
    gx = g * multiply(safe, dim, index, src, "prod", include_self) / safe
    zero = src == 0
    counts = OPS["scatter_add"](OPS["full"](tuple(x.shape), 0, g.dtype, g.device), dim, index, OPS["to_dtype"](zero, g.dtype))
    alone = zero & (read(counts, dim, index) == 1)
    without = multiply(x, dim, index, OPS["masked_fill"](src, alone, 1), "prod", include_self)
    gs = OPS["where"](alone, read(g * without, dim, index), read(g * y, dim, index) / OPS["masked_fill"](src, zero, 1))
    return gx, gs


def _scatter_reduce_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for how in _REDUCERS:
        yield make(3, 4, low=0.3, high=2.0), 0, make.int(5, 4, high=3), make(5, 4, low=0.4, high=1.9), how, True
        yield make(4, 3, low=0.3, high=2.0).t(), 1, make.int(3, 3, high=4), make(3, 3, low=0.4, high=1.9), how, False


SCATTER_REDUCE = declare(
    "scatter_reduce(Tensor x, int dim, Tensor index, Tensor src, str reduce, bool include_self=True) -> Tensor", Kind.INDEXED,
    fallible=True, meta=_scatter_reduce_meta, kernel=_scatter_reduce, inplace=True, over_input=True, samples=_scatter_reduce_samples,
    vjp={"x,src": lambda g, y, x, dim, index, src, reduce, include_self, src_spec: _with_source(
        _scatter_reduce_vjp(g, y, x, dim, index, src, reduce, include_self), src_spec)})  # fmt: skip


def _with_source(grads: tuple[Any, Any], src_spec: SpecLike) -> tuple[Any, Any]:
    return grads[0], _to_source(grads[1], src_spec)


# ---- index_*: one list of positions along one dim ----


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
        xp.take(x, index, axis=dim, out=out, mode="wrap")


def _index_select_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), 0, make.int(5, high=3)
    yield make(4, 3, 2).permute(2, 0, 1), 1, make.int(2, high=4)
    yield make(3, 4), 1, make.int(0, high=4)
    yield make(), 0, make.int(1, high=1)


INDEX_SELECT = declare("index_select(Tensor x, int dim, Tensor index) -> Tensor", Kind.INDEXED, fallible=True,
                       float8=True, meta=_index_select_meta, kernel=_index_select, samples=_index_select_samples,
                       vjp={"x": lambda g, x_spec, dim, index: OPS["index_add"](zeros(x_spec), dim, index, g, 1)})  # fmt: skip


def _without(shape: Sequence[int], d: int) -> list[int]:
    return [*shape[:d], *shape[d + 1 :]]


def check_sources(who: str, x: SpecLike, d: int, index: SpecLike, source: SpecLike) -> None:
    """Raise RuntimeError unless `source` has x's shape but for dim `d`, along which it has one slice for each index."""
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
                             OPS["index_select"](g, dim, index), alpha).reshape(tuple(source_spec.shape))})  # fmt: skip


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
                              g, dim, index).reshape(tuple(source_spec.shape))}, precision=PROMOTE_ON_CPU)  # fmt: skip


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
                                                (make(4, 3).t(), 1, make.distinct(3, high=4), make())]))  # fmt: skip

# ---- advanced indexing: positions along several dims, broadcast together ----


def _advanced(x: SpecLike, indices: Sequence[Any]) -> tuple[list[int], tuple[int, ...], int]:
    """Dims that have an index, the indices' broadcast shape, and where it stands in the result."""
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
        xp.take(x, indices[at[0]], axis=at[0], out=out, mode="wrap")
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
                samples=_index_samples)  # fmt: skip


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
    """Positions in row-major memory of `sizes` that stand at arrays[i] in dim i: int64, whatever the arrays are."""
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
                         precision=PROMOTE_ON_CUDA)  # fmt: skip


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
        xp.take(weight, indices, axis=0, out=out, mode="wrap")


EMBEDDING = declare("embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor", Kind.INDEXED, fallible=True, float8=True,
                    meta=_embedding_meta,
                    kernel=_embedding,
                    vjp={"weight": lambda g, weight_spec, indices, padding_idx: OPS["embedding_backward"](
                        g, indices, weight_spec.shape[0], padding_idx)},
                    samples=lambda make: iter([(make(5, 3), make.int(2, 4, high=5), -1), (make(3, 5).t(), make.int(4, high=5), 2),
                                               (make(5, 9), make.int(6, high=5), -1), (make(5, 3), make.int(0, high=5), -1)]))  # fmt: skip


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
                               (make(0, 3), make.int(0, high=5), 5, -1)]))  # fmt: skip


def _embedding_again(g: Any, indices: Any, padding_idx: int) -> Any:
    rows = OPS["embedding"](g, indices, -1)
    return rows if padding_idx < 0 else OPS["where"](OPS["unsqueeze"](indices == padding_idx, indices.ndim), 0, rows)
