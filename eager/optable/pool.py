"""Pooling over windows. x: (n, c, *spatial); unbatched inputs get their batch dim in the functions above."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec, contiguous_strides, image_strides, is_channels_last
from eager.optable.gradient_strides import in_strides, laid_out
from eager.optable.piecewise import piecewise_linear
from eager.optable.registry import Kind
from eager.optable.sums import total, widen
from eager.optable.table import OPS, declare


def pooled_size(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], ceil_mode: bool) -> tuple[int, ...]:  # fmt: skip
    """Numbers of windows. In ceil mode a last window may extend past the end, but must start inside the input or left padding."""
    result = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        result.append(count)
    return tuple(result)


def _check(who: str, x: SpecLike, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int], ceil_mode: bool) -> tuple[int, ...]:  # fmt: skip
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"{who}: kernel size should be greater than zero, but got {list(kernel)}")
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"{who}: stride should not be zero, got {list(stride)}")
    for p, k in zip(padding, kernel, strict=True):
        if p < 0 or p > k // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                               f"dilation={dilation[0]}")  # fmt: skip
    out = pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    if any(n < 1 for n in out):
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, x.shape[1:]))}). Calculated output size: "
                           f"({'x'.join(map(str, (x.shape[1], *out)))}). Output size is too small")  # fmt: skip
    return out


def _pooled(x: SpecLike, shape: Sequence[int]) -> TensorSpec:
    """A result of `shape` in the format that `x` suggests."""
    return TensorSpec(tuple(shape), x.dtype, image_strides(x, shape), x.device)


def _averaged(x: SpecLike, shape: Sequence[int]) -> TensorSpec:
    """`_pooled`, but row-major for volumes: so torch has it for means of volumes and for adaptive pooling of them."""
    return TensorSpec.contiguous(shape, x.dtype, x.device) if x.ndim == 5 else _pooled(x, shape)


def _as_averaged(formula: Any) -> Any:
    return in_strides(formula, "x_spec", lambda g, x: _averaged(x, x.shape).strides)


def _reads(tap: Sequence[int], out: Sequence[int], size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:  # fmt: skip
    """For one window position: the output positions whose read falls inside the input, and the input positions that they read."""
    to, read = [], []
    for t, o, n, s, p, d in zip(tap, out, size, stride, padding, dilation, strict=True):
        shift = t * d - p
        first = max(0, -(shift // s)) if shift < 0 else 0
        last = min(o, (n - 1 - shift) // s + 1)
        if first >= last:
            return None
        to.append(slice(first, last))
        read.append(slice(first * s + shift, (last - 1) * s + shift + 1, s))
    return tuple(to), tuple(read)


def _flat_positions(xp: Any, size: Sequence[int], read: tuple[slice, ...]) -> Any:
    at = xp.zeros((1,) * len(size), "i8")
    for i, (step, part) in enumerate(zip(contiguous_strides(size), read, strict=True)):
        along = xp.arange(part.start, part.stop, part.step) * step
        at = at + along.reshape([-1 if j == i else 1 for j in range(len(size))])
    return at


# ---- maximum ----


def _max_meta(x: SpecLike, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[TensorSpec, TensorSpec]:
    if x.dtype.is_complex:
        raise dtypes.no_kernel(f"max_pool{x.ndim - 2}d", x.dtype)
    out = _check("max_pool", x, kernel, stride, padding, dilation, ceil_mode)
    values = _pooled(x, (*x.shape[:2], *out))
    return values, TensorSpec(values.shape, dtypes.int64, values.strides, x.device)


def _max_pool(xp: Any, outs: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> None:
    """A running maximum over the window's positions; its first position is kept; a NaN is always kept."""
    values, index = outs
    if not values.size:
        return
    size, out = x.shape[2:], values.shape[2:]
    lowest = -np.inf if x.dtype.kind in "fV" else False if x.dtype.kind == "b" else np.iinfo(x.dtype).min
    values.fill(lowest)
    index.fill(-1)
    nans = x.dtype.kind in "fV" and bool(xp.isnan(x).any())
    whole = (slice(None), slice(None))
    for tap in np.ndindex(*kernel):
        found = _reads(tap, out, size, stride, padding, dilation)
        if found is None:
            continue
        to, read = found
        here, best, at = x[whole + read], values[whole + to], index[whole + to]
        take = here > best
        if nans:
            take |= xp.isnan(here)
        xp.copyto(best, here, where=take)
        xp.copyto(at, _flat_positions(xp, size, read), where=take)
    lost = index < 0  # nothing in the window is above the lowest value: its first element stands for it
    if lost.any():
        first = [xp.where(at < 0, at % d, at) for at, d in (
            (xp.arange(o) * s - p, d) for o, s, p, d in zip(out, stride, padding, dilation, strict=True))]  # fmt: skip
        at = xp.zeros((1,) * len(size), "i8")
        for i, (step, along) in enumerate(zip(contiguous_strides(size), first, strict=True)):
            at = at + (along * step).reshape([-1 if j == i else 1 for j in range(len(size))])
        xp.copyto(index, at, where=lost)


def _max_vjp(gs: Any, y1: Any, x_spec: SpecLike) -> Any:
    n, c = x_spec.shape[:2]
    size = math.prod(x_spec.shape[2:])
    pixels_first = is_channels_last(x_spec)
    shape = (n, size, c) if pixels_first else (n, c, size)
    flat = OPS["full"](shape, 0, x_spec.dtype, x_spec.device)
    if pixels_first:
        flat = OPS["permute"](flat, (0, 2, 1))
    back = OPS["scatter_add"](flat, 2, y1.reshape(n, c, -1), gs[0].reshape(n, c, -1)) if gs[0].numel() else flat
    return back.reshape(tuple(x_spec.shape))


def _max_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(2, 3, 6), (2,), (2,), (0,), (1,), False
    yield make(2, 3, 5, 6), (3, 2), (2, 1), (1, 0), (1, 2), False
    yield make(6, 2, 3, 5).permute(1, 2, 3, 0), (2, 2), (2, 2), (0, 0), (1, 1), True
    yield make(1, 2, 4, 4, 4), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False
    yield make(0, 3, 6), (2,), (2,), (0,), (1,), False


# Largest element of each window, and its position in the flattened spatial dims.
MAX_POOL = declare(
    "max_pool(Tensor x, int[] kernel, int[] stride, int[] padding, int[] dilation, bool ceil_mode=False) -> (Tensor, Tensor)",
    Kind.OPAQUE, meta=_max_meta, kernel=_max_pool, nondifferentiable_outputs=(1,), samples=_max_samples,
    vjp={"x": in_strides(piecewise_linear(_max_vjp), "x_spec", lambda g, x: _pooled(x, x.shape).strides)}, batch="folded")  # fmt: skip

# ---- average ----


def _avg_meta(x: SpecLike, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> TensorSpec:  # fmt: skip
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    return _averaged(x, (*x.shape[:2], *_check("avg_pool", x, kernel, stride, padding, (1,) * len(kernel), ceil_mode)))


def _divisors(xp: Any, size: Any, out: Any, kernel: Any, stride: Any, padding: Any, count_include_pad: bool, override: int | None) -> Any:
    """Elements per window: those inside the input, or inside input and padding."""
    if override is not None:
        return float(override)
    total = xp.ones((1,) * len(size))
    for i, (n, o, k, s, p) in enumerate(zip(size, out, kernel, stride, padding, strict=True)):
        start = xp.arange(o) * s - p
        end = xp.minimum(start + k, n + p)
        count = end - start if count_include_pad else xp.minimum(end, n) - xp.maximum(start, 0)
        total = total * count.reshape([-1 if j == i else 1 for j in range(len(size))])
    return total


def _avg_pool(xp: Any, out: Any, x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> None:  # fmt: skip
    size, count, ones = x.shape[2:], out.shape[2:], (1,) * len(kernel)
    wide = x.astype("f4") if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    total = xp.zeros(out.shape, wide.dtype)
    whole = (slice(None), slice(None))
    for tap in np.ndindex(*kernel):
        found = _reads(tap, count, size, stride, padding, ones)
        if found is not None:
            under = total[whole + found[0]]
            xp.add(under, wide[whole + found[1]], out=under)
    divisor = _divisors(xp, size, count, kernel, stride, padding, count_include_pad, divisor_override)
    xp.copyto(out, total / divisor, casting="unsafe")


def _avg_backward(xp: Any, out: Any, grad: Any, size: Any, kernel: Any, stride: Any, padding: Any, count_include_pad: bool,
                  divisor_override: int | None) -> None:  # fmt: skip
    count, ones, spatial = grad.shape[2:], (1,) * len(kernel), out.shape[2:]
    divisor = _divisors(xp, spatial, count, kernel, stride, padding, count_include_pad, divisor_override)
    share = grad / divisor
    total = xp.zeros(out.shape, share.dtype)
    whole = (slice(None), slice(None))
    for tap in np.ndindex(*kernel):
        found = _reads(tap, count, spatial, stride, padding, ones)
        if found is not None:
            under = total[whole + found[1]]
            xp.add(under, share[whole + found[0]], out=under)
    xp.copyto(out, total, casting="unsafe")


def _avg_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(2, 3, 6), (2,), (2,), (0,), False, True, None
    yield make(2, 3, 5, 6), (3, 2), (2, 1), (1, 1), False, False, None
    yield make(6, 2, 3, 5).permute(1, 2, 3, 0), (3, 2), (2, 2), (1, 0), True, True, None
    yield make(2, 3, 4, 4), (2, 2), (2, 2), (0, 0), False, True, 3
    yield make(0, 3, 6), (2,), (2,), (0,), False, True, None


AVG_POOL = declare(
    "avg_pool(Tensor x, int[] kernel, int[] stride, int[] padding, bool ceil_mode=False, bool count_include_pad=True, "
    "int? divisor_override=None) -> Tensor",
    Kind.OPAQUE, meta=_avg_meta, kernel=_avg_pool, samples=_avg_samples,
    vjp={"x": _as_averaged(piecewise_linear(lambda g, x_spec, kernel, stride, padding, count_include_pad, divisor_override: OPS[
        "avg_pool_backward"](g, tuple(x_spec.shape), kernel, stride, padding, count_include_pad, divisor_override)))},
        batch="folded", linear_in=("x",))  # fmt: skip


def _avg_again(g: Any, grad_spec: SpecLike, kernel: Any, stride: Any, padding: Any, count_include_pad: bool,
               divisor_override: int | None) -> Any:  # fmt: skip
    """Adjoint of the backward pass: pooling again, with as many windows as the cotangent had."""
    ones = (1,) * len(kernel)
    ceil = tuple(grad_spec.shape[2:]) != pooled_size(g.shape[2:], kernel, stride, padding, ones, False)
    return OPS["avg_pool"](g, kernel, stride, padding, ceil, count_include_pad, divisor_override)


AVG_POOL_BACKWARD = declare(
    "avg_pool_backward(Tensor grad, int[] size, int[] kernel, int[] stride, int[] padding, bool count_include_pad=True, "
    "int? divisor_override=None) -> Tensor",
    Kind.OPAQUE, kernel=_avg_backward,
    meta=lambda grad, size, *options: _averaged(grad, tuple(size)), vjp={"grad": _avg_again},
    samples=lambda make: iter([(make(2, 3, 3, 7), (2, 3, 5, 6), (3, 2), (2, 1), (1, 1), False, None),
                               (make(2, 3, 3), (2, 3, 6), (2,), (2,), (0,), True, None)]), batch="folded", linear_in=("grad",))  # fmt: skip

# ---- adaptive: so many windows, as even as they can be ----


def adaptive_bounds(n: int, out: int) -> list[tuple[int, int]]:
    """Start and end of each of `out` windows over `n` elements; neighbours may overlap."""
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def _adaptive_avg(x: Any, size: Sequence[int]) -> Any:
    """Mean over each of size[i] windows along spatial dim i."""
    spatial = tuple(x.shape[2:])
    if all(n == 1 for n in size):
        y, spec = OPS["mean"](x, tuple(range(2, x.ndim)), True, None), _adaptive_meta(x, size)
        return y if tuple(y.stride()) == tuple(spec.strides) else OPS["as_strided"](y, spec.shape, spec.strides, 0)
    if all(n % o == 0 for n, o in zip(spatial, size, strict=True)):
        kernel = tuple(n // o for n, o in zip(spatial, size, strict=True))
        return OPS["avg_pool"](x, kernel, kernel, (0,) * len(size), False, True, None)
    for i, out in enumerate(size):
        x = _window_means(x, i + 2, out)
    return x


def _window_means(x: Any, dim: int, out: int) -> Any:
    """Means along one dim: as many reads as the longest window has elements, weighted by zero beyond a shorter one."""
    bounds = adaptive_bounds(x.shape[dim], out)
    total = None
    for j in range(max(b - a for a, b in bounds)):
        at = OPS["int_table"](tuple(min(a + j, b - 1) for a, b in bounds), x.device)
        counts = OPS["int_table"](tuple(b - a for a, b in bounds), x.device)
        weight = OPS["to_dtype"](counts > j, x.dtype) / OPS["to_dtype"](counts, x.dtype)
        part = OPS["index_select"](x, dim, at) * weight.reshape(tuple(-1 if d == dim else 1 for d in range(x.ndim)))
        total = part if total is None else total + part
    return total


def _adaptive_meta(x: SpecLike, size: Sequence[int]) -> TensorSpec:
    if any(n == 0 for n in x.shape[2:]):
        raise RuntimeError("adaptive_avg_pool: Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                           f"{list(x.shape)}")  # fmt: skip
    shape = (*x.shape[:2], *size)
    if all(n == 1 for n in size):  # means, which torch gives the strides of the input's format
        return TensorSpec(shape, x.dtype, image_strides(x, shape), x.device)
    return _averaged(x, shape)


def _adaptive_avg_kernel(xp: Any, out: Any, x: Any, size: Sequence[int]) -> None:
    wide = widen(x)
    for i, o in enumerate(size):
        lead = (slice(None),) * (i + 2)
        parts = [total(xp, wide[(*lead, slice(a, b))], i + 2, mean=True) for a, b in adaptive_bounds(x.shape[i + 2], o)]
        wide = xp.concatenate(parts, i + 2) if o else wide[(*lead, slice(0, 0))]
    xp.copyto(out, wide, casting="unsafe")


def _adaptive_vjp(g: Any, x_spec: SpecLike, size: Sequence[int]) -> Any:
    if all(n == 1 for n in size):  # a mean
        return OPS["expand"](g, tuple(x_spec.shape)) / max(math.prod(x_spec.shape[2:]), 1)
    return laid_out(OPS["adaptive_avg_pool_backward"](g, tuple(x_spec.shape)), _averaged(x_spec, tuple(x_spec.shape)).strides)


def _adaptive_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(2, 3, 6), (3,)
    yield make(2, 3, 5, 6), (2, 4)
    yield make(6, 2, 3, 5).permute(1, 2, 3, 0), (1, 1)
    yield make(1, 2, 4, 3, 5), (2, 2, 3)


ADAPTIVE_AVG_POOL = declare("adaptive_avg_pool(Tensor x, int[] size) -> Tensor", Kind.COMPOSITE, decompose=_adaptive_avg,
                            meta=_adaptive_meta, kernel=_adaptive_avg_kernel, samples=_adaptive_samples,
                            vjp={"x": piecewise_linear(
                                _adaptive_vjp)},
                            accepts="f", batch="folded", linear_in=("x",))  # fmt: skip


def _adaptive_backward(xp: Any, out: Any, grad: Any, size: Any) -> None:
    share = grad.astype("f4") if grad.dtype.itemsize == 2 and grad.dtype.kind in "fV" else grad
    for i in range(grad.ndim - 2):
        d, n = i + 2, out.shape[i + 2]
        total = xp.zeros((*share.shape[:d], n, *share.shape[d + 1 :]), share.dtype)
        for j, (a, b) in enumerate(adaptive_bounds(n, share.shape[d])):
            total[(slice(None),) * d + (slice(a, b),)] += share[(slice(None),) * d + (slice(j, j + 1),)] / (b - a)
        share = total
    xp.copyto(out, share, casting="unsafe")


ADAPTIVE_AVG_POOL_BACKWARD = declare(
    "adaptive_avg_pool_backward(Tensor grad, int[] size) -> Tensor", Kind.OPAQUE, kernel=_adaptive_backward,
    meta=lambda grad, size: _averaged(grad, tuple(size)),
    vjp={"grad": lambda g, grad_spec: OPS["adaptive_avg_pool"](g, tuple(grad_spec.shape[2:]))},
    samples=lambda make: iter([(make(2, 3, 2, 4), (2, 3, 5, 6)), (make(2, 3, 3), (2, 3, 6))]),
    batch="folded", linear_in=("grad",))  # fmt: skip


def _adaptive_max(xp: Any, outs: Any, x: Any, size: Sequence[int]) -> None:
    values, index = outs
    spatial = x.shape[2:]
    steps = contiguous_strides(spatial)
    bounds = [adaptive_bounds(n, o) for n, o in zip(spatial, size, strict=True)]
    for cell in np.ndindex(*size):
        part = tuple(slice(*bounds[i][j]) for i, j in enumerate(cell))
        window = x[(slice(None), slice(None), *part)]
        flat = window.reshape(*window.shape[:2], math.prod(window.shape[2:]))
        at = flat.argmax(-1)
        values[(slice(None), slice(None), *cell)] = xp.take_along_axis(flat, at[..., None], -1)[..., 0]
        where = xp.unravel_index(at, window.shape[2:])
        index[(slice(None), slice(None), *cell)] = sum((w + p.start) * s for w, p, s in zip(where, part, steps, strict=True))


def _adaptive_max_meta(x: SpecLike, size: Sequence[int]) -> tuple[TensorSpec, TensorSpec]:
    spec = _adaptive_meta(x, size)
    return spec, TensorSpec(spec.shape, dtypes.int64, spec.strides, x.device)


ADAPTIVE_MAX_POOL = declare("adaptive_max_pool(Tensor x, int[] size) -> (Tensor, Tensor)", Kind.OPAQUE, kernel=_adaptive_max,
                            meta=_adaptive_max_meta, nondifferentiable_outputs=(1,),
                            vjp={"x": _as_averaged(piecewise_linear(_max_vjp))},
                            samples=_adaptive_samples, accepts="f", batch="folded")  # fmt: skip
