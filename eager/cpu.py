"""`torch.cpu`: the device that is always there."""
from __future__ import annotations

from typing import Any

from eager.amp import cpu as amp
from eager.backends.cpu import get_cpu_capability

__all__ = ["amp", "current_device", "current_stream", "device_count", "get_cpu_capability", "is_available", "synchronize"]


def is_available() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def current_stream(device: Any = None) -> None:
    """Work on the CPU is done when its call returns: there is no stream."""
    return


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
