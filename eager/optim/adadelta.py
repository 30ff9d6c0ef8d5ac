"""Adadelta: step sizes from running means of squared gradients and squared updates."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_range, check_settings, common, move, rate
from eager.optim.optimizer import zeros_like


class Adadelta(Rule):
    """p -= lr * g * sqrt(d + eps) / sqrt(v + eps), d a running mean of squared updates. Source: Zeiler, 2012."""

    def __init__(self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_range("rho value", rho, 0.0 <= rho <= 1.0)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["square_avg"] = zeros_like(p)
        state["acc_delta"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        v, d, eps = state["square_avg"], state["acc_delta"], group["eps"]
        move(v, g * g, group["rho"])
        change = OPS["sqrt"](d + eps) / OPS["sqrt"](v + eps) * g
        move(d, change * change, group["rho"])
        OPS["sub_"](p, change * rate(group))
