"""Ops that rearrange elements: joining, padding, flipping, triangles, and writes of a view into a copy.

Dims reach these ops as the functions above them normalise them: non-negative. Copies with a part
replaced (`*_scatter`) are the gradients of views and the functional form of writes through views.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes, float8
from eager.base.device import memory_device
from eager.base.scalars import check_element
from eager.base.spec import (
    Fresh,
    SpecLike,
    TensorSpec,
    channels_last_strides,
    common_device,
    contiguous_strides,
    elementwise_strides,
    format_strides,
    is_channels_last,
    is_dense,
    normalize_dim,
    preserve_strides,
    same_shape,
    suggested_format,
    suggested_strides,
)
from eager.optable.declaration import cast_to, zeros
from eager.optable.gradient_strides import laid_out
from eager.optable.piecewise import piecewise_linear
from eager.optable.precision import PROMOTE
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare
from eager.optable.views import view_strides


def suggested_spec(x: SpecLike, shape: Sequence[int], dtype: Any = None) -> TensorSpec:
    """A result of `shape` in the memory format that `x` suggests."""
    return TensorSpec(tuple(shape), dtype or x.dtype, suggested_strides(x, shape), x.device)


def like(x: SpecLike) -> TensorSpec:
    """The spec of a copy of `x`."""
    return TensorSpec(tuple(x.shape), x.dtype, preserve_strides(x), x.device)


def row_major(x: SpecLike) -> TensorSpec:
    return TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device)


def in_suggested_format(y: Any, x: SpecLike) -> Any:
    """`y` in the memory format that `x`, of as many dims, suggests: `y` itself if it has those strides, else a copy."""
    name = suggested_format(x)
    return y if tuple(y.stride()) == format_strides(y.shape, name) else OPS["clone"](y, name)


def in_layout_of(y: Any, x: SpecLike) -> Any:
    """An elementwise `y` with the strides of `empty_like(x)`, where torch's kernel writes into such a tensor.

    The law of elementwise results gives these strides already, except in dims of size 1.
    """
    return laid_out(y, preserve_strides(x)) if any(n <= 1 for n in y.shape) and same_shape(y.shape, x.shape) else y


def in_unary_layout(y: Any, x: SpecLike) -> Any:
    """An elementwise `y` of `x` alone, made by ops that have other operands, with the strides of `exp(x)`."""
    return laid_out(y, elementwise_strides(tuple(x.shape), [x])) if any(n == 1 for n in y.shape) else y


def in_rows(y: Any) -> Any:
    """A row-major `y` with row-major strides in dims of size 1 too."""
    return laid_out(y, contiguous_strides(tuple(y.shape)))


# ---- copies with a part replaced ----


def _part(op: str, x: SpecLike, src: SpecLike, *args: Any) -> TensorSpec:
    """Spec of `x` with its view `op(*args)` replaced; refuses a source of another shape."""
    want = OPS[op].infer(x, *args)
    if tuple(src.shape) != tuple(want.shape):
        raise RuntimeError(f"{op}_scatter: expected src to have a size equal to the {op} of self. src size = "
                           f"{list(src.shape)}, {op} size = {list(want.shape)}")  # fmt: skip
    return like(x)


def _range(n: int, start: int | None, end: int | None, step: int) -> slice:
    low, high, _ = slice(start, end).indices(n)
    return slice(low, max(low, high), step)


def _slice_scatter(xp: Any, out: Any, x: Any, src: Any, dim: int, start: Any, end: Any, step: int) -> None:
    xp.copyto(out, x)
    out[(slice(None),) * (dim % x.ndim) + (_range(x.shape[dim], start, end, step),)] = src


def _slice_scatter_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(5, 4), make(2, 4), 0, 1, 4, 2
    yield make(4, 5).t(), make(5, 2), 1, -2, None, 1
    yield make(3), make(0), 0, 2, 1, 1


SLICE_SCATTER = declare(
    "slice_scatter(Tensor x, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", Kind.INDEXED, float8=True,
    meta=lambda x, src, dim, start, end, step: _part("slice", x, src, dim, start, end, step), kernel=_slice_scatter,
    vjp={"x": lambda g, src_spec, dim, start, end, step: OPS["slice_scatter"](g, zeros(src_spec), dim, start, end, step),
         "src": lambda g, dim, start, end, step: OPS["slice"](g, dim, start, end, step)},
    samples=_slice_scatter_samples, batch="split_dim", linear_in=("x", "src"))  # fmt: skip


def _select_scatter(xp: Any, out: Any, x: Any, src: Any, dim: int, index: int) -> None:
    xp.copyto(out, x)
    out[(slice(None),) * (dim % x.ndim) + (index,)] = src


SELECT_SCATTER = declare(
    "select_scatter(Tensor x, Tensor src, int dim, int index) -> Tensor", Kind.INDEXED, float8=True,
    meta=lambda x, src, dim, index: _part("select", x, src, dim, index), kernel=_select_scatter,
    vjp={"x": lambda g, src_spec, dim, index: OPS["select_scatter"](g, zeros(src_spec), dim, index),
         "src": lambda g, dim, index: OPS["select"](g, dim, index)},
    samples=lambda make: iter([(make(3, 4), make(4), 0, 1), (make(4, 3).t(), make(3), -1, -1)]),
    batch="split_dim", linear_in=("x", "src"))  # fmt: skip


def _diagonal_of(a: Any, offset: int, dim1: int, dim2: int) -> Any:
    """A writable view of the diagonal of an array."""
    sizes, strides, start = OPS["diagonal"].view(_Layout(a), offset, dim1, dim2)  # type: ignore[misc]
    return _strided(a, sizes, strides, start)


class _Layout:
    """An array as the view rules see a tensor: shape and strides in elements, from its first element."""

    def __init__(self, a: Any) -> None:
        self.shape, self.ndim = a.shape, a.ndim
        self._strides = tuple(s // a.itemsize for s in a.strides)

    def stride(self) -> tuple[int, ...]:
        return self._strides


def _strided(a: Any, sizes: Sequence[int], strides: Sequence[int], start: int) -> Any:
    """View of the memory that begins at an array's first element, geometry in elements."""
    if isinstance(a, np.ndarray):
        bits = a.view(f"V{a.itemsize}")  # numpy's array interface has no name for some of ml_dtypes' types
        flat = np.lib.stride_tricks.as_strided(bits, (start + 1,), (a.itemsize,))[start:]
        return np.lib.stride_tricks.as_strided(flat, tuple(sizes), tuple(s * a.itemsize for s in strides)).view(a.dtype)
    return type(a)(tuple(sizes), a.dtype, a.data + start * a.itemsize, tuple(s * a.itemsize for s in strides))


def _diagonal_scatter(xp: Any, out: Any, x: Any, src: Any, offset: int, dim1: int, dim2: int) -> None:
    xp.copyto(out, x)
    if src.size:
        _diagonal_of(out, offset, dim1, dim2)[...] = src


DIAGONAL_SCATTER = declare(
    "diagonal_scatter(Tensor x, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", Kind.INDEXED, float8=True,
    meta=lambda x, src, offset, dim1, dim2: _part("diagonal", x, src, offset, dim1, dim2), kernel=_diagonal_scatter,
    vjp={"x": lambda g, src_spec, offset, dim1, dim2: OPS["diagonal_scatter"](g, zeros(src_spec), offset, dim1, dim2),
         "src": lambda g, offset, dim1, dim2: OPS["diagonal"](g, offset, dim1, dim2)},
    samples=lambda make: iter([(make(3, 4), make(3), 0, 0, 1), (make(2, 3, 3), make(2, 2), 1, 1, 2),
                               (make(3, 4).t(), make(2), -2, 0, 1)]), batch="diagonal_scatter", linear_in=("x", "src"))  # fmt: skip


def _as_strided_scatter_meta(x: SpecLike, src: SpecLike, size: Any, stride: Any, storage_offset: int | None) -> TensorSpec:
    if tuple(src.shape) != tuple(size):
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src.shape)}, slice size = {list(size)}")  # fmt: skip
    if not is_dense(x.shape, x.stride()):
        raise RuntimeError(f"as_strided_scatter: x must be dense (no gaps, no overlap), got sizes {list(x.shape)} with strides "
                           f"{list(x.stride())}; call contiguous() first")  # fmt: skip
    first = storage_offset or 0
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + first if math.prod(size) else 0
    if span > x.numel() or first < 0:
        raise RuntimeError(f"as_strided_scatter: size={list(size)}, stride={list(stride)}, offset={storage_offset} reach element "
                           f"{first if first < 0 else span - 1} of a tensor of {x.numel()} elements")  # fmt: skip
    return like(x)


def _as_strided_scatter(xp: Any, out: Any, x: Any, src: Any, size: Any, stride: Any, storage_offset: int | None) -> None:
    xp.copyto(out, x)
    if src.size:
        _strided(out, size, stride, storage_offset or 0)[...] = src


def _in_layout(g: Any, spec: SpecLike) -> Any:
    """`g` in the dense layout of `spec`, so that positions in memory mean the same in both."""
    return laid_out(g, tuple(spec.stride()))


# Positions count from the first element of `x`; overlapping ones are written in row-major order of `src`.
AS_STRIDED_SCATTER = declare(
    "as_strided_scatter(Tensor x, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor", Kind.OPAQUE, float8=True,
    meta=_as_strided_scatter_meta, kernel=_as_strided_scatter,
    vjp={"x": lambda g, x_spec, src_spec, size, stride, storage_offset: OPS["as_strided_scatter"](
             _in_layout(g, x_spec), zeros(src_spec), size, stride, storage_offset),
         "src": lambda g, x_spec, size, stride, storage_offset: OPS["as_strided"](
             OPS["clone"](_in_layout(g, x_spec), None), size, stride, storage_offset or 0)},
    samples=lambda make: iter([(make(4, 4), make(2, 3), (2, 3), (4, 1), 1), (make(4, 3).t(), make(3), (3,), (2,), None)]),
    linear_in=("x", "src"))  # fmt: skip


# ---- joining ----


def _joined(who: str, tensors: Sequence[SpecLike]) -> Any:
    """The common dtype and device of tensors to be joined."""
    if not tensors:
        raise ValueError(f"torch.{who}(): expected a non-empty list of Tensors")
    d = tensors[0].dtype
    for t in tensors[1:]:
        d = dtypes.promote_types(d, t.dtype)
    for t in tensors[1:]:
        if t.device is not tensors[0].device:
            common_device(who, tensors)
    return d


def _is_legacy_empty(t: SpecLike) -> bool:
    """1-d tensors of no elements join with anything, as they always have in torch."""
    return t.ndim == 1 and t.shape[0] == 0


def _cat_meta(tensors: Sequence[SpecLike], dim: int) -> TensorSpec:
    d = _joined("cat", tensors)
    real = [t for t in tensors if not _is_legacy_empty(t)]
    if not real:
        normalize_dim(dim, 1)
        return TensorSpec.contiguous((0,), d, tensors[0].device)
    first = real[0]
    if first.ndim == 0:
        at = next(i for i, t in enumerate(tensors) if t.ndim == 0)
        raise RuntimeError(f"zero-dimensional tensor (at position {at}) cannot be concatenated")
    dim = normalize_dim(dim, first.ndim)
    total = 0
    for i, t in enumerate(tensors):
        if _is_legacy_empty(t):
            continue
        if t.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}")
        for k in range(t.ndim):
            if k != dim and t.shape[k] != first.shape[k]:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[k]} "
                                   f"but got size {t.shape[k]} for tensor number {i} in the list.")  # fmt: skip
        total += t.shape[dim]
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    if all(is_channels_last(t) for t in tensors):
        return suggested_spec(first, shape, d)
    return TensorSpec.contiguous(shape, d, first.device)


def _cat(xp: Any, out: Any, tensors: Any, dim: int) -> None:
    at, dim = 0, dim % max(out.ndim, 1)
    for t in tensors:
        if t.ndim == 1 and t.shape[0] == 0:
            continue
        end = at + t.shape[dim]
        xp.copyto(out[(slice(None),) * dim + (slice(at, end),)], t, casting="unsafe")
        at = end


def _cat_vjp(g: Any, tensors_spec: Sequence[SpecLike], dim: int) -> list[Any]:
    at, grads, dim = 0, [], dim % max(g.ndim, 1)
    for t in tensors_spec:
        if _is_legacy_empty(t) and g.ndim != 1:
            grads.append(zeros(t))
            continue
        end = at + t.shape[dim]
        grads.append(cast_to(OPS["slice"](g, dim, at, end, 1), t.dtype))
        at = end
    return grads


def _cat_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield [make(3, 5), make(2, 5)], 0
    yield [make(3, 2), make(4, 3).t(), make(3, 0)], 1
    yield [make(0), make(2, 3)], 0
    yield [make.int(3, high=5), make(2)], -1


CAT = declare("cat(Tensor[] tensors, int dim=0) -> Tensor", Kind.INDEXED, float8=True, meta=_cat_meta, kernel=_cat,
              vjp={"tensors": _cat_vjp}, samples=_cat_samples, precision=PROMOTE, batch="cat", linear_in=("tensors",))  # fmt: skip


def _stack_meta(tensors: Sequence[SpecLike], dim: int) -> TensorSpec:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    d = _joined("stack", tensors)
    first = tuple(tensors[0].shape)
    for i, t in enumerate(tensors):
        if tuple(t.shape) != first:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                               f"{list(t.shape)} at entry {i}")  # fmt: skip
    count, dim = len(tensors), normalize_dim(dim, len(first) + 1)
    shape = (*first[:dim], count, *first[dim:])
    if dim == len(first):
        columns = [TensorSpec((*first, 1), d, (*t.stride(), 1), t.device) for t in tensors]
        return _cat_meta(columns, dim)
    if not all(is_channels_last(t) for t in tensors):
        return TensorSpec.contiguous(shape, d, tensors[0].device)
    joined = (*first[:dim], count * first[dim], *first[dim + 1 :])
    strides = view_strides(joined, channels_last_strides(joined), shape)
    assert strides is not None  # one dim is cut in two
    return TensorSpec(shape, d, strides, tensors[0].device)


def _stack(tensors: Sequence[Any], dim: int) -> Any:
    """Equal tensors side by side along a new dim. As torch, it joins them along the dim that follows, and splits that one."""
    shape = _stack_meta(tensors, dim).shape
    dim = normalize_dim(dim, tensors[0].ndim + 1)
    if dim == tensors[0].ndim:
        return OPS["cat"]([OPS["unsqueeze"](t, dim) for t in tensors], dim)
    return OPS["view"](OPS["cat"](tensors, dim), shape)


def _stack_kernel(xp: Any, out: Any, tensors: Any, dim: int) -> None:
    lead = (slice(None),) * (dim % out.ndim)
    for i, t in enumerate(tensors):
        out[(*lead, i)] = t


def _stack_vjp(g: Any, tensors_spec: Sequence[SpecLike], dim: int) -> list[Any]:
    return [cast_to(OPS["select"](g, dim, i), t.dtype) for i, t in enumerate(tensors_spec)]


STACK = declare("stack(Tensor[] tensors, int dim=0) -> Tensor", Kind.COMPOSITE, float8=True, meta=_stack_meta, kernel=_stack_kernel,
                decompose=_stack, vjp={"tensors": _stack_vjp},
                samples=lambda make: iter([([make(3, 5), make(5, 3).t()], 0), ([make(3, 5)] * 3, -1), ([make(), make()], 0),
                                           ([make(0, 2), make(0, 2)], 1)]),
                                           precision=PROMOTE, batch="stack", linear_in=("tensors",))  # fmt: skip


# ---- padding ----


def padded_shape(x: SpecLike, pad: Sequence[int], who: str) -> tuple[int, ...]:
    """Shape after padding: `pad` holds (before, after) pairs from the last dim backwards; negative crops."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > x.ndim:
        raise RuntimeError(f"Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(pad)} and input of dimension {x.ndim}")  # fmt: skip
    shape = list(x.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
        if shape[-1 - i] < 0:
            raise RuntimeError(f"The input size {x.shape[-1 - i]}, plus negative padding {pad[2 * i]} and {pad[2 * i + 1]} "
                               f"resulted in a negative output size, which is invalid. Check dimension {x.ndim - 1 - i} of "
                               f"your input ({who}).")  # fmt: skip
    return tuple(shape)


def _constant_pad_meta(x: SpecLike, pad: Sequence[int], value: Any) -> TensorSpec:
    """In the format that `x` suggests; in the layout of the part that is left if nothing is added, as torch copies that."""
    check_element(value, x.dtype)
    shape = padded_shape(x, pad, "constant_pad_nd")
    if all(p <= 0 for p in pad):
        return like(TensorSpec(shape, x.dtype, tuple(x.stride()), x.device))
    return suggested_spec(x, shape)


def _constant_pad(xp: Any, out: Any, x: Any, pad: Sequence[int], value: Any) -> None:
    float8.fill(out, value)
    source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        d = x.ndim - 1 - i
        source[d] = slice(max(-before, 0), x.shape[d] - max(-after, 0))
        target[d] = slice(max(before, 0), out.shape[d] - max(after, 0))
    out[tuple(target)] = x[tuple(source)]


def _pad_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), (1, 2), 0.5
    yield make(4, 3).t(), (1, 0, -1, 2), 0
    yield make(0, 2), (1, 1, 1, 0), 1.0
    yield make(2, 3, 4), (-1, -1), 0


CONSTANT_PAD_ND = declare(
    "constant_pad_nd(Tensor x, int[] pad, Scalar value=0) -> Tensor", Kind.INDEXED, float8=True, kernel=_constant_pad,
    meta=_constant_pad_meta,
    vjp={"x": lambda g, pad: OPS["constant_pad_nd"](g, tuple(-p for p in pad), 0)}, samples=_pad_samples,
    batch="padded", linear_in=("x",), zeroed={"value": 0})  # fmt: skip


def _pad_positions(n: int, before: int, after: int, mode: str) -> list[int]:
    """For each output position along one dim, the input position that it shows."""
    positions = range(-before, n + after)
    if mode == "replicate":
        return [min(max(p, 0), n - 1) for p in positions]
    if mode == "circular":  # negative padding crops first; the remaining padding wraps around
        first, left = max(-before, 0), n + min(before, 0) + min(after, 0)
        return [first + (p - first) % left for p in positions]
    period = 2 * (n - 1)
    return [min(p % period, period - p % period) if period else 0 for p in positions]


_PAD_NAMES = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}


def _check_pad(x: SpecLike, pad: Sequence[int], mode: str) -> None:
    if mode not in _PAD_NAMES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    for i in range(len(pad) // 2):
        n, d = x.shape[x.ndim - 1 - i], x.ndim - 1 - i
        worst = max(pad[2 * i], pad[2 * i + 1])
        if mode == "reflect" and worst >= n and worst > 0:
            raise RuntimeError(f"Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                               f"padding ({pad[2 * i]}, {pad[2 * i + 1]}) at dimension {d} of input {list(x.shape)}")  # fmt: skip
        if mode == "circular" and (worst > n or (worst > 0 and n + min(pad[2 * i], 0) + min(pad[2 * i + 1], 0) <= 0)):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "replicate" and n == 0 and worst > 0:
            raise RuntimeError(f"Expected a non-empty dim {d} to replicate, but got input of size {list(x.shape)}")


def _pad_by_index(x: Any, pad: Sequence[int], mode: str) -> Any:
    """Padding that repeats elements of the input: mirrored, from the edge, or wrapped around."""
    padded_shape(x, pad, "pad_indexed")
    _check_pad(x, pad, mode)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if before or after:
            d = x.ndim - 1 - i
            positions = _pad_positions(x.shape[d], before, after, mode)
            x = OPS["index_select"](x, d, OPS["int_table"](tuple(positions), x.device))
    return x


def _pad_indexed_kernel(xp: Any, out: Any, x: Any, pad: Sequence[int], mode: str) -> None:
    for i in range(len(pad) // 2):
        d = x.ndim - 1 - i
        if pad[2 * i] or pad[2 * i + 1]:
            x = x.take(xp.asarray(_pad_positions(x.shape[d], pad[2 * i], pad[2 * i + 1], mode), "i8"), axis=d)
    xp.copyto(out, x)


def _pad_indexed_meta(x: SpecLike, pad: Sequence[int], mode: str) -> TensorSpec:
    _check_pad(x, pad, mode)
    shape = padded_shape(x, pad, "pad")
    return TensorSpec.contiguous(shape, x.dtype, x.device) if mode == "circular" else suggested_spec(x, shape)


def _pad_indexed_vjp(g: Any, x_spec: SpecLike, pad: Sequence[int], mode: str) -> Any:
    for i in range(len(pad) // 2):
        d = x_spec.ndim - 1 - i
        if pad[2 * i] or pad[2 * i + 1]:
            positions = _pad_positions(x_spec.shape[d], pad[2 * i], pad[2 * i + 1], mode)
            shape = (*g.shape[:d], x_spec.shape[d], *g.shape[d + 1 :])
            base = OPS["full"](shape, 0, g.dtype, g.device)
            g = OPS["index_add"](base, d, OPS["int_table"](tuple(positions), g.device), g, 1)
    return g if mode == "circular" else laid_out(g, suggested_strides(x_spec, tuple(x_spec.shape)))


# mode is "reflect", "replicate" or "circular"; pad as in constant_pad_nd.
PAD_INDEXED = declare(
    "pad_indexed(Tensor x, int[] pad, str mode) -> Tensor", Kind.COMPOSITE, decompose=_pad_by_index,
    kernel=_pad_indexed_kernel, meta=_pad_indexed_meta, vjp={"x": piecewise_linear(_pad_indexed_vjp)},
    samples=lambda make: iter([(make(2, 3, 4), (1, 2), "reflect"), (make(2, 4, 3).transpose(1, 2), (2, 1, 1, 0), "replicate"),
                               (make(2, 3, 4), (1, 2, 0, 1), "circular"), (make(3, 4), (-1, 2), "reflect")]), linear_in=("x",))  # fmt: skip

# A constant vector of integers, known when the graph is made.
INT_TABLE = declare(
    "int_table(int[] values, device? device=None) -> Tensor", Kind.CREATION, nondifferentiable=True,
    meta=lambda values, device: TensorSpec.contiguous((len(values),), dtypes.int64, memory_device(device)),
    kernel=lambda xp, out, values, device: xp.copyto(out, xp.asarray(values, "i8")),
    samples=lambda make: iter([((3, 1, 2), None), ((), None)]))  # fmt: skip

# A constant vector of floats, likewise.
FLOAT_TABLE = declare(
    "float_table(any values, dtype dtype, device? device=None) -> Tensor", Kind.CREATION, nondifferentiable=True,
    meta=lambda values, dtype, device: TensorSpec.contiguous((len(values),), dtype, memory_device(device)),
    kernel=lambda xp, out, values, dtype, device: xp.copyto(out, xp.asarray(values, "f8"), casting="unsafe"),
    samples=lambda make: iter([((0.5, 1.25), make.dtype("float32"), None), ((), make.dtype("float64"), None)]))  # fmt: skip


# ---- reversing and rolling ----


def _flip_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), (0,)
    yield make(4, 3, 2).permute(2, 0, 1), (0, 2)
    yield make(0, 3), (1,)
    yield make(), ()


def _flip(xp: Any, out: Any, x: Any, dims: Sequence[int]) -> None:
    chosen = {d % max(x.ndim, 1) for d in dims}
    xp.copyto(out, x[tuple(slice(None, None, -1) if i in chosen else slice(None) for i in range(x.ndim))])


FLIP = declare("flip(Tensor x, int[] dims) -> Tensor", Kind.INDEXED, kernel=_flip, meta=lambda x, dims: like(x),
               vjp={"x": lambda g, dims: OPS["flip"](g, dims)}, samples=_flip_samples, batch="over_dims", linear_in=("x",))  # fmt: skip


def _roll_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), (1,), (0,)
    yield make(4, 3).t(), (-2, 5), (0, 1)
    yield make(2, 3), (2,), ()
    yield make(0, 3), (1,), (0,)


def _roll(xp: Any, out: Any, x: Any, shifts: Sequence[int], dims: Sequence[int]) -> None:
    if not dims:
        xp.copyto(out, xp.roll(x, shifts[0]))
    else:
        xp.copyto(out, xp.roll(x, tuple(shifts), tuple(dims)))


def _roll_meta(x: SpecLike, shifts: Sequence[int], dims: Sequence[int]) -> TensorSpec:
    """As torch, which joins the two parts of `x` by `cat`: a part without elements suggests no format. An empty `x` is copied."""
    if 0 in x.shape:
        return like(x) if dims else row_major(x)
    for d, shift in zip(dims, shifts, strict=False):
        if not is_channels_last(x) or shift % x.shape[d] == 0:
            return row_major(x)
    return suggested_spec(x, x.shape) if dims else row_major(x)


# With no dims the flattened tensor is rolled.
ROLL = declare("roll(Tensor x, int[] shifts, int[] dims) -> Tensor", Kind.INDEXED, float8=True, kernel=_roll,
               meta=_roll_meta,
               vjp={"x": lambda g, shifts, dims: OPS["roll"](g, tuple(-s for s in shifts), dims)},
               samples=_roll_samples, batch="roll", linear_in=("x",))  # fmt: skip


# ---- triangles and diagonals ----


def _tri_meta(who: str) -> Any:
    def meta(x: SpecLike, diagonal: int) -> TensorSpec:
        if x.ndim < 2:
            raise RuntimeError(f"{who}: input tensor must have at least 2 dimensions")
        return row_major(x)

    return meta


def _tri(who: str) -> Any:
    def kernel(xp: Any, out: Any, x: Any, diagonal: int) -> None:
        xp.copyto(out, getattr(xp, who)(x, diagonal))

    return kernel


def _tri_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(4, 5), 0
    yield make(2, 5, 3).transpose(1, 2), 1
    yield make(3, 3), -2
    yield make(0, 3), 0


def _triangle(who: str) -> Any:
    """Elements on one side of a diagonal of each matrix, zero elsewhere."""

    def decompose(x: Any, diagonal: int) -> Any:
        _tri_meta(who)(x, diagonal)
        rows = OPS["view"](OPS["arange"](0, x.shape[-2], 1, None, x.device), (-1, 1))
        cols = OPS["arange"](0, x.shape[-1], 1, None, x.device)
        keep = OPS["le"](cols - rows, diagonal) if who == "tril" else OPS["ge"](cols - rows, diagonal)
        return OPS["clone"](OPS["where"](keep, x, False if x.dtype is dtypes.bool_ else 0), "contiguous")

    return decompose


TRIL = declare("tril(Tensor x, int diagonal=0) -> Tensor", Kind.COMPOSITE, meta=_tri_meta("tril"), kernel=_tri("tril"),
               decompose=_triangle("tril"), vjp={"x": lambda g, diagonal: OPS["tril"](g, diagonal)}, inplace=True,
               samples=_tri_samples, batch="padded", linear_in=("x",))  # fmt: skip
TRIU = declare("triu(Tensor x, int diagonal=0) -> Tensor", Kind.COMPOSITE, meta=_tri_meta("triu"), kernel=_tri("triu"),
               decompose=_triangle("triu"), vjp={"x": lambda g, diagonal: OPS["triu"](g, diagonal)}, inplace=True,
               samples=_tri_samples, batch="padded", linear_in=("x",))  # fmt: skip


def _diag_embed(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Matrices whose diagonal `offset` is the last dim of `x`; they span dims `dim1` and `dim2` of the result."""
    if x.ndim == 0:
        raise IndexError("diag_embed: expected a tensor of at least 1 dim, got a 0-d tensor")
    n, ndim = x.shape[-1] + abs(offset), x.ndim + 1
    a, b = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    lead = iter(x.shape[:-1])
    shape = tuple(n if i in (a, b) else next(lead) for i in range(ndim))
    return OPS["diagonal_scatter"](OPS["full"](shape, 0, x.dtype, x.device), x, offset, a, b)


DIAG_EMBED = declare("diag_embed(Tensor x, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", Kind.COMPOSITE, float8=True,
                     decompose=_diag_embed,
                     samples=lambda make: iter([(make(3), 0, -2, -1), (make(2, 3), 1, 0, 2), (make(3), -1, -2, -1)]))  # fmt: skip


# ---- repetition ----


def _repeat_meta(x: SpecLike, repeats: Sequence[int]) -> TensorSpec:
    if len(repeats) < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(r < 0 for r in repeats):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats {list(repeats)}")
    padded = (1,) * (len(repeats) - x.ndim) + tuple(x.shape)
    return TensorSpec.contiguous(tuple(n * r for n, r in zip(padded, repeats, strict=True)), x.dtype, x.device)


def _interleaved(shape: Sequence[int], repeats: Sequence[int]) -> tuple[list[int], list[int]]:
    """Shapes (1, n, 1, n, ..) and (r, n, r, n, ..) between which a repetition is a broadcast."""
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    return [v for n in padded for v in (1, n)], [v for n, r in zip(padded, repeats, strict=True) for v in (r, n)]


def _repeat(x: Any, repeats: Sequence[int]) -> Any:
    """Copies of `x` laid side by side, `repeats[i]` of them along dim i (leading dims are added)."""
    spec = _repeat_meta(x, repeats)
    single, full = _interleaved(x.shape, repeats)
    return OPS["expand"](x.reshape(tuple(single)), tuple(full)).reshape(spec.shape)


def _repeat_vjp(g: Any, x_spec: SpecLike, repeats: Sequence[int]) -> Any:
    _, full = _interleaved(x_spec.shape, repeats)
    g = OPS["sum"](g.reshape(tuple(full)), tuple(range(0, len(full), 2)), False, None)
    return g.reshape(tuple(x_spec.shape))


REPEAT = declare("repeat(Tensor x, int[] repeats) -> Tensor", Kind.COMPOSITE, float8=True, decompose=_repeat, meta=_repeat_meta,
                 kernel=lambda xp, out, x, repeats: xp.copyto(out, xp.tile(x, tuple(repeats))), vjp={"x": _repeat_vjp},
                 samples=lambda make: iter([(make(3, 2), (2, 1)), (make(4), (2, 3)), (make(4, 3).t(), (0, 2)),
                                            (make(), (2,))]), batch="repeated", linear_in=("x",))  # fmt: skip


def _repeat_indices(xp: Any, out: Any, repeats: Any) -> Any:
    if repeats.size and int(repeats.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    return xp.repeat(xp.arange(repeats.shape[0]), repeats)


def _repeat_indices_sizes(fresh: Fresh, repeats: SpecLike) -> TensorSpec:
    return TensorSpec.contiguous((fresh(None),), dtypes.int64, repeats.device)


# For each output of a repetition by counts, the position that it shows: [2, 0, 1] -> [0, 0, 2].
REPEAT_INDICES = declare("repeat_indices(Tensor repeats) -> Tensor", Kind.OPAQUE, kernel=_repeat_indices,
                         dynamic_output=_repeat_indices_sizes, nondifferentiable=True,
                         samples=lambda make: iter([(make.int(5, high=3),)]))  # fmt: skip


def _repeat_each(x: Any, repeats: int, dim: int) -> Any:
    """Each slice along `dim` `repeats` times in a row."""
    dim = normalize_dim(dim, x.ndim)
    shape = tuple(x.shape)
    wide = OPS["expand"](OPS["unsqueeze"](x, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return OPS["clone"](wide, "contiguous").reshape((*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


def _repeat_each_meta(x: SpecLike, repeats: int, dim: int) -> TensorSpec:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    d = normalize_dim(dim, x.ndim)
    return TensorSpec.contiguous((*x.shape[:d], x.shape[d] * repeats, *x.shape[d + 1 :]), x.dtype, x.device)


def _repeat_each_vjp(g: Any, x_spec: SpecLike, repeats: int, dim: int) -> Any:
    d = normalize_dim(dim, x_spec.ndim)
    shape = tuple(x_spec.shape)
    return OPS["sum"](g.reshape((*shape[: d + 1], repeats, *shape[d + 1 :])), (d + 1,), False, None)


REPEAT_EACH = declare("repeat_each(Tensor x, int repeats, int dim) -> Tensor", Kind.COMPOSITE, float8=True, decompose=_repeat_each,
                      meta=_repeat_each_meta, vjp={"x": _repeat_each_vjp},
                      kernel=lambda xp, out, x, repeats, dim: xp.copyto(out, xp.repeat(x, repeats, axis=dim)),
                      samples=lambda make: iter([(make(3, 2), 2, 0), (make(4, 3).t(), 3, 1), (make(2), 0, 0)]),
                      batch="along_dim", linear_in=("x",))  # fmt: skip
