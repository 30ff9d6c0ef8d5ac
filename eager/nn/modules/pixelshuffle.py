"""Rearranging channels into pixels, and pixels into channels."""
from __future__ import annotations

from eager._tensor.tensor import Tensor
from eager.functions import convolution
from eager.nn.module import Module


class PixelShuffle(Module):
    """(*, c * r * r, h, w) -> (*, c, h * r, w * r)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return convolution.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, c, h * r, w * r) -> (*, c * r * r, h, w)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return convolution.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
