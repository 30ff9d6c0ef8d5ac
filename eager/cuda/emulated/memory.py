"""Device memory of the emulated device: host memory behind CuPy's pointers and pools.

A block returns to its pool when the last pointer to it goes, and serves the next request of its size on the stream that was current
when it was first allocated, with its old contents.
"""
from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from eager.cuda.emulated import streams
from eager.cuda.emulated.errors import CUDARuntimeError, OutOfMemoryError

DEVICE_BYTES = 8 << 30  # the memory that the emulated device reports
_GRANULE = 512  # bytes: CuPy's pool rounds requests up to it


class UnownedMemory:
    """Memory that `owner` owns. ptr: an address; owner: an object that keeps the memory alive."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner = int(ptr), int(size), owner
        self.device_id = max(device_id, 0)


class PooledMemory:
    """A block of a pool. It returns to the pool with its last reference. It does not keep the pool alive."""

    def __init__(self, pool: MemoryPool, block: Any, size: int) -> None:
        self._pool = weakref.ref(pool)
        self.ptr, self.size, self.device_id = int(block.ctypes.data), size, 0

    def __del__(self) -> None:
        pool = self._pool()
        if pool is not None:
            pool._give_back(self.ptr)


class MemoryPointer:
    """A place in a memory. Adding bytes gives another place."""

    def __init__(self, mem: Any, offset: int) -> None:
        assert mem.ptr > 0 or offset == 0  # as CuPy has it
        self.mem = mem
        self.ptr = mem.ptr + offset

    @property
    def device_id(self) -> int:
        return int(self.mem.device_id)

    def __int__(self) -> int:
        return int(self.ptr)

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from the host in the order of the stream: pageable memory is read now, page-locked memory then."""
        address = int(mem.value or 0) if isinstance(mem, ctypes.c_void_p) else int(mem)
        source = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))
        kept = source if pinned_pool.holds(address) else source.copy()
        to = host_bytes(self, size)
        (stream or streams.get_current_stream()).enqueue(lambda: np.copyto(to, kept))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy bytes within the device, in the order of the stream."""
        to, source = host_bytes(self, size), host_bytes(src, size)
        (stream or streams.get_current_stream()).enqueue(lambda: np.copyto(to, source))

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Set each of `size` bytes, in the order of the stream."""
        to = host_bytes(self, size)
        (stream or streams.get_current_stream()).enqueue(lambda: to.fill(value))


def host_bytes(pointer: MemoryPointer, size: int) -> Any:
    """The memory as a host array of bytes. The array keeps the block of a pool from the system, but not from the pool."""
    if size == 0:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(pointer.ptr))


_lost: list[Any] = []  # blocks in use of pools that went: the device freed them, so that readers find garbage there


class MemoryPool:
    """CuPy's pool: freed blocks are kept for reuse. Reports bytes in use and bytes held. With the pool, all its blocks are freed."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, int], list[Any]] = {}  # by stream and bytes
        self._in_use: dict[int, tuple[Any, int]] = {}  # blocks and their streams, by address
        self._used = self._total = self._limit = 0

    def __del__(self) -> None:
        for block, _ in self._in_use.values() if _lost is not None else ():  # None while the process ends
            block.fill(0xFF)
            _lost.append(block)

    def malloc(self, size: int) -> MemoryPointer:
        """A block of at least `size` bytes. Raises: OutOfMemoryError beyond the limit or the device's memory."""
        size = int(size)
        if size == 0:
            return MemoryPointer(UnownedMemory(0, 0, None, 0), 0)
        rounded = -(-size // _GRANULE) * _GRANULE
        stream = streams.get_current_stream().ptr
        block = None
        with contextlib.suppress(KeyError, IndexError):  # no block of this size was freed, or another thread has taken the last one
            block = self._free[stream, rounded].pop()
        block = self._new(rounded) if block is None else block
        self._used += rounded
        made = PooledMemory(self, block, rounded)
        self._in_use[made.ptr] = block, stream
        return MemoryPointer(made, 0)

    def _new(self, size: int) -> Any:
        limit = self._limit or DEVICE_BYTES
        if self._total + size > limit and not streams.is_capturing_globally():
            self.free_all_blocks()
        if self._total + size > limit:
            raise OutOfMemoryError(size, self._total, self._limit)
        if streams.forbids_allocation():
            streams.invalidate_captures()
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing: cudaMalloc")
        self._total += size
        raw = np.empty(size + 256, np.uint8)
        start = -raw.ctypes.data % 256
        return raw[start : start + size]

    def _give_back(self, address: int) -> None:
        block, stream = self._in_use.pop(address)
        self._used -= block.nbytes
        self._free.setdefault((stream, block.nbytes), []).append(block)

    def used_bytes(self) -> int:
        return self._used

    def total_bytes(self) -> int:
        return self._total

    def free_bytes(self) -> int:
        return self._total - self._used

    def n_free_blocks(self) -> int:
        return sum(map(len, self._free.values()))

    def free_all_blocks(self, stream: Any = None) -> None:
        """Return the free blocks to the system. Work that is queued on them ends first: `cudaFree` waits for it."""
        if self._free:
            streams.synchronize_device()
        freed, self._free = self._free, {}  # blocks that come back meanwhile are kept
        self._total -= sum(size * len(blocks) for (_, size), blocks in freed.items())

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Let the pool hold at most `size` bytes, or a fraction of the device's memory; 0: no limit."""
        if (size is None) == (fraction is None) and size is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        self._limit = int(fraction * DEVICE_BYTES) if fraction is not None else int(size or 0)

    def get_limit(self) -> int:
        return self._limit


class PinnedMemoryPointer:
    """Page-locked host memory. Its instances are also arrays of bytes, so that they support the buffer protocol."""

    @property
    def ptr(self) -> int:
        return ctypes.addressof(self)  # type: ignore[arg-type]

    def size(self) -> int:
        return ctypes.sizeof(self)  # type: ignore[arg-type]


class PinnedMemoryPool:
    """The pool of page-locked host memory."""

    def __init__(self) -> None:
        self._blocks: WeakValueDictionary[int, PinnedMemoryPointer] = WeakValueDictionary()  # by address

    def malloc(self, size: int) -> PinnedMemoryPointer:
        made: PinnedMemoryPointer = type("PinnedMemoryPointer", (PinnedMemoryPointer, ctypes.c_ubyte * max(1, size)), {})()
        self._blocks[made.ptr] = made
        return made

    def holds(self, address: int) -> bool:
        """Whether an address lies in page-locked memory."""
        blocks = (known() for known in self._blocks.valuerefs())  # a list: another thread may add blocks
        return any(b is not None and b.ptr <= address < b.ptr + b.size() for b in blocks)

    def free_all_blocks(self) -> None:
        """Nothing is kept."""

    def n_free_blocks(self) -> int:
        return 0


pool = MemoryPool()
_local = threading.local()


def alloc(size: int) -> MemoryPointer:
    """Memory from the allocator of the thread, by default the pool."""
    return getattr(_local, "allocator", pool.malloc)(size)  # type: ignore[no-any-return]


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Allocate through `allocator` within the block, in this thread."""
    before = getattr(_local, "allocator", pool.malloc)
    _local.allocator = allocator or pool.malloc
    try:
        yield
    finally:
        _local.allocator = before


pinned_pool = PinnedMemoryPool()
