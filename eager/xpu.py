"""Intel's GPUs are not supported."""
from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """There is no such device to seed."""


def manual_seed_all(seed: int) -> None:
    """There are no such devices to seed."""


def empty_cache() -> None:
    """There is no such memory to give back."""
