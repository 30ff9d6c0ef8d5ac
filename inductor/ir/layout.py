"""Tensors over flat memory: the layout of a buffer, and references to elements of it.

Independent of how elements are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from eager.base.dtypes import dtype
from fxir.expr import rules as E
from fxir.symbols.shapes import NeedsStatic
from inductor.ir.sizes import Size, plain, product


@dataclass(frozen=True)
class Layout:
    """Sizes, element strides and dtype. The layout of a buffer that the compiler creates is dense; an input's may be any."""

    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    dtype: dtype

    @cached_property
    def numel(self) -> Size:
        return product(self.shape)

    @cached_property
    def nbytes(self) -> Size:
        """Bytes from the first to past the last element."""
        if 0 in self.shape:
            return 0
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return plain(span * self.dtype.itemsize)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Dims from outermost to innermost in memory; dims of size 1 keep their order among equal strides.

        Raises: NeedsStatic for symbolic strides other than the strides of dense memory.
        """
        if any(isinstance(s, E.Expr) for s in self.strides):
            return self._dense_order()
        return tuple(sorted(range(len(self.shape)), key=lambda d: (-self.strides[d], self.shape[d] != 1, d)))

    def _dense_order(self) -> tuple[int, ...]:
        ones = [d for d, n in enumerate(self.shape) if n == 1]
        left, found = [d for d in range(len(self.shape)) if d not in ones], []
        step: Size = 1
        while left:
            d = next((d for d in reversed(left) if self.strides[d] == step), None)
            if d is None:
                symbols = frozenset().union(*(s.symbols for s in self.strides if isinstance(s, E.Expr)))
                raise NeedsStatic(symbols, f"a buffer of shape {list(self.shape)} has strides {list(self.strides)}")
            left.remove(d)
            found.append(d)
            step = plain(step * self.shape[d])
        return (*ones, *reversed(found))

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Dims that become loop axes, outermost in memory first."""
        return tuple([d for d in self.order if self.shape[d] != 1])

    def position(self, point: Sequence[E.IntLike]) -> E.Expr:
        """The element's position in memory."""
        return E.dot(point, self.strides)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}" + ("" if self.is_row_major else f" strides {list(self.strides)}")

    @cached_property
    def is_row_major(self) -> bool:
        step: Size = 1
        for n, s in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and s != step:
                return False
            step = plain(step * n)
        return True


def row_major(shape: Sequence[Size], of: dtype) -> Layout:
    """The contiguous layout of `shape`."""
    strides: list[Size] = [1] * len(shape)
    step: Size = 1
    for d in range(len(shape) - 1, -1, -1):
        n = shape[d]
        strides[d] = step
        step = plain(step * (max(n, 1) if isinstance(n, int) else n))
    return Layout(tuple(shape), tuple(strides), of)


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor of the graph: `layout` over the memory of `buffer`, starting `offset` elements in.

    `layout.dtype` may differ from the buffer's only for bit views of equal size.
    """

    buffer: str
    layout: Layout
    offset: Size = 0

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[Size, ...]: ...

        @property
        def dtype(self) -> dtype: ...
    else:
        shape = property(attrgetter("layout.shape"))
        dtype = property(attrgetter("layout.dtype"))

    def at(self, point: Sequence[E.IntLike]) -> E.Expr:
        """Position in the buffer of one element."""
        return self.layout.position(point) + self.offset

    def __str__(self) -> str:
        return f"{self.buffer}:{self.layout}" + (f"+{self.offset}" if self.offset != 0 else "")
