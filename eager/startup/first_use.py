"""Public names whose module is imported when a program first uses the name, so that `import eager` stays fast.

Owns the table and the import. The last layer of each package registers the rows of its package: a lower layer does not name
the modules above it. `absent_names.OwnLoader` looks each missing attribute of a module up here.
"""
from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from typing import Any

_TABLE: dict[str, dict[str, str]] = {}


def register(module: str, targets: Mapping[str, str]) -> None:
    """Add rows for `module`: attribute name -> "package.module", or "package.module:attribute" for a name defined there."""
    _TABLE.setdefault(module, {}).update(targets)
    loaded = sys.modules.get(module)
    if loaded is not None:
        list_names(loaded)


def find(module: str, name: str) -> Any:
    """The value of the public name `name` of `module`. Raises: KeyError if no row has the name."""
    target, _, attribute = _TABLE[module][name].partition(":")
    found = importlib.import_module(target)
    return getattr(found, attribute) if attribute else found


def has(module: str, name: str) -> bool:
    """Whether a row of `module` has the name."""
    return name in _TABLE.get(module, ())


def list_names(module: types.ModuleType) -> None:
    """Make `dir(module)` include the names of its rows, if it has rows."""
    rows = _TABLE.get(module.__name__)
    if rows is not None and "__dir__" not in module.__dict__:
        module.__dict__["__dir__"] = lambda: sorted({*module.__dict__, *rows})
