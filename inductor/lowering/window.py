"""One spatial dim of a convolution or pooling: which elements of the input a window holds."""

from __future__ import annotations

from typing import NamedTuple

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.lowering.rules import at_least, less, where

__all__ = ["Dim"]


class Dim(NamedTuple):
    """Output i and tap t read input i * stride - padding + t * dilation.

    taps: the tap of the weight for each t: an arithmetic progression.
    """

    size: int
    outputs: int
    taps: tuple[int, ...]
    stride: int
    dilation: int
    padding: int

    def at(self, i: E.IntLike, t: E.IntLike) -> E.IntLike:
        """The input's element, inside of it or not."""
        return E.add(E.add(E.mul(i, self.stride), E.mul(t, self.dilation)), -self.padding)

    def inside(self, i: E.IntLike, t: E.IntLike) -> list[ir.Value]:
        """The conditions under which the input has this element."""
        at, last = self.at(i, t), t if isinstance(t, int) else len(self.taps) - 1
        low = (0 if not isinstance(t, int) else t * self.dilation) - self.padding
        high = (self.outputs - 1) * self.stride + last * self.dilation - self.padding
        return [*([at_least(at, 0)] if low < 0 else []), *([less(at, self.size)] if high >= self.size else [])]

    def tap(self, t: E.IntLike) -> E.IntLike:
        """The tap of the weight."""
        step = self.taps[1] - self.taps[0] if len(self.taps) > 1 else 0
        return E.add(E.mul(t, step), self.taps[0])

    def first(self, i: E.IntLike) -> ir.Value:
        """The first element of the window that is in the input, as an int64 value."""
        start = self.at(i, 0)
        if self.padding == 0:
            return ir.index(start)
        if self.dilation == 1:
            return ir.index(E.maximum(start, 0))
        i64 = dtypes.int64
        return where(at_least(start, 0), ir.index(start), ir.make_op("remainder", (ir.index(start), ir.const(self.dilation, i64)), i64))

    def elements(self, i: E.IntLike, padded: bool) -> E.IntLike:
        """Elements of the window in the input, or in input and padding."""
        start = self.at(i, 0)
        end = E.minimum(E.add(start, len(self.taps)), self.size + self.padding)
        return E.add(end, E.mul(start, -1)) if padded else E.add(E.minimum(end, self.size), E.mul(E.maximum(start, 0), -1))
