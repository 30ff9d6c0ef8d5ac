"""Apple's GPUs are not supported."""
from __future__ import annotations


def is_available() -> bool:
    """Whether Apple's GPUs can be used: always False."""
    return False


def is_built() -> bool:
    """Whether this installation supports Apple's GPUs: always False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether MPS runs on this version of macOS: always False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether MPS runs on this version of macOS: always False."""
    return False
