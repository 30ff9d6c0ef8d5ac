"""The memory of results: the array module of a device, new tensors, and tensors over arrays.

Does not depend on ops.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import CPU, device
from eager.base.spec import TensorSpec, contiguous_strides, fake


def _no_cuda() -> Any:
    raise RuntimeError("CUDA is not available: eager.cuda is not imported")


_cuda_backend: Callable[[], Any] = _no_cuda


def set_cuda_backend(backend: Callable[[], Any]) -> None:
    """Registration by `eager.cuda` of the function that returns its backend (`eager.cuda.backend`), or raises RuntimeError."""
    global _cuda_backend
    _cuda_backend = backend


def cuda_backend() -> Any:
    """The backend that `eager.cuda` registered. Raises RuntimeError if there is no GPU."""
    return _cuda_backend()


def cuda_loop() -> Any:
    """CuPy's implementation of the loop protocol (`loop_api`). Raises RuntimeError if there is no GPU."""
    return _cuda_backend().loop


def linalg_errors(xp: Any) -> AbstractContextManager[Any]:
    """Within the block, failures of linear algebra raise LinAlgError. CuPy ignores them otherwise."""
    return nullcontext() if xp is np else _cuda_backend().linalg_errors()


def array_module(where: device | None) -> Any:
    """numpy, or CuPy for a CUDA device. Raises RuntimeError if there is no GPU."""
    return np if where is None or where.type == "cpu" else _cuda_backend().xp


def empty(spec: TensorSpec) -> Any:
    """A tensor of `spec` with undefined contents (a fake one on the meta device)."""
    if spec.device.type == "cpu":
        return _native.empty(spec.dtype.code, spec.shape, spec.strides)
    if spec.device.type == "meta":
        return fake(spec)
    return _cuda_backend().empty(spec)


def assign(out: Any, values: Any) -> None:
    """out[...] = values, for tensors of one dtype on one device. CuPy copies 8-bit floats only as other bytes."""
    target, source = out._array, values._array
    if out.dtype.is_float8:
        target, source = target.view("u1"), source.view("u1")
    target[...] = source


def on_host(t: Any) -> Any:
    """A row-major copy of a CUDA tensor on the CPU."""
    made = empty(TensorSpec.contiguous(tuple(t.shape), t.dtype, CPU))
    _cuda_backend().copy_to_host(made, t)
    return made


def from_host(made: Any, where: device) -> Any:
    """A copy of a tensor on the CPU on a CUDA device, with the same strides."""
    out = empty(TensorSpec(tuple(made.shape), made.dtype, tuple(made.stride()), where))
    _cuda_backend().copy_from_host(out, made, False)
    return out


def from_array(a: Any) -> Any:
    """A tensor over an array's own memory (copied if its strides are negative or not whole elements)."""
    made = _native.tensor_from_array(a)
    if made is not None:
        return made
    if not isinstance(a, np.ndarray):
        return _cuda_backend().from_array(a)
    d = dtypes.from_numpy(a.dtype)
    if a.dtype.byteorder not in "=|" or any(s < 0 or s % a.itemsize for s in a.strides) or not a.flags.writeable:
        a = np.array(a, d.numpy, order="C")
    span = 0 if a.size == 0 else a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
    storage = _native.storage_from_memory(a.ctypes.data, span, a, 0, 0, a.flags.owndata)
    # numpy gives an empty array arbitrary strides
    strides = tuple(s // a.itemsize for s in a.strides) if a.size else contiguous_strides(a.shape)
    return _native.new_tensor(None, storage, d.code, a.shape, strides)
