"""The level of vmap: tensors with a hidden leading dim, and ops that compute all rows in one call.

A `BatchedTensor` has the shape of one row; its value below has the rows along dim 0. A rule of `eager.transforms.rules` maps an
op on batched tensors to ops on the values: the op's own rule, the rule of its kind (pointwise, reduction), or its
decomposition. An op without a rule runs row by row, with one warning: slow, never wrong.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.tape.inplace import check_result
from eager.transforms.level import Level, Wrapped

TensorBase = _native.TensorBase
Rule = Callable[["Batching", Op, tuple[Any, ...]], Any]

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try "
    "to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file "
    "a bug report."
)
_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
    "please file an issue at https://github.com/pytorch/pytorch/issues ."
)
_INPLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
    "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
    "Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being called inside the "
    "PyTorch framework, please file a bug report instead."
)
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


class BatchedTensor(Wrapped):
    """One row of a batch, as the mapped function sees it. Its data cannot be read."""

    _level: Batching

    @property
    def _batches(self) -> frozenset[Any]:  # type: ignore[override]
        return self._value._batches | {self._level}  # type: ignore[no-any-return]

    def _adopt(self, t: Any) -> Any:
        level = self._level
        return level.wrap(OPS["clone"](level.front(t), "contiguous"))

    def item(self) -> Any:
        raise RuntimeError(_ITEM)

    __int__ = __float__ = __index__ = __complex__ = item

    def tolist(self) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def __bool__(self) -> bool:
        raise RuntimeError(_CONTROL_FLOW)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        inside = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._level.depth}, bdim=0, value=\n    {inside}\n)"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


class Batching(Level):
    """One vmap in progress over `size` rows. randomness: "error", "same" (for all rows) or "different"."""

    wrapper = BatchedTensor

    def __init__(self, depth: int, size: int, randomness: str) -> None:
        self.depth, self.size, self.randomness = depth, size, randomness
        self.over_fakes = False  # the values have no data: the mapped function is being traced

    def wrap(self, value: Any) -> Any:
        """A row of `value`, whose rows lie along dim 0."""
        return self.make(value, tuple(value.shape)[1:], value.stride()[1:], fake=True)

    # ---- queries of the rules ----

    def is_batched(self, x: Any) -> bool:
        return isinstance(x, BatchedTensor) and x._level is self

    def front(self, x: Any) -> Any:
        """The value of a tensor with its rows along dim 0; one from outside is repeated (as a view)."""
        if self.is_batched(x):
            return x._value
        if isinstance(x, TensorBase):
            return OPS["expand"](OPS["unsqueeze"](x, 0), (self.size, *x.shape))
        return x

    def aligned(self, x: Any, ndim: int) -> Any:
        """The value of a batched tensor with its logical dims padded on the left to `ndim`; any other argument unchanged."""
        if not self.is_batched(x):
            return x
        v = x._value
        pad = ndim - x.ndim
        return OPS["view"](v, (v.shape[0], *(1,) * pad, *v.shape[1:])) if pad > 0 and v.numel() else _unsqueezed(v, pad)

    def fold(self, x: Any) -> Any:
        """Rows and the first logical dim as one dim: (b, n, *) to (b * n, *)."""
        v = self.front(x)
        return v.reshape((v.shape[0] * v.shape[1], *v.shape[2:]))

    def unfold(self, y: Any) -> Any:
        """The inverse of `fold`, for a result."""
        if isinstance(y, tuple):
            return tuple(self.unfold(t) for t in y)
        return OPS["view"](y, (self.size, y.shape[0] // self.size if self.size else 0, *y.shape[1:]))

    # ---- calls ----

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if not self.owns_any(op, args):
            return self._random(op, args) if op.kind in (Kind.RANDOM, Kind.EFFECT) else op(*args)
        if op.mutates:
            return self._write(op, args)
        return self.functional(op, args)

    def functional(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The result of `op`, wrapped."""
        if op.dynamic_output:
            raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                               f"aten::{op.name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need "
                               "this feature.")  # fmt: skip
        rule = rule_for(op)
        if rule is not None:
            result = rule(self, op, args)
            if result is not NotImplemented:
                return self.wrap_results(result)
        if op.decompose is not None:
            with self:
                return self.wrap_constants(op.decompose(*args))
        return self.wrap_results(self.one_by_one(op, args))

    def wrap_constants(self, result: Any) -> Any:
        """Results of a decomposition that do not depend on the batch, repeated for all rows."""
        if isinstance(result, (tuple, list)):
            return type(result)([self.wrap_constants(r) for r in result])
        return result if self.is_batched(result) else self.wrap(self.front(result))

    def one_by_one(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The op for each row, and the results stacked."""
        if op.name not in _warned:
            _warned.add(op.name)
            warnings.warn(f"There is a performance drop because we have not yet implemented the batching rule for aten::"
                          f"{op.name}. Please file us an issue on GitHub so that we can prioritize its implementation.",
                          stacklevel=2)  # fmt: skip
        rows = [op(*(self._row(a, i) for a in args)) for i in range(self.size)]
        if not rows:
            raise RuntimeError(f"vmap: {op.name} has no batching rule, and without rows the shape of its result is not known")
        if isinstance(rows[0], (tuple, list)):
            return tuple(OPS["stack"](list(column), 0) for column in zip(*rows, strict=True))
        return OPS["stack"](rows, 0)

    def _row(self, x: Any, i: int) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)([self._row(v, i) for v in x])
        return OPS["select"](x._value, 0, i) if self.is_batched(x) else x

    def _write(self, op: Op, args: tuple[Any, ...]) -> Any:
        target, base = args[0], op.base
        assert base is not None
        if not self.is_batched(target):
            raise RuntimeError(_INPLACE)
        check_result(op, target, args)
        result = self.functional(base, args)
        OPS["copy_"](target._value, self.front(result))
        return target

    def _random(self, op: Op, args: tuple[Any, ...]) -> Any:
        """A random op whose arguments have no batch dim: one draw for all rows, or one for each, by `randomness`."""
        if self.randomness == "error":
            raise RuntimeError(_RANDOM)
        if self.randomness == "same":
            return op(*args)
        if op.kind is not Kind.EFFECT:
            raise NotImplementedError("vmap(randomness='different'): draws from an explicit generator are not implemented")
        at = next(i for i, p in enumerate(op.schema.params) if p.name == "n")
        n = args[at]
        state = op(*args[:at], n * self.size, *args[at + 1 :])
        seed, offset = OPS["select"](state, 0, 0), OPS["select"](state, 0, 1)
        own = OPS["arange"](0, self.size, 1, state.dtype, state.device) * n + offset  # where each row's numbers begin
        return self.wrap(OPS["stack"]([OPS["expand"](seed, (self.size,)), own], 1))

    def custom_function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """A custom function over a batch: by its `vmap` staticmethod, or its forward op by op."""
        return _custom_function(self, cls, args)


def _unsqueezed(v: Any, count: int) -> Any:
    for _ in range(count):
        v = OPS["unsqueeze"](v, 1)
    return v


_warned: set[str] = set()
_find_rule: Callable[[Op], Rule | None] = lambda op: None  # noqa: E731 - replaced by the rules
_custom_function: Callable[[Batching, Any, tuple[Any, ...]], Any]


def set_rules(find: Callable[[Op], Rule | None]) -> None:
    """Registered by `eager.transforms.rules`."""
    global _find_rule
    _find_rule = find


def set_custom_function(handler: Callable[[Batching, Any, tuple[Any, ...]], Any]) -> None:
    """Registered by `eager.transforms.custom`."""
    global _custom_function
    _custom_function = handler


def rule_for(op: Op) -> Rule | None:
    """The batching rule of an op; None if the op decomposes or runs row by row."""
    return _find_rule(op)

