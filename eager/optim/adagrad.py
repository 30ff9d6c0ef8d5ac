"""Adagrad: gradients divided by the root of their summed squares."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim._rule import Rule, check_fused, check_range, check_settings, rate
from eager.optim.optimizer import counter, zeros_like
from eager.sparse import SparseTensor, sparse_mask


class Adagrad(Rule):
    """p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum g^2) + eps). Source: Duchi et al., 2011."""

    def __init__(self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        check_settings(lr, eps, weight_decay)
        check_fused(fused, foreach, differentiable)
        check_range("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_range("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "fused": fused})  # fmt: skip
        for group in self.param_groups:  # torch creates this rule's state in the constructor
            for p in group["params"]:
                self.state[p]["step"] = counter(0.0)
                self._init_state(p, self.state[p], group)

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["sum"] = OPS["fill_"](zeros_like(p), group["initial_accumulator_value"])

    def share_memory(self) -> None:
        """Move the state into shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update_sparsely(self, p: Tensor, g: SparseTensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        decayed = rate(group) / (1 + (step - 1) * group["lr_decay"])
        g.with_values(g.values() * g.values()).add_into(state["sum"])
        root = sparse_mask(state["sum"], g).values().sqrt() + group["eps"]
        g.with_values(g.values() / root).add_into(p, -decayed)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        decayed = rate(group) / (1 + (step - 1) * group["lr_decay"])
        total = OPS["add_"](state["sum"], g * g)
        OPS["sub_"](p, g / (OPS["sqrt"](total) + group["eps"]) * decayed)
