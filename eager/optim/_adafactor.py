"""Adafactor: Adam with the second moments stored as row and column means.

Source: Shazeer & Stern, 2018 (arXiv:1804.04235).
"""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.limits import finfo
from eager.optable.table import OPS
from eager.optim._rule import Rule, given, larger, rate, smaller
from eager.optim.optimizer import scalar, zeros_like


class Adafactor(Rule):
    """p -= alpha * g / sqrt(v), where v is the product of its row and column means and alpha scales with the size of p.

    beta2_decay: exponent of the step count in 1 - beta2. eps: lower bounds of v (by default the dtype's epsilon) and
    of the root mean square of p. d: largest root mean square of an update.
    Raises: ValueError for settings out of range; RuntimeError for complex parameters.
    """

    _decays = False

    def __init__(self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
                 d: float = 1.0, weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for valid, text in ((scalar(lr) >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
                            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
                            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
                            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
                            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
                            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")):  # fmt: skip
            if not valid:
                raise ValueError(text)
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
                                  "foreach": foreach, "maximize": maximize})  # fmt: skip

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.ndim > 1:
            state["row_var"] = p.new_zeros((*p.shape[:-1], 1))
            state["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            state["variance"] = zeros_like(p)

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        lr, (eps1, eps2) = rate(group), group["eps"]
        if eps1 is None:
            eps1 = finfo(p.dtype).eps
        weight = step ** group["beta2_decay"]
        alpha = larger(_rms(p), eps2) * smaller(step**-0.5, lr)
        if given(group["weight_decay"]):
            OPS["mul_"](p, 1 - lr * group["weight_decay"])
        square = g * g
        if g.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            OPS["add_"](rows, (square.mean(-1, keepdim=True) - rows) * weight)
            OPS["add_"](columns, (square.mean(-2, keepdim=True) - columns) * weight)
            v = rows @ columns / OPS["clamp"](rows.mean(-2, keepdim=True), eps1, None)
        else:
            v = OPS["add_"](state["variance"], (square - state["variance"]) * weight)
        change = g * OPS["rsqrt"](OPS["clamp"](v, eps1 * eps1, None))
        OPS["sub_"](p, change * (alpha / larger(_rms(change) / group["d"], 1.0)))


def _rms(t: Tensor) -> Any:
    return scalar(t.norm(2)) / max(t.numel(), 1) ** 0.5
