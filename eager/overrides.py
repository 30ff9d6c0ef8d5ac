"""`torch.overrides`: the protocol by which other classes take part in torch's functions, `__torch_function__`.

For code that is written against the protocol: it asks here whether an argument wants a say, and hands the call over.
This library's own functions do not ask: a subclass of Tensor is computed with as a Tensor.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from eager.nn.parameter import Parameter
from eager.tensor import Tensor

__all__ = ["TorchFunctionMode", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "wrap_torch_function"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
_PLAIN = (Tensor, Parameter)


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a Tensor, or its class has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def _overrides(value: Any) -> bool:
    return type(value) not in _PLAIN and hasattr(type(value), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, not a plain Tensor, has `__torch_function__`."""
    return any(_overrides(a) for a in relevant_args)


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function((arg,))`."""
    return _overrides(arg)


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function(args)`."""
    return has_torch_function(args)


def _in_order(relevant_args: Iterable[Any]) -> list[Any]:
    """One argument of each overriding class; subclasses before their bases, else as given."""
    found: list[Any] = []
    for arg in relevant_args:
        if not _overrides(arg) or any(type(arg) is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(type(arg), type(other))), len(found))
        found.insert(at, arg)
    return found


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the first overriding class that has one for this function.

    Raises: TypeError if all of them return NotImplemented.
    """
    overriding = _in_order(relevant_args)
    types = tuple(type(a) for a in overriding)
    for arg in overriding:
        result = arg.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[t.__name__ for t in types]}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """Decorates a function so that it asks the arguments that `dispatcher` picks out."""

    def decorate(fn: F) -> F:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorate


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method or the getter of a property of Tensor."""
    if getattr(func, "__name__", None) == "__get__":
        return True
    return any(value is func or getattr(value, "fget", None) is func for cls in Tensor.__mro__ for value in vars(cls).values())


class TorchFunctionMode:
    """Would see every call of a torch function. Not available: dispatch modes (`eager.dispatch.Mode`) see every op."""

    def __enter__(self) -> TorchFunctionMode:
        raise NotImplementedError("TorchFunctionMode: functions are not intercepted; eager.dispatch.Mode sees the ops they call")

    def __exit__(self, *exc: object) -> None:
        return
