"""Reductions along dims. Dims reach these ops normalised: sorted, non-negative, all of them listed."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import SpecLike, TensorSpec, contiguous_strides, preserve_strides
from eager.base.symint import times_ratio
from eager.optable import array_functions
from eager.optable.gradient_strides import laid_out
from eager.optable.precision import FLOAT32_ON_CUDA, FLOAT32_UNLESS_ASKED, Policy, Precision
from eager.optable.registry import Kind
from eager.optable.sums import moments, total, wide_type
from eager.optable.table import OPS, declare


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def _spec(x: SpecLike, dims: Sequence[int], keepdim: bool, d: Any) -> TensorSpec:
    shape = reduced_shape(x.shape, dims, keepdim)
    return TensorSpec(shape, d, contiguous_strides(shape), x.device)


def _with_dims(g: Any, spec: SpecLike, dims: Sequence[int], keepdim: bool) -> Any:
    """A result of a reduction of `spec`, or its cotangent, with the reduced dims as dims of size 1."""
    return g if keepdim else g.reshape(reduced_shape(spec.shape, dims, True))


def restore(g: Any, spec: SpecLike, dims: Sequence[int], keepdim: bool) -> Any:
    """A cotangent of a reduction of `spec`, spread over the reduced dims again: a view with stride 0 in them."""
    if not keepdim and len(dims) < spec.ndim:
        for d in dims:
            g = OPS["unsqueeze"](g, d)
    return OPS["expand"](g, tuple(spec.shape))


def _sum_dtype(x: SpecLike, dtype: Any) -> Any:
    return dtype or (dtypes.int64 if x.dtype.is_integral else x.dtype)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), (0,), False
    yield make(3, 4, 5), (0, 2), True
    yield make(5, 3).t(), (1,), False
    yield make(4), (0,), False
    yield make(), (), False


def _typed_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for s in _samples(make):
        yield (*s, None)
    yield make.int(3, 4, high=9), (1,), False, None
    yield make(0, 3), (0,), False, None


_NATIVE = {"sum": 0, "amax": 1, "amin": 2}


def _runs_natively(xp: Any, name: str, out: Any, x: Any, dims: Sequence[int], scale: float = 1.0) -> bool:
    """Reduce by the native kernel, if it can: row-major floats on the CPU, over the first or the last dims."""
    if xp is not np or name not in _NATIVE or x.dtype is not out.dtype or x.dtype.char not in "fd" or not dims:
        return False
    count = len(dims)
    columns = dims[-1] == count - 1 and dims[-1] != x.ndim - 1
    if not columns and dims[0] != x.ndim - count:
        return False
    return _native.reduce_array(out, x, _NATIVE[name], columns, scale)


def _sum_kernel(xp: Any, out: Any, x: Any, dims: Any, keepdim: bool, dtype: Any) -> None:
    if _runs_natively(xp, "sum", out, x, dims):
        return
    if out.dtype.kind in "fV":
        xp.copyto(out, total(xp, x.astype(wide_type(out.dtype), copy=False), dims, keepdim), casting="unsafe")
    else:
        xp.sum(x, axis=dims, dtype=out.dtype, keepdims=keepdim, out=out)


def _prod_kernel(xp: Any, out: Any, x: Any, dims: Any, keepdim: bool, dtype: Any) -> None:
    """Float32 and less run in float64: the roundings of a product add up in any order."""
    if out.dtype.kind in "fV" and out.dtype.itemsize < 8:
        wide = x if x.dtype.kind == "f" else x.astype("f4")
        xp.copyto(out, xp.prod(wide, axis=dims, dtype="f8", keepdims=keepdim), casting="unsafe")
    else:
        xp.prod(x, axis=dims, dtype=out.dtype, keepdims=keepdim, out=out)


def _plain(name: str) -> Any:
    def kernel(xp: Any, out: Any, x: Any, dims: Any, keepdim: bool) -> None:
        if not _runs_natively(xp, name, out, x, dims):
            if xp is np:
                getattr(np, name)(x, axis=dims, keepdims=keepdim, out=out)
            else:  # `cupy.amin` of 14.2 fails with `out=`
                xp.copyto(out, getattr(xp, name)(x, axis=dims, keepdims=keepdim))

    return kernel


SUM = declare("sum(Tensor x, int[] dims, bool keepdim=False, dtype? dtype=None) -> Tensor", Kind.REDUCTION, reduce="sum",
              meta=lambda x, dims, keepdim, dtype: _spec(x, dims, keepdim, _sum_dtype(x, dtype)),
              kernel=_sum_kernel, samples=_typed_samples,
              vjp={"x": lambda g, x_spec, dims, keepdim: restore(g, x_spec, dims, keepdim)}, precision=FLOAT32_UNLESS_ASKED,
              batch="over_dims", linear_in=("x",))  # fmt: skip


def _prod_vjp(g: Any, x: Any, y: Any, dims: Any, keepdim: bool) -> Any:
    """Product of the others: exclusive products from both ends, so that zeros are exact."""
    spec = x
    g = restore(g, spec, dims, keepdim)
    kept = [i for i in range(x.ndim) if i not in dims]
    order = (*kept, *dims)
    n = math.prod(x.shape[d] for d in dims)
    moved = OPS["permute"](x, order).reshape(*(x.shape[d] for d in kept), n)
    ones = OPS["full"]((*moved.shape[:-1], 1), 1, x.dtype, x.device)
    left = OPS["cumprod"](OPS["cat"]([ones, moved], moved.ndim - 1), moved.ndim - 1)
    flipped = OPS["flip"](moved, (moved.ndim - 1,))
    right = OPS["cumprod"](OPS["cat"]([ones, flipped], moved.ndim - 1), moved.ndim - 1)
    left = OPS["slice"](left, left.ndim - 1, 0, n, 1)
    right = OPS["flip"](OPS["slice"](right, right.ndim - 1, 0, n, 1), (right.ndim - 1,))
    others = (left * right).reshape(tuple(x.shape[d] for d in order))
    inverse = [0] * len(order)
    for i, d in enumerate(order):
        inverse[d] = i
    return g * laid_out(OPS["permute"](others, tuple(inverse)), preserve_strides(x))


PROD = declare("prod(Tensor x, int[] dims, bool keepdim=False, dtype? dtype=None) -> Tensor", Kind.REDUCTION, reduce="prod",
               meta=lambda x, dims, keepdim, dtype: _spec(x, dims, keepdim, _sum_dtype(x, dtype)),
               kernel=_prod_kernel, samples=_typed_samples, in_opmath=True, vjp={"x": _prod_vjp},
               precision=Precision(cuda=Policy.FLOAT32_UNLESS_ASKED, cpu=Policy.FLOAT32), batch="over_dims")  # fmt: skip


def _extreme_meta(x: SpecLike, dims: Sequence[int], keepdim: bool) -> TensorSpec:
    if x.numel() == 0 and len(dims) == x.ndim:
        raise RuntimeError("amax(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                           "'dim' argument.")  # fmt: skip
    for d in dims:
        if x.shape[d] == 0:
            raise IndexError(f"amax(): Expected reduction dim {d} to have non-zero size.")
    return _spec(x, dims, keepdim, x.dtype)


def _extreme_vjp(g: Any, x: Any, y: Any, dims: Any, keepdim: bool) -> Any:
    """Shared evenly among the elements that reach the extreme."""
    hit = _with_dims(y, x, dims, keepdim) == x
    if x.dtype.is_floating_point:
        hit = hit | (x != x)  # the first nan is the result, if there is a nan
    return _with_dims(g, x, dims, keepdim) / OPS["sum"](hit, dims, True, None) * hit


AMAX = declare("amax(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, reduce="amax",
               meta=_extreme_meta, kernel=_plain("amax"), vjp={"x": _extreme_vjp}, samples=_samples, accepts="bif",
               batch="over_dims")  # fmt: skip
AMIN = declare("amin(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, reduce="amin",
               meta=_extreme_meta, kernel=_plain("amin"), vjp={"x": _extreme_vjp}, samples=_samples, accepts="bif",
               batch="over_dims")  # fmt: skip


def _bool_meta(x: SpecLike, dims: Sequence[int], keepdim: bool) -> TensorSpec:
    return _spec(x, dims, keepdim, dtypes.bool_)


def _bool_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.bool(3, 5), (0,), False
    yield make.int(3, 5, high=2), (0, 1), True
    yield make.bool(0, 5), (0,), False


ANY = declare("any(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, float8=True, reduce="any",
              meta=_bool_meta, kernel=_plain("any"), nondifferentiable=True, samples=_bool_samples, batch="over_dims")  # fmt: skip
ALL = declare("all(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, float8=True, reduce="all",
              meta=_bool_meta, kernel=_plain("all"), nondifferentiable=True, samples=_bool_samples, batch="over_dims")  # fmt: skip


def _arg_meta(x: SpecLike, dims: Sequence[int], keepdim: bool) -> TensorSpec:
    for d in dims:
        if x.shape[d] == 0:
            raise IndexError(f"argmax(): Expected reduction dim {d} to have non-zero size.")
    return _spec(x, dims, keepdim, dtypes.int64)


def _arg(name: str) -> Any:
    def kernel(xp: Any, out: Any, x: Any, dims: Any, keepdim: bool) -> None:
        if len(dims) == 1:
            found = getattr(xp, name)(x, axis=dims[0])
        else:  # over all dims: an index into the flattened tensor
            found = getattr(xp, name)(x.reshape(-1)) if x.ndim else xp.zeros((), "i8")
        xp.copyto(out, xp.reshape(found, out.shape))

    return kernel


def _arg_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), (0,), False
    yield make(3, 5), (1,), True
    yield make(4, 3).t(), (0, 1), False
    yield make(), (), False


# dims is one dim, or all of them (then the index is into the flattened tensor); ties go to the first.
ARGMAX = declare("argmax(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, reduce="argmax",
                 meta=_arg_meta, kernel=_arg("argmax"), nondifferentiable=True, samples=_arg_samples, accepts="bif",
                 batch="arg_reduction")  # fmt: skip
ARGMIN = declare("argmin(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.REDUCTION, reduce="argmin",
                 meta=_arg_meta, kernel=_arg("argmin"), nondifferentiable=True, samples=_arg_samples, accepts="bif",
                 batch="arg_reduction")  # fmt: skip


# ---- composites ----


def _count(x: SpecLike, dims: Sequence[int]) -> int:
    return math.prod(x.shape[d] for d in dims)


def _mean_meta(x: SpecLike, dims: Sequence[int], keepdim: bool, dtype: Any) -> TensorSpec:
    d = dtype or x.dtype
    if d.is_integral:
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
                           f"dtype. Got: {scalar_name(d)}")  # fmt: skip
    return _spec(x, dims, keepdim, d)


def _mean_kernel(xp: Any, out: Any, x: Any, dims: Any, keepdim: bool, dtype: Any) -> None:
    n = _count(x, dims)
    if n and _runs_natively(xp, "sum", out, x, dims, 1.0 / n):
        return
    if not n:
        out.fill(math.nan)
    elif out.dtype.kind == "c":
        xp.copyto(out, xp.sum(x, axis=dims, dtype=out.dtype, keepdims=keepdim) / n)
    else:
        xp.copyto(out, total(xp, x.astype(wide_type(out.dtype), copy=False), dims, keepdim, mean=True), casting="unsafe")


def _mean_vjp(g: Any, x_spec: SpecLike, dims: Sequence[int], keepdim: bool) -> Any:
    """torch divides the spread gradient, which makes it dense. The small one is divided here, then spread and copied."""
    count = max(_count(x_spec, dims), 1)
    if len(dims) == x_spec.ndim or g.is_contiguous():
        return OPS["clone"](restore(g / count, x_spec, dims, keepdim), "contiguous")
    return restore(g, x_spec, dims, keepdim) / count


MEAN = declare("mean(Tensor x, int[] dims, bool keepdim=False, dtype? dtype=None) -> Tensor", Kind.REDUCTION, reduce="mean",
               meta=_mean_meta, kernel=_mean_kernel, samples=lambda make: ((*s, None) for s in _samples(make)),
               doc="Arithmetic mean over `dims`; of no elements it is nan. Integer tensors need a floating dtype.",
               vjp={"x": _mean_vjp}, batch="over_dims", linear_in=("x",))  # fmt: skip


def _whole(correction: float) -> float:
    """As an int where it is one, so that a symbolic count less it stays symbolic."""
    return int(correction) if correction == int(correction) else correction


def _var(x: Any, dims: Sequence[int], correction: float, keepdim: bool) -> Any:
    """Variance over `dims` by two passes: squared deviations from the mean over (count - correction), at least 0.

    The variance of complex numbers is real: the sum of the variances of the real and imaginary parts.
    """
    if x.dtype.is_complex:
        parts = [OPS["var"](OPS[part](x), dims, correction, keepdim) for part in ("real", "imag")]
        return parts[0] + parts[1]
    d = x - OPS["mean"](x, dims, True, None)
    if not correction:
        return OPS["mean"](d * d, dims, keepdim, None)
    total = OPS["sum"](d * d, dims, keepdim, None)
    n = max(_count(x, dims) - _whole(correction), 0)
    return total / n if n else total * math.inf  # inf, and nan where all are equal, as a division by zero has it


def _var_vjp(g: Any, x: Any, dims: Sequence[int], correction: float, keepdim: bool) -> Any:
    n = max(_count(x, dims) - _whole(correction), 0)
    scaled = times_ratio(g, 2.0, n) if n else g * math.nan
    return restore(scaled, x, dims, keepdim) * (x - OPS["mean"](x, dims, True, None))


def _variance(xp: Any, x: Any, dims: Any, correction: float, keepdim: bool) -> Any:
    """The variance of an array, in float32 at least."""
    count = math.prod(x.shape[i] for i in dims)
    n = max(count - correction, 0)
    var = moments(xp, x, dims)[1] if x.size else xp.full(reduced_shape(x.shape, dims, True), math.nan)
    var = var * (count / n if n else math.inf)
    return var if keepdim else var.reshape(reduced_shape(x.shape, dims, False))


def _var_kernel(xp: Any, out: Any, *args: Any) -> None:
    xp.copyto(out, _variance(xp, *args), casting="unsafe")


def _std_kernel(xp: Any, out: Any, *args: Any) -> None:
    xp.copyto(out, xp.sqrt(_variance(xp, *args)), casting="unsafe")


def _std(x: Any, dims: Sequence[int], correction: float, keepdim: bool) -> Any:
    """The square root of the variance over `dims`."""
    return OPS["sqrt"](OPS["var"](x, dims, correction, keepdim))


def _var_meta(x: SpecLike, dims: Sequence[int], correction: float, keepdim: bool) -> TensorSpec:
    if x.dtype.is_integral:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    return _spec(x, dims, keepdim, x.dtype.to_real())


VAR = declare("var(Tensor x, int[] dims, float correction=1.0, bool keepdim=False) -> Tensor", Kind.COMPOSITE,
              decompose=_var, in_opmath=True, meta=_var_meta,
              kernel=_var_kernel, vjp={"x": _var_vjp},
              samples=lambda make: iter([(make(3, 5), (1,), 1.0, False), (make(3, 4, 5), (0, 2), 0.0, True)]),
              batch="over_dims")  # fmt: skip


def _std_vjp(g: Any, x: Any, y: Any, dims: Sequence[int], correction: float, keepdim: bool) -> Any:
    """That of the variance over twice the deviation; zero where all elements are equal."""
    zero = OPS["eq"](y, 0)
    slope = OPS["where"](zero, 0.0, g / (OPS["where"](zero, 1.0, y) * 2))
    return _var_vjp(slope, x, dims, correction, keepdim)


STD = declare("std(Tensor x, int[] dims, float correction=1.0, bool keepdim=False) -> Tensor", Kind.COMPOSITE, meta=_var_meta,
              decompose=_std, in_opmath=True, kernel=_std_kernel, vjp={"x": _std_vjp},
              samples=lambda make: iter([(make(3, 5), (1,), 1.0, False), (make(3, 4, 5), (0, 2), 0.0, True)]))  # fmt: skip


def _logsumexp(x: Any, dims: Sequence[int], keepdim: bool) -> Any:
    """log(sum(exp(x))) over `dims`, shifted by the maximum so that nothing overflows; -inf of no elements."""
    if any(x.shape[d] == 0 for d in dims):
        return OPS["log"](OPS["sum"](OPS["exp"](x), dims, keepdim, None))
    m = OPS["amax"](OPS["real"](x) if x.dtype.is_complex else x, dims, True)
    m = OPS["where"](OPS["isinf"](m), 0.0, m)
    s = OPS["log"](OPS["sum"](OPS["exp"](x - m), dims, True, None)) + m
    return s if keepdim else OPS["view"](s, reduced_shape(x.shape, dims, False))


LOGSUMEXP = declare("logsumexp(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.COMPOSITE, decompose=_logsumexp, in_opmath=True,
                    vjp={"x": lambda g, x, y, dims, keepdim: restore(g, x, dims, keepdim)
                         * OPS["exp"](x - restore(y, x, dims, keepdim))}, samples=_samples,
                         precision=FLOAT32_ON_CUDA, batch="over_dims")  # fmt: skip


# ---- a hash of elements ----


def _hash_meta(x: SpecLike, dims: Sequence[int], keepdim: bool) -> TensorSpec:
    if x.dtype.is_complex:
        raise dtypes.no_kernel("xor_sum_cpu", x.dtype)
    return TensorSpec.contiguous(reduced_shape(x.shape, dims, keepdim), dtypes.uint64, x.device)


def _hash(xp: Any, out: Any, x: Any, dims: Sequence[int], keepdim: bool) -> None:
    wide = x.astype(np.int64 if x.dtype.kind in "biu" else np.float64).view(np.uint64)
    xp.copyto(out, array_functions.reduce_xor(xp, wide, tuple(dims), keepdim))


# The exclusive or of the bits of elements, widened to 64.
HASH = declare("hash_tensor(Tensor x, int[] dims, bool keepdim=False) -> Tensor", Kind.OPAQUE, meta=_hash_meta, kernel=_hash,
               nondifferentiable=True, samples=lambda make: iter([(make(3, 4), (0,), False), (make(4, 3).t(), (0, 1), True)]))  # fmt: skip
