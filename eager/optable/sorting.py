"""Ordering: sort, top-k, order statistics, unique values, search in sorted sequences, counting.

NaN counts as greater than every number, as in torch. Dims reach these ops non-negative.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import Fresh, SpecLike, TensorSpec, normalize_dim
from eager.optable import array_functions
from eager.optable.declaration import zeros
from eager.optable.index_kernels import at_least_1d
from eager.optable.reduction import reduced_shape
from eager.optable.registry import Kind
from eager.optable.shape import like, row_major
from eager.optable.sums import widen
from eager.optable.table import OPS, declare


def _pair(spec: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """Specs of values and of their positions."""
    return spec, TensorSpec(spec.shape, dtypes.int64, spec.strides, spec.device)


def _scatter_back(gs: Any, y1: Any, x_spec: SpecLike, dim: int) -> Any:
    """Cotangents of selected values, put back where the values came from."""
    return OPS["scatter"](zeros(x_spec), dim, y1, gs[0])


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """Positions in a stable order. Descending is the reverse of ascending over the reversed dim, which keeps ties in order."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iuf":
        x = x.astype("f4")  # numpy's order of bfloat16 does not put nan last
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable") if xp is np else xp.argsort(x, axis=dim)
    flipped = xp.flip(x, dim)
    order = xp.argsort(flipped, axis=dim, kind="stable") if xp is np else xp.argsort(flipped, axis=dim)
    return x.shape[dim] - 1 - xp.flip(order, dim)


def _sort_meta(x: SpecLike, dim: int, descending: bool, stable: bool) -> tuple[TensorSpec, TensorSpec]:
    normalize_dim(dim, x.ndim)
    return _pair(like(x))


def _sort(xp: Any, out: Any, x: Any, dim: int, descending: bool, stable: bool) -> None:
    x, values, at = at_least_1d(x), at_least_1d(out[0]), at_least_1d(out[1])
    order = _order(xp, x, dim, descending)
    xp.copyto(at, order)
    xp.copyto(values, xp.take_along_axis(x, order, dim))


def _sort_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), 1, False, False
    yield make(5, 3).t(), 0, True, True
    yield make.int(4, 6, high=3), 1, True, True
    yield make(0, 3), 0, False, True
    yield make(), 0, False, False


SORT = declare("sort(Tensor x, int dim=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)", Kind.OPAQUE,
               meta=_sort_meta, kernel=_sort, vjp={"x": _scatter_back}, nondifferentiable_outputs=(1,),
               samples=_sort_samples, accepts="bif", batch="along_dim")  # fmt: skip


def _topk_meta(x: SpecLike, k: int, dim: int, largest: bool, sorted: bool) -> tuple[TensorSpec, TensorSpec]:  # noqa: A002
    d = normalize_dim(dim, x.ndim)
    n = x.shape[d] if x.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range: topk got k={k} for a dim of size {n}")
    shape = (*x.shape[:d], k, *x.shape[d + 1 :]) if x.ndim else ()
    return _pair(TensorSpec.contiguous(shape, x.dtype, x.device))


def _first(a: Any, k: int, dim: int) -> Any:
    return a[(slice(None),) * dim + (slice(0, k),)]


def _topk(xp: Any, out: Any, x: Any, k: int, dim: int, largest: bool, sorted: bool) -> None:  # noqa: A002
    """Partition off k elements, then sort those; equal elements among the k are in the order of a stable sort."""
    x, values, at = at_least_1d(x), at_least_1d(out[0]), at_least_1d(out[1])
    dim %= x.ndim
    n = x.shape[dim]
    if k == 0 or x.size == 0:
        return
    if k < n and xp is np and n > 64:
        part = xp.argpartition(x, n - k if largest else k - 1, axis=dim)
        part = xp.sort(part[(slice(None),) * dim + (slice(n - k, n) if largest else slice(0, k),)], axis=dim)
        order = xp.take_along_axis(part, _order(xp, xp.take_along_axis(x, part, dim), dim, largest), dim)
    else:
        order = _first(_order(xp, x, dim, largest), k, dim)
    xp.copyto(at, order)
    xp.copyto(values, xp.take_along_axis(x, order, dim))


def _topk_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), 2, 1, True, True
    yield make(5, 3).t(), 2, 0, False, True
    yield make(100), 7, 0, True, True
    yield make(3, 5), 0, 1, True, True


TOPK = declare("topk(Tensor x, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)", Kind.OPAQUE,
               meta=_topk_meta, kernel=_topk, vjp={"x": _scatter_back}, nondifferentiable_outputs=(1,),
               samples=_topk_samples, accepts="if", batch="along_dim")  # fmt: skip

# ---- order statistics ----


def _statistic_meta(who: str, x: SpecLike, dim: int, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    d = normalize_dim(dim, x.ndim)
    if x.ndim and x.shape[d] == 0:
        raise IndexError(f"{who}(): Expected reduction dim {d} to have non-zero size.")
    return _pair(TensorSpec.contiguous(reduced_shape(x.shape, (d,), keepdim), x.dtype, x.device))


def _store(xp: Any, out: Any, values: Any, at: Any) -> None:
    xp.copyto(out[0], values.reshape(out[0].shape))
    xp.copyto(out[1], at.reshape(out[1].shape))


def _kthvalue_meta(x: SpecLike, k: int, dim: int, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    d = normalize_dim(dim, x.ndim)
    n = x.shape[d] if x.ndim else 1
    if n == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    return _statistic_meta("kthvalue", x, dim, keepdim)


def _ordered(x: Any) -> Any:
    """The array in a type that numpy sorts with nan last: bfloat16 as float32."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x


def _kthvalue(xp: Any, out: Any, x: Any, k: int, dim: int, keepdim: bool) -> None:
    x = at_least_1d(x)
    at = xp.argpartition(_ordered(x), k - 1, axis=dim).take(xp.asarray([k - 1]), axis=dim)
    _store(xp, out, xp.take_along_axis(x, at, dim), at)


def _chosen(gs: Any, y1: Any, x_spec: SpecLike, dim: int, keepdim: bool) -> Any:
    """Cotangent of one chosen element per slice along `dim`."""
    if x_spec.ndim == 0:
        return gs[0]
    at, g = (y1, gs[0]) if keepdim else (OPS["unsqueeze"](y1, dim), OPS["unsqueeze"](gs[0], dim))
    return OPS["scatter"](zeros(x_spec), dim, at, g)


def _dim_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), 1, False
    yield make(6, 3).t(), 0, True
    yield make(4), 0, False


KTHVALUE = declare("kthvalue(Tensor x, int k, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)", Kind.OPAQUE,
                   meta=_kthvalue_meta, kernel=_kthvalue, vjp={"x": _chosen}, nondifferentiable_outputs=(1,),
                   samples=lambda make: iter([(make(3, 5), 2, 1, False), (make(5, 3).t(), 1, 0, True)]), accepts="if",
                   batch="along_dim")  # fmt: skip


def _median(ignore_nan: bool) -> Any:
    def kernel(xp: Any, out: Any, x: Any, dim: int, keepdim: bool) -> None:
        """The lower of the two middle elements; a NaN, if there is one and it counts, is the median."""
        x = at_least_1d(x)
        order = _order(xp, x, dim, False)
        n = x.shape[dim]
        nans = xp.isnan(x).sum(dim, keepdims=True) if x.dtype.kind not in "iub" else xp.zeros((1,) * x.ndim, "i8")
        middle = xp.maximum(n - nans - 1, 0) // 2 if ignore_nan else xp.where(nans > 0, n - xp.maximum(nans, 1), (n - 1) // 2)
        shape = tuple(1 if i == dim else m for i, m in enumerate(x.shape))
        at = xp.take_along_axis(order, xp.broadcast_to(middle, shape), dim)
        _store(xp, out, xp.take_along_axis(x, at, dim), at)

    return kernel


for _name, _ignore in (("median_dim", False), ("nanmedian_dim", True)):
    declare(f"{_name}(Tensor x, int dim, bool keepdim=False) -> (Tensor, Tensor)", Kind.OPAQUE, kernel=_median(_ignore),
            meta=lambda x, dim, keepdim: _statistic_meta("median", x, dim, keepdim), vjp={"x": _chosen},
            nondifferentiable_outputs=(1,), samples=_dim_samples, accepts="if", batch="along_dim")  # fmt: skip


def _median_all(xp: Any, out: Any, x: Any, ignore_nan: bool) -> None:
    value = xp.empty(1, out.dtype)
    _median(ignore_nan)(xp, (value, xp.empty(1, "i8")), x.reshape(-1), 0, True)
    xp.copyto(out, value[0])


def _median_all_vjp(g: Any, x: Any, y: Any) -> Any:
    """Shared evenly among the elements that are the median."""
    hit = OPS["logical_or"](OPS["eq"](x, y), OPS["logical_and"](OPS["isnan"](x), OPS["isnan"](y)))
    return OPS["where"](hit, g / OPS["sum"](hit, tuple(range(x.ndim)), False, None), 0)


MEDIAN_ALL = declare("median_all(Tensor x, bool ignore_nan=False) -> Tensor", Kind.OPAQUE, kernel=_median_all,
                     meta=lambda x, ignore_nan: TensorSpec((), x.dtype, (), x.device), vjp={"x": _median_all_vjp},
                     samples=lambda make: iter([(make(5), False), (make(3, 4).t(), True), (make(), False)]), accepts="if")  # fmt: skip


def _mode(xp: Any, out: Any, x: Any, dim: int, keepdim: bool) -> None:
    """The most frequent value, the smallest of several; its position is the last that holds it."""
    x = at_least_1d(x)
    ranked = xp.moveaxis(xp.sort(x, axis=dim), dim, -1)
    n = ranked.shape[-1]
    here = xp.arange(n)
    starts = xp.concatenate([xp.ones((*ranked.shape[:-1], 1), bool), ranked[..., 1:] != ranked[..., :-1]], -1)
    length = here - array_functions.accumulate(xp, "maximum", xp.where(starts, here, 0), -1)
    values = xp.take_along_axis(ranked, length.argmax(-1)[..., None], -1)
    same = xp.moveaxis(x, dim, -1) == values
    at = n - 1 - same[..., ::-1].argmax(-1)
    _store(xp, out, values, at)


MODE = declare("mode(Tensor x, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)", Kind.OPAQUE, kernel=_mode,
               meta=lambda x, dim, keepdim: _statistic_meta("mode", x, dim, keepdim), vjp={"x": _chosen},
               nondifferentiable_outputs=(1,),
               samples=lambda make: iter([(make.int(4, 7, high=3), 1, False), (make(3, 5), 0, True)]), accepts="bif",
               batch="along_dim")  # fmt: skip

# ---- unique values ----


def _unique(xp: Any, out: Any, x: Any, dim: int | None) -> tuple[Any, Any, Any]:
    """Sorted distinct elements (or slices along `dim`), the number of each element's value, and the counts."""
    if dim is None:
        values, inverse, counts = xp.unique(_ordered(x), return_inverse=True, return_counts=True, equal_nan=False)
        return values.astype(x.dtype, copy=False), inverse.reshape(x.shape).astype("i8"), counts.astype("i8")
    if x.shape[dim] == 0:
        return x.copy(), xp.zeros(0, "i8"), xp.zeros(0, "i8")
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1).astype("i8"), counts.astype("i8")


def _unique_sizes(fresh: Fresh, x: SpecLike, dim: int | None) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    n = fresh(math.prod(x.shape) if dim is None else x.shape[dim])
    kept = (n,) if dim is None else (*x.shape[:dim], n, *x.shape[dim + 1 :])
    inverse = tuple(x.shape) if dim is None else (x.shape[dim],)
    values = TensorSpec.contiguous(kept, x.dtype, x.device)
    return values, TensorSpec.contiguous(inverse, dtypes.int64, x.device), TensorSpec.contiguous((n,), dtypes.int64, x.device)


# Equal elements are found by sorting: (values, inverse, counts).
UNIQUE = declare("unique(Tensor x, int? dim=None) -> (Tensor, Tensor, Tensor)", Kind.OPAQUE, kernel=_unique,
                 dynamic_output=_unique_sizes, underived=True,
                 samples=lambda make: iter([(make.int(3, 4, high=5), None), (make.int(6, 2, high=2), 0),
                                            (make.int(0, high=2), None)]), accepts="bif")  # fmt: skip


def _unique_consecutive(xp: Any, out: Any, x: Any, dim: int | None) -> tuple[Any, Any, Any]:
    rows = x.reshape(-1, 1) if dim is None else xp.moveaxis(x, dim, 0).reshape(x.shape[dim], math.prod(x.shape) // max(x.shape[dim], 1))
    n = rows.shape[0]
    new = xp.concatenate([xp.ones(min(n, 1), bool), (rows[1:] != rows[:-1]).any(1)])
    starts = xp.flatnonzero(new)
    inverse = xp.cumsum(new) - 1
    counts = xp.diff(xp.concatenate([starts, xp.asarray([n])]))
    # as torch: slices in row-major order, whose dim is moved back
    values = x.reshape(-1)[starts] if dim is None else xp.moveaxis(xp.ascontiguousarray(xp.moveaxis(x, dim, 0)[starts]), 0, dim)
    return values, (inverse.reshape(x.shape) if dim is None else inverse).astype("i8"), counts.astype("i8")


UNIQUE_CONSECUTIVE = declare(
    "unique_consecutive(Tensor x, int? dim=None) -> (Tensor, Tensor, Tensor)", Kind.OPAQUE, kernel=_unique_consecutive,
    dynamic_output=_unique_sizes, underived=True,
    samples=lambda make: iter([(make.int(9, high=2), None), (make.int(6, 2, high=2), 0)]))  # fmt: skip

# ---- search and counting ----


def _searchsorted_meta(sequence: SpecLike, values: Any, right: bool, out_int32: bool) -> TensorSpec:
    number = not hasattr(values, "stride")
    shape = () if number else tuple(values.shape)
    if sequence.ndim != 1 and not number and tuple(sequence.shape[:-1]) != shape[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                           f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and "
                           f"input value tensor {list(shape)}")  # fmt: skip
    return TensorSpec.contiguous(shape, dtypes.int32 if out_int32 else dtypes.int64, sequence.device)


def _searchsorted(xp: Any, out: Any, sequence: Any, values: Any, right: bool, out_int32: bool) -> None:
    side = "right" if right else "left"
    sequence, values = widen(sequence), widen(values) if hasattr(values, "dtype") else values  # CuPy has no search in bfloat16
    if sequence.ndim == 1:
        xp.copyto(out, xp.searchsorted(sequence, values, side), casting="unsafe")
        return
    count = math.prod(sequence.shape[:-1])
    rows, wanted, found = sequence.reshape(count, sequence.shape[-1]), values.reshape(count, values.shape[-1]), []
    for row, value in zip(rows, wanted, strict=True):
        found.append(xp.searchsorted(row, value, side))
    xp.copyto(out, xp.stack(found).reshape(out.shape) if found else 0, casting="unsafe")


SEARCHSORTED = declare(
    "searchsorted(Tensor sequence, Tensor values, bool right=False, bool out_int32=False) -> Tensor", Kind.OPAQUE, numbers="values",
    meta=_searchsorted_meta, kernel=_searchsorted, nondifferentiable=True,
    samples=lambda make: iter([(make(6).sort().values, make(3, 4), False, False), (make.int(6, high=9).sort().values, 4, True, True),
                               (make(2, 5).sort().values, make(2, 3), True, False)]), accepts="bif", batch="searched")  # fmt: skip


def _bincount(xp: Any, out: Any, x: Any, weights: Any, minlength: int) -> Any:
    if x.ndim != 1 or x.dtype.kind not in "iub" or (x.size and int(x.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None:
        return xp.bincount(x, minlength=minlength).astype("i8")
    if xp is np:
        found = np.bincount(x, weights, minlength)
    else:
        found = xp.zeros(max(minlength, int(x.max()) + 1 if x.size else 0), "f8")
        array_functions.combine_at(xp, "add", found, x.astype("i8"), weights.astype("f8"))
    return found.astype("f4") if weights.dtype == np.float32 else found


def _bincount_sizes(fresh: Fresh, x: SpecLike, weights: Any, minlength: int) -> TensorSpec:
    single = weights is not None and weights.dtype is dtypes.float32
    of = dtypes.int64 if weights is None else dtypes.float32 if single else dtypes.float64
    return TensorSpec.contiguous((fresh(None),), of, x.device)


BINCOUNT = declare("bincount(Tensor x, Tensor? weights=None, int minlength=0) -> Tensor", Kind.OPAQUE, kernel=_bincount,
                   dynamic_output=_bincount_sizes, underived=True,
                   samples=lambda make: iter([(make.int(9, high=4), None, 0), (make.int(9, high=4), make(9), 6)]))  # fmt: skip


def _histc(xp: Any, out: Any, x: Any, bins: int, low: float, high: float) -> None:
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite")
    xp.copyto(out, xp.histogram(widen(x).reshape(-1), bins, (low, high))[0], casting="unsafe")


HISTC = declare("histc(Tensor x, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", Kind.OPAQUE, fallible=True, kernel=_histc,
                meta=lambda x, bins, min, max: TensorSpec.contiguous((bins,), x.dtype, x.device), nondifferentiable=True,
                samples=lambda make: iter([(make(30), 5, 0, 0), (make(3, 4), 4, -0.5, 0.5)]), accepts="f")  # fmt: skip


# A histogram made of several ops, as a result of its input: torch has no derivative of it either.
HISTOGRAM_OF = declare("histogram_of(Tensor hist, Tensor x) -> Tensor", Kind.OPAQUE, meta=lambda hist, x: row_major(hist),
                       kernel=lambda xp, out, hist, x: xp.copyto(out, hist), underived=True,
                       samples=lambda make: iter([(make(3), make(5)), (make(2, 3), make(4, 2))]))  # fmt: skip


def _argsort(xp: Any, out: Any, x: Any, dim: int, descending: bool, stable: bool) -> None:
    xp.copyto(at_least_1d(out), _order(xp, at_least_1d(x), dim, descending))


ARGSORT = declare("argsort(Tensor x, int dim=-1, bool descending=False, bool stable=False) -> Tensor", Kind.COMPOSITE,
                  meta=lambda x, dim, descending, stable: _sort_meta(x, dim, descending, stable)[1], kernel=_argsort,
                  decompose=lambda x, dim, descending, stable: OPS["sort"](x, dim, descending, stable)[1],
                  nondifferentiable=True, samples=_sort_samples, accepts="bif", batch="along_dim")  # fmt: skip
