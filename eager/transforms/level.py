"""Levels: a running function transform as a dispatch mode with its own wrapped tensors.

Every running transform (a `grad`, a `vmap`, a `jvp`) is one level on the mode stack, with the innermost on top. A level wraps
each tensor for which it keeps more than the data (a history, a batch dim, a tangent): the wrapper is a Tensor over the same
storage that holds the `value` of the level below. An op call reaches the innermost level first. The level unwraps its tensors,
calls ops on the values with itself off, so that the next level handles these calls, and wraps the results. Tensors of other
levels are constants to it. Transforms compose in any order because no level depends on another.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager._tensor.torch_function import _disabled_torch_function_impl
from eager.base.spec import FAKE_FLAG
from eager.dispatch.calls import Level as DispatchLevel
from eager.dispatch.calls import active_modes
from eager.optable.registry import Kind
from eager.optable.table import Op

TensorBase = _native.TensorBase


class Wrapped(Tensor):
    """A tensor of the level `_level`. `_value` is the tensor that it wraps, of a level below."""

    __torch_function__ = _disabled_torch_function_impl
    _value: Any
    _level: Level

    @property
    def data(self) -> Any:
        """The same memory without history."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError("cannot set .data of a tensor inside of a function being transformed; use an in-place copy_()")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Raises: RuntimeError. Inside a transform only the arguments of the function are differentiated."""
        raise RuntimeError("You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
                           "APIs) inside of a function being transformed by a functorch transform. This is unsupported, please "
                           "attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
                           "requires_grad_() outside of a function being transformed instead.")  # fmt: skip

    @property
    def _batches(self) -> frozenset[Any]:  # type: ignore[override]
        return self._value._batches  # type: ignore[no-any-return]

    def _adopt(self, t: Any) -> Any:
        return self._level.wrap(self._value._adopt(self._level.value(t)))

    def _alias(self) -> Any:
        """The same value of the same level, without history."""
        return self._level.wrap(self._value)

    def item(self) -> Any:
        return self._value.item()

    def tolist(self) -> Any:
        return self._value.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        return self._value.numpy(force=force)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone()


class Level(DispatchLevel):
    """Base class of the levels: unwraps, wraps, and handles calls without tensors of the level."""

    wrapper: type[Wrapped] = Wrapped
    depth: int  # counted from the outermost, 1

    def wrap(self, value: Any) -> Any:
        """`value` as a tensor of this level."""
        return self.make(value, tuple(value.shape), value.stride())

    def owns(self, t: Any) -> bool:
        return isinstance(t, Wrapped) and t._level is self

    def owns_any(self, op: Op, args: tuple[Any, ...]) -> bool:
        return any(isinstance(t, Wrapped) and t._level is self for t in op.tensors(args))

    def value(self, x: Any) -> Any:
        """`x` without its wrapper of this level; lists item by item."""
        if isinstance(x, Wrapped) and x._level is self:
            return x._value
        if isinstance(x, (list, tuple)):
            return type(x)([self.value(v) for v in x])
        return x

    def values(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.value(a) for a in args)

    def make(self, value: Any, shape: Sequence[int], strides: Sequence[int], fake: bool = False) -> Any:
        """A wrapper of `value` that looks like a tensor of this geometry over its storage."""
        flags = FAKE_FLAG if fake else value._meta_word & FAKE_FLAG
        t = _native.new_tensor(self.wrapper, value.untyped_storage(), value.dtype.code, tuple(shape), tuple(strides),
                         value.storage_offset(), flags)  # fmt: skip
        t._value, t._level = value, self
        return t

    def wrap_results(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return type(result)([self.wrap_results(r) for r in result])
        return self.wrap(result) if isinstance(result, TensorBase) and not self.owns(result) else result

    def pass_on(self, op: Op, args: tuple[Any, ...]) -> Any:
        """A call without tensors of this level. Fresh results become tensors of it, for they may be written to."""
        result = op(*args)
        if op.mutates or op.kind is Kind.VIEW:
            return result
        return self.wrap_results(result)

    def refuse_captured(self, op: Op, args: tuple[Any, ...]) -> None:
        """Raise RuntimeError for a write of this level's values into a tensor from outside."""
        if op.mutates and not self.owns(args[0]):
            raise RuntimeError("During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                               f"operation (aten::{op.name}) that would mutate a captured Tensor. This is not supported; please "
                               "rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.")  # fmt: skip

    def is_active(self) -> bool:
        return any(m is self for m in active_modes())


def raw_value(t: Any) -> Any:
    """`t` below all levels."""
    while isinstance(t, Wrapped):
        t = t._value
    return t
