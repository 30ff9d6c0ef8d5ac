"""RMSprop: gradients divided by their running root mean square."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_range, check_settings, common, move, rate
from eager.optim.optimizer import zeros_like


class RMSprop(Rule):
    """p -= lr * g / (sqrt(v) + eps), v a running mean of g^2. Source: Tieleman & Hinton, 2012."""

    def __init__(self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_range("momentum value", momentum, momentum >= 0.0)
        check_range("alpha value", alpha, alpha >= 0.0)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                                  "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["square_avg"] = zeros_like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        v = state["square_avg"]
        move(v, g * g, group["alpha"])
        if group["centered"]:
            mean = state["grad_avg"]
            move(mean, g, group["alpha"])
            v = v - mean * mean
        change = g / (OPS["sqrt"](v) + group["eps"])
        if isinstance(group["momentum"], Tensor) or group["momentum"] > 0:
            buf = state["momentum_buffer"]
            OPS["mul_"](buf, group["momentum"])
            change = OPS["add_"](buf, change)
        OPS["sub_"](p, change * rate(group))
