"""The launches of a CUDA plan on the emulated device, whose memory is memory of the host: kernels run in Triton's interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from eager.cuda.emulated import streams
from fxir.expr import nodes as E
from inductor.artifact.format import (
    CHECKS_BUFFER,
    UPLOAD_SLOT,
    ArtifactPlan,
    BufferCopy,
    BufferView,
    KernelLaunch,
    Size,
    Spec,
    Upload,
)
from inductor.runtime.interpreter import run_kernel

__all__ = ["Bound", "bind"]

# A callable with its views and expressions: it gets one tensor for each view, then one int for each expression.
Bound = tuple[Callable[..., None], tuple[BufferView, ...], tuple[E.Expr, ...]]


def bind(step: KernelLaunch | BufferCopy | Upload, plan: ArtifactPlan, checks: int) -> Bound:
    """A callable that puts the step into the queue of the current stream. checks: the address of the plan's checks."""
    if isinstance(step, BufferCopy):
        return _bind_copy(step, plan)
    if isinstance(step, Upload):
        return _bind_upload(step, plan)
    kernel = plan.kernels[step.kernel]
    spec = {k: _bytes(plan.device) for k, (buffer, _) in enumerate(step.buffers) if buffer != CHECKS_BUFFER}
    views = tuple(BufferView(*step.buffers[k], s) for k, s in spec.items())
    ints = _Ints()
    grid, sizes = ints.add(step.grid), [ints.add(n) for n in step.sizes]

    def run(*given: Any) -> None:
        addresses = iter([t.data_ptr() for t in given[: len(views)]])
        pointers = [(checks if buffer == CHECKS_BUFFER else next(addresses), dtype)
                    for (buffer, _), dtype in zip(step.buffers, kernel.dtypes, strict=True)]  # fmt: skip
        values = given[len(views) :]
        work = (kernel.name, kernel.source, pointers, [_value(n, values) for n in sizes], _value(grid, values))
        _enqueue(lambda: run_kernel(*work), given)

    return run, views, tuple(ints.found)


def _bind_copy(step: BufferCopy, plan: ArtifactPlan) -> Bound:
    views = tuple(BufferView(*place, _bytes(plan.device)) for place in (step.target, step.source))
    ints = _Ints()
    nbytes = ints.add(step.nbytes)

    def run(target: Any, source: Any, *values: int) -> None:
        work = (target.data_ptr(), source.data_ptr(), _value(nbytes, values))
        _enqueue(lambda: ctypes.memmove(*work), (target, source))

    return run, views, tuple(ints.found)


def _bind_upload(step: Upload, plan: ArtifactPlan) -> Bound:
    sources = [plan.inputs[i] for i in step.inputs]
    views = [BufferView(i, 0, s) for i, s in zip(step.inputs, sources, strict=True) if isinstance(s, Spec)]

    def run(target: Any, *numbers: Any) -> None:
        values = b"".join(ctypes.string_at(t.data_ptr(), t.element_size()).ljust(UPLOAD_SLOT, b"\0") for t in numbers)
        _enqueue(lambda: ctypes.memmove(target.data_ptr(), values, len(values)), (target,))

    return run, (BufferView(*step.target, _bytes(plan.device)), *views), ()


def _enqueue(work: Callable[[], object], used: tuple[Any, ...]) -> None:
    """Run the work in the order of the current stream. used: tensors whose memory lives until then."""
    streams.get_current_stream().enqueue(lambda: (used, work()))


def _bytes(device: str) -> Spec:
    """One byte, for the address of a place."""
    return Spec((1,), (1,), "uint8", device)


class _Ints:
    """The expressions of a step, by their position among the arguments of its callable."""

    def __init__(self) -> None:
        self.found: dict[E.Expr, int] = {}

    def add(self, n: Size) -> int | tuple[int]:
        """The size if it is an int, else the position of its value."""
        return n if isinstance(n, int) else (self.found.setdefault(n, len(self.found)),)


def _value(n: int | tuple[int], values: tuple[int, ...]) -> int:
    return n if isinstance(n, int) else values[n[0]]
