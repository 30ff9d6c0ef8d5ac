"""torch.ao.quantization: stubs that mark the borders of quantised regions.

Nothing is quantised: they return their input.
"""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn import Module

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub"]


class _Stub(Module):
    """Returns its input. qconfig: the requested quantisation, stored without effect."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantStub(_Stub):
    """Marks the start of a quantised region."""


class DeQuantStub(_Stub):
    """Marks the end of a quantised region."""


class _NotHere(Module):
    """A class for `isinstance` checks; it has no instances."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: quantization is not implemented")


class ObserverBase(_NotHere):
    """Would record the range of a tensor."""


class FakeQuantizeBase(_NotHere):
    """Would round values as a quantised type does."""
