"""torch.ao.quantization: the marks of where a model would enter and leave integers. Nothing quantises here: they pass their input."""
from __future__ import annotations

from typing import Any

from eager.nn import Module
from eager.tensor import Tensor

__all__ = ["DeQuantStub", "QuantStub"]


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
