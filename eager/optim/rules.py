"""The update rules of the remaining first-order optimizers, each a function over ops.

A rule reads a gradient and per-parameter state and writes both in place; `_Rule` supplies the rest of
an optimizer: groups, weight decay, maximize, the step counter.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.ops.table import OPS
from eager.optim.optimizer import Optimizer, check_range, counter, gradient, scalar, with_gradients, zeros_like
from eager.tensor import Tensor

_COMMON = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False}


def common(maximize: bool, foreach: bool | None, capturable: bool, differentiable: bool) -> dict[str, Any]:
    """The settings that every optimizer takes."""
    return {"maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable}


class _Rule(Optimizer):
    """An optimizer whose `_update(p, g, state, group, step)` is one rule. Weight decay enters the gradient."""

    _decays = True

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}._init_state")

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        raise NotImplementedError(f"{type(self).__name__}._update")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update. closure: recomputes the loss, which is returned."""
        loss = self._run_closure(closure)
        before = _native.set_grad_enabled(False)
        try:
            for group in self.param_groups:
                for p in with_gradients(group["params"]):
                    state = self.state[p]
                    if not state:
                        state["step"] = counter(0.0)
                        self._init_state(p, state, group)
                    OPS["add_"](state["step"], 1.0)
                    g = gradient(p, group)
                    if self._decays and group["weight_decay"]:
                        g = g + p * group["weight_decay"]
                    self._update(p, g, state, group, state["step"].item())
        finally:
            _native.set_grad_enabled(before)
        return loss


def _check(lr: Any, eps: float | None, weight_decay: float) -> None:
    check_range("learning rate", lr, scalar(lr) >= 0.0)
    if eps is not None:
        check_range("epsilon value", eps, eps >= 0.0)
    check_range("weight_decay value", weight_decay, weight_decay >= 0.0)


def _check_betas(betas: tuple[float, float]) -> None:
    for i in (0, 1):
        check_range(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)


def _move(average: Tensor, value: Tensor, decay: float) -> None:
    """average = decay * average + (1 - decay) * value, in place."""
    OPS["mul_"](average, decay)
    OPS["add_"](average, value * (1 - decay))


class RMSprop(_Rule):
    """p -= lr * g / (sqrt(v) + eps), v a running mean of g^2. Source: Tieleman & Hinton, 2012."""

    def __init__(self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        check_range("momentum value", momentum, momentum >= 0.0)
        check_range("alpha value", alpha, alpha >= 0.0)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                                  "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["square_avg"] = zeros_like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        v = state["square_avg"]
        _move(v, g * g, group["alpha"])
        if group["centered"]:
            mean = state["grad_avg"]
            _move(mean, g, group["alpha"])
            v = v - mean * mean
        change = g / (OPS["sqrt"](v) + group["eps"])
        if group["momentum"] > 0:
            buf = state["momentum_buffer"]
            OPS["mul_"](buf, group["momentum"])
            change = OPS["add_"](buf, change)
        OPS["sub_"](p, change * scalar(group["lr"]))


class Adagrad(_Rule):
    """p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum g^2) + eps). Source: Duchi et al., 2011."""

    def __init__(self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        check_range("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_range("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "fused": fused})  # fmt: skip
        for group in self.param_groups:  # this rule's state exists from the start
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

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        rate = scalar(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        total = OPS["add_"](state["sum"], g * g)
        OPS["sub_"](p, g / (OPS["sqrt"](total) + group["eps"]) * rate)


class Adadelta(_Rule):
    """p -= lr * g * sqrt(d + eps) / sqrt(v + eps), d a running mean of squared changes. Source: Zeiler, 2012."""

    def __init__(self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        check_range("rho value", rho, 0.0 <= rho <= 1.0)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["square_avg"] = zeros_like(p)
        state["acc_delta"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        v, d, eps = state["square_avg"], state["acc_delta"], group["eps"]
        _move(v, g * g, group["rho"])
        change = OPS["sqrt"](d + eps) / OPS["sqrt"](v + eps) * g
        _move(d, change * change, group["rho"])
        OPS["sub_"](p, change * scalar(group["lr"]))


class Adamax(_Rule):
    """Adam with the infinity norm in place of the second moment. Source: Kingma & Ba, 2015, section 7."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_like(p)
        state["exp_inf"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        m, u = state["exp_avg"], state["exp_inf"]
        _move(m, g, beta1)
        OPS["mul_"](u, beta2)
        OPS["maximum_"](u, OPS["abs"](g) + group["eps"])
        OPS["sub_"](p, m / u * (scalar(group["lr"]) / (1 - beta1**step)))


class NAdam(_Rule):
    """Adam with Nesterov momentum. Source: Dozat, 2016."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        _check_betas(betas)
        check_range("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        self._decays = not decoupled_weight_decay
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["mu_product"] = counter(1.0)
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = scalar(group["lr"]), group["momentum_decay"]
        if group["decoupled_weight_decay"] and group["weight_decay"]:
            OPS["mul_"](p, 1 - lr * group["weight_decay"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = OPS["mul_"](state["mu_product"], mu).item()
        _move(m, g, beta1)
        _move(v, g * g, beta2)
        denominator = OPS["sqrt"](v / (1 - beta2**step)) + group["eps"]
        OPS["sub_"](p, g / denominator * (lr * (1 - mu) / (1 - product)))
        OPS["sub_"](p, m / denominator * (lr * mu_next / (1 - product * mu_next)))


class RAdam(_Rule):
    """Adam with a rectified variance in its first steps. Source: Liu et al., 2020 (arXiv:1908.03265)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        _check(lr, eps, weight_decay)
        _check_betas(betas)
        self._decays = not decoupled_weight_decay
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        lr = scalar(group["lr"])
        if group["decoupled_weight_decay"] and group["weight_decay"]:
            OPS["mul_"](p, 1 - lr * group["weight_decay"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        _move(m, g, beta1)
        _move(v, g * g, beta2)
        corrected = m / (1 - beta1**step)
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * step * beta2**step / (1 - beta2**step)
        if rho <= 5.0:
            OPS["sub_"](p, corrected * lr)
            return
        rectified = math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
        adaptive = math.sqrt(1 - beta2**step) / (OPS["sqrt"](v) + group["eps"])
        OPS["sub_"](p, corrected * lr * adaptive * rectified)


class ASGD(_Rule):
    """SGD with a running average of the parameters in state["ax"]. Source: Polyak & Juditsky, 1992."""

    def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:  # fmt: skip
        _check(lr, None, weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["eta"] = counter(scalar(group["lr"]))
        state["mu"] = counter(1.0)
        state["ax"] = zeros_like(p)

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        lr, lambd = scalar(group["lr"]), group["lambd"]
        eta, mu = state["eta"].item(), state["mu"].item()
        OPS["mul_"](p, 1 - lambd * eta)
        OPS["sub_"](p, g * eta)
        if mu == 1:
            OPS["copy_"](state["ax"], p)
        else:
            OPS["add_"](state["ax"], (p - state["ax"]) * mu)
        OPS["fill_"](state["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
        OPS["fill_"](state["mu"], 1 / max(1, step - group["t0"]))


class Rprop(_Rule):
    """Step sizes of their own per element, grown while the gradient keeps its sign. Source: Riedmiller & Braun, 1993."""

    _decays = False

    def __init__(self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        _check(lr, None, 0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes,
                                  **common(maximize, foreach, capturable, differentiable)})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["prev"] = zeros_like(p)
        state["step_size"] = OPS["fill_"](zeros_like(p), scalar(group["lr"]))

    def _update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        shrink, grow = group["etas"]
        agreement = g * state["prev"]
        factor = OPS["where"](agreement > 0, grow, OPS["where"](agreement < 0, shrink, 1.0))
        size = OPS["clamp"](state["step_size"] * factor, *group["step_sizes"])
        OPS["copy_"](state["step_size"], size)
        g = OPS["where"](agreement < 0, 0.0, g)
        OPS["sub_"](p, OPS["sign"](g) * size)
        OPS["copy_"](state["prev"], g)
