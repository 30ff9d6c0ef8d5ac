"""Methods of UntypedStorage, a type of the C core: bytes by index, copies, conversions, under torch's names."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import CPU, TYPES, device
from eager.functions import creation
from eager.optable.memory import from_array

UntypedStorage = _native.UntypedStorage


def _bytes(storage: Any) -> Any:
    """The memory as a tensor of uint8."""
    return _native.new_tensor(None, storage, dtypes.uint8.code, (storage.nbytes(),), (1,))


def _made(*args: Any, device: Any = None) -> Any:
    """UntypedStorage(), UntypedStorage(nbytes), UntypedStorage(sequence of ints)."""
    if len(args) > 1:
        raise RuntimeError(f"torch.UntypedStorage(): takes a size or a sequence, got {len(args)} arguments")
    given: Any = args[0] if args else 0
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if given < 0:
            raise RuntimeError(f"torch.UntypedStorage(): a size of {given} bytes; allowed: 0 or more")
        return creation.empty(int(given), dtype=dtypes.uint8, device=device).untyped_storage()
    if not isinstance(given, Sequence):
        raise TypeError(f"torch.UntypedStorage(): argument must be a size or a sequence of ints, not {type(given).__name__}")
    wrong = next((v for v in given if not isinstance(v, (int, np.integer))), None)
    if wrong is not None:
        raise RuntimeError(f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(given).__name__}), but one of the "
                           f"items was of type {type(wrong).__name__} instead of int")  # fmt: skip
    return creation.tensor([v & 255 for v in given], dtype=dtypes.uint8, device=device).untyped_storage()


def _place(self: Any, index: int) -> int:
    n = self.nbytes()
    if not -n <= index < n:
        raise IndexError(f"index {index} out of range for storage of size {n}")
    return index % n


def _range(self: Any, index: slice) -> tuple[int, int]:
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return start, max(stop - start, 0)


def _get(self: Any, index: Any) -> Any:
    """One byte, or a storage over the bytes of a slice, which it shares."""
    if isinstance(index, slice):
        start, count = _range(self, index)
        place = self.device
        return _native.storage_from_memory(self.data_ptr() + start, count, self, TYPES.index(place.type), place.index or 0)
    if not isinstance(index, (int, np.integer)):
        raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
    return _bytes(self)[_place(self, int(index))].item()


def _set(self: Any, index: Any, value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
    if isinstance(index, slice):
        start, count = _range(self, index)
    elif isinstance(index, (int, np.integer)):
        start, count = _place(self, int(index)), 1
    else:
        raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
    _bytes(self)[start : start + count].fill_(int(value) & 255)


def _text(self: Any) -> str:
    rows = "".join(f" {v}\n" for v in tolist(self)) if self.device.type != "meta" else "...\n"
    return f"{rows or chr(10)}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def tolist(self: Any) -> list[int]:
    """The bytes as ints."""
    return _bytes(self).tolist() if self.nbytes() else []


def fill_(self: Any, value: int) -> Any:
    """Every byte becomes `value`."""
    self[:] = value
    return self


def copy_(self: Any, source: Any, non_blocking: bool | None = None) -> Any:
    """The bytes of another storage of this size. Raises RuntimeError for another size."""
    if source.nbytes() != self.nbytes():
        raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
    if self.nbytes():
        _bytes(self).copy_(_bytes(source.untyped()))
    return self


def clone(self: Any) -> Any:
    """A copy of the memory."""
    return _bytes(self).clone().untyped_storage()


def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """The storage on a device: itself, if it is there."""
    return self if self.device == _device(device) else _bytes(self).to(_device(device)).untyped_storage()


def _device(given: Any) -> device:
    return device(given)


def _cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    return to(self, device="cuda" if device is None else device)


def _on_host(self: Any) -> Any:
    return to(self, device=CPU)


def share(self: Any) -> Any:
    """Move the memory to where other processes can map it. Raises NotImplementedError: a storage keeps its address."""
    if not _bytes(self).is_shared():
        raise NotImplementedError("UntypedStorage.share_memory_: memory in use does not move; share the tensor (Tensor.share_memory_)")
    return self


def byteswap(self: Any, dtype: Any) -> None:
    """The bytes of every element of `dtype` (of every part, for a complex one) in the other order, in place."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    if size > 1:
        rows = _bytes(self).reshape(-1, size)
        rows.copy_(rows.flip(1))


def from_buffer(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = dtypes.uint8) -> Any:
    """A storage with a copy of the elements of `dtype` in a buffer."""
    data = np.array(np.frombuffer(buffer, np.uint8)[offset:])
    data = data[: count * dtype.itemsize] if count >= 0 else data
    if byte_order not in (None, "native", sys.byteorder):
        data = data.reshape(-1, dtype.itemsize)[:, ::-1].copy().reshape(-1)
    return from_array(data).untyped_storage()


_METHODS: dict[str, Any] = {
    "_get": _get, "_set": _set, "_text": _text, "__getitem__": _get, "__setitem__": _set, "tolist": tolist, "fill_": fill_, "copy_": copy_,
    "clone": clone, "to": to, "cpu": _on_host, "cuda": _cuda, "share_memory_": share, "byteswap": byteswap,
    "from_buffer": staticmethod(from_buffer), "untyped": lambda self: self, "new": lambda self: _made(device=self.device),
    "element_size": lambda self: 1, "resizable": lambda self: self.root.owner is None and self.device.type == "cpu",
    "is_pinned": lambda self, device=None: _bytes(self).is_pinned(), "is_shared": lambda self: _bytes(self).is_shared(),
    "get_device": lambda self: -1 if self.device.index is None else self.device.index,
    "type": lambda self: "torch.storage.UntypedStorage" if self.device.type == "cpu" else "torch.cuda.UntypedStorage",
    "is_cuda": property(lambda self: self.device.type == "cuda"), "is_sparse": False, "is_sparse_csr": False,
    "filename": property(lambda self: None), "__copy__": clone,
}  # fmt: skip


def extend(conversions: dict[str, Any]) -> None:
    """Set the methods of the type. conversions: the methods that return storages of one dtype, from the module above."""
    _native.extend_storage_type(_made, _METHODS | conversions)
