"""Shapes of tiles in printed kernels, and the few texts that depend on shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.triton.values import Unprintable, type_of

Shape: TypeAlias = tuple[int, ...]  # of a tile; () is a scalar
Mask: TypeAlias = tuple[str, Shape]  # the name of a bool value, and its shape
WARP: Final = 32
ELEMENTS_OF_A_THREAD: Final = 8  # of the largest tile
DOT_ELEMENTS: Final = 32  # the same, where the tile is a product
LEAST_DOT_WARPS: Final = 4  # that one instruction of a matrix unit takes
MOST_WARPS: Final = 8


@dataclass(frozen=True, slots=True)
class Known:
    """A computed value: its name, its shape, the scope that it is computed in, and the written memory that it reads."""

    name: str
    shape: Shape
    scope: int
    reads: frozenset[str] = frozenset()


def broadcast(*shapes: Shape) -> Shape:
    """The shape of a tile that has every element of tiles of these shapes. Raises: Unprintable."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for d, n in enumerate(s):
            if n != 1:
                if out[d] not in (1, n):
                    raise Unprintable(f"triton: tiles of {out[d]} and {n} elements meet along axis {d}")
                out[d] = n
    return tuple(out)


def spread(value: Known, shape: Shape, of: dtype) -> str:
    """Source of a value with one element for each of a shape."""
    if value.shape == shape:
        return value.name
    return f"tl.broadcast_to({value.name}, {list(shape)})" if value.shape else f"tl.full({list(shape)}, {value.name}, {type_of(of)})"


def all_of(masks: Sequence[Mask]) -> str:
    """Source of the conjunction of masks, at least one."""
    return " & ".join(m[0] for m in masks) if len(masks) < 2 else f"({' & '.join(m[0] for m in masks)})"


def warps(elements: int, has_dot: bool) -> int:
    """Warps of a program whose largest tile has this number of elements."""
    wanted = elements // (WARP * (DOT_ELEMENTS if has_dot else ELEMENTS_OF_A_THREAD))
    return max(min(1 << (max(wanted, 1).bit_length() - 1), MOST_WARPS), LEAST_DOT_WARPS if has_dot else 1)


def reach(e: E.Expr) -> float:
    """A bound of the absolute value of an expression and of each of its parts."""
    own = max(abs(e.lo), abs(e.hi))
    if isinstance(e, E.Add):
        own = abs(e.const) + sum(abs(c) * max(abs(t.lo), abs(t.hi)) for t, c in e.terms)
    return max([own, *map(reach, e.children)])
