"""CUDA through CuPy: the backend that the op table's kernels run on, and torch's device queries.

CuPy is imported on first use only. Where it is missing, or finds no GPU, `is_available()` is False
and asking for a CUDA tensor raises a RuntimeError that says which of the two it is.
"""
from __future__ import annotations

import contextlib
import importlib
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from eager import _native, dtypes
from eager.device import device as _device_type
from eager.ops import loop_api, table
from eager.spec import TensorSpec


@lru_cache(maxsize=1)
def _load() -> tuple[types.ModuleType | None, str]:
    """CuPy and an empty string, or None and why there is none."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        return None, f"CuPy is not installed ({error}); install framejit[gpu]"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return None, f"no CUDA device was found ({error})"
    return (cupy, "") if count else (None, "no CUDA device was found")


class _Backend:
    """What the op table needs to run kernels on CUDA memory. See `table.set_cuda_backend`."""

    def __init__(self, cupy: Any) -> None:
        self.xp = cupy
        self.loop = loop_api.ArrayLoop(cupy, importlib.import_module("cupyx.scipy.special"))
        _native.set_cuda_array_maker(self._array_of)

    def empty(self, spec: TensorSpec) -> Any:
        index = spec.device.index or 0
        with self.xp.cuda.Device(index):
            span = 0 if 0 in spec.shape else 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
            memory = self.xp.cuda.alloc(span * spec.dtype.itemsize)
        storage = _native.storage_from_memory(memory.ptr, span * spec.dtype.itemsize, memory, 1, index)
        return _native.make(None, storage, spec.dtype.code, spec.shape, spec.strides)

    def from_array(self, a: Any) -> Any:
        d = dtypes.from_numpy(a.dtype)
        a = self.xp.ascontiguousarray(a)
        storage = _native.storage_from_memory(a.data.ptr, a.nbytes, a, 1, a.device.id)
        return _native.make(None, storage, d.code, a.shape, tuple(s // a.itemsize for s in a.strides))

    def _array_of(self, t: Any) -> Any:
        """A CuPy array over the tensor's memory."""
        storage = t.untyped_storage()
        memory = self.xp.cuda.UnownedMemory(storage.data_ptr(), storage.nbytes(), storage, t.device.index or 0)
        start = self.xp.cuda.MemoryPointer(memory, t.storage_offset() * t.element_size())
        strides = tuple(s * t.element_size() for s in t.stride())
        return self.xp.ndarray(tuple(t.shape), t.dtype.numpy, start, strides)


@lru_cache(maxsize=1)
def _backend() -> _Backend:
    cupy, why = _load()
    if cupy is None:
        raise RuntimeError(f"CUDA is not available: {why}. Use device='cpu', or check cuda.is_available() first.")
    return _Backend(cupy)


table.set_cuda_backend(_backend)


def is_available() -> bool:
    """Whether CuPy is installed and sees a GPU."""
    return _load()[0] is not None


def why_not_available() -> str:
    """Why `is_available()` is False; empty where it is True."""
    return _load()[1]


def device_count() -> int:
    cupy, _ = _load()
    return 0 if cupy is None else int(cupy.cuda.runtime.getDeviceCount())


def current_device() -> int:
    return int(_backend().xp.cuda.Device().id)


def _index(d: Any) -> int:
    if d is None:
        return current_device()
    return d if isinstance(d, int) else _device_type(d).index or 0


def set_device(device: Any) -> None:
    _backend().xp.cuda.Device(_index(device)).use()


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """Make `device` the current one for a block."""
    with _backend().xp.cuda.Device(_index(device)):
        yield


def synchronize(device: Any = None) -> None:
    """Wait for all work on the device."""
    _backend().xp.cuda.Device(_index(device)).synchronize()


def get_device_name(device: Any = None) -> str:
    name = _backend().xp.cuda.runtime.getDeviceProperties(_index(device))["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    text = _backend().xp.cuda.Device(_index(device)).compute_capability
    return int(text[:-1]), int(text[-1])


def empty_cache() -> None:
    """Give cached blocks back to the driver; nothing where there is no GPU."""
    if is_available():
        _backend().xp.get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes that live tensors hold; 0 where there is no GPU."""
    return int(_backend().xp.get_default_memory_pool().used_bytes()) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    return int(_backend().xp.get_default_memory_pool().total_bytes()) if is_available() else 0


def is_bf16_supported() -> bool:
    return is_available() and get_device_capability() >= (8, 0)


def is_initialized() -> bool:
    return _backend.cache_info().currsize > 0
