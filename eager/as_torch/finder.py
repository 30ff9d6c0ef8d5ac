"""The import hook behind `import torch...`: a meta path finder that returns eager's own module objects.

`eager.startup.bootstrap` maps torch's module names to modules. The module objects are shared, so a class
has one identity under both names, and `isinstance` works between code that imports `torch` and code that imports `eager`.
"""
from __future__ import annotations

import importlib.metadata
import os
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from eager import version
from eager.startup import absent_names
from eager.startup.bootstrap import alias_spec
from eager.startup.torch_names import real_name


class _TorchDistribution(importlib.metadata.Distribution):
    """The result of `importlib.metadata.distribution("torch")`: libraries query it before they import torch."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version.__version__}\nSummary: framejit, imported as torch\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        raise FileNotFoundError(f"{path}: torch is framejit's alias here, and owns no files")


class TorchFinder(MetaPathFinder):
    """Finds `torch.*` and `functorch`; leaves every other name to the next finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a torch module; None for other names.

        Raises: ModuleNotFoundError for a torch module that is absent here.
        """
        if not fullname.startswith("torch.") and fullname.partition(".")[0] != "functorch":
            return None
        spec = alias_spec(fullname, real_name(fullname))
        if spec is None:
            if absent_names.reason(fullname):
                raise absent_names.module_error(fullname, fullname)
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: torch is framejit {version.framejit} here, which has no {real_name(fullname)!r}",
                name=fullname,
            )
        return spec

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """The distribution of torch, if the context names torch or no distribution."""
        if context is None or context.name in (None, "torch"):
            yield _TorchDistribution()


def torch_modules() -> Iterator[str]:
    """The names in `sys.modules` that belong to an installed torch."""
    return (name for name in list(sys.modules) if name.partition(".")[0] in ("torch", "functorch"))
