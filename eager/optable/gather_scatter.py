"""gather, scatter and their relatives: a position along one dim for every element.

Index tensors hold int64 or int32 positions. Positions are checked against the size of the dim before any element moves. If several
writes meet in one position, the last in row-major order of the source remains, or all are combined in that order.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.scalars import check_element, element
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    common_device,
    normalize_dim,
)
from eager.optable.declaration import zeros
from eager.optable.index_kernels import at_least_1d, begin, check_positions, combine_at, linear_positions
from eager.optable.piecewise import piecewise_linear
from eager.optable.precision import PROMOTE_ON_CUDA
from eager.optable.registry import Kind
from eager.optable.shape import row_major
from eager.optable.table import OPS, declare


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
                 samples=_gather_samples, batch="along_dim", linear_in=("x",))  # fmt: skip
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
    at = linear_positions(xp, out.shape, dim, index).reshape(-1)
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
                       "src": lambda g, dim, index, src_spec: _to_source(OPS["gather"](g, dim, index), src_spec)},
                       batch="along_dim", linear_in=("x", "src"))  # fmt: skip


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
                          OPS["gather"](g, dim, index), src_spec)},
                          precision=PROMOTE_ON_CUDA, batch="along_dim", linear_in=("x", "src"))  # fmt: skip

_REDUCERS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def _identity(reduce: str, d: Any) -> Any:
    """The neutral element of a reduction."""
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
        _scatter_reduce_vjp(g, y, x, dim, index, src, reduce, include_self), src_spec)}, batch="along_dim")  # fmt: skip


def _with_source(grads: tuple[Any, Any], src_spec: SpecLike) -> tuple[Any, Any]:
    return grads[0], _to_source(grads[1], src_spec)
