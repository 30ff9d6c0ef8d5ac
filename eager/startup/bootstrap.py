"""The import finders of this project, and the checks of its installation. This module is imported before all others.

Owns: the check that the extensions are built, the check that no other file shadows one of the four packages on `sys.path`, and
two finders. `OwnPackages` keeps the four packages importable while the process runs, however `sys.path` changes. `Aliases`
finds the same module objects under torch's names (`eager.fx` is fxir) and under other names of `eager` (`framejit.nn` is
`eager.nn`). Importing this module runs the checks and adds the finders.
"""
from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

from eager.startup import absent_names, hollow_modules
from eager.startup.places import EAGER_DIR, ROOT
from eager.startup.torch_names import RENAMED, is_internal, real_name, torch_name

PACKAGES = ("eager", "fxir", "dynamo", "inductor")

class NoCollection:
    """Keeps the garbage collector off until this object dies, then moves all objects to the oldest generation.

    The objects that an import makes stay alive. Young collections would scan them repeatedly, for a tenth of the import's time.
    """

    def __init__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if not gc.get_freeze_count():  # else the program keeps objects frozen, which `unfreeze` would release
            gc.freeze()
            gc.unfreeze()  # they go to the oldest generation
        if self._was_on:
            gc.enable()


def spec_of(real: str) -> ModuleSpec | None:
    """The spec of a module of this project; None if the module does not exist, or if its parent has another object of that name.

    A module must not replace a function of the same name, such as `torch.tensor`. The function that a package shows may come
    from the module of the same name: then both are found, as in torch.
    """
    parent, _, child = real.rpartition(".")
    if parent:
        try:
            taken = vars(importlib.import_module(parent)).get(child)
        except ModuleNotFoundError:
            return None
        if taken is not None and not isinstance(taken, types.ModuleType) and getattr(taken, "__module__", None) != real:
            return None
    try:
        return importlib.util.find_spec(real)
    except ModuleNotFoundError:  # with a reason: see `OwnPackages`
        return None


class SameModule:
    """Loads a name by importing the module of this project. No second copy is made, and the module keeps its own spec."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.own: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self.real)
        self.own = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.own  # the import system has replaced it by the alias's spec


def alias_spec(fullname: str, real: str) -> ModuleSpec | None:
    """The spec that loads the module `real` under the name `fullname`; None if there is no such module."""
    is_renamed = f"torch.{fullname.partition('.')[2]}" in RENAMED
    own = importlib.util.find_spec(real) if is_renamed else spec_of(real)
    if own is None:
        return None
    loader: Any = SameModule(real)
    return ModuleSpec(fullname, loader, origin=own.origin, is_package=own.submodule_search_locations is not None)


class Aliases:
    """Finds `eager.*` modules that have another name here than in torch, and all modules below the other names of `eager`."""

    def __init__(self) -> None:
        self.names = {"eager"}  # top-level names that are `eager` itself

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if not rest or top not in self.names:
            return None
        real = real_name(f"torch.{rest}")
        return None if real == fullname else alias_spec(fullname, real)


_PREFIXES = tuple(f"{package}." for package in PACKAGES)


class OwnPackages:
    """Finds the four packages in the folder of `eager`. It warns of a package of the same name elsewhere on `sys.path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:
            return _of_package(fullname, path) if fullname.startswith(_PREFIXES) else None
        if fullname not in PACKAGES:
            return None
        for entry in sys.path:
            other = _other_file(fullname, [entry])
            if other is not None:
                warnings.warn(f"import {fullname}: gives {_folder(fullname)}, a package of framejit, and not {other}. {_remedy(other)}",
                              stacklevel=2)  # fmt: skip
        return _answering(PathFinder.find_spec(fullname, [ROOT]))


def _of_package(fullname: str, path: Sequence[str]) -> ModuleSpec | None:
    """The spec of a module of this project. Raises: ModuleNotFoundError with the reason for a module that only torch has."""
    spec = PathFinder.find_spec(fullname, path) or hollow_modules.spec_of(fullname)
    if spec is None:
        name = f"torch.{fullname.partition('.')[2]}" if fullname.startswith("eager.") else torch_name(fullname)
        if name and absent_names.reason(name):
            raise absent_names.module_error(name, fullname)
    return _answering(spec)


def _answering(spec: ModuleSpec | None) -> ModuleSpec | None:
    """A spec whose module states the reason for a missing name of torch."""
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        spec.loader = absent_names.OwnLoader(spec.name, spec.loader.path, None if is_internal(spec.name) else torch_name(spec.name))
    return spec


def _folder(package: str) -> str:
    return os.path.join(ROOT, package)


def _remedy(file: str) -> str:
    return f"Rename {os.path.basename(file)}, or move it into a package of your own."


def _other_file(package: str, path: list[str] | None = None) -> str | None:
    """The file of another project that an import of `package` would run on `path` (by default sys.path); None if no file shadows it.

    Another copy of this project does not count. A folder without `__init__.py` does not count either.
    """
    spec = PathFinder.find_spec(package, path)
    if spec is None or spec.origin is None:
        return None
    other = os.path.dirname(spec.origin) if os.path.basename(spec.origin) == "__init__.py" else spec.origin
    is_copy = os.path.isfile(os.path.join(os.path.dirname(other), "eager", os.path.relpath(__file__, EAGER_DIR)))
    return None if is_copy else other


def refuse_shadows() -> None:
    """Raise ImportError if an import of one of our packages would run, or has run, a file that is not ours."""
    for package in PACKAGES[1:]:
        loaded = sys.modules.get(package)
        file = getattr(loaded, "__file__", None) or ""
        theirs = loaded is not None and os.path.realpath(file) != os.path.realpath(os.path.join(_folder(package), "__init__.py"))
        other = file or repr(loaded) if theirs else None if loaded else _other_file(package)
        if other is not None:
            raise ImportError(f"framejit: {other} shadows {_folder(package)}, a package of framejit that is imported as {package!r}. "
                              f"{_remedy(other)}", name=package, path=other)  # fmt: skip


def require_extensions() -> None:
    """Raise ImportError where the packages' C extensions are not built for this Python."""
    for package in ("eager", "dynamo", "inductor"):
        folder = _folder(package)
        if any(os.path.exists(os.path.join(folder, f"_native{suffix}")) for suffix in importlib.machinery.EXTENSION_SUFFIXES):
            continue
        built = sorted(f for f in os.listdir(folder) if f.startswith("_native.") and f.endswith(".so")) if os.path.isdir(folder) else []
        others = f" (there are {', '.join(built)}, for another Python)" if built else ""
        raise ImportError(f"framejit: the C extension of {folder} is not built for Python {sys.version_info.major}."
                          f"{sys.version_info.minor}{others}. Run `make native` in {ROOT}, or run Python from another folder "
                          "to import an installed framejit.", name=f"{package}._native", path=folder)  # fmt: skip


def add_alias(name: str) -> None:
    """Make the top-level `name` another name of `eager`, and `name.x` of its modules."""
    ALIASES.names.add(name)
    sys.modules[name] = sys.modules["eager"]


ALIASES = Aliases()
require_extensions()
refuse_shadows()
sys.meta_path[:0] = [ALIASES, OwnPackages()]
