"""CUDA through CuPy: the backend of the op table's kernels, and the available devices.

CuPy is imported only at its first use. If it is missing or finds no GPU, `is_available()` is False
and the creation of a CUDA tensor raises a RuntimeError with the reason.
"""
from __future__ import annotations

import contextlib
import importlib
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from eager import _native
from eager.base import dtypes, logs, settings
from eager.base.device import device as _device_type
from eager.base.spec import TensorSpec, contiguous_strides
from eager.cuda import emulated
from eager.optable import loop_api, memory


@lru_cache(maxsize=1)
def _load() -> tuple[types.ModuleType | None, str]:
    """CuPy (or its emulation, if the settings say so) and "", or None and the reason why CUDA is unavailable."""
    if settings.current().gpu.emulate:
        logs.warn_once("cuda_emulated", "CUDA is emulated by numpy: a test device (FRAMEJIT_EMULATE_CUDA=1)")
        return emulated.cupy_module(), ""
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
    """The functions with which the op table runs kernels on CUDA memory. See `memory.set_cuda_backend`."""

    def __init__(self, cupy: Any) -> None:
        self.xp = cupy
        self.is_emulated = settings.current().gpu.emulate
        self.peaks: dict[int, tuple[int, int]] = {}  # device -> peak bytes in use, peak bytes reserved
        special = emulated.special_module() if self.is_emulated else importlib.import_module("cupyx.scipy.special")
        self.loop = loop_api.ArrayLoop(cupy, special)
        _native.set_cuda_array_maker(self._array_of)

    def empty(self, spec: TensorSpec) -> Any:
        index = spec.device.index or 0
        with self.xp.cuda.Device(index):
            span = 0 if 0 in spec.shape else 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
            memory = self.xp.cuda.alloc(span * spec.dtype.itemsize)
            self.note_use(index)
        storage = _native.storage_from_memory(memory.ptr, span * spec.dtype.itemsize, memory, 1, index)
        return _native.new_tensor(None, storage, spec.dtype.code, spec.shape, spec.strides)

    def note_use(self, index: int) -> None:
        """Update the peak figures of a device's pool; called whenever a tensor is created on it."""
        pool = self.xp.get_default_memory_pool()
        used, held = self.peaks.get(index, (0, 0))
        self.peaks[index] = max(used, pool.used_bytes()), max(held, pool.total_bytes())

    def from_array(self, a: Any) -> Any:
        d = dtypes.from_numpy(a.dtype)
        if any(s < 0 or s % a.itemsize for s in a.strides):
            a = a.copy("C")
        span = 0 if a.size == 0 else a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
        storage = _native.storage_from_memory(a.data.ptr, span, a, 1, a.device.id)
        strides = tuple(s // a.itemsize for s in a.strides) if a.size else contiguous_strides(a.shape)
        return _native.new_tensor(None, storage, d.code, a.shape, strides)

    def _array_of(self, t: Any) -> Any:
        """A CuPy array that shares the tensor's memory."""
        storage = t.untyped_storage()
        memory = self.xp.cuda.UnownedMemory(storage.data_ptr(), storage.nbytes(), storage, t.device.index or 0)
        start = self.xp.cuda.MemoryPointer(memory, t.storage_offset() * t.element_size())
        strides = tuple(s * t.element_size() for s in t.stride())
        return self.xp.ndarray(tuple(t.shape), t.dtype.numpy, start, strides)


@lru_cache(maxsize=1)
def backend() -> _Backend:
    """The CUDA backend. Raises: RuntimeError if CUDA is not available."""
    cupy, why = _load()
    if cupy is None:
        raise RuntimeError(f"CUDA is not available: {why}. Use device='cpu', or check cuda.is_available() first.")
    return _Backend(cupy)


memory.set_cuda_backend(backend)


def is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    return _load()[0] is not None


def why_not_available() -> str:
    """Why `is_available()` is False; "" if it is True."""
    return _load()[1]


def device_count() -> int:
    """The number of GPUs."""
    cupy, _ = _load()
    return 0 if cupy is None else int(cupy.cuda.runtime.getDeviceCount())


def current_device() -> int:
    """The index of the current device. Raises: RuntimeError without a GPU."""
    return int(backend().xp.cuda.Device().id)


def index_of(d: Any) -> int:
    """The index of a device given as an index, a device, a string, or None for the current one."""
    if d is None:
        return current_device()
    return d if isinstance(d, int) else _device_type(d).index or 0


def set_device(device: Any) -> None:
    """Make `device` the current one. Raises: RuntimeError without a GPU."""
    backend().xp.cuda.Device(index_of(device)).use()


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """Make `device` the current one within the block."""
    with backend().xp.cuda.Device(index_of(device)):
        yield


class Checked(Protocol):
    """Code whose kernels note failures, such as an index out of range, in memory of the host."""

    def raise_failed(self) -> None: ...


_checked: weakref.WeakSet[Checked] = weakref.WeakSet()


def at_synchronize(code: Checked) -> None:
    """Ask `code` for failures at each synchronisation, for as long as it lives."""
    _checked.add(code)


def raise_failures() -> None:
    """Raise the error of a kernel that failed, if there is one. Its work must be done."""
    for code in tuple(_checked):
        code.raise_failed()


def synchronize(device: Any = None) -> None:
    """Wait for all work on the device. Raises: the error of a compiled kernel that failed, such as IndexError."""
    backend().xp.cuda.Device(index_of(device)).synchronize()
    raise_failures()


def get_device_name(device: Any = None) -> str:
    """The name of a device. Raises: RuntimeError without a GPU."""
    name = backend().xp.cuda.runtime.getDeviceProperties(index_of(device))["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability (major, minor) of a device. Raises: RuntimeError without a GPU."""
    text = backend().xp.cuda.Device(index_of(device)).compute_capability
    return int(text[:-1]), int(text[-1])


def is_bf16_supported() -> bool:
    """Whether the current device supports bfloat16."""
    return is_available() and get_device_capability() >= (8, 0)


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """Properties of a device. total_memory: bytes; major, minor: its compute capability."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: bool


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The properties of a device. Raises: RuntimeError without a GPU."""
    p = backend().xp.cuda.runtime.getDeviceProperties(index_of(device))
    name = p["name"].decode() if isinstance(p["name"], bytes) else str(p["name"])
    return DeviceProperties(name, p["major"], p["minor"], p["totalGlobalMem"], p["multiProcessorCount"], p["warpSize"],
                            p["maxThreadsPerMultiProcessor"], p["regsPerMultiprocessor"], p["sharedMemPerBlock"],
                            p["sharedMemPerMultiprocessor"], p["l2CacheSize"], bool(p["integrated"]))  # fmt: skip


def get_arch_list() -> list[str]:
    """The architectures of precompiled code: none, code is compiled for the present device."""
    return []


def init() -> None:
    """Initialise CUDA now instead of at its first use. Raises: RuntimeError without a GPU."""
    backend()


def is_initialized() -> bool:
    """Whether CUDA is initialised."""
    return backend.cache_info().currsize > 0
