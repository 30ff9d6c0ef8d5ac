"""Reverse-mode differentiation, under torch's names: gradients, custom functions, grad modes, anomaly mode.

The graph and the engine are in `eager.tape`. The tools that use the function transforms (`forward_ad`, `functional`,
`gradcheck`) are in `eager.transforms`; the table in `eager/__init__.py` names their modules.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from eager.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from eager.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from eager.tape.engine import GradientEdge, backward, grad

if TYPE_CHECKING:  # found on first use
    from eager.autograd.function import Function, FunctionCtx, InplaceFunction, once_differentiable
    from eager.autograd.variable import Variable

__all__ = [
    "Function", "FunctionCtx", "GradientEdge", "InplaceFunction", "Variable", "backward", "detect_anomaly", "enable_grad", "grad",
    "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "is_multithreading_enabled", "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
