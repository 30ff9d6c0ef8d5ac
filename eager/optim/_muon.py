"""Momentum with orthogonalised updates, for the matrices of hidden layers.

Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
"""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.optable.declaration import cast_to
from eager.optable.table import OPS
from eager.optim._rule import Arguments, Rule
from eager.optim.optimizer import descended, scalar, zeros_like

_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Rule):
    """p -= lr * U V^T of the momentum's singular value decomposition, by `ns_steps` Newton-Schulz steps in bfloat16.

    adjust_lr_fn: how the rate depends on the matrix's shape, "original" (default) or "match_rms_adamw".
    Raises: ValueError for settings out of range, and for a parameter that does not have 2 dims.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
                 ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", scalar(lr)), ("momentum", momentum), ("weight decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
                                  "adjust_lr_fn": adjust_lr_fn})  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _begin(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(p)
        return state

    def _advance(self, p: Tensor, group: dict[str, Any], whole: Arguments | None) -> None:
        """One update of `p`. This rule keeps no step count."""
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        g, state, momentum = descended(p.grad, group), self._begin(p, group), group["momentum"]
        buf = OPS["add_"](state["momentum_buffer"], (g - state["momentum_buffer"]) * (1 - momentum))
        ahead = g + (buf - g) * momentum if group["nesterov"] else buf
        update = _orthogonalized(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = scalar(group["lr"])
        OPS["mul_"](p, 1 - lr * group["weight_decay"])
        OPS["sub_"](p, cast_to(update, p.dtype) * (lr * _shape_factor(group["adjust_lr_fn"], *p.shape)))


def _shape_factor(adjust: str | None, rows: int, columns: int) -> float:
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonalized(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Approximately U V^T of the singular value decomposition of g: a quintic iteration drives singular values to 1."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = cast_to(g, dtypes.bfloat16)
    tall = g.shape[0] > g.shape[1]
    x = x.t() if tall else x
    x = x / OPS["clamp"](x.norm(), eps, None)
    for _ in range(steps):
        gram = x @ x.t()
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
