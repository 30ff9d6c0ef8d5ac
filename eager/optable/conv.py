"""Convolution in any number of spatial dims: patches laid out as a matrix, then one product per group.

x: (n, c, *spatial). weight: (out, c / groups, *kernel); transposed: (c, out / groups, *kernel).
The three ops are each other's gradients: `convolution` in x and weight is linear, its adjoint in x
is the transposed convolution, and its adjoint in the weight is `conv_weight`.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import c_name, scalar_name
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    as_image,
    common_device,
    image_strides,
    is_channels_last,
    is_contiguous,
)
from eager.optable.gradient_strides import in_strides
from eager.optable.memory import cuda_backend
from eager.optable.precision import LOWER
from eager.optable.products import add_matmul, matmul
from eager.optable.registry import Kind
from eager.optable.table import OPS, by_kernel, declare

_PATCH_BYTES = 32 << 20  # a chunk of the patch matrix stays near this size

# ---- sizes ----


def output_size(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int]) -> tuple[int, ...]:  # fmt: skip
    """Spatial sizes of a convolution's result."""
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True))


def transposed_size(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                    dilation: Sequence[int], output_padding: Sequence[int]) -> tuple[int, ...]:  # fmt: skip
    """Spatial sizes of a transposed convolution's result."""
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + o + 1
                 for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, output_padding, strict=True))  # fmt: skip


def _check(x: SpecLike, weight: SpecLike, bias: SpecLike | None, stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int], transposed: bool, groups: int) -> None:  # fmt: skip
    if bias is not None and bias.dtype is not x.dtype:
        raise RuntimeError(f"Input type ({c_name(x.dtype)}) and bias type ({c_name(bias.dtype)}) should be the same")
    if transposed and x.dtype.is_integral and x.dtype is not dtypes.int64:
        raise dtypes.no_kernel(f"slow_conv_transpose{x.ndim - 2}d_out_cpu", x.dtype)
    if x.dtype is not weight.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(weight.dtype)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if any(n == 0 for n in weight.shape[2:]):
        raise RuntimeError(f"kernel size should be greater than zero, but got {list(weight.shape[2:])}")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if weight.shape[0] < groups or weight.shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by "
                           f"{groups}, but got weight of size {list(weight.shape)} instead")  # fmt: skip
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != wanted:
        kind = "transposed" if transposed else f"groups={groups}"
        raise RuntimeError(f"Given {kind if not transposed else f'transposed={int(transposed)}'}, weight of size {list(weight.shape)}, "
                           f"expected input{list(x.shape)} to have {wanted} channels, but got {x.shape[1]} channels instead")  # fmt: skip
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise RuntimeError(f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {outputs} elements, but "
                           f"got bias of size {list(bias.shape)} instead")  # fmt: skip


def _result(x: SpecLike, weight: SpecLike, shape: tuple[int, ...]) -> TensorSpec:
    """In the format that the input suggests, or else in the weight's."""
    where = common_device("convolution", [x, weight])
    if x.ndim == 3:  # torch makes sequences row-major first
        follows = is_contiguous(x.shape, x.stride()) and is_channels_last(as_image(x))
    else:
        follows = is_channels_last(x)
    return TensorSpec(shape, x.dtype, image_strides(x if follows else weight, shape), where)


def _meta(x: SpecLike, weight: SpecLike, bias: SpecLike | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
          output_padding: Any, groups: int) -> TensorSpec:  # fmt: skip
    _check(x, weight, bias, stride, padding, dilation, transposed, groups)
    size, kernel = tuple(x.shape[2:]), tuple(weight.shape[2:])
    if transposed:
        for o, s, d in zip(output_padding, stride, dilation, strict=True):
            if o >= s and o >= d:
                raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got output_padding={o}, "
                                   f"stride={s}, dilation={d}")  # fmt: skip
        if 0 in size:
            raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}")
        out = transposed_size(size, kernel, stride, padding, dilation, output_padding)
        if any(n < 0 for n in out):
            raise RuntimeError(f"Given input size per channel: {list(size)}. Calculated output size per channel: {list(out)}. Output "
                               "size is too small")  # fmt: skip
        return _result(x, weight, (x.shape[0], weight.shape[1] * groups, *out))
    padded = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(n < r for n, r in zip(padded, reach, strict=True)):
        raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                           f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size")  # fmt: skip
    return _result(x, weight, (x.shape[0], weight.shape[0], *output_size(size, kernel, stride, padding, dilation)))


# ---- kernels ----


def _padded(xp: Any, x: Any, padding: Sequence[int]) -> Any:
    if not any(padding):
        return x
    result = xp.zeros((*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))), x.dtype)
    result[(slice(None), slice(None), *(slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True)))] = x
    return result


def _windows(xp: Any, x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], out: Sequence[int]) -> Any:
    """View (n, c, *kernel, *out) of the patches of padded `x`."""
    spatial = x.strides[2:]
    shape = (*x.shape[:2], *kernel, *out)
    strides = (*x.strides[:2], *(s * d for s, d in zip(spatial, dilation, strict=True)),
               *(s * t for s, t in zip(spatial, stride, strict=True)))  # fmt: skip
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def _taps(kernel: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return iter(np.ndindex(*kernel))


def _under(tap: Sequence[int], stride: Sequence[int], dilation: Sequence[int], out: Sequence[int]) -> tuple[slice, ...]:
    """Where one kernel position reads, over all output positions."""
    return tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, s, d, n in zip(tap, stride, dilation, out, strict=True))


def _widened(a: Any) -> Any:
    return a.astype("f4") if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def _chunks(n: int, bytes_each: int) -> Iterator[slice]:
    step = max(1, _PATCH_BYTES // max(bytes_each, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _depthwise(xp: Any, x: Any, weight: Any, stride: Any, dilation: Any, out: Any, groups: int) -> Any:
    """One input channel per group: a sum over kernel positions, no patch matrix."""
    n, multiple = x.shape[0], weight.shape[0] // groups
    total = xp.zeros((n, groups, multiple, *out), x.dtype)
    w = weight.reshape(groups, multiple, *weight.shape[2:])
    ones = (1,) * len(out)
    for tap in _taps(weight.shape[2:]):
        part = x[(slice(None), slice(None), *_under(tap, stride, dilation, out))]
        total += part[:, :, None] * w[(slice(None), slice(None), *tap)].reshape(1, groups, multiple, *ones)
    return total.reshape(n, weight.shape[0], *out)


def _forward(xp: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    kernel = weight.shape[2:]
    out = output_size(x.shape[2:], kernel, stride, padding, dilation)
    x = _padded(xp, x, padding)
    n, c, outputs = x.shape[0], x.shape[1], weight.shape[0]
    if c == groups and c > 1:
        return _depthwise(xp, x, weight, stride, dilation, out, groups)
    per, positions, inner = outputs // groups, math.prod(out), (c // groups) * math.prod(kernel)
    w = weight.reshape(groups, per, inner)
    windows = _windows(xp, x, kernel, stride, dilation, out)
    result = xp.empty((n, groups, per, positions), x.dtype)
    for part in _chunks(n, c * math.prod(kernel) * positions * x.itemsize):
        patches = windows[part].reshape(len(result[part]), groups, inner, positions)
        matmul(xp, w, patches, result[part])
    return result.reshape(n, outputs, *out)


def _mirrored(weight: Any, groups: int) -> Any:
    """The kernel turned round and its channels swapped: a convolution with it is the adjoint, for stride one."""
    outputs, per = weight.shape[:2]
    turned = weight[(slice(None), slice(None), *[slice(None, None, -1)] * (weight.ndim - 2))]
    grouped = turned.reshape(groups, outputs // groups, per, *weight.shape[2:]).swapaxes(1, 2)
    return grouped.reshape(groups * per, outputs // groups, *weight.shape[2:])


def _backward_input(xp: Any, g: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int, size: Sequence[int]) -> Any:
    """Adjoint in x: each cotangent times the kernel, added where the kernel had read. `size` is x's spatial size."""
    kernel, out = weight.shape[2:], g.shape[2:]
    rest = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    if all(s == 1 for s in stride) and min(rest, default=0) >= 0 and all(
            n + 2 * p == o + d * (k - 1) for n, p, o, d, k in zip(size, padding, out, dilation, kernel, strict=True)):  # fmt: skip
        return _forward(xp, g, _mirrored(weight, groups), stride, rest, dilation, groups)
    n, outputs = g.shape[:2]
    per, channels, positions = outputs // groups, weight.shape[1] * groups, math.prod(out)
    reach = [max(s + 2 * p, (o - 1) * t + d * (k - 1) + 1)
             for s, p, o, t, d, k in zip(size, padding, out, stride, dilation, kernel, strict=True)]  # fmt: skip
    total = xp.zeros((n, channels, *reach), g.dtype)
    w = weight.reshape(groups, per, -1).swapaxes(1, 2)  # (groups, c/groups * kernel, per)
    flat = g.reshape(n, groups, per, positions)
    for part in _chunks(n, channels * math.prod(kernel) * positions * g.itemsize):
        patches = matmul(xp, w, flat[part]).reshape(-1, channels, *kernel, *out)
        for tap in _taps(kernel):
            under = total[(part, slice(None), *_under(tap, stride, dilation, out))]
            xp.add(under, patches[(slice(None), slice(None), *tap)], out=under)
    return total[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(padding, size, strict=True)))]


def _backward_weight(xp: Any, x: Any, g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Adjoint in the weight: patches times cotangents, summed over positions and batch."""
    out = g.shape[2:]
    x = _padded(xp, x, padding)
    n, c, outputs = x.shape[0], x.shape[1], g.shape[1]
    inner, positions = (c // groups) * math.prod(kernel), math.prod(out)
    windows = _windows(xp, x, kernel, stride, dilation, out)
    flat = g.reshape(n, groups, outputs // groups, positions)
    total = xp.zeros((groups, outputs // groups, inner), x.dtype)
    for part in _chunks(n, c * math.prod(kernel) * positions * x.itemsize):
        patches = windows[part].reshape(-1, groups, inner, positions)
        for cotangent, read in zip(flat[part], patches.swapaxes(2, 3), strict=True):
            add_matmul(xp, total, cotangent, read)
    return total.reshape(outputs, c // groups, *kernel)


def _by_library(xp: Any, kind: str, out: Any, a: Any, b: Any, stride: Any, padding: Any, dilation: Any) -> bool:
    """Whether the device's library has computed a convolution into `out`. kind: of `cudnn_convolutions.Kind`."""
    return xp is not np and bool(cuda_backend().convolve(kind, out, a, b, stride, padding, dilation))


def _convolution(xp: Any, out: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int) -> None:  # fmt: skip
    if out.size == 0:
        return
    if _by_library(xp, "input" if transposed else "forward", out, x, weight, stride, padding, dilation):
        if bias is not None:
            xp.copyto(out, _widened(out) + _widened(bias).reshape(1, -1, *(1,) * (out.ndim - 2)), casting="unsafe")
        return
    x, weight = _widened(x), _widened(weight)
    if xp is np:
        wide = None if bias is None else _widened(bias)
        y = by_kernel(CONVOLUTION, x, weight, wide, stride, padding, dilation, transposed, output_padding, groups)
        if y is not None:
            xp.copyto(out, y, casting="unsafe")
            return
    if transposed:
        y = _backward_input(xp, x, weight, stride, padding, dilation, groups, out.shape[2:])
    else:
        y = _forward(xp, x, weight, stride, padding, dilation, groups)
    if bias is not None:
        y += _widened(bias).reshape(1, -1, *(1,) * (out.ndim - 2))
    xp.copyto(out, y, casting="unsafe")


# ---- gradients ----


def _grad_x(g: Any, x_spec: SpecLike, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, groups: int) -> Any:
    n = (0,) * len(stride)
    if transposed:  # an output_padding of a stride or more leaves room for windows that no element of x wrote
        return _same_size(OPS["convolution"](g, weight, None, stride, padding, dilation, False, n, groups), x_spec)
    plain = transposed_size(g.shape[2:], weight.shape[2:], stride, padding, dilation, n)
    rest = tuple(a - b for a, b in zip(x_spec.shape[2:], plain, strict=True))
    return OPS["convolution"](g, weight, None, stride, padding, dilation, True, rest, groups)


def _grad_weight(g: Any, x: Any, weight_spec: SpecLike, stride: Any, padding: Any, dilation: Any, transposed: bool, groups: int) -> Any:
    kernel = tuple(weight_spec.shape[2:])
    first, second = (g, x) if transposed else (x, g)
    return OPS["conv_weight"](first, second, kernel, stride, padding, dilation, groups)


def _in_their_format(formula: Any) -> Any:
    """The gradient of input or weight in the format that either of them suggests, as the result is."""

    def strides(g: Any, x: SpecLike, weight: SpecLike) -> tuple[int, ...] | None:
        rows = g.is_contiguous() and is_contiguous(x.shape, x.stride()) and is_contiguous(weight.shape, weight.stride())
        if rows and 1 not in (x.shape[1], x.shape[-1], weight.shape[1], weight.shape[-1]):  # neither is channels-last as well
            return None
        return _result(x, weight, tuple(g.shape)).strides

    return in_strides(formula, "x_spec weight_spec", strides)


def _grad_bias(g: Any) -> Any:
    return OPS["sum"](g, (0, *range(2, g.ndim)), False, None)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    one, two = ((1,), (0,), (1,)), ((1, 1), (0, 0), (1, 1))
    yield make(2, 3, 5), make(4, 3, 2), make(4), *one, False, (0,), 1
    yield make(2, 3, 5, 4), make(4, 3, 3, 2), make(4), *two, False, (0, 0), 1
    yield make(2, 4, 6, 5), make(6, 2, 3, 2), None, (2, 1), (1, 2), (1, 2), False, (0, 0), 2
    yield make(2, 3, 5, 4), make(6, 1, 2, 2), make(6), *two, False, (0, 0), 3
    yield make(5, 2, 3, 4).permute(1, 2, 3, 0), make(2, 3, 1, 1), None, *two, False, (0, 0), 1
    yield make(2, 4, 3, 4), make(4, 3, 3, 2), make(6), (2, 1), (1, 0), (1, 2), True, (1, 0), 2
    yield make(1, 2, 3), make(2, 3, 2), None, (3,), (0,), (1,), True, (0,), 1
    yield make(1, 2, 3, 3, 3), make(2, 2, 2, 2, 2), None, (1,) * 3, (0,) * 3, (1,) * 3, False, (0,) * 3, 1
    yield make(0, 3, 5), make(4, 3, 2), None, *one, False, (0,), 1


def conv_flop_count(x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False) -> int:
    """Operations of a convolution.

    x: (batch, channels, *sizes); weight: (out, in / groups, *kernel), transposed (in, out / groups, *kernel).
    """
    return 2 * x_shape[0] * math.prod((x_shape if transposed else out_shape)[2:]) * math.prod(w_shape)


def conv_flop(x_shape: Sequence[int], w_shape: Sequence[int], _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
              *args: Any, out_shape: Any = None, **kwargs: Any) -> int:  # fmt: skip
    """Operations of a call of `convolution`."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


CONVOLUTION = declare(
    "convolution(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
    "int[] output_padding, int groups) -> Tensor",
    Kind.OPAQUE, meta=_meta, kernel=_convolution,
    vjp={"x": _in_their_format(_grad_x), "weight": _in_their_format(_grad_weight), "bias": _grad_bias},
    samples=_samples, precision=LOWER, batch="convolution", bilinear_in=("x", "weight", "bias"), flops=conv_flop)  # fmt: skip


def _conv_weight_meta(x: SpecLike, grad: SpecLike, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> TensorSpec:
    return TensorSpec.contiguous((grad.shape[1], x.shape[1] // groups, *kernel), x.dtype, x.device)


def _conv_weight(xp: Any, out: Any, x: Any, grad: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    if x.size == 0 or grad.size == 0:
        out.fill(0)
        return
    if _by_library(xp, "weight", out, x, grad, stride, padding, dilation):
        return
    x, grad = _widened(x), _widened(grad)
    y = by_kernel(CONV_WEIGHT, x, grad, kernel, stride, padding, dilation, groups) if xp is np else None
    if y is None:
        y = _backward_weight(xp, x, grad, kernel, stride, padding, dilation, groups)
    xp.copyto(out, y, casting="unsafe")


def _conv_weight_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(2, 3, 5), make(2, 4, 4), (2,), (1,), (0,), (1,), 1
    yield make(2, 4, 6, 5), make(2, 6, 3, 4), (3, 2), (2, 2), (1, 2), (1, 2), 2
    yield make(0, 3, 5), make(0, 4, 4), (2,), (1,), (0,), (1,), 1


# The cotangent of a convolution's weight, from its input and the cotangent of its result.
CONV_WEIGHT = declare(
    "conv_weight(Tensor x, Tensor grad, int[] kernel, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
    Kind.OPAQUE, meta=_conv_weight_meta, kernel=_conv_weight, samples=_conv_weight_samples,
    vjp={"x": lambda g, x_spec, grad, stride, padding, dilation, groups: _grad_x(
             grad, x_spec, g, stride, padding, dilation, False, groups),
         "grad": lambda g, x, grad_spec, stride, padding, dilation, groups: _same_size(OPS["convolution"](
             x, g, None, stride, padding, dilation, False, (0,) * len(stride), groups), grad_spec)},
    batch="conv_weight", bilinear_in=("x", "grad", None),
    flops=lambda x, grad, *_, out_shape: conv_flop_count(x, out_shape, grad))  # fmt: skip


def _same_size(g: Any, spec: SpecLike) -> Any:
    """Drop output positions beyond the cotangent's size."""
    for d in range(2, g.ndim):
        if g.shape[d] != spec.shape[d]:
            g = OPS["slice"](g, d, 0, spec.shape[d], 1)
    return g
