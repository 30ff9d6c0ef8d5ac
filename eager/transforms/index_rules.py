"""Batching rules of ops that read or write at positions.

Where the positions are the same for all rows, the op works on the batch with its dim moved by one; where they
differ, the row number becomes one more index.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.base.spec import broadcast_shapes
from eager.optable.table import OPS, Op
from eager.transforms.batching import Batching, Rule

TensorBase = _native.TensorBase


def _rows(b: Batching, like: Any, ndim: int) -> Any:
    """Row numbers (b, 1, ..., 1) with `ndim` dims behind the first."""
    return OPS["arange"](0, b.size, 1, like.dtype, like.device).reshape((b.size, *(1,) * ndim))


def _spread(b: Batching, index: Any, dim: int, shape: Sequence[int]) -> Any:
    """A 1-d (or 0-d) index per row as an index of every element, (b, *shape with len(index) at dim)."""
    v = b.front(index).reshape((b.size, *(1,) * dim, -1, *(1,) * (len(shape) - dim - 1)))
    full = (b.size, *shape[:dim], v.shape[dim + 1], *shape[dim + 1 :])
    return OPS["expand"](v, full)


def _index_select(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, dim, index = args
    if x.ndim == 0:
        return NotImplemented if b.is_batched(index) else OPS["clone"](b.front(x), None)
    d = dim % x.ndim
    if not b.is_batched(index):
        return op(b.front(x), d + 1, index)
    return OPS["gather"](b.front(x), d + 1, _spread(b, index, d, tuple(x.shape)))


def _index_write(name: str, source_at: int) -> Rule:
    """index_add, index_copy, index_fill: the same positions in all rows, or the scatter of that name."""

    def rule(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
        x, dim, index = args[:3]
        if x.ndim == 0:
            return NotImplemented
        d, values = dim % x.ndim, list(args)
        values[0], values[1] = b.front(x), d + 1
        source = args[source_at]
        if not b.is_batched(index):
            if op.name == "index_fill" and b.is_batched(source):
                return NotImplemented
            values[source_at] = source if op.name == "index_fill" else b.front(source)
            return op(*values)
        at = _spread(b, index, d, tuple(x.shape))
        v = b.front(source) if isinstance(source, TensorBase) else source
        if op.name == "index_fill":
            v = v.reshape((-1, *(1,) * x.ndim)) if isinstance(v, TensorBase) else OPS["full"]((1,), v, x.dtype, x.device)
        if op.name == "index_add" and args[4] != 1:
            v = v * args[4]
        return OPS[name](values[0], d + 1, at, OPS["expand"](v, tuple(at.shape)))

    return rule


def _key(b: Batching, x: Any, indices: Sequence[Any]) -> tuple[list[Any], int, int]:
    """The physical index list, how many dims the indices broadcast to, and where a row's result has them."""
    dims = [i for i, t in enumerate(indices) if t is not None]
    ndim = len(broadcast_shapes(*(indices[i].shape for i in dims)))
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    place = dims[0] if adjacent else 0
    if not any(b.is_batched(indices[i]) for i in dims):
        return [None, *indices], ndim, place
    key = [None if t is None else b.aligned(t, ndim) for t in indices]
    return [_rows(b, indices[dims[0]], ndim), *key], ndim, place


def _moved(y: Any, source: int, count: int, target: int) -> Any:
    """`y` with the `count` dims that begin at `source` moved to begin at `target`."""
    order = [i for i in range(y.ndim) if not source <= i < source + count]
    return OPS["permute"](y, (*order[:target], *range(source, source + count), *order[target:]))


def _index(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Move the dims of the indices, which come first if an index has rows, to their position in one row."""
    x, indices = args
    if all(t is None for t in indices):
        return op(b.front(x), [None, *indices])
    key, ndim, place = _key(b, x, indices)
    v = b.front(x)
    y = op(v, key)
    if key[0] is None:
        first = next(i for i, t in enumerate(key) if t is not None)
        here = first if _adjacent(key) else 0
        return y if here == place + 1 else _moved(y, here, ndim, place + 1)
    here = 0  # row numbers are in the key: broadcast dims lead, the rows among them first, unless all are adjacent
    return y if place == 0 else _moved(y, here + 1, ndim, place + 1)


def _adjacent(key: Sequence[Any]) -> bool:
    dims = [i for i, t in enumerate(key) if t is not None]
    return dims == list(range(dims[0], dims[0] + len(dims)))


def _index_put(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """All positions as explicit ones along the leading dims, so that values line up with the rows."""
    x, indices, values, accumulate = args
    dims = [i for i, t in enumerate(indices) if t is not None]
    if not dims:
        return NotImplemented
    key, ndim, place = _key(b, x, indices)
    if key[0] is None:
        key[0] = _rows(b, indices[dims[0]], ndim)
    rest = x.ndim - len(dims)
    if isinstance(values, TensorBase):
        v = b.aligned(values, ndim + rest) if b.is_batched(values) else values
        if place and b.is_batched(values):
            v = _moved(v, place + 1, ndim, 1)
        elif place and v.ndim > rest - place:  # from outside: its dims count from the right of a row's result
            full = OPS["view"](v, (*(1,) * (ndim + rest - v.ndim), *v.shape))
            v = _moved(full, place, ndim, 0)
    else:
        v = values
    return op(b.front(x), key, v, accumulate)


def _embedding(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    weight, indices, padding_idx = args
    if not b.is_batched(weight):
        return op(weight, b.front(indices), padding_idx)
    if padding_idx >= 0:
        return NotImplemented  # the row of a flattened table that gets no gradient would not be one
    v = b.front(weight)
    at = b.front(indices) + _rows(b, indices, indices.ndim) * weight.shape[0]
    return op(v.reshape((v.shape[0] * v.shape[1], v.shape[2])), at, padding_idx)


def _diagonal_scatter(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, src, offset, dim1, dim2 = args
    return op(b.front(x), b.front(src), offset, dim1 % x.ndim + 1, dim2 % x.ndim + 1)


def _split_dim(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """slice_scatter and select_scatter: (x, src, dim, ...)."""
    x, src, dim, *rest = args
    return op(b.front(x), b.front(src), dim % x.ndim + 1, *rest)


RULES: dict[str, Rule] = {
    "index_select": _index_select, "index_add": _index_write("scatter_add", 3),
    "index_write": _index_write("scatter", 3), "index": _index, "index_put": _index_put, "embedding": _embedding,
    "diagonal_scatter": _diagonal_scatter, "split_dim": _split_dim,
}  # fmt: skip
