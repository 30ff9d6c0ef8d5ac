"""File contents: written atomically, and read as storages."""
from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.spec import TensorSpec
from eager.optable.array_functions import on_host
from eager.optable.memory import empty

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` if the block succeeds, and is deleted otherwise."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def bytes_over(a: Any, copy: bool) -> Any:
    """A storage over the memory of a uint8 array (n,), or over a copy."""
    if copy:
        t = empty(TensorSpec.contiguous(a.shape, dtypes.uint8))
        t._array[...] = a
        return t.untyped_storage()
    return _native.storage_from_memory(a.ctypes.data, a.nbytes, a)


def bytes_in(storage: Any) -> memoryview:
    """The bytes of a storage: its own memory on the CPU, a copy of a GPU's."""
    n = storage.nbytes()
    if n == 0:
        return memoryview(b"")
    return memoryview(on_host(_native.new_tensor(None, storage, dtypes.uint8.code, (n,), (1,))._array))


def swapped(storage: Any, width: int) -> Any:
    """A storage with the bytes of every `width`-byte number reversed."""
    if width == 1:
        return storage
    data = np.frombuffer(bytes_in(storage), np.uint8)
    return bytes_over(data.reshape(-1, width)[:, ::-1].reshape(-1), copy=True)


def mapped(path: PathLike, shared: bool) -> Any:
    """A file mapped into memory. shared: writes change the file; otherwise they stay private."""
    with open(path, "r+b" if shared else "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


NATIVE_ORDER = sys.byteorder
