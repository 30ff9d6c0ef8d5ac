"""Channel shuffle: interleaves the channels of different groups."""
from __future__ import annotations

from eager._tensor.tensor import Tensor
from eager.functions import convolution
from eager.nn.module import Module


class ChannelShuffle(Module):
    """Views the channels of (n, c, *) as (groups, c / groups), transposes them, and flattens again."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return convolution.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
