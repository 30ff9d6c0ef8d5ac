"""Normalised exponentials and normalisation layers: composites with separate kernels and gradients.

Each has a decomposition to primitives, which the compiler sees, and one fused numpy kernel, which an eager call runs. The gradient
formulas call the `*_backward` ops; these have no formula themselves, so a second derivative goes through their decomposition.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    common_device,
    contiguous_strides,
    elementwise_strides,
    in_format,
    is_contiguous,
    normalize_dim,
    suggested_format,
    suggested_strides,
)
from eager.optable.declaration import cast_to
from eager.optable.gradient_strides import in_channels_last
from eager.optable.precision import FLOAT32_ON_CUDA, FLOAT32_UNLESS_ASKED
from eager.optable.registry import Kind
from eager.optable.sums import moments, total, widen
from eager.optable.table import OPS, declare


def is_wide(a: Any) -> bool:
    return not (a.dtype.itemsize == 2 and a.dtype.kind in "fV")


def accumulator(d: dtypes.dtype) -> dtypes.dtype:
    """The dtype in which statistics of a tensor of dtype `d` are kept."""
    return dtypes.float32 if d.itemsize == 2 else d


def require_floating(who: str, d: dtypes.dtype) -> None:
    if not d.is_floating_point:
        raise NotImplementedError(f'"{who}" not implemented for \'{scalar_name(d)}\'; allowed: floating-point tensors')


# ---- softmax ----


def _softmax_meta(x: SpecLike, dim: int) -> TensorSpec:
    normalize_dim(dim, x.ndim)
    require_floating("softmax", x.dtype)
    return TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device)


def _softmax(x: Any, dim: int) -> Any:
    """Normalised exponentials along `dim`, finite up to the dtype's maximum.

    x: (*, n, *), floating. Result: shape and dtype of x; each slice along `dim` sums to 1.
    Raises: IndexError if dim is outside [-x.ndim, x.ndim).
    """
    if x.ndim == 0:
        return OPS["exp"](x - x)
    dims = (normalize_dim(dim, x.ndim),)
    if x.shape[dims[0]] == 0:  # which has no greatest element
        return OPS["exp"](x)
    wide = cast_to(x, accumulator(x.dtype))
    e = OPS["exp"](wide - OPS["amax"](wide, dims, True))
    # One division per row: dividing each element would cost as much as the exponential.
    return cast_to(e * OPS["reciprocal"](OPS["sum"](e, dims, True, None)), x.dtype)


def _along_rows(xp: Any, x: Any, dim: int) -> bool:
    """Whether the native kernels apply: they work on the CPU, along the last dim, in float32 and float64."""
    return xp is np and dim in (-1, x.ndim - 1) and x.dtype.char in "fd"


def _softmax_kernel(xp: Any, out: Any, x: Any, dim: int) -> None:
    if x.size == 0:
        return
    if x.ndim == 0:
        xp.copyto(out, xp.exp(x - x))
        return
    if _along_rows(xp, x, dim) and _native.softmax(out, x, False):
        return
    y = out if is_wide(out) else xp.empty(out.shape, "f4")
    wide = widen(x)
    xp.subtract(wide, wide.max(axis=dim, keepdims=True), out=y)
    xp.exp(y, out=y)
    y /= total(xp, y, dim)
    if y is not out:
        xp.copyto(out, y, casting="unsafe")


def _dim_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), 1
    yield make(3, 5), 0
    yield make(0, 4), 1
    yield make(2, 3, 7).transpose(0, 2), -1
    yield make(4, 1), 1


def _pair_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), make(3, 5), 1
    yield make(3, 5), make(3, 5), 0
    yield make(2, 3, 4), make(4, 3, 2).transpose(0, 2), -2


def _softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """Cotangent of softmax's input: y * (g - sum(g * y))."""
    if y.ndim == 0:
        return g * 0
    wide = accumulator(y.dtype)
    g, w = cast_to(g, wide), cast_to(y, wide)
    return cast_to(w * (g - OPS["sum"](g * w, (normalize_dim(dim, y.ndim),), True, None)), y.dtype)


def _like_second(g: SpecLike, y: SpecLike, dim: int) -> TensorSpec:
    return TensorSpec.contiguous(tuple(y.shape), y.dtype, y.device)


def _softmax_backward_kernel(xp: Any, out: Any, g: Any, y: Any, dim: int) -> None:
    if y.ndim == 0:
        out.fill(0)
        return
    if _along_rows(xp, y, dim) and _native.softmax_backward(out, g, y, False):
        return
    t = out if is_wide(out) else xp.empty(out.shape, "f4")
    g, y = widen(g), widen(y)
    xp.multiply(g, y, out=t)
    xp.subtract(g, total(xp, t, dim), out=t)
    t *= y
    if t is not out:
        xp.copyto(out, t, casting="unsafe")


SOFTMAX_BACKWARD = declare("softmax_backward(Tensor g, Tensor y, int dim) -> Tensor", Kind.COMPOSITE, meta=_like_second,
                           decompose=_softmax_backward, kernel=_softmax_backward_kernel, samples=_pair_samples,
                           batch="along_dim")  # fmt: skip


def _softmax_vjp(g: Any, y: Any, dim: int) -> Any:
    """A half-precision y does not add up to one as it is rounded; scaled so that it does, its errors cancel."""
    if y.dtype.itemsize == 2 and y.ndim:
        wide = cast_to(y, accumulator(y.dtype))
        g, y = cast_to(g, wide.dtype), wide / OPS["sum"](wide, (normalize_dim(dim, y.ndim),), True, None)
    return OPS["softmax_backward"](g, y, dim)


SOFTMAX = declare("softmax(Tensor x, int dim) -> Tensor", Kind.COMPOSITE, meta=_softmax_meta, decompose=_softmax,
                  kernel=_softmax_kernel, samples=_dim_samples, vjp={"x": _softmax_vjp}, in_opmath=False,
                  precision=FLOAT32_UNLESS_ASKED, batch="along_dim")  # fmt: skip


def _log_softmax(x: Any, dim: int) -> Any:
    """Logarithm of softmax along `dim`, without the underflow. Shapes and errors as softmax."""
    if x.ndim == 0:
        return x - x
    dims = (normalize_dim(dim, x.ndim),)
    if x.shape[dims[0]] == 0:
        return OPS["exp"](x)
    wide = cast_to(x, accumulator(x.dtype))
    shifted = wide - OPS["amax"](wide, dims, True)
    return cast_to(shifted - OPS["log"](OPS["sum"](OPS["exp"](shifted), dims, True, None)), x.dtype)


def _log_softmax_kernel(xp: Any, out: Any, x: Any, dim: int) -> None:
    if x.size == 0:
        return
    if x.ndim == 0:
        xp.copyto(out, x - x)
        return
    if _along_rows(xp, x, dim) and _native.softmax(out, x, True):
        return
    y = out if is_wide(out) else xp.empty(out.shape, "f4")
    wide = widen(x)
    xp.subtract(wide, wide.max(axis=dim, keepdims=True), out=y)
    y -= xp.log(total(xp, xp.exp(y), dim))
    if y is not out:
        xp.copyto(out, y, casting="unsafe")


def _log_softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """Cotangent of log_softmax's input: g - exp(y) * sum(g)."""
    if y.ndim == 0:
        return g * 0
    wide = accumulator(y.dtype)
    g, w = cast_to(g, wide), cast_to(y, wide)
    return cast_to(g - OPS["exp"](w) * OPS["sum"](g, (normalize_dim(dim, y.ndim),), True, None), y.dtype)


def _log_softmax_backward_kernel(xp: Any, out: Any, g: Any, y: Any, dim: int) -> None:
    if y.ndim == 0:
        out.fill(0)
        return
    if _along_rows(xp, y, dim) and _native.softmax_backward(out, g, y, True):
        return
    t = out if is_wide(out) else xp.empty(out.shape, "f4")
    g = widen(g)
    xp.exp(widen(y), out=t)
    t *= -total(xp, g, dim)
    t += g
    if t is not out:
        xp.copyto(out, t, casting="unsafe")


LOG_SOFTMAX_BACKWARD = declare("log_softmax_backward(Tensor g, Tensor y, int dim) -> Tensor", Kind.COMPOSITE,
                               meta=_like_second, decompose=_log_softmax_backward, kernel=_log_softmax_backward_kernel,
                               samples=_pair_samples, batch="along_dim")  # fmt: skip
LOG_SOFTMAX = declare("log_softmax(Tensor x, int dim) -> Tensor", Kind.COMPOSITE, meta=_softmax_meta, decompose=_log_softmax,
                      kernel=_log_softmax_kernel, samples=_dim_samples,
                      vjp={"x": lambda g, y, dim: OPS["log_softmax_backward"](g, y, dim)}, precision=FLOAT32_UNLESS_ASKED,
                      batch="along_dim")  # fmt: skip


# ---- layer norm ----


def check_parameter_dtypes(d: dtypes.dtype, *parameters: Any) -> None:
    """Raise RuntimeError unless the parameters of a norm have the dtype `d` of its input; beside halves they may be float32."""
    for t in parameters:
        if t is None or t.dtype is d or (d.itemsize == 2 and t.dtype is dtypes.float32):
            continue
        if d is dtypes.float64:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def _check_normalized(who: str, x: SpecLike, shape: Sequence[int], weight: Any, bias: Any) -> None:
    shape = list(shape)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
                           f"but got normalized_shape = {shape}")  # fmt: skip
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and list(t.shape) != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(t.shape)} and normalized_shape = {shape}")  # fmt: skip
    if list(x.shape[-len(shape) :]) != shape or x.ndim < len(shape):
        wanted = ", ".join(str(n) for n in shape)
        raise RuntimeError(f"Given normalized_shape={shape}, expected input with shape [*, {wanted}], but got input of size"
                           f"{list(x.shape)}")  # fmt: skip
    if not (who == "rms_norm" and x.dtype.is_complex):
        require_floating(who, x.dtype)
    common_device(who, [t for t in (x, weight, bias) if t is not None])


def _last(ndim: int, count: int) -> tuple[int, ...]:
    return tuple(range(ndim - count, ndim))


def _stat_shape(x: SpecLike, count: int) -> tuple[int, ...]:
    return tuple(x.shape[: x.ndim - count]) + (1,) * count


def _layer_norm_meta(x: SpecLike, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    _check_normalized("layer_norm", x, normalized_shape, weight, bias)
    check_parameter_dtypes(x.dtype, weight, bias)
    stat = TensorSpec.contiguous(_stat_shape(x, len(normalized_shape)), accumulator(x.dtype), x.device)
    return TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device), stat, stat


def _moments(x: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """Mean and reciprocal standard deviation over `dims`, kept."""
    mean = OPS["mean"](x, dims, True, None)
    return mean, OPS["rsqrt"](OPS["var"](x, dims, 0.0, True) + eps)


def _batch_moments(x: Any, eps: float) -> tuple[Any, Any]:
    """Mean and 1/std of each channel. With eps = 0 a constant channel has 1/std 0, as in torch: its result is 0, not nan."""
    mean, rstd = _moments(x, _batch_dims(x), eps)
    return mean, rstd if eps else OPS["where"](OPS["isinf"](rstd), 0, rstd)


def _layer_norm(x: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """Zero mean and unit variance over the trailing dims, then weight and bias. Also returns mean and 1/std.

    x: (*, *normalized_shape); weight, bias: normalized_shape or None.
    """
    wide = cast_to(x, accumulator(x.dtype))
    mean, rstd = _moments(wide, _last(x.ndim, len(normalized_shape)), eps)
    y = (wide - mean) * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return cast_to(y, x.dtype), mean, rstd


def _rows(a: Any, count: int) -> Any:
    """The trailing `count` dims folded into one, the leading ones into another."""
    width = math.prod(a.shape[a.ndim - count :])
    return a.reshape(-1, width) if width else a.reshape(math.prod(a.shape[: a.ndim - count]), 0)


def _layer_norm_kernel(xp: Any, out: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> None:
    y, mean, rstd = out
    if x.size == 0:
        mean.fill(math.nan), rstd.fill(math.nan)
        return
    if xp is np and y.dtype.char in "fd" and _native.layer_norm(y, mean, rstd, x, weight, bias, eps):
        return
    count = len(normalized_shape)
    rows = _rows(widen(x), count)
    t = y.reshape(rows.shape) if is_wide(y) else xp.empty(rows.shape, "f4")
    m, var = moments(xp, rows, (1,))
    r = 1.0 / xp.sqrt(var + eps)
    xp.copyto(mean, m.reshape(mean.shape)), xp.copyto(rstd, r.reshape(rstd.shape))
    xp.subtract(rows, m, out=t)
    t *= r
    if weight is not None:
        t *= weight.reshape(-1)
    if bias is not None:
        t += bias.reshape(-1)
    if not is_wide(y):
        xp.copyto(y, t.reshape(y.shape), casting="unsafe")


def _layer_norm_vjp(gs: Any, x: Any, normalized_shape: Any, weight: Any, y1: Any, y2: Any, eps: float, needs: Any) -> Any:
    g = gs[0]
    count = len(normalized_shape)
    if _native.grad_enabled():  # a second derivative goes through the statistics too
        mean, rstd = _moments(cast_to(x, accumulator(x.dtype)), _last(x.ndim, count), eps)
    else:
        mean, rstd = y1, y2
        if not g.is_fake and not g._is_contiguous():  # once for all three
            g = OPS["clone"](g, "contiguous")
    gx = OPS["layer_norm_backward"](g, x, mean, rstd, weight, count) if needs[0] else None
    gw = gb = None
    lead = tuple(range(x.ndim - count))
    if needs[1]:
        gw = OPS["layer_norm_backward_weight"](g, x, mean, rstd, count)
    if needs[2]:
        gb = OPS["sum"](g, lead, False, None) if lead else g
    return gx, gw, gb


def _norm_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 5), (5,), make(5), make(5), 1e-5
    yield make(2, 3, 4), (3, 4), None, None, 1e-3
    yield make(4, 6).t(), (4,), make(4), None, 1e-5
    yield make(5), (5,), make(5), make(5), 1e-5


def _layer_norm_backward(g: Any, x: Any, mean: Any, rstd: Any, weight: Any, count: int) -> Any:
    """Cotangent of layer_norm's input over the trailing `count` dims."""
    dims = _last(x.ndim, count)
    wide = accumulator(x.dtype)
    g, w = cast_to(g, wide), cast_to(x, wide)
    if weight is not None:
        g = g * weight
    xhat = (w - mean) * rstd
    inner = g - OPS["mean"](g, dims, True, None) - xhat * OPS["mean"](g * xhat, dims, True, None)
    return cast_to(rstd * inner, x.dtype)


def _layer_norm_backward_kernel(xp: Any, out: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, count: int) -> None:
    if x.size == 0:
        return
    if xp is np and out.dtype.char in "fd" and _native.layer_norm_backward(out, g, x, mean, rstd, weight):
        return
    rows, g = _rows(widen(x), count), _rows(widen(g), count)
    m, r = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    t = out.reshape(rows.shape) if is_wide(out) else xp.empty(rows.shape, "f4")
    if weight is not None:
        g = g * widen(weight).reshape(-1)
    xp.subtract(rows, m, out=t)
    t *= r
    t *= -total(xp, g * t, 1, mean=True)
    t += g
    t -= total(xp, g, 1, mean=True)
    t *= r
    if not is_wide(out):
        xp.copyto(out, t.reshape(out.shape), casting="unsafe")


def _stats_of(make: Any, x: Any, count: int) -> tuple[Any, Any]:
    return _moments(x.detach(), _last(x.ndim, count), 1e-5)


def _backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    x = make(3, 5)
    yield make(3, 5), x, *_stats_of(make, x, 1), make(5), 1
    x = make(2, 3, 4)
    yield make(2, 3, 4), x, *_stats_of(make, x, 2), None, 2


LAYER_NORM_BACKWARD = declare(
    "layer_norm_backward(Tensor g, Tensor x, Tensor mean, Tensor rstd, Tensor? weight, int count) -> Tensor", Kind.COMPOSITE,
    meta=lambda g, x, mean, rstd, weight, count: TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device),
    decompose=_layer_norm_backward, kernel=_layer_norm_backward_kernel, samples=_backward_samples)  # fmt: skip


def _layer_norm_backward_weight(g: Any, x: Any, mean: Any, rstd: Any, count: int) -> Any:
    """Cotangent of layer_norm's weight: the sum of g * normalised x over the leading dims."""
    wide = accumulator(x.dtype)
    terms = cast_to(g, wide) * ((cast_to(x, wide) - mean) * rstd)
    lead = tuple(range(x.ndim - count))
    return OPS["sum"](terms, lead, False, None) if lead else terms


def _layer_norm_backward_weight_kernel(xp: Any, out: Any, g: Any, x: Any, mean: Any, rstd: Any, count: int) -> None:
    if xp is np and out.dtype.char in "fd" and _native.layer_norm_backward_weight(out, g, x, mean, rstd):
        return
    rows, g = _rows(widen(x), count), _rows(widen(g), count)
    t = rows - mean.reshape(-1, 1)
    t *= rstd.reshape(-1, 1)
    xp.copyto(out, total(xp, g * t, 0).reshape(out.shape), casting="unsafe")


LAYER_NORM_BACKWARD_WEIGHT = declare(
    "layer_norm_backward_weight(Tensor g, Tensor x, Tensor mean, Tensor rstd, int count) -> Tensor", Kind.COMPOSITE,
    meta=lambda g, x, mean, rstd, count: TensorSpec.contiguous(
        tuple(x.shape[x.ndim - count :]), accumulator(x.dtype), x.device),
    decompose=_layer_norm_backward_weight, kernel=_layer_norm_backward_weight_kernel,
    samples=lambda make: ((s[0], s[1], s[2], s[3], s[5]) for s in _backward_samples(make)))  # fmt: skip
NATIVE_LAYER_NORM = declare(
    "native_layer_norm(Tensor x, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    Kind.COMPOSITE, meta=_layer_norm_meta, decompose=_layer_norm, kernel=_layer_norm_kernel,
    vjp={"x, weight, bias": _layer_norm_vjp}, nondifferentiable_outputs=(1, 2), samples=_norm_samples,
    precision=FLOAT32_ON_CUDA, batch="normalised")  # fmt: skip


# ---- RMS norm ----


def _rms_norm_meta(x: SpecLike, normalized_shape: Sequence[int], weight: Any, eps: float) -> TensorSpec:
    _check_normalized("rms_norm", x, normalized_shape, weight, None)
    shape = tuple(x.shape)
    scale = TensorSpec.contiguous((*shape[: x.ndim - len(normalized_shape)], *(1,) * len(normalized_shape)), x.dtype)
    product = TensorSpec(shape, x.dtype, elementwise_strides(shape, [x, scale]), x.device)
    if weight is not None:
        product = TensorSpec(shape, x.dtype, elementwise_strides(shape, [product, weight]), x.device)
    return TensorSpec(shape, x.dtype, in_format(product, suggested_format(x)), x.device)


def _inverse_rms(wide: Any, dims: tuple[int, ...], eps: float) -> Any:
    return OPS["rsqrt"](OPS["mean"](wide * wide, dims, True, None) + eps)


def _rms_norm(x: Any, normalized_shape: Sequence[int], weight: Any, eps: float) -> Any:
    """x over its root mean square across the trailing dims, times weight. x: (*, *normalized_shape)."""
    wide = cast_to(x, accumulator(x.dtype))
    y = wide * _inverse_rms(wide, _last(x.ndim, len(normalized_shape)), eps)
    return cast_to(y if weight is None else y * weight, x.dtype)


def _rms_norm_kernel(xp: Any, out: Any, x: Any, normalized_shape: Any, weight: Any, eps: float) -> None:
    if x.size == 0:
        return
    rows = _rows(widen(x), len(normalized_shape))
    direct = is_wide(out) and out.flags.c_contiguous
    t = out.reshape(rows.shape) if direct else xp.empty(rows.shape, rows.dtype)
    r = total(xp, rows * rows, 1, mean=True) + rows.dtype.type(eps)
    xp.multiply(rows, 1.0 / xp.sqrt(r), out=t)
    if weight is not None:
        t *= widen(weight).reshape(-1)
    if not direct:
        xp.copyto(out, t.reshape(out.shape), casting="unsafe")


def _rms_norm_vjp(g: Any, x: Any, normalized_shape: Any, weight: Any, eps: float, needs: Any) -> Any:
    count = len(normalized_shape)
    dims, d = _last(x.ndim, count), accumulator(x.dtype)
    g, wide = cast_to(g, d), cast_to(x, d)
    r = _inverse_rms(wide, dims, eps)
    gx = gw = None
    if needs[0]:
        scaled = g if weight is None else g * weight
        gx = scaled * r - wide * (r * r * r * OPS["mean"](scaled * wide, dims, True, None))
    if needs[1]:
        lead = tuple(range(x.ndim - count))
        terms = g * (wide * r)
        gw = OPS["sum"](terms, lead, False, None) if lead else terms
    return gx, gw


RMS_NORM = declare(
    "rms_norm(Tensor x, int[] normalized_shape, Tensor? weight, float eps) -> Tensor", Kind.COMPOSITE, meta=_rms_norm_meta,
    decompose=_rms_norm, kernel=_rms_norm_kernel, vjp={"x, weight": _rms_norm_vjp},
    samples=lambda make: ((s[0], s[1], s[2], s[4]) for s in _norm_samples(make)),
    precision=FLOAT32_ON_CUDA, batch="normalised")  # fmt: skip


# ---- batch norm over statistics of the batch ----


def _batch_dims(x: SpecLike) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _per_channel(t: Any, ndim: int) -> Any:
    """(c,) as (1, c, 1, ...)."""
    return OPS["view"](t, (1, -1, *(1,) * (ndim - 2))) if ndim > 2 else t


def batch_norm_strides(x: SpecLike) -> tuple[int, ...]:
    """Row-major for a row-major input, else in the format that it suggests; an empty one is copied."""
    shape = tuple(x.shape)
    if 0 in shape:
        return tuple(x.stride())
    return contiguous_strides(shape) if is_contiguous(shape, x.stride()) else suggested_strides(x, shape)


def _batch_norm_meta(x: SpecLike, weight: Any, bias: Any, eps: float) -> Any:
    require_floating("batch_norm", x.dtype)
    stat = TensorSpec.contiguous((x.shape[1],), accumulator(x.dtype), x.device)
    shape = tuple(x.shape)
    return TensorSpec(shape, x.dtype, batch_norm_strides(x), x.device), stat, stat


def _batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """Zero mean and unit variance per channel over the batch, then weight and bias. Also mean and 1/std.

    x: (n, c, *); weight, bias: (c,) or None; mean and 1/std: (c,).
    """
    wide = cast_to(x, accumulator(x.dtype))
    mean, rstd = _batch_moments(wide, eps)
    y = (wide - mean) * rstd
    if weight is not None:
        y = y * _per_channel(weight, x.ndim)
    if bias is not None:
        y = y + _per_channel(bias, x.ndim)
    flat = (x.shape[1],)
    return cast_to(y, x.dtype), OPS["view"](mean, flat), OPS["view"](rstd, flat)


def _batch_norm_kernel(xp: Any, out: Any, x: Any, weight: Any, bias: Any, eps: float) -> None:
    y, mean, rstd = out
    if not x.size:  # statistics of nothing
        mean.fill(np.nan), rstd.fill(np.nan)
        return
    dims = (0, *range(2, x.ndim))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    wide = widen(x)
    t = y if is_wide(y) else xp.empty(y.shape, "f4")
    m, var = moments(xp, wide, dims)
    inverse = 1.0 / xp.sqrt(var + eps)
    if not eps:
        inverse[var == 0] = 0  # as `_batch_moments`
    xp.copyto(mean, m.reshape(mean.shape)), xp.copyto(rstd, inverse.reshape(rstd.shape))
    xp.subtract(wide, m, out=t)
    t *= (rstd if weight is None else rstd * widen(weight)).reshape(shape)
    if bias is not None:
        t += widen(bias).reshape(shape)
    if t is not y:
        xp.copyto(y, t, casting="unsafe")


def _batch_norm_vjp(gs: Any, x: Any, weight: Any, y1: Any, y2: Any, eps: float, needs: Any) -> Any:
    g, dims, d = gs[0], _batch_dims(x), accumulator(x.dtype)
    wide = cast_to(x, d)
    if _native.grad_enabled():
        mean, rstd = _batch_moments(wide, eps)
    else:
        mean, rstd = _per_channel(y1, x.ndim), _per_channel(y2, x.ndim)
    g = cast_to(g, d)
    n = x.numel() // max(x.shape[1], 1)
    xhat = (wide - mean) * rstd
    total = OPS["sum"](g, dims, True, None)
    projected = OPS["sum"](g * xhat, dims, True, None)
    gx = None
    if needs[0]:
        scale = rstd if weight is None else rstd * _per_channel(weight, x.ndim)
        gx = scale * (g - total / n - xhat * (projected / n))
    flat = (x.shape[1],)
    return gx, OPS["view"](projected, flat) if needs[1] else None, OPS["view"](total, flat) if needs[2] else None


def _batch_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(4, 3), make(3), make(3), 1e-5
    yield make(2, 3, 4), None, None, 1e-5
    yield make(2, 3, 2, 3), make(3), None, 1e-3


BATCH_NORM_TRAIN = declare(
    "batch_norm_train(Tensor x, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)", Kind.COMPOSITE,
    meta=_batch_norm_meta, decompose=_batch_norm, kernel=_batch_norm_kernel, vjp={"x, weight, bias": in_channels_last(_batch_norm_vjp)},
    nondifferentiable_outputs=(1, 2), samples=_batch_samples)  # fmt: skip
