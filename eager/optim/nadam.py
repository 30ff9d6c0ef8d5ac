"""NAdam: Adam with Nesterov momentum."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.pointwise import kept
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_betas, check_range, check_settings, common, counter_device, given, move, rate
from eager.optim.optimizer import counter, scalar, zeros_like


class NAdam(Rule):
    """Adam with Nesterov momentum. Source: Dozat, 2016."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_betas(betas)
        check_range("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["mu_product"] = counter(1.0, counter_device(p, group))
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = rate(group), group["momentum_decay"]
        if group["decoupled_weight_decay"] and given(group["weight_decay"]):
            OPS["mul_"](p, 1 - lr * group["weight_decay"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = scalar(OPS["mul_"](state["mu_product"], mu), bool(group["capturable"]))
        move(m, g, beta1)
        move(v, g * g, beta2)
        denominator = OPS["sqrt"](v / (1 - beta2**step)) + group["eps"]
        OPS["sub_"](p, g / denominator * (lr * (1 - mu) / (1 - product)))
        OPS["sub_"](p, kept(m) / denominator * (lr * mu_next / (1 - product * mu_next)))
