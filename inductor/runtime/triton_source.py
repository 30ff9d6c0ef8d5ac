"""Generated Triton source as a function."""

from __future__ import annotations

import importlib
import linecache
from types import ModuleType
from typing import Any


class TritonUnavailable(RuntimeError):
    """Triton is not installed; the message states how to install it."""


def load_triton() -> ModuleType:
    """The triton module, which is imported at the first use (it is an extra, and takes half a second). Raises TritonUnavailable."""
    try:
        return importlib.import_module("triton")
    except ImportError as error:
        raise TritonUnavailable(f"triton is not installed ({error}); install framejit[gpu]") from error


def jit_function(name: str, source: str) -> Any:
    """The `@triton.jit` function `name` of a module's source. The source is in no file: linecache holds its lines."""
    load_triton()
    filename = f"<framejit {name} {hash(source):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": f"framejit_{name}"}
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]
