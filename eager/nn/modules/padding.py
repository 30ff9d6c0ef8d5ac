"""Padding layers: one class per mode and number of spatial dims."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.shape import pad
from eager.nn.module import Module
from eager.nn.modules.utils import _ntuple


class _PadNd(Module):
    """padding: one number, or (left, right, top, bottom, ...) from the last dim on."""

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
    """Pad the last dim with a value."""

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last 2 dims with a value."""

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last 3 dims with a value."""

    _n = 3


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pad the last dim with zeros."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pad the last 2 dims with zeros."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pad the last 3 dims with zeros."""


class ReflectionPad1d(_ReflectionPadNd):
    """Pad the last dim with its mirror image, the edge not repeated."""

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad the last 2 dims with their mirror image, the edge not repeated."""

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad the last 3 dims with their mirror image, the edge not repeated."""

    _n = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pad the last dim with its edges."""

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad the last 2 dims with their edges."""

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad the last 3 dims with their edges."""

    _n = 3


class CircularPad1d(_CircularPadNd):
    """Pad the last dim with its other end."""

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pad the last 2 dims with their other ends."""

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pad the last 3 dims with their other ends."""

    _n = 3
