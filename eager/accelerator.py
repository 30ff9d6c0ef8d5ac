"""`torch.accelerator`: whatever device stands beside the CPU, which here is CUDA or none."""
from __future__ import annotations

from typing import Any

from eager import cuda
from eager.base.device import device

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize"]


def is_available() -> bool:
    return cuda.is_available()


def device_count() -> int:
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of device, without an index; None where there is none."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """Raises: RuntimeError where there is no device."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Raises: RuntimeError where there is no device."""
    cuda.set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait for all work. Raises: RuntimeError where there is no device."""
    cuda.synchronize(device)


def current_stream(device: Any = None) -> Any:
    """Raises: RuntimeError where there is no device."""
    return cuda.current_stream(device)
