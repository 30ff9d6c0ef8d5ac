"""Errors of the emulated runtime, under CuPy's names."""
from __future__ import annotations


class CUDARuntimeError(RuntimeError):
    """An error of the CUDA runtime. name: as `cudaErrorInvalidValue`."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.status = name


class OutOfMemoryError(MemoryError):
    """The device lacks memory for an allocation. All figures are bytes."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(f"{text}, limit set to: {limit:,} bytes)." if limit else f"{text}).")
        self._size, self._total, self._limit = size, total, limit
