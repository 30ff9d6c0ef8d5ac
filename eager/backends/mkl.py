"""MKL is not used: CPU kernels are numpy's and this library's."""
from __future__ import annotations


def is_available() -> bool:
    """Whether MKL is used: always False."""
    return False
