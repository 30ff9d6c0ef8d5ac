"""The steps of a CUDA plan on the emulated device, whose memory is memory of the host.

Kernels run in Triton's interpreter, products of matrices in numpy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.cuda.emulated import streams
from fxir.expr import nodes as E
from inductor.artifact.format import (
    CHECKS_BUFFER,
    UPLOAD_SLOT,
    ArtifactPlan,
    BufferCopy,
    BufferView,
    KernelLaunch,
    MatrixOperand,
    MatrixProduct,
    Size,
    Spec,
    Upload,
)
from inductor.runtime.interpreter import run_kernel

__all__ = ["Bound", "bind"]

# A callable with its views and expressions: it gets one tensor for each view, then one int for each expression.
Bound = tuple[Callable[..., None], tuple[BufferView, ...], tuple[E.Expr, ...]]


def bind(step: KernelLaunch | MatrixProduct | BufferCopy | Upload, plan: ArtifactPlan, checks: int) -> Bound:
    """A callable that puts the step into the queue of the current stream. checks: the address of the plan's checks."""
    if isinstance(step, BufferCopy):
        return _bind_copy(step, plan)
    if isinstance(step, MatrixProduct):
        return _bind_product(step, plan)
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


def _bind_product(step: MatrixProduct, plan: ArtifactPlan) -> Bound:
    operands = (step.a, step.b, step.result, *((step.bias,) if step.bias else ()))
    views = tuple(BufferView(m.place[0], m.place[1], _bytes(plan.device)) for m in operands)

    def run(*given: Any) -> None:
        addresses = [t.data_ptr() for t in given]
        _enqueue(lambda: _multiply(step, addresses), given)

    return run, views, ()


def _multiply(p: MatrixProduct, addresses: Sequence[int]) -> None:
    """Compute a product. addresses: of the first elements of a, b, the result, and the bias if there is one."""
    batch, rows, columns, depth = p.sizes
    a = _matrices(p.a, addresses[0], p.dtype, (batch, rows, depth))
    b = _matrices(p.b, addresses[1], p.dtype, (batch, depth, columns))
    wide = np.float64 if p.dtype == "float64" else np.float32
    total = a.astype(wide) @ b.astype(wide)
    if p.bias is not None:
        total = total + _matrices(p.bias, addresses[3], p.stored, (1, 1, columns)).astype(wide)
    result = _matrices(p.result, addresses[2], p.stored, (batch, rows, columns))
    result[...] = total.astype(result.dtype)


def _matrices(m: MatrixOperand, address: int, dtype: str, shape: tuple[int, int, int]) -> np.ndarray:
    """The memory of an operand as an array."""
    of = np.dtype(dtypes.by_name(dtype).numpy)
    steps = (m.step, 1, m.pitch) if m.is_transposed else (m.step, m.pitch, 1)
    nbytes = of.itemsize * (1 + sum((n - 1) * k for n, k in zip(shape, steps, strict=True)))
    memory = (ctypes.c_char * nbytes).from_address(address)
    return np.ndarray(shape, of, memory, strides=[k * of.itemsize for k in steps])


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
