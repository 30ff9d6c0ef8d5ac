"""Memory of CUDA devices under torch's names: the bytes of tensors, and of CuPy's pool. All figures are 0 without a GPU.

Temporary memory inside an op is not counted as allocated. The pool's peak is noted when these functions are called: between
calls of `empty_cache` the pool does not shrink.
"""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.cuda.backend import OutOfMemoryError, backend, device_count, index_of, is_available

__all__ = ["OutOfMemoryError", "empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
           "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "reset_peak_memory_stats"]  # fmt: skip

_reserved_peaks: dict[int, int] = {}  # by device index


def _pool() -> Any:
    return backend().xp.get_default_memory_pool()


def empty_cache() -> None:
    """Return cached blocks to the driver; does nothing without a GPU."""
    if is_available():
        max_memory_reserved()
        backend().release_reached()
        _pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes held by live tensors of a device (by default the current one)."""
    return _native.device_memory(index_of(device))[0] if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes held by the pool of a device, in use or cached for reuse."""
    if not is_available():
        return 0
    with backend().xp.cuda.Device(index_of(device)):  # CuPy's pool reports on the current device
        return int(_pool().total_bytes())


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes held by tensors since the start or `reset_peak_memory_stats`."""
    return _native.device_memory(index_of(device))[1] if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes held by the pool since the start or `reset_peak_memory_stats`."""
    if not is_available():
        return 0
    index = index_of(device)
    peak = _reserved_peaks[index] = max(_reserved_peaks.get(index, 0), memory_reserved(index))
    return peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the present figures."""
    if is_available():
        index = index_of(device)
        _native.reset_device_peak(index)
        _reserved_peaks.pop(index, None)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a device. Raises: RuntimeError without a GPU."""
    with backend().xp.cuda.Device(index_of(device)):
        free, total = backend().xp.cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures above as a dict with torch's keys."""
    return {
        "allocated_bytes.all.current": memory_allocated(device), "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device), "reserved_bytes.all.peak": max_memory_reserved(device),
    }  # fmt: skip


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The memory of each device's pool as one segment. CuPy's pool does not list its blocks.

    device: one device; by default all. Keys: device, total_size and allocated_size (bytes), segment_type, blocks (empty).
    """
    indices = range(device_count()) if device is None else [index_of(device)]
    return [{"device": i, "segment_type": "large", "total_size": memory_reserved(i), "allocated_size": memory_allocated(i),
             "active_size": memory_allocated(i), "blocks": []} for i in indices]  # fmt: skip


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures above as a table."""
    rows = [("allocated", memory_allocated(device), max_memory_allocated(device)),
            ("reserved", memory_reserved(device), max_memory_reserved(device))]  # fmt: skip
    lines = [f"{'':10}  {'now (MiB)':>12}  {'peak (MiB)':>12}"]
    return "\n".join(lines + [f"{name:10}  {now / 2**20:12.1f}  {peak / 2**20:12.1f}" for name, now, peak in rows])


# Deprecated names.
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
