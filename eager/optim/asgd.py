"""Averaged stochastic gradient descent."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_settings, common, counter_device, larger, rate, store
from eager.optim.optimizer import counter, scalar, zeros_like


class ASGD(Rule):
    """SGD with a running average of the parameters in state["ax"]. Source: Polyak & Juditsky, 1992."""

    def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:  # fmt: skip
        check_settings(lr, None, weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        device = counter_device(p, group)
        state["eta"] = counter(1.0, device)
        store(state["eta"], rate(group))
        state["mu"] = counter(1.0, device)
        state["ax"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        lr, lambd = rate(group), group["lambd"]
        eta, mu = (scalar(state[name], bool(group["capturable"])) for name in ("eta", "mu"))
        OPS["mul_"](p, 1 - lambd * eta)
        OPS["sub_"](p, g * eta)
        if isinstance(mu, Tensor):
            OPS["copy_"](state["ax"], OPS["where"](mu == 1, p, state["ax"] + (p - state["ax"]) * mu))
        elif mu == 1:
            OPS["copy_"](state["ax"], p)
        else:
            OPS["add_"](state["ax"], (p - state["ax"]) * mu)
        store(state["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
        store(state["mu"], 1 / larger(step - group["t0"], 1))
