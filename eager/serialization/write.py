"""Saving: a zip archive with one pickle and one record per storage, in torch's layout."""
from __future__ import annotations

import collections
import io
import operator
import os
import pickle
import struct
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from eager import _native
from eager._storage.tensor_types import TypedStorage
from eager._tensor.tensor import Size, Tensor
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.nn import parameter
from eager.nn._base import Registry
from eager.serialization.names import STORAGE_OF, Global, written_name
from eager.serialization.rebuild import OWN_MARKS
from eager.serialization.store import PathLike, bytes_in, replacing
from eager.sparse import SparseTensor

_ALIGNMENT = 64
_ZIP64_FROM, _ZIP64_EXTRA = 2**31 - 1, 20
DEFAULT_PROTOCOL = 2  # the pickle protocol of files
_LEGACY_MAGIC, _LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


class _StorageKey(tuple[Any, ...]):
    """The replacement of a storage in the pickle; written as a persistent id."""

    __slots__ = ()


_REBUILD_TENSOR = Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_TENSOR_V3 = Global("torch._utils", "_rebuild_tensor_v3")
_REBUILD_META = Global("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_PARAMETER = Global("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")
_REBUILD_SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
_LAYOUT = Global("torch.serialization", "_get_layout")
_SIZE, _DEVICE, _TENSOR = Global("torch", "Size"), Global("torch", "device"), Global("torch", "Tensor")
_UNTYPED = Global("torch.storage", "UntypedStorage")

if TYPE_CHECKING:

    class _PythonPickler:  # typeshed declares pickle._Pickler without its methods
        dispatch: ClassVar[dict[Any, Callable[..., None]]]
        proto: int
        write: Callable[[bytes], object]

        def __init__(self, file: BinaryIO, protocol: int) -> None: ...
        def dump(self, obj: object) -> None: ...
        def memoize(self, obj: object) -> None: ...
        def save_global(self, obj: Any, name: str | None = None) -> None: ...
else:
    _PythonPickler = pickle._Pickler


class _Called:
    """A named function with arguments, written as a call for the loader."""

    __slots__ = ("args", "fn")

    def __init__(self, fn: Global, args: tuple[Any, ...]) -> None:
        self.fn, self.args = fn, args


class Pickler(_PythonPickler):
    """Writes objects as torch does.

    Written in Python, because the C pickler cannot write a name that is not importable.
    """

    dispatch: ClassVar[dict[Any, Any]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: BinaryIO, protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol=protocol)
        self.storages: dict[int, tuple[str, Any]] = {}  # id of the memory -> key, storage
        self.legacy = legacy
        self.widths: dict[str, int] = {}  # bytes per element of each storage, as written in the pickle

    def persistent_id(self, obj: Any) -> Any:
        """The persistent id of a storage; None for any other object."""
        if type(obj) is _StorageKey:
            return tuple(obj)
        if isinstance(obj, TypedStorage):
            return tuple(self._key(obj.untyped(), obj.dtype))
        if isinstance(obj, _native.UntypedStorage):
            return tuple(self._key(obj, None))
        return None

    def _key(self, storage: Any, d: dtype | None) -> _StorageKey:
        root = storage.root
        key, _ = self.storages.setdefault(id(root), (str(len(self.storages)), root))
        if key not in self.widths:
            self.widths[key] = 1 if d is None else d.itemsize
        kind, width = (_UNTYPED, 1) if d is None else (Global("torch", STORAGE_OF[d]), d.itemsize)
        location = str(device(storage.device)) if hasattr(storage, "device") else "cpu"
        return _StorageKey(("storage", kind, key, location, root.nbytes() // width, *([None] if self.legacy else [])))

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of tensors, sizes, devices and module registries; NotImplemented for other objects."""
        if isinstance(obj, SparseTensor):  # checked first, because it is an instance of Tensor too
            return _REBUILD_SPARSE, (_Called(_LAYOUT, (str(obj.layout),)), (obj._indices(), obj._values(), obj.shape, obj.is_coalesced()))
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, _Called):
            return obj.fn, obj.args
        if isinstance(obj, Size):
            return _SIZE, (tuple(obj),)
        if isinstance(obj, device):
            return _DEVICE, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if type(obj) is Registry:
            return collections.OrderedDict, (), None, None, iter(obj.items())
        return NotImplemented

    def _reduce_tensor(self, t: Tensor) -> Any:
        if parameter.is_lazy(t):
            return t.__reduce_ex__(self.proto)
        kept = {k: v for k, v in t.__dict__.items() if k not in OWN_MARKS}
        if type(t) is parameter.Parameter:
            data = _Called(*self._plain(t, False))
            hooks: dict[str, Any] = collections.OrderedDict()
            if kept:
                return _REBUILD_PARAMETER_WITH_STATE, (data, bool(t.requires_grad), hooks, kept)
            return _REBUILD_PARAMETER, (data, bool(t.requires_grad), hooks)
        fn, args = self._plain(t, bool(t.requires_grad and t.is_leaf))
        if type(t) is Tensor and not kept:
            return fn, args
        return _REBUILD_FROM_TYPE, (fn, _TENSOR if type(t) is Tensor else type(t), args, kept)

    def _plain(self, t: Tensor, requires_grad: bool) -> tuple[Global, tuple[Any, ...]]:
        """The call that rebuilds the tensor without subclass and attributes."""
        if t.device.type == "meta":
            return _REBUILD_META, (t.dtype, tuple(t.shape), t.stride(), requires_grad)
        if t.is_fake:
            raise RuntimeError("save: a fake tensor has no data to save")
        place: tuple[Any, ...] = (t.storage_offset(), tuple(t.shape), t.stride(), requires_grad, collections.OrderedDict())
        if t.dtype in STORAGE_OF:
            return _REBUILD_TENSOR, (self._key(t.untyped_storage(), t.dtype), *place)
        return _REBUILD_TENSOR_V3, (self._key(t.untyped_storage(), None), *place, t.dtype)

    def save_named(self, obj: Global) -> None:
        """Write a Global by its name."""
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_dtype(self, obj: dtype) -> None:
        """Write a dtype by torch's name."""
        self.write(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write classes and functions of this package by torch's names, others as pickle does."""
        found = written_name(obj) if name is None else None
        if found is None:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + "{}\n{}\n".format(*found).encode())
        self.memoize(obj)

    dispatch[Global] = save_named
    dispatch[dtype] = save_dtype
    dispatch[types.FunctionType] = save_global


def save(obj: Any, f: PathLike | BinaryIO, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:  # fmt: skip
    """Write an object with its tensors; views that share memory share it again after loading.

    f: a path, or a file object open for writing. A path is written to a temporary file, which then replaces it.
    _use_new_zipfile_serialization: False writes the format that preceded torch 1.6.
    Raises: RuntimeError for a missing folder; AttributeError for a file object without `write`.
    """
    pickle_protocol = operator.index(pickle_protocol)
    if pickle_module.Pickler is not pickle.Pickler:
        raise NotImplementedError("save: pickle_module is Python's pickle; others are not implemented")
    write = _write_archive if _use_new_zipfile_serialization else _write_legacy
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f)}")
        buffer = io.BytesIO()
        write(obj, buffer, "archive", pickle_protocol, not _disable_byteorder_record)
        f.write(buffer.getbuffer())
        return
    path = Path(f)
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    with replacing(path) as file:
        write(obj, file, path.stem or "archive", pickle_protocol, not _disable_byteorder_record)


def _write_archive(obj: Any, file: Any, root: str, protocol: int, byteorder: bool) -> None:
    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_record(archive, file, f"{root}/data.pkl", pickled.getbuffer())
        if byteorder:
            _write_record(archive, file, f"{root}/byteorder", sys.byteorder.encode())
        for key, storage in pickler.storages.values():
            _write_record(archive, file, f"{root}/data/{key}", bytes_in(storage))
        _write_record(archive, file, f"{root}/version", b"3\n")


def _write_record(archive: zipfile.ZipFile, file: Any, name: str, data: Any) -> None:
    """Write an uncompressed record whose data starts at a multiple of 64 bytes, so that it can be mapped."""
    info = zipfile.ZipInfo(name)
    info.file_size = len(data)
    large = len(data) > _ZIP64_FROM
    head = file.tell() + 30 + len(name.encode()) + (_ZIP64_EXTRA if large else 0)
    gap = -(head + 4) % _ALIGNMENT
    info.extra = struct.pack("<HH", 0x4246, gap) + b"Z" * gap
    with archive.open(info, "w", force_zip64=large) as record:
        record.write(data)


def _write_legacy(obj: Any, file: Any, root: str, protocol: int, byteorder: bool) -> None:
    """Write the format that preceded torch 1.6: pickles of a header, the object and the storages' keys, then their bytes."""
    sizes = {"short": 2, "int": 4, "long": 4}
    for part in (_LEGACY_MAGIC, _LEGACY_PROTOCOL, {"protocol_version": _LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little",
                                                   "type_sizes": sizes}):  # fmt: skip
        pickle.dump(part, file, protocol=protocol)
    pickler = Pickler(file, protocol, legacy=True)
    pickler.dump(obj)
    keys = sorted(key for key, _ in pickler.storages.values())
    pickle.dump(keys, file, protocol=protocol)
    storages = dict(pickler.storages.values())
    for key in keys:
        data = bytes_in(storages[key])
        file.write(struct.pack("<q", len(data) // pickler.widths[key]))
        file.write(data)
