"""Stochastic gradient descent."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.optable.table import OPS
from eager.optim import _kernels
from eager.optim._rule import (
    Arguments,
    Rule,
    check_decay,
    check_fused,
    check_range,
    check_settings,
    given,
    rate,
    update_by_op,
)
from eager.optim.optimizer import descended, zeros_like


class SGD(Rule):
    """p -= lr * g, with momentum, Nesterov's look-ahead and weight decay.

    Raises: ValueError for settings out of range; RuntimeError for options that exclude each other.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        check_settings(lr, None, weight_decay)
        check_range("momentum value", momentum, momentum >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
                                  "differentiable": differentiable, "fused": fused})  # fmt: skip
        check_fused(fused, foreach, differentiable)

    def _begin(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state ahead of a captured step. A buffer of zeros gives the first step its values if nothing damps the gradient."""
        if not group["momentum"] or group["dampening"]:
            return {}
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(p)
        return state

    def _advance(self, p: Tensor, group: dict[str, Any], whole: Arguments | None) -> None:
        """One update of `p`. This rule keeps no step count, and state only for momentum."""
        g: Any = p.grad
        if g.is_sparse:
            g, decay = descended(g, group), group["weight_decay"]
            if decay:
                check_decay(decay)
            self._step_sparsely(p, g + p * decay if decay else g, group)
            return
        state = self.state[p] if group["momentum"] else {}
        if whole is None or (group["momentum"] and state.get("momentum_buffer") is None):
            self._apply(p, g, state, group)
        else:
            update_by_op(p, g, state, whole)

    @classmethod
    def _apply(cls, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        g = descended(g, group)
        lr, decay, momentum = rate(group), group["weight_decay"], group["momentum"]
        if given(decay):
            check_decay(decay)
        whole = group["fused"] is not False and not group["differentiable"]
        if not given(momentum):
            if whole and _kernels.runs_on_arrays((p, g)):
                _kernels.in_blocks(_kernels.sgd_plain, (p, g), 1, lr, decay)
            else:
                g = g + p * decay if given(decay) else g
                OPS["sub_"](p, g * lr)
            return
        buf = state.get("momentum_buffer")
        first = buf is None
        if buf is None:
            buf = state["momentum_buffer"] = OPS["clone"](g.detach(), None)
        rest = (group["dampening"], group["nesterov"])
        if whole and _kernels.runs_on_arrays((p, buf, g)):
            _kernels.in_blocks(_kernels.sgd, (p, buf, g), 2, lr, decay, momentum, *rest, first)
        else:
            _step_by_ops(p, buf, g, lr, decay, momentum, *rest, first)

    def _step_sparsely(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        """One update by a sparse gradient; its momentum buffer is sparse. Weight decay makes the gradient dense."""
        lr, momentum = rate(group), group["momentum"]
        buf = g
        if momentum:
            state = self.state[p]
            held = state.get("momentum_buffer")
            buf = g.clone() if held is None else held * momentum + g * (1 - group["dampening"])
            state["momentum_buffer"] = buf
            buf = g + buf * momentum if group["nesterov"] else buf
        if buf.is_sparse:
            buf.add_into(p, -lr)
        else:
            OPS["sub_"](p, buf * lr)


def _step_by_ops(p: Tensor, buf: Tensor, g: Any, lr: Any, decay: float, momentum: float, dampening: float,
                 nesterov: bool, first: bool) -> None:  # fmt: skip
    """The rule of `_kernels.sgd` in ops, for other devices, layouts and modes."""
    if given(decay):
        g = g + p * decay
    if first:
        OPS["copy_"](buf, g)
    else:
        OPS["mul_"](buf, momentum)
        OPS["add_"](buf, g * (1 - dampening) if dampening else g)
    OPS["sub_"](p, (buf * momentum + g if nesterov else buf) * lr)
