"""torch.ao.quantization: the marks of where a model would enter and leave integers. Nothing quantises here: they pass their input."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn import Module

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub"]


class _Stub(Module):
    """Gives its input. qconfig: how it would be quantised; kept for whoever reads it."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantStub(_Stub):
    """Where integers would begin."""


class DeQuantStub(_Stub):
    """Where integers would end."""


class _NotHere(Module):
    """A class that code asks `isinstance` of; nothing here is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: quantization is not implemented")


class ObserverBase(_NotHere):
    """Watches the range of a tensor."""


class FakeQuantizeBase(_NotHere):
    """Rounds as integers would."""
