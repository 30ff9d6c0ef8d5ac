"""`torch.cpu`: the CPU as a device."""
from __future__ import annotations

from typing import Any

from eager.amp import cpu as amp
from eager.backends.cpu import get_cpu_capability

__all__ = ["amp", "current_device", "current_stream", "device_count", "get_cpu_capability", "is_available", "synchronize"]


def is_available() -> bool:
    """Always True."""
    return True


def device_count() -> int:
    """Always 1."""
    return 1


def current_device() -> str:
    """Always "cpu"."""
    return "cpu"


def current_stream(device: Any = None) -> None:
    """None: work on the CPU is complete when its call returns."""
    return


def synchronize(device: Any = None) -> None:
    """Does nothing: work on the CPU is complete when its call returns."""
