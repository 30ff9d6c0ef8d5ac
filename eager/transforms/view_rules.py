"""Batching rules of view ops: the same view of every row, as one view of the batch."""
from __future__ import annotations

from typing import Any

from eager.optable.table import OPS, Op, view_spec
from eager.optable.views import infer_size
from eager.transforms.batching import Batching, Rule


def _view(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, size = args
    return op(b.front(x), (b.size, *infer_size(size, x.numel())))


def _expand(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, size = args
    view_spec(op, args)  # refuses what one row refuses
    v = b.front(x)
    for _ in range(len(size) - x.ndim):
        v = OPS["unsqueeze"](v, 1)
    return op(v, (-1, *size))


def _permute(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, dims = args
    view_spec(op, args)
    return op(b.front(x), (0, *(d % x.ndim + 1 for d in dims)))


def _one_dim(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """slice, select, unfold: (x, dim, ...)."""
    x, dim, *rest = args
    view_spec(op, args)
    return op(b.front(x), dim % x.ndim + 1, *rest)


def _unfold(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, dim, *rest = args
    if x.ndim == 0:
        return op(OPS["unsqueeze"](b.front(x), 1), 1, *rest).select(1, 0)
    return _one_dim(b, op, (x, dim, *rest))


def _unsqueeze(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, dim = args
    view_spec(op, args)
    return op(b.front(x), dim % (x.ndim + 1) + 1)


def _squeeze(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, dims = args
    view_spec(op, args)
    chosen = range(x.ndim) if dims is None else (d % max(x.ndim, 1) for d in dims)
    return op(b.front(x), tuple(d + 1 for d in chosen if x.ndim and x.shape[d] == 1))


def _diagonal(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, offset, dim1, dim2 = args
    view_spec(op, args)
    return op(b.front(x), offset, dim1 % x.ndim + 1, dim2 % x.ndim + 1)


def _as_strided(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """The geometry of one row, and the step from row to row. Raises RuntimeError where a row would reach into others."""
    x, size, stride, offset = args
    v = b.front(x)
    own = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) if x.numel() else 0
    start = 0 if offset is None else offset - v.storage_offset()
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    if start < 0 or start + reach > own:
        at = v.storage_offset()
        raise RuntimeError(f"result = tensor.as_strided({list(size)}, {list(stride)}, {at + start}) can access memory outside of "
                           f"`tensor`. `result` can access some memory in range [{at + start}, {at + start + reach}], but `tensor` "
                           f"can only access some memory in range [{at}, {at + own}]. This is not supported inside of vmap, please "
                           "try to rewrite the `as_strided` call as a sequence of PyTorch view operations")  # fmt: skip
    return op(v, (b.size, *size), (v.stride()[0], *stride), offset)


def _same(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    return op(b.front(args[0]), *args[1:])


RULES: dict[str, Rule] = {
    "view": _view, "expand": _expand, "permute": _permute, "one_dim": _one_dim, "unfold": _unfold,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "diagonal": _diagonal, "as_strided": _as_strided,
    "first_in_front": _same,
}  # fmt: skip
