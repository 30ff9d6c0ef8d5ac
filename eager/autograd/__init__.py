"""Reverse-mode differentiation: nodes, recording, the engine, custom functions, grad modes.

The public names are resolved on first use: dispatch stands on `node`, `record` and `inplace` of this
package, while `engine` and `function` stand on the ops, so importing them here would go in a circle.
"""
from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "grad": "engine", "backward": "engine", "Function": "function", "once_differentiable": "function",
    "no_grad": "grad_mode", "enable_grad": "grad_mode", "set_grad_enabled": "grad_mode", "inference_mode": "grad_mode",
    "is_grad_enabled": "grad_mode",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'eager.autograd' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"eager.autograd.{_PUBLIC[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
