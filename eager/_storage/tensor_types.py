"""Tensor types by name, from before tensors had dtypes: `FloatTensor(2, 3)`, `isinstance(t, LongTensor)`, `ByteStorage`.

A type stands for a dtype on a device. Calling it makes an ordinary Tensor; `isinstance` compares dtype and device.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager import _native, cuda
from eager._storage import untyped
from eager._tensor.tensor import Tensor, attach
from eager.base import dtypes
from eager.base.device import CPU, device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec
from eager.functions import creation
from eager.optable.memory import from_array
from eager.optable.table import OPS

UntypedStorage = _native.UntypedStorage

NAMES = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
    "Long": dtypes.int64, "Int": dtypes.int32, "Short": dtypes.int16, "Char": dtypes.int8, "Byte": dtypes.uint8,
    "Bool": dtypes.bool_, "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
}  # fmt: skip
# torch has no tensor types for complex numbers, only storages
_TENSOR_NAMES = [name for name in NAMES if not name.startswith("Complex")]


class tensortype(type):  # noqa: N801 - torch's name
    """The class of the tensor types: their instances are Tensors of a dtype on a device."""

    dtype: dtype
    device_type: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.device.type == cls.device_type

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    @property
    def is_cuda(cls) -> bool:
        return cls.device_type == "cuda"

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """A tensor of this type: sizes, a sequence or array of values, a storage, or another tensor of the type."""
        where = _device_of(cls, device)
        if not args:
            return creation.empty(0, dtype=cls.dtype, device=where)
        first = args[0]
        if isinstance(first, (TypedStorage, UntypedStorage)):
            return _over_storage(cls.dtype, first)
        if isinstance(first, Tensor):
            if not isinstance(first, cls):
                raise TypeError(f"new(): expected a {cls.__module__}.{cls.__name__}, got a {first.type()}; convert it with "
                                f"tensor.to({cls.dtype})")  # fmt: skip
            return OPS["alias"](first)
        if isinstance(first, (int, np.integer)) or type(first) is type(Tensor().shape):
            return creation.empty(*args, dtype=cls.dtype, device=where)
        if not isinstance(first, (Sequence, np.ndarray, range)):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        return creation.tensor(first, dtype=cls.dtype, device=where)


def _device_of(cls: tensortype, given: Any) -> device:
    where = device(cls.device_type) if given is None else device(given)
    if where.type != cls.device_type:
        raise RuntimeError(f"legacy constructor expects device type: {cls.device_type} but device type: {where.type} was passed")
    if where.type == "cuda" and not cuda.is_available():
        raise TypeError(f"type {cls.__module__}.{cls.__name__} not available: {cuda.why_not_available()}")
    return where


def _over_storage(d: dtype, storage: Any) -> Tensor:
    untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
    if isinstance(storage, TypedStorage) and storage.dtype is not d:
        raise TypeError(f"expected a storage of {d}, got one of {storage.dtype}")
    return _native.new_tensor(None, untyped, d.code, (untyped.nbytes() // d.itemsize,), (1,))


class _StorageMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        wanted: dtype | None = getattr(cls, "dtype_of_class", None)
        return type(value) is TypedStorage and (wanted is None or value.dtype is wanted)


class TypedStorage(metaclass=_StorageMeta):
    """A storage with an element type: a flat sequence of numbers over the bytes of an UntypedStorage."""

    dtype_of_class: dtype | None = None
    dtype: Any
    _untyped: Any

    def __new__(cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> Any:
        d = dtype or cls.dtype_of_class or dtypes.get_default_dtype()
        self = object.__new__(TypedStorage)
        self.dtype = d
        if wrap_storage is not None:
            self._untyped = wrap_storage
        elif args and not isinstance(args[0], (int, np.integer)):
            self._untyped = creation.tensor(list(args[0]), dtype=d, device=device).untyped_storage()
        else:
            self._untyped = creation.empty(int(args[0]) if args else 0, dtype=d, device=device).untyped_storage()
        return self

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> TypedStorage:
        """A storage with a copy of the numbers in a buffer; byte_order: "native", "little" or "big".

        Raises: RuntimeError if byte_order is required and missing; ValueError for any other byte_order, and for a size that is not
        a multiple of the element size.
        """
        d = cls.dtype_of_class or dtypes.get_default_dtype()
        if byte_order is None and d.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        data = np.array(np.frombuffer(buffer, np.uint8)[offset:])
        data = data[: count * d.itemsize] if count >= 0 else data
        if data.size % d.itemsize:
            raise ValueError(f"buffer of {data.size} bytes does not hold a whole number of elements of {d.itemsize} bytes")
        if byte_order in ("little", "big") and byte_order != sys.byteorder:
            data = data.reshape(-1, d.itemsize)[:, ::-1].copy().reshape(-1)
        return TypedStorage(wrap_storage=from_array(data).untyped_storage(), dtype=d)

    def _view(self) -> Tensor:
        return _over_storage(self.dtype, self)

    @property
    def _untyped_storage(self) -> Any:
        return self.untyped()

    def untyped(self) -> Any:
        """The storage of bytes beneath."""
        return self._untyped

    @property
    def device(self) -> Any:
        return self._view().device if self.nbytes() else CPU

    def element_size(self) -> int:
        return self.dtype.itemsize

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def data_ptr(self) -> int:
        return self._untyped.data_ptr()

    def tolist(self) -> list[Any]:
        return self._view().tolist()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = self._view()[index].clone()
            return TypedStorage(wrap_storage=part.untyped_storage(), dtype=self.dtype)
        return self._view()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._view()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        self._view().fill_(value)
        return self

    def copy_(self, source: TypedStorage) -> TypedStorage:
        self._view().copy_(source._view())
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._view().clone().untyped_storage(), dtype=self.dtype)

    # ---- device and conversions ----

    is_sparse = False
    filename = None

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storage's type; or a storage of another dtype, with the numbers converted."""
        if dtype is None:
            return f"torch{'.cuda' if self.is_cuda else ''}.{self.pickle_storage_type()}"
        wanted = STORAGE_TYPES[dtype.removeprefix("torch.")] if isinstance(dtype, str) else dtype
        d: Any = getattr(wanted, "dtype_of_class", None) or wanted
        return _converted(self, d)

    def pickle_storage_type(self) -> str:
        """The name of the legacy storage type. Raises: KeyError for a dtype without a legacy type."""
        return next(f"{name}Storage" for name, d in NAMES.items() if d is self.dtype)

    def resize_(self, size: int) -> None:
        """Shrink, or grow back. Raises NotImplementedError for more than was allocated."""
        self._untyped.resize_(size * self.dtype.itemsize)

    def resizable(self) -> bool:
        return bool(self._untyped.resizable())

    @property
    def is_cuda(self) -> bool:
        return bool(self._untyped.is_cuda)

    def is_pinned(self, device: Any = None) -> bool:
        return bool(self._untyped.is_pinned(device))

    def is_shared(self) -> bool:
        return bool(self._untyped.is_shared())

    def share_memory_(self) -> TypedStorage:
        self._untyped.share_memory_()
        return self

    def get_device(self) -> int:
        return int(self._untyped.get_device())

    def cpu(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.cpu(), dtype=self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.cuda(device), dtype=self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.to(device=device), dtype=self.dtype)

    def __repr__(self) -> str:
        rows = "".join(f" {v}\n" for v in self.tolist())
        return f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def _types(module: str, device_type: str) -> dict[str, Any]:
    def made(name: str) -> tensortype:
        return tensortype(name, (), {"__module__": module, "dtype": NAMES[name[:-6]], "device_type": device_type})

    return {name: made(name) for name in (f"{short}Tensor" for short in _TENSOR_NAMES)}


TENSOR_TYPES = _types("torch", "cpu")
CUDA_TENSOR_TYPES = _types("torch.cuda", "cuda")
STORAGE_TYPES = {
    f"{name}Storage": _StorageMeta(f"{name}Storage", (TypedStorage,), {"__module__": "torch", "dtype_of_class": d})
    for name, d in NAMES.items()
}


def _converted(storage: Any, d: dtype) -> TypedStorage:
    """A storage of the same numbers in another dtype; the numbers of an untyped storage are its bytes."""
    if isinstance(storage, TypedStorage) and storage.dtype is d:
        return storage
    held = storage._view() if isinstance(storage, TypedStorage) else _over_storage(dtypes.uint8, storage)
    return TypedStorage(wrap_storage=held.to(d).untyped_storage(), dtype=d)


def _conversion(d: dtype) -> Any:
    return lambda self: _converted(self, d)


_CONVERSIONS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
    "complex_float": dtypes.complex64, "complex_double": dtypes.complex128,
}  # fmt: skip
untyped.extend({name: _conversion(d) for name, d in _CONVERSIONS.items()})
for _name, _d in _CONVERSIONS.items():
    setattr(TypedStorage, _name, _conversion(_d))


def _storage(self: Tensor) -> TypedStorage:
    """The memory of this tensor as numbers of its dtype."""
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


def _storage_type(self: Tensor) -> Any:
    """The class of `storage()`, by its legacy name."""
    return STORAGE_TYPES[_storage(self).pickle_storage_type()]


def _set(self: Tensor, source: Any = None, storage_offset: int | None = None, size: Any = None, stride: Any = None) -> Tensor:
    """Become a view of the memory of a tensor or storage: of all of it, or of `size` elements `stride` apart from an offset on.
    Without a source, an empty tensor.

    Raises: RuntimeError for another dtype, and for a view that reaches past the storage (torch enlarges it).
    """
    d = self.dtype
    given = source.dtype if isinstance(source, (Tensor, TypedStorage)) else d
    if given is not d:
        raise RuntimeError(f"set_: could not set a tensor of {given} to a tensor of {d}")
    if size is None and (storage_offset is not None or stride is not None) and isinstance(source, Tensor):
        raise TypeError("set_() received an invalid combination of arguments: storage_offset and stride want a size")
    if isinstance(source, Tensor) and size is None:
        self._set_impl(source)
        return self
    storage_offset = 0 if storage_offset is None else storage_offset
    if source is None:
        source, size = creation.empty(0, dtype=d), (0,)
    storage = source if isinstance(source, UntypedStorage) else source.untyped() if isinstance(source, TypedStorage) else (
        source.untyped_storage())  # fmt: skip
    shape = tuple(size) if size is not None else (storage.nbytes() // d.itemsize - storage_offset,)
    steps = TensorSpec.contiguous(shape, d).strides if stride is None else tuple(stride)
    last = storage_offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if 0 not in shape else -1
    if storage_offset < 0 or min(shape, default=0) < 0 or (last + 1) * d.itemsize > storage.nbytes():
        raise RuntimeError(f"set_: size {list(shape)}, strides {list(steps)} and offset {storage_offset} reach past a storage of "
                           f"{storage.nbytes()} bytes")  # fmt: skip
    self._set_impl(_native.new_tensor(None, storage, d.code, shape, steps, storage_offset))
    return self


_set.__name__ = _set.__qualname__ = "set_"
attach({"storage": _storage, "_typed_storage": _storage, "storage_type": _storage_type, "set_": _set})


def set_default_tensor_type(t: Any) -> None:
    """Make the type `t` (or its name) what `Tensor(...)` and Python floats become. Deprecated by torch: see
    `set_default_dtype`. Raises: TypeError for a type that is not floating-point.
    """
    if isinstance(t, str):
        name = t.removeprefix("torch.").removeprefix("cuda.")
        known = CUDA_TENSOR_TYPES if t.startswith("torch.cuda.") else TENSOR_TYPES
        if name not in known:
            raise TypeError(f"invalid type object: '{t}'; known are torch.{', torch.'.join(TENSOR_TYPES)} and the types of torch.cuda")
        t = known[name]
    if not isinstance(t, tensortype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if t.is_cuda:
        raise NotImplementedError(f"set_default_tensor_type: {t.__name__} of torch.cuda; use set_default_device('cuda')")
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
                  "torch.set_default_device() as alternatives.", stacklevel=2)  # fmt: skip
    dtypes.set_default_dtype(t.dtype)
