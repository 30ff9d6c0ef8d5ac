"""RAdam: Adam with rectified variance."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_betas, check_settings, common, given, move, rate, root
from eager.optim.optimizer import zeros_like


class RAdam(Rule):
    """Adam that rectifies the variance of its first steps. Source: Liu et al., 2020 (arXiv:1908.03265)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        lr = rate(group)
        if group["decoupled_weight_decay"] and given(group["weight_decay"]):
            OPS["mul_"](p, 1 - lr * group["weight_decay"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        move(m, g, beta1)
        move(v, g * g, beta2)
        corrected = m / (1 - beta1**step)
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * step * beta2**step / (1 - beta2**step)
        if isinstance(rho, float) and rho <= 5.0:
            OPS["sub_"](p, corrected * lr)
            return
        rectified = root((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
        adaptive = root(1 - beta2**step) / (OPS["sqrt"](v) + group["eps"]) * rectified
        OPS["sub_"](p, corrected * lr * (OPS["where"](rho > 5.0, adaptive, 1.0) if isinstance(rho, Tensor) else adaptive))
