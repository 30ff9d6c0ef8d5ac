"""Functions that rearrange elements: flips, rolls, triangles, repetition, and writes of a part into a copy."""
from __future__ import annotations

from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.memory_format import contiguous_format
from eager.base.overlap import ADVICE
from eager.base.spec import TensorSpec, is_dense, normalize_dim
from eager.base.symint import as_count
from eager.functions.creation import check_layout
from eager.functions.views import check_geometry, sizes_of, transpose
from eager.optable.asserting import demand
from eager.optable.memory import empty
from eager.optable.out import become, reshape_storage, write_out
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.table import OPS
from eager.public.record import Out, public
from eager.tape.record import owned

TensorBase = _native.TensorBase


def _out(result: Any, out: Any) -> Any:
    return result if out is None else write_out(out, result)


def _dims(input: Any, dims: Any) -> tuple[int, ...]:  # noqa: A002
    """Dims made non-negative; a repeated one is refused."""
    result = tuple(normalize_dim(d, input.ndim) for d in dims)
    for d in result:
        if result.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return result


@public(lists_only=True)
def flip(input: Any, *along: Any, dims: Any = None) -> Any:  # noqa: A002
    """A copy with the order of elements reversed along `dims`. Raises: IndexError for a wrong dim, RuntimeError for a repeated dim."""
    return OPS["flip"](input, _dims(input, sizes_of(along if dims is None else (dims,))))


def fliplr(input: Any) -> Any:  # noqa: A002
    """Reversed along dim 1."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return OPS["flip"](input, (1,))


def flipud(input: Any) -> Any:  # noqa: A002
    """Reversed along dim 0."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return OPS["flip"](input, (0,))


@public(out=Out())
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:  # noqa: A002
    """Elements shifted cyclically along `dims`; without dims, in the flattened tensor. Raises: RuntimeError, IndexError."""
    shifts = tuple(as_count(n) for n in shifts) if isinstance(shifts, (tuple, list)) else (as_count(shifts),)
    dims = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return OPS["roll"](input, shifts, tuple(normalize_dim(d, input.ndim) for d in dims))


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:  # noqa: A002
    """Turned `k` times by 90 degrees in the plane of two dims."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = (normalize_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 0:
        return OPS["clone"](input, None)
    if k == 2:
        return OPS["flip"](input, (a, b))
    return owned(transpose(OPS["flip"](input, (b,)), a, b)) if k == 1 else OPS["flip"](transpose(input, a, b), (b,))


@public(out=Out(exact=True))
def tril(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:  # noqa: A002
    """The lower triangle of each matrix (*, m, n), with zeros above `diagonal`. Raises: RuntimeError for fewer than 2 dims."""
    return _out(OPS["tril"](input, diagonal), out)


@public(out=Out(exact=True))
def triu(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:  # noqa: A002
    """The upper triangle of each matrix (*, m, n), with zeros below `diagonal`. Raises: RuntimeError for fewer than 2 dims."""
    return _out(OPS["triu"](input, diagonal), out)


def _triangle_indices(lower: bool) -> Any:
    def indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None,
                pin_memory: bool = False) -> Any:  # fmt: skip
        """Coordinates (2, n) of a triangle of a (row, col) matrix, row by row."""
        check_layout(layout)
        inside = np.tri(row, col, offset if lower else offset - 1, dtype=bool)
        places = np.nonzero(inside if lower else ~inside)
        result = OPS["int_table"](tuple(np.concatenate(places).tolist()), None).reshape(2, len(places[0]))
        result = result if dtype is None and device is None else result.to(device=device, dtype=dtype)
        return result.pin_memory() if pin_memory else result

    indices.__name__ = indices.__qualname__ = "tril_indices" if lower else "triu_indices"
    return indices


@public(out=Out(exact=True, differentiable=False))
def diag(input: Any, diagonal: int = 0, *, out: Any = None) -> Any:  # noqa: A002
    """A diagonal matrix of a vector, or a copy of the diagonal of a matrix. Raises: RuntimeError for other ranks."""
    if input.ndim == 1:
        return _out(OPS["diag_embed"](input, diagonal, -2, -1), out)
    if input.ndim == 2:
        return _out(OPS["clone"](OPS["diagonal"](input, diagonal, 0, 1), "contiguous"), out)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: A002
    """Diagonal matrices from the last dim, spanning dims `dim1` and `dim2` of the result."""
    return OPS["diag_embed"](input, offset, dim1, dim2)


def diagflat(input: Any, offset: int = 0) -> Any:  # noqa: A002
    """A diagonal matrix from all elements."""
    return OPS["diag_embed"](input.reshape(-1), offset, -2, -1)


@public(autocast=FLOAT32_ON_CPU)
def trace(input: Any) -> Any:  # noqa: A002
    """Sum of the diagonal of a matrix (m, n), of shape (). Raises: RuntimeError for other ranks."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return OPS["sum"](OPS["diagonal"](input, 0, 0, 1), (0,), False, None)


# ---- repetition ----


def repeat(self: Any, *counts: Any, repeats: Any = None) -> Any:
    """Copies side by side, so many along each dim; more counts than dims add leading dims."""
    return OPS["repeat"](self, sizes_of(counts if repeats is None else (repeats,)))


@public(lists_only=True)
def tile(input: Any, *times: Any, dims: Any = None) -> Any:  # noqa: A002
    """`repeat`, with a count of 1 for each leading dim that `dims` omits."""
    counts = sizes_of(times if dims is None else (dims,))
    return OPS["repeat"](input, (1,) * (input.ndim - len(counts)) + counts)


def repeat_interleave(input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Any:  # noqa: A002
    """Each slice along `dim` (each element, without one) `repeats` times in a row; repeats is an int or a tensor of counts."""
    if repeats is None:
        return OPS["repeat_indices"](input)
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = normalize_dim(dim, input.ndim)
    if input.ndim == 0:
        input = OPS["unsqueeze"](input, 0)
    if isinstance(repeats, (list, tuple)):
        repeats = OPS["int_table"](tuple(repeats), input.device)
    if not isinstance(repeats, TensorBase):
        _check_output_size(output_size, int(repeats) * input.shape[d])
        return OPS["repeat_each"](input, int(repeats), d)
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if repeats.numel() == 1:
        repeats = OPS["expand"](repeats, (input.shape[d],))
    if repeats.numel() != input.shape[d]:
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and "
                           f"input.size({d}) = {input.shape[d]}")  # fmt: skip
    if output_size is not None:
        demand(OPS["eq"](OPS["sum"](repeats, (0,), False, None), output_size), RuntimeError, "allocated size does not match required size")
    return OPS["index_select"](input, d, OPS["repeat_indices"](repeats))


def _check_output_size(given: int | None, size: int) -> None:
    if given is not None and given != size:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {size} but got {given}")


# ---- copies with a part replaced ----


@public(out=Out(exact=True))
def slice_scatter(input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:  # noqa: A002
    """A copy of `input` with `src` written to input[start:end:step] along `dim`. Raises: RuntimeError if src has another shape."""
    return OPS["slice_scatter"](input, src, normalize_dim(dim, input.ndim), start, end, step)


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:  # noqa: A002
    """A copy of `input` with `src` in place of the slice `index` along `dim`."""
    return OPS["select_scatter"](input, src, normalize_dim(dim, input.ndim), index)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:  # noqa: A002
    """A copy of `input` with `src` in place of a diagonal."""
    return OPS["diagonal_scatter"](input, src, offset, dim1, dim2)


def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:  # noqa: A002
    """A copy of `input` with `src` in place of the strided view of its memory.

    storage_offset counts from the start of the memory, by default from the first element of `input`.
    """
    check_geometry(size, stride, storage_offset)
    if any(st == 0 and n > 1 for n, st in zip(size, stride, strict=True)) and 0 not in tuple(size):
        raise RuntimeError(f"unsupported operation: more than one element of the written-to tensor refers to {ADVICE}")
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    if input.numel() and not is_dense(input.shape, input.stride()):  # with gaps: the memory that it spans is dense
        span = 1 + sum((n - 1) * s for n, s in zip(input.shape, input.stride(), strict=True))
        memory = OPS["as_strided"](input, (span,), (1,), input.storage_offset())
        written = OPS["as_strided_scatter"](memory, src, tuple(size), tuple(stride), offset)
        return OPS["as_strided"](written, tuple(input.shape), tuple(input.stride()), 0)
    return OPS["as_strided_scatter"](input, src, tuple(size), tuple(stride), offset)


def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Write `fill_value` along the main diagonal; with `wrap`, again below in tall matrices."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    n = min(self.shape)
    self.as_strided((n,), (sum(self.stride()),), self.storage_offset()).fill_(fill_value)
    rows, cols = self.shape[0], self.shape[1]
    if wrap and self.ndim == 2:
        for top in range(cols + 1, rows, cols + 1):
            fill_diagonal_(OPS["slice"](self, 0, top, None, 1), fill_value)
    return self


def resize_(self: Any, *sizes: Any, memory_format: Any = None) -> Any:
    """Take another shape over the same memory, row-major; new memory where it does not suffice (new elements undefined)."""
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format not in (None, contiguous_format):
        raise NotImplementedError(f"resize_: memory_format {memory_format} is not implemented; allowed: torch.contiguous_format")
    size = sizes_of(sizes)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {next(n for n in size if n < 0)}: {list(size)}")
    if size == tuple(self.shape):
        return self
    spec = TensorSpec.contiguous(size, self.dtype, self.device)
    if reshape_storage(self, spec):
        return self
    grown = empty(spec)
    if self.numel():
        kept = OPS["slice"](grown.reshape(-1), 0, 0, self.numel(), 1)
        OPS["copy_"](kept, self.reshape(-1))
    become(self, grown)
    return self


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:  # noqa: A002
    """Pad by (before, after) pairs from the last dim backwards; mode is constant, reflect, replicate or circular."""
    pad = tuple(int(p) for p in pad)
    if mode == "constant":
        return OPS["constant_pad_nd"](input, pad, 0 if value is None else float(value))
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode in ("reflect", "replicate", "circular") and (len(pad) not in (2, 4, 6) or input.ndim - len(pad) // 2 not in (1, 2)):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    return OPS["pad_indexed"](input, pad, mode)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803 - torch's name
    """Powers of a vector's elements, as columns. Raises: RuntimeError for a tensor that is not a vector."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    x = OPS["to_dtype"](x, dtypes.int64) if x.dtype.is_integral else x
    columns = [OPS["pow"](x, i) for i in range(n)]
    return OPS["stack"](columns if increasing else columns[::-1], 1) if n else x.new_empty((x.shape[0], 0))


FUNCTIONS: dict[str, Any] = {
    "flip": flip, "fliplr": fliplr, "flipud": flipud, "roll": roll, "rot90": rot90, "tril": tril, "triu": triu,
    "tril_indices": _triangle_indices(True), "triu_indices": _triangle_indices(False), "diag": diag, "diag_embed": diag_embed,
    "diagflat": diagflat, "trace": trace, "tile": tile, "repeat_interleave": repeat_interleave, "slice_scatter": slice_scatter,
    "select_scatter": select_scatter, "diagonal_scatter": diagonal_scatter, "as_strided_scatter": as_strided_scatter,
    "vander": vander, "constant_pad_nd": lambda input, pad, value=0: OPS["constant_pad_nd"](input, tuple(pad), value),
}  # fmt: skip
METHODS: dict[str, Any] = {
    **{name: fn for name, fn in FUNCTIONS.items() if name not in ("tril_indices", "triu_indices", "vander", "constant_pad_nd")},
    "repeat": repeat, "resize_": resize_, "tril_": OPS["tril_"], "triu_": OPS["triu_"], "fill_diagonal_": fill_diagonal_,
}  # fmt: skip
