"""The names in a file: torch's names, regardless of the names here.

A file names storage types, functions that rebuild tensors, and (in files with whole objects) classes. Written
names are torch's, so that torch finds them; names in a file are mapped to objects here. eager's packages have the
names of torch's, so that usually only the first component differs.
"""
from __future__ import annotations

import functools
import sys
from typing import Any

from eager import nn
from eager._tensor.tensor import Size, Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.nn.module import Module
from eager.nn.parameter import Parameter

STORAGES = {
    "FloatStorage": dtypes.float32, "DoubleStorage": dtypes.float64, "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8, "BoolStorage": dtypes.bool_,
    "ComplexFloatStorage": dtypes.complex64, "ComplexDoubleStorage": dtypes.complex128,
}  # fmt: skip
STORAGE_OF = {d: name for name, d in STORAGES.items()}
_FIXED: dict[Any, tuple[str, str]] = {
    Tensor: ("torch", "Tensor"), Parameter: ("torch.nn.parameter", "Parameter"), Size: ("torch", "Size"),
    device: ("torch", "device"), Module: ("torch.nn.modules.module", "Module"),
}  # fmt: skip


# Native modules of torch whose functions exist here under their public names.
_PUBLIC = {"torch._C._nn": "torch.nn.functional", "torch._C": "torch", "torch._VF": "torch"}


# Packages here that are single modules in torch.
_MERGED = ("eager.optim.lr_scheduler",)


def normalize_storage_type(storage_type: type) -> Any:
    """The public storage class with this name."""
    return getattr(sys.modules["eager"], storage_type.__name__)


def location_tag(storage: Any) -> str:
    """The location of a storage in a file: "cpu", "cuda:0", ..."""
    return str(device(storage.device))


class Global:
    """A name that the pickle contains as torch's."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        """Raises TypeError. pickle requires a callable where it writes a call."""
        raise TypeError(f"{self.module}.{self.name} is only a name in a file")


def written_name(obj: Any) -> tuple[str, str] | None:
    """torch's name of a class or function of this package; None for any other object."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not (module == "eager" or module.startswith("eager.")):
        return None
    if isinstance(obj, type) and obj in _FIXED:
        return _FIXED[obj]
    if not isinstance(obj, type) and module.startswith(("eager.nn.functional.", "eager.functions.")):
        public = getattr(nn.functional, name, None)  # the public function, also for the unchecked body that layers call
        return ("torch.nn.functional" if obj in (public, getattr(public, "__wrapped__", public)) else "torch"), name
    module = next((whole for whole in _MERGED if module.startswith(whole + ".")), module)
    return "torch" + module.removeprefix("eager"), name


def found_object(module: str, name: str) -> Any:
    """The object here that corresponds to torch's `module.name`. Raises: AttributeError for an unknown name."""
    path = _PUBLIC.get(module, module).split(".")[1:] + name.split(".")
    try:
        found: Any = functools.reduce(getattr, path, sys.modules["eager"])
    except AttributeError:
        raise AttributeError(f"load: the file names {module}.{name}, which does not exist here") from None
    return found


def is_dtype_name(module: str, name: str) -> dtype | None:
    """The dtype that torch names `module.name`; None if it is not a dtype."""
    return next((d for d in dtypes.ALL if d.name == name), None) if module == "torch" else None
