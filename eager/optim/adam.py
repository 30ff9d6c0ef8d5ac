"""Adam. Source: Kingma & Ba, 2015 (arXiv:1412.6980); decoupled decay: Loshchilov & Hutter, 2019 (arXiv:1711.05101)."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.pointwise import kept
from eager.optable.table import OPS
from eager.optim import _kernels
from eager.optim._rule import Rule, check_betas, check_decay, check_fused, check_settings, common, given, rate, root
from eager.optim.optimizer import scalar, zeros_like
from eager.sparse import SparseTensor


class Adam(Rule):
    """Adaptive moments: p -= lr * m / (sqrt(v) + eps), with m and v the bias-corrected moments of the gradient.

    Raises: ValueError for settings out of range; RuntimeError for options that exclude each other.
    """

    _decays = False  # the rule applies the decay, because decoupled decay precedes the moments

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False) -> None:  # fmt: skip
        if foreach and not capturable:
            for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
                if isinstance(value, Tensor):
                    raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        check_settings(lr, eps, weight_decay)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in (0, 1):
            if isinstance(betas[i], Tensor) and betas[i].numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": (scalar(betas[0]), scalar(betas[1])), "eps": eps,
                                  "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  **common(maximize, foreach, capturable, differentiable), "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay})  # fmt: skip
        check_fused(fused, foreach, differentiable)

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)

    def _update_sparsely(self, p: Tensor, g: SparseTensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        advice = ", please consider SparseAdam instead" if type(self) is Adam else ""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{advice}")

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        m, v = state["exp_avg"], state["exp_avg_sq"]
        decay, decoupled = group["weight_decay"], bool(group["decoupled_weight_decay"])
        if given(decay) and not decoupled:
            check_decay(decay)
        settings = (rate(group), *(scalar(b) for b in group["betas"]), group["eps"], decay, decoupled, step)
        whole = not group["amsgrad"] and group["fused"] is not False and not group["differentiable"]
        if whole and _kernels.runs_on_arrays((p, m, v, g)):
            _kernels.adam(p, m, v, g, *settings)
        else:
            _step_by_ops(p, m, v, g, state.get("max_exp_avg_sq"), *settings)


def _step_by_ops(p: Tensor, m: Tensor, v: Any, g: Any, largest: Tensor | None, lr: Any, beta1: float, beta2: float,
                 eps: float, decay: float, decoupled: bool, step: Any) -> None:  # fmt: skip
    """The rule of `_kernels.adam` in ops, for AMSGrad and for other devices, layouts and modes."""
    if given(decay):
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
    denominator = OPS["sqrt"](v) / root(1 - beta2**step) + eps
    OPS["sub_"](p, kept(m) / denominator * (lr / (1 - beta1**step)))
