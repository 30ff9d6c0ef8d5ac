"""torch.utils._device: the device that creation functions take where none is named, as a block and as a decorator."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.base.device import device

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """`with DeviceContext("meta"):` creates tensors that name no device there; the same as `with torch.device("meta"):`."""

    def __init__(self, where: Any) -> None:
        self.device = device(where)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def set_device(where: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function runs with `where` as the device of tensors that name none."""
    return device(where)
