"""`torch.overrides`: the protocol by which other classes override torch's functions, `__torch_function__`.

Public names over `eager._tensor.torch_function`. Importing this module enables the protocol for classes that are not
Tensors. A subclass of Tensor and a TorchFunctionMode enable it too.
"""
from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from eager._tensor import torch_function
from eager._tensor.tensor import Tensor
from eager._tensor.torch_function import _disabled_torch_function_impl as _disabled_torch_function_impl
from eager._tensor.torch_function import (
    answer,
    name_of,
    overrides,
    state,
    subclasses_off,
    taking_part,
)

__all__ = ["BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
           "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "handle_torch_function",
           "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
torch_function.activate()


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a Tensor, or its class has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active, or an argument other than a plain Tensor defines `__torch_function__`."""
    if state.modes and not state.modes_off:
        return True
    return not state.off and any(overrides(a) for a in relevant_args)


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function((arg,))`."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function(args)`."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Dispatch a call to the innermost mode, or to the first overriding class, that handles this function.

    Raises: TypeError if all of them return NotImplemented.
    """
    overriding = taking_part(relevant_args)
    result = answer(public_api, overriding, args, kwargs)
    if result is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[type(a) for a in overriding]}")
    return result


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """Decorator that makes a function overridable by the arguments that `dispatcher` returns."""

    def decorate(fn: F) -> F:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return cast(F, wrapped)

    return decorate


# ---- overridable functions ----


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method or a property getter of Tensor."""
    if getattr(func, "__name__", None) == "__get__":
        return True
    return any(value is func for cls in Tensor.__mro__ for value in vars(cls).values())


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that support `__torch_function__`, by the module or class that defines them."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for namespace, _, fn in torch_function.public_functions():
        found.setdefault(sys.modules.get(namespace, Tensor), []).append(fn)
    return found


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that do not support `__torch_function__`."""
    asking = {id(fn) for listed in get_overridable_functions().values() for fn in listed}
    return {fn for where in get_overridable_functions() for name, fn in vars(where).items()
            if isinstance(fn, types.FunctionType) and not name.startswith("_") and id(fn) not in asking}  # fmt: skip


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The getters whose tensors the default `__torch_function__` returns unchanged."""
    return torch_function.NO_WRAP


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of an overridable function: `torch.add`, `torch.nn.functional.relu`, `torch.Tensor.shape.__get__`.

    None for a function that is not overridable.
    """
    if getattr(f, "__name__", None) == "__get__":
        return name_of(f)
    for namespace, name, fn in torch_function.public_functions():
        if fn is f:
            return f"{namespace.replace('eager', 'torch', 1)}.{name}"
    return None


# ---- modes and switches ----


class TorchFunctionMode:
    """Intercepts every call of a public function or method in its block, by `__torch_function__(func, types, args, kwargs)`.

    The mode is off inside `__torch_function__`: `func(*args, **kwargs)` calls the enclosing mode, then subclasses.
    Attributes of a plain Tensor, and its methods that only return metadata, are not intercepted. Compiled functions run
    uncompiled in its block.
    """

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        raise NotImplementedError(f"{type(self).__name__}.__torch_function__")

    def __enter__(self) -> Any:
        torch_function.enter_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        torch_function.leave_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that forwards every call."""

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass(subclasses_off):
    """A block in which subclasses behave as Tensors; modes still intercept calls."""

    def __init__(self) -> None:
        super().__init__()


class DisableTorchFunction(subclasses_off):
    """A block in which subclasses and modes do not intercept calls."""

    def __init__(self) -> None:
        super().__init__(modes=True)


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    """A block inside a disabled one in which the protocol is enabled again."""
    before = state.off, state.modes_off
    state.off = state.modes_off = False
    try:
        yield
    finally:
        state.off, state.modes_off = before


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost active mode of this thread, or None."""
    return state.modes[-1] if state.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The active modes of this thread, outermost first."""
    return list(state.modes)
