"""The runtime of the emulated device: one device, its properties, and memory calls under CuPy's names."""
from __future__ import annotations

import types
from typing import Any

from eager.cuda.emulated import memory, streams
from eager.cuda.emulated.arrays import ndarray
from eager.cuda.emulated.errors import CUDARuntimeError, OutOfMemoryError

_PROPERTIES = {
    "name": b"Emulated device (numpy)", "major": 9, "minor": 0, "totalGlobalMem": memory.DEVICE_BYTES, "multiProcessorCount": 4,
    "warpSize": 32, "maxThreadsPerMultiProcessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerBlock": 49152,
    "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472, "l2CacheSize": 1 << 20, "integrated": 0, "clockRate": 1_000_000,
    "memoryClockRate": 1_000_000, "memoryBusWidth": 64, "maxThreadsPerBlock": 1024,
}  # fmt: skip


class Device:
    """A device by index. Raises: CUDARuntimeError for another index than 0."""

    def __init__(self, device: Any = None) -> None:
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise CUDARuntimeError("cudaErrorInvalidDevice", "invalid device ordinal")

    compute_capability = "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        return mem_get_info()

    @property
    def attributes(self) -> dict[str, int]:
        return {"MultiProcessorCount": 4, "MaxSharedMemoryPerBlockOptin": 232448, "WarpSize": 32, "MaxThreadsPerBlock": 1024}

    def use(self) -> Device:
        return self

    def synchronize(self) -> None:
        """Run the work of all streams; raise the asynchronous error, if there is one."""
        streams.synchronize_device()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc: object) -> None:
        """The only device stays current."""

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}, emulated>"


def mem_get_info() -> tuple[int, int]:
    """(free, total) bytes."""
    return memory.DEVICE_BYTES - memory.pool.total_bytes(), memory.DEVICE_BYTES


ndarray.device = property(lambda self: Device(0))  # type: ignore[attr-defined]


def _properties(device: int) -> dict[str, Any]:
    Device(device)
    return dict(_PROPERTIES)


def _runtime() -> types.ModuleType:
    made = types.ModuleType("cupy.cuda.runtime")
    made.__dict__.update(
        CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: 1, getDevice=lambda: 0, setDevice=Device,
        getDeviceProperties=_properties, memGetInfo=mem_get_info, deviceSynchronize=streams.synchronize_device,
        driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13000,
        streamCaptureModeGlobal=0, streamCaptureModeThreadLocal=1, streamCaptureModeRelaxed=2,
    )  # fmt: skip
    return made


def cuda_module() -> types.ModuleType:
    """`cupy.cuda` of the emulated device."""
    made = types.ModuleType("cupy.cuda")
    inner = types.ModuleType("cupy.cuda.memory")
    inner.__dict__.update(OutOfMemoryError=OutOfMemoryError, MemoryPointer=memory.MemoryPointer, MemoryPool=memory.MemoryPool,
                          PooledMemory=memory.PooledMemory, UnownedMemory=memory.UnownedMemory)  # fmt: skip
    made.__dict__.update(
        runtime=_runtime(), memory=inner, Device=Device, Stream=streams.Stream, Event=streams.Event, Graph=streams.Graph,
        get_current_stream=streams.get_current_stream, get_elapsed_time=streams.get_elapsed_time, alloc=memory.alloc,
        using_allocator=memory.using_allocator,
        UnownedMemory=memory.UnownedMemory, MemoryPointer=memory.MemoryPointer, MemoryPool=memory.MemoryPool,
        alloc_pinned_memory=memory.pinned_pool.malloc, PinnedMemoryPointer=memory.PinnedMemoryPointer, is_available=lambda: True,
    )  # fmt: skip
    return made
