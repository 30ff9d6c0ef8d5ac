"""Batching rules: an op on rows as one op on the batch.

Owns the rules that hold for many ops (by kind, or by the meaning of the parameters). An op names its rule in its declaration
(`batch`). Views, indexing and products have separate files. Rows lie along dim 0 of a value, so a logical dim d is physical dim d + 1.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.optable.declaration import cast_to
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.transforms import index_rules, product_rules, view_rules
from eager.transforms.batching import Batching, Rule, set_rules

TensorBase = _native.TensorBase


def pointwise(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Broadcasting from the right leaves the rows alone once all operands have the same logical rank.

    A 0-d operand has no say in promotion, but a batch of them would: those cases are cast beforehand.
    """
    tensors = [i for i in op._tensor_at if isinstance(args[i], TensorBase)]
    ndim = max(args[i].ndim for i in tensors)
    scalars = any(b.is_batched(args[i]) and args[i].ndim == 0 for i in tensors)
    compute = op.compute_dtype(*args) if scalars and op.promotion != "raw" and len(op._tensor_at) > 1 else None
    values = list(args)
    for i in tensors:
        v = b.aligned(args[i], ndim)
        casts = compute is not None and not (op.promotion == "select" and i == op._tensor_at[0])
        values[i] = cast_to(v, compute) if casts and compute is not None else v
    return op(*values)


def shaped_by_first(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Pointwise ops whose result has the shape of the first operand (`copy`): it must have rows."""
    ndim = args[0].ndim
    return op(b.front(args[0]), *(b.aligned(a, ndim) for a in args[1:]))


def _as_clone(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    fmt = args[1] if args[1] in (None, "contiguous") else None  # other formats speak of dim 1
    return op(b.front(args[0]), fmt)


def shift(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Logical dims as physical ones."""
    return tuple(d % max(ndim, 1) + 1 for d in dims)


def over_dims(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Ops over listed dims of one tensor: reductions, flip, roll."""
    values = [b.front(a) if isinstance(a, TensorBase) else a for a in args]
    at = next(i for i, p in enumerate(op.schema.params) if p.name == "dims")
    if args[at] is not None:
        values[at] = shift(args[at], args[0].ndim) if args[0].ndim else ()
    return op(*values)


def roll(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Without dims a row is rolled as one line of elements."""
    x, shifts, dims = args
    if dims:
        return over_dims(b, op, args)
    v = b.front(x)
    return op(v.reshape((b.size, x.numel())), shifts, (1,)).reshape(tuple(v.shape))


def cat(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Empty 1-d tensors among others are passed over, as `cat` itself does."""
    tensors, dim = args
    ndim = max(t.ndim for t in tensors)
    kept = [t for t in tensors if t.ndim == ndim or tuple(t.shape) != (0,)]
    return op([b.front(t) for t in kept], dim % ndim + 1)


def arg_reduction(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """argmax and argmin: over several dims the index is into the flattened row."""
    x, dims, keepdim = args
    if len(dims) == 1:
        return over_dims(b, op, args)
    v = b.front(x)
    y = op(v.reshape((v.shape[0], max(math.prod(x.shape), 0))), (1,), False)
    return OPS["view"](y, (v.shape[0], *(1,) * x.ndim)) if keepdim else y


def along_dim(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Ops along one `dim`: all tensors with rows, the dim moved by one. A 0-d row counts as having one element."""
    tensors = list(op.tensors(args))
    flat = all(t.ndim == 0 for t in tensors)
    ndim = 1 if flat else max(t.ndim for t in tensors)

    def front(t: Any) -> Any:
        if t is None:
            return None
        return OPS["unsqueeze"](b.front(t), 1) if t.ndim == 0 else b.front(t)

    values: list[Any] = []
    for p, a in zip(op.schema.params, args, strict=True):
        if p.is_tensor_list:
            values.append([front(t) for t in a])
        elif isinstance(a, TensorBase):
            values.append(front(a))
        else:
            values.append(a % ndim + 1 if p.name == "dim" else a)
    result = op(*values)
    if not flat:
        return result
    if isinstance(result, tuple):
        return tuple(OPS["squeeze"](y, (1,)) for y in result)
    return OPS["squeeze"](result, (1,))


def stack(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    tensors, dim = args
    return op([b.front(t) for t in tensors], dim % (tensors[0].ndim + 1) + 1)


def padded(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Ops whose dims count from the last: the rows are one more leading dim."""
    return op(*(b.front(a) if isinstance(a, TensorBase) else a for a in args))


def last_dims(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Ops on trailing dims that take any leading ones; all tensors need the same rank."""
    tensors = [t for t in op.tensors(args) if isinstance(t, TensorBase)]
    if len({t.ndim for t in tensors}) > 1:
        return NotImplemented
    return padded(b, op, args)


def searched(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """`searchsorted`: one sorted line serves values of any shape; a line per row needs values of its rank."""
    sequence, values, *rest = args
    if not isinstance(values, TensorBase):
        return NotImplemented
    if not b.is_batched(sequence) and sequence.ndim == 1:
        return op(sequence, b.front(values), *rest)
    return last_dims(b, op, args)


def folded(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Ops on (n, c, *): the rows join n. A list of sizes that starts with n and c is of the whole input."""
    x = args[0]
    values = [b.fold(a) if isinstance(a, TensorBase) else a for a in args]
    for i, p in enumerate(op.schema.params):
        if p.name == "size" and len(args[i]) == x.ndim and op.name.endswith("backward"):
            values[i] = (args[i][0] * b.size, *args[i][1:])
    return b.unfold(op(*values))


def repeated(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """`repeat`: its list may add leading dims, before which the rows stay."""
    x, repeats = args
    return op(b.aligned(x, len(repeats)), (1, *repeats))


def normalised(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Layer norms: the trailing dims are the same if the weights are not batched."""
    if any(b.is_batched(a) for a in args[1:]):
        return NotImplemented
    return op(b.front(args[0]), *args[1:])


def drawn(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """Random numbers from batched states, which follow one another: the rows are one long draw."""
    values = list(args)
    values[0] = OPS["select"](b.front(args[0]), 0, 0)
    at = next(i for i, p in enumerate(op.schema.params) if p.name == "size")
    values[at] = (b.size, *args[at])
    return op(*values)


def demanded(b: Batching, op: Op, args: tuple[Any, ...]) -> Any:
    """An assertion on rows: it must hold in all rows."""
    return OPS["expand"](op(b.front(args[0]), *args[1:]), (b.size,))


# By the `batch` of an op's declaration.
RULES: dict[str, Rule] = {
    "as_clone": _as_clone,
    **{rule.__name__: rule for rule in (
        shaped_by_first, over_dims, arg_reduction, along_dim, stack, roll, cat, padded, last_dims, searched, folded, repeated, normalised,
        demanded, drawn)},
    **view_rules.RULES, **index_rules.RULES, **product_rules.RULES,
}  # fmt: skip


def find(op: Op) -> Rule | None:
    """The rule that an op declares, or else the rule of its kind. Raises: KeyError for a declared rule that does not exist."""
    if op.rules.batch:
        return RULES[op.rules.batch]
    return pointwise if op.kind is Kind.POINTWISE else None


set_rules(find)
