"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that also decorate."""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from eager import _native
from eager.base.flags import check_flags as _check_flags

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
        if inspect.isclass(fn):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                          "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                          "the `__init__` method and nothing else.", FutureWarning, stacklevel=2)  # fmt: skip
            setattr(fn, "__init__", self(fn.__init__))  # noqa: B010 - an assignment to a method is none to mypy
            return fn
        if inspect.isgeneratorfunction(fn):
            return _wrap_generator(make, fn)  # type: ignore[return-value]

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with make():
                return fn(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def _wrap_generator(make: Callable[[], Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose steps run in the context, and whose caller does not."""

    @functools.wraps(fn)
    def generator(*args: Any, **kwargs: Any) -> Any:
        running = fn(*args, **kwargs)
        try:
            with make():
                value = running.send(None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with make():
                        running.close()
                    raise
                except BaseException as e:  # noqa: BLE001 - every exception belongs to the generator
                    with make():
                        value = running.throw(e)
                else:
                    with make():
                        value = running.send(sent)
        except StopIteration as stop:
            return stop.value

    return generator


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
        _check_flags("set_grad_enabled", enabled=mode)
        super().__init__(bool(mode))
        self._at_call = _native.set_grad_enabled(self.on)

    def __enter__(self) -> None:
        self._before.append(self._at_call)
        _native.set_grad_enabled(self.on)

    def __call__(self, fn: F) -> F:
        _native.set_grad_enabled(self._at_call)
        return super().__call__(fn)


class inference_mode(_GradContext):  # noqa: N801 - torch's name
    """Like no_grad, and new tensors are inference tensors: they can never take part in recorded work.

    (Version counters are always kept.)
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if not callable(mode):
            return self
        self.__init__()  # type: ignore[misc]
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        _check_flags("_InferenceMode", enabled=mode)
        super().__init__(not mode)
        self.mode = mode
        self._inference_before: list[bool] = []

    def __enter__(self) -> None:
        self._inference_before.append(_native.set_inference_mode(self.mode))
        self._before.append(_native.set_grad_enabled(not self.mode))

    def __exit__(self, *exc: object) -> None:
        _native.set_grad_enabled(self._before.pop())
        _native.set_inference_mode(self._inference_before.pop())

    def clone(self) -> _GradContext:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether history is recorded in this thread."""
    return _native.grad_enabled()


def is_inference_mode_enabled() -> bool:
    """Whether new tensors of this thread are inference tensors."""
    return _native.inference_mode()


class set_multithreading_enabled(_GradContext):  # noqa: N801 - torch's name
    """Accepted for programs that switch threads in backward off: backward runs in the calling thread here."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None

    def clone(self) -> _GradContext:
        return set_multithreading_enabled(self.mode)


def is_multithreading_enabled() -> bool:
    """False: backward runs in the calling thread."""
    return False
