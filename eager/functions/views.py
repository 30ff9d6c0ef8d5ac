"""Public view functions: shapes read from ints or tuples, dims counted from either end."""
from __future__ import annotations

import math
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.spec import normalize_dim, normalize_dims
from eager.base.symint import as_int
from eager.optable.out import become
from eager.optable.table import OPS
from eager.optable.views import infer_size, view_strides
from eager.public.record import public
from eager.tape.inplace import check_may_write, take_geometry

TensorBase = _native.TensorBase


def sizes_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """`(2, 3)` from f(2, 3), f((2, 3)) or f([2, 3]); elements may be 0-d integer tensors."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    try:
        return tuple(n if type(n) is int else as_int(n) for n in args)
    except TypeError:
        wrong = next((n for n in args if not hasattr(n, "__index__")), None)
        if wrong is None:
            raise  # the tensor's own error: it is not an integer
        raise TypeError(f"argument 'size' must be tuple of ints, not {type(wrong).__name__}") from None


def given_sizes(name: str, sizes: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    """The shape passed to a factory, by position or as `size=`. Raises: TypeError without a shape."""
    if size is not None and sizes:
        raise TypeError(f"{name}() got multiple values for argument 'size'")
    if size is None and not sizes:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return sizes_of(sizes if size is None else (size,))


def view(self: Any, *sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same memory under another shape, or, given a dtype, its bytes read as that dtype."""
    if len(sizes) == 1 and isinstance(sizes[0], (dtypes.dtype, type)):
        dtype = sizes[0]
    if dtype is not None:
        d = dtypes.meant(dtype)
        return OPS["alias"](self) if d is self.dtype else OPS["view_dtype"](self, d)
    return OPS["view"](self, sizes_of(sizes if size is None else (size,)))


@public(lists_only=True)
def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """A view if the strides allow one, else a copy. One size may be -1. Raises: RuntimeError if the number of elements differs."""
    size = infer_size(sizes_of(sizes if shape is None else (shape,)), input.numel())
    if view_strides(input.shape, input.stride(), size) is None:
        input = OPS["clone"](input, "contiguous")
    return OPS["view"](input, size)


@public(lists_only=True)
def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """A view with the dims in another order. Raises: RuntimeError for a repeated or missing dim."""
    return OPS["permute"](input, sizes_of(order if dims is None else (dims,)))


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """A view with two dims swapped. Raises: IndexError for a dim out of range."""
    a, b = normalize_dim(dim0, input.ndim), normalize_dim(dim1, input.ndim)
    order = list(range(input.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return OPS["permute"](input, tuple(order))


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:  # noqa: A002
    """`transpose`, under numpy's name and with its arguments' names."""
    return transpose(input, axis0, axis1)


def t(input: Any) -> Any:
    """Transpose of a matrix; 0-d and 1-d tensors unchanged."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return OPS["permute"](input, tuple(range(input.ndim))[::-1])


def expand(self: Any, *sizes: Any, size: Any = None, implicit: bool = False) -> Any:
    """A view with dims of size 1 repeated, and leading dims added; -1 keeps a size. Raises: RuntimeError for other sizes."""
    return OPS["expand"](self, sizes_of(sizes if size is None else (size,)))


def expand_as(self: Any, other: Any) -> Any:
    """`expand` to the shape of `other`."""
    return OPS["expand"](self, tuple(other.shape))


def view_as(self: Any, other: Any) -> Any:
    """`view` in the shape of `other`."""
    return OPS["view"](self, tuple(other.shape))


def reshape_as(self: Any, other: Any) -> Any:
    """`reshape` to the shape of `other`."""
    return reshape(self, tuple(other.shape))


@public(axis=True, ints_apart=True)
def squeeze(input: Any, dim: Any = None) -> Any:
    """A view without the dims of size 1: all, or those among `dim`; others stay. Raises: IndexError for a wrong dim."""
    if dim is None:
        return OPS["squeeze"](input, None)
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) > 1:
        normalize_dims(dims, input.ndim)  # raises for a repeated dim
    return OPS["squeeze"](input, dims)


def unsqueeze(input: Any, dim: int) -> Any:
    """A view with a dim of size 1 inserted at `dim`, in [-ndim - 1, ndim]. Raises: IndexError."""
    return OPS["unsqueeze"](input, dim)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The dims from `start_dim` to `end_dim` as one dim; a view if the strides allow one. A 0-d tensor becomes (1,)."""
    if input.ndim == 0:
        normalize_dim(start_dim, 0), normalize_dim(end_dim, 0)
        return reshape(input, 1)
    a, b = normalize_dim(start_dim, input.ndim), normalize_dim(end_dim, input.ndim)
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a == b:
        return input
    shape = tuple(input.shape)
    return reshape(input, *shape[:a], math.prod(shape[a : b + 1]), *shape[b + 1 :])


def ravel(input: Any) -> Any:
    """One dim, row-major: a view where the memory is that already."""
    return reshape(input.contiguous(), -1)


@public(parsed=False)
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """A view with `dim` split into `sizes`, one of which may be -1. Raises: RuntimeError if the sizes do not fit."""
    normalize_dim(dim, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    d = normalize_dim(dim, input.ndim)
    shape = tuple(input.shape)
    return OPS["view"](input, (*shape[:d], *infer_size(tuple(sizes), shape[d]), *shape[d + 1 :]))


def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """A view of `length` elements from `start` along `dim`. Raises: RuntimeError or IndexError for a range outside the dim."""
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, input.ndim)
    start = int(start)
    n = input.shape[d]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [-{n}, {n}], but got {start})")
    start += n if start < 0 else 0
    if length < 0 or start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return OPS["slice"](input, d, start, start + length, 1)


def select(input: Any, dim: int, index: int) -> Any:
    """A view at `index` along `dim`, without that dim. Raises: IndexError for an index out of range."""
    return OPS["select"](input, dim, int(index))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """A view with the dims `source` at the positions `destination`. Raises: RuntimeError for repeated dims or unequal counts."""
    src = [normalize_dim(d, input.ndim) for d in ((source,) if isinstance(source, int) else source)]
    dst = [normalize_dim(d, input.ndim) for d in ((destination,) if isinstance(destination, int) else destination)]
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise RuntimeError(f"movedim: invalid source or destination dims: {source} to {destination}")
    rest = iter(d for d in range(input.ndim) if d not in src)
    placed = dict(zip(dst, src, strict=True))
    return OPS["permute"](input, tuple(placed[i] if i in placed else next(rest) for i in range(input.ndim)))


@public(parsed=False)
def contiguous(self: Any, memory_format: Any = None) -> Any:
    """self if it has the memory format, else a copy that has it. Raises: RuntimeError if the format does not fit the rank."""
    name = getattr(memory_format, "name", memory_format) or "contiguous"
    if name == "preserve" and not self.is_contiguous():
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if name == "preserve" or self.is_contiguous(name) else OPS["clone"](self, name)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of the diagonal of two dims, as the last dim; `offset` > 0 is above the main diagonal."""
    return OPS["diagonal"](input, offset, dim1, dim2)


def unfold(self: Any, dimension: int, size: int, step: int) -> Any:
    """A view of windows of `size` elements, `step` apart, along a dim; the windows' elements are a new last dim."""
    return OPS["unfold"](self, dimension, size, step)


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view with any shape, strides and offset, in elements, over the same memory. Raises: RuntimeError outside of it."""
    check_geometry(size, stride, storage_offset)
    return OPS["as_strided"](input, tuple(size), tuple(stride), storage_offset)


def check_geometry(size: Any, stride: Any, storage_offset: int | None) -> None:
    """Raise RuntimeError for strides that are not one for each size, and for a negative offset."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")


def slice_inverse(input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """A view of the memory of `input` with the geometry of `src`, of which `input` is a slice. As in torch, its place is not read."""
    shape, strides, offset = tuple(src.shape), tuple(src.stride()), src.storage_offset()
    if 0 not in shape:
        count = 1 + offset + sum((n - 1) * st for n, st in zip(shape, strides, strict=True))
        size, have = count * input.dtype.itemsize, input.untyped_storage().nbytes()
        if size > have:
            raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize "
                               f"{input.dtype.itemsize} requiring a storage size of {size} are out of bounds for storage of size {have}")
    return OPS["as_strided"](input, shape, strides, offset)


def detach(input: Any) -> Any:
    """A view without gradient history."""
    return OPS["detach"](input)


def _reverse(self: Any) -> Any:
    return OPS["permute"](self, tuple(range(self.ndim))[::-1])


def _matrix_transpose(self: Any) -> Any:
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return transpose(self, -2, -1)


def _squeeze_apart(input: Any, *dims: Any, **kwargs: Any) -> Any:
    return squeeze(input, dims, **kwargs) if len(dims) > 1 else squeeze(input, *dims, **kwargs)


def _become(fn: Any) -> Any:
    """In-place forms of views (`t_`, `squeeze_`, ...): self takes the view's geometry."""

    def method(input: Any, *args: Any, **kwargs: Any) -> Any:
        if input._requires_grad and _native.grad_enabled():
            check_may_write(input)
        take_geometry(input, fn(input, *args, **kwargs), become)
        return input

    return method


FUNCTIONS: dict[str, Any] = {
    "reshape": reshape, "permute": permute, "transpose": transpose, "swapaxes": swapaxes, "swapdims": transpose, "t": t,
    "squeeze": squeeze, "unsqueeze": unsqueeze, "flatten": flatten, "ravel": ravel, "unflatten": unflatten, "narrow": narrow,
    "select": select, "movedim": movedim, "moveaxis": movedim, "diagonal": diagonal, "as_strided": as_strided,
    "detach": detach, "slice_inverse": slice_inverse, "adjoint": _matrix_transpose, "as_strided_": _become(as_strided),
}  # fmt: skip
METHODS: dict[str, Any] = {
    **FUNCTIONS,
    "view": view, "expand": expand, "expand_as": expand_as, "view_as": view_as, "reshape_as": reshape_as,
    "contiguous": contiguous, "unfold": unfold, "T": property(_reverse), "mT": property(_matrix_transpose),
    "H": property(_matrix_transpose), "squeeze_": _become(_squeeze_apart), "unsqueeze_": _become(unsqueeze), "t_": _become(t),
    "transpose_": _become(transpose), "swapaxes_": _become(swapaxes), "swapdims_": _become(transpose),
}  # fmt: skip
METHODS.pop("detach")
