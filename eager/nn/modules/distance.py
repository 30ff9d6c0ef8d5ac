"""Distances as layers."""
from __future__ import annotations

from eager._tensor.tensor import Tensor
from eager.nn.functional import linears as functions
from eager.nn.module import Module


class PairwiseDistance(Module):
    """p-norm of x1 - x2 + eps along the last dim. (*, d), (*, d) -> (*), or (*, 1) with keepdim."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functions.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine of the angle between x1 and x2 along `dim`; removes that dim."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functions.cosine_similarity(x1, x2, self.dim, self.eps)
