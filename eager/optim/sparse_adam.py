"""Adam for sparse gradients."""
from __future__ import annotations

from typing import Any

from eager.optim._rule import check_betas, check_range
from eager.optim.optimizer import Optimizer, scalar


class SparseAdam(Optimizer):
    """Adam that updates only the rows a sparse gradient has. There are no sparse tensors, so it cannot be made."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:  # fmt: skip
        check_range("learning rate", lr, scalar(lr) > 0.0)
        check_range("epsilon value", eps, eps > 0.0)
        check_betas(betas)
        raise NotImplementedError("SparseAdam: sparse gradients are not implemented (gradients of embeddings are dense); use Adam")
