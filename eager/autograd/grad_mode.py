"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that also decorate."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from eager import _native

F = TypeVar("F", bound=Callable[..., Any])


class _GradContext:
    """Sets recording for a block or for each call of a decorated function; restores it afterwards."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_native.set_grad_enabled(self.on))

    def __exit__(self, *exc: object) -> None:
        _native.set_grad_enabled(self._before.pop())

    def clone(self) -> _GradContext:
        return _GradContext(self.on)

    def __call__(self, fn: F) -> F:
        make = self.clone
        if inspect.isgeneratorfunction(fn):

            @functools.wraps(fn)
            def generator(*args: Any, **kwargs: Any) -> Any:
                with make():
                    running = fn(*args, **kwargs)
                while True:
                    with make():
                        try:
                            value = next(running)
                        except StopIteration as stop:
                            return stop.value
                    yield value

            return generator  # type: ignore[return-value]

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with make():
                return fn(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


class no_grad(_GradContext):  # noqa: N801 - torch's name
    """No history is recorded inside: `with no_grad():`, `@no_grad()` or `@no_grad`."""

    def __new__(cls, fn: Any = None) -> Any:
        self = super().__new__(cls)
        if fn is None:
            return self
        self.__init__()  # type: ignore[misc]
        return self(fn)

    def __init__(self, fn: Any = None) -> None:
        super().__init__(False)


class enable_grad(_GradContext):  # noqa: N801 - torch's name
    """History is recorded inside, also within `no_grad`."""

    def __new__(cls, fn: Any = None) -> Any:
        self = super().__new__(cls)
        if fn is None:
            return self
        self.__init__()  # type: ignore[misc]
        return self(fn)

    def __init__(self, fn: Any = None) -> None:
        super().__init__(True)


class set_grad_enabled(_GradContext):  # noqa: N801 - torch's name
    """Sets recording at once; as a context manager it restores the former state at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._at_call = _native.set_grad_enabled(self.on)

    def __enter__(self) -> None:
        self._before.append(self._at_call)
        _native.set_grad_enabled(self.on)

    def __call__(self, fn: F) -> F:
        _native.set_grad_enabled(self._at_call)
        return super().__call__(fn)


class inference_mode(_GradContext):  # noqa: N801 - torch's name
    """Like no_grad. (Results are ordinary tensors: version counters are always kept.)"""

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if not callable(mode):
            return self
        self.__init__()  # type: ignore[misc]
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode or False)
        self.mode = mode

    def __enter__(self) -> None:
        self._before.append(_native.set_grad_enabled(False if self.mode else _native.grad_enabled()))

    def clone(self) -> _GradContext:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether history is recorded in this thread."""
    return _native.grad_enabled()
