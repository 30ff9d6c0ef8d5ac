"""Gradient clipping."""
from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.optable.table import OPS


def _as_list(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _norm_of(t: Tensor, norm_type: float) -> Tensor:
    flat = t.detach().reshape(-1)
    return OPS["vector_norm"](flat, norm_type, (0,), False)


def get_total_norm(tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:  # fmt: skip
    """The norm () of all tensors, seen as one vector. Raises: RuntimeError for nan or inf with error_if_nonfinite."""
    given = _as_list(tensors)
    norm_type = float(norm_type)
    before = _native.set_grad_enabled(False)
    try:
        if not given:
            return OPS["full"]((), 0.0, dtypes.get_default_dtype(), None)
        norms = OPS["stack"]([_norm_of(t, norm_type).to(given[0].device) for t in given], 0)
        total = OPS["amax"](norms, (0,), False) if norm_type == math.inf else _norm_of(norms, norm_type)
    finally:
        _native.set_grad_enabled(before)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                           "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                           "`error_if_nonfinite=False`")  # fmt: skip
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients in place by max_norm / total_norm if that factor is below 1."""
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    before = _native.set_grad_enabled(False)
    try:
        factor = OPS["clamp"](float(max_norm) / (total_norm + 1e-6), None, 1.0)
        for g in grads:
            OPS["mul_"](g, factor.to(g.device))
    finally:
        _native.set_grad_enabled(before)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:  # fmt: skip
    """Scale all gradients in place so that their joint norm is at most max_norm. Returns: the norm () before scaling.

    Raises: RuntimeError for a norm of nan or inf with error_if_nonfinite.
    """
    given = _as_list(parameters)
    total = get_total_norm([p.grad for p in given if p.grad is not None], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(given, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:  # fmt: skip
    """Deprecated name of clip_grad_norm_."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning,
                  stacklevel=2)  # fmt: skip
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient to [-clip_value, clip_value], in place."""
    bound = float(clip_value)
    before = _native.set_grad_enabled(False)
    try:
        for p in _as_list(parameters):
            if p.grad is not None:
                OPS["clamp_"](p.grad, -bound, bound)
    finally:
        _native.set_grad_enabled(before)
