"""The CUDA side of a loaded plan: its machine code on the device, memory, the current stream, and the results of checks.

On the emulated device kernels run in Triton's interpreter (`inductor.runtime.emulated`) instead of as machine code.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from eager.base.device import device
from eager.cuda import backend as cuda
from fxir.expr.nodes import Expr
from inductor._native import CompiledGraph, CudaModule
from inductor.artifact.format import ArtifactPlan, BufferCopy, BufferView, KernelLaunch, MatrixProduct, Upload
from inductor.runtime import blas

__all__ = ["Code", "Recording", "load_code"]

Bound = tuple[Callable[..., None], tuple[BufferView, ...], tuple[Expr, ...]]


class Recording(IntEnum):
    """Whether CUDA graphs of a plan's calls are recorded. The numbers of `enum recording_kind` in native/graph.h.

    COPYING: inputs whose addresses change from call to call are copied. SAME: calls are replayed only where all addresses come again.
    """

    NEVER = 0
    COPYING = 1
    SAME = 2


def load_code(plan: ArtifactPlan, code: bytes | None, recording: Recording) -> Code:
    """The plan's kernels, loaded on its device. code: the machine code of all kernels.

    Raises: RuntimeError if the device is not available; LookupError if `code` is missing.
    """
    return Code(plan, code, recording)


class Code:
    """The kernels of one plan on its device, and the functions that a call of the plan needs.

    device: the tuple that `CompiledGraph` takes.
    """

    def __init__(self, plan: ArtifactPlan, code: bytes | None, recording: Recording) -> None:
        self._plan, self._code = plan, code
        self._backend = cuda.backend()
        self._index = device(plan.device).index or 0
        self._modules: dict[int, CudaModule] = {}
        self._checks: Any = None
        address = 0
        if plan.checks:
            nbytes = 16 * len(plan.checks)
            self._checks = self._backend.xp.cuda.alloc_pinned_memory(nbytes)
            address = int(self._checks.ptr)
            ctypes.memset(address, 0, nbytes)
        self._checks_address = address
        self.device = (self._index, self._allocate, self._stream, address, self, int(recording))

    def _allocate(self, nbytes: int) -> Any:
        return self._backend.allocate(nbytes, self._index)

    def keep_captured(self, graph: CompiledGraph) -> None:
        """Keep a graph, with its code, as long as work of it that the current stream records into a CUDA graph of the user."""
        self._backend.keep_until_reached(self._backend.xp.cuda.get_current_stream(self._index), graph)

    def _stream(self) -> int:
        return int(self._backend.xp.cuda.get_current_stream(self._index).ptr)

    def function(self, number: int) -> tuple[int, int, int]:
        """(handle, threads, bytes of shared memory) of a kernel. Raises: RuntimeError if the device cannot run it."""
        k = self._plan.kernels[number]
        if self._code is None:
            raise LookupError(f"inductor: the plan names the kernel {k.name!r}, but it has no machine code")
        module = self._modules.get(number)
        if module is None:
            module = self._modules[number] = CudaModule(self._code[k.start : k.start + k.nbytes], self._index)
        return module.function(k.name, k.shared_bytes), k.threads, k.shared_bytes

    def waits(self, number: int) -> bool:
        """Whether a kernel is launched before the kernel in front of it ends."""
        return self._plan.kernels[number].waits

    def product(self, step: MatrixProduct) -> Any:
        """The native product of a step. Raises: LookupError if the library does not have its algorithm."""
        return blas.chosen(step, self._index)

    def interpreted(self, step: KernelLaunch | MatrixProduct | BufferCopy | Upload) -> Bound | None:
        """A callable that runs the step on the emulated device, with its views and expressions; None on a real device."""
        if not self._backend.is_emulated:
            return None
        emulated = importlib.import_module("inductor.runtime.emulated")
        found: Bound = emulated.bind(step, self._plan, self._checks_address)
        return found

    def watch(self, graph: CompiledGraph) -> None:
        """Report failed checks of a graph at the next synchronisation with the device."""
        if self._checks is not None:
            cuda.at_synchronize(graph)
