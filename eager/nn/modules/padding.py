"""Padding layers: one class per mode and number of spatial dims."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.shape import pad
from eager.nn.module import Module
from eager.nn.modules.utils import _ntuple


class _PadNd(Module):
    """padding: one number, or (left, right, top, bottom, ...), starting with the last dim."""

    _n = 0
    _mode = "constant"
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._n)(padding)

    def forward(self, input: Tensor) -> Tensor:
        if self._mode == "circular" and input.ndim not in (self._n + 1, self._n + 2):
            raise ValueError(f"expected {self._n + 1}D or {self._n + 2}D input (got {input.ndim}D input)")
        return pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    _mode = "circular"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dim with a value."""

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last 2 dims with a value."""

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last 3 dims with a value."""

    _n = 3


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dim with zeros."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last 2 dims with zeros."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last 3 dims with zeros."""


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dim by reflection, without repeating the edge element."""

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last 2 dims by reflection, without repeating the edge elements."""

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last 3 dims by reflection, without repeating the edge elements."""

    _n = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dim by repeating its edge elements."""

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last 2 dims by repeating their edge elements."""

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last 3 dims by repeating their edge elements."""

    _n = 3


class CircularPad1d(_CircularPadNd):
    """Pads the last dim with elements of its opposite end."""

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last 2 dims with elements of their opposite ends."""

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last 3 dims with elements of their opposite ends."""

    _n = 3
