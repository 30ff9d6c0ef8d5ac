"""`torch.utils._triton`: whether Triton kernels can be compiled here."""
from __future__ import annotations

import importlib.util

from eager import cuda

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("triton") is not None


def has_triton() -> bool:
    """Whether the package is installed and there is a device for its kernels."""
    return has_triton_package() and cuda.is_available()
