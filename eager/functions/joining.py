"""Joining tensors and cutting them apart: cat, stack, split, chunk, unbind and their kin."""
from __future__ import annotations

import itertools
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.device import default_device
from eager.base.dtypes import c_name, result_type, scalar_name
from eager.base.overlap import check_no_overlap
from eager.base.spec import broadcast_shapes, normalize_dim
from eager.base.symint import as_int
from eager.optable.out import write_out
from eager.optable.precision import PROMOTE
from eager.optable.table import OPS
from eager.public.record import Out, public, variant
from eager.tape.record import note_one_of_many

TensorBase = _native.TensorBase


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result)


def _list(who: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, TensorBase) or not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{who}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    for i, t in enumerate(tensors):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return list(tensors)


@public(autocast=PROMOTE)
def cat(tensors: Any, dim: int = 0, *, axis: Any = None, out: Any = None) -> Any:
    """The tensors joined along `dim`, in the promoted dtype. All other sizes agree; tensors of shape (0,) are skipped.

    Raises: ValueError for no tensors, RuntimeError for sizes or ranks that differ, IndexError for a wrong dim.
    """
    tensors = _list("cat", tensors)
    if axis is not None:
        if dim != 0:
            raise TypeError(f"cat() got both 'dim' ({dim}) and 'axis' ({axis}), which name one argument")
        dim = axis
    if dim.__class__ is not int or dim < 0:  # the op itself judges the others
        dim = normalize_dim(dim, max((t.ndim for t in tensors), default=1)) if tensors else 0
    if out is not None:
        check_no_overlap(out, tuple(tensors), same_allowed=False)
        if tensors and not dtypes.can_cast(result_type(*tensors), out.dtype):
            raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {c_name(out.dtype)}")
    return _out(OPS["cat"](tensors, dim), out)


@public(out=Out(joins=True), axis=True, autocast=PROMOTE)
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Tensors of one shape joined along a new dim. Raises: RuntimeError for no tensors or other shapes, IndexError for a wrong dim."""
    tensors = _list("stack", tensors)
    return _out(OPS["stack"](tensors, normalize_dim(dim, tensors[0].ndim + 1) if tensors else 0), out)


@public(parsed=False)
def atleast_1d(*tensors: Any) -> Any:
    """Tensors of at least one dim: () -> (1,). Other tensors are returned. A tuple for several tensors."""
    return _each(tensors, lambda t: t.reshape(1) if t.ndim == 0 else t)


@public(parsed=False)
def atleast_2d(*tensors: Any) -> Any:
    """Tensors of at least two dims: () -> (1, 1), (n,) -> (1, n). Other tensors are returned. A tuple for several tensors."""
    return _each(tensors, lambda t: t.reshape(1, -1) if t.ndim < 2 else t)


@public(parsed=False)
def atleast_3d(*tensors: Any) -> Any:
    """Tensors of at least three dims: () -> (1, 1, 1), (n,) -> (1, n, 1), (n, m) -> (n, m, 1). A tuple for several tensors."""

    def deepen(t: Any) -> Any:
        if t.ndim < 2:
            return t.reshape(1, -1, 1)
        return t.unsqueeze(-1) if t.ndim == 2 else t

    return _each(tensors, deepen)


def _each(tensors: tuple[Any, ...], fn: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(map(fn, _list(fn.__name__, tensors[0])))
    return fn(tensors[0]) if len(tensors) == 1 else tuple(map(fn, tensors))


def _stacked(who: str, tensors: Any) -> list[Any]:
    if not len(tensors):
        raise RuntimeError(f"{who} expects a non-empty TensorList")
    return _list(who, tensors)


@public(out=Out(joins=True))
def hstack(tensors: Any, *, out: Any = None) -> Any:
    """The tensors joined along dim 1, or dim 0 for vectors and scalars. Raises: RuntimeError for no tensors or sizes that differ."""
    tensors = [atleast_1d(t) for t in _stacked("hstack", tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1, out=out)


@public(out=Out(joins=True))
def vstack(tensors: Any, *, out: Any = None) -> Any:
    """The tensors joined along dim 0, after `atleast_2d`. Raises: RuntimeError for no tensors or sizes that differ."""
    return cat([atleast_2d(t) for t in _stacked("vstack", tensors)], 0, out=out)


@public(out=Out(joins=True))
def dstack(tensors: Any, *, out: Any = None) -> Any:
    """The tensors joined along dim 2, after `atleast_3d`. Raises: RuntimeError for no tensors or sizes that differ."""
    return cat([atleast_3d(t) for t in _stacked("dstack", tensors)], 2, out=out)


@public(out=Out(joins=True))
def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """The tensors joined along dim 1; a vector (n,) becomes a column (n, 1). Raises: RuntimeError for sizes that differ."""
    return cat([t.reshape(-1, 1) if t.ndim < 2 else t for t in _stacked("column_stack", tensors)], 1, out=out)


@public(parsed=False)
def block_diag(*tensors: Any) -> Any:
    """A matrix with the given matrices along its diagonal and zeros elsewhere. Raises: RuntimeError for more than two dims."""
    if not tensors:
        return OPS["full"]((1, 0), 0.0, None, default_device())
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions")
    blocks = [atleast_2d(t) for t in tensors]
    width, at, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        rows.append(OPS["constant_pad_nd"](b, (at, width - at - b.shape[1]), 0))
        at += b.shape[1]
    return OPS["cat"](rows, 0)


# ---- cutting ----


@public(parsed=False)
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> tuple[Any, ...]:
    """Views of consecutive parts along `dim`: of one size (the last may be smaller), or of the sizes in a list.

    The method names the size `split_size`, the function `split_size_or_sections`.
    """
    if split_size is not None:
        if split_size_or_sections is not None:
            raise TypeError("split() got multiple values for argument 'split_size'")
        split_size_or_sections = split_size
    name = "SplitWithSizes" if isinstance(split_size_or_sections, (list, tuple)) else "Split"
    return note_one_of_many(_split(tensor, split_size_or_sections, dim), name)


def _split(tensor: Any, given: Any, dim: int) -> tuple[Any, ...]:
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = normalize_dim(dim, tensor.ndim)
    n = tensor.shape[d]
    if isinstance(given, (list, tuple)):
        return _split_sizes(tensor, [as_int(s) for s in given], d)
    size = as_int(given)
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0:
        if n != 0:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        return (OPS["slice"](tensor, d, 0, 0, 1),)
    count = -(-n // size) if n else 1
    return tuple(OPS["slice"](tensor, d, i * size, min((i + 1) * size, n), 1) for i in range(count))


def _split_sizes(tensor: Any, sizes: list[int], d: int) -> tuple[Any, ...]:
    n = tensor.shape[d]
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}")
    if sum(sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), but "
                           f"got split_sizes={sizes}")  # fmt: skip
    parts, at = [], 0
    for s in sizes:
        parts.append(OPS["slice"](tensor, d, at, at + s, 1))
        at += s
    return tuple(parts)


def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """Views of consecutive parts of the given sizes along `dim`."""
    return split(input, list(split_sizes), dim)


def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """`split` into parts that may be written to."""
    return _split(input, as_int(split_size), dim)


def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """`split_with_sizes` into parts that may be written to."""
    return _split(input, list(split_sizes), dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """At most `chunks` parts of one size along `dim`, the last one perhaps smaller."""
    return note_one_of_many(unsafe_chunk(input, chunks, dim), "Split")


def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """`chunk` into parts that may be written to."""
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = normalize_dim(dim, input.ndim)
    n = input.shape[d]
    size = -(-n // chunks)
    return _split(input, size, d) if size else _split_sizes(input, [0] * chunks, d)


def _one_of(who: str, *names: Any) -> Any:
    """Where to cut, from the one of its names that was given. Raises TypeError unless exactly one was."""
    given = [v for v in names if v is not None]
    if len(given) != 1:
        raise TypeError(f"{who}() takes one of indices_or_sections, indices and sections, got {len(given)}")
    return given[0]


def tensor_split(input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,  # noqa: A002
                 sections: int | None = None, tensor_indices_or_sections: Any = None) -> tuple[Any, ...]:  # fmt: skip
    """Parts along `dim`: so many, as even as can be, or cut at the given positions."""
    indices_or_sections = _one_of("tensor_split", indices_or_sections, tensor_indices_or_sections, indices, sections)
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = normalize_dim(dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, TensorBase):
        if indices_or_sections.dtype is not dtypes.int64:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                               f"{scalar_name(indices_or_sections.dtype)}")  # fmt: skip
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        base, more = divmod(n, indices_or_sections)
        return _split_sizes(input, [base + (i < more) for i in range(indices_or_sections)], d)
    cuts = [0, *(int(i) for i in indices_or_sections), n]
    return tuple(OPS["slice"](input, d, a, b, 1) for a, b in itertools.pairwise(cuts))


def _along(who: str, min_ndim: int, dim: Any) -> Any:
    def parts(input: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: int | None = None) -> tuple[Any, ...]:  # noqa: A002
        indices_or_sections = _one_of(who, indices_or_sections, indices, sections)
        if input.ndim < min_ndim:
            raise RuntimeError(f"torch.{who} requires a tensor with at least {min_ndim} dimension, but got a tensor with "
                               f"{input.ndim} dimensions!")  # fmt: skip
        d = dim if dim != "h" else 0 if input.ndim == 1 else 1
        if isinstance(indices_or_sections, int) and (indices_or_sections <= 0 or input.shape[d] % indices_or_sections):
            raise RuntimeError(f"torch.{who} attempted to split along dimension {d}, but the size of the dimension {input.shape[d]} is not "
                               f"divisible by the split_size {indices_or_sections}!")  # fmt: skip
        return tensor_split(input, indices_or_sections, d)

    parts.__name__ = parts.__qualname__ = who
    return parts


@public(axis=True)
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:  # noqa: A002
    """A tuple of the slices along `dim`, without `dim`; they are views. Raises: IndexError for a wrong dim or a scalar."""
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = normalize_dim(dim, input.ndim)
    return note_one_of_many(tuple(OPS["select"](input, d, i) for i in range(input.shape[d])), "Unbind")


# ---- grids and products ----


def _operands(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


@public(parsed=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinate grids of vectors, one per vector. indexing: "ij" (default, (n, m)) or "xy" ((m, n)). Raises: RuntimeError."""
    vectors = _operands(tensors)
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for v in vectors:
        if v.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {v}")
    if any(v.dtype is not vectors[0].dtype for v in vectors):
        raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(vectors) > 1
    if swap:
        vectors = (vectors[1], vectors[0], *vectors[2:])
    shape = tuple(v.numel() for v in vectors)
    grids = [OPS["expand"](v.reshape(tuple(-1 if i == j else 1 for j in range(len(shape)))), shape) for i, v in enumerate(vectors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(parsed=False)
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """A tuple of views of the tensors, expanded to their common shape. Raises: RuntimeError if they do not broadcast."""
    given = _operands(tensors)
    shape = broadcast_shapes(*(t.shape for t in given))
    return tuple(OPS["expand"](t, shape) for t in given)


@public(ints_apart=True)
def broadcast_to(input: Any, size: Any) -> Any:  # noqa: A002
    """A view of `input` expanded to the shape `size`. Raises: RuntimeError if input does not broadcast to it."""
    return OPS["expand"](input, tuple(size))


def broadcast_shapes_(*shapes: Any) -> Any:
    """The shape that all broadcast to."""
    from_int = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    return _size_class(broadcast_shapes(*from_int))


def _size_class(shape: tuple[int, ...]) -> Any:
    return type(_native.empty(0, (0,), (1,)).shape)(shape)


@public(parsed=False)
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of the vectors' elements, one per row. Raises: RuntimeError for a tensor that is not a vector."""
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return OPS["stack"]([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:  # noqa: A002
    """All combinations of `r` elements of a vector, one per row, in order of position."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return OPS["full"]((0,), 0, input.dtype, input.device)
    n = input.shape[0]
    grids = meshgrid(*([OPS["arange"](0, n, 1, None, input.device)] * r), indexing="ij")
    keep = OPS["full"]((n,) * r, True, None, input.device)
    for a, b in itertools.pairwise(grids):
        keep = keep & ((a <= b) if with_replacement else (a < b))
    return OPS["stack"]([OPS["masked_select"](OPS["expand"](_axis(input, i, r), (n,) * r), keep) for i in range(r)], 1)


def _axis(v: Any, i: int, ndim: int) -> Any:
    return v.reshape(tuple(-1 if i == j else 1 for j in range(ndim)))


FUNCTIONS: dict[str, Any] = {
    "cat": cat, "concat": cat, "concatenate": cat, "stack": stack, "hstack": hstack, "vstack": vstack,
    "row_stack": variant(vstack, name="row_stack"),
    "dstack": dstack, "column_stack": column_stack, "block_diag": block_diag, "split": split,
    "split_with_sizes": split_with_sizes, "chunk": chunk, "unsafe_split": unsafe_split, "unsafe_chunk": unsafe_chunk,
    "unsafe_split_with_sizes": unsafe_split_with_sizes, "tensor_split": tensor_split, "hsplit": _along("hsplit", 1, "h"),
    "vsplit": _along("vsplit", 2, 0), "dsplit": _along("dsplit", 3, 2), "unbind": unbind, "meshgrid": meshgrid,
    "broadcast_tensors": broadcast_tensors, "broadcast_to": broadcast_to, "broadcast_shapes": broadcast_shapes_,
    "cartesian_prod": cartesian_prod, "combinations": combinations, "atleast_1d": atleast_1d, "atleast_2d": atleast_2d,
    "atleast_3d": atleast_3d,
}  # fmt: skip
METHODS: dict[str, Any] = {name: FUNCTIONS[name] for name in (
    "split", "split_with_sizes", "chunk", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "tensor_split",
    "hsplit", "vsplit", "dsplit", "unbind")}  # fmt: skip
METHODS["broadcast_to"] = broadcast_to
