"""`torch._dynamo.utils`: counts of compilations, and whether a device has a compiler."""

from __future__ import annotations

from dynamo.report.counters import counters
from eager import cuda

__all__ = ["counters", "is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether `compile` generates kernels for tensors on a device such as "cpu", "cuda" or "cuda:1"."""
    kind = device_type.partition(":")[0]
    return kind == "cpu" or (kind == "cuda" and cuda.is_available())
