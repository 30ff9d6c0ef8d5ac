"""Loading: torch's zip archives, and the format that preceded torch 1.6."""
from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from eager import _native
from eager._storage.tensor_types import TypedStorage
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.optable.declaration import unexpected_keyword
from eager.serialization import restricted
from eager.serialization.names import found_object
from eager.serialization.rebuild import rebuild_from_type, safe_names
from eager.serialization.settings import MAP_SHARED, LoadEndianness, current
from eager.serialization.store import PathLike, bytes_over, mapped, swapped

_LEGACY_MAGIC, _LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_ADVICE = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the "
    "source of the checkpoint. \n\t(1) Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can "
    "result in arbitrary code execution. Do it only if you got the file from a trusted source.\n\t(2) Alternatively, to load with "
    "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler error: "
)
LoadStorage = Callable[[Any], Any]
_PICKLE_OPTIONS = ("encoding", "errors", "fix_imports", "buffers")  # options of pickle.Unpickler
# The errors of zipfile for bytes that are not an archive, or a damaged one.
_DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, IndexError, KeyError,
           OverflowError, NotImplementedError, RuntimeError)  # fmt: skip


class _FullUnpickler(pickle.Unpickler):
    """Allows every name: maps torch's names to objects here and imports the others."""

    def __init__(self, file: Any, load_storage: LoadStorage, **settings: Any) -> None:
        super().__init__(file, **settings)
        setattr(self, "persistent_load", load_storage)  # noqa: B010 - mypy rejects an assignment to a method

    def find_class(self, module: str, name: str) -> Any:
        found = safe_names().get(("builtins" if module == "__builtin__" else module, name))
        if found is rebuild_from_type:
            return lambda *args: rebuild_from_type(lambda fn: True, *args)
        if found is not None:
            return found
        if module == "torch" or module.startswith("torch."):
            return found_object(module, name)
        return super().find_class(module, name)


def _unpickle(data: Any, at: int, load_storage: LoadStorage, weights_only: bool, settings: dict[str, Any]) -> tuple[Any, int]:
    """The object of the pickle at byte `at`, and the position after it."""
    if weights_only:
        reader = restricted.Unpickler(data, load_storage, current.trusted, at)
        try:
            return reader.load(), reader.at
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(_ADVICE + str(error)) from None
    file = io.BytesIO(data)
    file.seek(at)
    return _FullUnpickler(file, load_storage, **{"encoding": "utf-8", **settings}).load(), file.tell()


def load(f: PathLike | BinaryIO, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:  # fmt: skip
    """Read a file written by `save`, here or in torch.

    map_location: a device, a dict of devices, or a function of (storage, location). weights_only: True by
    default; False lets the file run any code. mmap: map the file and read tensors when they are used.
    Raises: RuntimeError for a file of another format, a truncated or a damaged one; UnpicklingError for a name that is
    not allowed, and for a damaged pickle.
    """
    only = pickle_module is None if weights_only is None else weights_only
    allowed = ("encoding",) if only else _PICKLE_OPTIONS
    for name in pickle_load_args:
        if name not in allowed:
            known = (*allowed, "map_location", "pickle_module", "weights_only", "mmap")
            raise TypeError(unexpected_keyword("Unpickler.__init__", name, known))
    if only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_module is not None and pickle_module.Unpickler is not pickle.Unpickler:
        raise NotImplementedError("load: pickle_module is Python's pickle; others are not implemented")
    path = f if isinstance(f, (str, os.PathLike)) else None
    if mmap and path is None:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if path is None and not hasattr(f, "read"):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'read'. You can only torch.load from a file that is "
                             "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it "
                             "instead.")  # fmt: skip
    data: Any = mapped(path, current.mapping == MAP_SHARED) if mmap and path is not None else whole_file(f)
    if len(data) == 0:
        raise EOFError(f"Ran out of input: {_what(f)} is empty")
    if bytes(data[:4]) == b"PK\x03\x04":
        return _load_archive(Archive(data, f, copy=not mmap), map_location, only, pickle_load_args)
    if mmap:
        raise RuntimeError("mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
                           f"torch.save your checkpoint with this option in order to use mmap ({_what(f)}).")  # fmt: skip
    if data[0] == pickle.PROTO[0]:
        return _load_legacy(data, f, map_location, only, pickle_load_args)
    if not only:
        raise pickle.UnpicklingError(f"invalid load key, {chr(data[0])!r}.")
    raise pickle.UnpicklingError(f"Weights only load failed: {_what(f)} was not written by torch.save: it begins with "
                                 f"{bytes(data[:8])!r}, not with a zip archive or a pickle")  # fmt: skip


def whole_file(f: Any) -> bytes:
    """The contents of a path or of a file object."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return file.read()
    data: bytes = f.read()
    return data


def _what(f: Any) -> str:
    return f"'{os.fspath(f)}'" if isinstance(f, (str, os.PathLike)) else "the file"


# ---- zip archives ----


class Archive:
    """The records of an archive by name, as bytes or as storages over the archive's memory."""

    def __init__(self, data: Any, f: Any, copy: bool) -> None:
        self.data, self.f, self.copy = data, f, copy
        try:
            self.zip = zipfile.ZipFile(_Seekable(data))
        except _DAMAGE as error:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory: "
                               f"{_what(f)} is cut off or damaged ({error})") from None  # fmt: skip
        self.entries = {n.split("/", 1)[1]: self.zip.getinfo(n) for n in self.zip.namelist() if "/" in n}

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def read(self, name: str) -> bytes:
        """The bytes of a record. Raises: RuntimeError if it is missing or damaged."""
        return bytes(self._bytes(name))

    def storage(self, name: str) -> Any:
        """A record as a storage: over the mapped file, or a copy."""
        a = np.frombuffer(self._bytes(name), np.uint8)
        return bytes_over(a, copy=self.copy)

    def _bytes(self, name: str) -> Any:
        info = self.entries.get(name)
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: {_what(self.f)} is damaged, or no file of torch.save")
        if info.compress_type != zipfile.ZIP_STORED:
            try:
                return self.zip.read(info)
            except _DAMAGE as error:
                raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {_what(self.f)} is damaged ({error})") from None
        head = bytes(self.data[info.header_offset : info.header_offset + 30]) if info.header_offset >= 0 else b""
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {_what(self.f)} is damaged")
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        start = info.header_offset + 30 + name_length + extra_length
        if start + info.file_size > len(self.data):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {_what(self.f)} is cut off")
        piece = memoryview(self.data)[start : start + info.file_size]
        # A mapped file is not verified, because that would read all of it; a checksum of 0 means that none was written.
        if self.copy and info.CRC and zlib.crc32(piece) != info.CRC:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {_what(self.f)} is damaged (its checksum differs; "
                               "a file that was written through a shared mapping is loaded with mmap=True)")  # fmt: skip
        return piece


class _Seekable(io.RawIOBase):
    """A buffer as a seekable file, without a copy."""

    def __init__(self, data: Any) -> None:
        self.data, self.at = memoryview(data), 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = max(0, offset + (0, self.at, len(self.data))[whence])
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, size: int | None = -1) -> bytes:
        end = len(self.data) if size is None or size < 0 else min(self.at + size, len(self.data))
        piece = bytes(self.data[self.at : end])
        self.at = max(end, self.at)
        return piece


def _byte_order(archive: Archive) -> str:
    if "byteorder" in archive:
        order = archive.read("byteorder").decode("latin1")
        if order not in ("little", "big"):
            raise RuntimeError(f"load: the file says that its byte order is {order!r}; allowed: little, big")
        return order
    chosen = current.order or LoadEndianness.NATIVE
    return sys.byteorder if chosen is LoadEndianness.NATIVE else chosen.name.lower()


def _load_archive(archive: Archive, map_location: Any, weights_only: bool, settings: dict[str, Any]) -> Any:
    if "constants.pkl" in archive:
        if weights_only:
            raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``.")
        raise NotImplementedError("load: TorchScript archives are not implemented")
    order = _byte_order(archive)
    storages: dict[str, Any] = {}

    def load_storage(pid: Any) -> Any:
        d, key, location = _storage_id(pid)
        if key not in storages:
            storage = archive.storage(f"data/{key}")
            if order != sys.byteorder:
                storage = swapped(storage, _number_width(d))
            storages[key] = _placed(storage, map_location, location)
        return TypedStorage(wrap_storage=storages[key], dtype=d)

    return _unpickle(archive.read("data.pkl"), 0, load_storage, weights_only, settings)[0]


def _number_width(d: dtype) -> int:
    return d.itemsize // 2 if d.is_complex else d.itemsize


def _storage_id(pid: Any) -> tuple[dtype, str, str]:
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], dtype) or not all(
            isinstance(part, str) for part in pid[2:4]):  # fmt: skip
        raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")
    return pid[1], pid[2], pid[3]


# ---- the format before torch 1.6 ----


def _load_legacy(data: Any, f: Any, map_location: Any, weights_only: bool, settings: dict[str, Any]) -> Any:
    """Pickles of a magic number, a version, the writer's number sizes, the object and keys; then each storage's bytes.

    The storages follow the object that uses them, so the object's pickle is read twice: first to find their position.
    """

    def refuse(pid: Any) -> Any:
        raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")

    at, header = 0, []
    for _ in range(3):
        part, at = _unpickle(data, at, refuse, True, {})
        header.append(part)
        if header[0] != _LEGACY_MAGIC:
            raise RuntimeError(f"Invalid magic number; corrupt file? torch.save did not write {_what(f)}")
    if header[1] != _LEGACY_PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {header[1]}")
    order = "little" if not isinstance(header[2], dict) or header[2].get("little_endian", True) else "big"
    described: dict[str, tuple[dtype, str]] = {}

    def describe(pid: Any) -> None:
        d, key, location = _storage_id(pid)
        described.setdefault(key, (d, location))
        if len(pid) > 5 and pid[5] is not None:
            raise NotImplementedError("load: views of storages, as torch before 0.4 wrote them, are not implemented")

    scanner = restricted.Scanner(data, describe, {}, at)
    scanner.load()
    keys, behind = _unpickle(data, scanner.at, refuse, True, {})
    storages: dict[str, Any] = {}
    for key in keys if isinstance(keys, list) else ():
        d, location = described.get(key, (None, ""))
        storage, behind = _legacy_storage(data, behind, d, order, f)
        storages[key] = _placed(storage, map_location, location)

    def load_storage(pid: Any) -> Any:
        d, key, _ = _storage_id(pid)
        if key not in storages:
            raise RuntimeError(f"load: {_what(f)} is damaged: it has no storage {key!r}")
        return TypedStorage(wrap_storage=storages[key], dtype=d)

    return _unpickle(data, at, load_storage, weights_only, settings)[0]


def _legacy_storage(data: Any, at: int, d: dtype | None, order: str, f: Any) -> tuple[Any, int]:
    """The storage at byte `at` (a count of elements and their bytes), and the position after it."""
    if d is None or at + 8 > len(data):
        raise RuntimeError(f"load: {_what(f)} is cut off or damaged: a storage is missing")
    (n,) = struct.unpack("<q" if order == "little" else ">q", data[at : at + 8])
    size, at = n * d.itemsize, at + 8
    if not 0 <= size <= len(data) - at:
        raise RuntimeError(f"load: {_what(f)} is cut off or damaged: a storage of {size} bytes has {len(data) - at}")
    storage = bytes_over(np.frombuffer(data, np.uint8, size, at), copy=True)
    return (storage if order == sys.byteorder else swapped(storage, _number_width(d))), at + size


# ---- devices ----


def _as_bytes(storage: Any) -> Any:
    return _native.new_tensor(None, storage, 1, (storage.nbytes(),), (1,))


def _target(map_location: Any, location: str, storage: Any) -> Any:
    if callable(map_location) and not isinstance(map_location, device):
        return map_location(storage, location)
    if isinstance(map_location, Mapping):
        return map_location.get(location, location)
    return location if map_location is None else map_location


def _placed(storage: Any, map_location: Any, location: str) -> Any:
    """The storage on the device that `map_location` selects."""
    target = _target(map_location, location, storage)
    if target is None:
        target = location
    if isinstance(target, (TypedStorage, _native.UntypedStorage)):
        return target.untyped() if isinstance(target, TypedStorage) else target
    where = device(target)
    if where.type == "cpu":
        return storage
    try:
        return _as_bytes(storage).to(where).untyped_storage()
    except RuntimeError as error:
        if where.type != "cuda" or map_location is not None:
            raise
        raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                           "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
                           "storages to the CPU.") from error  # fmt: skip


# ---- inspection without loading ----


def get_unsafe_globals_in_checkpoint(f: PathLike | BinaryIO) -> list[str]:
    """The names in a file that weights_only would reject. Raises: RuntimeError for a file that is not a zip archive."""
    data = whole_file(f)
    if data[:4] != b"PK\x03\x04":
        raise RuntimeError("The input must be a checkpoint that was saved with `torch.save(_use_new_zipfile_serialization=True)`")
    strings: list[Any] = []
    found: dict[str, None] = {}
    for op, arg, _ in pickletools.genops(Archive(data, f, copy=True).read("data.pkl")):
        if isinstance(arg, str) and "UNICODE" in op.name:
            strings.append(arg)
        if op.name in ("GLOBAL", "STACK_GLOBAL"):
            module, name = str(arg).split(" ", 1) if op.name == "GLOBAL" else strings[-2:]
            key = ("builtins" if module == "__builtin__" else module, name)
            if key not in safe_names() and key not in current.trusted:
                found[f"{module}.{name}"] = None
    return list(found)
