"""Utilities around training: data loading, checkpointing, trees of tensors, logging of runs.

Submodules are imported on first use.
"""
from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = frozenset(
    "_foreach_utils _ordered_set _python_dispatch _pytree checkpoint data dlpack hooks model_zoo tensorboard weak".split()
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"eager.utils.{name}")
    raise AttributeError(f"module 'eager.utils' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
