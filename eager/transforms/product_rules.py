"""Batching rules of products: matrix products become batched or wider ones, convolutions grouped ones."""
from __future__ import annotations

from typing import Any

from eager.optable.table import OPS, Op
from eager.transforms.batching import Batching, Rule


def _mm(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, other = args
    if b.is_batched(other):
        return OPS["bmm"](b.front(x), b.front(other))
    y = op(b.fold(x), other)  # one product of all rows
    return OPS["view"](y, (b.size, x.shape[0], other.shape[1]))


def _float8_mm(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, other = args
    return OPS["bmm"](b.front(x).float(), b.front(other).float()) if b.is_batched(other) else _mm(b, op, args)


def _bmm(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    return b.unfold(op(b.fold(args[0]), b.fold(args[1])))


def _linear(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """A separate weight for each row makes a batched product."""
    x, weight, bias = args
    if not b.is_batched(weight) and not b.is_batched(bias):
        return op(b.front(x), weight, bias)
    if weight.ndim != 2:
        return NotImplemented
    if not b.is_batched(weight):
        y = op(b.front(x), weight, None)
    else:
        lead = tuple(x.shape)[:-1]
        v = b.front(x).reshape((b.size, -1, x.shape[-1])) if x.numel() else b.front(x).new_zeros((b.size, 0, x.shape[-1]))
        y = OPS["bmm"](v, OPS["permute"](b.front(weight), (0, 2, 1)))
        y = OPS["view"](y, (b.size, *lead, weight.shape[0]))
    return y if bias is None else y + b.aligned(bias, y.ndim - 1)


def _to_groups(b: Batching, x: Any) -> Any:
    """(b, n, c, *) as (n, b * c, *)."""
    v = b.front(x)
    moved = OPS["permute"](v, (1, 0, *range(2, v.ndim)))
    return moved.reshape((v.shape[1], v.shape[0] * v.shape[2], *v.shape[3:]))


def _from_groups(b: Batching, y: Any) -> Any:
    """(n, b * c, *) as (b, n, c, *)."""
    parts = OPS["view"](y, (y.shape[0], b.size, y.shape[1] // max(b.size, 1), *y.shape[2:]))
    return OPS["permute"](parts, (1, 0, *range(2, parts.ndim)))


def _convolution(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """With one weight for all rows, the rows join the batch of images; otherwise the channels of each row are separate groups."""
    x, weight, bias, *geometry, groups = args
    if not b.is_batched(weight):
        y = b.unfold(op(b.fold(x), weight, None if b.is_batched(bias) else bias, *geometry, groups))
        return _with_bias(b, y, bias) if b.is_batched(bias) else y
    y = _from_groups(b, op(_to_groups(b, x), b.fold(weight), None, *geometry, groups * b.size))
    return y if bias is None else _with_bias(b, y, bias)


def _with_bias(b: Batching, y: Any, bias: Any) -> Any:
    v = b.front(bias)
    return y + v.reshape((b.size, 1, bias.shape[0], *(1,) * (y.ndim - 3)))


def _conv_weight(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    x, grad, *geometry, groups = args
    y = op(_to_groups(b, x), _to_groups(b, grad), *geometry, groups * b.size)
    return b.unfold(y)


RULES: dict[str, Rule] = {
    "mm": _mm, "float8_mm": _float8_mm, "bmm": _bmm, "linear": _linear, "convolution": _convolution, "conv_weight": _conv_weight,
}  # fmt: skip
