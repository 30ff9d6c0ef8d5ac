"""Rprop: resilient propagation."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_settings, common
from eager.optim.optimizer import scalar, zeros_like


class Rprop(Rule):
    """One step size per element, which grows while the gradient keeps its sign. Source: Riedmiller & Braun, 1993."""

    _decays = False
    _unread = Rule._unread | {"lr"}

    def __init__(self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        check_settings(lr, None, 0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr = scalar(group["lr"])
        state["prev"] = zeros_like(p)
        state["step_size"] = OPS["fill_"](zeros_like(p), complex(lr, lr) if p.is_complex() else lr)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        shrink, grow = group["etas"]
        agreement = g * state["prev"]
        factor = OPS["where"](agreement > 0, grow, OPS["where"](agreement < 0, shrink, 1.0))
        size = OPS["clamp"](state["step_size"] * factor, *group["step_sizes"])
        OPS["copy_"](state["step_size"], size)
        g = OPS["where"](agreement < 0, 0.0, g)
        OPS["sub_"](p, OPS["sign"](g) * size)
        OPS["copy_"](state["prev"], g)
