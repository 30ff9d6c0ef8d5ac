"""torch.utils._device: the default device of creation functions, set by a block or a decorator."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.base.device import device

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """`with DeviceContext("meta"):` sets the device of tensors created without one, as `with
    torch.device("meta"):` does.
    """

    def __init__(self, where: Any) -> None:
        self.device = device(where)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def set_device(where: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that runs a function with `where` as the default device of new tensors."""
    return device(where)
