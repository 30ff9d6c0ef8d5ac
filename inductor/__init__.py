"""The backend: from functional graphs to kernels, plans and artifacts. `config` has torch's names of its settings."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "config":
        return importlib.import_module("inductor.config")
    if name in ("list_mode_options", "list_options"):
        return getattr(importlib.import_module("inductor.base.options"), name)
    raise AttributeError(f"module 'inductor' has no attribute {name!r}")
