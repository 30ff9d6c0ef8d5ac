"""Averaged stochastic gradient descent."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_settings, common, rate
from eager.optim.optimizer import counter, zeros_like


class ASGD(Rule):
    """SGD with a running average of the parameters in state["ax"]. Source: Polyak & Juditsky, 1992."""

    def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:  # fmt: skip
        check_settings(lr, None, weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["eta"] = counter(rate(group))
        state["mu"] = counter(1.0)
        state["ax"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        lr, lambd = rate(group), group["lambd"]
        eta, mu = state["eta"].item(), state["mu"].item()
        OPS["mul_"](p, 1 - lambd * eta)
        OPS["sub_"](p, g * eta)
        if mu == 1:
            OPS["copy_"](state["ax"], p)
        else:
            OPS["add_"](state["ax"], (p - state["ax"]) * mu)
        OPS["fill_"](state["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
        OPS["fill_"](state["mu"], 1 / max(1, step - group["t0"]))
