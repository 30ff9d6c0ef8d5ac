"""Tensors from and to other array libraries without a copy, by the DLPack protocol (through numpy's and CuPy's)."""
from __future__ import annotations

import enum
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device as device_of
from eager.base.spec import refuse_data
from eager.optable.memory import array_module, from_array
from eager.public.record import public


class DLDeviceType(enum.IntEnum):
    """DLPack's codes of the devices that there are here."""

    kDLCPU = 1
    kDLCUDA = 2


class _Capsule:
    """A bare capsule of CPU memory as an object that numpy takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule: Any = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


@public(interception="modes")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array, or of a capsule.

    ext_tensor: an object with `__dlpack__`, or a capsule of CPU memory. device: where the result shall be.
    copy: True copies, False refuses to, None copies where the device differs.
    Raises: RuntimeError for another object, or a capsule that was used before; BufferError for a device or dtype that
    there is not here; ValueError where copy=False cannot be kept.
    """
    if isinstance(ext_tensor, Tensor):
        made = ext_tensor.detach()
    else:
        if not hasattr(ext_tensor, "__dlpack__"):
            if type(ext_tensor).__name__ != "PyCapsule" or not repr(ext_tensor).startswith('<capsule object "dltensor'):
                raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, "
                                   "so you might have already constructed a tensor from it once.")  # fmt: skip
            ext_tensor = _Capsule(ext_tensor)
        made = _import(ext_tensor)
    wanted = made.device if device is None else device_of(device)
    if wanted is made.device:
        return made.clone() if copy else made
    if copy is False:
        raise ValueError(f"from_dlpack: copy=False and device={wanted} for an array on {made.device}; allowed: the same device")
    return made.to(wanted)


def _import(source: Any) -> Tensor:
    kind, index = source.__dlpack_device__()
    if kind == DLDeviceType.kDLCUDA:
        return from_array(array_module(device_of("cuda", index)).from_dlpack(source))
    if kind != DLDeviceType.kDLCPU:
        raise BufferError(f"from_dlpack: device type {int(kind)}; allowed: {', '.join(f'{d.value} ({d.name})' for d in DLDeviceType)}")
    a = array_module(device_of("cpu")).from_dlpack(source)
    if any(s < 0 for s in a.strides):
        raise ValueError(f"from_dlpack: strides {a.strides}; negative ones are not supported, make a copy of the array")
    # numpy marks the array as read-only unless the producer allows writes; torch does not check
    span = a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)) if a.size else 0
    storage = _native.storage_from_memory(a.ctypes.data, span, a)
    code = dtypes.from_numpy(a.dtype).code
    return _native.new_tensor(Tensor, storage, code, a.shape, tuple(s // a.itemsize for s in a.strides))


def __dlpack__(self: Tensor, *, stream: Any = -1, max_version: tuple[int, int] | None = None,  # noqa: N807 - the method's name
               dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:  # fmt: skip
    """A capsule over the tensor's memory, for another library's `from_dlpack`. For use once.

    Raises: BufferError if the tensor requires grad, lies on meta, or has a dtype that numpy lacks (bfloat16, float8).
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if not self.dtype.in_numpy:
        raise BufferError(f"__dlpack__: a tensor of {self.dtype}, which numpy lacks; convert it, or view it as "
                          f"torch.int{8 * self.dtype.itemsize}")  # fmt: skip
    refuse_data(self, "__dlpack__()")
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {name: value for name, value in options.items() if value is not None}
    if self.device.type == "cuda":
        return self._array.__dlpack__(stream=None if stream == -1 else stream, **given)
    return self.numpy().__dlpack__(**given)


def __dlpack_device__(self: Tensor) -> tuple[DLDeviceType, int]:  # noqa: N807
    """(device type, index), by DLPack's codes. Raises ValueError for meta."""
    if self.device.type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return (DLDeviceType.kDLCUDA if self.device.type == "cuda" else DLDeviceType.kDLCPU), self.device.index or 0


METHODS: dict[str, Any] = {"__dlpack__": __dlpack__, "__dlpack_device__": __dlpack_device__}
FUNCTIONS: dict[str, Any] = {"from_dlpack": from_dlpack}
