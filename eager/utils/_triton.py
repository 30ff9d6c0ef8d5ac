"""`torch.utils._triton`: whether Triton kernels can be compiled on this machine."""
from __future__ import annotations

import importlib.util

from eager import cuda

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Whether the package triton is installed."""
    return importlib.util.find_spec("triton") is not None


def has_triton() -> bool:
    """Whether the package triton is installed and a device can run its kernels."""
    return has_triton_package() and cuda.is_available()
