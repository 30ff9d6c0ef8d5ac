"""CUDA through CuPy: the backend of the op table's kernels, and the available devices.

CuPy is imported only at its first use. If it is missing or finds no GPU, `is_available()` is False
and the creation of a CUDA tensor raises a RuntimeError with the reason.
"""
from __future__ import annotations

import contextlib
import ctypes
import importlib
import types
import weakref
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from eager import _native
from eager.base import dtypes, logs, settings
from eager.base.device import device as _device_type
from eager.base.records import dataclass
from eager.base.spec import TensorSpec, contiguous_strides
from eager.cuda import emulated
from eager.optable import loop_api, memory

_CUDA = 1  # EAGER_CUDA in eager/native/tensor/tensor.h


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


class OutOfMemoryError(RuntimeError):
    """The device lacks free memory for an allocation."""


def _readable(size: int) -> str:
    """A number of bytes as torch writes it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"


class GraphBlock(NamedTuple):
    """A block of the pool of a CUDA graph. The pool comes first, so that it goes after the block."""

    pool: Any
    block: Any


def _is_allocated(memory: Any) -> bool:
    """Whether memory is a block of a pool, so that no other library owns it."""
    return isinstance(memory, backend().xp.cuda.memory.PooledMemory) or isinstance(getattr(memory, "_owner", None), GraphBlock)


def _bits(t: Any) -> Any:
    """The array of a tensor; of 8-bit floats, which CuPy has no kernels for, as bytes."""
    return t._array.view("u1") if t.dtype.is_float8 else t._array


def _is_dense(a: Any) -> bool:
    """Whether the elements of an array fill one span of memory."""
    return bool(1 + sum((n - 1) * s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True)) == a.size and 0 not in a.strides)


class _Backend:
    """The functions with which the op table runs kernels on CUDA memory. See `memory.set_cuda_backend`."""

    def __init__(self, cupy: Any) -> None:
        self.xp = cupy
        self.is_emulated = settings.current().gpu.emulate
        self._users: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # storage -> streams that were recorded
        self._kept: dict[Any, Any] = {}  # values in use by work that is queued, by the event after the work
        self.captured: list[list[Any]] = []  # by capture under way: values that the recorded work uses
        self._always: list[Any] = []  # the same of captures that others began
        self.draws: dict[int, Any] = {}  # by thread that records a CUDA graph: the graph's draws from the default generator
        special = emulated.special_module() if self.is_emulated else importlib.import_module("cupyx.scipy.special")
        self.loop = loop_api.ArrayLoop(cupy, special)
        self.convolutions: Any = None  # None: cuDNN was not looked for yet; False: it is not installed
        _native.set_cuda_array_maker(self._array_of)

    def convolve(self, kind: str, out: Any, a: Any, b: Any, stride: Any, padding: Any, dilation: Any) -> bool:
        """One convolution by cuDNN, see `cudnn_convolutions.Convolutions.run`. False if it is not installed or does not compute it."""
        if self.convolutions is None:
            found = cudnn()
            self.convolutions = _cudnn_convolutions().Convolutions(found, self.xp) if found else False
        return bool(self.convolutions) and self.convolutions.run(kind, out, a, b, stride, padding, dilation)

    def linalg_errors(self) -> Any:
        """A context in which failures of linear algebra raise numpy's LinAlgError."""
        return (emulated if self.is_emulated else importlib.import_module("cupyx")).errstate(linalg="raise")

    def empty(self, spec: TensorSpec) -> Any:
        span = 0 if 0 in spec.shape else 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
        storage = self.allocate(span * spec.dtype.itemsize, spec.device.index or 0)
        return _native.new_tensor(None, storage, spec.dtype.code, spec.shape, spec.strides)

    def record_stream(self, t: Any, stream: Any) -> None:
        """When the tensor's memory goes, keep it until the stream has done the work that is queued then."""
        storage = t.untyped_storage().root
        streams = self._users.setdefault(storage, [])
        if stream not in streams:
            streams.append(stream)
            weakref.finalize(storage, self.keep_until_reached, stream, storage.owner).atexit = False

    def empty_like(self, t: Any) -> Any:
        """A row-major tensor of the sizes, dtype and device of a CUDA tensor, with undefined contents."""
        return _native.empty_like(t, self.allocate(t.numel() * t.element_size(), t.device.index or 0))

    def allocate(self, size: int, index: int) -> Any:
        """A storage of `size` bytes on a device. Raises: OutOfMemoryError, after the cached blocks were freed."""
        cuda = self.xp.cuda
        if cuda.runtime.getDevice() == index:  # entering the context of a device costs more than the allocation
            memory = self._allocate(size, index)
        else:
            with cuda.Device(index):
                memory = self._allocate(size, index)
        return _native.storage_from_memory(memory.ptr, size, memory, _CUDA, index, True)

    def _allocate(self, size: int, index: int) -> Any:
        try:
            return self.xp.cuda.alloc(size)
        except self.xp.cuda.memory.OutOfMemoryError as error:
            if self._wait_for_kept():
                return self._allocate(size, index)
            free, total = self.xp.cuda.runtime.memGetInfo()
            pool = self.xp.get_default_memory_pool()
            limit = pool.get_limit()
            raise OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {_readable(size)}. GPU {index} has a total capacity of {_readable(total)} of which "
                f"{_readable(free)} is free. {_readable(limit) + ' allowed; ' if limit else ''}Of the allocated memory "
                f"{_readable(pool.used_bytes())} is allocated by PyTorch, and {_readable(pool.free_bytes())} is reserved by PyTorch but "
                "unallocated.") from error  # fmt: skip

    def copy_from_host(self, target: Any, source: Any, non_blocking: bool) -> None:
        """Copy a CPU tensor into a CUDA tensor of its shape and dtype, in the order of the current stream.

        Pageable memory is read before the call returns. Page-locked memory is read when the stream comes to the copy; unless
        `non_blocking`, the call waits for it.
        Raises: RuntimeError for a copy of pageable memory that would be recorded into a CUDA graph, which would read it at each replay.
        """
        host, on_device = _bits(source), _bits(target)
        if host.size == 0:
            return
        stream = self.xp.cuda.get_current_stream()
        is_direct = host.strides == on_device.strides and _is_dense(host)
        if stream.is_capturing() and not (is_direct and source.is_pinned()):
            raise RuntimeError("Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
                               "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.")  # fmt: skip
        if not is_direct:
            on_device[...] = self.xp.asarray(host)
            return
        on_device.data.copy_from_host_async(ctypes.c_void_p(host.ctypes.data), host.nbytes, stream)
        if non_blocking:
            self.keep_until_reached(stream, source)
        else:
            stream.synchronize()

    def copy_to_host(self, target: Any, source: Any) -> None:
        """Copy a CUDA tensor into a CPU tensor of its shape and dtype, after the work of the current stream.

        Raises: the error of a compiled kernel that failed.
        """
        _bits(target)[...] = self.xp.asnumpy(_bits(source))
        raise_failures()

    def keep_until_reached(self, stream: Any, value: Any) -> None:
        """Keep a value alive until a stream has done its present work; during a capture, as long as the graph lives."""
        if stream.is_capturing():  # its events must not be queried
            for kept in self.captured or [self._always]:
                kept.append(value)
            return
        self.release_reached()
        self._kept[stream.record(self.xp.cuda.Event(disable_timing=True))] = value

    def _wait_for_kept(self) -> bool:
        """Release the values in use by queued work when that is done. False if no value is kept, or if the host cannot wait."""
        if not self._kept or self.xp.cuda.get_current_stream().is_capturing():
            return False
        for event in list(self._kept):
            event.synchronize()
            self._kept.pop(event, None)
        return True

    def release_reached(self) -> None:
        """Release the values whose work is done. Other threads, and finalizers, may call this and `keep_until_reached` meanwhile."""
        for event in list(self._kept):
            if event.done:
                self._kept.pop(event, None)

    def from_array(self, a: Any) -> Any:
        d = dtypes.from_numpy(a.dtype)
        if any(s < 0 or s % a.itemsize for s in a.strides):
            a = a.copy("C")
        span = 0 if a.size == 0 else a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
        allocated = a.base is None and _is_allocated(a.data.mem)
        storage = _native.storage_from_memory(a.data.ptr, span, a, _CUDA, a.device.id, allocated)
        strides = tuple(s // a.itemsize for s in a.strides) if a.size else contiguous_strides(a.shape)
        return _native.new_tensor(None, storage, d.code, a.shape, strides)

    def _array_of(self, t: Any) -> Any:
        """A CuPy array that shares the tensor's memory."""
        storage = t.untyped_storage()
        memory = self.xp.cuda.UnownedMemory(storage.data_ptr(), storage.nbytes(), storage, t.device.index or 0)
        start = self.xp.cuda.MemoryPointer(memory, t.storage_offset() * t.element_size() if storage.nbytes() else 0)
        strides = tuple(s * t.element_size() for s in t.stride())
        return self.xp.ndarray(tuple(t.shape), t.dtype.numpy, start, strides)


@lru_cache(maxsize=1)
def backend() -> _Backend:
    """The CUDA backend. Raises: RuntimeError if CUDA is not available."""
    cupy, why = _load()
    if cupy is None:
        raise RuntimeError(f"CUDA is not available: {why}. Use device='cpu', or check cuda.is_available() first.")
    return _Backend(cupy)


def _cudnn_convolutions() -> Any:
    return importlib.import_module("eager.cuda.cudnn_convolutions")  # at the first convolution on CUDA


def cudnn() -> Any | None:
    """cuDNN's Python module, for the GPU at hand; None if it is not installed. Raises: RuntimeError if CUDA is not available."""
    return None if backend().is_emulated else _cudnn_convolutions().frontend()


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
