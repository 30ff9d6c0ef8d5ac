"""Adamax: Adam with the infinity norm."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.pointwise import kept
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_betas, check_settings, common, move, rate
from eager.optim.optimizer import zeros_like


class Adamax(Rule):
    """Adam with a running infinity norm in place of the second moment. Source: Kingma & Ba, 2015, section 7."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_like(p)
        state["exp_inf"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        m, u = state["exp_avg"], state["exp_inf"]
        move(m, g, beta1)
        largest = OPS["maximum"](u * beta2, OPS["abs"](g) + group["eps"])
        OPS["copy_"](u, largest)
        OPS["sub_"](p, kept(m) / kept(largest) * (rate(group) / (1 - beta1**step)))
