"""Scans: running sums, products, extremes and log-sums along one dim. Dims reach these ops non-negative."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec, normalize_dim
from eager.optable import array_functions
from eager.optable.declaration import cast_to, zeros
from eager.optable.index_kernels import at_least_1d
from eager.optable.precision import FLOAT32_UNLESS_ASKED
from eager.optable.registry import Kind
from eager.optable.shape import row_major
from eager.optable.table import OPS, declare


def _typed_meta(x: SpecLike, dim: int, dtype: Any) -> TensorSpec:
    normalize_dim(dim, x.ndim)
    d = dtype or (dtypes.int64 if x.dtype.is_integral else x.dtype)
    return TensorSpec.contiguous(tuple(x.shape), d, x.device)


def _same_meta(x: SpecLike, dim: int) -> TensorSpec:
    normalize_dim(dim, x.ndim)
    return row_major(x)


def _accumulator(d: Any) -> Any:
    """Long running sums of single precision are kept in double precision, and running sums of half precision in single."""
    if d.kind in "fV":
        return np.dtype(np.float64) if d.itemsize == 4 else np.dtype(np.float32) if d.itemsize == 2 else d
    return d


def _running(name: str) -> Any:
    def kernel(xp: Any, out: Any, x: Any, dim: int, dtype: Any) -> None:
        x, out = at_least_1d(x), at_least_1d(out)
        wide = _accumulator(out.dtype)
        if wide == out.dtype:
            getattr(xp, name)(x.astype(wide, copy=False), axis=dim, out=out)
        else:
            xp.copyto(out, getattr(xp, name)(x.astype(wide), axis=dim), casting="unsafe")

    return kernel


def reverse_cumsum(g: Any, dim: int) -> Any:
    """Sum of each element and all after it along `dim`."""
    return OPS["flip"](OPS["cumsum"](OPS["flip"](g, (dim,)), dim, None), (dim,)) if g.ndim else g


def _cumsum_vjp(g: Any, x_spec: SpecLike, dim: int) -> Any:
    return cast_to(reverse_cumsum(g, dim), x_spec.dtype)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4, low=0.3, high=1.8), 0
    yield make(4, 3, low=0.3, high=1.8).t(), 1
    yield make(2, 3, 4, low=0.3, high=1.8), 1
    yield make(0, 3), 0
    yield make(low=0.3, high=1.8), 0


def _typed_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for s in _samples(make):
        yield (*s, None)
    yield make.int(3, 4, high=5), 1, None
    yield make.bool(6), 0, None


CUMSUM = declare("cumsum(Tensor x, int dim, dtype? dtype=None) -> Tensor", Kind.OPAQUE, meta=_typed_meta, kernel=_running("cumsum"),
                 vjp={"x": _cumsum_vjp}, inplace=True, samples=_typed_samples, precision=FLOAT32_UNLESS_ASKED,
                 batch="along_dim", linear_in=("x",))  # fmt: skip


def _cumprod_vjp(g: Any, x: Any, y: Any, dim: int) -> Any:
    """Exact where a factor is zero: from the first zero on, products are taken without it.

    Before the first zero the gradient is (reverse sum of g*y) / x; at it, the reverse sum of g times
    the products that leave it out; behind it, zero.
    """
    if x.ndim == 0:
        return g
    x = cast_to(x, g.dtype)
    zero = x == 0
    seen = OPS["cumsum"](zero, dim, None)
    first = zero & (seen == 1)
    without = OPS["cumprod"](OPS["masked_fill"](x, first, 1), dim, None)
    before = reverse_cumsum(g * y, dim) / OPS["masked_fill"](x, zero, 1)
    return OPS["where"](seen == 0, before, OPS["where"](first, reverse_cumsum(g * without, dim), 0))


CUMPROD = declare("cumprod(Tensor x, int dim, dtype? dtype=None) -> Tensor", Kind.OPAQUE, meta=_typed_meta,
                  kernel=_running("cumprod"), in_opmath=True, vjp={"x": _cumprod_vjp}, inplace=True, samples=_typed_samples,
                  precision=FLOAT32_UNLESS_ASKED, batch="along_dim")  # fmt: skip


def _extreme_meta(x: SpecLike, dim: int) -> tuple[TensorSpec, TensorSpec]:
    normalize_dim(dim, x.ndim)
    return row_major(x), TensorSpec.contiguous(tuple(x.shape), dtypes.int64, x.device)


def _running_extreme(name: str, reaches: str) -> Any:
    def kernel(xp: Any, out: Any, x: Any, dim: int) -> None:
        x, values, at = at_least_1d(x), at_least_1d(out[0]), at_least_1d(out[1])
        if not x.size:
            return
        found = array_functions.accumulate(xp, name, x, dim)
        xp.copyto(values, found)
        shape = [-1 if i == dim else 1 for i in range(x.ndim)]
        here = xp.arange(x.shape[dim]).reshape(shape)
        # the last position that reaches the extreme so far; a NaN reaches every later extreme
        hit = getattr(xp, reaches)(x, found) | (x != x)
        xp.copyto(at, array_functions.accumulate(xp, "maximum", xp.where(hit, here, 0), dim))

    return kernel


def _extreme_vjp(gs: Any, y1: Any, x_spec: SpecLike, dim: int) -> Any:
    return OPS["scatter_add"](zeros(x_spec), dim, y1, gs[0])


for _name, _ufunc, _reaches in (("cummax", "maximum", "greater_equal"), ("cummin", "minimum", "less_equal")):
    declare(f"{_name}(Tensor x, int dim) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_extreme_meta,
            kernel=_running_extreme(_ufunc, _reaches), vjp={"x": _extreme_vjp}, nondifferentiable_outputs=(1,),
            samples=_samples, accepts="bif", batch="along_dim")  # fmt: skip


def _logcumsumexp(xp: Any, out: Any, x: Any, dim: int) -> None:
    x, out = at_least_1d(x), at_least_1d(out)
    if not x.size:
        return
    if x.dtype.kind == "c":  # no accumulating ufunc: shifted by the greatest real part along dim
        top = xp.max(x.real, axis=dim, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)
        xp.copyto(out, xp.log(xp.cumsum(xp.exp(x - top), axis=dim)) + top, casting="unsafe")
        return
    xp.copyto(out, array_functions.accumulate(xp, "logaddexp", x.astype(_accumulator(x.dtype), copy=False), dim), casting="unsafe")


def _logcumsumexp_vjp(g: Any, x: Any, y: Any, dim: int) -> Any:
    """Sums of g*exp(x - y) over later positions, kept in logarithms apart by the sign of g."""
    if x.ndim == 0:
        return g

    nothing = -1e4 if x.dtype is dtypes.float16 else -1e30  # stands for log(0), which has no slope

    def reverse(part: Any) -> Any:
        some = part > 0
        logs = OPS["where"](some, OPS["log"](OPS["masked_fill"](part, OPS["logical_not"](some), 1)) - y, nothing)
        return OPS["exp"](OPS["flip"](OPS["logcumsumexp"](OPS["flip"](logs, (dim,)), dim), (dim,)) + x)

    return reverse(OPS["clamp"](g, 0, None)) - reverse(OPS["clamp"](-g, 0, None))


LOGCUMSUMEXP = declare("logcumsumexp(Tensor x, int dim) -> Tensor", Kind.OPAQUE, meta=_same_meta, kernel=_logcumsumexp,
                       in_opmath=True, vjp={"x": _logcumsumexp_vjp}, samples=_samples, accepts="fc", batch="along_dim")  # fmt: skip
