"""Intel's GPUs are not supported."""
from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Whether Intel's GPUs can be used: always False."""
    return False


def device_count() -> int:
    """The number of Intel GPUs: always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: there is no such device."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no such device."""


def empty_cache() -> None:
    """Does nothing: there is no such device."""
