"""Safetensors: 8 bytes with the header's length, a JSON header, the data."""
from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.spec import TensorSpec
from eager.serialization.store import PathLike, bytes_over, replacing

_SAFE_NAMES = {"F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
               "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8, "U8": dtypes.uint8,
               "BOOL": dtypes.bool_, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
               "C64": dtypes.complex64, "F8_E4M3": dtypes.float8_e4m3fn, "F8_E5M2": dtypes.float8_e5m2,
               "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz, "F8_E8M0": dtypes.float8_e8m0fnu}  # fmt: skip
_NAME_OF_SAFE = {d: name for name, d in _SAFE_NAMES.items()}
_MAX_HEADER = 100_000_000


def load_safetensors(path: PathLike, device: Any = "cpu", *, mapped: bool = False) -> dict[str, Tensor]:
    """All tensors of a safetensors file, by name.

    mapped: tensors over a private mapping of the file (read when used) instead of copies.
    Raises: ValueError for a header or an extent that does not fit the file.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    header, start = _safe_header(path, data, size)
    header.pop("__metadata__", None)
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        d, shape, low, high = _place(path, name, entry, size - start)
        aligned = (start + low) % d.itemsize == 0
        flat = bytes_over(np.frombuffer(data, np.uint8, high - low, start + low), copy=not (mapped and aligned))
        t: Tensor = _native.new_tensor(None, flat, d.code, shape, TensorSpec.contiguous(shape, d).strides, 0)
        tensors[name] = t.to(device)
    return tensors


def _place(path: PathLike, name: str, entry: Any, available: int) -> tuple[dtypes.dtype, tuple[int, ...], int, int]:
    """Dtype, shape, and start and end byte of one tensor.

    Raises: ValueError if they are inconsistent or exceed the file.
    """
    subject = f"load_safetensors: '{name}' of {os.fspath(path)}"
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"{subject} is described by {entry!r}, which lacks dtype, shape or data_offsets: the file is damaged")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _SAFE_NAMES:
        raise NotImplementedError(f"{subject} has dtype {entry['dtype']}; allowed: {', '.join(_SAFE_NAMES)}")
    d, shape, extent = _SAFE_NAMES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    for numbers in (shape, extent):
        if not isinstance(numbers, list) or any(type(n) is not int or n < 0 for n in numbers):
            raise ValueError(f"{subject} has shape {shape} and data_offsets {extent}: the file is damaged")
    if len(extent) != 2 or not extent[0] <= extent[1] <= available or extent[1] - extent[0] != math.prod(shape) * d.itemsize:
        raise ValueError(f"{subject} has data_offsets {extent}, which do not fit its shape {shape} or the file's {available} bytes: "
                         "the file is cut off or damaged")  # fmt: skip
    return d, tuple(shape), extent[0], extent[1]


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
        raise ValueError(f"load_safetensors: the header of {os.fspath(path)} is not valid JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError(f"load_safetensors: the header of {os.fspath(path)} is not a JSON object: the file is damaged")
    return header, 8 + length


def save_safetensors(tensors: Mapping[str, Tensor], path: PathLike, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name. Raises: RuntimeError if two names share memory; NotImplementedError for other dtypes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    owners: dict[int, str] = {}
    parts: list[bytes] = []
    at = 0
    # wide types first, so that every tensor is aligned to its element size
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
    with replacing(Path(path)) as file:
        for part in (struct.pack("<Q", len(text)), text, *parts):
            file.write(part)
