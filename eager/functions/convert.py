"""Casts and moves between devices: `to`, `type`, `float`, `cpu` and their like."""
from __future__ import annotations

from typing import Any, Final, NamedTuple

from eager import _native
from eager.base import dtypes
from eager.base.device import CPU, device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec, fake, format_strides, preserve_strides, suggested_format
from eager.dispatch import calls
from eager.optable.memory import array_module, cuda_backend, empty
from eager.optable.table import OPS
from eager.public.record import public
from eager.tape.node import attach

TensorBase = _native.TensorBase


class Destination(NamedTuple):
    """The arguments of `to`. copy: even if nothing changes. non_blocking: copies between devices may run later."""

    device: device | None
    dtype: dtype | None
    copy: bool
    memory_format: Any
    non_blocking: bool


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Destination:
    """The arguments in any of torch's forms of `to`."""
    where, d = kwargs.pop("device", None), kwargs.pop("dtype", None)
    copy = bool(kwargs.pop("copy", False))
    fmt = kwargs.pop("memory_format", None)
    non_blocking = bool(kwargs.pop("non_blocking", False))
    for name in ("other", "tensor"):
        if name in kwargs:
            args = (kwargs.pop(name), *args)
    if kwargs:
        raise TypeError(f"to() received an invalid keyword argument: {next(iter(kwargs))}")
    if args and isinstance(args[0], bool):
        raise TypeError("to() received an invalid combination of arguments - got bool; allowed: a dtype, a device or a tensor")
    flags = []
    for a in args:
        if isinstance(a, TensorBase):
            where, d = a.device, a.dtype
        elif isinstance(a, dtype) or (isinstance(a, type) and a in dtypes.OF_PYTHON):
            d = a
        elif isinstance(a, bool):
            flags.append(a)
        elif isinstance(a, (str, device, int)):
            where = device(a)
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got {type(a).__name__}; allowed: a dtype, a "
                            "device or a tensor")  # fmt: skip
    if flags:
        non_blocking = flags[0]
    if len(flags) > 1:
        copy = flags[1]
    return Destination(None if where is None else device(where), dtypes.meant(d), copy, fmt, non_blocking)


def move(x: Any, where: device, non_blocking: bool = False) -> Any:
    """A copy of `x` on another device. Raises RuntimeError if the device is not available.

    non_blocking: a copy from page-locked memory runs in the order of the current stream, and the call does not wait for it.
    """
    if x.device.type == "meta" and where.type != "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                                  "torch.nn.Module.to() when moving module from meta to a different device.")  # fmt: skip
    if x.is_fake and "cuda" in (x.device.type, where.type) and any(m.records_graph for m in calls.active_modes()):
        raise NotImplementedError(f"a copy of a tensor on {x.device} to {where} in a graph; the tensors of a graph are on one device")
    if x.is_fake or where.type == "meta":
        return fake(TensorSpec(tuple(x.shape), x.dtype, preserve_strides(x), where))
    target = empty(TensorSpec(tuple(x.shape), x.dtype, preserve_strides(x), where))
    copy_between_devices(target, x, non_blocking)
    return target


def copy_between_devices(target: Any, source: Any, non_blocking: bool) -> None:
    """Write the elements of a tensor into one of its shape and dtype on another device."""
    if "cuda" not in (target.device.type, source.device.type):
        target._array[...] = source._array
    elif source.device.type == target.device.type:
        target._array[...] = array_module(target.device).asarray(source._array)
    elif target.device.type == "cuda":
        cuda_backend().copy_from_host(target, source, non_blocking)
    else:
        cuda_backend().copy_to_host(target, source)


_TO_OPTIONS: Final = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor"
_TO_SCHEMAS: Final = (f"to(Tensor self, Device? device=None, ScalarType? dtype=None, {_TO_OPTIONS}",
                      f"to(Tensor self, ScalarType dtype, {_TO_OPTIONS}", f"to(Tensor self, Tensor tensor, {_TO_OPTIONS}")


@public(schemas=_TO_SCHEMAS)
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Cast and/or move: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; self if nothing changes."""
    where, d, copy, fmt, non_blocking = parse_to(args, dict(kwargs))
    result = self
    if where is not None and where is not self.device and not (where.type == self.device.type and where.index is None):
        result = _Move.apply(result, where, non_blocking) if result._requires_grad else move(result, where, non_blocking)
    if d is not None and d is not result.dtype:
        result = OPS["to_dtype"](result, d)
    if fmt is not None:
        result = _in_format(result, fmt, result is self and not copy)
    return OPS["clone"](result, None) if copy and result is self else result


def _in_format(x: Any, fmt: Any, may_stay: bool) -> Any:
    """`x` in a memory format. may_stay: `x` itself if its strides suggest that format, even if it is not dense."""
    if fmt.name == "preserve" or (may_stay and suggested_format(x) == fmt.name):
        return x
    return x if not may_stay and tuple(x.stride()) == format_strides(x.shape, fmt.name) else OPS["clone"](x, fmt.name)


class _Move:
    """`move` with a gradient: the cotangent moves back."""

    @staticmethod
    def apply(x: Any, where: device, non_blocking: bool = False) -> Any:
        y = move(x.detach(), where, non_blocking)
        if _native.grad_enabled():
            attach([y], [x], lambda gs: (move(gs[0], x.device),), "ToCopyBackward0")
        return y


def _caster(d: dtype) -> Any:
    def cast(self: Any, memory_format: Any = None) -> Any:
        if memory_format is not None:
            return to(self, d, memory_format=memory_format)
        return self if self.dtype is d else OPS["to_dtype"](self, d)

    cast.__name__ = cast.__qualname__ = d.name
    return cast


_LEGACY = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
           "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
           "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8,
           "BoolTensor": dtypes.bool_, "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
           "UInt16Tensor": dtypes.uint16, "UInt32Tensor": dtypes.uint32, "UInt64Tensor": dtypes.uint64}  # fmt: skip
_LEGACY_NAME = {d: name for name, d in _LEGACY.items()}


@public(parsed=False, kinds={"dtype": ""})
def type_(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:  # noqa: A002
    """Without argument the legacy type name; with a dtype, such a name or such a type (`FloatTensor`), a cast.

    A name or type also says where: `torch.cuda.FloatTensor` moves to the GPU, `torch.FloatTensor` to the CPU.
    """
    if dtype is None:
        name = _LEGACY_NAME.get(self.dtype) or f"{dtypes.scalar_name(self.dtype)}Tensor"
        return f"torch.{'cuda.' if self.is_cuda else ''}{name}"
    if isinstance(dtype, type) and dtype.__name__ in _LEGACY:
        dtype = f"{dtype.__module__}.{dtype.__name__}"
    if isinstance(dtype, type):
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    if not isinstance(dtype, (str, dtypes.dtype)):
        raise TypeError("dtype must be a type, str, or dtype object")
    if not isinstance(dtype, str):
        return to(self, dtype)
    where, _, name = dtype.rpartition(".")
    if name not in _LEGACY or where not in ("torch", "torch.cuda"):
        raise ValueError(f"invalid type: '{dtype}'")
    on_cuda = where == "torch.cuda"
    return to(self, _LEGACY[name]) if on_cuda == self.is_cuda else to(self, "cuda" if on_cuda else CPU, _LEGACY[name])


def cpu(self: Any, memory_format: Any = None) -> Any:
    """The tensor on the CPU: self if it is there already, else a copy."""
    return to(self, CPU, memory_format=memory_format)


@public(schemas=("cuda(Tensor self, Device? device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None) -> Tensor",))
def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:  # noqa: A002
    """The tensor on a CUDA device, by default the current one. Raises: RuntimeError without a GPU."""
    return to(self, "cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


def result_type_as(self: Any, other: Any) -> Any:
    """Self in the dtype of `other`."""
    return self if self.dtype is other.dtype else OPS["to_dtype"](self, other.dtype)


METHODS: dict[str, Any] = {
    "to": to, "type": type_, "type_as": result_type_as, "cpu": cpu, "cuda": cuda, "float": _caster(dtypes.float32),
    "cfloat": _caster(dtypes.complex64), "cdouble": _caster(dtypes.complex128), "double": _caster(dtypes.float64),
    "half": _caster(dtypes.float16), "bfloat16": _caster(dtypes.bfloat16),
    "long": _caster(dtypes.int64), "int": _caster(dtypes.int32), "short": _caster(dtypes.int16), "char": _caster(dtypes.int8),
    "byte": _caster(dtypes.uint8), "bool": _caster(dtypes.bool_),
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {}
