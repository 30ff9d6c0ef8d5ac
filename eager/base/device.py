"""Devices: interned, so that `is` and `==` agree. The memory and kernels of a device are in other modules."""
from __future__ import annotations

import functools
import threading
from typing import Any, ClassVar

from eager.base import thread_state

TYPES = ("cpu", "cuda", "meta")


class device:  # noqa: N801 - torch's name
    """Where a tensor's data is: `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`, `device("meta")`."""

    __slots__ = ("type", "index", "code", "text")
    _interned: ClassVar[dict[tuple[str, int | None], device]] = {}

    type: str
    index: int | None
    code: int
    text: str  # "cuda:1"

    def __new__(cls, type: str | device | int, index: int | None = None) -> device:  # noqa: A002
        if isinstance(type, device):
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            return device("cuda", type)
        if not isinstance(type, str):
            raise TypeError(f"device(): expected a string, an int or a device, got {type.__class__.__name__}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed: {type}")
            type, _, digits = type.partition(":")
            if not digits.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}:{digits}'")
            index = int(digits)
        if type not in TYPES:
            raise RuntimeError(f"Expected one of {', '.join(TYPES)} device type at start of device string: {type}")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        key = (type, index)
        found = cls._interned.get(key)
        if found is None:
            found = super().__new__(cls)
            found.type, found.index, found.code = type, index, TYPES.index(type)
            found.text = type if index is None else f"{type}:{index}"
            cls._interned[key] = found
        return found

    def __enter__(self) -> device:
        """Make this the device that tensors are created on, until the block ends."""
        _entered.before.append(thread_state.set_device(None if self is CPU else self))
        return self

    def __exit__(self, *exc: object) -> None:
        thread_state.set_device(_entered.before.pop())

    def __call__(self, fn: Any) -> Any:
        """As a decorator: `fn` runs with this as the default device."""

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return wrapper

    def __repr__(self) -> str:
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type, self.index))


class _Entered(threading.local):
    """The default devices that the `with device(...)` blocks of this thread restore."""

    def __init__(self) -> None:
        self.before: list[Any] = []


_entered = _Entered()


def default_device() -> device:
    """Where creation functions put tensors that name no device."""
    return thread_state.device() or CPU


_NAMED = device  # for where a parameter has that name


def set_default_device(device: Any) -> None:
    """Create tensors that name no device on `device` from now on, in this thread; None: on the CPU again."""
    found = None if device is None else _NAMED(device)
    thread_state.set_device(None if found is CPU else found)


def from_codes(type_code: int, index: int) -> device:
    """The device of a C struct's codes: only CUDA devices carry an index."""
    return device(TYPES[type_code], index if TYPES[type_code] == "cuda" else None)


def memory_device(named: device | None) -> device:
    """Where the memory of a new tensor is: on the CPU by default, on the first GPU for "cuda" without an index."""
    if named is None:
        return CPU
    return device("cuda", 0) if named.type == "cuda" and named.index is None else named


CPU = device("cpu")
META = device("meta")
