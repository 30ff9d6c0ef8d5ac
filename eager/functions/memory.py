"""Where a tensor's memory lies: shared with other processes, or page-locked for a GPU.

Shared memory is a file without a name: it goes when the last process that maps it ends, however it ends.
"""
from __future__ import annotations

import functools
import math
import os
import sys
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from eager import _native, cuda
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.spec import TensorSpec
from eager.optable.memory import array_module, cuda_backend, empty, from_array


class SharedFile:
    """An open file whose memory a storage maps; closed with the last reference."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.nbytes = nbytes

    def __del__(self) -> None:
        os.close(self.fd)

    def storage(self) -> Any:
        """A storage over the file's memory."""
        made = _native.storage_from_fd(self.fd, self.nbytes)
        _shared[made] = self
        return made


_shared: WeakKeyDictionary[Any, SharedFile] = WeakKeyDictionary()
_pinned: WeakSet[Any] = WeakSet()


def nameless_file(nbytes: int) -> int:
    """The descriptor of a new file of `nbytes` zeros that no folder lists."""
    fd = os.memfd_create("framejit", os.MFD_CLOEXEC)
    os.ftruncate(fd, nbytes)
    return fd


def shared_file(t: Any) -> SharedFile | None:
    """The file that the tensor's storage maps, or None if the memory is private."""
    return _shared.get(t.untyped_storage().root)


def is_shared(self: Any) -> bool:
    """Whether other processes may map this memory. Memory of a GPU counts as shared."""
    return self.device.type == "cuda" or shared_file(self) is not None


def _references(t: Any) -> int:
    """References to the tensor's storage, its own ndarray's among them."""
    storage = t.untyped_storage().root
    assert t._array is not None
    return sys.getrefcount(storage)


@functools.lru_cache(maxsize=1)
def _references_of_one() -> int:
    """`_references` of a tensor that shares its memory with no other tensor. Each further tensor adds two: itself and its ndarray."""
    return _references(empty(TensorSpec.contiguous((1,), dtypes.float32)))


def share_memory_(self: Any) -> Any:
    """Move the tensor's storage into memory that other processes can map, and return self.

    Children that are forked, and processes that it is sent to, then see each other's writes. Nothing happens on a GPU,
    for an empty tensor, or if it is shared already. Ndarrays made of it before stay with the old memory.
    Raises: NotImplementedError if other tensors than the one it views lie in the same memory: they would stay there too.
    """
    source = self.untyped_storage().root
    if is_shared(self) or source.nbytes() == 0:
        return self
    moved = [self] if self._base is None else [self, self._base]
    for t in moved:
        assert t._array is not None  # made now, so that it is counted
    if _references(self) > _references_of_one() + 2 * (len(moved) - 1) + 1:  # and `source` here
        raise NotImplementedError("share_memory_: other tensors view this tensor's memory and would lose it; share it before "
                                  "views are made, or share a clone()")  # fmt: skip
    storage = SharedFile(nameless_file(source.nbytes()), source.nbytes()).storage()
    memoryview(storage)[:] = memoryview(source)
    for t in moved:
        t._set_impl(_native.new_tensor(Tensor, storage, t.dtype.code, tuple(t.shape), t.stride(), t.storage_offset()))
    return self


def is_pinned(self: Any, device: Any = None) -> bool:
    """Whether the memory is page-locked. device: deprecated; it must name a device, and has no effect."""
    if device is not None:
        _device(device)
    return self.untyped_storage().root in _pinned


def pin_memory(self: Any, device: Any = None) -> Any:
    """A copy in page-locked memory, which a GPU copies from without the CPU; self if it is in such memory already.

    Raises: RuntimeError for a tensor that is not on the CPU, or without a GPU.
    """
    if is_pinned(self):
        return self
    if self.device.type != "cpu":
        raise RuntimeError(f"cannot pin 'torch.{self.device.type}.{self.dtype.name}' only dense CPU tensors can be pinned")
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    source = self.detach().contiguous()._array
    block = array_module(_device("cuda")).cuda.alloc_pinned_memory(max(1, source.nbytes))
    a = np.frombuffer(block, source.dtype, math.prod(source.shape)).reshape(source.shape)
    a[...] = source
    made = from_array(a)
    _pinned.add(made.untyped_storage().root)
    return made


def record_stream(self: Any, stream: Any) -> None:
    """Note that a stream uses the memory of a CUDA tensor: the memory is not reused before the stream is done with it.

    Raises: NotImplementedError for a tensor on the CPU.
    """
    if self.device.type != "cuda":
        raise NotImplementedError(f"record_stream: a tensor on {self.device}; allowed: cuda")
    cuda_backend().record_stream(self, stream._stream)


def _device(name: Any) -> Any:
    return device(name)


METHODS: dict[str, Any] = {"share_memory_": share_memory_, "is_shared": is_shared, "pin_memory": pin_memory, "is_pinned": is_pinned,
                           "record_stream": record_stream}  # fmt: skip
FUNCTIONS: dict[str, Any] = {}
