"""Adam for sparse gradients: moments and parameters change only in the rows that the gradient contains."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.optim._rule import Arguments, Rule, check_betas, check_range, rate
from eager.optim.optimizer import scalar, zeros_like
from eager.sparse import SparseTensor, sparse_mask


class SparseAdam(Rule):
    """Adam over the rows of sparse gradients (of `Embedding(sparse=True)`); other rows are unchanged.

    Raises: ValueError for settings out of range; RuntimeError for a dense gradient.
    """

    _decays = False

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:  # fmt: skip
        check_range("learning rate", lr, scalar(lr) > 0.0)
        check_range("epsilon value", eps, eps > 0.0)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        positions = [(i, j) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_sparse]
        if positions:
            raise ValueError(f"Sparse params at indices {positions}: SparseAdam requires dense parameter tensors")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. closure: recomputes the loss, which `step` returns. Runs eagerly in a capture."""
        return super().step(closure)

    def _begin(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = self.state[p]
        if not state:
            state["step"], state["exp_avg"], state["exp_avg_sq"] = 0, zeros_like(p), zeros_like(p)
        return state

    def _advance(self, p: Tensor, group: dict[str, Any], whole: Arguments | None) -> None:
        """One update of `p`. The step count is a plain number."""
        g = p.grad
        if not isinstance(g, SparseTensor):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self._begin(p, group)
        state["step"] += 1
        g = g.coalesce()
        self._update_sparsely(p, -g if group["maximize"] else g, state, group, state["step"])

    def _update_sparsely(self, p: Tensor, g: SparseTensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        if not g._nnz():
            return
        beta1, beta2 = group["betas"]
        g = g.coalesce()
        moments = []
        for name, beta, value in (("exp_avg", beta1, g.values()), ("exp_avg_sq", beta2, g.values() * g.values())):
            old = sparse_mask(state[name], g).values()
            change = (value - old) * (1 - beta)
            g.with_values(change).add_into(state[name])
            moments.append(old + change)
        moved = moments[0] / (moments[1].sqrt() + group["eps"])
        size = rate(group) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        g.with_values(moved).add_into(p, -size)
