"""cuDNN, which eager convolutions on CUDA use where nvidia-cudnn-frontend is installed. Compiled convolutions are Triton kernels."""
from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from eager.base.cudnn_flags import TYPES, CudnnFlags
from eager.base.cudnn_flags import flags as _flags
from eager.cuda import backend

CUDNN_TENSOR_DTYPES: frozenset[Any] = frozenset()

enabled: bool
benchmark: bool
benchmark_limit: int | None
deterministic: bool
allow_tf32: bool


class _Module(types.ModuleType):
    """This module: its flags are the fields of `CudnnFlags`."""


def _flag(name: str) -> property:
    return property(lambda _: getattr(_flags, name), lambda _, value: setattr(_flags, name, value))


for _field in fields(CudnnFlags):
    setattr(_Module, _field.name, _flag(_field.name))
sys.modules[__name__].__class__ = _Module


def _frontend() -> Any | None:
    return backend.cudnn() if backend.is_available() else None


def is_available() -> bool:
    """Whether cuDNN is used: there is a GPU, and nvidia-cudnn-frontend finds the library."""
    return _frontend() is not None


def version() -> int | None:
    """cuDNN's version, 91000 for 9.10.0; None if it is not used."""
    found = _frontend()
    return None if found is None else int(found.backend_version())


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN supports a tensor."""
    is_supported = tensor.device.type == "cuda" and tensor.dtype.name in TYPES
    return _flags.enabled and is_supported and is_available()


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
    _deterministic: bool | None = None, _allow_tf32: bool | None = None,
) -> tuple[bool, bool, int | None, bool, bool]:  # fmt: skip
    """Set the given flags. Returns: the previous values of all flags, in the order of the parameters."""
    before = (_flags.enabled, _flags.benchmark, _flags.benchmark_limit, _flags.deterministic, _flags.allow_tf32)
    given = {"enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit,
             "deterministic": _deterministic, "allow_tf32": _allow_tf32}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            setattr(_flags, name, value)
    return before


@contextlib.contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int | None = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:  # fmt: skip
    """Set flags within a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
