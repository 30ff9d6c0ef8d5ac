"""`torch._subclasses.fake_tensor`: what libraries ask of fakes."""
from __future__ import annotations

from typing import Any

from eager.tensor import Tensor

__all__ = ["is_fake"]


def is_fake(x: Any) -> bool:
    """Whether `x` is a tensor without data, as capture works with."""
    return isinstance(x, Tensor) and x.is_fake
