"""Dropout layers: random in training, the identity in evaluation. All raise ValueError for p outside [0, 1]."""
from __future__ import annotations

from eager._tensor.tensor import Tensor
from eager.nn.functional import dropouts as functions
from eager.nn.module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p and scales the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (n, c, l) or (c, l)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (n, c, h, w)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (n, c, d, h, w) or (c, d, h, w)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU activations. Ignores `inplace`, as torch does."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels. Ignores `inplace`, as torch does."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.feature_alpha_dropout(input, self.p, self.training)
