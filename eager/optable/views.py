"""View ops: other sizes, strides and offset over the same storage, as an index map."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import SpecLike, TensorSpec, contiguous_strides, normalize_dim
from eager.optable.declaration import sum_to
from eager.optable.index_kernels import combine_at
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def _offset(x: Any) -> int:
    return x.storage_offset() if hasattr(x, "storage_offset") else 0


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with its -1 filled in. Raises RuntimeError with torch's text."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for n in shape:
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n}")
    known = math.prod(n for n in shape if n != -1)
    if unknown:
        if known == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                               "dimension size -1 can be any value and is ambiguous") if numel == 0 else RuntimeError(
                                   f"shape '{list(shape)}' is invalid for input of size {numel}")  # fmt: skip
        if numel % known == 0:
            filled = list(shape)
            filled[unknown[0]] = numel // known
            return tuple(filled)
    elif known == numel:
        return tuple(shape)
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def view_strides(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of the same elements under shape `new`, or None if that needs a copy.

    Works from the innermost dim outwards: each run of dims that are contiguous with each other
    must be cut by the new dims at the run's boundaries.
    """
    if math.prod(shape) == 0:
        return tuple(strides) if tuple(shape) == tuple(new) else contiguous_strides(new)
    result = [0] * len(new)
    at = len(new) - 1
    run_stride = strides[-1] if shape else 1
    run_size = seen = 1
    for i in range(len(shape) - 1, -1, -1):
        run_size *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != run_size * run_stride):
            while at >= 0 and (seen < run_size or new[at] == 1):
                result[at] = seen * run_stride
                seen *= new[at]
                at -= 1
            if seen != run_size:
                return None
            if i > 0:
                run_stride = strides[i - 1]
                run_size = seen = 1
    for j in range(at, -1, -1):  # a 0-d source: only dims of size 1 are left
        result[j] = 1
    return tuple(result)


def _view(x: SpecLike, size: Sequence[int]) -> Geometry:
    size = infer_size(size, x.numel())
    strides = view_strides(x.shape, x.stride(), size)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans "
                           "across two contiguous subspaces). Use .reshape(...) instead.")  # fmt: skip
    return size, strides, _offset(x)


def _view_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), (2, 6)
    yield make(2, 3, 4), (-1, 4)
    yield make(0, 4), (4, 0)
    yield make(), (1, 1)


VIEW = declare("view(Tensor x, int[] size) -> Tensor", Kind.VIEW, view=_view,
               vjp={"x": lambda g, x_spec: g.reshape(tuple(x_spec.shape))}, samples=_view_samples, batch="view")  # fmt: skip


def _expand(x: SpecLike, size: Sequence[int]) -> Geometry:
    lead = len(size) - x.ndim
    if lead < 0:
        raise RuntimeError(f"expand({x.dtype}{list(x.shape)}, size={list(size)}): the number of sizes provided ({len(size)}) "
                           f"must be greater or equal to the number of dimensions in the tensor ({x.ndim})")  # fmt: skip
    sizes, strides, old = list(size), [0] * len(size), x.stride()
    for i in range(len(size) - 1, -1, -1):
        n, have = size[i], x.shape[i - lead] if i >= lead else 1
        if n == -1:
            if i < lead:
                raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                                   f"dimension {i}")  # fmt: skip
            n = have
        if have != n and have != 1:
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                               f"dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(x.shape)}")  # fmt: skip
        if n < 0:
            raise RuntimeError(f"expand: a negative size of {n} in {list(size)}; allowed: sizes of 0 or more, and -1")
        sizes[i] = n
        if have == n and x.ndim:  # a new dim of size 1 spans the dims behind it
            strides[i] = old[i - lead] if i >= lead else sizes[i + 1] * strides[i + 1]
    return tuple(sizes), tuple(strides), _offset(x)


EXPAND = declare("expand(Tensor x, int[] size) -> Tensor", Kind.VIEW, view=_expand,
                 vjp={"x": lambda g, x_spec: sum_to(g, x_spec.shape)},
                 samples=lambda make: iter([(make(3, 1), (2, 3, 4)), (make(4), (3, -1)), (make(), (2,))]), batch="expand")  # fmt: skip


def _permute(x: SpecLike, dims: Sequence[int]) -> Geometry:
    if len(dims) != x.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                           f"desired ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = "
                           f"{len(dims)}")  # fmt: skip
    order = [normalize_dim(d, x.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    strides = x.stride()
    return tuple(x.shape[d] for d in order), tuple(strides[d] for d in order), _offset(x)


def inverse_permutation(dims: Sequence[int]) -> tuple[int, ...]:
    result = [0] * len(dims)
    for i, d in enumerate(dims):
        result[d % len(dims)] = i
    return tuple(result)


PERMUTE = declare("permute(Tensor x, int[] dims) -> Tensor", Kind.VIEW, view=_permute,
                  vjp={"x": lambda g, dims: OPS["permute"](g, inverse_permutation(dims))},
                  samples=lambda make: iter([(make(2, 3, 4), (2, 0, 1)), (make(), ())]), batch="permute")  # fmt: skip


def slice_bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Python's clamping of slice bounds to a length, for a positive step."""
    low, high = _clamped(start, n, 0), _clamped(end, n, n)
    return low, high if high >= low else low


def _clamped(bound: int | None, n: int, default: int) -> int:
    if bound is None:
        return default
    return min(bound, n) if bound >= 0 else max(bound + n, 0)


def _slice(x: SpecLike, dim: int, start: int | None, end: int | None, step: int) -> Geometry:
    d = normalize_dim(dim, x.ndim)
    if x.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError(f"slice step must be positive, got {step}")
    sizes, strides = list(x.shape), list(x.stride())
    low, high = slice_bounds(sizes[d], start, end)
    sizes[d] = (high - low + step - 1) // step
    offset = _offset(x) + low * strides[d]
    strides[d] *= step
    return tuple(sizes), tuple(strides), offset


SLICE = declare("slice(Tensor x, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", Kind.VIEW, view=_slice,
                vjp={"x": lambda g, x_spec, dim, start, end, step: OPS["slice_scatter"](
                    _zeros_of(x_spec, g), g, dim, start, end, step)},
                samples=lambda make: iter([(make(5, 4), 0, 1, 4, 2), (make(5, 4), 1, -2, None, 1), (make(3), 0, 2, 1, 1)]),
                batch="one_dim")  # fmt: skip


def _zeros_of(spec: SpecLike, g: Any) -> Any:
    return OPS["full"](tuple(spec.shape), 0, g.dtype, g.device)


def _select(x: SpecLike, dim: int, index: int) -> Geometry:
    if x.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, x.ndim)
    sizes, strides = list(x.shape), list(x.stride())
    n, stride = sizes.pop(d), strides.pop(d)
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {d}")
    index += n if index < 0 else 0
    return tuple(sizes), tuple(strides), _offset(x) + index * stride


SELECT = declare("select(Tensor x, int dim, int index) -> Tensor", Kind.VIEW, view=_select,
                 vjp={"x": lambda g, x_spec, dim, index: OPS["select_scatter"](_zeros_of(x_spec, g), g, dim, index)},
                 samples=lambda make: iter([(make(3, 4), 0, 1), (make(3, 4, 2), -2, -1)]), batch="one_dim")  # fmt: skip


def _unsqueeze(x: SpecLike, dim: int) -> Geometry:
    d = normalize_dim(dim, x.ndim + 1)
    sizes, strides = list(x.shape), list(x.stride())
    strides.insert(d, sizes[d] * strides[d] if d < x.ndim else 1)
    sizes.insert(d, 1)
    return tuple(sizes), tuple(strides), _offset(x)


UNSQUEEZE = declare("unsqueeze(Tensor x, int dim) -> Tensor", Kind.VIEW, view=_unsqueeze,
                    vjp={"x": lambda g, dim: OPS["squeeze"](g, (dim,))},
                    samples=lambda make: iter([(make(3, 4), 1), (make(3), -1), (make(), 0)]), batch="unsqueeze")  # fmt: skip


def _squeeze(x: SpecLike, dims: Sequence[int] | None) -> Geometry:
    chosen = range(x.ndim) if dims is None else [normalize_dim(d, x.ndim) for d in dims]
    keep = [i for i in range(x.ndim) if not (i in chosen and x.shape[i] == 1)]
    strides = x.stride()
    return tuple(x.shape[i] for i in keep), tuple(strides[i] for i in keep), _offset(x)


SQUEEZE = declare("squeeze(Tensor x, int[]? dims=None) -> Tensor", Kind.VIEW, view=_squeeze,
                  vjp={"x": lambda g, x_spec: OPS["view"](g, tuple(x_spec.shape)) if g.numel() else _zeros_of(x_spec, g)},
                  samples=lambda make: iter([(make(3, 1, 1), None), (make(1, 4), (0, 1)), (make(2, 1), (-1,))]),
                  batch="squeeze")  # fmt: skip


def _as_strided(x: SpecLike, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Geometry:
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {list(stride)} against {list(size)}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"as_strided: a negative size in {list(size)}; allowed: sizes of 0 or more")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return tuple(size), tuple(stride), _offset(x) if storage_offset is None else storage_offset


def _as_strided_vjp(g: Any, x_spec: SpecLike, size: Any, stride: Any, storage_offset: Any) -> Any:
    return OPS["as_strided_backward"](g, tuple(x_spec.shape), x_spec.stride(), tuple(size), tuple(stride), storage_offset)


AS_STRIDED = declare("as_strided(Tensor x, int[] size, int[] stride, int? storage_offset=None) -> Tensor", Kind.VIEW,
                     view=_as_strided, vjp={"x": _as_strided_vjp},
                     samples=lambda make: iter([(make(4, 4), (2, 3), (4, 1), 1), (make(6), (3, 3), (1, 1), None)]),
                     batch="as_strided")  # fmt: skip


def _diagonal(x: SpecLike, offset: int, dim1: int, dim2: int) -> Geometry:
    a, b = normalize_dim(dim1, x.ndim), normalize_dim(dim2, x.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    strides = x.stride()
    rows, cols = x.shape[a], x.shape[b]
    n = max(min(rows, cols - offset) if offset >= 0 else min(rows + offset, cols), 0)
    start = _offset(x) + (0 if n == 0 else offset * strides[b] if offset >= 0 else -offset * strides[a])
    keep = [i for i in range(x.ndim) if i not in (a, b)]
    return (*(x.shape[i] for i in keep), n), (*(strides[i] for i in keep), strides[a] + strides[b]), start


DIAGONAL = declare("diagonal(Tensor x, int offset=0, int dim1=0, int dim2=1) -> Tensor", Kind.VIEW, view=_diagonal,
                   vjp={"x": lambda g, x_spec, offset, dim1, dim2: OPS["diagonal_scatter"](
                       _zeros_of(x_spec, g), g, offset, dim1, dim2)},
                   samples=lambda make: iter([(make(3, 4), 0, 0, 1), (make(2, 3, 3), 1, 1, 2), (make(4, 3), -2, 0, 1)]),
                   batch="diagonal")  # fmt: skip


def _unfold(x: SpecLike, dim: int, size: int, step: int) -> Geometry:
    d = normalize_dim(dim, x.ndim)
    n = x.shape[d] if x.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    sizes, strides = list(x.shape), list(x.stride())
    if not x.ndim:
        return (size,), (1,), _offset(x)
    inner = strides[d]
    sizes[d], strides[d] = (n - size) // step + 1, inner * step
    return (*sizes, size), (*strides, inner), _offset(x)


def _unfold_vjp(g: Any, x_spec: SpecLike, dim: int, size: int, step: int) -> Any:
    plain = contiguous_strides(tuple(x_spec.shape))
    s = type(x_spec)(tuple(x_spec.shape), x_spec.dtype, plain, x_spec.device)  # type: ignore[call-arg]
    sizes, strides, _ = _unfold(s, dim, size, step)
    return OPS["as_strided_backward"](g, tuple(x_spec.shape), plain, sizes, strides, 0)


UNFOLD = declare("unfold(Tensor x, int dim, int size, int step) -> Tensor", Kind.VIEW, view=_unfold, vjp={"x": _unfold_vjp},
                 samples=lambda make: iter([(make(7), 0, 3, 2), (make(4, 6), 1, 2, 2)]), batch="unfold")  # fmt: skip


def _same(x: SpecLike) -> Geometry:
    return tuple(x.shape), tuple(x.stride()), _offset(x)


# Shares memory and version counter, cut off from the history.
DETACH = declare("detach(Tensor x) -> Tensor", Kind.VIEW, view=_same, nondifferentiable=True,
                 samples=lambda make: iter([(make(3, 4),)]), batch="first_in_front")  # fmt: skip
ALIAS = declare("alias(Tensor x) -> Tensor", Kind.VIEW, view=_same, vjp={"x": lambda g: g},
                samples=lambda make: iter([(make(3, 4),)]), batch="first_in_front")  # fmt: skip


def _view_dtype(x: SpecLike, dtype: dtype) -> tuple[tuple[int, ...], tuple[int, ...], int, dtype]:
    """The same bytes read as `dtype`; where the sizes differ, the last dim is divided or multiplied accordingly.

    Raises RuntimeError where the last dim, the strides or the offset do not divide.
    """
    old, new = x.dtype.itemsize, dtype.itemsize
    shape, strides, offset = list(x.shape), list(x.stride()), _offset(x)
    if old == new:
        return tuple(shape), tuple(strides), offset, dtype
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {x.dtype} as {dtype} (different element sizes)")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {x.dtype} as {dtype} (different element sizes), but got {strides[-1]}")
    if old > new:
        ratio = old // new
        return (*shape[:-1], shape[-1] * ratio), (*(s * ratio for s in strides[:-1]), 1), offset * ratio, dtype
    ratio = new // old
    counts = [("size(-1)", shape[-1]), ("storage_offset()", offset), *((f"stride({i})", s) for i, s in enumerate(strides[:-1]))]
    for what, count in counts:
        if count % ratio:
            raise RuntimeError(f"self.{what} must be divisible by {ratio} to view {x.dtype} as {dtype} (different element sizes), but got "
                               f"{count}")  # fmt: skip
    return (*shape[:-1], shape[-1] // ratio), (*(s // ratio for s in strides[:-1]), 1), offset // ratio, dtype


VIEW_DTYPE = declare("view_dtype(Tensor x, dtype dtype) -> Tensor", Kind.VIEW, view=_view_dtype, nondifferentiable=True,
                     samples=lambda make: iter([(make(3, 4), dtypes.int32), (make.int(3, 4, high=9), dtypes.float64)]),
                     batch="padded")  # fmt: skip


def _as_strided_backward_meta(grad: Any, shape: Any, strides: Any, size: Any, stride: Any, offset: Any) -> Any:
    return TensorSpec(tuple(shape), grad.dtype, tuple(strides), grad.device)


def _as_strided_backward(xp: Any, out: Any, g: Any, shape: Any, strides: Any, size: Any, stride: Any, offset: Any) -> None:
    """Sum the cotangents of all elements of the view that share one place in memory.

    If elements of the input share a place too, as in an expanded tensor, each receives an equal part of the sum.
    """

    def positions(sizes: Sequence[int], steps: Sequence[int]) -> Any:
        at = xp.zeros((1,) * len(sizes), "i8")
        for i, (n, s) in enumerate(zip(sizes, steps, strict=True)):
            at = at + (xp.arange(n) * s).reshape([-1 if j == i else 1 for j in range(len(sizes))])
        return xp.broadcast_to(at, tuple(sizes))

    read = positions(size, stride) + (offset or 0)
    own = positions(shape, strides)
    length = 1 + max(int(read.max()) if read.size else 0, int(own.max()) if own.size else 0)
    flat = xp.zeros(length, out.dtype)
    combine_at(xp, "add", flat, read.reshape(-1), g.reshape(-1))
    sharers = xp.bincount(own.reshape(-1), minlength=length)
    if own.size and int(sharers.max()) > 1:
        flat = (flat / xp.maximum(sharers, 1)).astype(flat.dtype)
    xp.copyto(out, flat[own])


AS_STRIDED_BACKWARD = declare(
    "as_strided_backward(Tensor grad, int[] shape, int[] strides, int[] size, int[] stride, int? storage_offset) -> Tensor",
    Kind.OPAQUE, meta=_as_strided_backward_meta, kernel=_as_strided_backward,
    vjp={"grad": lambda g, size, stride, storage_offset: OPS["as_strided"](g, size, stride, storage_offset)},
    samples=lambda make: iter([(make(3, 3), (6,), (1,), (3, 3), (1, 1), None)]), linear_in=("grad",))  # fmt: skip
