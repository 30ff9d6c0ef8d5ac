"""`torch.accelerator`: the device besides the CPU, which is CUDA or none."""
from __future__ import annotations

from typing import Any

from eager import cuda
from eager.base.device import device

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize"]


def is_available() -> bool:
    """Whether there is an accelerator."""
    return cuda.is_available()


def device_count() -> int:
    """The number of devices of the accelerator."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator's device without an index, or None."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The index of the current device. Raises: RuntimeError without a device."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Make a device the current one. Raises: RuntimeError without a device."""
    cuda.set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait for all work on a device. Raises: RuntimeError without a device."""
    cuda.synchronize(device)


def current_stream(device: Any = None) -> Any:
    """The stream that receives new work. Raises: RuntimeError without a device."""
    return cuda.current_stream(device)
