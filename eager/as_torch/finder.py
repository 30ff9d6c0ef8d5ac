"""How `import torch...` finds this project: a meta path finder that hands out eager's own module objects.

Owns: the names under which modules stand (`RENAMED`) and the answers to the import system. Because the
module objects are the same ones, a class has one identity whichever name it was imported by, and
`isinstance` holds between code that says `torch` and code that says `eager`.
"""
from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from eager import version

# torch's name of a module -> ours, where it is not the same below `eager`. Their submodules follow them.
RENAMED = {
    "torch": "eager",
    "torch._VF": "eager",
    "torch.fx": "fxir",
    "torch._dynamo": "dynamo",
    "torch._inductor": "inductor",
    "torch.export": "fxir.exported",
    "torch._tensor": "eager.tensor",
    "torch.functional": "eager.functions",
    "torch.cpu.amp": "eager.amp.cpu",
}


def real_name(fullname: str) -> str:
    """Our name of the module that torch calls `fullname`."""
    head, tail = fullname, ""
    while head not in RENAMED:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return RENAMED[head] + tail


class _SameModule(Loader):
    """Loads `torch.x` by importing our module: no second copy, and its own spec stays on it."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.own: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self.real)
        self.own = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.own  # the import system has just put the alias's in its place


class _TorchDistribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("torch")` finds: libraries ask it before they import torch."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version.__version__}\nSummary: framejit, imported as torch\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        raise FileNotFoundError(f"{path}: torch is framejit's alias here, and owns no files")


class TorchFinder(MetaPathFinder):
    """Answers for `torch.*`; every other name is left to the finders behind it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("torch."):
            return None
        real = real_name(fullname)
        own = _spec_of(real)
        if own is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: torch is framejit {version.framejit} here, which has no {real!r}",
                name=fullname,
            )
        is_package = own.submodule_search_locations is not None
        return ModuleSpec(fullname, _SameModule(real), origin=own.origin, is_package=is_package)

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "torch"):
            yield _TorchDistribution()


def _spec_of(real: str) -> ModuleSpec | None:
    """The spec of our module, or None where there is none, or where its name is taken by something else.

    `torch.tensor` is a function; that `eager/tensor.py` exists must not put a module in its place. A package may show a
    function in the place of the module of its own name that it comes from: both are found, as in torch.
    """
    parent, _, child = real.rpartition(".")
    if parent:
        try:
            taken = vars(importlib.import_module(parent)).get(child)
        except ModuleNotFoundError:
            return None
        if taken is not None and not isinstance(taken, types.ModuleType) and getattr(taken, "__module__", None) != real:
            return None
    return importlib.util.find_spec(real)


def torch_modules() -> Iterator[str]:
    """Names in `sys.modules` that belong to an installed torch."""
    return (name for name in sys.modules if name == "torch" or name.startswith("torch."))
