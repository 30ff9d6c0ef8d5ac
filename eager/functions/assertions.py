"""Assertions that model code makes of its values, and the names of torch's symbolic numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.dtypes import bool_ as bool_dtype
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt

__all__ = ["SymBool", "SymFloat", "SymInt"]


class SymBool:
    """The class of torch's symbolic bools. Nothing is one: a comparison of symbolic numbers gives a bool, which is guarded."""


def _fail(kind: type[Exception], message: Callable[[], str] | None, default: str) -> None:
    raise kind(message() if message is not None else default)


def check(cond: bool, message: Callable[[], str] | None = None) -> None:
    """`torch._check`. Raises: RuntimeError with `message()` unless `cond` is True; TypeError unless it is a bool."""
    check_with(RuntimeError, cond, message)


def check_value(cond: bool, message: Callable[[], str] | None = None) -> None:
    """As `check`, raising ValueError."""
    check_with(ValueError, cond, message)


def check_index(cond: bool, message: Callable[[], str] | None = None) -> None:
    """As `check`, raising IndexError."""
    check_with(IndexError, cond, message)


def check_type(cond: bool, message: Callable[[], str] | None = None) -> None:
    """As `check`, raising TypeError."""
    check_with(TypeError, cond, message)


def check_not_implemented(cond: bool, message: Callable[[], str] | None = None) -> None:
    """As `check`, raising NotImplementedError."""
    check_with(NotImplementedError, cond, message)


def holds(cond: bool) -> bool:
    """Whether an asserted condition is true.

    During capture, a condition that depends on data counts as true, and is checked when the graph runs.
    """
    return cond


def check_with(kind: type[Exception], cond: Any, message: Callable[[], str] | None) -> None:
    """As `check`, raising `kind`."""
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
                            "that all elements are true.")  # fmt: skip
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not holds(cond):
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        _fail(kind, message, "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
              "enhancement request to PyTorch.)")  # fmt: skip


def check_tensor_all_with(kind: type[Exception], cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Check that every element of a bool tensor is True. Raises: `kind` with `message()`; TypeError for a value of another type."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_dtype:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    check_with(kind, bool(cond.all()), message)


def check_tensor_all(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """As `check_tensor_all_with`, raising RuntimeError."""
    check_tensor_all_with(RuntimeError, cond, message)


def check_is_size(i: int, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:  # noqa: A002
    """That `i` can be a size: not negative, at most `max`. Raises: RuntimeError."""
    check(i >= 0, message)
    if max is not None:
        check(i <= max, message)


def _assert(condition: Any, message: str) -> Any:
    """`torch._assert`. Raises: AssertionError with `message` unless `condition` is true."""
    ask = None if isinstance(condition, bool | Tensor) else getattr(type(condition), "__torch_function__", None)
    if ask is not None:  # a value that is being traced, say
        return ask(_assert, (type(condition),), (condition, message))
    if not condition:
        raise AssertionError(message)
    return None


def assert_async(tensor: Tensor, message: str = "") -> None:
    """That a one-element tensor is not zero. Raises: RuntimeError."""
    if tensor.numel() != 1:
        raise RuntimeError(f"_assert_async: expected a tensor of one element, got {list(tensor.shape)}")
    if not bool(tensor):
        raise RuntimeError(message or "Expected Tensor with single nonzero value, but got zero")
