"""A stand-in for torchvision, which timm and others import for data and weights: its compiled part needs torch itself.

Every name in it is an empty class or module; the models of `tests.libraries` use one layer of it.
"""

from __future__ import annotations

import enum
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, ClassVar

_MODES = "NEAREST NEAREST_EXACT BILINEAR BICUBIC BOX HAMMING LANCZOS".split()


class _Module(ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "InterpolationMode":
            return enum.Enum(name, {m: m.lower() for m in _MODES})
        if name == "FrozenBatchNorm2d":
            return type(name, (sys.modules["torch"].nn.BatchNorm2d,), {})
        return type(name, (), {}) if name[0].isupper() else _Module(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torchvision" else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Executes no code: the module creates its names when they are first read."""


def present(wanted: bool) -> None:
    """Install the stand-in for `import torchvision`, or remove it. transformers uses parts that the stand-in lacks."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
    if wanted:
        sys.meta_path.insert(0, _Finder())
        return
    for name in [n for n, m in sys.modules.items() if isinstance(m, _Module)]:
        del sys.modules[name]
