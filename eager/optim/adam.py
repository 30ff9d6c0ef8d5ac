"""Adam and AdamW. Source: Kingma & Ba, 2015 (arXiv:1412.6980); Loshchilov & Hutter, 2019 (arXiv:1711.05101)."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.ops.table import OPS
from eager.optim import _kernels
from eager.optim.optimizer import Optimizer, check_range, counter, gradient, scalar, with_gradients, zeros_like
from eager.tensor import Tensor


class Adam(Optimizer):
    """Adaptive moments: p -= lr * m / (sqrt(v) + eps), with m and v the bias-corrected moments of the gradient."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False) -> None:  # fmt: skip
        check_range("learning rate", lr, scalar(lr) >= 0.0)
        check_range("epsilon value", eps, eps >= 0.0)
        for i in (0, 1):
            check_range(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)
        check_range("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize, "foreach": foreach, "capturable": capturable,
                                  "differentiable": differentiable, "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay})  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update. closure: recomputes the loss, which is returned."""
        loss = self._run_closure(closure)
        before = _native.set_grad_enabled(False)
        try:
            for group in self.param_groups:
                for p in with_gradients(group["params"]):
                    self._update(p, group)
        finally:
            _native.set_grad_enabled(before)
        return loss

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        g = gradient(p, group)
        state = self.state[p]
        if not state:
            state["step"] = counter(0.0)
            state["exp_avg"] = zeros_like(p)
            state["exp_avg_sq"] = zeros_like(p)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(p)
        OPS["add_"](state["step"], 1.0)
        step = state["step"].item()
        m, v = state["exp_avg"], state["exp_avg_sq"]
        settings = (scalar(group["lr"]), *(scalar(b) for b in group["betas"]), group["eps"], group["weight_decay"],
                    group["decoupled_weight_decay"], step)  # fmt: skip
        if not group["amsgrad"] and _kernels.runs_on_arrays((p, m, v, g)):
            _kernels.in_blocks(_kernels.adam, (p, m, v, g), 3, *settings)
        else:
            _step_by_ops(p, m, v, g, state.get("max_exp_avg_sq"), *settings)


def _step_by_ops(p: Tensor, m: Tensor, v: Any, g: Any, largest: Tensor | None, lr: float, beta1: float, beta2: float,
                 eps: float, decay: float, decoupled: bool, step: float) -> None:  # fmt: skip
    """The rule of `_kernels.adam` in ops, for AMSGrad and for other devices, layouts and modes."""
    if decay:
        if decoupled:
            OPS["mul_"](p, 1 - lr * decay)
        else:
            g = g + p * decay
    OPS["add_"](m, (g - m) * (1 - beta1))
    OPS["mul_"](v, beta2)
    OPS["add_"](v, g * g * (1 - beta2))
    if largest is not None:
        OPS["maximum_"](largest, v)
        v = largest
    denominator = OPS["sqrt"](v) / math.sqrt(1 - beta2**step) + eps
    OPS["sub_"](p, m / denominator * (lr / (1 - beta1**step)))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves rather than entering the gradient."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=True)  # fmt: skip
