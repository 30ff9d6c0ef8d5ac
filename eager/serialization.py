"""Saving and loading: torch's zip format (`save`, `load`) and safetensors.

A file of `save` is a zip archive with one pickle and one record per storage, laid out as torch lays it
out, so that either library reads what the other wrote. Loading runs no code from the file by default:
only the few functions that rebuild tensors, and plain containers, may be named in it.
"""
from __future__ import annotations

import collections
import io
import json
import math
import mmap
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from eager import _native, dtypes
from eager.device import CPU, device
from eager.dtypes import dtype
from eager.nn import parameter
from eager.ops.table import empty
from eager.spec import TensorSpec
from eager.tensor import Size, Tensor

PathLike = str | os.PathLike[str]
_ALIGNMENT = 64
_STORAGE_NAMES = {
    "FloatStorage": dtypes.float32, "DoubleStorage": dtypes.float64, "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8, "BoolStorage": dtypes.bool_,
    "ComplexFloatStorage": dtypes.complex64, "ComplexDoubleStorage": dtypes.complex128,
}  # fmt: skip
_NAME_OF_STORAGE = {d: name for name, d in _STORAGE_NAMES.items()}


class _Global:
    """A name that stands in the pickle as torch's, whatever it is called here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is only a name in a file")


class _StorageKey(tuple[Any, ...]):
    """What a storage is replaced by in the pickle; written as a persistent id."""

    __slots__ = ()


_REBUILD_TENSOR = _Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_SIZE, _DEVICE = _Global("torch", "Size"), _Global("torch", "device")


# ---- writing ----


_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """Writes tensors as torch does. In Python, for the C pickler cannot write a name that is not importable."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.storages: dict[int, tuple[str, Any]] = {}  # address of the memory -> key, storage

    def persistent_id(self, obj: Any) -> Any:
        return tuple(obj) if type(obj) is _StorageKey else None

    def _key(self, t: Tensor) -> _StorageKey:
        root = t.untyped_storage().root
        key, _ = self.storages.setdefault(id(root), (str(len(self.storages)), root))
        name = _NAME_OF_STORAGE.get(t.dtype)
        if name is None:
            raise NotImplementedError(f"save: tensors of {t.dtype} are not supported; allowed: {', '.join(_STORAGE_NAMES)}")
        return _StorageKey(("storage", _Global("torch", name), key, str(t.device), root.nbytes() // t.dtype.itemsize))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, parameter.Parameter):
            return _REBUILD_PARAMETER, (_plain_view(obj), bool(obj.requires_grad), collections.OrderedDict())
        if isinstance(obj, Tensor):
            if obj.is_fake or obj.device.type == "meta":
                raise RuntimeError("save: a meta or fake tensor has no data to save")
            if obj.device.type != "cpu":
                obj = obj.cpu()
            return _REBUILD_TENSOR, (self._key(obj), obj.storage_offset(), tuple(obj.shape), obj.stride(),
                                     bool(obj.requires_grad and obj.is_leaf), collections.OrderedDict())  # fmt: skip
        if isinstance(obj, Size):
            return _SIZE, (tuple(obj),)
        if isinstance(obj, device):
            return _DEVICE, (str(obj),)
        return NotImplemented

    def save_named(self, obj: _Global) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_dtype(self, obj: dtype) -> None:
        self.write(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())

    dispatch[_Global] = save_named
    dispatch[dtype] = save_dtype


def _plain_view(p: Tensor) -> Tensor:
    return _native.alias(p, tuple(p.shape), p.stride(), p.storage_offset())


def _write_record(archive: zipfile.ZipFile, raw: BinaryIO, name: str, data: Any) -> None:
    """An uncompressed record whose data begins at a multiple of 64 bytes, so that it can be mapped."""
    info = zipfile.ZipInfo(name)
    head = raw.tell() + 30 + len(name.encode())
    gap = -(head + 4) % _ALIGNMENT
    info.extra = struct.pack("<HH", 0x4246, gap) + b"Z" * gap
    archive.writestr(info, data)


def save(obj: Any, f: PathLike | BinaryIO, pickle_module: Any = pickle, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:  # fmt: skip
    """Write an object with its tensors; views that share memory share it again when loaded.

    f: a path, or a binary file open for writing. The file is written beside its place and moved there whole.
    Raises: RuntimeError for a folder that does not exist; NotImplementedError for the format before 1.6.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: the format before torch 1.6 is not implemented")
    if not isinstance(f, (str, os.PathLike)):
        f.write(_archive(obj, "archive", pickle_protocol))
        return
    path = Path(f)
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    data = _archive(obj, path.stem or "archive", pickle_protocol)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _archive(obj: Any, root: str, protocol: int) -> bytes:
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol)
    pickler.dump(obj)
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        _write_record(archive, raw, f"{root}/data.pkl", pickled.getvalue())
        _write_record(archive, raw, f"{root}/byteorder", b"little")
        for key, storage in pickler.storages.values():
            _write_record(archive, raw, f"{root}/data/{key}", _bytes_of(storage))
        _write_record(archive, raw, f"{root}/version", b"3\n")
    return raw.getvalue()


def _bytes_of(storage: Any) -> bytes:
    n = storage.nbytes()
    whole = _native.make(None, storage, dtypes.uint8.code, (n,), (1,))
    return bytes(memoryview(whole._array)) if n else b""


# ---- reading ----


class _Storage:
    """A storage of the file: a uint8 tensor and the dtype it is read as."""

    def __init__(self, data: Tensor, d: dtype) -> None:
        self.data, self.dtype = data, d


def _rebuild_tensor(storage: _Storage, offset: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None,
                    metadata: Any = None) -> Tensor:  # fmt: skip
    d = storage.dtype
    size, stride = tuple(size), tuple(stride)
    last = offset + (sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if math.prod(size) else -1)
    if offset < 0 or any(n < 0 for n in (*size, *stride)) or (last + 1) * d.itemsize > storage.data.numel():
        raise pickle.UnpicklingError(f"a tensor of {list(size)} with strides {list(stride)} reaches past its storage of "
                                     f"{storage.data.numel()} bytes: the file is damaged")  # fmt: skip
    t: Tensor = _native.alias(storage.data, size, stride, offset, d.code)
    t.requires_grad = requires_grad
    return t


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any = None) -> parameter.Parameter:
    return parameter.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, hooks: Any, state: Any) -> parameter.Parameter:
    p = parameter.Parameter(data, requires_grad)
    p.__dict__.update(state if isinstance(state, dict) else state[0] or {})
    return p


def _safe_names() -> dict[tuple[str, str], Any]:
    names: dict[tuple[str, str], Any] = {
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
        ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
        ("torch._utils", "_rebuild_tensor_v3"): _rebuild_tensor_v3,
        ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
        ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state,
        ("torch", "Size"): Size, ("torch", "device"): device, ("torch", "Tensor"): Tensor,
        ("torch.nn.parameter", "Parameter"): parameter.Parameter,
        ("torch.storage", "UntypedStorage"): dtypes.uint8, ("torch", "UntypedStorage"): dtypes.uint8,
        ("torch.serialization", "_get_layout"): str,
        ("collections", "OrderedDict"): collections.OrderedDict, ("collections", "defaultdict"): collections.defaultdict,
        ("collections", "Counter"): collections.Counter, ("builtins", "set"): set,
        ("builtins", "frozenset"): frozenset, ("builtins", "complex"): complex, ("builtins", "bytearray"): bytearray,
        ("builtins", "dict"): dict, ("_codecs", "encode"): _encode,
    }  # fmt: skip
    for name, d in _STORAGE_NAMES.items():
        names["torch", name] = d
    for d in dtypes.ALL:
        names["torch", d.name] = d
    return names


def _rebuild_tensor_v3(storage: _Storage, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any, d: dtype,
                       metadata: Any = None) -> Tensor:  # fmt: skip
    return _rebuild_tensor(_Storage(storage.data, d), offset, size, stride, requires_grad)


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """bytes in a pickle of protocol 2 are written as encoded text."""
    return text.encode(encoding)


_user_safe: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let these classes and functions be named in files that are loaded with weights_only."""
    for obj in safe_globals:
        obj, name = obj if isinstance(obj, tuple) else (obj, f"{obj.__module__}.{obj.__qualname__}")
        module, _, own = name.rpartition(".")
        _user_safe[module, own] = obj


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` allowed."""
    return list(_user_safe.values())


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` allowed."""
    _user_safe.clear()


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, load_storage: Callable[[Any], Any], weights_only: bool) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._load_storage = load_storage
        self._weights_only = weights_only
        self._names = _safe_names()

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module  # as protocol 2 writes it
        found = self._names.get((module, name), _user_safe.get((module, name)))
        if found is not None:
            return found
        if self._weights_only:
            raise pickle.UnpicklingError(
                "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if "
                "you trust the source of the checkpoint.\n\t(1) Re-running `torch.load` with `weights_only` set to `False` will "
                "likely succeed, but it can result in arbitrary code execution.\n\t(2) Alternatively, allowlist the name with "
                f"`torch.serialization.add_safe_globals`.\nUnsupported global: GLOBAL {module}.{name} was not an allowed global "
                "by default."
            )
        if module == "torch" or module.startswith("torch."):
            module = "eager" + module.removeprefix("torch")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return self._load_storage(pid)


def load(f: PathLike | BinaryIO, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:  # fmt: skip
    """Read what `save` (or torch's) wrote.

    map_location: a device, a dict of devices, or a function of (storage, location). weights_only: True by
    default; False lets the file run any code. mmap: read tensors from the file as they are used.
    Raises: RuntimeError for a file that is no archive or is cut off; UnpicklingError for a name not allowed.
    """
    only = True if weights_only is None else weights_only
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    data = _file_bytes(f, bool(mmap))
    if data[:4] != b"PK\x03\x04":
        raise RuntimeError(f"load: {_what(f)} is no zip archive of torch's format (the format before torch 1.6, bare pickles "
                           "and damaged files are not read)")  # fmt: skip
    try:
        archive = zipfile.ZipFile(_Seekable(data))
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: failed finding central directory: {_what(f)} is cut "
                           f"off or damaged ({error})") from None  # fmt: skip
    names = {n.split("/", 1)[1]: archive.getinfo(n) for n in archive.namelist() if "/" in n}
    if "data.pkl" not in names:
        raise RuntimeError(f"PytorchStreamReader failed locating file data.pkl: {_what(f)} is no file of torch.save")
    if "byteorder" in names and archive.read(names["byteorder"]) != b"little":
        raise NotImplementedError("load: files written on a big-endian machine are not read")
    storages: dict[str, Tensor] = {}

    def load_storage(pid: Any) -> _Storage:
        kind, d, key, location, _ = pid
        if kind != "storage" or not isinstance(d, dtype):
            raise pickle.UnpicklingError(f"load: unknown persistent id {pid!r}")
        if key not in storages:
            storages[key] = _placed(_record(data, archive, names, f"data/{key}", f), map_location, location)
        return _Storage(storages[key], d)

    return _Unpickler(archive.read(names["data.pkl"]), load_storage, only).load()


def _what(f: Any) -> str:
    return f"'{os.fspath(f)}'" if isinstance(f, (str, os.PathLike)) else "the file"


class _Seekable(io.RawIOBase):
    """A buffer as a file, without copying it."""

    def __init__(self, data: Any) -> None:
        self.data, self.at = memoryview(data), 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, len(self.data))[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, size: int = -1) -> bytes:
        end = len(self.data) if size < 0 else min(self.at + size, len(self.data))
        piece = bytes(self.data[self.at : end])
        self.at = end
        return piece


def _file_bytes(f: Any, mapped: bool) -> Any:
    if not isinstance(f, (str, os.PathLike)):
        return f.read()
    with open(f, "rb") as file:
        if mapped:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return file.read()


def _record(data: Any, archive: zipfile.ZipFile, names: dict[str, Any], name: str, f: Any) -> Tensor:
    """A uint8 tensor of one record: over the mapping itself, or a copy in memory of its own."""
    if name not in names:
        raise RuntimeError(f"PytorchStreamReader failed locating file {name}: {_what(f)} is damaged")
    info = names[name]
    if info.compress_type != zipfile.ZIP_STORED:
        raise NotImplementedError(f"load: record {name} of {_what(f)} is compressed")
    head = info.header_offset
    name_length, extra_length = struct.unpack("<HH", bytes(data[head + 26 : head + 30]))
    start = head + 30 + name_length + extra_length
    if start + info.file_size > len(data):
        raise RuntimeError(f"load: record {name} of {_what(f)} is cut off")
    return _tensor_over(np.frombuffer(data, np.uint8, info.file_size, start), copy=not isinstance(data, mmap.mmap))


def _tensor_over(a: Any, copy: bool) -> Tensor:
    if copy:
        t: Tensor = empty(TensorSpec.contiguous(a.shape, dtypes.from_numpy(a.dtype)))
        t._array[...] = a
        return t
    storage = _native.storage_from_memory(a.ctypes.data, a.nbytes, a)
    made: Tensor = _native.make(None, storage, dtypes.from_numpy(a.dtype).code, a.shape, (1,))
    return made


def _placed(data: Tensor, map_location: Any, location: str) -> Tensor:
    if callable(map_location):
        found = map_location(data, location)
        return data if found is None else found
    if isinstance(map_location, Mapping):
        map_location = map_location.get(location, location)
    target = device(location) if map_location is None else device(map_location)
    if target is CPU or target.type == "cpu":
        return data
    if target.type == "cuda" and map_location is None:
        try:
            return data.to(target)
        except RuntimeError as error:
            raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
                               "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
                               "map your storages to the CPU.") from error  # fmt: skip
    return data.to(target)


# ---- safetensors: 8 bytes of header length, a JSON header, the data ----

_SAFE_NAMES = {"F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
               "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8, "U8": dtypes.uint8,
               "BOOL": dtypes.bool_, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
               "C64": dtypes.complex64}  # fmt: skip
_NAME_OF_SAFE = {d: name for name, d in _SAFE_NAMES.items()}
_MAX_HEADER = 100_000_000


def load_safetensors(path: PathLike, device: Any = "cpu", *, mapped: bool = False) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name.

    mapped: tensors over a private mapping of the file (read as they are used) rather than copies.
    Raises: ValueError for a header or an extent that does not fit the file.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    header, start = _safe_header(path, data, size)
    header.pop("__metadata__", None)
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        d = _SAFE_NAMES.get(entry["dtype"])
        if d is None:
            raise NotImplementedError(f"load_safetensors: '{name}' has dtype {entry['dtype']}; allowed: {', '.join(_SAFE_NAMES)}")
        low, high = entry["data_offsets"]
        shape = tuple(entry["shape"])
        if not 0 <= low <= high or start + high > size or high - low != math.prod(shape) * d.itemsize:
            raise ValueError(f"load_safetensors: '{name}' of {os.fspath(path)} stands at bytes {low}..{high}, which does not fit "
                             f"its shape {list(shape)} or the file's {size - start} bytes: the file is cut off or damaged")  # fmt: skip
        aligned = (start + low) % d.itemsize == 0
        flat = _tensor_over(np.frombuffer(data, np.uint8, high - low, start + low), copy=not (mapped and aligned))
        t = _rebuild_tensor(_Storage(flat, d), 0, shape, TensorSpec.contiguous(shape, d).strides)
        tensors[name] = t.to(device)
    return tensors


def _safe_header(path: PathLike, data: Any, size: int) -> tuple[dict[str, Any], int]:
    if size < 8:
        raise ValueError(f"load_safetensors: {os.fspath(path)} has {size} bytes, too few for a header")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(size - 8, _MAX_HEADER):
        raise ValueError(f"load_safetensors: the header of {os.fspath(path)} should have {length} bytes, but only {size - 8} follow: "
                         "the file is cut off or no safetensors file")  # fmt: skip
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"load_safetensors: the header of {os.fspath(path)} is no JSON ({error})") from None
    return header, 8 + length


def save_safetensors(tensors: Mapping[str, Tensor], path: PathLike, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name. Raises: RuntimeError for two names that share memory."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    owners: dict[int, str] = {}
    parts: list[bytes] = []
    at = 0
    # wide types first, so that every tensor stands at a multiple of its element size
    for name, t in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        other = owners.setdefault(id(t.untyped_storage().root), name) if t.numel() else name
        if other != name:
            raise RuntimeError(f"save_safetensors: '{other}' and '{name}' share memory; save one of them, or a clone()")
        if t.dtype not in _NAME_OF_SAFE:
            raise NotImplementedError(f"save_safetensors: '{name}' has dtype {t.dtype}; allowed: {', '.join(_SAFE_NAMES)}")
        data = np.ascontiguousarray(t.detach().cpu()._array).tobytes()
        header[name] = {"dtype": _NAME_OF_SAFE[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *parts]))
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
