"""The time and the results of a kernel on a GPU: compiled candidates run on generated inputs, between events of the device.

Owns the inputs and the method. It does not depend on how a candidate was chosen.

Inputs are normal numbers; integers are zero, since they may be positions. Before each run the last cache is overwritten, so that a
kernel finds its inputs in memory, as most kernels of a graph do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import numpy as np

from eager import _native as eager_native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.cuda import backend as cuda
from inductor.artifact import format as A
from inductor.base.target import Target
from inductor.driver.comparison import Written, compared_ranges
from inductor.driver.cuda_artifact import device_kernels
from inductor.driver.gpu_library import matrix_product
from inductor.plan.library_products import LibraryCall
from inductor.runtime import loader
from inductor.triton.compile import Cubin
from inductor.triton.kernel import CHECKS_POINTER, TritonKernel

__all__ = ["EventTimer", "Timer", "Variant"]

_CUDA = 1  # EAGER_CUDA in eager/native/tensor/tensor.h
_SHORT_S: Final = 10e-6  # below this, the events' own time would count: several launches run between two events
_TOGETHER: Final = 16
_TOTAL_S: Final = 0.02  # of the timed runs of one candidate
_LEAST_RUNS, _MOST_RUNS = 5, 100
_PATTERN: Final = 262_139  # different numbers, a prime: rows of a matrix are not equal
_COMPARED_BYTES: Final = 1 << 20  # of a result
_NOTHING: Final = Written(frozenset(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Variant:
    """The kernels of one candidate, in order. cubins: None for the emulated device. memory: dtype and bytes of each buffer.

    checks: the number of index checks of the program. product: what a library computes before the kernels. written: buffers whose values
    are compared with another candidate's.
    """

    kernels: tuple[TritonKernel, ...]
    cubins: tuple[Cubin, ...] | None
    memory: Mapping[str, tuple[dtype, int]]
    checks: int = 0
    product: LibraryCall | None = None
    written: Written = _NOTHING


class Timer(Protocol):
    """Measures variants on one device."""

    def results(self, variant: Variant) -> dict[str, np.ndarray]:
        """Elements of each result of one run, the same for all variants of a kernel. Raises: as `seconds`."""

    def seconds(self, variant: Variant) -> float:
        """The time of one run. Raises: RuntimeError or MemoryError if the device cannot run the variant."""

    def release(self) -> None:
        """Free the memory of the inputs."""


class EventTimer:
    """Times by events of the device: the median of several runs, each after the last cache was overwritten.

    The host waits for the device only after the last run, so that its own time does not count.
    """

    def __init__(self, where: device, target: Target) -> None:
        """Raises: RuntimeError without a GPU."""
        self._xp = cuda.backend().xp
        self._device, self._index = f"cuda:{where.index or 0}", where.index or 0
        self._flush_bytes = 2 * target.caches[-1]
        self._flush: Any = None
        self._held: dict[tuple[str, dtype, int], tuple[Any, Tensor]] = {}

    def seconds(self, variant: Variant) -> float:
        """See `Timer`."""
        with self._xp.cuda.Device(self._index):
            if self._flush is None:
                self._flush = self._xp.cuda.alloc(self._flush_bytes)
            inputs = self._buffers(variant)
            once = self._loaded(variant, 1)
            self._median(once, inputs, 1)  # the first run is slower
            rough = self._median(once, inputs, 3)
            if rough >= _SHORT_S:
                return self._median(once, inputs, _runs(rough))
            together = self._loaded(variant, _TOGETHER)
            self._median(together, inputs, 1)
            return self._median(together, inputs, _runs(rough * _TOGETHER)) / _TOGETHER

    def results(self, variant: Variant) -> dict[str, np.ndarray]:
        """See `Timer`."""
        with self._xp.cuda.Device(self._index):
            inputs = self._buffers(variant)
            for (name, of, nbytes), (memory, _) in self._held.items():
                if name in variant.written.updated:
                    self._fill(memory, of, nbytes)
                elif name in variant.written.results:
                    memory.memset_async(0xFF, nbytes, self._xp.cuda.get_current_stream())  # not the results of another candidate
            self._loaded(variant, 1)(*inputs)
            made = dict(zip(variant.memory, inputs, strict=True))
            return {name: _compared(made[name]) for name in sorted(variant.written.results)}

    def release(self) -> None:
        """See `Timer`."""
        self._held, self._flush = {}, None
        self._xp.get_default_memory_pool().free_all_blocks()

    def _median(self, run: Callable[..., object], inputs: Sequence[Tensor], runs: int) -> float:
        """Seconds of a run on the current stream. Raises the errors of the device that the runs caused."""
        stream = self._xp.cuda.get_current_stream()
        events = []
        for _ in range(runs):
            start, stop = self._xp.cuda.Event(), self._xp.cuda.Event()
            self._flush.memset_async(0, self._flush_bytes, stream)
            start.record(stream)
            run(*inputs)
            stop.record(stream)
            events.append((start, stop))
        stream.synchronize()
        return median(float(self._xp.cuda.get_elapsed_time(*pair)) for pair in events) * 1e-3

    def _loaded(self, variant: Variant, times: int) -> Callable[..., object]:
        """The variant as a function of its buffers. times: how often it runs in a call."""
        specs = tuple(A.Spec((_count(*m),), (1,), m[0].name, self._device) for m in variant.memory.values())
        kernels, code = device_kernels(variant.kernels, variant.cubins)
        checks = tuple(A.Check("IndexError", "position {} of a generated input") for _ in range(variant.checks))
        place = {name: (k, 0) for k, name in enumerate(variant.memory)} | {CHECKS_POINTER: (A.CHECKS_BUFFER, 0)}
        steps: tuple[A.Step, ...] = tuple(A.KernelLaunch(i, tuple(place[p] for p in k.pointers), (), k.grid)
                                          for i, k in enumerate(variant.kernels))  # fmt: skip
        if variant.product is not None:
            steps = (matrix_product(variant.product, place.__getitem__), *steps)
        plan = A.ArtifactPlan(specs, (), steps=steps * times, device=self._device, kernels=kernels, checks=checks)
        with TemporaryDirectory(prefix="framejit-tune-") as folder:
            library = Path(folder) / "kernels.cubins"
            library.write_bytes(code)
            return loader.load(plan, None if variant.cubins is None else library, {}, name="a variant of a kernel")

    def _buffers(self, variant: Variant) -> list[Tensor]:
        """The buffers of a variant. Equal buffers of the variant before are used again."""
        wanted = {(name, of, nbytes) for name, (of, nbytes) in variant.memory.items()}
        self._held = {key: held for key, held in self._held.items() if key in wanted}
        for key in sorted(wanted - self._held.keys(), key=str):
            _, of, nbytes = key
            size = max(nbytes, of.itemsize)
            memory = self._xp.cuda.alloc(size)
            self._fill(memory, of, size)
            storage = eager_native.storage_from_memory(memory.ptr, size, memory, _CUDA, self._index)
            self._held[key] = memory, eager_native.new_tensor(None, storage, of.code, (_count(of, size),), (1,))
        return [self._held[name, of, nbytes][1] for name, (of, nbytes) in variant.memory.items()]

    def _fill(self, memory: Any, of: dtype, size: int) -> None:
        """Numbers of a dtype in memory of the device."""
        stream = self._xp.cuda.get_current_stream()
        pattern = _numbers(of)
        done = min(size, pattern.nbytes) if pattern is not None else 0
        if pattern is None:
            memory.memset_async(0, size, stream)
        else:
            memory.copy_from_host_async(ctypes.c_void_p(pattern.ctypes.data), done, stream)
            stream.synchronize()  # the pattern is freed at the end of this call
        while 0 < done < size:
            more = min(done, size - done)
            (memory + done).copy_from_device_async(memory, more, stream)
            done += more


@lru_cache(maxsize=8)
def _numbers(of: dtype) -> np.ndarray | None:
    """Normal numbers of a dtype; None for a dtype of integers, which are zero."""
    if not (of.is_floating_point or of.is_complex):
        return None
    return np.random.default_rng(0).standard_normal(_PATTERN, dtype=np.float32).astype(dtypes.by_name(of.name).numpy)


def _compared(t: Tensor) -> np.ndarray:
    """The elements of a result that are compared."""
    ranges = compared_ranges(t.numel(), _COMPARED_BYTES // t.itemsize)
    return np.concatenate([t[start:end].cpu()._array for start, end in ranges])


def _count(of: dtype, nbytes: int) -> int:
    """Elements of a buffer, at least one."""
    return max(1, nbytes // of.itemsize)


def _runs(seconds: float) -> int:
    return max(_LEAST_RUNS, min(_MOST_RUNS, int(_TOTAL_S / max(seconds, 1e-7))))
