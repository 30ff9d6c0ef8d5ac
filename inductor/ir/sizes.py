"""Sizes, and the layouts of tensors over flat memory that they give.

A size is an int, or an expression over the symbols of a graph that runs for many shapes.
Every count of elements or bytes in the compiler is a `Size`. Equal expressions are one object, so `==` compares sizes. Sizes
that are equal for some values of the symbols compare unequal, as do an expression and 0 or 1; code for the general case is
correct for all of them. Code is valid for every value of the symbols within their bounds; a choice that affects only speed is
made for the `nominal` value. Sizes and layouts are independent of loops, and of how elements are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from fxir.symbols.shapes import NeedsStatic

__all__ = ["NOMINAL", "Layout", "Ref", "Size", "at_least", "ceildiv", "fixed", "is_symbolic", "nominal", "plain", "product", "row_major"]

Size: TypeAlias = "int | E.Expr"
NOMINAL: Final = 64  # the value assumed for a symbol in decisions that affect only speed


def plain(n: E.IntLike) -> Size:
    """`n`, as an int if it is constant."""
    return n.value if isinstance(n, E.Int) else n


def product(sizes: Iterable[Size]) -> Size:
    """The product of all sizes (1 without sizes)."""
    factors: Any = sizes
    n: Size = math.prod(factors)
    return n if type(n) is int else plain(n)


def ceildiv(n: Size, k: Size) -> Size:
    """ceil(n / k)."""
    return plain((n + k - 1) // k)


def at_least(n: Size, low: int) -> Size:
    """n, or `low` if n is less."""
    return max(n, low) if isinstance(n, int) else plain(E.maximum(n, low))


def is_symbolic(*sizes: Any) -> bool:
    """Whether any of these is an expression."""
    return any(isinstance(n, E.Expr) for n in sizes)


def fixed(sizes: Iterable[Size], who: str) -> tuple[int, ...]:
    """The sizes as ints. Raises: NeedsStatic, naming the stage `who`, if one of them is an expression."""
    found = tuple(sizes)
    ints = tuple(n for n in found if not isinstance(n, E.Expr))
    if len(ints) < len(found):
        raise NeedsStatic([s for n in found if isinstance(n, E.Expr) for s in n.symbols], f"{who} needs fixed sizes; got {list(found)}")
    return ints


def nominal(n: E.IntLike) -> int:
    """`n` with `NOMINAL` for every symbol, or the nearest value within its bounds; at least 1 for an expression.

    Also 1 for an expression that these values divide by 0: guards of the graph exclude them.
    """
    if isinstance(n, int):
        return n
    values = {s: _middle(s) for s in n.symbols}
    try:
        return max(E.evaluate(n, values), 1) if values else E.evaluate(n, {})
    except ZeroDivisionError:
        return 1


def _middle(s: E.Sym) -> int:
    value = int(min(max(NOMINAL, s.lo), s.hi))
    return max(value // s.multiple * s.multiple, s.multiple)


# -- layouts ---------------------------------------------------------------------------------------------------------
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
