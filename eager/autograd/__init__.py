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
    "is_grad_enabled": "grad_mode", "is_inference_mode_enabled": "grad_mode", "GradientEdge": "engine",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode", "is_anomaly_enabled": "anomaly_mode",
    "is_anomaly_check_nan_enabled": "anomaly_mode", "Variable": "variable", "set_multithreading_enabled": "grad_mode",
    "is_multithreading_enabled": "grad_mode", "gradcheck": "finite_differences", "gradgradcheck": "finite_differences",
    "FunctionCtx": "function", "InplaceFunction": "function",
}  # fmt: skip
_SUBMODULES = frozenset({"forward_ad", "function", "functional", "grad_mode", "graph", "profiler", "variable", "anomaly_mode"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"eager.autograd.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'eager.autograd' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"eager.autograd.{_PUBLIC[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_SUBMODULES})
